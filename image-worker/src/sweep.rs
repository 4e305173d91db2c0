//! Deletes expired job records, capability links and unreferenced blobs.
//!
//! **Guarantee.** Any number of replicas may sweep concurrently: each batch takes rows that no
//! other transaction has locked, in one short transaction. A failure ends only the current round.
//! The next round, or the next walk over all blobs, finds what was left. The cost of a round
//! depends on the work to do, not on the amount of stored data.

use std::time::Duration;

use blob::BlobKey;
use db::PgPool;
use db::deadline::with_long_deadline;
use db::jobs::{Removed, Windows};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Maximum number of rows per transaction, which keeps locks short however many rows have
/// accumulated.
const BATCH: i64 = 200;

/// Number of blobs that one step of the walk over all blobs checks. Without cached pages a step
/// reads a few pages per blob and takes some seconds, far below the statement timeout.
const WINDOW: i64 = 2000;

/// Steps of that walk per round: 40,000 blobs, so that forty million take 17 hours if a round
/// starts every minute.
const STEPS: u32 = 20;

/// The time for which an unreferenced blob is kept: far longer than any work takes from storing it to referring to it
/// (docs/reference/assets.md#stored-bytes).
const BLOB_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// The number of failed deletions after which a round is abandoned, because each may have taken as
/// long as the store's retries.
const FAILURES_MAX: u32 = 10;

