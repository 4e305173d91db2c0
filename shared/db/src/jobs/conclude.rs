//! The end of a job, in one transaction.
//!
//! **Guarantee.** Task, assets, nodes, revision, activity, job, history, credit and webhook event change together or not at
//! all, once a job: whoever comes second finds no task to settle. A target node is freed whatever happened, and no credit
//! stays reserved.
//!
//! **Mechanism.** The account row is locked first where credit is at stake, then the canvas row, then the task is settled under its fencing token, then rows are
//! written in the one lock order (account, canvas, job and task, asset and blob). Under the canvas lock it is looked
//! at once more whether the account may still write there (decisions 3.11).
//!
//! **Review.** A job leaves behind a review of its canvas (decisions 5.4). It is worked out inside the transaction, after
//! the canvas is written, so that it is about exactly the revision that the job made and is there as soon as the end is
//! seen. What it costs under the canvas lock is one read of the graph's light columns ([`canvases::skeleton`]), one
//! statement that asks which of the assets named there are stored, and the review itself, O(n log n); the process
//! brings it along as a function, because this crate knows no graph. An account that lost the canvas gets no review of it.
//!
//! **Reason.** A crash between any two of these would leave something that a person has to mend.

use domain::account::Surface;
use domain::asset::AssetKind;
use domain::canvas::{AccessRole, ActivityType, Actor, Changes};
use domain::graph::{Connection, Node};
use domain::id::{AccountUid, AssetHandle, AssetId, JobId, NodeId};
use domain::job::{
    CancelReason, Failure, FailureCode, JobDocument, JobKind, JobOperation, JobStatus, Outcome, Output, Record,
    Request, StoredVideo,
};
use domain::review::{CompletionReview, StoredAssets};
use domain::webhook::Event;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::PgConnection;
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use super::row::select_jobs;
use super::work::states_before;
use super::{Windows, outputs, settlement, target};
use crate::assets::{self, NewAsset};
use crate::canvases::{self, Change, GraphWrites, NewActivity};
use crate::deliveries::{self, NewEvent};
use crate::error::known;
use crate::{Error, Result, blobs, renditions, tasks};

/// A result to store and to show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The node that shows it, if it still waits for it.
    pub node: NodeId,
    /// The id of the new asset; its owner is the canvas's.
    pub asset: AssetId,
    /// The asset's file name.
    pub name: String,
    /// Media type.
    pub mime_type: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Of the stored file.
    pub bytes: u64,
    /// SHA-256 of the stored file.
    pub sha256: [u8; 32],
    /// The blob that was put.
    pub blob_key: Uuid,
    /// The node's new `provenance`; its `createdAt` is filled in.
    pub provenance: Map<String, Value>,
}

/// A video to store; the job's record has it and no asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Film {
    /// The blob that was put: an MP4.
    pub blob_key: Uuid,
    /// SHA-256 of the stored file.
    pub sha256: [u8; 32],
    /// Of the stored file.
    pub bytes: u64,
}

/// How a job ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// With the video of a video job.
    Filmed(Film),
    /// With every output.
    Succeeded(Vec<Placement>),
    /// Without all of them; with those that were made all the same (decisions 10.6).
    Failed(Failure, Vec<Placement>),
    /// Because it was stopped.
    Canceled(CancelReason),
}

/// What the end of a job takes from the process that brings it about.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// A fresh revision, for the canvas.
    pub revision: &'a str,
    /// The origin of `canvasUrl` in the event.
    pub public_url: &'a str,
    /// How long the record is kept.
    pub windows: &'a Windows,
    /// W3C trace context of what ends it, carried on to the webhook.
    pub traceparent: Option<&'a str>,
    /// Makes the review that the job leaves behind.
    pub review: Review,
}

/// Reviews a canvas: nodes and connections, the stored ones among the assets that they name, and the outputs whose nodes
/// are gone (decisions 9.6).
pub type Review = fn(Vec<Node>, Vec<Connection>, &StoredAssets, &[Output]) -> CompletionReview;

/// What came of an attempt to end a job. Only after `Done` the transaction is to be committed, and the relay nudged.
#[derive(Clone, Debug, PartialEq)]
pub enum Concluded {
    /// It is over; the record as it is now.
    Done(Box<Record>),
    /// The lease is no longer current: somebody else has it, or has ended it.
    Stale,
    /// A blob was swept between its put and this; it has to be put again.
    BlobGone,
}

