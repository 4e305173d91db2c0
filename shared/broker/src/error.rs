//! Errors of the broker.

use std::time::Duration;

/// Why a connection could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is not an AMQP URL.
    #[error("broker URL is invalid: {reason}")]
    Url {
        /// Why the URL was rejected.
        reason: String,
    },
    /// TCP, TLS or the AMQP handshake failed.
    #[error("cannot connect to the broker")]
    Connect(#[source] lapin::Error),
    /// A step was not answered in time.
    #[error("broker did not answer within {}s", limit.as_secs())]
    Timeout {
        /// The time limit of the step.
        limit: Duration,
    },
    /// The channel could not be opened.
    #[error("cannot open a channel")]
    Channel(#[source] lapin::Error),
    /// An exchange, queue or binding could not be declared; rejected when it exists with other arguments.
    #[error("cannot declare or delete {name}")]
    Topology {
        /// The exchange or queue.
        name: String,
        #[source]
        source: lapin::Error,
    },
    /// The consumer could not be started.
    #[error("cannot consume from {queue}")]
    Consume {
        /// The name of the queue.
        queue: String,
        #[source]
        source: lapin::Error,
    },
    /// The message could not be serialized.
    #[error("message cannot be encoded")]
    Encode(#[source] serde_json::Error),
    /// The message could not be written.
    #[error("publish failed")]
    Publish(#[source] lapin::Error),
}
