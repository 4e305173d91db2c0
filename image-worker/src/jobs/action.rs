//! One or several Image Actions: load the inputs, run the engine, store the result, complete the job.
//!
//! **Guarantee.** Each job takes effect once, whatever crashes: until the final transaction only
//! the job's state is visible, and that transaction is fenced by the lease. A stored blob that
//! nothing refers to is deleted later.
//!
//! **Mechanism.** Every step that can end the job early returns how ([`Interrupt`]); all outcomes are
//! written in one place. Every step checks for a cancel request, which also interrupts the wait for
//! pixel memory (docs/reference/jobs.md#cancel).

use actions::{Effect, Frame, Prepared, Source, StepError};
use app::job::{Completion, CompletionResult};
use bytes::Bytes;
use db::jobs::ResultFiles;
use decoder::{Made, Order, Refusal, Work};
use domain::asset::AssetRecord;
use domain::id::{AssetId, JobId};
use domain::job::{
    ActionRequest, ActionStep, CancelReason, Failure, FailureCode, Input, JobStatus, Placement, Preview, Record,
    ReferenceInput, Request,
};
use domain::limits::{FILE_NAME_MAX, RENDITION_EAGER, TASK_CLAIMS_MAX};
use domain::metadata::{Provenance, ProvenanceKind, ProvenanceStep};
use domain::origin::{self, DigitalSourceType, Origin};
use futures_util::future::try_join_all;
use raster::{Color, Encoding, Format, OutputFormat};
use serde::{Deserialize, Serialize};
use taskqueue::{Decision, Lease, Task};
use uuid::Uuid;
use worker::decode::{header_of_made, refusal};
use worker::files::{Content, PUTS_MAX};
use worker::film::{At, Span};
use worker::marks::marked;
use worker::{Error, Interrupt, Reservation, Worker, account_of, decision};

use super::ExecutionError;
use super::steps::{StartedAction, Steps};

/// The result of an Action.
struct ActionOutput {
    content: Content,
    format: Format,
    /// Its rendition; `None` if it could not be made, which is left to the rendition's own task.
    preview: Option<(Format, Content)>,
    width: u32,
    height: u32,
    name: String,
    provenance: Provenance,
    origin: Option<DigitalSourceType>,
}

/// Runs the Action of a task.
pub(super) async fn run(worker: &Worker, steps: &Steps, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Some(StartedAction { job, assets }) = begin(worker, steps, JobId(task.id), lease).await? else {
        return worker.settle(task, lease).await;
    };
    let Request::Action(request) = &job.request else { return Err(Error::WrongQueue(task.kind)) };
    taskqueue::failpoint!("action.loaded");
    let made = match make(worker, &job, request, assets, lease).await {
        Ok(made) => made,
        Err(stop) => return end_early(worker, steps, task, lease, stop).await,
    };
    taskqueue::failpoint!("action.computed");
    for _ in 0..PUTS_MAX {
        let stored = match keep(worker, steps, task, lease, &made).await {
            Ok(stored) => stored,
            Err(stop) => return end_early(worker, steps, task, lease, stop).await,
        };
        taskqueue::failpoint!("action.stored");
        if lease.is_cancel_requested() {
            return end_early(worker, steps, task, lease, Interrupt::Canceled).await;
        }
        let completion = Completion::Succeeded(vec![placement(request, &made, stored)]);
        match steps.end(worker, task, lease, completion).await? {
            CompletionResult::BlobGone => {}
            concluded => return Ok(decision(&concluded)),
        }
    }
    Err(Error::BlobGone)
}

/// Marks the job as running and notifies waiters. `None` if the job is missing or terminal, or if the lease is lost, which settling
/// the task will detect.
async fn begin(worker: &Worker, steps: &Steps, id: JobId, lease: &Lease) -> Result<Option<StartedAction>, Error> {
    let Some(begun) = steps.begin(worker, id, lease).await? else { return Ok(None) };
    worker.announce(&begun.job.account, id, None).await;
    Ok((!begun.job.status.is_terminal()).then_some(begun))
}