/// The reason why a round of sweeping ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the database failed")]
    Database(#[from] db::Error),
    #[error("the object store failed")]
    Store(#[from] blob::Error),
}

/// Counts of a round of sweeping blobs.
#[derive(Default)]
struct Round {
    removed: u64,
    failures: u32,
}

/// Removes expired records and unreferenced blobs.
#[derive(Clone)]
pub struct Sweeper {
    /// Connection pool of the database.
    pub pool: PgPool,
    /// Object store of the blobs.
    pub blobs: blob::Store,
    /// Origin of `canvasUrl` in the last state of removed jobs, which is stored with their idempotency keys.
    pub public_url: String,
    /// Retention windows of job records.
    pub windows: Windows,
}

impl Sweeper {
    /// Sweeps every `interval` until `stop` is canceled.
    pub async fn run(self, interval: Duration, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(interval)).await.is_some() {
            match stop.run_until_cancelled(with_long_deadline(self.expire())).await {
                Some(Ok(0)) | None => {}
                Some(Ok(expired)) => tracing::info!(expired, "jobs expired"),
                Some(Err(error)) => report("expired jobs", &error),
            }
            match stop.run_until_cancelled(with_long_deadline(self.jobs())).await {
                Some(Ok(Removed { removed: 0, unreadable: 0 })) | None => {}
                Some(Ok(Removed { removed, unreadable })) => tracing::info!(removed, unreadable, "jobs swept"),
                Some(Err(error)) => report("jobs", &error),
            }
            match stop.run_until_cancelled(with_long_deadline(self.imports())).await {
                Some(Ok(0)) | None => {}
                Some(Ok(swept)) => tracing::info!(swept, "imports swept"),
                Some(Err(error)) => report("imports", &error),
            }
            match stop.run_until_cancelled(with_long_deadline(self.links())).await {
                Some(Ok(0)) | None => {}
                Some(Ok(swept)) => tracing::info!(swept, "capability links swept"),
                Some(Err(error)) => report("capability links", &error),
            }
            match stop.run_until_cancelled(with_long_deadline(self.blobs(BLOB_GRACE))).await {
                Some(Ok(0)) | None => {}
                Some(Ok(removed)) => tracing::info!(removed, "blobs swept"),
                Some(Err(error)) => report("blobs", &error),
            }
        }
    }

    /// Expires every succeeded job whose retention period has ended
    /// (docs/reference/jobs.md#expired-records). Returns their number.
    ///
    /// # Errors
    ///
    /// [`Error::Database`]. Jobs that were already expired stay expired.
    pub async fn expire(&self) -> Result<u64, Error> {
        let mut connection = db::pool::acquire(&self.pool).await?;
        let mut total = 0;
        loop {
            let expired = db::jobs::expire(&mut connection, &self.windows, BATCH).await?;
            total += expired;
            if expired < BATCH.unsigned_abs() {
                return Ok(total);
            }
        }
    }

    /// Removes every job record whose retention period has ended
    /// (docs/reference/jobs.md#removed-records).
    ///
    /// # Errors
    ///
    /// [`Error::Database`]. Records that were already removed stay removed.
    pub async fn jobs(&self) -> Result<Removed, Error> {
        let mut total = Removed::default();
        loop {
            let mut transaction = db::pool::begin(&self.pool).await?;
            let swept = db::jobs::remove(&mut transaction, &self.public_url, BATCH).await?;
            db::pool::commit(transaction).await?;
            metrics::counter!("canvas_sweep_failures_total", "what" => "jobs").increment(swept.unreadable);
            total.removed += swept.removed;
            total.unreadable += swept.unreadable;
            if swept.removed + swept.unreadable < BATCH.unsigned_abs() {
                return Ok(total);
            }
        }
    }

    /// Removes imports whose outcome is no longer kept
    /// (docs/reference/imports.md#idempotency-of-imports). Returns their number.
    ///
    /// # Errors
    ///
    /// [`Error::Database`]. Imports that were already removed stay removed.
    pub async fn imports(&self) -> Result<u64, Error> {
        let mut connection = db::pool::acquire(&self.pool).await?;
        let mut total = 0;
        loop {
            let swept = db::imports::sweep(&mut connection, BATCH).await?;
            total += swept;
            if swept < BATCH.unsigned_abs() {
                return Ok(total);
            }
        }
    }

    /// Removes capability links that have ended (docs/reference/assets.md#capability-links). Returns their number.
    ///
    /// # Errors
    ///
    /// [`Error::Database`]. Links that were already removed stay removed.
    pub async fn links(&self) -> Result<u64, Error> {
        let mut connection = db::pool::acquire(&self.pool).await?;
        let mut total = 0;
        loop {
            let swept = db::links::sweep(&mut connection, BATCH).await?;
            total += swept;
            if swept < BATCH.unsigned_abs() {
                return Ok(total);
            }
        }
    }

    /// Removes blobs that have not been referenced or touched for `grace`. First the row is marked
    /// for removal, then the object is deleted, then the row, so that after a crash the next round
    /// finishes the removal (docs/reference/assets.md#stored-bytes). A blob that cannot be removed
    /// is left to the next round and does not delay others.
    ///
    /// Blobs that were never stored, or are marked for removal, are found in every round. Blobs
    /// that lost their last reference are found by a walk over all blobs, which takes [`STEPS`]
    /// steps per round and starts over at its end.
    ///
    /// # Errors
    ///
    /// [`Error`] if the database is unavailable or if [`FAILURES_MAX`] blobs could not be removed.
    /// Blobs that were already removed stay removed.
    pub async fn blobs(&self, grace: Duration) -> Result<u64, Error> {
        let mut round = Round::default();
        let mut after = Uuid::nil();
        loop {
            let mut connection = db::pool::acquire(&self.pool).await?;
            let keys = db::blobs::unsettled(&mut connection, grace, after, BATCH).await?;
            drop(connection);
            self.remove_each(&keys, grace, &mut round).await?;
            match keys.last() {
                Some(&last) => after = last,
                None => break,
            }
        }
        for _ in 0..STEPS {
            let mut connection = db::pool::acquire(&self.pool).await?;
            let walked = db::blobs::walk(&mut connection, grace, WINDOW).await?;
            drop(connection);
            self.remove_each(&walked.unreferenced, grace, &mut round).await?;
            if !walked.has_more {
                break;
            }
        }
        Ok(round.removed)
    }

    async fn remove_each(&self, keys: &[Uuid], grace: Duration, round: &mut Round) -> Result<(), Error> {
        for &key in keys {
            match self.remove(key, grace).await {
                Ok(gone) => round.removed += u64::from(gone),
                Err(Error::Database(error)) if error.is_outage() => return Err(error.into()),
                Err(error) => {
                    metrics::counter!("canvas_sweep_failures_total", "what" => "blobs").increment(1);
                    round.failures += 1;
                    if round.failures == FAILURES_MAX {
                        return Err(error);
                    }
                    report("a blob", &error);
                }
            }
        }
        Ok(())
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
