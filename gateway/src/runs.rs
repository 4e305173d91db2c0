//! The common part of `/runs/{runId}` and its alias `/jobs/{jobId}`.

use std::time::Duration;

use app::job::{Cancellation, Completion, CompletionContext};
use axum::response::{IntoResponse, Response};
use db::jobs::Windows;
use domain::account::Scope;
use domain::channel;
use domain::id::{AccountUid, AssetHandle, JobId};
use domain::job::{CancelReason, JobDocument, JobKind, JobStatus, Record, VideoStatus, etag};
use domain::message::ReadyTasks;
use domain::queue::{WaitCause, WaitingFor};
use domain::recipe::run::{RecipeRun, RunDocument, RunId, RunRecord};
use http::header::{CACHE_CONTROL, ETAG, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::extract::accept::Accepted;
use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::RunInPath;
use crate::extract::prefer;
use crate::extract::query::{QueryReader, ShortView};
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::{App, retrying};
use crate::wait::{Changes, during, preferred_wait};

/// The route of a request. A video is a job and not a run (docs/reference/jobs.md#jobs-and-runs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// `/runs/{runId}`.
    Run,
    /// `/jobs/{jobId}`.
    Job,
}

impl View {
    fn shows(self, record: &Record) -> bool {
        self == View::Job || record.kind != JobKind::Video
    }

    fn absent(self) -> Problem {
        Problem::NotFound(match self {
            View::Run => "run",
            View::Job => "job",
        })
    }
}

/// How much of a record is read.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RunView {
    /// `summary`: without review and previews.
    #[param(inline)]
    view: Option<ShortView>,
}

/// How much of a record a read returns (docs/reference/conventions.md#short-views).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Everything.
    Full,
    /// Without the review and the previews of images.
    Summary,
}

impl Detail {
    /// The query of a read.
    pub fn from_uri(uri: &Uri) -> Result<Self> {
        let mut query = QueryReader::new(uri);
        let RunView { view } = query.read().unwrap_or_default();
        query.finish()?;
        Ok(view.map_or(Self::Full, |_| Self::Summary))
    }
}

/// The record that a path identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A job, under one of its two routes.
    Job(View, JobId),
    /// A Recipe run, which is not a job.
    Recipe(RunId),
}

impl Target {
    /// The target of `/runs/{runId}`; 404 for an id that no run can have.
    pub fn of_run(named: RunInPath) -> Result<Self> {
        match named {
            RunInPath::Recipe(id) => Ok(Self::Recipe(id)),
            RunInPath::Work(id) => Ok(Self::Job(View::Run, id.ok_or_else(|| View::Run.absent())?)),
        }
    }

    /// The target of `/jobs/{jobId}`; 404 for an id that no job can have.
    pub fn of_job(id: Option<JobId>) -> Result<Self> {
        Ok(Self::Job(View::Job, id.ok_or_else(|| View::Job.absent())?))
    }

    /// The channel on which changes of the target are announced.
    pub fn channel(self) -> String {
        match self {
            Self::Job(_, id) => channel::job(id),
            Self::Recipe(id) => channel::job(JobId(id.0)),
        }
    }

    /// The current record, if it belongs to the account.
    pub async fn load(self, app: &App, account: &AccountUid) -> Result<AnyRecord> {
        match self {
            Self::Job(view, id) => Ok(AnyRecord::Job(Box::new(load(app, account, view, id).await?))),
            Self::Recipe(id) => {
                let mut connection = app.connection().await?;
                let run = db::recipe_runs::get(&mut connection, id, account).await?;
                let mut run = run.ok_or_else(|| View::Run.absent())?;
                run.waiting_for = waiting_for(app, &mut connection, run.id.0, run.status.is_terminal()).await?;
                Ok(AnyRecord::Recipe(Box::new(run)))
            }
        }
    }
}

/// A record of either kind.
#[derive(Clone, Debug)]
pub enum AnyRecord {
    Job(Box<Record>),
    Recipe(Box<RunRecord>),
}

