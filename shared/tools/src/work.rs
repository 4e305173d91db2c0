//! Work: starting it, waiting for it, and reporting its outcome.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::answers::{ActionRuns, Started};
use client::{Client, Waiting, WorkFailure, WorkOutput, WorkRecord};
use domain::canvas::CanvasChanges;
use domain::job::{JobStatus, RunKind, RunSummary};
use domain::{Timestamp, counted};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::answer::{Answer, AnswerImage, Next, present};
use crate::call::Call;
use crate::failure::{Failure, Retry};
use crate::names::{NamedCanvas, Names};
use crate::progress::State;
use crate::stale;
use crate::tool::Result;

/// Seconds that a start waits for the end of its work unless the call says otherwise.
const WAIT_SECONDS: u64 = 45;
/// Images of a result, and their width: enough to see what they show.
pub const IMAGES_MAX: usize = 4;
const IMAGE_WIDTH: u32 = 512;
/// The longest that an image is waited for: renditions are made at their first use.
const IMAGE_MAX: Duration = Duration::from_secs(5);

/// Message for work whose record has expired: it had succeeded.
const EXPIRED: &str = "It succeeded. Its record has expired, and what it made stays on its canvas: look there.";

/// Message for work without workers.
const KEPT: &str = "The work is kept and goes on by itself once a worker is started. Never start it again. Tell the user, or \
                    whoever operates the service, that no worker is running.";

/// Seconds to wait for the end, 0 to 50; default 45
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Wait(#[schemars(range(min = 0, max = 50))] u64);

/// Work as a tool reports it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Work {
    /// `run:…`, of a video `job:…`.
    run: String,
    kind: String,
    status: String,
    canvas: Option<String>,
    url: Option<String>,
    revision: Option<String>,
    credit_cost: i64,
    stand_in: bool,
    replayed: bool,
    outputs: Vec<Output>,
    /// The cause of the wait.
    waiting: Option<String>,
    failure: Option<WorkFailure>,
    instruction: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<Next>,
}

/// Outputs of the work.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    key: Option<String>,
    node: Option<String>,
    status: String,
    asset: Option<String>,
    width: Option<u32>,
    height: Option<u32>,
    text: Option<String>,
    download_url: Option<String>,
    failure: Option<WorkFailure>,
}

impl Work {
    /// Work of which a record was read at `at`.
    pub fn from_record(record: &WorkRecord, at: Timestamp) -> Self {
        let waiting = record.waiting(at);
        let is_for_worker = waiting.as_ref().is_some_and(Waiting::is_for_worker);
        let outputs = match record.kind.parse() {
            Ok(RunKind::Recipe) => record.outputs.iter().map(Output::of_recipe).collect(),
            Ok(RunKind::Video) => {
                let video = record.video.as_ref();
                vec![Output {
                    node: record.targets.first().cloned(),
                    asset: video.and_then(|video| video.asset_id.as_ref()).map(ToString::to_string),
                    download_url: video.map(|video| video.download_url.clone()),
                    ..Output::new(&record.status)
                }]
            }
            _ => Output::of_job(record),
        };
        let is_expired = record.is(JobStatus::Expired);
        let mut work = Self {
            run: record.handle().to_owned(),
            kind: record.kind.clone(),
            status: record.status.clone(),
            canvas: record.canvas().cloned(),
            url: None,
            revision: record.canvas_revision.clone(),
            credit_cost: record.credit_cost,
            stand_in: record.stand_in,
            replayed: record.replayed,
            outputs,
            waiting: waiting.map(|waiting| match waiting.is_for_worker() {
                true => format!("{waiting}. {KEPT}"),
                false => waiting.to_string(),
            }),
            failure: record.failure.clone().filter(|_| !is_expired),
            instruction: is_expired.then(|| EXPIRED.to_owned()),
            next: Vec::new(),
        };
        if !record.is_over() {
            work.next.push(if is_for_worker { Next::wait_later(&work.run) } else { Next::wait(&work.run) });
        }
        if is_expired && let Some(canvas) = &work.canvas {
            work.next.push(Next::new("canvas_read", json!({"canvas": canvas}), "what it made"));
        }
        work
    }