/// Loads the inputs, checks them and computes the result.
async fn make(
    worker: &Worker,
    job: &Record,
    request: &ActionRequest,
    assets: Vec<Option<AssetRecord>>,
    lease: &Lease,
) -> Result<ActionOutput, Interrupt> {
    if job.status == JobStatus::Canceling || lease.is_cancel_requested() {
        return Err(Interrupt::Canceled);
    }
    let (steps, inputs) = (request.steps(), &request.inputs);
    let stored = inputs.iter().zip(assets).map(|(input, asset)| asset.ok_or_else(|| gone(input)));
    let assets: Vec<AssetRecord> = stored.collect::<Result<_, _>>()?;
    let prepared = Prepared::new(steps, assets.iter().map(source).collect())
        .map_err(|error| Error::from(ExecutionError::NotUnderstood(error)))?;
    let origins: Vec<Option<Origin>> = assets.iter().map(|asset| asset.origin).collect();
    let (origin, marks) = (origin_of(prepared.effects(), &origins), worker.marks);
    let computing = async {
        // Memory is reserved before the files are loaded, so that jobs that wait for memory hold
        // nothing.
        let act = Act::new(steps, &assets);
        let finish = move |first: &[u8], made: Vec<Vec<u8>>| {
            let packet = marks.packet(origin, first);
            let made = made.into_iter().map(|file| {
                let header = header_of_made(&file)?;
                Ok((header, Content::new(marked(file, packet.as_deref()))))
            });
            made.collect::<Result<Vec<_>, Error>>()
        };
        if let (Some(frame), [input], [video]) = (prepared.frame(), &**inputs, &*assets) {
            let made = frame_of(worker, job, video, frame, |_| prepared.memory_bytes(), act, finish).await;
            return match made {
                Err(Error::BlobGone) => Err(gone(input)),
                made => {
                    made?.map_err(|why| invalid(format!("the video {} cannot be used: {why}", input.handle)).into())
                }
            };
        }
        let (memory, files) = load(worker, &prepared, inputs, &assets).await?;
        let order = Order::new(job.account.as_str(), act, files);
        let made = memory.decode(order, move |files, made| finish(files.first().map_or(&[], |first| first), made));
        made.await?.map_err(|why| Interrupt::from(invalid(why)))
    };
    let made = tokio::select! {
        biased;
        () = lease.cancelled() => return Err(Interrupt::Canceled),
        made = computing => made??,
    };
    let mut made = made.into_iter();
    let Some((raster::Header { format, width, height, .. }, content)) = made.next() else {
        return Err(Error::Engine("an Action made nothing".to_owned()).into());
    };
    let preview = made.next().map(|(header, content)| (header.format, content));
    let reference = |input: &Input| ReferenceInput { handle: input.handle.clone(), role: None };
    let seconds = prepared.effects().map(|(_, second)| second.map(|at| inputs[at].handle.clone()));
    let told = steps.iter().zip(seconds).map(|(step, with)| provenance_step(step, with));
    let last = &steps[steps.len() - 1];
    let provenance = Provenance {
        action_id: Some(action_id(last)),
        action_version: Some(last.version.clone()),
        operation: Some(job.operation.into()),
        params: Some(last.params.clone()),
        references: inputs.iter().map(reference).collect(),
        run: Some(job.id.into()),
        steps: (steps.len() > 1).then(|| told.collect()),
        ..Provenance::new(ProvenanceKind::Action)
    };
    let slugs: Vec<&str> = steps.iter().map(|step| step.slug.as_str()).collect();
    Ok(ActionOutput {
        content,
        format,
        preview,
        width,
        height,
        name: file_name(assets.first().map_or("image", |asset| asset.name.as_str()), &slugs, format.extension()),
        provenance,
        origin,
    })
}

fn action_id(step: &ActionStep) -> String {
    format!("action:{}", step.slug)
}

/// A step with its second image, as the provenance tells it.
fn provenance_step(step: &ActionStep, with: Option<String>) -> ProvenanceStep {
    let ActionStep { version, params, .. } = step.clone();
    ProvenanceStep { action_id: action_id(step), action_version: version, params, with }
}

/// The origin of the result of Actions with these effects, each of which may read another input. What one makes has the origin that
/// the service knows of it.
fn origin_of(
    effects: impl Iterator<Item = (Effect, Option<usize>)>,
    inputs: &[Option<Origin>],
) -> Option<DigitalSourceType> {
    let first = inputs.first().copied().flatten();
    let made = effects.fold(first, |read, (effect, second)| {
        let read: Vec<Option<Origin>> = [Some(read), second.map(|at| inputs[at])].into_iter().flatten().collect();
        origin::of_output(origin::Work::Action(effect), &read).map(Origin::service)
    });
    made.map(|origin| origin.term)
}

/// Reserves memory and then loads the inputs. Files that need more memory than the usual coding of their format are released and
/// loaded again after that much is reserved, because nobody may hold memory while waiting for more.
async fn load(
    worker: &Worker,
    prepared: &Prepared,
    inputs: &[Input],
    assets: &[AssetRecord],
) -> Result<(Reservation, Vec<Bytes>), Interrupt> {
    // The decoder's copy.
    let copied: u64 = assets.iter().map(|asset| asset.bytes.unsigned_abs()).sum();
    let mut reserved = prepared.memory_bytes();
    loop {
        let memory = worker.pixels.reserve(copied + reserved).await;
        let mut files = Vec::with_capacity(inputs.len());
        for (input, asset) in inputs.iter().zip(assets) {
            files.push(worker.get(asset.blob_key).await?.ok_or_else(|| gone(input))?);
        }
        match prepared.memory_bytes_of(&files) {
            needed if needed > reserved => reserved = needed,
            _ => return Ok((memory, files)),
        }
    }
}

