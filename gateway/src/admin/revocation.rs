//! Telling the gateways of a revocation, so that open waits end with it (`crate::wait`).

use domain::id::AccountUid;
use service::config::Config;

use super::Result;
use crate::wait::access_channel;

/// A way to the gateways. To be made before what is revoked, so that a wrong URL changes nothing.
pub(super) struct Revocation(cache::Cache);

impl Revocation {
    /// Connects beside what the command does meanwhile.
    pub(super) fn prepare(config: &Config) -> Result<Self> {
        Ok(Self(cache::Cache::connect(config.redis_url.expose(), cache::PREFIX)?))
    }

    /// To be called when credentials of `account` were revoked, and that is committed. One message, best effort: without it a wait
    /// looks by itself a few seconds later, and no request depends on it (decisions 2.2).
    pub(super) async fn announce(self, account: &AccountUid) {
        self.0.settled().await;
        self.0.notify(&access_channel(account)).await;
    }
}