    /// Names canvases by their slugs and nodes by their refs.
    pub async fn name(call: &Call, works: &mut [Self]) {
        let on = |work: &Self| {
            let nodes: Vec<Option<String>> = work.outputs.iter().map(|output| output.node.clone()).collect();
            // A work without nodes has a canvas all the same.
            let nodes = if nodes.is_empty() { vec![None] } else { nodes };
            work.canvas
                .iter()
                .flat_map(move |canvas| nodes.clone().into_iter().map(move |node| (canvas.clone(), node)))
                .collect::<Vec<_>>()
        };
        let named = works.iter().flat_map(on).collect();
        let names = Names::read(call, named).await;
        for work in works {
            let Some(handle) = &work.canvas else { continue };
            for node in work.outputs.iter_mut().filter_map(|output| output.node.as_mut()) {
                *node = names.node(handle, node);
            }
            let NamedCanvas { canvas, url } = names.canvas(call, handle);
            for Next { arguments, .. } in &mut work.next {
                if let Some(named) = arguments.get_mut("canvas") {
                    *named = canvas.as_str().into();
                }
            }
            (work.canvas, work.url) = (Some(canvas), Some(url));
        }
    }

    /// Tells the revision after nodes of this work were removed, which its record does not have, and leaves these nodes out: they have no
    /// ref any more.
    pub async fn add_removal(&mut self, call: &Call) {
        let Some(canvas) = &self.canvas else { return };
        let since = self.revision.as_deref().unwrap_or("none");
        let changes = call.client.get_canvas_changes(canvas).query("since", since);
        let Ok(CanvasChanges { revision, .. }) = changes.await.and_then(|read| read.value()) else { return };
        for output in &mut self.outputs {
            output.node.take_if(|node| node.starts_with("node:"));
        }
        self.revision = Some(revision);
    }

    /// Returns `true` if it has failed.
    pub fn has_failed(&self) -> bool {
        self.status == JobStatus::Failed.as_str()
    }

    /// The images that it has made.
    pub fn assets(&self) -> impl Iterator<Item = &String> {
        self.outputs.iter().filter_map(|output| output.asset.as_ref())
    }
}

impl Output {
    fn new(status: &str) -> Self {
        Self { status: status.to_owned(), ..Self::default() }
    }

    fn of_recipe(output: &WorkOutput) -> Self {
        Self {
            key: Some(output.key.clone()),
            node: Some(output.node_handle.clone()),
            asset: output.asset_id.clone(),
            text: output.value.clone(),
            failure: output.failure.clone(),
            ..Self::new(&output.status)
        }
    }

    /// One output for each target. If the work has ended, a target without an image has failed.
    fn of_job(record: &WorkRecord) -> Vec<Self> {
        let of_target = |target: &String| {
            let output = match record.images.iter().find(|image| image.node_id == *target) {
                Some(image) => Self {
                    asset: Some(image.asset_id.to_string()),
                    width: Some(image.width),
                    height: Some(image.height),
                    ..Self::new(JobStatus::Succeeded.as_str())
                },
                None if record.is(JobStatus::Succeeded) => Self::new(JobStatus::Failed.as_str()),
                None => Self::new(&record.status),
            };
            Self { node: Some(target.clone()), ..output }
        };
        record.targets.iter().map(of_target).collect()
    }
}

