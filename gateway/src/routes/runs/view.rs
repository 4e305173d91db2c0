//! What `/runs/{runId}` and its alias `/jobs/{jobId}` have in common.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use db::jobs::{Cancellation, Terms, Windows};
use domain::account::Scope;
use domain::id::{AccountUid, JobId};
use domain::job::{JobDocument, JobKind, Record, etag};
use http::header::{CACHE_CONTROL, ETAG, HeaderName, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use service::config::Config;

use crate::extract::caller::{Caller, ManageJobs};
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::{App, retrying};
use crate::wait::{Changes, job_channel, preferred_wait};

/// Which of the two routes asks: videos are jobs and no runs (decisions 9.1).
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

/// Reads a record, waiting for a change when the caller prefers to (decisions 1.10).
pub async fn read_record(
    app: &App,
    caller: &Caller<ManageJobs>,
    view: View,
    id: Option<JobId>,
    headers: &HeaderMap,
) -> Result {
    let id = id.ok_or_else(|| view.absent())?;
    let known = headers.contains_key(http::header::IF_NONE_MATCH);
    let Some(seconds) = preferred_wait(headers) else {
        let record = load(app, &caller.account, view, id).await?;
        note_shown(app, &record).await?;
        return Ok(match known && reply::none_match(headers, &tag(&record)) {
            true => unchanged(&record),
            false => answer(app, &record, None),
        });
    };
    let _wait = app.waits.open(caller.token)?;
    let mut changes = Changes::of(app, &job_channel(id));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let mut record = load(app, &caller.account, view, id).await?;
    let from = tag(&record);
    let same = |record: &Record| match known {
        true => reply::none_match(headers, &tag(record)),
        false => tag(record) == from,
    };
    while !record.status.is_terminal() && same(&record) && !app.stopping.is_cancelled() {
        if tokio::time::timeout_at(deadline, changes.next()).await.is_err() {
            break;
        }
        record = load(app, &caller.account, view, id).await?;
    }
    note_shown(app, &record).await?;
    let mut response = match known && same(&record) {
        true => unchanged(&record),
        false => answer(app, &record, None),
    };
    if let Ok(applied) = HeaderValue::from_str(&format!("wait={seconds}")) {
        response.headers_mut().insert(HeaderName::from_static("preference-applied"), applied);
    }
    Ok(response)
}

/// The record of a run or job, if it is the account's.
pub async fn load(app: &App, account: &AccountUid, view: View, id: JobId) -> Result<Record> {
    let mut connection = app.connection().await?;
    let record = db::jobs::get(&mut connection, id, account).await?;
    record.filter(|record| view.shows(record)).ok_or_else(|| view.absent())
}

/// Notes that a record is shown: the first showing of a terminal one starts its last window (decisions 9.3).
pub(super) async fn note_shown(app: &App, record: &Record) -> Result<()> {
    if record.status.is_terminal() && record.finalized_at.is_none() {
        let mut connection = app.connection().await?;
        db::jobs::mark_finalized(&mut connection, record.id, app.config.retention_finalized).await?;
    }
    Ok(())
}

/// The served form of a record. Its webhook is for callers with job:manage (decisions 15.1).
pub fn document(app: &App, scopes: domain::account::Scopes, record: &Record) -> JobDocument {
    let now = service::clock::now();
    let mut job = record.document(&app.config.public_url, |asset| Some(app.previews.make(&app.keys, asset, now)));
    if let (JobDocument::Image(job), false) = (&mut job, scopes.contains(Scope::JobManage)) {
        job.webhook = None;
    }
    job
}

pub(super) fn tag(record: &Record) -> String {
    etag(record.id, record.version, record.webhook.as_ref())
}

fn unchanged(record: &Record) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    with_tag(response, record)
}

fn answer(app: &App, record: &Record, status: Option<StatusCode>) -> Response {
    let scopes = domain::account::Scopes::of(&[Scope::JobManage]);
    let status = status.unwrap_or(if record.status.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED });
    let job = document(app, scopes, record);
    let mut response = reply::with_status(status, &job);
    if status == StatusCode::ACCEPTED {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        if let Ok(location) = HeaderValue::from_str(job.poll_url()) {
            response.headers_mut().insert(LOCATION, location);
        }
    }
    with_tag(response, record)
}

fn with_tag(mut response: Response, record: &Record) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&tag(record)) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// How long records are kept.
pub fn windows(config: &Config) -> Windows {
    Windows {
        unread: config.retention_unread,
        finalized: config.retention_finalized,
        tombstone: config.retention_tombstone,
        failed: config.retention_failed,
        video: config.retention_video,
    }
}

/// Stops a job (decisions 9.5).
pub async fn cancel_record(
    app: &App,
    caller: &Caller<ManageJobs>,
    view: View,
    id: Option<JobId>,
    trace: Trace,
) -> Result {
    let id = id.ok_or_else(|| view.absent())?;
    // What a job is never changes.
    load(app, &caller.account, view, id).await?;
    let cancellation = cancel_job(app, &caller.account, id, trace).await?.ok_or_else(|| view.absent())?;
    let (record, status) = match &cancellation {
        Cancellation::Unchanged(record) | Cancellation::Canceled(record) => (record, StatusCode::OK),
        Cancellation::Requested(record) => (record, StatusCode::ACCEPTED),
    };
    Ok(answer(app, record, Some(status)))
}

/// Stops a job and tells those who wait for it; nothing when it is not the account's, or gone.
pub async fn cancel_job(app: &App, account: &AccountUid, id: JobId, trace: Trace) -> Result<Option<Cancellation>> {
    let cancellation = retrying(|| attempt(app, account, id, trace)).await?;
    if matches!(cancellation, Some(Cancellation::Canceled(_) | Cancellation::Requested(_))) {
        app.nudge.nudge();
        app.cache.notify(&job_channel(id)).await;
    }
    Ok(cancellation)
}

async fn attempt(app: &App, account: &AccountUid, id: JobId, trace: Trace) -> Result<Option<Cancellation>> {
    let mut transaction = app.transaction().await?;
    let terms = Terms {
        revision: &service::random::revision(),
        public_url: &app.config.public_url,
        windows: &windows(&app.config),
        traceparent: Some(&trace.0.to_string()),
        review: canvas::review::review_of_job,
    };
    let cancellation = db::jobs::cancel(&mut transaction, id, account, &terms).await?;
    db::pool::commit(transaction).await?;
    Ok(cancellation)
}
