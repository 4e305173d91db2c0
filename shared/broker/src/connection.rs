//! One connection, and the backoff between attempts to restore it.

use std::time::Duration;

use lapin::{Channel, Connection, ConnectionProperties};
use tokio::time::timeout;

use crate::{Config, Error, topology};

/// Time limit for connecting and declaring, and again for subscribing. An abandoned attempt stays
/// in a thread of lapin until TCP times out. This limit and the backoff keep the number of such
/// threads small.
pub(crate) const SETUP_LIMIT: Duration = Duration::from_secs(10);

/// Time limit for an orderly close. After it, the operating system closes the socket.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// The first pause before a new attempt. Each pause is twice as long as the previous one, up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause before a new attempt.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A connection with its only channel and the topology declared.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    pub(crate) channel: Channel,
}

impl Link {
    /// Connects. `role` distinguishes the two connections of a process in the broker's management pages.
    pub(crate) async fn open(config: &Config, role: &str) -> Result<Self, Error> {
        timeout(SETUP_LIMIT, Self::set_up(config, role)).await.unwrap_or(Err(Error::Timeout { limit: SETUP_LIMIT }))
    }

    async fn set_up(config: &Config, role: &str) -> Result<Self, Error> {
        // lapin's own recovery is disabled: it replays acknowledgements across connections, whereas we rebuild
        // everything.
        let properties =
            ConnectionProperties::default().with_connection_name(format!("{} {role}", config.process).into());
        let connection = Connection::connect_uri(config.uri.clone(), properties).await.map_err(Error::Connect)?;
        let channel = connection.create_channel().await.map_err(Error::Channel)?;
        topology::declare(&channel, config).await?;
        Ok(Self { connection, channel })
    }

    /// Returns `true` if connection and channel are open.
    pub(crate) fn is_up(&self) -> bool {
        self.connection.status().connected() && self.channel.status().connected()
    }

    /// Closes the connection if possible.
    pub(crate) async fn close(&self) {
        let _ = timeout(CLOSE_LIMIT, self.connection.close(200, "done".into())).await;
    }
}

/// Pauses between attempts: 100 ms, doubling, at most 5 s.
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST_PAUSE }
    }

    /// Waits for the current pause and doubles the next.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = LONGEST_PAUSE.min(self.next * 2);
    }

    /// Resets the pauses after a success.
    pub(crate) fn reset(&mut self) {
        self.next = FIRST_PAUSE;
    }
}