/// Items of the list of runs in short.
pub async fn summaries(call: &Call, runs: &[RunSummary]) -> Vec<Value> {
    let canvases = runs.iter().filter_map(|run| run.canvas_id.as_ref()).map(|canvas| (canvas.to_string(), None));
    let names = Names::read(call, canvases.collect()).await;
    let short = |run: &RunSummary| {
        let on = run.canvas_id.as_ref().map(|canvas| names.canvas(call, &canvas.to_string()));
        let (canvas, url) = on.map(|NamedCanvas { canvas, url }| (canvas, url)).unzip();
        present(json!({
            "run": run.handle, "kind": run.kind, "operation": run.operation, "status": run.status,
            "createdAt": run.created_at, "creditCost": run.credit_cost, "outputs": run.outputs, "canvas": canvas, "url": url,
            "waitingFor": run.waiting_for,
        }))
    };
    runs.iter().map(short).collect()
}

/// Starts work on a canvas at a revision, and waits for its end.
pub async fn start<T: 'static>(
    call: &Call,
    request: client::Call<Started<T>>,
    on: Option<(&str, &str)>,
    wait: Option<Wait>,
) -> Result<Answer<Work>> {
    let started = begin(call, request, on).await?;
    let mut works = end(call, vec![started], on, wait).await;
    match works.pop() {
        Some(work) if work.has_failed() => Err(failed(work)),
        Some(work) => Ok(with_images(&call.client, work).await),
        None => unreachable!("one work for each start"),
    }
}

/// A record, and the time at which it was read.
pub type Read = (WorkRecord, Timestamp);

/// Starts work on a canvas at a revision.
pub async fn begin<T: 'static>(
    call: &Call,
    request: client::Call<Started<T>>,
    on: Option<(&str, &str)>,
) -> Result<Read> {
    send(call, request.cast(), on).await
}

/// Waits for the ends of started works, and reports them.
pub async fn end(call: &Call, started: Vec<Read>, on: Option<(&str, &str)>, wait: Option<Wait>) -> Vec<Work> {
    let seconds = wait.map_or(WAIT_SECONDS, |Wait(seconds)| seconds);
    let following = started.into_iter().map(|(record, at)| {
        // Nothing would happen during the wait.
        let seconds = if waits_for_worker(&record, at) { 0 } else { seconds };
        follow(call, (record, at), seconds)
    });
    let read = join_all(following).await;
    let mut works: Vec<Work> = read.iter().map(|(record, at)| Work::from_record(record, *at)).collect();
    for work in &mut works {
        if let Some((canvas, revision)) = on
            && work.revision.is_none()
        {
            // The record of a Recipe run does not say it.
            let changes = call.client.get_canvas_changes(canvas).query("since", revision).await;
            work.revision = changes.ok().and_then(|changes| changes.value().ok()).map(|changes| changes.revision);
        }
    }
    Work::name(call, &mut works).await;
    works
}

/// Runs that one request starts.
#[derive(Deserialize)]
struct Runs {
    runs: Vec<WorkRecord>,
}

/// Starts several runs on a canvas at a revision, and waits for the end of all. Fails if none of them has a result.
pub async fn start_several(
    call: &Call,
    request: client::Call<Started<ActionRuns>>,
    on: (&str, &str),
    wait: Option<Wait>,
) -> Result<Vec<Work>> {
    let (Runs { runs }, at) = send(call, request.cast::<Runs>(), Some(on)).await?;
    let mut works = end(call, runs.into_iter().map(|record| (record, at)).collect(), Some(on), wait).await;
    match works.iter().all(Work::has_failed) {
        true => Err(failed(works.swap_remove(0))),
        false => Ok(works),
    }
}

/// Sends a start. Its answer comes with the time of the service.
async fn send<T: DeserializeOwned + 'static>(
    call: &Call,
    request: client::Call<T>,
    on: Option<(&str, &str)>,
) -> Result<(T, Timestamp)> {
    match request.prefer("handling=lenient").await {
        Ok(started) => Ok((started.value()?, started.time())),
        Err(error) => {
            let failure = Failure::from(error);
            Err(match on {
                Some((canvas, revision)) => stale::add_changes(failure, call, canvas, revision).await,
                None => failure,
            })
        }
    }
}

