//! The end of a job whose record cannot be read.
//!
//! **Guarantee.** Every task ends: a job whose record [`end`](super::end) cannot decode is ended here without reading
//! its stored documents. **Left out**: activity, review and webhook event, which are made from the record. A delivery that waits
//! for the event fails.

use db::jobs::Abandoned;
use db::{PgConnection, Result};
use domain::id::JobId;
use domain::job::JobStatus;
use domain::message::Queue;
use uuid::Uuid;

use super::CompletionContext;
use crate::target;

/// Ends a job as `runtime_failed` under the lease on its task and frees its nodes. `None`: the lease is no longer current, and
/// the caller must roll back.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[tracing::instrument(skip_all, name = "app.job.abandon")]
pub async fn abandon(
    conn: &mut PgConnection,
    id: JobId,
    lease_token: Uuid,
    context: &CompletionContext<'_>,
) -> Result<Option<Abandoned>> {
    let Some(abandoned) = db::jobs::abandon(conn, id, lease_token, context.windows).await? else { return Ok(None) };
    if let Some((canvas_key, _)) = &abandoned.canvas {
        target::release_all(conn, *canvas_key, id.0, JobStatus::Failed).await?;
    }
    if let Some(run) = abandoned.recipe_run
        && db::tasks::make_ready(conn, run).await?
    {
        context.ready.add(Queue::Recipe, run);
    }
    Ok(Some(abandoned))
}
