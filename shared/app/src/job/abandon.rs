//! The end of a job whose record cannot be read.
//!
//! **Guarantee.** Every task ends: a job whose record [`complete`](super::complete) cannot decode is ended here without reading
//! its stored documents. **Left out**: activity, review and webhook event, which are made from the record. A delivery that waits
//! for the event fails.

use db::canvases::Change;
use db::jobs::Abandoned;
use db::{PgConnection, Result};
use domain::canvas::Changes;
use domain::id::JobId;
use domain::job::JobStatus;
use uuid::Uuid;

use super::CompletionContext;
use crate::{canvas, target};

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
        release_nodes(conn, *canvas_key, id).await?;
    }
    if let Some(run) = abandoned.recipe_run {
        db::tasks::make_ready(conn, run).await?;
    }
    Ok(Some(abandoned))
}

/// Releases the nodes that wait for the job. Nodes that cannot be read are freed and otherwise stay as they are, so that neither can
/// keep the job from ending.
async fn release_nodes(conn: &mut PgConnection, canvas_key: i64, id: JobId) -> Result<()> {
    let revision = service::random::revision();
    match db::canvases::nodes_of_job(conn, canvas_key, id.0).await {
        Ok(mut nodes) if !nodes.is_empty() => {
            let release = |node: &mut _| target::change(node, |node| target::release(node, JobStatus::Failed));
            let bytes_delta = nodes.iter_mut().map(release).sum();
            canvas::write_nodes(conn, canvas_key, &revision, &nodes, bytes_delta, None).await
        }
        Ok(_) => Ok(()),
        Err(error) if error.is_unreadable() => {
            let changed_node_ids = db::canvases::release_unread(conn, canvas_key, id.0).await?;
            let change = Change {
                revision: &revision,
                title: None,
                nodes_delta: 0,
                connections_delta: 0,
                bytes_delta: 0,
                regrouped: &[],
                changes: &Changes { changed_node_ids, ..Changes::default() },
                activity: None,
            };
            db::canvases::commit_change(conn, canvas_key, &change).await?;
            Ok(())
        }
        Err(error) => Err(error),
    }
}