/// Waits for the end of work, at most `seconds`, and returns its last record with the time at which it was read. Without the right to
/// read it, that is the first one. Ends when the work loses its workers. A wait that begins without any goes on, so that waits that
/// are repeated have a pace.
pub async fn follow(call: &Call, (record, at): Read, seconds: u64) -> Read {
    call.report(state(&record, at));
    if record.is_over() || seconds == 0 {
        return (record, at);
    }
    let (handle, replayed) = (record.handle().to_owned(), record.replayed);
    let had_worker = !waits_for_worker(&record, at);
    let lost = Notify::new();
    let (mut last, mut read_at) = (record, at);
    let waiting = call.client.wait(&handle, Some(Duration::from_secs(seconds)), |record, at| {
        (last, read_at) = (record.clone(), at);
        call.report(state(&last, read_at));
        if had_worker && waits_for_worker(&last, read_at) {
            lost.notify_one();
        }
    });
    tokio::select! {
        _ = waiting => {}
        () = lost.notified() => {}
        () = call.stopping.cancelled() => {}
    }
    // Only the answer to the start says that it was replayed.
    last.replayed |= replayed;
    (last, read_at)
}

fn waits_for_worker(record: &WorkRecord, at: Timestamp) -> bool {
    record.waiting(at).is_some_and(|waiting| waiting.is_for_worker())
}

/// How far work is, in outputs and in a few words. A video is one output, also without a target.
fn state(record: &WorkRecord, at: Timestamp) -> State {
    let (made, wanted) = record.counts();
    let (made, wanted) = (made.max(record.video.iter().len()) as f64, wanted.max(1) as f64);
    let progress = match record.progress {
        Some(percent) => format!("{percent:.0} %"),
        None => format!("{made} of {}", counted(wanted, "output")),
    };
    let waiting = record.waiting(at).map(|waiting| format!("; waiting: {waiting}")).unwrap_or_default();
    let run = record.handle().to_owned();
    let text = format!("{run} {}: {progress}{waiting}", record.status);
    State { run, made: record.progress.map_or(made, |percent| made.max(percent / 100.0)), wanted, text }
}

/// Work that has failed: what is there nevertheless, and what it has cost.
pub fn failed(work: Work) -> Failure {
    let cause = work.failure.as_ref();
    let code = cause.map_or("failed", |cause| &cause.code);
    let said = cause.map_or("the work has ended without a result", |cause| &cause.message);
    let is_retryable = cause.is_some_and(|cause| cause.retryable);
    let advice = match is_retryable {
        true => "another attempt may succeed",
        false => "the same input will fail again: change it",
    };
    // A video without a target has no canvas, whose revision would tell a new attempt.
    let attempt = match work.canvas {
        Some(_) => "takes the canvas's present revision",
        None => "has a higher attempt",
    };
    let message = format!(
        "{said}; {advice}. Outputs with an asset are stored and stay. A new attempt {attempt} and is a new charge"
    );
    let mut failure = Failure::new(code, message, Retry::WithChanges);
    if let Some(canvas) = &work.canvas {
        failure = failure.then(Next::new(
            "canvas_read",
            json!({"canvas": canvas}),
            "what is there, and the revision for a new attempt",
        ));
    }
    failure.details = json!({
        "run": work.run, "status": work.status, "retryable": is_retryable, "charged": work.credit_cost,
        "outputs": work.outputs, "revision": work.revision,
    });
    failure
}

/// An answer with the images of work, as far as they are there.
pub async fn with_images(client: &Client, work: Work) -> Answer<Work> {
    let assets: Vec<String> = work.assets().take(IMAGES_MAX).cloned().collect();
    show(client, Answer::new(work), &assets).await
}

/// Adds small renditions of images, and links to the assets. An image that cannot be shown at once only has its link.
pub async fn show<T>(client: &Client, mut answer: Answer<T>, assets: &[String]) -> Answer<T> {
    let reading = assets.iter().map(|asset| tokio::time::timeout(IMAGE_MAX, image(client, asset, IMAGE_WIDTH)));
    for (asset, read) in assets.iter().zip(join_all(reading).await) {
        answer = answer.with_link(asset);
        if let Ok(Ok(image)) = read {
            answer = answer.with_image(image);
        }
    }
    answer
}

