//! What time takes away: records of jobs past their windows, blobs that nobody refers to.
//!
//! **Guarantee.** Any number of replicas may sweep at once: each batch takes rows that nobody else holds, in one short
//! transaction. A failure costs one round; the next one finds what it left, or the next walk over all blobs does. What a round
//! looks at is bounded by what there is to do, and not by what is kept.

use std::time::Duration;

use blob::BlobKey;
use db::PgPool;
use db::jobs::{Removed, Windows};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The most that one transaction takes: short locks, whatever has piled up.
const BATCH: i64 = 200;

/// Blobs that one step of the walk over all of them looks at. A step that finds nothing in memory reads a few pages for each, some
/// seconds in all, and so stays far below the limit of a statement.
const WINDOW: i64 = 2000;

/// Steps of that walk in a round: 40000 blobs, so that forty million take 17 hours of rounds a minute apart.
const STEPS: u32 = 20;

/// How long an unreferenced blob is left alone: far more than any work takes from its put to its reference (decisions
/// 6.6).
const BLOB_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// Blobs that cannot be removed in one round before it is given up: each may have taken as long as the store's retries do.
const FAILURES_MAX: u32 = 10;

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

/// What a round of sweeping blobs came to so far.
#[derive(Default)]
struct Round {
    removed: u64,
    failures: u32,
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
            match stop.run_until_cancelled(self.expire()).await {
                Some(Ok(0)) | None => {}
                Some(Ok(expired)) => tracing::info!(expired, "jobs expired"),
                Some(Err(error)) => report("expired jobs", &error),
            }
            match stop.run_until_cancelled(self.jobs()).await {
                Some(Ok(Removed { removed: 0, unreadable: 0 })) | None => {}
                Some(Ok(Removed { removed, unreadable })) => tracing::info!(removed, unreadable, "jobs swept"),
                Some(Err(error)) => report("jobs", &error),
            }
            match stop.run_until_cancelled(self.imports()).await {
                Some(Ok(0)) | None => {}
                Some(Ok(swept)) => tracing::info!(swept, "imports swept"),
                Some(Err(error)) => report("imports", &error),
            }
            match stop.run_until_cancelled(self.blobs(BLOB_GRACE)).await {
                Some(Ok(0)) | None => {}
                Some(Ok(removed)) => tracing::info!(removed, "blobs swept"),
                Some(Err(error)) => report("blobs", &error),
            }
        }
    }

    /// Lets every success whose time has come expire (decisions 9.3), and says how many.
    ///
    /// # Errors
    /// [`Error::Database`]; what expired before stays so.
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

    /// Removes every job whose time is over (decisions 9.3).
    ///
    /// # Errors
    /// [`Error::Database`]; what was removed before stays so.
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

    /// Removes imports whose outcome nobody will ask for (decisions 14.2), and says how many.
    ///
    /// # Errors
    /// [`Error::Database`]; what was removed before stays so.
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

    /// Removes blobs that nobody has referred to or touched for `grace`: first the row is put under removal, then the
    /// object goes, then the row, so that a crash in between leaves something that the next round ends (decisions 6.6). A
    /// blob that cannot be removed is left to the next round and holds up no other.
    ///
    /// Those that were never stored, or are under removal, are found in every round; those that nobody refers to any more by a
    /// walk over all blobs, which takes [`STEPS`] steps a round and begins anew at its end.
    ///
    /// # Errors
    /// [`Error`], when the database is away or [`FAILURES_MAX`] blobs could not be removed; what was removed before stays so.
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
