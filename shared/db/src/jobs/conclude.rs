//! The end of a job, in one transaction.
//!
//! **Guarantee.** Task, assets, nodes, revision, activity, job, history, credit and webhook event change together or not at
//! all, once a job: whoever comes second finds no task to settle. A target node is freed whatever happened, and no credit
//! stays reserved.
//!
//! **Mechanism.** One statement locks the account row where credit is at stake, then the canvas row, then the job; the task is
//! settled under its fencing token, then rows are written in the one lock order (account, canvas, job, task, storage,
//! asset and blob, the task of the Recipe run that waits for it). With the canvas lock it is looked at once more whether the
//! account may still write there (decisions 3.11), and of a Recipe run's step whether the run's delegation holds (13.7).
//!
//! **Review.** A job leaves behind a review of its canvas (decisions 5.4). It is worked out inside the transaction, after
//! the canvas is written, so that it is about exactly the revision that the job made and is there as soon as the end is
//! seen. What it costs under the canvas lock is one read of the graph's light columns ([`skeleton`](crate::canvases::skeleton)), one
//! statement that asks which of the assets named there are stored, and the review itself, O(n log n); the process
//! brings it along as a function, because this crate knows no graph. An account that lost the canvas gets no review of it.
//!
//! **Reason.** A crash between any two of these would leave something that a person has to mend.

use domain::account::Surface;
use domain::canvas::{AccessRole, ActivityType, Actor};
use domain::graph::Node;
use domain::id::{AccountUid, JobId, NodeId};
use domain::job::{
    CancelReason, Failure, FailureCode, JobDocument, JobKind, JobOperation, JobStatus, Outcome, Output, Record,
    Request, StoredVideo,
};
use domain::recipe::run::RunId;
use domain::webhook::Event;
use sqlx::PgConnection;
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use super::ending::{Concluded, Ending, Placement, Terms};
use super::row::select_written;
use super::shown::{Canvas, End, column};
use super::{outputs, settlement};
use crate::canvases::NewActivity;
use crate::deliveries::{self, NewEvent};
use crate::error::known;
use crate::{Error, Result, blobs, recipe_runs, storage, tasks};

/// Ends a job under the lease on its task. A success turns into a failure, `output_finalization_failed`, when the canvas
/// is gone, the account may no longer write to it, or the job is a step of a Recipe run whose delegation no longer holds:
/// nothing is placed then, and nothing charged (decisions 12.4). Without the target node the asset is stored all the same
/// (decisions 3.11, 9.6, 13.7).
#[tracing::instrument(skip_all, name = "db.job.conclude")]
pub async fn conclude(
    conn: &mut PgConnection,
    id: JobId,
    lease_token: Uuid,
    ending: Ending,
    terms: &Terms<'_>,
) -> Result<Concluded> {
    let Some(scene) = Scene::lock(conn, id).await? else { return Ok(Concluded::Stale) };
    if !tasks::settle(conn, id.0, lease_token).await? {
        return Ok(Concluded::Stale);
    }
    scene.end(conn, ending, terms).await
}

/// A job about to end and the canvas that it writes to, locked.
pub(super) struct Scene {
    id: JobId,
    /// Where it stands, until it ends.
    status: JobStatus,
    /// The time of its end, as it will be stored.
    at: DateTime<Utc>,
    kind: JobKind,
    operation: JobOperation,
    request: Request,
    /// Credits that are reserved for it; while there are any the account's row is held.
    reserved: i64,
    /// Bytes that who is to own the results may store, 0 for any number; nothing where the operator's default holds.
    storage_max: Option<i64>,
    canvas: Option<Canvas>,
    actor: Actor,
    /// The Recipe run whose step it is, which waits for its end.
    recipe_run: Option<Uuid>,
    /// Whether that run may still act for the account; a job by itself, once accepted, may.
    is_delegated: bool,
}

