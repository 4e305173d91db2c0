//! What every request shares.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use db::PgPool;
use service::config::Config;
use service::keys::{DerivedKeys, KeyRing};
use spine::Nudge;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::credentials::Credentials;
use crate::documents::Documents;
use crate::preview::Previews;
use crate::problem::{Problem, Result};
use crate::turnstile::Turnstile;
use crate::wait::Waits;

/// The gateway's state: cheap to clone, and nothing in it outlives a process or differs between replicas, except for
/// caches that cannot be stale.
#[derive(Clone)]
pub struct App(Arc<Shared>);

/// The parts of [`App`].
pub struct Shared {
    /// The validated configuration.
    pub config: Config,
    /// Postgres.
    pub pool: PgPool,
    /// Looks up who asks.
    pub credentials: Credentials,
    /// Keys derived from the installation key.
    pub keys: DerivedKeys,
    /// The operator's ring, for webhook secrets.
    pub ring: KeyRing,
    /// Redis: rate limits and change notification.
    pub cache: cache::Cache,
    /// The object store.
    pub blobs: blob::Store,
    /// Which models there are, and what runs the managed ones.
    pub models: providers::Setup,
    /// Which webhook URLs are public.
    pub guard: egress::Guard,
    /// Wakes this process's outbox relay.
    pub nudge: Nudge,
    /// Served canvas documents.
    pub documents: Documents,
    /// Makes and opens preview URLs.
    pub previews: Previews,
    /// Long polls and streams.
    pub waits: Waits,
    /// Places for uploads that are being received, all accounts together.
    pub uploads: tokio::sync::Semaphore,
    /// Lets few uploads of one account in at once.
    pub uploaders: Turnstile,
    /// Lets few renders of one account be drawn at once.
    pub renderers: Turnstile,
    /// Lets one writer of a canvas at a time to the database.
    pub writers: Turnstile,
    /// Tokens whose use is being recorded.
    pub recording: Mutex<HashSet<Uuid>>,
    /// Cancelled when the process begins to stop.
    pub stopping: CancellationToken,
}

impl App {
    /// The shared state.
    pub fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// A connection of the pool.
    pub async fn connection(&self) -> Result<db::Connection> {
        Ok(db::pool::acquire(&self.pool).await?)
    }

    /// A transaction; dropped without commit it is rolled back.
    pub async fn transaction(&self) -> Result<db::Transaction> {
        Ok(db::pool::begin(&self.pool).await?)
    }
}

impl Deref for App {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// Attempts of one transaction.
const ATTEMPTS_MAX: usize = 5;

/// Runs a transaction, and again when Postgres resolved a deadlock against it (decisions 3.7).
pub async fn retrying<T, F: Future<Output = Result<T>>>(mut attempt: impl FnMut() -> F) -> Result<T> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt().await {
            Err(Problem::Internal(error)) if error.downcast_ref::<db::Error>().is_some_and(db::Error::is_transient) => {
                tracing::info!("a deadlock was resolved against this transaction; it is run again");
            }
            done => return done,
        }
    }
    attempt().await
}
