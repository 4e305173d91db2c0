//! Starts of jobs, in one transaction for the requests that arrive while another one runs.
//!
//! A request that arrives alone is started at once. A start that cannot be made together with others is made by itself (app::job).

use std::sync::Arc;

use app::job::{JobStart, start_together};
use db::PgPool;
use domain::job::Record;
use service::chain;
use service::keys::KeyRing;
use taskqueue::Batcher;

/// Starts jobs in batches.
pub struct Starts {
    starts: Batcher<Arc<JobStart>, Option<Record>>,
}

impl Starts {
    /// The batches, over connections of their own to the database of `pool`, and their background task, which the caller must run.
    /// The task ends when the value is dropped. `cap` is the maximum number of active jobs of an account; `ring` seals the secrets
    /// of webhooks.
    pub fn new(
        pool: &PgPool,
        cache: cache::Cache,
        cap: u32,
        ring: KeyRing,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let pool = db::pool::batch_pool(pool);
        let (starts, worker) = Batcher::new(move |starts: Vec<Arc<JobStart>>| {
            let (pool, cache, ring) = (pool.clone(), cache.clone(), ring.clone());
            async move {
                let mut transaction = db::pool::begin_briefly(&pool).await?;
                let asked: Vec<&JobStart> = starts.iter().map(AsRef::as_ref).collect();
                let mut started = start_together(&mut transaction, &asked, cap, &ring).await?;
                if !started.is_empty() {
                    db::pool::commit(transaction).await?;
                    taskqueue::failpoint!("starts.committed");
                    let new = asked.iter().filter(|start| started.contains_key(&start.id));
                    let channels: Vec<_> = new.flat_map(|start| start.channels()).collect();
                    tokio::spawn(async move { cache.notify(channels).await });
                }
                Ok(asked.iter().map(|start| started.remove(&start.id)).collect())
            }
        });
        (Self { starts }, worker)
    }

    /// Starts a job together with others. `None`: it has to be started by itself. Whether it was started may be unknown.
    pub async fn start(&self, start: &Arc<JobStart>) -> Option<Record> {
        if !start.is_common() {
            return None;
        }
        self.starts.apply(start.clone()).await.unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "starts of several jobs failed together and are repeated for each");
            None
        })
    }
}
