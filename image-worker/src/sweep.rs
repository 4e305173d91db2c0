//! What time takes away: records of jobs past their windows, blobs that nobody refers to.
//!
//! **Guarantee.** Any number of replicas may sweep at once: each batch takes rows that nobody else holds, in one short
//! transaction. A failure costs one round; the next one finds what it left.

use std::time::Duration;

use blob::BlobKey;
use db::PgPool;
use db::jobs::{Swept, Windows};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The most that one transaction takes: short locks, whatever has piled up.
const BATCH: i64 = 200;

/// How long an unreferenced blob is left alone: far more than any work takes from its put to its reference (decisions
/// 6.6).
const BLOB_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a round of sweeping ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] db::Error),
    /// The object store failed.
    #[error("the object store failed")]
    Store(#[from] blob::Error),
}

/// Sweeps.
#[derive(Clone)]
pub struct Sweeper {
    /// Connections to the database.
    pub pool: PgPool,
    /// Where the objects of blobs are.
    pub blobs: blob::Store,
    /// The origin of `canvasUrl` in what idempotency keys keep of removed jobs.
    pub public_url: String,
    /// How long records of jobs are kept.
    pub windows: Windows,
}

impl Sweeper {
    /// Sweeps every `interval` until `stop`.
    pub async fn run(self, interval: Duration, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(interval)).await.is_some() {
            match stop.run_until_cancelled(self.jobs()).await {
                Some(Ok(swept)) if swept == Swept::default() => {}
                Some(Ok(Swept { expired, removed })) => tracing::info!(expired, removed, "jobs swept"),
                Some(Err(error)) => report("jobs", &error),
                None => {}
            }
            match stop.run_until_cancelled(self.blobs(BLOB_GRACE)).await {
                Some(Ok(0)) | None => {}
                Some(Ok(removed)) => tracing::info!(removed, "blobs swept"),
                Some(Err(error)) => report("blobs", &error),
            }
        }
    }

    /// Gives every job whose time has come its next step (decisions 9.3).
    ///
    /// # Errors
    /// [`Error::Database`]; what was swept before stays so.
    pub async fn jobs(&self) -> Result<Swept, Error> {
        let mut total = Swept::default();
        loop {
            let mut transaction = db::pool::begin(&self.pool).await?;
            let swept = db::jobs::sweep(&mut transaction, &self.windows, &self.public_url, BATCH).await?;
            db::pool::commit(transaction).await?;
            total.expired += swept.expired;
            total.removed += swept.removed;
            if swept.expired.max(swept.removed) < BATCH.unsigned_abs() {
                return Ok(total);
            }
        }
    }

    /// Removes blobs that nobody has referred to or touched for `grace`: first the row is put under removal, then the
    /// object goes, then the row, so that a crash in between leaves something that the next round ends (decisions 6.6).
    ///
    /// # Errors
    /// [`Error`]; what was removed before stays so.
    pub async fn blobs(&self, grace: Duration) -> Result<u64, Error> {
        let (mut removed, mut after) = (0, Uuid::nil());
        loop {
            let mut connection = db::pool::acquire(&self.pool).await?;
            let keys = db::blobs::removable(&mut connection, grace, after, BATCH).await?;
            drop(connection);
            for &key in &keys {
                removed += u64::from(self.remove(key, grace).await?);
            }
            match keys.last() {
                Some(&last) => after = last,
                None => return Ok(removed),
            }
        }
    }

    async fn remove(&self, key: Uuid, grace: Duration) -> Result<bool, Error> {
        let mut transaction = db::pool::begin(&self.pool).await?;
        if !db::blobs::begin_removal(&mut transaction, key, grace).await? {
            return Ok(false);
        }
        db::pool::commit(transaction).await?;
        self.blobs.delete(BlobKey(key)).await?;
        db::blobs::forget(&mut *db::pool::acquire(&self.pool).await?, key).await?;
        Ok(true)
    }
}

fn report(what: &'static str, error: &Error) {
    tracing::warn!(error = error as &dyn std::error::Error, "{what} could not be swept");
}
