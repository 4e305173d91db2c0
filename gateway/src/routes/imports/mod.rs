//! Imports: what both have in common, from the key to the outcome (decisions 14.2).
//!
//! **Guarantee.** The gateway neither fetches nor decodes what is foreign: it records the import with its task and waits for
//! what an image-worker makes of it. Who stops waiting loses nothing: the same key takes the import up again.
//!
//! **Mechanism.** One transaction takes the key and makes record and task; a change is announced through Redis, and looked
//! for in Postgres by time besides (`crate::wait`).

pub mod image;
pub mod product;

use std::time::Duration;

use db::imports::NewImport;
use db::tasks::NewTask;
use domain::id::{AssetHandle, CanvasHandle};
use domain::idempotency;
use domain::import::{Failure, FailureKind, Image, Outcome, Request};
use domain::message::{Queue, TaskKind};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::extract::caller::Caller;
use crate::extract::canvas::require_writer;
use crate::extract::idempotency::replay;
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::start::CAP_RETRY;
use crate::state::{App, retrying};
use crate::wait::{Changes, while_held};

/// How long an outcome is waited for (decisions 14.2).
const WAIT: Duration = Duration::from_secs(55);

/// An import that is right by itself.
struct Start {
    canvas: CanvasHandle,
    key: String,
    fingerprint: [u8; 32],
    request: Request,
    trace: Trace,
}

/// What an import came to, and whether its key was taken before.
struct Answer {
    outcome: Outcome,
    replayed: bool,
}

/// Starts an import, or takes up the one of its key, and waits for its outcome. What came to nothing frees its key as it is
/// handed out.
async fn answer<G>(app: &App, caller: &Caller<G>, start: &Start) -> Result<Answer> {
    while_held(app, caller, outcome(app, caller, start)).await
}

async fn outcome<G>(app: &App, caller: &Caller<G>, start: &Start) -> Result<Answer> {
    let deadline = Instant::now() + WAIT;
    let (id, replayed) = retrying(|| begin(app, caller, start)).await?;
    if !replayed {
        app.nudge.nudge();
    }
    let outcome = wait(app, caller, id, deadline).await?;
    if !outcome.is_success() {
        db::imports::release(&mut *app.connection().await?, id).await?;
    }
    match outcome {
        Outcome::Failed(failure) => Err(problem(failure)),
        outcome => Ok(Answer { outcome, replayed }),
    }
}

/// One transaction: access, key, record, task.
async fn begin<G>(app: &App, caller: &Caller<G>, start: &Start) -> Result<(Uuid, bool)> {
    let mut transaction = app.transaction().await?;
    let conn = &mut *transaction;
    let (canvas, role) =
        db::canvases::find(conn, &caller.account, &start.canvas).await?.ok_or(Problem::NotFound("canvas"))?;
    require_writer(role)?;
    let id = Uuid::now_v7();
    let outcome = idempotency::Outcome::Import { id };
    let (key, fingerprint) = (&start.key, &start.fingerprint);
    let taken = db::idempotency::take_for(conn, &caller.account, key, fingerprint, &outcome, Some(id)).await?;
    if let Some(outcome) = replay(taken)? {
        let idempotency::Outcome::Import { id } = outcome else {
            return Err(Problem::internal("the outcome of an import is of another kind"));
        };
        return Ok((id, true));
    }
    require_room(app, conn, caller).await?;
    let new = NewImport {
        id,
        account: &caller.account,
        token_id: caller.token,
        canvas_key: canvas.key,
        request: &start.request,
    };
    db::imports::insert(conn, &new).await?;
    let traceparent = start.trace.0.to_string();
    let task = NewTask {
        id,
        queue: Queue::Import,
        kind: TaskKind::Import,
        lane: caller.account.as_str(),
        due_in: None,
        traceparent: Some(&traceparent),
    };
    db::tasks::enqueue(conn, &task).await?;
    db::pool::commit(transaction).await?;
    Ok((id, false))
}

