//! Renditions that a request waits for, made on first demand by an image-worker (decisions 6.4).

use std::time::Duration;

use db::renditions::State;
use domain::id::AccountUid;
use uuid::Uuid;

use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::state::App;
use crate::wait::Changes;

/// How long a rendition that is not there yet is waited for.
const WAIT: Duration = Duration::from_secs(10);

/// A rendition, as far as it came.
pub enum Rendition {
    /// It is stored.
    Ready {
        /// Its blob.
        key: Uuid,
        /// Its media type.
        media_type: String,
    },
    /// Its source cannot be read.
    Undecodable,
    /// It failed five times.
    GivenUp,
}

/// The rendition of the blob `source` at `width`, asked for on behalf of `owner` if nobody has; 503 when it is not there in
/// time.
pub async fn rendition(app: &App, source: Uuid, width: u32, owner: &AccountUid, trace: Trace) -> Result<Rendition> {
    let channel = format!("rendition:{source}:{width}");
    let mut changes = None;
    let deadline = tokio::time::Instant::now() + WAIT;
    loop {
        let found = db::renditions::find(&mut *app.connection().await?, source, width).await?;
        match found.map(|rendition| rendition.state) {
            Some(State::Ready { blob_key, mime_type }) => {
                return Ok(Rendition::Ready { key: blob_key, media_type: mime_type });
            }
            Some(State::Undecodable) => return Ok(Rendition::Undecodable),
            Some(State::GivenUp) => return Ok(Rendition::GivenUp),
            Some(State::Pending) => {}
            None => request(app, &[(source, width, owner)], trace).await?,
        }
        let changes = match &mut changes {
            Some(changes) => changes,
            // Listened to before Postgres is looked at once more, so that no change falls between.
            none => {
                *none = Some(Changes::of(app, &channel));
                continue;
            }
        };
        let waited = tokio::time::timeout_at(deadline, changes.next()).await;
        if waited.is_err() || app.stopping.is_cancelled() {
            return Err(Problem::Unavailable("a rendition is not there yet".into(), Some(2)));
        }
    }
}

/// Asks for renditions of blobs at widths on behalf of accounts, unless somebody has.
pub async fn request(app: &App, wanted: &[(Uuid, u32, &AccountUid)], trace: Trace) -> Result<()> {
    let traceparent = trace.0.to_string();
    let mut transaction = app.transaction().await?;
    for (source, width, owner) in wanted {
        db::renditions::request(&mut transaction, *source, *width, owner, Some(&traceparent)).await?;
    }
    db::pool::commit(transaction).await?;
    app.nudge.nudge();
    Ok(())
}