impl AnyRecord {
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Job(record) => record.status.is_terminal(),
            Self::Recipe(run) => run.status.is_terminal(),
        }
    }

    /// The cause of the wait, if the work is neither in progress nor over.
    pub fn waits_for(&self) -> Option<WaitCause> {
        let waiting_for = match self {
            Self::Job(record) => &record.waiting_for,
            Self::Recipe(run) => &run.waiting_for,
        };
        waiting_for.as_ref().map(|waiting_for| waiting_for.what)
    }

    pub fn tag(&self) -> String {
        match self {
            Self::Job(record) => tag(record),
            Self::Recipe(run) => run.etag(),
        }
    }

    /// Returns `true` if status and outputs equal those of `before`; a change of them ends a wait. The progress of a video changes its
    /// record twice a second and does not count.
    fn has_same_result(&self, before: &Self) -> bool {
        match (self, before) {
            (Self::Job(now), Self::Job(before)) if now.kind == JobKind::Video => {
                VideoStatus::from(now.status) == VideoStatus::from(before.status)
            }
            _ => self.tag() == before.tag(),
        }
    }

    /// The served form, for a caller with job:manage.
    pub fn json(&self, app: &App, detail: Detail) -> Result<serde_json::Value> {
        let scopes = domain::account::Scopes::from_slice(&[Scope::JobManage]);
        let json = match self {
            Self::Job(record) => {
                let job = document(app, scopes, record);
                match if detail == Detail::Summary { job.in_short() } else { job } {
                    JobDocument::Image(job) => serde_json::to_value(RunDocument::Work(job)),
                    video @ JobDocument::Video(_) => serde_json::to_value(video),
                }
            }
            Self::Recipe(run) => {
                let mut run = recipe_document(app, scopes, run);
                run.completion_review = run.completion_review.filter(|_| detail == Detail::Full);
                serde_json::to_value(RunDocument::Recipe(Box::new(run)))
            }
        };
        json.map_err(Problem::internal)
    }

    /// Records that the result was shown. Recipe runs have no retention window.
    pub async fn note_shown(&self, app: &App) -> Result<()> {
        match self {
            Self::Job(record) => note_shown(app, record).await,
            Self::Recipe(_) => Ok(()),
        }
    }
}

/// The served form of a Recipe run. Its webhook is shown only to callers with job:manage.
pub fn recipe_document(app: &App, scopes: domain::account::Scopes, run: &RunRecord) -> RecipeRun {
    let mut document = run.document(&app.config.public_url);
    if !scopes.contains(Scope::JobManage) {
        document.webhook = None;
    }
    document
}

/// Reads a record, waiting for a change when the caller prefers that (docs/reference/jobs.md#waiting-for-a-change).
pub async fn read_record(
    app: &App,
    caller: &Caller<ManageJobs>,
    target: Target,
    detail: Detail,
    method: &Method,
    headers: &HeaderMap,
) -> Result {
    // A HEAD shows no result.
    let shows = *method != Method::HEAD;
    if Accepted::from_headers(headers).rejects("application", "json") {
        // Before the wait, and before the record counts as shown.
        target.load(app, &caller.account).await?;
        return Err(Problem::NotAcceptable("application/json".into()));
    }
    let known = headers.contains_key(http::header::IF_NONE_MATCH);
    let Some(seconds) = preferred_wait(headers) else {
        let record = target.load(app, &caller.account).await?;
        if shows {
            record.note_shown(app).await?;
        }
        return match known && reply::none_match(headers, &record.tag()) {
            true => Ok(unchanged(&record)),
            false => answer(app, &record, detail, None),
        };
    };
    let wait = Duration::from_secs(seconds);
    let changed = changed(app, &caller.account, target, known.then_some(headers), wait);
    let (record, has_lost_workers) = during(app, caller, changed).await?;
    if shows {
        record.note_shown(app).await?;
    }
    let response = match known && !has_lost_workers && reply::none_match(headers, &record.tag()) {
        true => unchanged(&record),
        false => answer(app, &record, detail, None)?,
    };
    Ok(prefer::applied_wait(response, seconds))
}

/// The record once it has changed, or after `wait`. With `If-None-Match` in the headers, any difference from the known state
/// counts; otherwise a change of status or outputs from now on. Also returns, with `true`, when the work has lost its workers
/// meanwhile: nobody waits for them without being told.
async fn changed(
    app: &App,
    account: &AccountUid,
    target: Target,
    known: Option<&HeaderMap>,
    wait: Duration,
) -> Result<(AnyRecord, bool)> {
    let mut changes = Changes::subscribe(app, &target.channel());
    let deadline = tokio::time::Instant::now() + wait;
    let before = target.load(app, account).await?;
    let mut record = before.clone();
    let same = |record: &AnyRecord| match known {
        Some(headers) => reply::none_match(headers, &record.tag()),
        None => record.has_same_result(&before),
    };
    while !record.is_terminal() && same(&record) && !app.stopping.is_cancelled() {
        if tokio::time::timeout_at(deadline, changes.next()).await.is_err() {
            break;
        }
        record = target.load(app, account).await?;
        if record.waits_for() == Some(WaitCause::Worker) && before.waits_for() != Some(WaitCause::Worker) {
            return Ok((record, true));
        }
    }
    Ok((record, false))
}

