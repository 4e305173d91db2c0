//! Records attempts: each is counted before it is sent, and its result is stored afterwards.
//! Statements of several attempts are combined.

use std::time::Duration;

use db::PgPool;
use db::deliveries::attempts::{self, AttemptRecord, BeginResult, LeasedDelivery};
use taskqueue::{BatchError, Batcher};

/// Delays in milliseconds between tries to record a result. Their sum is longer than a restart of
/// the database, because a lost result causes a duplicate for the receiver and costs the delivery
/// an attempt.
const RECORD_PAUSES: [u64; 8] = [50, 100, 200, 400, 800, 1600, 3200, 6400];
/// Delays in milliseconds between tries to count an attempt. They are shorter, because an attempt
/// that cannot be counted is made later by the next worker that claims the delivery.
const BEGIN_PAUSES: [u64; 4] = [50, 200, 800, 1600];

/// A handle for recording attempts.
#[derive(Debug)]
pub struct Journal {
    begins: Batcher<LeasedDelivery, BeginResult>,
    records: Batcher<AttemptRecord, bool>,
}

impl Journal {
    /// Creates a journal in `pool` and its worker, which the caller must run. The worker ends when
    /// the journal is dropped. A run's first attempt starts the time `finalized` during which its
    /// result stays readable.
    pub fn new(pool: PgPool, finalized: Duration) -> (Self, impl Future<Output = ()> + Send) {
        let (begins, beginning) = Batcher::new({
            let pool = pool.clone();
            move |leased: Vec<LeasedDelivery>| {
                let pool = pool.clone();
                async move { attempts::begin(&mut *pool.acquire().await?, &leased, finalized).await }
            }
        });
        let (records, recording) = Batcher::new(move |outcomes: Vec<AttemptRecord>| {
            let pool = pool.clone();
            async move { attempts::record(&mut *pool.acquire().await?, &outcomes).await }
        });
        let work = async move {
            tokio::join!(beginning, recording);
        };
        (Self { begins, records }, work)
    }

    /// Counts an attempt. Retries while the database is unavailable. A lease can count only one
    /// attempt, so a retry counts nothing twice, and an attempt whose commit was uncertain is sent
    /// nevertheless.
    ///
    /// # Errors
    ///
    /// If the database stays unavailable. Then the attempt must not be sent, although it may have
    /// been counted.
    pub async fn begin(&self, leased: LeasedDelivery) -> Result<BeginResult, BatchError> {
        retry_during_outage(&self.begins, &BEGIN_PAUSES, leased).await
    }

    /// Records a result, and settles or reschedules the task with it. Returns `false` if the lease
    /// was lost and nothing was changed. Retries while the database is unavailable. The statement
    /// is conditional on the lease token, so a retry has no second effect.
    ///
    /// # Errors
    ///
    /// If the database stays unavailable.
    pub async fn record(&self, outcome: AttemptRecord) -> Result<bool, BatchError> {
        retry_during_outage(&self.records, &RECORD_PAUSES, outcome).await
    }
}

/// Executes an idempotent item, and retries it after each of `pauses` while the database is
/// unavailable.
async fn retry_during_outage<I, O>(batcher: &Batcher<I, O>, pauses: &[u64], item: I) -> Result<O, BatchError>
where
    I: Clone + Send + 'static,
    O: Send + 'static,
{
    for &pause in pauses {
        match batcher.apply(item.clone()).await {
            Err(BatchError::Database(_) | BatchError::Timeout) => {
                tokio::time::sleep(Duration::from_millis(pause)).await
            }
            answered => return answered,
        }
    }
    batcher.apply(item).await
}
