//! Stopping work for an operator, as its account could (decisions 9.5).

use std::time::Duration;

use db::jobs::{Cancellation, Terms};
use db::purge::Active;
use domain::id::JobId;
use domain::recipe::run::RunId;

use super::{Context, Refusal, Result};

/// How long a purge waits for work that was asked to stop: a worker sees it at its next step or heartbeat, and asks the
/// provider, too.
const STOPPING: Duration = Duration::from_secs(60);
/// Between two looks whether it has.
const LOOK: Duration = Duration::from_millis(200);
/// Attempts of a transaction that lost against another one.
const ATTEMPTS_MAX: usize = 5;

/// The handle under which a job or a run is known.
pub(super) fn handle(active: &Active) -> String {
    if active.is_recipe { RunId(active.id).handle() } else { JobId(active.id).job_handle() }
}

/// Stops a job or a run; the state that it is in now. What was over stays what it is.
pub(super) async fn cancel(context: &mut Context, active: &Active) -> Result<String> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt(context, active).await {
            Err(Refusal::Database(error)) if error.is_transient() => {}
            done => return done,
        }
    }
    attempt(context, active).await
}

async fn attempt(context: &mut Context, active: &Active) -> Result<String> {
    let (revision, child_revision) = (service::random::revision(), service::random::revision());
    let windows = spine::windows(&context.config);
    let terms = Terms {
        revision: &revision,
        public_url: &context.config.public_url,
        windows: &windows,
        traceparent: None,
        review: canvas::review::review_of_job,
        storage_max: context.config.storage_max,
    };
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let status = if active.is_recipe {
        let run = db::recipe_runs::cancel(&mut transaction, RunId(active.id), &active.account, &terms, &child_revision);
        run.await?.map(|(run, _)| run.status.to_string())
    } else {
        let cancellation = db::jobs::cancel(&mut transaction, JobId(active.id), &active.account, &terms).await?;
        cancellation.map(|cancellation| match cancellation {
            Cancellation::Unchanged(job) | Cancellation::Canceled(job) | Cancellation::Requested(job) => {
                job.status.to_string()
            }
        })
    };
    db::pool::commit(transaction).await?;
    status.ok_or_else(|| Refusal::rule(format!("{} is gone", handle(active))))
}

/// Lets a purge go on when there is no work under way; with `cancel_jobs` stops what there is first, and waits until it has
/// stopped. `look` finds it.
pub(super) async fn quiet(
    context: &mut Context,
    cancel_jobs: bool,
    look: impl AsyncFn(&mut db::PgConnection) -> db::Result<Vec<Active>>,
) -> Result<()> {
    let active = look(&mut context.connection).await?;
    if active.is_empty() {
        return Ok(());
    }
    if !cancel_jobs {
        return Err(under_way(active.len()));
    }
    for active in &active {
        match cancel(context, active).await {
            // It ended and went meanwhile.
            Ok(_) | Err(Refusal::Rule(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let stopped = async {
        while !look(&mut context.connection).await?.is_empty() {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    };
    match tokio::time::timeout(STOPPING, stopped).await {
        Ok(stopped) => stopped,
        Err(_) => Err(Refusal::rule(format!(
            "work that was asked to stop has not stopped within {} s: see that the workers are up, and purge again",
            STOPPING.as_secs()
        ))),
    }
}

/// The refusal of a purge while work is under way.
pub(super) fn under_way(count: usize) -> Refusal {
    Refusal::rule(format!("{count} jobs or runs are under way: cancel them, or purge with --cancel-jobs"))
}