/// The record of a run or job, if it belongs to the account.
pub async fn load(app: &App, account: &AccountUid, view: View, id: JobId) -> Result<Record> {
    let mut connection = app.connection().await?;
    let record = db::jobs::get(&mut connection, id, account, app.config.retention_tombstone).await?;
    let mut record = record.filter(|record| view.shows(record)).ok_or_else(|| view.absent())?;
    record.waiting_for = waiting_for(app, &mut connection, id.0, record.status.is_terminal()).await?;
    note_epochs(&mut connection, &mut record).await?;
    Ok(record)
}

/// Reads the epochs of the outputs of a record, to which their previews are bound.
pub async fn note_epochs(conn: &mut db::PgConnection, record: &mut Record) -> Result<()> {
    let outputs = record.outcome.images.iter().map(|output| &output.asset);
    record.preview_epochs = db::assets::preview_epochs(conn, outputs).await?;
    Ok(())
}

/// The cause of the wait of the job or run of this id, unless it is over.
async fn waiting_for(app: &App, conn: &mut db::Connection, id: Uuid, is_over: bool) -> Result<Option<WaitingFor>> {
    if is_over {
        return Ok(None);
    }
    let queues = app.queues(conn).await?;
    Ok(db::workers::waiting_for(conn, &queues, &[id]).await?.remove(&id))
}

/// Records that a result was shown: the first time for a terminal record starts its final retention window
/// (docs/reference/jobs.md#first-finalization).
async fn note_shown(app: &App, record: &Record) -> Result<()> {
    let begins = record.status.is_terminal() && record.status != JobStatus::Expired;
    if begins && record.finalized_at.is_none() {
        let mut connection = app.connection().await?;
        db::jobs::mark_finalized(&mut connection, record.id, app.config.retention_finalized).await?;
    }
    Ok(())
}

/// The served form of a record. Its webhook is shown only to callers with job:manage.
pub fn document(app: &App, scopes: domain::account::Scopes, record: &Record) -> JobDocument {
    let now = service::clock::now();
    // An asset that was deleted has no epoch, and its preview is 404.
    let epoch = |asset: &AssetHandle| record.preview_epochs.get(asset).copied().unwrap_or_default();
    let job =
        record.document(&app.config.public_url, |asset| Some(app.previews.make(&app.keys, asset, epoch(asset), now)));
    if scopes.contains(Scope::JobManage) { job } else { job.without_webhook() }
}

fn tag(record: &Record) -> String {
    etag(record.id.0, record.version, record.credit_cost, record.webhook.as_ref())
}

fn unchanged(record: &AnyRecord) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    with_tag(response, record)
}

fn answer(app: &App, record: &AnyRecord, detail: Detail, status: Option<StatusCode>) -> Result {
    let status = status.unwrap_or(if record.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED });
    let json = record.json(app, detail)?;
    let mut response = reply::with_status(status, &json);
    if status == StatusCode::ACCEPTED {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        if let Ok(location) = HeaderValue::from_str(json["pollUrl"].as_str().unwrap_or_default()) {
            response.headers_mut().insert(LOCATION, location);
        }
    }
    Ok(with_tag(response, record))
}

fn with_tag(mut response: Response, record: &AnyRecord) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&record.tag()) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// What a cancel does beyond cancelling.
#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct CancelQuery {
    /// `true` if targets that were made for the work and are still empty are deleted.
    #[serde(default)]
    remove_targets: bool,
}

/// Returns `true` if the query of a cancel asks for the removal of targets.
pub fn removes_targets(uri: &Uri) -> Result<bool> {
    let mut query = QueryReader::new(uri);
    let CancelQuery { remove_targets } = query.read().unwrap_or_default();
    query.finish()?;
    Ok(remove_targets)
}

/// Cancels a job or a run (docs/reference/jobs.md#cancel). The removal of its targets deletes nodes, and requires the scope for
/// that.
pub async fn cancel_record(
    app: &App,
    caller: &Caller<ManageJobs>,
    target: impl FnOnce() -> Result<Target>,
    removes_targets: bool,
    trace: Trace,
) -> Result {
    if removes_targets {
        caller.require(&[Scope::CanvasWrite])?;
    }
    let target = target()?;
    target.load(app, &caller.account).await?;
    caller.require_acceptable()?;
    let (view, id) = match target {
        Target::Recipe(id) => {
            let run = cancel_run(app, &caller.account, id, removes_targets, trace).await?;
            return answer(app, &AnyRecord::Recipe(Box::new(run)), Detail::Full, Some(StatusCode::OK));
        }
        Target::Job(view, id) => (view, id),
    };
    // The kind of a job never changes, so that the view still shows it.
    let cancellation =
        cancel_job(app, &caller.account, id, removes_targets, trace).await?.ok_or_else(|| view.absent())?;
    let (record, status) = match cancellation {
        Cancellation::Unchanged(record) | Cancellation::Canceled(record) => (record, StatusCode::OK),
        Cancellation::Requested(record) => (record, StatusCode::ACCEPTED),
    };
    answer(app, &AnyRecord::Job(record), Detail::Full, Some(status))
}

