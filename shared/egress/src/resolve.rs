//! Name resolution that checks the addresses found.
//!
//! The connector gets exactly the addresses checked here, for this one connect. A name that changes its answer between check
//! and connect (DNS rebinding) has no effect, because there is no second lookup.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use service::account;
use service::shares::Shares;

use crate::guard::Guard;

/// Maximum number of concurrent system lookups. Each blocks a thread of tokio's blocking pool
/// (512), for tens of seconds if a name server does not answer, and even after its caller has given
/// up. A quarter of the pool leaves the rest for file access.
const MAX_LOOKUPS: u64 = 128;

/// Maximum number of these lookups on behalf of one account. An account chooses its names and may
/// run their name servers. Without this limit, names that hang would occupy every slot, long after
/// their callers gave up.
const MAX_LOOKUPS_OF_ACCOUNT: u64 = 16;

/// A source of addresses, which tests replace.
pub(crate) trait Lookup: Send + Sync + 'static {
    /// Returns all addresses of `name`.
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver, including the hosts file.
pub(crate) struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}

/// A limit on concurrent lookups, in total and per account.
pub(crate) struct LimitedLookup<L> {
    lookup: Arc<L>,
    lookups: Shares,
}

impl<L: Lookup> LimitedLookup<L> {
    pub(crate) fn new(lookup: L) -> Self {
        Self { lookup: Arc::new(lookup), lookups: Shares::new("lookups", MAX_LOOKUPS, MAX_LOOKUPS_OF_ACCOUNT) }
    }
}

impl<L: Lookup> Lookup for LimitedLookup<L> {
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let (lookup, lookups, account) = (Arc::clone(&self.lookup), self.lookups.clone(), account::key());
        async move {
            let held = lookups.hold(&account, 1).await;
            // The lookup runs in a separate task: the slot is released when the thread is free, not when the caller's deadline
            // passes.
            let running = tokio::spawn(async move {
                let _held = held;
                lookup.lookup(name).await
            });
            running.await?
        }
        .boxed()
    }
}

/// A name resolves to at least one address that is not permitted. The address is not disclosed: this becomes part of the error
/// that the caller of [`Client::send`](crate::Client::send) sees.
#[derive(Debug, thiserror::Error)]
#[error("the name resolves to an address that is not public")]
pub(crate) struct AddressNotPublic;

/// A name exists but has no address.
#[derive(Debug, thiserror::Error)]
#[error("the name has no address")]
struct NoAddress;

/// The resolver of a client.
pub(crate) struct VettingResolver {
    lookup: Arc<dyn Lookup>,
    /// `None` for targets listed as `host:port`, whose addresses are not checked.
    guard: Option<Guard>,
}

impl VettingResolver {
    pub(crate) fn new(lookup: Arc<dyn Lookup>, guard: Option<Guard>) -> Self {
        Self { lookup, guard }
    }
}

impl Resolve for VettingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.lookup.lookup(name.as_str().to_owned());
        let guard = self.guard.clone();
        Box::pin(async move {
            let found = found.await?;
            if found.is_empty() {
                return Err(NoAddress.into());
            }
            // One address that is not permitted rejects the whole name. Legitimate names do not
            // have mixed answers, and connecting only to the permitted addresses would let the
            // operator of the zone decide.
            if guard.is_some_and(|guard| !found.iter().all(|address| guard.check_address(*address))) {
                return Err(AddressNotPublic.into());
            }
            // Port 0 stands for the URL's port.
            let addresses: Addrs =
                Box::new(found.into_iter().map(|address| SocketAddr::new(address.to_canonical(), 0)));
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_millis(100);

    /// Answers every name except those that begin with `hang`.
    struct Hanging;

    impl Lookup for Hanging {
        fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            match name.starts_with("hang") {
                true => std::future::pending().boxed(),
                false => std::future::ready(Ok(vec![IpAddr::from([1, 2, 3, 4])])).boxed(),
            }
        }
    }

    /// Returns `true` if a lookup on behalf of an account is answered before its caller gives up.
    async fn answered(lookup: &LimitedLookup<Hanging>, account: &str, name: String) -> bool {
        account::on_behalf_of(account, async { timeout(SOON, lookup.lookup(name)).await.is_ok() }).await
    }

    #[tokio::test(start_paused = true)]
    async fn names_that_hang_use_up_the_share_of_their_account_alone() {
        let lookup = LimitedLookup::new(Hanging);
        for number in 0..2 * MAX_LOOKUPS {
            assert!(!answered(&lookup, "mallory", format!("hang{number}.example")).await);
        }
        assert!(!answered(&lookup, "mallory", "good.example".into()).await, "its share is used up");
        assert!(answered(&lookup, "alice", "good.example".into()).await, "others have theirs");
        assert!(timeout(SOON, lookup.lookup("good.example".into())).await.is_ok(), "so has the service itself");
    }
}
