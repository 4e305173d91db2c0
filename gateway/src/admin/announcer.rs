//! Notifies the gateways of what a command has changed, so that open waits see it at once (`crate::wait`).
//!
//! Best effort, after the commit: without a message a wait polls PostgreSQL a few seconds later, and no request
//! depends on it.

use domain::channel;
use domain::id::{AccountUid, CanvasHandle};
use service::config::Config;

use super::Result;

/// The connection to the gateways. Made before the change that it announces, so that a wrong URL changes nothing.
pub(super) struct Announcer(cache::Cache);

impl Announcer {
    /// Connects in the background.
    pub(super) fn prepare(config: &Config) -> Result<Self> {
        Ok(Self(cache::Cache::connect(config.redis_url()?.expose(), cache::PREFIX)?))
    }

    /// Credentials of `account` were revoked.
    pub(super) async fn revoked(&self, account: &AccountUid) {
        self.announce(&[channel::access(account)]).await;
    }

    /// A canvas was shared or deleted.
    pub(super) async fn canvas(&self, canvas: &CanvasHandle) {
        self.announce(&[channel::canvas(canvas)]).await;
    }

    /// Announces a change on `channels`.
    pub(super) async fn announce(&self, channels: &[String]) {
        self.0.settled().await;
        self.0.notify(channels).await;
    }
}
