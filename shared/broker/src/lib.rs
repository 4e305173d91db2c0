//! RabbitMQ: topology, publishing and supervised consuming. Only this crate uses lapin.
//!
//! A message is only a wake-up; the work itself is in Postgres
//! (docs/architecture.md#how-work-moves). A [`Publisher`] publishes what its
//! [`Waker`] announces, best effort. A [`Consumer`] yields wake-up messages, and never acknowledges one
//! on another channel than the one on which it arrived. Both survive every failure of the broker or
//! the network by rebuilding connection, channel and consumer.
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
pub use error::Error;
pub use publisher::{Publisher, WAITING_MAX, Waker};
pub use topology::remove;
