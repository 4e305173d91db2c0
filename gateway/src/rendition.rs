//! Renditions that a request waits for; an image-worker makes them on first demand
//! (docs/reference/assets.md#how-renditions-are-made).

use std::time::Duration;

use db::renditions::RenditionState;
use domain::id::AccountUid;
use domain::message::ReadyTasks;
use uuid::Uuid;

use crate::admission::InProgress;
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::rates::require_cpu;
use crate::state::App;
use crate::wait::Changes;

/// Maximum wait for a rendition that is not stored yet.
pub const WAIT: Duration = Duration::from_secs(10);

pub enum Rendition {
    /// The rendition is stored.
    Ready {
        /// Key of its blob.
        key: Uuid,
        /// SHA-256 of its bytes.
        sha256: Vec<u8>,
        media_type: String,
    },
    /// The source image cannot be decoded.
    Undecodable,
    /// Five attempts to make it failed.
    GivenUp,
}

/// The rendition of the blob `source` at `width`. Enqueues it on behalf of `owner` unless that was done before; 429 when `owner` has no
/// processor time left for a new one, 503 when it is not ready within `wait`. A request that has to wait leaves its `place`.
pub async fn rendition(
    app: &App,
    (source, width): (Uuid, u32),
    owner: &AccountUid,
    trace: Trace,
    wait: Duration,
    place: &InProgress,
) -> Result<Rendition> {
    let channel = format!("rendition:{source}:{width}");
    let mut changes = None;
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        let found = db::renditions::find(&mut *app.connection().await?, source, width).await?;
        match found.map(|(rendition, sha256)| (rendition.state, sha256)) {
            Some((RenditionState::Ready { blob_key, mime_type }, sha256)) => {
                return Ok(Rendition::Ready { key: blob_key, sha256, media_type: mime_type });
            }
            Some((RenditionState::Undecodable, _)) => return Ok(Rendition::Undecodable),
            Some((RenditionState::GivenUp, _)) => return Ok(Rendition::GivenUp),
            Some((RenditionState::Pending, _)) => {}
            None => {
                require_cpu(app, owner).await?;
                request(app, &[(source, width, owner)], trace).await?;
            }
        }
        let changes = match &mut changes {
            Some(changes) => changes,
            // Subscribes before the next look at Postgres, so that no change is missed.
            none => {
                *none = Some(Changes::subscribe(app, &channel));
                continue;
            }
        };
        // It is a worker's work from here on.
        place.leave();
        let waited = tokio::time::timeout_at(deadline, changes.next()).await;
        if waited.is_err() || app.stopping.is_cancelled() {
            return Err(Problem::Unavailable("a rendition is not ready yet".into(), Some(2)));
        }
    }
}

/// Enqueues renditions of blobs at widths on behalf of accounts, unless that was done before.
pub async fn request(app: &App, wanted: &[(Uuid, u32, &AccountUid)], trace: Trace) -> Result<()> {
    let traceparent = trace.0.to_string();
    let ready = ReadyTasks::new();
    let mut transaction = app.transaction().await?;
    for (source, width, owner) in wanted {
        db::renditions::request(&mut transaction, *source, *width, owner, Some(&traceparent), &ready).await?;
    }
    db::pool::commit(transaction).await?;
    app.waker.wake_all(&ready);
    Ok(())
}