/// Runs an Action on a frame of a video. The inner error says why there is no frame, as a sentence about the video.
async fn frame_of<T: Send + 'static>(
    worker: &Worker,
    job: &Record,
    video: &AssetRecord,
    frame: Frame,
    memory_bytes: impl FnOnce(u64) -> u64,
    act: Act,
    finish: impl FnOnce(&[u8], Vec<Vec<u8>>) -> T + Send + 'static,
) -> Result<Result<T, String>, Error> {
    let index = match worker.film_index(video.blob_key).await? {
        Ok(index) => index,
        Err(why) => return Ok(Err(why)),
    };
    let at = match frame {
        Frame::First => At::First,
        Frame::Last => At::Last,
        Frame::Seconds(seconds) => At::Seconds(seconds),
    };
    let (work, finish) = (|span| ActOnFrame { span, act }, |made| finish(&[], made));
    worker.film_work(job.account.as_str(), video.blob_key, &index, at, memory_bytes, work, finish).await
}

fn gone(input: &Input) -> Interrupt {
    Interrupt::from(invalid(format!("the input {} is gone", input.handle)))
}

/// An input in the form that memory admission needs.
pub(super) fn source(asset: &AssetRecord) -> Source {
    Source::stored(&asset.mime_type, (asset.width, asset.height), asset.bytes)
}

/// Actions, as a decoder does them.
#[derive(Serialize, Deserialize)]
pub(crate) struct Act {
    steps: Vec<ActionStep>,
    /// Media type, size and length of the inputs.
    inputs: Vec<(String, (i32, i32), i64)>,
}

impl Act {
    fn new(steps: &[ActionStep], assets: &[AssetRecord]) -> Self {
        let input = |asset: &AssetRecord| (asset.mime_type.clone(), (asset.width, asset.height), asset.bytes);
        Self { steps: steps.to_owned(), inputs: assets.iter().map(input).collect() }
    }
}

impl Work for Act {
    const NAME: &'static str = "action";

    /// Makes the result, and its preview while there is memory for pixels, which spares a task of its own.
    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let inputs = self.inputs.iter().map(|(media_type, size, bytes)| Source::stored(media_type, *size, *bytes));
        let prepared = Prepared::new(&self.steps, inputs.collect());
        let prepared = prepared.map_err(|error| Refusal::Internal(error.to_string()))?;
        let output = prepared.run(files).map_err(|StepError { step, error }| match refusal(error) {
            Refusal::Input(why) if self.steps.len() > 1 => Refusal::Input(format!("steps[{step}]: {why}")),
            other => other,
        })?;
        let output = output.bytes;
        let preview = raster::rendition(&output, RENDITION_EAGER).ok();
        Ok([Some(output), preview.map(|preview| preview.bytes)].into_iter().flatten().collect())
    }
}

/// An Action on a frame of a video, as a decoder does it. The frame becomes an image without loss, as the Action reads it.
#[derive(Serialize, Deserialize)]
pub(crate) struct ActOnFrame {
    span: Span,
    act: Act,
}

impl Work for ActOnFrame {
    const NAME: &'static str = "action on a frame";

    fn run(self, files: &[Bytes], report: &mut dyn FnMut(u32)) -> Made {
        let encoding = Encoding { format: OutputFormat::Png, quality: 100, flatten: Color::WHITE };
        let frame = raster::encode(&self.span.decode(files)?, &encoding).map_err(refusal)?;
        self.act.run(&[frame.into()], report)
    }
}

fn invalid(message: String) -> Failure {
    Failure::new(FailureCode::ActionInputInvalid, message)
}

/// The places where the files of a result are stored.
struct Stored {
    blob_key: Uuid,
    preview_key: Option<Uuid>,
}

