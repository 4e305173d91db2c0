//! RabbitMQ: topology, confirmed publishing and supervised consuming. Only this crate uses lapin.
//!
//! A message is only a wake-up; the work itself is in Postgres
//! (docs/architecture.md#how-work-moves). Therefore few guarantees are needed, but they are strict.
//! [`Publisher`] reports a message as sent only if the broker has confirmed *and* routed it. Every
//! other message counts as not sent and stays in the outbox. [`Consumer`] yields wake-up messages.
//! It survives every failure of the broker or the network by rebuilding the connection, the channel
//! and the consumer, and never acknowledges a message on another channel than the one on which it
//! arrived.
//!
//! Publishing and consuming use separate connections, because a broker that is short of memory or
//! disk stops reading from connections that publish, including their acknowledgements.

mod config;
mod connection;
mod consumer;
mod error;
mod publisher;
mod topology;

pub use config::Config;
pub use consumer::{Consumer, Delivery};
pub use error::{Error, NotSent};
pub use publisher::{Message, Publisher};
pub use topology::remove;
