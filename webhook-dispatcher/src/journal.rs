//! The record of attempts: begun before the send, recorded after it, each in one statement with others.

use std::time::Duration;

use db::PgPool;
use db::deliveries::attempts::{self, Begun, Held, Outcome};
use spine::{BatchError, Batcher};

/// Pauses in milliseconds between tries to record a result: together longer than a restart of the database takes. A result
/// that is dropped costs the receiver a duplicate and the delivery an attempt.
const RECORD_PAUSES: [u64; 8] = [50, 100, 200, 400, 800, 1600, 3200, 6400];
/// The same between tries to count an attempt. Shorter: one that cannot be counted is only made later, by whoever claims the
/// delivery next.
const BEGIN_PAUSES: [u64; 4] = [50, 200, 800, 1600];

/// Writes attempts down.
#[derive(Debug)]
pub struct Journal {
    begins: Batcher<Held, Begun>,
    records: Batcher<Outcome, bool>,
}

impl Journal {
    /// A journal in `pool`, and the worker behind it, to be run; it ends with the journal. A run's first attempt keeps its
    /// result readable for `finalized` (decisions 9.3).
    pub fn new(pool: PgPool, finalized: Duration) -> (Self, impl Future<Output = ()> + Send) {
        let (begins, beginning) = Batcher::new({
            let pool = pool.clone();
            move |held: Vec<Held>| {
                let pool = pool.clone();
                async move { attempts::begin(&mut *pool.acquire().await?, &held, finalized).await }
            }
        });
        let (records, recording) = Batcher::new(move |outcomes: Vec<Outcome>| {
            let pool = pool.clone();
            async move { attempts::record(&mut *pool.acquire().await?, &outcomes).await }
        });
        let work = async move {
            tokio::join!(beginning, recording);
        };
        (Self { begins, records }, work)
    }

    /// Counts an attempt. Tries again while the database is away; one lease counts one attempt, so trying twice counts nothing
    /// twice, and an attempt whose commit was unknown is sent after all.
    ///
    /// # Errors
    ///
    /// When the database stayed away: the attempt must not be sent, and may be counted.
    pub async fn begin(&self, held: Held) -> Result<Begun, BatchError> {
        insist(&self.begins, &BEGIN_PAUSES, held).await
    }

    /// Records a result and settles or parks the task with it. `false`: the lease was lost, nothing was changed. Tries again
    /// while the database is away; the statement is guarded by the lease token, so trying twice does nothing twice.
    ///
    /// # Errors
    ///
    /// When the database stayed away.
    pub async fn record(&self, outcome: Outcome) -> Result<bool, BatchError> {
        insist(&self.records, &RECORD_PAUSES, outcome).await
    }
}

/// Applies an item whose statement may be made twice, again after each of `pauses` while the database is away.
async fn insist<I, O>(batcher: &Batcher<I, O>, pauses: &[u64], item: I) -> Result<O, BatchError>
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
