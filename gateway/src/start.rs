//! Requests that start work: what all of them share on the way to a command and back (docs/reference/jobs.md#acceptance).

use app::job::{AcceptedJob, JobSettings, JobStart, StartJob};
use app::{Acceptance, Start, Terms, Wanted};
use axum::response::Response;
use db::accounts::Credential;
use domain::canvas::CanvasRecord;
use domain::id::{AccountUid, CanvasHandle, JobId};
use domain::job::JobStatus;
use domain::webhook::WebhookInput;
use egress::Guard;
use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::extract::caller::Caller;
use crate::extract::canvas::require_writer;
use crate::extract::check::Check;
use crate::extract::prefer;
use crate::problem::{Problem, Result};
use crate::rates::require_cpu;
use crate::reply;
use crate::runs::{document, note_epochs};
use crate::state::App;

/// Declares the request type of a start: its own members, and those that all starts have; `on a canvas` those of a write, too. A
/// macro, and not a type to flatten: generators of clients make nothing useful of `allOf`.
macro_rules! start_request {
    ($(#[$attribute:meta])* pub struct $name:ident on a canvas { $($members:tt)* }) => {
        $crate::start::start_request! {
            $(#[$attribute])*
            pub struct $name {
                /// Plain id or handle of the canvas.
                #[schema(value_type = domain::id::CanvasReference)]
                pub canvas_id: String,
                /// The canvas revision that the request is based on.
                #[schema(value_type = domain::id::BaseRevision)]
                pub base_revision: String,
                $($members)*
            }
        }
    };
    ($(#[$attribute:meta])* pub struct $name:ident { $($members:tt)* }) => {
        #[derive(serde::Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        $(#[$attribute])*
        pub struct $name {
            /// Idempotency key: an equal request with the same key starts nothing and returns what the first one started. Ignored and
            /// not needed with `validateOnly`.
            #[schema(value_type = Option<domain::id::IdempotencyKey>)]
            pub idempotency_key: Option<String>,
            /// Maximum price in credits; a start that costs more is refused with 402.
            #[schema(minimum = 0, maximum = 9007199254740991i64)]
            pub max_credits: Option<i64>,
            /// `true` only checks the start and answers 200 with its quote; it needs no `idempotencyKey`.
            #[serde(default)]
            pub validate_only: bool,
            $($members)*
        }

        impl $crate::extract::json::Input for $name {
            /// In a dry run the key (docs/reference/jobs.md#dry-run-of-a-start).
            fn ignored(body: &serde_json::Value) -> &'static [&'static str] {
                if body["validateOnly"] == true { &["idempotencyKey"] } else { &[] }
            }
        }
    };
}
pub(crate) use start_request;

impl App {
    /// Settings of this process that starts of work need.
    pub fn job_settings(&self) -> JobSettings<'_> {
        JobSettings {
            active_jobs: self.config.active_jobs,
            retention_tombstone: self.config.retention_tombstone,
            public_url: &self.config.public_url,
            ring: &self.ring,
        }
    }
}

/// The form of the response to a start.
#[derive(Clone, Copy)]
pub enum Accepted {
    /// The record of its only job.
    Job,
    /// `runs` with the record of each job.
    Runs,
}

/// Starts jobs of the caller on a canvas, or finds the jobs of an equal request: 202 with their records. Of a dry run: the quote.
pub async fn start<G>(app: &App, caller: &Caller<G>, start: JobStart, form: Accepted) -> Result {
    let JobStart { canvas, work, terms, .. } = &start;
    let command = StartJob { start: &start, settings: app.job_settings() };
    let reads_graph = work.destination().reads_graph();
    // Members are checked before they queue, so that an account without access cannot delay others. The owner needs no check: for a
    // canvas that does not exist, only the caller itself can be waiting.
    let record = match reads_graph || caller.account != canvas.owner {
        true => Some(writable(app, &caller.account, canvas).await?),
        false => None,
    };
    let graph_bytes = record.filter(|_| reads_graph).map(|record| record.graph_bytes);
    let reserve = async || match graph_bytes {
        Some(bytes) => app.documents.reserve(&caller.account, bytes).await.map(Some),
        None => Ok(None),
    };
    if terms.is_dry_run() {
        let _room = reserve().await?;
        return quote(app, caller, &command).await;
    }
    let has_cpu = if work.is_free() { require_cpu(app, &caller.account).await } else { Ok(()) };
    let permit = app.writers.pass(&caller.account, &canvas.to_string()).await?;
    // After the wait for the canvas, as in all writes: who waits for it holds no memory that others need.
    let _room = reserve().await?;
    let mut accepted = caller.run_if(has_cpu, app, &command).await?;
    drop(permit);
    match form {
        Accepted::Job => answer(app, caller, accepted.remove(0)).await,
        Accepted::Runs => answer_all(app, caller, accepted).await,
    }
}

/// Checks that the caller may write to the canvas, before it waits for the canvas. A caller without access is rejected before the
/// key and everything else are looked up (docs/reference/conventions.md#order-of-checks).
pub async fn writable(app: &App, account: &AccountUid, canvas: &CanvasHandle) -> Result<CanvasRecord> {
    let mut connection = app.connection().await?;
    let (record, role) =
        db::canvases::find(&mut connection, account, canvas).await?.ok_or(Problem::NotFound("canvas"))?;
    require_writer(role)?;
    Ok(record)
}

/// Executes a dry run: 200 with the quote of the start. It waits for no writer.
pub async fn quote<G, S: Start>(app: &App, caller: &Caller<G>, start: &S) -> Result {
    if let Err(problem) = caller.require_acceptable() {
        app::replay(&app.pool, start).await?;
        return Err(problem);
    }
    let (mut quote, queue, is_stale) = app::quote(&app.pool, start).await?;
    quote.waiting_for = app.waiting_if_started(queue).await;
    Ok(prefer::applied_lenient(reply::ok(&quote), is_stale))
}

/// The terms of a start, which needs a key; a dry run takes none.
pub fn terms_of(check: &mut Check, key: Option<String>, max_credits: Option<i64>, is_dry_run: bool) -> Terms {
    check.note_if(!is_dry_run && key.is_none(), "idempotencyKey", "is required");
    Terms { key: key.filter(|_| !is_dry_run), max_credits }
}

/// The canonical body of a start with the cap of its terms, if it has one.
pub fn with_cap(mut body: Value, terms: &Terms) -> Value {
    if let Some(max) = terms.max_credits {
        body["maxCredits"] = json!(max);
    }
    body
}

/// What the user wants of a start of `outputs` outputs (docs/reference/jobs.md#wanted-outputs). `outputs` is `None` if the request does
/// not say how many it makes, which is another violation.
pub fn wanted_of(check: &mut Check, asked: Option<u32>, retry_of: Option<&str>, outputs: Option<u32>) -> Wanted {
    let outputs = outputs.unwrap_or(1);
    let asked = asked.unwrap_or(outputs);
    check.note_if(asked < outputs, "asked", format!("must be at least the number of outputs, {outputs}"));
    let retry_of = retry_of.and_then(|text| {
        let id = text.strip_prefix("run:").or_else(|| text.strip_prefix("job:")).unwrap_or(text);
        check.parsed("retryOf", Uuid::try_parse(id).map_err(|_| "must be the handle of a run or job"))
    });
    // The schema bounds `asked`.
    Wanted { more: asked.saturating_sub(outputs) as i16, retry_of: retry_of.map(JobId) }
}

/// The canonical body of a start with what the user wants beyond it, if anything.
pub fn with_wanted(mut body: Value, wanted: &Wanted) -> Value {
    if wanted.more > 0 {
        body["asked"] = json!(wanted.more);
    }
    if let Some(id) = wanted.retry_of {
        body["retryOf"] = json!(id.to_string());
    }
    body
}

/// The webhook with its parsed URL, which is public by its form (docs/reference/webhooks.md#url-check).
pub fn webhook_of(check: &mut Check, guard: &Guard, webhook: Option<WebhookInput>) -> Option<WebhookInput> {
    let WebhookInput { url, secret } = webhook?;
    let url = check.parsed("webhook.url", guard.check_url(&url))?;
    Some(WebhookInput { url: url.into(), secret })
}

/// 202 with the job's record; announces the task of a new job.
pub async fn answer(app: &App, caller: &Credential, accepted: AcceptedJob) -> Result {
    let (job, acceptance) = announced(app, caller, accepted).await?;
    let poll_url = job["pollUrl"].as_str().unwrap_or_default().to_owned();
    Ok(accepted_as(acceptance, reply::accepted(&poll_url, &job)))
}

/// 202 with the records of several jobs; announces the tasks of new ones.
async fn answer_all(app: &App, caller: &Credential, accepted: Vec<AcceptedJob>) -> Result {
    let (mut runs, mut how) = (Vec::with_capacity(accepted.len()), Acceptance::New);
    for job in accepted {
        let (run, acceptance) = announced(app, caller, job).await?;
        runs.push(run);
        how = acceptance;
    }
    Ok(accepted_as(how, reply::with_status(StatusCode::ACCEPTED, &json!({"runs": runs}))))
}

/// The record of a job, and how it was accepted. Announces the task of a new job.
async fn announced(app: &App, caller: &Credential, accepted: AcceptedJob) -> Result<(Value, Acceptance)> {
    let (mut job, acceptance) = match accepted {
        AcceptedJob::Record(mut record, acceptance) => {
            if acceptance != Acceptance::Replayed {
                taskqueue::failpoint!("start.committed");
                app.waker.wake(record.request.route().1, record.id.0);
            }
            if record.status == JobStatus::Queued {
                let (_, queue, _) = record.request.route();
                record.waiting_for = app.waiting_when_accepted(queue, record.created_at).await;
            }
            if !record.outcome.images.is_empty() {
                note_epochs(&mut *app.connection().await?, &mut record).await?;
            }
            let job = serde_json::to_value(document(app, caller.scopes, &record)).map_err(Problem::internal)?;
            (job, acceptance)
        }
        AcceptedJob::Snapshot(snapshot) => (snapshot, Acceptance::Replayed),
    };
    if acceptance == Acceptance::Replayed {
        job["replayed"] = json!(true);
    }
    Ok((job, acceptance))
}

/// The response to a start that was accepted so.
pub fn accepted_as(acceptance: Acceptance, response: Response) -> Response {
    prefer::applied_lenient(response, acceptance == Acceptance::Lenient)
}
