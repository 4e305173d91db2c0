//! One connection, and the pace at which a lost one is sought again.

use std::time::Duration;

use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Connection, ConnectionProperties};
use tokio::time::timeout;

use crate::{Config, Error, topology};

/// Limit for connecting and setting up, in all, and again for subscribing behind it. An attempt that is given up lingers in a
/// thread of lapin's until TCP gives up too; with this limit and the backoff there are few of them.
pub(crate) const SETUP_LIMIT: Duration = Duration::from_secs(10);

/// Limit for a polite goodbye; the operating system says it otherwise.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// First pause before a new attempt; the pauses double …
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// … up to this one.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A connection with its one channel, topology declared.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    pub(crate) channel: Channel,
}

impl Link {
    /// Connects. `role` tells the two connections of a process apart in the broker's listings.
    pub(crate) async fn open(config: &Config, role: &str, confirms: bool) -> Result<Self, Error> {
        timeout(SETUP_LIMIT, Self::set_up(config, role, confirms))
            .await
            .unwrap_or(Err(Error::Timeout { limit: SETUP_LIMIT }))
    }

    async fn set_up(config: &Config, role: &str, confirms: bool) -> Result<Self, Error> {
        // lapin's own recovery stays off: it replays acknowledgements and confirms across connections, and we rebuild all.
        let properties =
            ConnectionProperties::default().with_connection_name(format!("{} {role}", config.process).into());
        let connection = Connection::connect_uri(config.uri.clone(), properties).await.map_err(Error::Connect)?;
        let channel = connection.create_channel().await.map_err(Error::Channel)?;
        topology::declare(&channel, config).await?;
        if confirms {
            channel.confirm_select(ConfirmSelectOptions::default()).await.map_err(Error::Channel)?;
        }
        Ok(Self { connection, channel })
    }

    /// Whether both ends still think so.
    pub(crate) fn is_up(&self) -> bool {
        self.connection.status().connected() && self.channel.status().connected()
    }

    /// Says goodbye, as far as that is possible.
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

    /// Waits.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = LONGEST_PAUSE.min(self.next * 2);
    }

    /// After a success.
    pub(crate) fn reset(&mut self) {
        self.next = FIRST_PAUSE;
    }
}