/// An image, at most this wide.
pub async fn image(client: &Client, asset: &str, width: u32) -> client::Result<AnswerImage> {
    let read = client.get_asset_content(asset).query("w", width).await?;
    let media_type = read.header("content-type").unwrap_or("image/jpeg").to_owned();
    Ok(AnswerImage { data: STANDARD.encode(&read.body), media_type })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        serde_json::from_value(json!("2026-01-01T12:00:40.000Z")).expect("a time")
    }

    fn read(record: &Value) -> WorkRecord {
        WorkRecord::deserialize(record).expect("a record")
    }

    fn work(record: &Value) -> Work {
        Work::from_record(&read(record), now())
    }

    #[test]
    fn work_without_a_worker_says_that_it_is_kept() {
        let waits =
            json!({"what": "worker", "since": "2026-01-01T12:00:05.000Z", "lastSeenAt": "2026-01-01T12:00:00.000Z"});
        let mut record = json!({"id": "job:1", "kind": "video", "status": "queued", "waitingFor": waits});
        let Work { waiting, next, .. } = work(&record);
        let said = waiting.expect("waits");
        assert!(said.starts_with("no worker of the queue video has been seen for 40 s. The work is kept"), "{said}");
        assert!(said.contains("Never start it again"), "{said}");
        assert!(next[0].tool == "run_wait" && next[0].why.contains("later"), "{}", next[0].why);
        let state = state(&read(&record), now()).text;
        assert!(state.contains("waiting: no worker of the queue video"), "{state}");
        record["waitingFor"] = json!({"what": "slot", "since": "2026-01-01T12:00:05.000Z"});
        assert_eq!(work(&record).waiting.as_deref(), Some("its turn"));
    }

    #[test]
    fn work_is_as_far_as_its_outputs_are_made() {
        let image = json!({
            "assetId": "asset:a:1", "nodeId": "node:1", "mediaType": "image/png", "width": 1, "height": 1, "bytes": 1,
        });
        let output = |status: &str| json!({"key": "k", "nodeHandle": "node:1", "status": status});
        for (record, made, wanted) in [
            (json!({"kind": "action", "targets": ["node:1"]}), 0.0, 1.0),
            (json!({"kind": "image", "targets": ["node:1", "node:2"], "images": [image]}), 1.0, 2.0),
            (
                json!({"kind": "recipe", "outputs": [output("succeeded"), output("running"), output("queued")]}),
                1.0,
                3.0,
            ),
            (json!({"kind": "video"}), 0.0, 1.0),
            (json!({"kind": "video", "targets": ["node:1"], "progress": 40.0}), 0.4, 1.0),
            (json!({"kind": "video", "progress": 99.0, "video": {"downloadUrl": "https://example.com/v"}}), 1.0, 1.0),
        ] {
            let state = state(&read(&record), now());
            assert_eq!((state.made, state.wanted), (made, wanted), "{record}");
        }
    }

    #[test]
    fn another_attempt_at_failed_work_is_made_as_its_kind_asks_for() {
        let on_canvas = json!("canvas:a:b");
        for (kind, canvas, asked, next) in [
            ("video", json!(null), "higher attempt", 0),
            ("video", on_canvas.clone(), "present revision", 1),
            ("image", on_canvas, "present revision", 1),
        ] {
            let failure = json!({"code": "provider_failed", "message": "it broke", "retryable": true});
            let record =
                json!({"run": "run:1", "kind": kind, "status": "failed", "canvasId": canvas, "failure": failure});
            let failure = failed(work(&record));
            assert!(failure.message.contains(asked), "{}", failure.message);
            assert_eq!(failure.next.len(), next, "{kind}");
        }
    }
}
