//! An Image Action: load its inputs, run the engine, make the result durable, end the job.
//!
//! **Guarantee.** One visible effect, whatever crashes: until the concluding transaction nothing is seen but the job's
//! state, and that transaction is fenced by the lease. A blob that was put for nothing is swept.
//!
//! **Mechanism.** Every step that can end the job early says how ([`Stop`]); all ends, good or bad, are written in one
//! place. A cancel is looked for at every step and stops the wait for pixels at once (decisions 9.5).

use db::jobs::{Concluded, Ending, Placement};
use domain::asset::AssetRecord;
use domain::id::{AssetId, JobId};
use domain::job::{ActionRequest, CancelReason, Failure, FailureCode, Input, JobStatus, Record, Request};
use domain::limits::{FILE_NAME_MAX, TASK_CLAIMS_MAX};
use raster::{Fault, Format, Size};
use serde_json::{Map, Value, json};
use service::blocking::Panicked;
use spine::{Decision, Lease, Task};
use uuid::Uuid;
use workshop::files::{Content, PUTS_MAX};
use workshop::{Error, Stop, Worker, decision};

use super::Trouble;
use crate::actions::{Prepared, Source};

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
    let Request::Action(request) = &job.request else { return Err(Error::WrongQueue(task.kind)) };
    spine::failpoint!("action.loaded");
    let made = match make(worker, &job, request, lease).await {
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
        let ending = Ending::Succeeded(vec![placement(request, &made, blob_key)]);
        match worker.conclude(task, lease, &ending).await? {
            Concluded::BlobGone => {}
            concluded => return Ok(decision(&concluded)),
        }
    }
    Err(Error::BlobGone)
}

/// Takes the job up and tells those who wait for a change. Nothing: the job is gone or over, or the lease is, which settling
/// the task finds out.
async fn begin(worker: &Worker, id: JobId, lease: &Lease) -> Result<Option<Record>, Error> {
    let job = db::jobs::begin(&mut *worker.connection().await?, id, lease.token()).await?;
    worker.announce(id).await;
    Ok(job.filter(|job| !job.status.is_terminal()))
}

/// Loads, checks and computes.
async fn make(worker: &Worker, job: &Record, request: &ActionRequest, lease: &Lease) -> Result<Made, Stop> {
    if job.status == JobStatus::Canceling || lease.is_cancel_requested() {
        return Err(Stop::Canceled);
    }
    let ActionRequest { slug, version, params, inputs, .. } = request;
    let mut assets = Vec::with_capacity(inputs.len());
    for input in inputs {
        assets.push(find(worker, input).await?);
    }
    let sources: Vec<Source> = assets.iter().map(source).collect();
    let prepared = Prepared::new(slug, params, &sources).map_err(|error| Error::from(Trouble::NotUnderstood(error)))?;
    let computing = async {
        // Before the files are loaded: however many jobs are in hand, those that wait hold nothing.
        let memory = worker.pixels.reserve(prepared.memory_bytes()).await;
        let mut files = Vec::with_capacity(inputs.len());
        for (input, asset) in inputs.iter().zip(&assets) {
            files.push(worker.get(asset.blob_key).await?.ok_or_else(|| gone(input))?);
        }
        let work = move || {
            let output = prepared.run(&files)?;
            Ok((Format::from(output.format), (output.width, output.height), Content::of(output.bytes)))
        };
        computed(memory.run(work).await)
    };
    let (format, (width, height), content) = tokio::select! {
        biased;
        () = lease.cancelled() => return Err(Stop::Canceled),
        made = computing => made?,
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
        name: file_name(assets.first().map_or("image", |asset| asset.name.as_str()), slug, format.extension()),
        provenance,
    })
}

/// What is stored of an input.
async fn find(worker: &Worker, input: &Input) -> Result<AssetRecord, Stop> {
    db::assets::get(&mut *worker.connection().await?, &input.asset).await?.ok_or_else(|| gone(input))
}

