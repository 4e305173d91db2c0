//! Runs and jobs.

use std::path::Path;
use std::time::{Duration, Instant};

use client::answers::AssetRead;
use domain::job::RunSummary;
use domain::queue::{WaitCause, WaitingFor};

use super::batch::insert;
use super::canvases::listed;
use super::files::{Source, save_all};
use super::work::{ended, print_end, shown, succeeded, wait, write_outputs};
use crate::args::Run;
use crate::context::{Body, Context};
use crate::failure::{Outcome, both};
use crate::output::{text, time};

/// The time for which `run cancel` waits for the end.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

pub async fn run(context: &Context, run: Run) -> Outcome {
    match run {
        Run::List { kind, status, on, listing } => {
            let on = match on {
                Some(on) => Some(context.canvas(&on).await?),
                None => None,
            };
            let list = || {
                let list = context.client.list_runs().query_if("kind", kind.as_deref());
                list.query_if("status", status.as_deref()).query_if("canvasId", on.as_deref())
            };
            let row = |it: RunSummary| {
                vec![
                    text(it.title),
                    text(it.handle),
                    text(it.operation),
                    text(it.status),
                    format!("{}/{}", it.outputs.done, it.outputs.total),
                    text(it.credit_cost),
                    time(it.created_at),
                    it.waiting_for.map(|waiting| waits_for(&waiting)).unwrap_or_default(),
                ]
            };
            let head = ["title", "run", "operation", "status", "outputs", "credits", "created", "waits for"];
            listed(context, &listing, list, &head, row).await
        }
        Run::Show { run } => {
            let record = context.client.read_work(&context.run(&run).await?).await?;
            context.output.answer(&record, |it| shown(&it, record.time()));
            Ok(())
        }
        Run::Wait { runs, timeout, output } => {
            let runs = context.runs(runs).await?;
            wait_for_all(context, &runs, timeout.map(Duration::from_secs), output.as_deref()).await
        }
        Run::Cancel { runs, remove_targets } => {
            let mut outcome = Ok(());
            for run in context.runs(runs).await? {
                outcome = both(outcome, cancel(context, &run, remove_targets).await, context.output.json);
            }
            outcome
        }
        Run::Keep { job, on, target } => {
            let on = match on {
                Some(on) => Some(context.canvas(&on).await?),
                None => None,
            };
            let job = context.run(&job).await?;
            let mut body = Body::new();
            if let (Some(on), Some(target)) = (&on, target) {
                body.insert("baseRevision".into(), context.revision(on).await?.into());
                body.insert("targetNodeId".into(), context.node(on, &target).await?.into());
            }
            insert(&mut body, "canvasId", on);
            let kept = context.client.keep_job_video(&job).json(&body).prefer("handling=lenient").await?;
            context.output.answer(&kept, |AssetRead { asset, .. }| text(asset.handle));
            Ok(())
        }
        Run::Output { job, output } => {
            let job = Source::Job(context.run(&job).await?);
            save_all(context, &[job], &output, |call| call).await
        }
    }
}

/// Cancels work, waits for its end, and prints it with what was charged.
async fn cancel(context: &Context, run: &str, remove_targets: bool) -> Outcome {
    let canceled = context.client.cancel_work(run).query_if("removeTargets", remove_targets.then_some(true)).await?;
    let record = match canceled.value()?.is_over() {
        true => canceled,
        false => wait(context, run, run, Some(CANCEL_PATIENCE)).await?,
    };
    context.output.answer(&record, |it| ended(&it));
    Ok(())
}

/// The cause of the wait of a run in a list. Pages are printed together, so times do not depend on when one was read.
fn waits_for(waiting: &WaitingFor) -> String {
    match (waiting.what, waiting.last_seen_at, waiting.retry_at) {
        (WaitCause::Worker, None, _) => "worker, none ever seen".to_owned(),
        (WaitCause::Worker, Some(seen), _) => format!("worker, last seen {}", time(seen)),
        (WaitCause::Retry, _, Some(at)) => format!("retry at {}", time(at)),
        (what, ..) => what.to_string(),
    }
}

/// Waits for each run, all of them at most `timeout`, and prints how it ended. Writes what the runs have made, and fails as the first
/// one that fails.
pub async fn wait_for_all(
    context: &Context,
    runs: &[String],
    timeout: Option<Duration>,
    output: Option<&Path>,
) -> Outcome {
    let began = Instant::now();
    let (mut outcome, mut records) = (Ok(()), Vec::new());
    for run in runs {
        let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
        let waited = wait(context, run, run, left).await.and_then(|last| {
            print_end(context, &last, output)?;
            let record = last.value()?;
            let outcome = succeeded(&record);
            records.push(record);
            outcome
        });
        outcome = both(outcome, waited, context.output.json);
    }
    both(outcome, write_outputs(context, &records, output).await, context.output.json)
}