/// Ends a job under the lease on its task. A success turns into a failure, `output_finalization_failed`, when the canvas
/// is gone or the account may no longer write to it; without the target node the asset is stored all the same
/// (decisions 3.11, 9.6).
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
    kind: JobKind,
    operation: JobOperation,
    request: Request,
    /// Credits that are reserved for it; while there are any the account's row is held.
    reserved: i64,
    canvas: Option<Canvas>,
    actor: Actor,
    /// Whether it is a step of a Recipe run.
    is_step: bool,
}

struct Canvas {
    key: i64,
    owner: AccountUid,
    /// Whether the job's account may still see it.
    readable: bool,
    /// Whether the job's account may still write to it.
    writable: bool,
}

/// What an end writes to the canvas.
struct Written {
    nodes: Vec<Node>,
    bytes_delta: i64,
}

impl Scene {
    /// Reads what does not change about a job, and holds the account that paid for it and its canvas.
    pub(super) async fn lock(conn: &mut PgConnection, id: JobId) -> Result<Option<Self>> {
        let reserved = settlement::hold(conn, id).await?;
        let Some(job) = sqlx::query!(
            r#"SELECT j.account_uid, j.kind, j.operation, j.canvas_key, j.request AS "request: Json<Request>",
                      t.surface, t.label
               FROM jobs j JOIN tokens t ON t.id = j.token_id WHERE j.id = $1"#,
            id.0
        )
        .fetch_optional(&mut *conn)
        .await?
        else {
            return Ok(None);
        };
        let canvas = match job.canvas_key {
            Some(key) => Canvas::lock(conn, key, &job.account_uid).await?,
            None => None,
        };
        Ok(Some(Self {
            id,
            kind: known("jobs.kind", &job.kind)?,
            operation: known("jobs.operation", &job.operation)?,
            request: job.request.0,
            is_step: super::is_step(conn, id).await?,
            reserved,
            canvas,
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
        let (status, placements, failure, cancel_reason) = match ending {
            Ending::Filmed(film) => {
                let bytes = column("blobs.bytes", film.bytes)?;
                let adopted = blobs::adopt(conn, film.blob_key, &film.sha256, bytes).await?;
                let Some(blob_key) = adopted else { return Ok(Concluded::BlobGone) };
                video = Some(StoredVideo { blob_key, bytes: film.bytes });
                (JobStatus::Succeeded, Vec::new(), None, None)
            }
            Ending::Succeeded(placements) => match self.obstacle() {
                None => (JobStatus::Succeeded, placements, None, None),
                Some(message) => {
                    let failure = Failure::new(FailureCode::OutputFinalizationFailed, message);
                    (JobStatus::Failed, Vec::new(), Some(failure), None)
                }
            },
            Ending::Failed(failure, made) => {
                let placements = if self.obstacle().is_none() { made } else { Vec::new() };
                (JobStatus::Failed, placements, Some(failure), None)
            }
            Ending::Canceled(reason) => (JobStatus::Canceled, Vec::new(), None, Some(reason)),
        };
        let mut nodes = self.waiting_nodes(conn).await?;
        let images = placements.iter().filter_map(|placement| self.output(placement)).collect();
        let mut outcome = Outcome { images, video, failure, completion_review: None };
        let revision = (!nodes.is_empty()).then_some(terms.revision);
        let window = terms.windows.after(self.kind, status);
        let Some(at) = self.end_job(conn, status, &outcome, cancel_reason, revision, window).await? else {
            return Ok(Concluded::Stale);
        };
        let durable = placements.len() + usize::from(outcome.video.is_some());
        self.settle_credit(conn, status, durable).await?;
        if let Some(canvas) = &self.canvas {
            if !self.store(conn, canvas, &placements, terms).await? {
                return Ok(Concluded::BlobGone);
            }
            let written = self.write_nodes(conn, canvas, &mut nodes, &placements, status, at).await?;
            self.commit_change(conn, canvas, &written, status, terms).await?;
            if canvas.readable {
                let is_homeless = |output: &&Output| written.nodes.iter().all(|node| node.id != output.node);
                let homeless: Vec<Output> = outcome.images.iter().filter(is_homeless).cloned().collect();
                outcome.completion_review = Some(review(conn, canvas.key, &homeless, terms.review).await?);
                self.note_review(conn, &outcome).await?;
            }
        }
        let record = self.announce(conn, at, terms).await?;
        Ok(Concluded::Done(Box::new(record)))
    }

    /// Why no output can be placed any more.
    fn obstacle(&self) -> Option<&'static str> {
        match &self.canvas {
            None => Some("the canvas is gone"),
            Some(canvas) if !canvas.writable => Some("the account may no longer write to the canvas"),
            Some(_) => None,
        }
    }

    /// The targets that still wait for this job. Nobody else changes them while the canvas is locked.
    async fn waiting_nodes(&self, conn: &mut PgConnection) -> Result<Vec<Node>> {
        let mut waiting = Vec::new();
        let Some(canvas) = &self.canvas else { return Ok(waiting) };
        for target in self.request.targets() {
            let node = canvases::node(conn, canvas.key, target).await?;
            waiting.extend(node.filter(|node| node.active_job == Some(self.id.0)));
        }
        Ok(waiting)
    }

    /// A placement as the record has it.
    fn output(&self, placement: &Placement) -> Option<Output> {
        Some(Output {
            asset: AssetHandle { owner: self.canvas.as_ref()?.owner.clone(), id: placement.asset.clone() },
            node: placement.node.clone(),
            media_type: placement.mime_type.clone(),
            width: placement.width,
            height: placement.height,
            bytes: placement.bytes,
        })
    }

    /// Makes the job terminal, if it may still become so; when.
    async fn end_job(
        &self,
        conn: &mut PgConnection,
        status: JobStatus,
        outcome: &Outcome,
        cancel_reason: Option<CancelReason>,
        revision: Option<&str>,
        window_seconds: f64,
    ) -> Result<Option<DateTime<Utc>>> {
        let ended = sqlx::query_scalar!(
            r#"WITH ended AS (
                   UPDATE jobs SET status = $2, version = version + 1, outcome = $3, cancel_reason = $4,
                          canvas_revision = coalesce($5, canvas_revision), completed_at = now(), updated_at = now(),
                          retain_until = now() + make_interval(secs => $6), video_blob = $8
                   WHERE id = $1 AND status = ANY($7)
                   RETURNING id, version, status, completed_at
               ), noted AS (
                   INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM ended
               )
               SELECT completed_at AS "completed_at!" FROM ended"#,
            self.id.0,
            status.as_str(),
            Json(outcome) as _,
            cancel_reason.map(CancelReason::as_str),
            revision,
            window_seconds,
            &states_before(status),
            outcome.video.as_ref().map(|video| video.blob_key),
        )
        .fetch_optional(conn)
        .await?;
        Ok(ended)
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

    /// Stores the outputs' assets, each with the rendition that is made unasked; false when a blob is gone.
    async fn store(
        &self,
        conn: &mut PgConnection,
        canvas: &Canvas,
        placements: &[Placement],
        terms: &Terms<'_>,
    ) -> Result<bool> {
        let mut placements: Vec<&Placement> = placements.iter().collect();
        placements.sort_unstable_by_key(|placement| placement.sha256);
        for placement in placements {
            let bytes = column("assets.bytes", placement.bytes)?;
            let adopted = blobs::adopt(conn, placement.blob_key, &placement.sha256, bytes).await?;
            let Some(blob_key) = adopted else { return Ok(false) };
            let asset = NewAsset {
                handle: AssetHandle { owner: canvas.owner.clone(), id: placement.asset.clone() },
                canvas_key: Some(canvas.key),
                node: None,
                kind: AssetKind::Image,
                name: placement.name.clone(),
                mime_type: placement.mime_type.clone(),
                width: column("assets.width", placement.width)?,
                height: column("assets.height", placement.height)?,
                bytes,
                blob_key,
            };
            assets::insert(conn, &asset).await?;
            let size = (asset.width, asset.height);
            renditions::request_eager(conn, blob_key, size, &canvas.owner, terms.traceparent).await?;
        }
        Ok(true)
    }

    /// Fills the waiting nodes with their outputs, or just frees them.
    async fn write_nodes(
        &self,
        conn: &mut PgConnection,
        canvas: &Canvas,
        nodes: &mut [Node],
        placements: &[Placement],
        status: JobStatus,
        at: DateTime<Utc>,
    ) -> Result<Written> {
        let mut bytes_delta = 0;
        for node in nodes.iter_mut() {
            let before = target::serialized_bytes(node)?;
            target::free(node, self.id, status, self.operation);
            if let Some(placement) = placements.iter().find(|placement| placement.node == node.id) {
                let asset = AssetHandle { owner: canvas.owner.clone(), id: placement.asset.clone() };
                target::fill(node, self.id, asset, placement.provenance.clone(), at.into());
            }
            bytes_delta += target::serialized_bytes(node)? - before;
        }
        let nodes = nodes.to_vec();
        let writes = GraphWrites { nodes: nodes.iter().collect(), ..GraphWrites::default() };
        canvases::write_graph(conn, canvas.key, &writes).await?;
        Ok(Written { nodes, bytes_delta })
    }

    /// Gives the canvas its next revision, if anything of it changed.
    async fn commit_change(
        &self,
        conn: &mut PgConnection,
        canvas: &Canvas,
        written: &Written,
        status: JobStatus,
        terms: &Terms<'_>,
    ) -> Result<()> {
        if written.nodes.is_empty() {
            return Ok(());
        }
        let changed: Vec<NodeId> = written.nodes.iter().map(|node| node.id.clone()).collect();
        let title = self.request.title(self.operation);
        let activity = NewActivity {
            kind: ActivityType::JobFinished,
            actor: &self.actor,
            summary: match status {
                JobStatus::Canceled => format!("{title} was canceled"),
                ended => format!("{title} {ended}"),
            },
            nodes: &changed,
        };
        let change = Change {
            revision: terms.revision,
            title: None,
            nodes_delta: 0,
            connections_delta: 0,
            bytes_delta: written.bytes_delta,
            changes: &Changes { changed_node_ids: changed.clone(), ..Changes::default() },
            activity: (!self.is_step).then_some(activity),
        };
        canvases::commit_change(conn, canvas.key, &change).await?;
        Ok(())
    }

    /// Stores the outcome once more, with its review; no change of the record that anybody could have seen without.
    async fn note_review(&self, conn: &mut PgConnection, outcome: &Outcome) -> Result<()> {
        sqlx::query!("UPDATE jobs SET outcome = $2 WHERE id = $1", self.id.0, Json(outcome) as _).execute(conn).await?;
        Ok(())
    }

    /// Fixes the webhook's event, where one is wanted, and gives the record as it is now.
    async fn announce(&self, conn: &mut PgConnection, at: DateTime<Utc>, terms: &Terms<'_>) -> Result<Record> {
        let record = select_jobs!("WHERE j.id = $1", self.id.0).fetch_one(&mut *conn).await?.record()?;
        if record.webhook.is_some() {
            let id = Uuid::now_v7();
            let JobDocument::Image(job) = record.document(terms.public_url, |_| None) else { return Ok(record) };
            let event = Event::image_job(id, at.into(), *job);
            let body = serde_json::to_vec(&event)
                .map_err(|error| Error::Unreadable { column: "jobs", value: error.to_string() })?;
            let event = NewEvent { id, kind: event.kind, body: &body, traceparent: terms.traceparent };
            deliveries::complete(conn, self.id, &event).await?;
        }
        Ok(record)
    }
}

impl Canvas {
    async fn lock(conn: &mut PgConnection, key: i64, account: &str) -> Result<Option<Self>> {
        let row = sqlx::query!(
            r#"SELECT c.owner_uid, CASE WHEN c.owner_uid = $2 THEN 'owner' ELSE s.role END AS role
               FROM canvases c LEFT JOIN canvas_shares s ON s.canvas_key = c.key AND s.account_uid = $2
               WHERE c.key = $1 FOR UPDATE OF c"#,
            key,
            account,
        )
        .fetch_optional(conn)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let role = row.role.as_deref().map(|role| known("canvas_shares.role", role)).transpose()?;
        Ok(Some(Self {
            key,
            owner: AccountUid::from_stored(row.owner_uid),
            readable: role.is_some(),
            writable: role.is_some_and(AccessRole::may_write),
        }))
    }
}

/// Reviews a canvas as the transaction sees it.
async fn review(
    conn: &mut PgConnection,
    canvas_key: i64,
    homeless: &[Output],
    review: Review,
) -> Result<CompletionReview> {
    let (nodes, connections) = canvases::skeleton(conn, canvas_key).await?;
    let named = nodes.iter().flat_map(Node::named_assets).collect();
    let assets = assets::origins(conn, &named).await?;
    Ok(review(nodes, connections, &assets, homeless))
}

/// A number in the type of its column, which the limits on pictures keep it within.
fn column<T, N: TryInto<T> + ToString + Copy>(name: &'static str, number: N) -> Result<T> {
    number.try_into().map_err(|_| Error::Unreadable { column: name, value: number.to_string() })
}
