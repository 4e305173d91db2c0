//! The steps of Actions in the database, each as one statement or transaction for all Actions that are at this step.
//!
//! Under load, a worker has several small Actions at each step. Together they need as many round trips and commits as one. What
//! failed for several is repeated for each, as the reason may be one of them.

use std::collections::HashMap;
use std::sync::Arc;

use app::job::{Completion, CompletionResult, Success, complete_together};
use db::jobs::{ResultFiles, StagedResult};
use domain::asset::AssetRecord;
use domain::id::JobId;
use domain::job::{Placement, Record, Request};
use taskqueue::{Batcher, Lease, Task};
use uuid::Uuid;
use worker::{Error, Worker};

/// How often a completion is tried together with others, before it waits for its canvas by itself.
const TRIES_TOGETHER: usize = 3;

/// An Action whose run has begun.
#[derive(Debug)]
pub(super) struct Begun {
    /// Record of the job.
    pub(super) job: Record,
    /// The stored assets of its inputs; `None` where there is none anymore.
    pub(super) assets: Vec<Option<AssetRecord>>,
}

/// A handle to the steps. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Steps(Arc<Batchers>);

#[derive(Debug)]
struct Batchers {
    begins: Batcher<(JobId, Uuid), Option<Begun>>,
    stages: Batcher<ResultFiles, StagedResult>,
    ends: Batcher<Success, Option<CompletionResult>>,
}

impl Steps {
    /// Creates the steps and their worker, which the caller must run. It ends when the last handle is dropped.
    pub(super) fn new(worker: &Worker) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (begins, beginning) = Batcher::new({
            let pool = worker.pool.clone();
            move |leased: Vec<(JobId, Uuid)>| {
                let pool = pool.clone();
                async move { begin(&mut *db::pool::acquire(&pool).await?, &leased).await }
            }
        });
        let (stages, staging) = Batcher::new({
            let pool = worker.pool.clone();
            move |files: Vec<ResultFiles>| {
                let pool = pool.clone();
                async move { db::jobs::stage_results(&mut *db::pool::acquire(&pool).await?, &files).await }
            }
        });
        let (ends, ending) = Batcher::new({
            let worker = worker.clone();
            move |successes: Vec<Success>| {
                let worker = worker.clone();
                async move { end(&worker, &successes).await }
            }
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
    pub(super) async fn begin(&self, worker: &Worker, id: JobId, lease: &Lease) -> Result<Option<Begun>, Error> {
        match self.0.begins.apply((id, lease.token())).await {
            Ok(begun) => Ok(begun),
            Err(_) => {
                let begun = begin(&mut *worker.connection().await?, &[(id, lease.token())]).await?;
                Ok(begun.into_iter().next().flatten())
            }
        }
    }

    /// Stages the files of a result.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub(super) async fn stage(&self, worker: &Worker, files: ResultFiles) -> Result<StagedResult, Error> {
        match self.0.stages.apply(files.clone()).await {
            Ok(staged) => Ok(staged),
            Err(_) => {
                let mut staged = db::jobs::stage_results(&mut *worker.connection().await?, &[files]).await?;
                Ok(staged.remove(0))
            }
        }
    }

    /// Completes a job with its output, together with others where that is possible, and notifies its waiters.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub(super) async fn succeed(
        &self,
        worker: &Worker,
        task: &Task,
        lease: &Lease,
        placement: Placement,
    ) -> Result<CompletionResult, Error> {
        let id = JobId(task.id);
        for _ in 0..TRIES_TOGETHER {
            let success = Success {
                id,
                lease_token: lease.token(),
                placement: placement.clone(),
                traceparent: task.trace.to_string(),
            };
            let completed = match self.0.ends.apply(success).await {
                Ok(Some(completed)) => completed,
                Ok(None) => continue,
                // Whether the transaction was committed is unknown.
                Err(_) => match worker.ended(id).await {
                    Some(record) => CompletionResult::Done(Box::new(record)),
                    None => break,
                },
            };
            if let CompletionResult::Done(record) = &completed {
                worker.announce_end(record).await;
            }
            return Ok(completed);
        }
        worker.complete(task, lease, &Completion::Succeeded(vec![placement])).await
    }
}

async fn begin(conn: &mut db::PgConnection, leased: &[(JobId, Uuid)]) -> db::Result<Vec<Option<Begun>>> {
    let mut jobs = db::jobs::begin_all(conn, leased).await?;
    let inputs = |job: &Record| match &job.request {
        Request::Action(request) => request.inputs.iter().map(|input| input.asset.clone()).collect(),
        _ => Vec::new(),
    };
    let named: Vec<_> = jobs.values().flat_map(inputs).collect();
    let assets: HashMap<_, _> = db::assets::get_all(conn, &named).await?;
    let begun = |(id, _): &(JobId, Uuid)| {
        let job = jobs.remove(id)?;
        let assets = inputs(&job).iter().map(|asset| assets.get(asset).cloned()).collect();
        Some(Begun { job, assets })
    };
    Ok(leased.iter().map(begun).collect())
}

async fn end(worker: &Worker, successes: &[Success]) -> db::Result<Vec<Option<CompletionResult>>> {
    let mut transaction = db::pool::begin(&worker.pool).await?;
    let context = worker.completion_context(None);
    // Dropping the transaction rolls it back.
    let Some(together) = complete_together(&mut transaction, successes, &context).await? else {
        return Ok(vec![None; successes.len()]);
    };
    db::pool::commit(transaction).await?;
    if together.enqueued {
        worker.waker.wake();
    }
    Ok(together.results)
}
