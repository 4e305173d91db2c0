//! Requests that start work: what all of them share on the way to a command and back (docs/reference/jobs.md#acceptance).

use app::job::{AcceptedJob, JobSettings, StartJob, Work};
use db::accounts::Credential;
use domain::job::Record;
use domain::webhook::WebhookInput;
use egress::Guard;
use serde::Deserialize;
use serde_json::json;

use crate::extract::draft::{Check, Field};
use crate::problem::{Problem, Result};
use crate::reply;
use crate::runs::document;
use crate::state::App;

impl App {
    /// What starts of work need of this process.
    pub fn job_settings(&self) -> JobSettings<'_> {
        JobSettings {
            active_jobs: self.config.active_jobs,
            retention_tombstone: self.config.retention_tombstone,
            public_url: &self.config.public_url,
            ring: &self.ring,
        }
    }
}

/// Starts a job on a canvas, or finds the job of an equal request: 202 with the job's record.
pub async fn start<W: Work>(app: &App, command: &StartJob<'_, W>) -> Result {
    let permit = app.writers.pass(&command.canvas.to_string()).await?;
    let accepted = app.run(command).await?;
    drop(permit);
    answer(app, command.caller, accepted).await
}

/// The webhook of a draft.
#[derive(Deserialize)]
pub struct WebhookDraft {
    url: Field<String>,
    secret: Field<String>,
}

/// The webhook with its parsed URL, which is public by its form (docs/reference/webhooks.md#url-check).
pub fn webhook_of(check: &mut Check, guard: &Guard, webhook: Field<WebhookDraft>) -> Option<WebhookInput> {
    let WebhookDraft { url, secret } = webhook.given()?;
    let url = check.parsed("webhook.url", guard.check_url(&url.given()?))?;
    Some(WebhookInput { url: url.into(), secret: secret.given()? })
}

/// 202 with the job's record; wakes the relay for a new job.
pub async fn answer(app: &App, caller: &Credential, accepted: AcceptedJob) -> Result {
    let served =
        |record: &Record| serde_json::to_value(document(app, caller.scopes, record)).map_err(Problem::internal);
    let (mut job, is_new) = match accepted {
        AcceptedJob::New(record) => (served(&record)?, true),
        AcceptedJob::Replayed(record) => (served(&record)?, false),
        AcceptedJob::Snapshot(snapshot) => (snapshot, false),
    };
    match is_new {
        true => {
            taskqueue::failpoint!("start.committed");
            app.waker.wake();
        }
        false => job["replayed"] = json!(true),
    }
    let poll_url = job["pollUrl"].as_str().unwrap_or_default().to_owned();
    Ok(reply::accepted(&poll_url, &job))
}