impl Scene {
    /// Holds the account that paid for a job, then its canvas, then the job: each is looked for behind the lock before it, and so is
    /// the role, which is held, too. The condition on `account` is always true; it makes the account's lock the first also where
    /// there is no canvas. What may be stored is read as the statement began: a limit that is set meanwhile holds for the next job.
    pub(super) async fn lock(conn: &mut PgConnection, id: JobId) -> Result<Option<Self>> {
        let Some(job) = sqlx::query!(
            r#"WITH account AS MATERIALIZED (
                   SELECT uid FROM accounts
                   WHERE uid = (SELECT account_uid FROM jobs WHERE id = $1 AND credit_cost > 0) FOR NO KEY UPDATE
               ), canvas AS MATERIALIZED (
                   SELECT key, owner_uid FROM canvases
                   WHERE key = (SELECT canvas_key FROM jobs WHERE id = $1) AND (SELECT count(*) FROM account) >= 0
                   FOR UPDATE
               )
               SELECT j.account_uid, j.kind, j.operation, j.status, j.request AS "request: Json<Request>", j.recipe_run,
                      j.credit_cost, now()::timestamptz(3) AS "now!", t.surface, t.label, c.key AS "key?",
                      c.owner_uid AS "owner_uid?",
                      CASE WHEN c.owner_uid = j.account_uid THEN 'owner' ELSE
                          (SELECT role FROM canvas_shares s WHERE s.canvas_key = c.key AND s.account_uid = j.account_uid
                           FOR SHARE)
                      END AS role,
                      (SELECT storage_max FROM accounts WHERE uid = coalesce(c.owner_uid, j.account_uid)) AS storage_max
               FROM jobs j JOIN tokens t ON t.id = j.token_id LEFT JOIN canvas c ON true
               WHERE j.id = $1 FOR NO KEY UPDATE OF j"#,
            id.0
        )
        .fetch_optional(&mut *conn)
        .await?
        else {
            return Ok(None);
        };
        let role = job.role.as_deref().map(|role| known::<AccessRole>("canvas_shares.role", role)).transpose()?;
        let owner = job.owner_uid.map(AccountUid::from_stored);
        let is_delegated = match job.recipe_run {
            Some(run) => recipe_runs::is_delegated(conn, RunId(run)).await?,
            None => true,
        };
        Ok(Some(Self {
            id,
            status: known("jobs.status", &job.status)?,
            at: job.now,
            kind: known("jobs.kind", &job.kind)?,
            operation: known("jobs.operation", &job.operation)?,
            request: job.request.0,
            recipe_run: job.recipe_run,
            is_delegated,
            reserved: job.credit_cost,
            storage_max: job.storage_max,
            canvas: job.key.zip(owner).map(|(key, owner)| Canvas::held(key, owner, role)),
            actor: Actor {
                owner_uid: AccountUid::from_stored(job.account_uid),
                surface: known::<Surface>("tokens.surface", &job.surface)?,
                label: job.label,
            },
        }))
    }

    /// Ends the job, whose task is settled.
    pub(super) async fn end(self, conn: &mut PgConnection, ending: Ending, terms: &Terms<'_>) -> Result<Concluded> {
        let mut video = None;
        let room = self.room_for(conn, &ending, terms).await?;
        let (status, placements, failure, cancel_reason) = match ending {
            Ending::Filmed(_) if !room => (JobStatus::Failed, Vec::new(), Some(without_room()), None),
            Ending::Filmed(film) => {
                let bytes = column("blobs.bytes", film.bytes)?;
                let adopted = blobs::adopt(conn, film.blob_key, &film.sha256, bytes).await?;
                let Some(blob_key) = adopted else { return Ok(Concluded::BlobGone) };
                video = Some(StoredVideo { blob_key, bytes: film.bytes });
                (JobStatus::Succeeded, Vec::new(), None, None)
            }
            Ending::Succeeded(placements) => match self.obstacle() {
                None if !room => (JobStatus::Failed, Vec::new(), Some(without_room()), None),
                None => (JobStatus::Succeeded, placements, None, None),
                Some(message) => {
                    let failure = Failure::new(FailureCode::OutputFinalizationFailed, message);
                    (JobStatus::Failed, Vec::new(), Some(failure), None)
                }
            },
            Ending::Failed(failure, made) => {
                let placements = if room && self.obstacle().is_none() { made } else { Vec::new() };
                (JobStatus::Failed, placements, Some(failure), None)
            }
            Ending::Canceled(reason) => (JobStatus::Canceled, Vec::new(), None, Some(reason)),
        };
        if !self.status.may_become(status) {
            return Ok(Concluded::Stale);
        }
        let mut nodes = match &self.canvas {
            Some(canvas) => canvas.waiting(conn, self.id, self.request.targets()).await?,
            None => Vec::new(),
        };
        let images = placements.iter().filter_map(|placement| self.output(placement)).collect();
        let mut outcome = Outcome { images, video, failure, completion_review: None };
        let durable = placements.len() + usize::from(outcome.video.is_some());
        self.settle_credit(conn, status, durable).await?;
        let revision = (!nodes.is_empty()).then_some(terms.revision);
        if let Some(canvas) = &self.canvas {
            if !canvas.store(conn, &placements, terms).await? {
                return Ok(Concluded::BlobGone);
            }
            let end = End { job: self.id, operation: self.operation, status, at: self.at };
            let bytes_delta = canvas.fill(&mut nodes, &placements, &end)?;
            if let Some(revision) = revision {
                let changed: Vec<NodeId> = nodes.iter().map(|node| node.id.clone()).collect();
                let activity = self.recipe_run.is_none().then(|| self.activity(status, &changed));
                canvas.commit(conn, revision, &nodes, &changed, bytes_delta, activity).await?;
            }
            if canvas.readable {
                let is_homeless = |output: &&Output| nodes.iter().all(|node: &Node| node.id != output.node);
                let homeless: Vec<Output> = outcome.images.iter().filter(is_homeless).cloned().collect();
                outcome.completion_review = Some(canvas.review(conn, &homeless, terms.review).await?);
            }
        }
        let window = terms.windows.after(self.kind, status);
        let record = self.end_job(conn, status, &outcome, cancel_reason, revision, window).await?;
        if let Some(run) = self.recipe_run {
            tasks::wake(conn, run).await?;
        }
        self.announce(conn, &record, terms).await?;
        Ok(Concluded::Done(Box::new(record)))
    }

    /// Whether the account that is to own what was made may store it. Held from here on: what is stored meanwhile waits.
    async fn room_for(&self, conn: &mut PgConnection, ending: &Ending, terms: &Terms<'_>) -> Result<bool> {
        let (owner, bytes) = match (ending, &self.canvas) {
            (Ending::Filmed(film), _) => (&self.actor.owner_uid, film.bytes),
            (Ending::Succeeded(made) | Ending::Failed(_, made), Some(canvas)) if !made.is_empty() => {
                (&canvas.owner, made.iter().map(|placement| placement.bytes).sum())
            }
            _ => return Ok(true),
        };
        if self.storage_max.unwrap_or(terms.storage_max) == 0 {
            return Ok(true);
        }
        let storage = storage::hold(conn, owner, terms.storage_max).await?;
        Ok(storage.admits(column("assets.bytes", bytes)?))
    }

    /// Why no output can be placed any more.
    fn obstacle(&self) -> Option<&'static str> {
        match &self.canvas {
            None => Some("the canvas is gone"),
            Some(canvas) if !canvas.writable => Some("the account may no longer write to the canvas"),
            Some(_) if !self.is_delegated => Some("the token, its session or its account no longer holds"),
            Some(_) => None,
        }
    }

    /// A placement as the record has it.
    fn output(&self, placement: &Placement) -> Option<Output> {
        Some(Output {
            asset: self.canvas.as_ref()?.asset(placement),
            node: placement.node.clone(),
            media_type: placement.mime_type.clone(),
            width: placement.width,
            height: placement.height,
            bytes: placement.bytes,
        })
    }

    /// What the canvas remembers of the end.
    fn activity<'a>(&'a self, status: JobStatus, nodes: &'a [NodeId]) -> NewActivity<'a> {
        let title = self.request.title(self.operation);
        let summary = match status {
            JobStatus::Canceled => format!("{title} was canceled"),
            ended => format!("{title} {ended}"),
        };
        NewActivity { kind: ActivityType::JobFinished, actor: &self.actor, summary, nodes }
    }

    /// Makes the job, which is held, terminal; the record as it is from then on.
    async fn end_job(
        &self,
        conn: &mut PgConnection,
        status: JobStatus,
        outcome: &Outcome,
        cancel_reason: Option<CancelReason>,
        revision: Option<&str>,
        window_seconds: f64,
    ) -> Result<Record> {
        select_written!(
            ["WITH written AS (
                  UPDATE jobs SET status = $2, version = version + 1, outcome = $3, cancel_reason = $4,
                         canvas_revision = coalesce($5, canvas_revision), completed_at = now(), updated_at = now(),
                         retain_until = now() + make_interval(secs => $6), video_blob = $7
                  WHERE id = $1 RETURNING *
              ), noted AS (
                  INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM written
              )"]
            self.id.0,
            status.as_str(),
            Json(outcome) as _,
            cancel_reason.map(CancelReason::as_str),
            revision,
            window_seconds,
            outcome.video.as_ref().map(|video| video.blob_key)
        )
        .fetch_one(conn)
        .await?
        .record()
    }

    /// Closes the job's outputs and charges it: each durable one, or, when it was stopped, each that a provider accepted; the
    /// rest of the reservation goes back (decisions 12.4).
    async fn settle_credit(&self, conn: &mut PgConnection, status: JobStatus, durable: usize) -> Result<()> {
        let model = match &self.request {
            Request::Action(_) => return settlement::settle(conn, self.id, self.reserved, 0, 0).await,
            Request::Image(request) => &request.model,
            Request::Video(request) => &request.model,
        };
        let closed = outputs::close(conn, self.id).await?;
        let count = if status == JobStatus::Canceled { closed.accepted } else { column("job_outputs", durable)? };
        let charge = model.credit_cost.saturating_mul(count);
        settlement::settle(conn, self.id, self.reserved, charge, closed.orphans).await
    }

    /// Fixes the webhook's event, where one is wanted.
    async fn announce(&self, conn: &mut PgConnection, record: &Record, terms: &Terms<'_>) -> Result<()> {
        if record.webhook.is_none() {
            return Ok(());
        }
        let id = Uuid::now_v7();
        let JobDocument::Image(job) = record.document(terms.public_url, |_| None) else { return Ok(()) };
        let event = Event::image_job(id, self.at.into(), *job);
        let body = serde_json::to_vec(&event)
            .map_err(|error| Error::Unreadable { column: "jobs", value: error.to_string() })?;
        let event = NewEvent { id, kind: event.kind, body: &body, traceparent: terms.traceparent };
        deliveries::complete(conn, self.id, &event).await?;
        Ok(())
    }
}

/// The failure of a job whose result would take its owner over the limit. No work is left to be done again, so it is that of
/// a result that cannot be made durable (decisions 12.5).
fn without_room() -> Failure {
    Failure::new(FailureCode::OutputFinalizationFailed, "the storage quota leaves no room for the result")
}
