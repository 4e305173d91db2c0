//! RabbitMQ: topology, confirmed publishing, supervised consuming. The only user of lapin.
//!
//! A message is a wake-up and nothing more (decisions 9.8): the work is in Postgres. So the guarantees needed here are
//! few and strict. [`Publisher`] says "sent" only of what the broker has confirmed *and* routed; everything else is "not
//! sent" and stays in the outbox. [`Consumer`] yields wake-ups, survives every failure of the broker or the network by
//! building connection, channel and consumer anew, and never acknowledges on a channel what came over another.
//!
//! Publishing and consuming have a connection each, because a broker short of memory or disk stops reading from
//! connections that publish, acknowledgements included.

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
