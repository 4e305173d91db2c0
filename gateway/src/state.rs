//! The state that all requests share.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use db::PgPool;
use domain::asset::UploadMetadata;
use service::config::Config;
use service::keys::{DerivedKeys, KeyRing};
use service::shares::Shares;
use taskqueue::Waker;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::admission::Writers;
use crate::audit;
use crate::credentials::Credentials;
use crate::documents::Documents;
use crate::failures::Failures;
use crate::live::Live;
use crate::preview::Previews;
use crate::problem::{Problem, Result};
use crate::queues::LastSeen;
use crate::rates::Refusals;
use crate::wait::Waits;

/// The gateway's state: cheap to clone. Nothing in it needs to outlive the process or to agree between replicas; its caches cannot
/// be stale.
#[derive(Clone)]
pub struct App(Arc<Shared>);

/// The parts of [`App`].
pub struct Shared {
    /// The validated configuration.
    pub config: Config,
    /// Treatment of private metadata of uploads that do not name one.
    pub upload_metadata: UploadMetadata,
    /// The connection pool of Postgres.
    pub pool: PgPool,
    /// Looks up credentials.
    pub credentials: Credentials,
    /// Judges credentials before they are looked up.
    pub failures: Failures,
    /// Keys derived from the installation key.
    pub keys: DerivedKeys,
    /// The operator's key ring, for webhook secrets.
    pub ring: KeyRing,
    /// Redis: rate limits and change notification.
    pub cache: cache::Cache,
    /// The object store.
    pub blobs: blob::Store,
    /// The models, and the backends of the managed ones.
    pub models: providers::Setup,
    /// Decides which webhook URLs are public.
    pub guard: egress::Guard,
    /// The providers that people sign in with.
    pub providers: Vec<identity::provider::Provider>,
    /// Announces tasks after the commits that make them ready.
    pub waker: Waker,
    /// Cache of served canvas documents.
    pub documents: Documents,
    /// Graphs of the canvases that were written last.
    pub graphs: Arc<app::graphs::Graphs>,
    /// The reviews that canceled jobs leave on large canvases.
    pub reviews: app::job::Reviews,
    /// Makes and opens preview URLs.
    pub previews: Previews,
    /// Subscriptions of event streams and long polls of canvases.
    pub live: Live,
    /// Open long polls and streams.
    pub waits: Waits,
    /// Requests in progress.
    pub requests: Shares,
    /// Uploads.
    pub uploads: Shares,
    /// Renders.
    pub renders: Shares,
    /// Work on more than 1 MiB.
    pub large_work: Shares,
    /// Admits one writer of a canvas at a time to the database.
    pub writers: Writers,
    /// Tokens whose use is being recorded.
    pub recording: Mutex<HashSet<Uuid>>,
    /// Refused sign-ins that get no row in the audit.
    pub refused_sign_ins: audit::Refusals,
    /// Rates that clients exceeded.
    pub refusals: Refusals,
    /// The last state of the queues.
    pub last_seen: LastSeen,
    /// Canceled when the process begins to stop.
    pub stopping: CancellationToken,
}

/// [`App::confirms_tokens`] for these providers.
pub fn confirm_tokens(providers: &[identity::provider::Provider]) -> bool {
    providers.iter().any(|provider| provider.settings.confirm_days.is_some())
}

impl App {
    /// Returns `true` if a provider's sign-ins confirm tokens for a time, so that these stop without one.
    pub fn confirms_tokens(&self) -> bool {
        confirm_tokens(&self.providers)
    }

    /// Wraps the shared state.
    pub fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// A connection from the pool.
    pub async fn connection(&self) -> Result<db::Connection> {
        Ok(db::pool::acquire(&self.pool).await?)
    }

    /// A transaction; dropping it without commit rolls it back.
    pub async fn transaction(&self) -> Result<db::Transaction> {
        Ok(db::pool::begin(&self.pool).await?)
    }

    /// Wakes those who follow `channels`, in all gateways, without a delay for the caller.
    pub fn announce(&self, channels: Vec<String>) {
        let cache = self.cache.clone();
        tokio::spawn(async move { cache.notify(channels).await });
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

/// Runs a transaction, and again when Postgres aborted it to resolve a deadlock (docs/reliability.md#lock-order).
pub async fn retrying<T, F: Future<Output = Result<T>>>(mut attempt: impl FnMut() -> F) -> Result<T> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt().await {
            Err(Problem::Internal(error)) if error.downcast_ref::<db::Error>().is_some_and(db::Error::is_transient) => {
                tracing::info!("transaction aborted to resolve a deadlock, retrying");
            }
            done => return done,
        }
    }
    attempt().await
}
