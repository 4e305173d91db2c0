//! Name resolution that judges what it finds.
//!
//! The dialler gets exactly the addresses judged here, for this one connect: a name that changes its answer between a
//! check and a connect (DNS rebinding) gains nothing, because there is no second lookup.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::guard::Guard;

/// System lookups that run at once. Each holds a thread of tokio's blocking pool (512), for tens of seconds when a name
/// server is dead and even after its caller gave up; a quarter of the pool leaves the rest of the process its files.
const MAX_LOOKUPS: usize = 128;

/// The source of answers; tests put their own in its place.
pub(crate) trait Lookup: Send + Sync + 'static {
    /// All addresses of `name`.
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver, hosts file included.
pub(crate) struct SystemLookup {
    slots: Arc<Semaphore>,
}

impl SystemLookup {
    pub(crate) fn new() -> Self {
        Self { slots: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

impl Lookup for SystemLookup {
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let slots = Arc::clone(&self.slots);
        async move {
            let slot = slots.acquire_owned().await.map_err(io::Error::other)?;
            // In a task of its own: the slot is freed when the thread is, not when the caller's deadline passes.
            let running = tokio::spawn(async move {
                let _slot = slot;
                let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            });
            running.await?
        }
        .boxed()
    }
}

/// A name resolves to at least one address that may not be dialled. Which one is nobody's business: this ends up in the
/// error that the caller of [`Client::send`](crate::Client::send) sees.
#[derive(Debug, thiserror::Error)]
#[error("the name resolves to an address that is not public")]
pub(crate) struct AddressNotPublic;

/// A name exists and has no address.
#[derive(Debug, thiserror::Error)]
#[error("the name has no address")]
struct NoAddress;

/// The resolver of a client.
pub(crate) struct VettingResolver {
    lookup: Arc<dyn Lookup>,
    /// Absent for targets listed as `host:port`: their addresses are the operator's word.
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
            // One bad answer refuses the name: an honest name has no mixed answers, and dialling "the good ones" would
            // leave the choice to whoever runs the zone.
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
