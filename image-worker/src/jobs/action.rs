//! An Image Action: load its inputs, run the engine, make the result durable, end the job.
//!
//! **Guarantee.** One visible effect, whatever crashes: until the concluding transaction nothing is seen but the job's
//! state, and that transaction is fenced by the lease. A blob that was put for nothing is swept.
//!
//! **Mechanism.** Every step that can end the job early says how ([`Stop`]); all ends, good or bad, are written in one
//! place. A cancel is looked for at every step and stops the wait for pixels at once (decisions 9.5).

use bytes::Bytes;
use db::jobs::{Concluded, Ending, Placement};
use domain::id::{AssetId, JobId};
use domain::job::{CancelReason, Failure, FailureCode, Input, JobStatus, Record, Request};
use domain::limits::{FILE_NAME_MAX, TASK_CLAIMS_MAX};
use raster::{Fault, Format};
use serde_json::{Map, Value, json};
use spine::{Decision, Lease, Task};
use uuid::Uuid;

use super::store::{self, Content, PUTS_MAX};
use super::{Error, Worker};
use crate::actions::Prepared;

/// Why the work on an Action ends before its result.
enum Stop {
    /// Somebody asked.
    Canceled,
    /// It cannot succeed.
    Failed(Failure),
    /// The lease is lost, or may be.
    Stale,
    /// What nobody foresaw; to be tried again.
    Error(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// What an Action made.
struct Made {
    content: Content,
    format: Format,
    width: u32,
    height: u32,
    name: String,
    provenance: Map<String, Value>,
}

/// Runs the Action of a task.
pub(super) async fn run(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let id = JobId(task.id);
    let Some(job) = begin(worker, id, lease).await? else { return worker.settle(task, lease).await };
    spine::failpoint!("action.loaded");
    let made = match make(worker, &job, lease).await {
        Ok(made) => made,
        Err(stop) => return end_early(worker, task, lease, stop).await,
    };
    spine::failpoint!("action.computed");
    for _ in 0..PUTS_MAX {
        let blob_key = match keep(worker, task, lease, &made).await {
            Ok(blob_key) => blob_key,
            Err(stop) => return end_early(worker, task, lease, stop).await,
        };
        spine::failpoint!("action.stored");
        if lease.is_cancel_requested() {
            return end_early(worker, task, lease, Stop::Canceled).await;
        }
        let ending = Ending::Succeeded(vec![placement(&job, &made, blob_key)]);
        match worker.conclude(task, lease, &ending).await? {
            Concluded::BlobGone => {}
            concluded => return Ok(decision(&concluded)),
        }
    }
    Err(Error::BlobGone)
}

/// Ends the Action of a task that killed its workers, or failed them, too often.
pub(super) async fn exhausted(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    match give_up(worker, task, lease).await {
        Err(Error::Database(error)) if error.is_unreadable() => {
            tracing::error!(error = &error as &dyn std::error::Error, job.id = %task.id, "job {} cannot be read", task.id);
            worker.abandon(task, lease).await
        }
        outcome => outcome,
    }
}

async fn give_up(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Some(job) = begin(worker, JobId(task.id), lease).await? else { return worker.settle(task, lease).await };
    let stop = match job.status {
        JobStatus::Canceling => Stop::Canceled,
        _ => Stop::Failed(Failure::new(FailureCode::RuntimeFailed, "the work failed again and again and was given up")),
    };
    end_early(worker, task, lease, stop).await
}

/// Takes the job up and tells those who wait for a change. Nothing: the job is gone or over, or the lease is, which settling
/// the task finds out.
async fn begin(worker: &Worker, id: JobId, lease: &Lease) -> Result<Option<Record>, Error> {
    let job = db::jobs::begin(&mut *worker.connection().await?, id, lease.token()).await?;
    worker.announce(id).await;
    Ok(job.filter(|job| !job.status.is_terminal()))
}

/// Loads, checks and computes.
async fn make(worker: &Worker, job: &Record, lease: &Lease) -> Result<Made, Stop> {
    if job.status == JobStatus::Canceling || lease.is_cancel_requested() {
        return Err(Stop::Canceled);
    }
    let Request::Action { slug, version, params, inputs, .. } = &job.request;
    let mut pictures = Vec::with_capacity(inputs.len());
    let mut names = Vec::with_capacity(inputs.len());
    for input in inputs {
        let (bytes, name) = load(worker, input).await?;
        pictures.push(bytes);
        names.push(name);
    }
    let prepared = Prepared::new(slug, params, pictures).map_err(Error::NotUnderstood)?;
    let computing = worker.pixels.run(prepared.memory_bytes(), move || {
        let output = prepared.run()?;
        Ok((Format::from(output.format), (output.width, output.height), Content::of(output.bytes)))
    });
    let (format, (width, height), content) = tokio::select! {
        biased;
        () = lease.cancelled() => return Err(Stop::Canceled),
        made = computing => made.map_err(Error::Panicked)?.map_err(refusal)?,
    };
    let references: Vec<Value> = inputs.iter().map(|input| json!({"handle": input.handle})).collect();
    let provenance = json!({
        "kind": "action",
        "run": job.id.run_handle(),
        "operation": job.operation,
        "actionId": format!("action:{slug}"),
        "actionVersion": version,
        "params": params,
        "references": references,
        "elements": [],
    });
    let Value::Object(provenance) = provenance else { unreachable!("the literal above is an object") };
    Ok(Made {
        content,
        format,
        width,
        height,
        name: file_name(names.first().map_or("image", String::as_str), slug, format.extension()),
        provenance,
    })
}

/// Bytes and file name of an input.
async fn load(worker: &Worker, input: &Input) -> Result<(Bytes, String), Stop> {
    let gone = || Stop::Failed(invalid(format!("the input {} is gone", input.handle)));
    let asset = db::assets::get(&mut *worker.connection().await?, &input.asset).await?.ok_or_else(gone)?;
    let bytes = store::get(worker, asset.blob_key).await?.ok_or_else(gone)?;
    Ok((bytes, asset.name))
}

/// A failure of the engine: the picture's, with a message for its owner, or ours.
fn refusal(error: raster::Error) -> Stop {
    match error.fault() {
        Fault::Picture | Fault::Limit => Stop::Failed(invalid(error.to_string())),
        Fault::Internal => Stop::Error(Error::Raster(error)),
    }
}

fn invalid(message: String) -> Failure {
    Failure::new(FailureCode::ActionInputInvalid, message)
}

/// Puts the result into the store, unless the store has it.
async fn keep(worker: &Worker, task: &Task, lease: &Lease, made: &Made) -> Result<Uuid, Stop> {
    let id = JobId(task.id);
    if lease.is_cancel_requested() {
        return Err(Stop::Canceled);
    }
    if !lease.check() {
        return Err(Stop::Stale);
    }
    let mut connection = worker.connection().await?;
    if db::jobs::mark_finalizing(&mut connection, id, lease.token()).await? {
        worker.announce(id).await;
    } else if db::jobs::is_canceling(&mut connection, id).await? {
        // Asked for since the lease last heard: who was told `canceling` sees the work stop at its next step.
        return Err(Stop::Canceled);
    }
    drop(connection);
    store::put(worker, &made.content).await.map_err(|error| match error {
        // The last claim says so; any earlier one leaves it to the next.
        Error::Store(source) if task.claims >= TASK_CLAIMS_MAX => {
            tracing::error!(error = &source as &dyn std::error::Error, job.id = %id, "the result of {id} cannot be stored");
            Stop::Failed(Failure::new(FailureCode::OutputFinalizationFailed, "the result could not be stored"))
        }
        error => Stop::Error(error),
    })
}

fn placement(job: &Record, made: &Made, blob_key: Uuid) -> Placement {
    let Request::Action { target, .. } = &job.request;
    Placement {
        node: target.clone(),
        asset: AssetId::generate(),
        name: made.name.clone(),
        mime_type: made.format.media_type().to_owned(),
        width: made.width,
        height: made.height,
        bytes: made.content.bytes.len() as u64,
        sha256: made.content.sha256,
        blob_key,
        provenance: made.provenance.clone(),
    }
}

/// Writes the end of work that has no result.
async fn end_early(worker: &Worker, task: &Task, lease: &Lease, stop: Stop) -> Result<Decision, Error> {
    let ending = match stop {
        Stop::Canceled => Ending::Canceled(CancelReason::UserRequested),
        Stop::Failed(failure) => Ending::Failed(failure),
        Stop::Stale => return Ok(Decision::Stale),
        Stop::Error(error) => return Err(error),
    };
    Ok(decision(&worker.conclude(task, lease, &ending).await?))
}

fn decision(concluded: &Concluded) -> Decision {
    match concluded {
        Concluded::Done(record) => match &record.outcome.failure {
            Some(failure) => Decision::Fail { code: failure.code.as_str() },
            None => Decision::Done,
        },
        Concluded::Stale | Concluded::BlobGone => Decision::Stale,
    }
}

/// `photo.jpg` becomes `photo-resize.png`, within the longest file name (decisions 6.3).
fn file_name(input: &str, slug: &str, extension: &str) -> String {
    let stem = input.rsplit_once('.').map_or(input, |(stem, _)| stem);
    let end = format!("-{slug}.{extension}");
    let room = FILE_NAME_MAX - end.len();
    let stem: String = stem.chars().take(room).collect();
    stem + &end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_named_after_its_input() {
        assert_eq!(file_name("photo.final.jpeg", "resize", "jpg"), "photo.final-resize.jpg");
        assert_eq!(file_name("photo", "resize", "png"), "photo-resize.png");
        let long = "ä".repeat(255);
        let named = file_name(&long, "resize", "png");
        assert_eq!((named.chars().count(), named.ends_with("ä-resize.png")), (255, true));
    }
}