/// Refuses an account that has as many imports under way as it may have active jobs: imports are none, and are counted by
/// themselves (decisions 18.13). What bounds the table needs no lock: starts at one moment may pass the limit together.
async fn require_room<G>(app: &App, conn: &mut db::PgConnection, caller: &Caller<G>) -> Result<()> {
    let cap = i64::from(app.config.active_jobs);
    match db::imports::count_pending(conn, &caller.account, cap).await? < cap {
        true => Ok(()),
        false => Err(Problem::RateLimited(format!("an account has at most {cap} imports under way"), CAP_RETRY)),
    }
}

async fn wait<G>(app: &App, caller: &Caller<G>, id: Uuid, deadline: Instant) -> Result<Outcome> {
    let mut changes = Changes::of(app, &format!("{}:{id}", TaskKind::Import));
    loop {
        let found = db::imports::outcome(&mut *app.connection().await?, id, &caller.account).await?;
        match found {
            Some(Some(outcome)) => return Ok(outcome),
            Some(None) => {}
            None => return Err(Problem::internal("an import is gone while its key is there")),
        }
        if app.stopping.is_cancelled() {
            return Err(Problem::Unavailable("the gateway stops; the import goes on".into(), Some(1)));
        }
        if timeout_at(deadline, changes.next()).await.is_err() {
            return Err(Problem::UpstreamTimeout);
        }
    }
}

/// The answer that a failed import gets (decisions 14.2).
fn problem(failure: Failure) -> Problem {
    let Failure { kind, field, message } = failure;
    match kind {
        FailureKind::Upstream => Problem::Upstream(message),
        FailureKind::Timeout => Problem::UpstreamTimeout,
        FailureKind::Unprocessable => Problem::unprocessable(field, message),
        FailureKind::Forbidden => Problem::Forbidden(message),
        FailureKind::Internal => Problem::internal(message),
    }
}

/// A picture that was imported.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedImage {
    /// `asset:<ownerUid>:<id>`.
    asset_id: AssetHandle,
    /// `node:<id>`.
    node_id: String,
    /// By its bytes.
    #[schema(pattern = "^image/(png|jpeg|webp|gif)$")]
    media_type: String,
    /// Pixels.
    #[schema(minimum = 1)]
    width: u32,
    /// Pixels.
    #[schema(minimum = 1)]
    height: u32,
    /// Of the file.
    #[schema(minimum = 1, maximum = 52_428_800)]
    bytes: u64,
    /// Where the bytes came from, redirects followed.
    #[schema(format = Uri)]
    source_image_url: String,
    /// A capability for this one picture; not to be stored.
    #[schema(format = Uri)]
    preview_url: String,
    /// An image link.
    markdown: String,
}

impl ImportedImage {
    fn of(app: &App, canvas: &CanvasHandle, image: &Image) -> Self {
        let asset_id = AssetHandle { owner: canvas.owner.clone(), id: image.asset.clone() };
        let preview = app.previews.make(&app.keys, &asset_id, service::clock::now());
        Self {
            node_id: image.node.handle(),
            media_type: image.media_type.clone(),
            width: image.width,
            height: image.height,
            bytes: image.bytes,
            source_image_url: image.source_url.clone(),
            markdown: format!("![{}]({})", escaped(&image.title), preview.url),
            preview_url: preview.url,
            asset_id,
        }
    }
}

/// A text that means nothing in Markdown but itself: every punctuation character escaped (CommonMark 2.4), on one line.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii_punctuation() => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_cannot_leave_its_link() {
        assert_eq!(escaped("Boots 3"), "Boots 3");
        assert_eq!(escaped("a](https://evil.example) <b>\nÄ"), r"a\]\(https\:\/\/evil\.example\) \<b\> Ä");
    }

    #[test]
    fn each_kind_of_trouble_has_its_status() {
        let status = |kind| {
            let failure = Failure { kind, field: "imageUrl".into(), message: "why".into() };
            axum::response::IntoResponse::into_response(problem(failure)).status().as_u16()
        };
        let kinds = [FailureKind::Upstream, FailureKind::Timeout, FailureKind::Unprocessable, FailureKind::Forbidden];
        assert_eq!(kinds.map(status), [502, 504, 422, 403]);
    }
}
