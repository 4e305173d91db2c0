//! What can go wrong with the broker.

use std::time::Duration;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is none of AMQP.
    #[error("broker URL is invalid: {reason}")]
    Url {
        /// What is wrong with it.
        reason: String,
    },
    /// TCP, TLS, or the AMQP handshake.
    #[error("cannot connect to the broker")]
    Connect(#[source] lapin::Error),
    /// A step got no answer.
    #[error("broker did not answer within {}s", limit.as_secs())]
    Timeout {
        /// How long it had.
        limit: Duration,
    },
    /// The channel.
    #[error("cannot open a channel")]
    Channel(#[source] lapin::Error),
    /// Exchange, queues or binding; refused when they exist with other arguments.
    #[error("cannot declare or delete {name}")]
    Topology {
        /// Exchange or queue.
        name: String,
        /// The broker's answer.
        #[source]
        source: lapin::Error,
    },
    /// The consumer.
    #[error("cannot consume from {queue}")]
    Consume {
        /// The queue.
        queue: String,
        /// The broker's answer.
        #[source]
        source: lapin::Error,
    },
}

/// Why a message counts as not sent. It may have arrived all the same: then its repetition is a duplicate, which costs
/// an empty claim.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotSent {
    /// There is no connection at present.
    #[error("not connected to the broker")]
    Disconnected,
    /// The broker is short of memory or disk and reads nothing; or an earlier batch is stuck for that reason.
    #[error("broker has blocked the connection")]
    Blocked,
    /// No confirm in time.
    #[error("broker did not confirm in time")]
    Timeout,
    /// The broker could not take it.
    #[error("broker refused the message")]
    Refused,
    /// No queue takes it.
    #[error("no queue for the message")]
    Unroutable,
    /// The connection broke.
    #[error("publish failed")]
    Failed(#[source] lapin::Error),
    /// It could not be written down.
    #[error("message cannot be encoded")]
    Encode(#[source] std::sync::Arc<serde_json::Error>),
}
