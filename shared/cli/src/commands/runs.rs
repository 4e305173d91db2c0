//! Runs and jobs.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use super::canvases::listed;
use super::work::{ended, succeeded, wait};
use crate::args::Run;
use crate::context::{Context, canvas};
use crate::failure::{Failure, Outcome, file};
use crate::output::{put, rows, text, time};

pub async fn run(context: &Context, run: Run) -> Outcome {
    match run {
        Run::List { kind, status, on, listing } => {
            let on = on.as_deref().map(canvas).transpose()?;
            let list = || {
                let list = context.client.list_runs().query_if("kind", kind.as_deref());
                list.query_if("status", status.as_deref()).query_if("canvasId", on.as_deref())
            };
            let people = |runs: &[Value]| {
                rows(&["run", "operation", "status", "outputs", "credits", "started"], runs, |it| {
                    let outputs = format!("{}/{}", text(&it["outputs"]["done"]), text(&it["outputs"]["total"]));
                    vec![
                        text(&it["handle"]),
                        text(&it["operation"]),
                        text(&it["status"]),
                        outputs,
                        text(&it["creditCost"]),
                        time(&it["createdAt"]),
                    ]
                })
            };
            listed(context, &listing, "runs", list, people).await
        }
        Run::Show { run } => {
            let record = context.client.read_work(&run).await?;
            context.output.answer(&record, ended);
            Ok(())
        }
        Run::Wait { runs, timeout } => {
            let mut failure = None;
            for run in &runs {
                let last = wait(context, run, run, timeout).await?;
                context.output.answer(&last, ended);
                if let Err(it) = succeeded(&last.json()) {
                    failure = Some(it);
                }
            }
            failure.map_or(Ok(()), Err)
        }
        Run::Cancel { run, remove_targets } => {
            let record =
                context.client.cancel_work(&run).query_if("removeTargets", remove_targets.then_some(true)).await?;
            context.output.answer(&record, ended);
            Ok(())
        }
        Run::Output { job, output } => download(context, &job, &output).await,
    }
}

/// Writes the film of a video to a file, or to standard output for `-`.
pub async fn download(context: &Context, job: &str, path: &Path) -> Outcome {
    save(context, context.client.get_job_output(job), path).await
}

/// Writes an answer to a file as it arrives, or to standard output for `-`. A file is complete or not there.
pub async fn save<T>(context: &Context, call: client::Call<T>, path: &Path) -> Outcome {
    if path.as_os_str() == "-" {
        call.read(|_, piece| {
            put(&piece);
            Ok(())
        })
        .await?;
        return Ok(());
    }
    let part = path.with_extension(format!("part-{}", std::process::id()));
    let written = async {
        let mut to = File::create(&part).map_err(|error| file(&part, &error))?;
        let bar = context.output.byte_bar(&path.display().to_string(), 0);
        let mut failed = None;
        let read = call
            .read(|head, piece| {
                let length =
                    head.headers().get(http::header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
                bar.set_length(length.unwrap_or_default());
                bar.inc(piece.len() as u64);
                to.write_all(&piece).map_err(|error| {
                    failed = Some(file(&part, &error));
                    client::Error::Unexpected(error.to_string())
                })
            })
            .await;
        bar.finish_and_clear();
        if let Some(failure) = failed {
            return Err(failure);
        }
        read?;
        to.sync_all().and_then(|()| std::fs::rename(&part, path)).map_err(|error| file(path, &error))
    };
    let outcome: Outcome = written.await;
    if outcome.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    outcome?;
    context.output.value(&serde_json::json!({"file": path}), |_| path.display().to_string());
    Ok::<(), Failure>(())
}