fn gone(input: &Input) -> Stop {
    Stop::from(invalid(format!("the input {} is gone", input.handle)))
}

/// An input as the admission to memory sees it.
pub(super) fn source(asset: &AssetRecord) -> Source {
    let format = match asset.mime_type.as_str() {
        "image/png" => Format::Png,
        "image/webp" => Format::Webp,
        "image/gif" => Format::Gif,
        // The costliest one to decode stands for anything unknown.
        _ => Format::Jpeg,
    };
    let side = |side: i32| u32::try_from(side).unwrap_or(0);
    let size = Size::new(side(asset.width), side(asset.height));
    Source { format, size, file_bytes: u64::try_from(asset.bytes).unwrap_or(0) }
}

/// What came of the engine's work. One that panicked did so over these very pictures, and would again: the job fails, and
/// nothing else does.
fn computed<T>(outcome: Result<Result<T, raster::Error>, Panicked>) -> Result<T, Stop> {
    match outcome {
        Ok(made) => made.map_err(refusal),
        Err(panicked) => {
            tracing::error!(error = &panicked as &dyn std::error::Error, "the engine panicked over a picture");
            Err(Stop::from(invalid("a picture could not be processed".into())))
        }
    }
}

/// A failure of the engine: the picture's, with a message for its owner, or ours.
fn refusal(error: raster::Error) -> Stop {
    match error.fault() {
        Fault::Picture | Fault::Limit => Stop::from(invalid(error.to_string())),
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
    let (is_finalizing, staged) =
        db::jobs::finalize_and_stage(&mut connection, id, lease.token(), &made.content.sha256).await?;
    if !is_finalizing && db::jobs::is_canceling(&mut connection, id).await? {
        // Asked for since the lease last heard: who was told `canceling` sees the work stop at its next step.
        return Err(Stop::Canceled);
    }
    drop(connection);
    if is_finalizing {
        worker.announce(id).await;
    }
    worker.put_staged(staged, &made.content).await.map_err(|error| match error {
        // The last claim says so; any earlier one leaves it to the next.
        Error::Store(source) if task.claims >= TASK_CLAIMS_MAX => {
            tracing::error!(error = &source as &dyn std::error::Error, job.id = %id, "the result of {id} cannot be stored");
            Stop::from(Failure::new(FailureCode::OutputFinalizationFailed, "the result could not be stored"))
        }
        error => Stop::Error(error),
    })
}

fn placement(request: &ActionRequest, made: &Made, blob_key: Uuid) -> Placement {
    Placement {
        node: request.target.clone(),
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
        Stop::Failed { failure, .. } => Ending::Failed(failure, Vec::new()),
        Stop::Stale => return Ok(Decision::Stale),
        Stop::Error(error) => return Err(error),
    };
    Ok(decision(&worker.conclude(task, lease, &ending).await?))
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

    #[tokio::test]
    async fn a_panic_of_the_engine_is_the_pictures_failure() {
        let pixels = workshop::Pixels::new(1, 1 << 20);
        let outcome = pixels.run(1, || -> Result<(), raster::Error> { panic!("an index out of bounds") }).await;
        let Err(Stop::Failed { failure, .. }) = computed(outcome) else { panic!("fails the job") };
        assert_eq!((failure.code, failure.retryable), (FailureCode::ActionInputInvalid, false));
        assert!(!failure.message.contains("index"), "internal text stays inside");
        assert!(pixels.run(1, || ()).await.is_ok(), "and the thread goes on");
    }

    #[test]
    fn a_result_is_named_after_its_input() {
        assert_eq!(file_name("photo.final.jpeg", "resize", "jpg"), "photo.final-resize.jpg");
        assert_eq!(file_name("photo", "resize", "png"), "photo-resize.png");
        let long = "ä".repeat(255);
        let named = file_name(&long, "resize", "png");
        assert_eq!((named.chars().count(), named.ends_with("ä-resize.png")), (255, true));
    }
}
