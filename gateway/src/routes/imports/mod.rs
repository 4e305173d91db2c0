//! The common part of both imports, from the idempotency key to the outcome (docs/reference/imports.md#how-an-import-runs).
//!
//! **Guarantee.** The gateway neither fetches nor decodes foreign content: it records the import with its task and waits for the
//! outcome of the image-worker. A client that stops waiting loses nothing: a request with the same key waits for the same import.
//!
//! **Mechanism.** One transaction takes the key and creates record and task. A change is announced through Redis; in addition the
//! gateway polls Postgres (`crate::wait`).

pub mod image;
pub mod product;

use std::time::Duration;

use app::{CanvasWrite, Command, Key, KnownOutcome, LockedCanvas, Locks, storage};
use db::PgConnection;
use db::accounts::Credential;
use db::imports::NewImport;
use db::tasks::NewTask;
use domain::Violation;
use domain::id::{AccountUid, AssetHandle, CanvasHandle};
use domain::idempotency;
use domain::import::{Failure, FailureKind, Full, Image, ImportOutcome, ImportedImage, Request};
use domain::message::{Queue, TaskKind};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::extract::caller::Caller;
use crate::observe::Trace;
use crate::problem::{Problem, Result, heic_details};
use crate::rates::require_cpu;
use crate::state::App;
use crate::wait::{Changes, while_held};

/// Maximum wait for an outcome (docs/reference/imports.md#waiting-for-the-outcome).
const WAIT: Duration = Duration::from_secs(55);

/// A valid import request.
struct Start<'a> {
    app: &'a App,
    caller: &'a Credential,
    /// Id of the import, if it is accepted.
    id: Uuid,
    canvas: CanvasHandle,
    key: String,
    fingerprint: idempotency::Fingerprint,
    request: Request,
    trace: Trace,
}

/// The outcome of an import, and whether its key was taken before.
struct Answer {
    outcome: ImportOutcome,
    replayed: bool,
}

/// Starts an import, or finds the one of its key, and waits for its outcome. The key of a failed import is released when the
/// failure is returned.
async fn answer<G>(caller: &Caller<G>, start: &Start<'_>) -> Result<Answer> {
    while_held(start.app, caller, outcome(caller, start)).await
}

async fn outcome<G>(caller: &Caller<G>, start: &Start<'_>) -> Result<Answer> {
    let app = start.app;
    let deadline = Instant::now() + WAIT;
    let has_cpu = require_cpu(app, &caller.account).await;
    let (id, replayed) = caller.run_if(has_cpu, app, start).await?;
    if !replayed {
        app.waker.wake(Queue::Import, id);
    }
    // It is a worker's work from here on.
    caller.place.leave();
    let outcome = wait(app, caller, id, deadline).await?;
    if !outcome.is_success() {
        db::imports::release(&mut *app.connection().await?, id).await?;
    }
    match outcome {
        ImportOutcome::Failed(failure) => Err(problem(failure)),
        outcome => Ok(Answer { outcome, replayed }),
    }
}

impl Command for Start<'_> {
    /// Key of the canvas.
    type Subject = i64;
    /// The import, and whether an earlier, equal request started it.
    type Reply = (Uuid, bool);

    fn account(&self) -> &AccountUid {
        &self.caller.account
    }

    fn key(&self) -> Option<Key<'_>> {
        Some(Key { text: &self.key, fingerprint: &self.fingerprint })
    }

    fn known_outcome(&self) -> Option<KnownOutcome> {
        Some(KnownOutcome { outcome: idempotency::StoredOutcome::Import { id: self.id }, record: Some(self.id) })
    }

    fn channels(&self) -> Vec<String> {
        // The worker changes the canvas.
        Vec::new()
    }

    async fn authorize(&self, conn: &mut PgConnection) -> app::Result<i64> {
        let (account, canvas) = (&self.caller.account, &self.canvas);
        let target = CanvasWrite { account, canvas, base: None, locks: Locks::Canvas };
        target.check_access(conn).await.map(|canvas| canvas.key)
    }

    async fn execute(
        &self,
        conn: &mut PgConnection,
        canvas_key: i64,
        _: Option<LockedCanvas>,
    ) -> app::Result<(Uuid, bool)> {
        self.require_room(conn).await?;
        let account = &self.caller.account;
        let place = storage::Place { owner: &self.canvas.owner, caller: account, field: Some("canvasId") };
        place.require(conn, storage::of_outputs(1)).await?;
        let new = NewImport { id: self.id, account, token_id: self.caller.token, canvas_key, request: &self.request };
        db::imports::insert(conn, &new).await?;
        let task = NewTask {
            id: self.id,
            queue: Queue::Import,
            kind: TaskKind::Import,
            fairness_key: account.as_str(),
            due_in: None,
            traceparent: Some(&self.trace.0.to_string()),
        };
        db::tasks::enqueue(conn, &task).await?;
        Ok((self.id, false))
    }

    fn outcome(&self, _: &(Uuid, bool)) -> Option<idempotency::StoredOutcome> {
        None
    }

    async fn replay(&self, _: &mut PgConnection, outcome: idempotency::StoredOutcome) -> app::Result<(Uuid, bool)> {
        match outcome {
            idempotency::StoredOutcome::Import { id } => Ok((id, true)),
            _ => Err(app::Error::Inconsistent("the key of an import holds an outcome of another kind".into())),
        }
    }
}