/// Cancels a Recipe run immediately and notifies waiters of the run and of its jobs.
async fn cancel_run(
    app: &App,
    account: &AccountUid,
    id: RunId,
    removes_targets: bool,
    trace: Trace,
) -> Result<RunRecord> {
    let canceled = retrying(|| async {
        let mut transaction = app.transaction().await?;
        let traceparent = trace.0.to_string();
        let windows = taskqueue::windows(&app.config);
        let ready = ReadyTasks::new();
        let context = completion_context(app, &windows, &traceparent, &ready);
        let removed = removes_targets && app::recipe::remove_targets(&mut transaction, id, account).await?;
        let canceled = app::recipe::cancel(&mut transaction, id, account, &context).await?;
        db::pool::commit(transaction).await?;
        app.waker.wake_all(&ready);
        Ok((canceled, removed))
    });
    let (canceled, removed) = canceled.await?;
    let (run, is_news) = canceled.ok_or_else(|| View::Run.absent())?;
    if is_news || removed {
        app.announce(run.channels());
    }
    Ok(run)
}

/// Cancels a job and notifies its waiters; `None` when it is missing or belongs to another account.
pub async fn cancel_job(
    app: &App,
    account: &AccountUid,
    id: JobId,
    removes_targets: bool,
    trace: Trace,
) -> Result<Option<Cancellation>> {
    let (cancellation, removed) = retrying(|| attempt(app, account, id, removes_targets, trace)).await?;
    match &cancellation {
        Some(Cancellation::Canceled(job) | Cancellation::Requested(job)) => {
            app.announce(job.channels());
        }
        Some(Cancellation::Unchanged(job)) if removed => app.announce(job.channels()),
        _ => {}
    }
    Ok(cancellation)
}

/// The cancellation, and whether targets were removed with it.
async fn attempt(
    app: &App,
    account: &AccountUid,
    id: JobId,
    removes_targets: bool,
    trace: Trace,
) -> Result<(Option<Cancellation>, bool)> {
    let canceled = Completion::Canceled(CancelReason::UserRequested);
    // A job that nobody works on ends with its cancellation. The removal of targets gives the canvas another revision before.
    let review = match removes_targets {
        true => None,
        false => app.reviews.prepare(&app.pool, id, account, None, &canceled).await,
    };
    let mut transaction = app.transaction().await?;
    let (windows, traceparent) = (taskqueue::windows(&app.config), trace.0.to_string());
    let ready = ReadyTasks::new();
    let context = completion_context(app, &windows, &traceparent, &ready);
    let context = CompletionContext { review: review.as_ref(), ..context };
    let removed = removes_targets && app::job::remove_targets(&mut transaction, id, account).await?;
    let cancellation = app::job::cancel(&mut transaction, id, account, &context).await?;
    db::pool::commit(transaction).await?;
    app.waker.wake_all(&ready);
    Ok((cancellation, removed))
}

fn completion_context<'a>(
    app: &'a App,
    windows: &'a Windows,
    traceparent: &'a str,
    ready: &'a ReadyTasks,
) -> CompletionContext<'a> {
    CompletionContext {
        public_url: &app.config.public_url,
        windows,
        traceparent: Some(traceparent),
        ready,
        worker_silent: app.config.worker_silent,
        review: None,
    }
}

/// The video of a job, in the object store.
pub struct JobVideo {
    pub blob_key: Uuid,
    pub sha256: Vec<u8>,
    /// Size in bytes.
    pub bytes: u64,
}

/// The video of a job of an account.
///
/// # Errors
///
/// 409 before the end of the job, 404 if it has no video.
pub async fn video_of(app: &App, account: &AccountUid, id: JobId) -> Result<JobVideo> {
    let record = load(app, account, View::Job, id).await?;
    if record.kind == JobKind::Video && !record.status.is_terminal() {
        return Err(Problem::conflict("the video is not finished"));
    }
    let video = record.outcome.video.filter(|_| record.status == JobStatus::Succeeded);
    let video = video.ok_or(Problem::NotFound("video"))?;
    let mut connection = app.connection().await?;
    if let Some(asset) = &video.asset {
        // The file belongs to the asset, and goes with it.
        db::assets::get(&mut connection, asset).await?.ok_or(Problem::NotFound("video"))?;
    }
    let sha256 = db::blobs::sha256(&mut connection, video.blob_key).await?.ok_or(Problem::NotFound("video"))?;
    Ok(JobVideo { blob_key: video.blob_key, sha256, bytes: video.bytes })
}