/// Stores the result and its preview, unless the store already has the same content.
async fn keep(
    worker: &Worker,
    steps: &Steps,
    task: &Task,
    lease: &Lease,
    made: &ActionOutput,
) -> Result<Stored, Interrupt> {
    let id = JobId(task.id);
    if lease.is_cancel_requested() {
        return Err(Interrupt::Canceled);
    }
    if !lease.check() {
        return Err(Interrupt::Stale);
    }
    let preview = made.preview.as_ref().map(|(_, content)| content);
    let files: Vec<&Content> = [Some(&made.content), preview].into_iter().flatten().collect();
    let hashes = files.iter().map(|file| file.sha256).collect();
    let staged = steps.stage(worker, ResultFiles { id, lease_token: lease.token(), hashes }).await?;
    if staged.is_canceling {
        // The client may have seen `canceling` since the last heartbeat, so the work stops at its
        // next step.
        return Err(Interrupt::Canceled);
    }
    if staged.is_finalizing {
        worker.announce(&account_of(task), id, None).await;
    }
    let puts = staged.files.into_iter().zip(&files).map(|(staged, file)| worker.put_staged(staged, file));
    let keys = try_join_all(puts).await.map_err(|error| match error {
        // Only the last claim fails the job; earlier ones leave it to the next claim.
        Error::Store(source) if task.claims >= TASK_CLAIMS_MAX => {
            tracing::error!(error = &source as &dyn std::error::Error, job.id = %id, "cannot store the result of job {id}");
            Interrupt::from(Failure::new(FailureCode::OutputFinalizationFailed, "the result could not be stored"))
        }
        error => Interrupt::Error(error),
    })?;
    Ok(Stored { blob_key: keys[0], preview_key: keys.get(1).copied() })
}

fn placement(request: &ActionRequest, made: &ActionOutput, stored: Stored) -> Placement {
    let preview = made.preview.as_ref().zip(stored.preview_key).map(|((format, content), blob_key)| Preview {
        mime_type: format.media_type().to_owned(),
        bytes: content.bytes.len() as u64,
        sha256: content.sha256,
        blob_key,
    });
    Placement {
        node: request.target.clone(),
        asset: AssetId::generate(),
        name: made.name.clone(),
        mime_type: made.format.media_type().to_owned(),
        width: made.width,
        height: made.height,
        bytes: made.content.bytes.len() as u64,
        sha256: made.content.sha256,
        blob_key: stored.blob_key,
        metadata_removed: Vec::new(),
        masked: None,
        preview,
        provenance: made.provenance.clone(),
        origin: made.origin,
        video: None,
    }
}

/// Writes the completion of work that has no result.
async fn end_early(
    worker: &Worker,
    steps: &Steps,
    task: &Task,
    lease: &Lease,
    stop: Interrupt,
) -> Result<Decision, Error> {
    let completion = match stop {
        Interrupt::Canceled => Completion::Canceled(CancelReason::UserRequested),
        Interrupt::Failed { failure, .. } => Completion::Failed(failure, Vec::new()),
        Interrupt::Stale => return Ok(Decision::Stale),
        Interrupt::Error(error) => return Err(error),
    };
    Ok(decision(&steps.end(worker, task, lease, completion).await?))
}

/// `photo.jpg` becomes `photo-resize.png`, with the name of each Action, within the maximum length of a file name
/// (docs/reference/actions.md#action-activity-and-result).
fn file_name(input: &str, slugs: &[&str], extension: &str) -> String {
    let stem = input.rsplit_once('.').map_or(input, |(stem, _)| stem);
    let end = format!("-{}.{extension}", slugs.join("-"));
    let room = FILE_NAME_MAX - end.len();
    let stem: String = stem.chars().take(room).collect();
    stem + &end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_named_after_its_input() {
        assert_eq!(file_name("photo.final.jpeg", &["resize"], "jpg"), "photo.final-resize.jpg");
        assert_eq!(file_name("photo", &["crop", "resize"], "png"), "photo-crop-resize.png");
        let long = "ä".repeat(255);
        let named = file_name(&long, &["resize"], "png");
        assert_eq!((named.chars().count(), named.ends_with("ä-resize.png")), (255, true));
    }

    #[test]
    fn the_origin_of_several_actions_is_that_of_one_after_the_other() {
        let made = |term| Some(Origin::service(term));
        let (generated, captured) =
            (made(DigitalSourceType::TrainedAlgorithmicMedia), made(DigitalSourceType::DigitalCapture));
        let mixed = Some(DigitalSourceType::CompositeWithTrainedAlgorithmicMedia);
        let (adjust, write) = ((Effect::Adjusts, None), (Effect::Annotates, None));
        for (effects, inputs, expected) in [
            (vec![adjust], vec![None], None),
            (vec![adjust, adjust], vec![generated], Some(DigitalSourceType::TrainedAlgorithmicMedia)),
            (vec![adjust, write, adjust], vec![generated], mixed),
            (
                vec![(Effect::Composes, Some(1)), adjust],
                vec![captured, captured],
                Some(DigitalSourceType::CompositeCapture),
            ),
            (vec![adjust, (Effect::Composes, Some(1)), write], vec![captured, generated], mixed),
        ] {
            assert_eq!(origin_of(effects.clone().into_iter(), &inputs), expected, "{effects:?}");
        }
    }
}