impl Start<'_> {
    /// Rejects an account that has as many active imports as it may have (docs/reference/imports.md#concurrent-imports). Imports
    /// are not jobs and are counted separately. The account is locked until the transaction ends, so that concurrent starts do not
    /// exceed the cap together.
    async fn require_room(&self, conn: &mut PgConnection) -> app::Result<()> {
        let cap = i64::from(self.app.config.active_imports);
        db::accounts::lock(conn, &self.caller.account).await?;
        match db::imports::count_pending(conn, &self.caller.account, cap).await? < cap {
            true => Ok(()),
            false => Err(app::Error::TooMuchWork(format!("an account has at most {cap} active imports"))),
        }
    }
}

async fn wait<G>(app: &App, caller: &Caller<G>, id: Uuid, deadline: Instant) -> Result<ImportOutcome> {
    let mut changes = Changes::subscribe(app, &format!("{}:{id}", TaskKind::Import));
    loop {
        let found = db::imports::outcome(&mut *app.connection().await?, id, &caller.account).await?;
        match found {
            Some(Some(outcome)) => return Ok(outcome),
            Some(None) => {}
            // The canvas was deleted in the meantime, and the import with it.
            None => return Err(Problem::NotFound("canvas")),
        }
        if app.stopping.is_cancelled() {
            return Err(Problem::Unavailable("the gateway is stopping; the import continues".into(), Some(1)));
        }
        if timeout_at(deadline, changes.next()).await.is_err() {
            return Err(Problem::UpstreamTimeout);
        }
    }
}

/// The response to a failed import (docs/reference/imports.md#import-failures).
fn problem(failure: Failure) -> Problem {
    let Failure { kind, field, message, full, is_heic } = failure;
    if is_heic {
        return Problem::UnsupportedContent(Violation::new(field, message), heic_details());
    }
    if let Some(Full { own }) = full {
        return Problem::StorageFull { field: Some(field), own };
    }
    match kind {
        FailureKind::Upstream => Problem::Upstream(message),
        FailureKind::Timeout => Problem::UpstreamTimeout,
        FailureKind::Unprocessable => Problem::unprocessable(field, message),
        FailureKind::Forbidden => Problem::Forbidden(message),
        FailureKind::Internal => Problem::internal(message),
    }
}

/// The served forms of imported images.
async fn image_documents(app: &App, canvas: &CanvasHandle, images: &[Image]) -> Result<Vec<ImportedImage>> {
    let handle = |image: &Image| AssetHandle { owner: canvas.owner.clone(), id: image.asset.clone() };
    let handles: Vec<AssetHandle> = images.iter().map(handle).collect();
    let epochs = db::assets::preview_epochs(&mut *app.connection().await?, handles.iter()).await?;
    let documents = images.iter().zip(handles).map(|(image, asset)| {
        // An image that was deleted has no epoch, and its preview is 404.
        let epoch = epochs.get(&asset).copied().unwrap_or_default();
        image_document(app, image, asset, epoch)
    });
    Ok(documents.collect())
}

fn image_document(app: &App, image: &Image, asset_id: AssetHandle, epoch: i64) -> ImportedImage {
    let preview = app.previews.make(&app.keys, &asset_id, epoch, service::clock::now());
    ImportedImage {
        node_id: image.node.handle(),
        media_type: image.media_type.clone(),
        width: image.width,
        height: image.height,
        bytes: image.bytes,
        source_image_url: image.source_url.clone(),
        markdown: domain::alt::markdown(&image.title, &preview.url),
        preview_url: preview.url,
        asset_id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_trouble_has_its_status() {
        let status = |kind| {
            let (field, message) = ("imageUrl".into(), "why".into());
            let failure = Failure { kind, field, message, full: None, is_heic: false };
            axum::response::IntoResponse::into_response(problem(failure)).status().as_u16()
        };
        let kinds = [FailureKind::Upstream, FailureKind::Timeout, FailureKind::Unprocessable, FailureKind::Forbidden];
        assert_eq!(kinds.map(status), [502, 504, 422, 403]);
        let full = Some(Full { own: Some((3, 2)) });
        let (kind, field, message) = (FailureKind::Unprocessable, "canvasId".into(), "why".into());
        let failure = Failure { kind, field, message, full, is_heic: false };
        let problem = problem(failure);
        assert!(
            matches!(&problem, Problem::StorageFull { field: Some(field), own: Some((3, 2)) } if field == "canvasId"),
            "{problem:?}"
        );
    }
}
