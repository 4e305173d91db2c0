//! The steps of Actions in the database, each as one statement or transaction for all Actions that are at this step.
//!
//! Under load, a worker has several small Actions at each step. Together they need as many round trips and commits as one. What
//! failed for several is repeated for each by itself, as the reason may be one of them. Large Actions are rarely at the same step;
//! they wait for each other while the pixel threads have enough to do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use app::job::{Completion, CompletionContext, CompletionResult, End};
use db::jobs::{ResultFiles, StagedResult};
use domain::asset::AssetRecord;
use domain::id::JobId;
use domain::job::{Record, Request};
use domain::message::ReadyTasks;
use service::chain;
use taskqueue::{Batcher, Lease, Task};
use uuid::Uuid;
use worker::{Error, Worker};

/// See [`pause`]. For photographs of 12 megapixels, each of which takes a thread 30 ms, 50 ms would gain no more.
const PAUSE: Duration = Duration::from_millis(25);

/// An Action whose run has begun.
#[derive(Clone, Debug)]
pub(super) struct StartedAction {
    pub(super) job: Record,
    /// The stored assets of its inputs; `None` where there is none anymore.
    pub(super) assets: Vec<Option<AssetRecord>>,
}

/// A job to end.
#[derive(Clone, Debug)]
struct Ending {
    id: JobId,
    lease_token: Uuid,
    completion: Completion,
    /// W3C trace context of the work that ends the job.
    traceparent: String,
}

/// A handle to the steps. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Steps(Arc<Batchers>);

#[derive(Debug)]
struct Batchers {
    begins: Batcher<(JobId, Uuid), Option<StartedAction>>,
    stages: Batcher<ResultFiles, StagedResult>,
    ends: Batcher<Ending, CompletionResult>,
}

impl Steps {
    /// Creates the steps, each over connections of its own, and their worker, which the caller must run. It ends when the last
    /// handle is dropped.
    pub(super) fn new(worker: &Worker) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let pool = db::pool::batch_pool(&worker.pool);
        let (begins, beginning) = Batcher::gathering(pause(worker), move |leased: Vec<(JobId, Uuid)>| {
            let pool = pool.clone();
            async move { begin(&mut *db::pool::acquire(&pool).await?, &leased).await }
        });
        let pool = db::pool::batch_pool(&worker.pool);
        let (stages, staging) = Batcher::gathering(pause(worker), move |files: Vec<ResultFiles>| {
            let pool = pool.clone();
            async move { db::jobs::stage_results(&mut *db::pool::acquire(&pool).await?, &files).await }
        });
        let pool = db::pool::batch_pool(&worker.pool);
        let worker = worker.clone();
        let (ends, ending) = Batcher::gathering(pause(&worker), move |ends: Vec<Ending>| {
            let (pool, worker) = (pool.clone(), worker.clone());
            async move { end(&pool, &worker, &ends).await }
        });
        let work = async move {
            tokio::join!(beginning, staging, ending);
        };
        (Self(Arc::new(Batchers { begins, stages, ends })), work)
    }

    /// Begins the job of a task. `None`: the lease is no longer current, or the job is gone.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub(super) async fn begin(
        &self,
        worker: &Worker,
        id: JobId,
        lease: &Lease,
    ) -> Result<Option<StartedAction>, Error> {
        let leased = (id, lease.token());
        match apply_in_batch(&self.0.begins, leased).await {
            Some(begun) => Ok(begun),
            None => Ok(begin(&mut *worker.connection().await?, &[leased]).await?.pop().flatten()),
        }
    }

    /// Stages the files of a result.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub(super) async fn stage(&self, worker: &Worker, files: ResultFiles) -> Result<StagedResult, Error> {
        match apply_in_batch(&self.0.stages, files.clone()).await {
            Some(staged) => Ok(staged),
            None => Ok(db::jobs::stage_results(&mut *worker.connection().await?, &[files]).await?.remove(0)),
        }
    }

    /// Ends a job and notifies its waiters.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub(super) async fn end(
        &self,
        worker: &Worker,
        task: &Task,
        lease: &Lease,
        completion: Completion,
    ) -> Result<CompletionResult, Error> {
        let (id, lease_token, traceparent) = (JobId(task.id), lease.token(), task.trace.to_string());
        let ending = Ending { id, lease_token, completion: completion.clone(), traceparent };
        match apply_in_batch(&self.0.ends, ending).await {
            // The review of a large canvas takes longer than others should wait.
            None | Some(CompletionResult::ReviewNeeded) => worker.complete(task, lease, &completion).await,
            Some(completed) => {
                if let CompletionResult::Done(record) = &completed {
                    worker.announce_end(record).await;
                }
                Ok(completed)
            }
        }
    }
}

/// The time for which a step waits for others to share its transaction: [`PAUSE`] while the pixel threads have work for longer,
/// so that none of them is idle for it.
fn pause(worker: &Worker) -> impl Fn() -> Duration + Send + use<> {
    let pixels = worker.pixels.clone();
    move || pause_during(pixels.backlog())
}

fn pause_during(backlog: Duration) -> Duration {
    if backlog < PAUSE { Duration::ZERO } else { PAUSE }
}

/// Applies an item together with others. `None` if it must be applied by itself; it may have been applied already.
async fn apply_in_batch<I: Send + 'static, O: Send + 'static>(batcher: &Batcher<I, O>, item: I) -> Option<O> {
    batcher.apply(item).await.map(Some).unwrap_or_else(|error| {
        tracing::warn!(error = chain(&error), "a step of several Actions failed and is repeated for each");
        None
    })
}

async fn begin(conn: &mut db::PgConnection, leased: &[(JobId, Uuid)]) -> db::Result<Vec<Option<StartedAction>>> {
    let jobs = db::jobs::begin(conn, leased).await?;
    let inputs = |job: &Record| match &job.request {
        Request::Action(request) => request.inputs.iter().map(|input| input.asset.clone()).collect(),
        _ => Vec::new(),
    };
    let named: Vec<_> = jobs.iter().flatten().flat_map(inputs).collect();
    let assets: HashMap<_, _> = db::assets::get_all(conn, &named).await?;
    let begun = |job: Record| {
        let assets = inputs(&job).iter().map(|asset| assets.get(asset).cloned()).collect();
        StartedAction { job, assets }
    };
    Ok(jobs.into_iter().map(|job| job.map(begun)).collect())
}

async fn end(pool: &db::PgPool, worker: &Worker, endings: &[Ending]) -> db::Result<Vec<CompletionResult>> {
    let ready = ReadyTasks::new();
    let context = worker.completion_context(None, &ready);
    let ends: Vec<End<'_>> = endings
        .iter()
        .map(|Ending { id, lease_token, completion, traceparent }| End {
            id: *id,
            lease_token: *lease_token,
            completion,
            context: CompletionContext { traceparent: Some(traceparent), ..context },
            reviews_large: false,
        })
        .collect();
    worker.end(db::pool::begin_briefly(pool).await?, &ends, &ready).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_gather_only_while_all_pixel_threads_have_work_for_longer() {
        assert_eq!(pause_during(Duration::ZERO), Duration::ZERO);
        assert_eq!(pause_during(PAUSE - Duration::from_micros(1)), Duration::ZERO);
        assert_eq!(pause_during(PAUSE), PAUSE);
        assert_eq!(pause_during(10 * PAUSE), PAUSE);
    }
}
