//! Runs and jobs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use client::answers::AssetRead;
use domain::job::RunSummary;
use domain::queue::{WaitCause, WaitingFor};

use super::batch::insert;
use super::canvases::listed;
use super::work::{ended, shown, succeeded, wait};
use crate::args::Run;
use crate::context::{Body, Context, canvas};
use crate::failure::{Outcome, both, file};
use crate::output::{is_unread, put, text, time};

pub async fn run(context: &Context, run: Run) -> Outcome {
    match run {
        Run::List { kind, status, on, listing } => {
            let on = on.as_deref().map(canvas).transpose()?;
            let list = || {
                let list = context.client.list_runs().query_if("kind", kind.as_deref());
                list.query_if("status", status.as_deref()).query_if("canvasId", on.as_deref())
            };
            let row = |it: RunSummary| {
                vec![
                    text(it.handle),
                    text(it.operation),
                    text(it.title),
                    text(it.status),
                    format!("{}/{}", it.outputs.done, it.outputs.total),
                    text(it.credit_cost),
                    time(it.created_at),
                    it.waiting_for.map(|waiting| waits_for(&waiting)).unwrap_or_default(),
                ]
            };
            let head = ["run", "operation", "title", "status", "outputs", "credits", "created", "waits for"];
            listed(context, &listing, list, &head, row).await
        }
        Run::Show { run } => {
            let record = context.client.read_work(&run).await?;
            context.output.answer(&record, |it| shown(&it, record.time()));
            Ok(())
        }
        Run::Wait { runs, timeout } => wait_for_all(context, &runs, timeout.map(Duration::from_secs)).await,
        Run::Cancel { run, remove_targets } => {
            let record =
                context.client.cancel_work(&run).query_if("removeTargets", remove_targets.then_some(true)).await?;
            context.output.answer(&record, |it| ended(&it));
            Ok(())
        }
        Run::Keep { job, on, target } => {
            let on = on.as_deref().map(canvas).transpose()?;
            let mut body = Body::new();
            if let (Some(on), Some(target)) = (&on, target) {
                body.insert("baseRevision".into(), context.revision(on).await?.into());
                body.insert("targetNodeId".into(), target.into());
            }
            insert(&mut body, "canvasId", on);
            let kept = context.client.keep_job_video(&job).json(&body).prefer("handling=lenient").await?;
            context.output.answer(&kept, |AssetRead { asset, .. }| text(asset.handle));
            Ok(())
        }
        Run::Output { job, output } => download(context, &job, &output).await,
    }
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

/// Waits for each run, all of them at most `timeout`, and prints how it ended. Fails as the first one that fails.
pub async fn wait_for_all(context: &Context, runs: &[String], timeout: Option<Duration>) -> Outcome {
    let began = Instant::now();
    let mut outcome = Ok(());
    for run in runs {
        let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
        let waited = wait(context, run, run, left).await.and_then(|last| {
            context.output.answer(&last, |it| ended(&it));
            succeeded(&last.value()?)
        });
        outcome = both(outcome, waited, context.output.json);
    }
    outcome
}

/// Writes the file of a video to a file, or to standard output for `-`.
pub async fn download(context: &Context, job: &str, path: &Path) -> Outcome {
    save(context, context.client.get_job_output(job), path).await
}

/// The part of a file that has arrived. It is removed when it is dropped, so also when an interrupt ends the download.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        // After it was renamed, there is nothing to remove.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes an answer as it arrives to a file, or to standard output for `-`. A file is complete or absent. To a
/// pipe or a device, the bytes are written directly.
pub async fn save<T>(context: &Context, call: client::Call<T>, path: &Path) -> Outcome {
    if path.as_os_str() == "-" {
        let read = call
            .read(|_, piece| {
                put(&piece);
                match is_unread() {
                    true => Err(client::Error::Unexpected("standard output is closed".into())),
                    false => Ok(()),
                }
            })
            .await;
        // Nobody reads the rest, which is no failure.
        if !is_unread() {
            read?;
        }
        return Ok(());
    }
    let is_special = fs::metadata(path).is_ok_and(|it| !it.is_file() && !it.is_dir());
    let part = (!is_special).then(|| Part(path.with_extension(format!("part-{}", std::process::id()))));
    let target = part.as_ref().map_or(path, |part| &part.0);
    // On a thread of its own: a pipe opens when somebody reads from it.
    let opened = tokio::fs::File::create(target).await.map_err(|error| file(target, &error))?;
    let mut to = opened.into_std().await;
    let bar = context.output.byte_bar(&path.display().to_string(), 0);
    let mut failed = None;
    let read = call
        .read(|head, piece| {
            let length = head.headers().get(http::header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
            bar.set_length(length.unwrap_or_default());
            bar.inc(piece.len() as u64);
            to.write_all(&piece).map_err(|error| {
                failed = Some(file(target, &error));
                client::Error::Unexpected(error.to_string())
            })
        })
        .await;
    bar.finish_and_clear();
    if let Some(failure) = failed {
        return Err(failure);
    }
    read?;
    if part.is_some() {
        to.sync_all().and_then(|()| fs::rename(target, path)).map_err(|error| file(path, &error))?;
    }
    context.output.value(&serde_json::json!({"file": path}), || path.display().to_string());
    Ok(())
}
