//! A locked run: the statements that a worker's step, or the run's end, consists of.

use domain::id::{AccountUid, AssetHandle, CanvasHandle, CanvasId, JobId};
use domain::recipe::run::{OutputStatus, RunFailure, RunId, RunRecord, RunStatus};
use domain::review::CompletionReview;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use super::delegation::Delegation;
use super::read;
use crate::Result;

/// Begins a run under a lease on its task and sets it `running` if it was queued. Returns the current record, and whether this
/// call set it `running`. `None`: the lease is no longer current.
#[instrument(skip_all, name = "db.recipe_run.begin")]
pub async fn begin(conn: &mut PgConnection, id: RunId, lease_token: Uuid) -> Result<Option<(RunRecord, bool)>> {
    let set = sqlx::query!(
        "UPDATE recipe_runs SET status = 'running', version = version + 1, started_at = now(), updated_at = now()
         WHERE id = $1 AND status = 'queued'
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)",
        id.0,
        lease_token
    )
    .execute(&mut *conn)
    .await?;
    let held = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM task_queue WHERE id = $1 AND lease_token = $2) AS "held!""#,
        id.0,
        lease_token
    )
    .fetch_one(&mut *conn)
    .await?;
    if !held {
        return Ok(None);
    }
    Ok(read(conn, id).await?.map(|run| (run, set.rows_affected() == 1)))
}

/// The account that started a run.
#[instrument(skip_all, name = "db.recipe_run.account_of")]
pub async fn account_of(conn: &mut PgConnection, id: RunId) -> Result<Option<AccountUid>> {
    let account = sqlx::query_scalar!("SELECT account_uid FROM recipe_runs WHERE id = $1", id.0);
    Ok(account.fetch_optional(conn).await?.map(AccountUid::from_stored))
}

/// The nodes that the start of a run made for it.
#[derive(Clone, Copy, Debug)]
pub struct MadeTargets {
    /// Key of the canvas, while it exists.
    pub canvas_key: Option<i64>,
    /// Sequence of the canvas's change that accepted the run.
    pub sequence: Option<i64>,
    /// `true` if the end deletes the outputs among them that are still empty.
    pub are_removed: bool,
}

/// Reads which nodes the start of a run made; `None`: there is no such run.
#[instrument(skip_all, name = "db.recipe_run.made_targets")]
pub async fn made_targets(conn: &mut PgConnection, id: RunId) -> Result<Option<MadeTargets>> {
    let run = sqlx::query!("SELECT canvas_key, canvas_sequence, remove_targets FROM recipe_runs WHERE id = $1", id.0)
        .fetch_optional(conn)
        .await?;
    Ok(run.map(|run| MadeTargets {
        canvas_key: run.canvas_key,
        sequence: run.canvas_sequence,
        are_removed: run.remove_targets,
    }))
}

/// A run and its canvas, both locked, with the run's version incremented.
#[derive(Debug)]
pub struct LockedRun {
    /// Id of the run.
    pub id: RunId,
    /// The rights of the run for its account.
    pub delegation: Delegation,
    /// Key of the canvas, while it exists.
    pub canvas_key: Option<i64>,
    /// Handle of the canvas, while it exists.
    pub canvas: Option<CanvasHandle>,
}

impl LockedRun {
    /// Locks the canvas, then the run if it is unfinished and, with a lease, while that is current. `None`: neither holds.
    #[instrument(skip_all, name = "db.recipe_run.lock")]
    pub async fn lock(conn: &mut PgConnection, id: RunId, lease_token: Option<Uuid>) -> Result<Option<Self>> {
        let canvas = sqlx::query!(
            "SELECT key, owner_uid, id FROM canvases
             WHERE key = (SELECT canvas_key FROM recipe_runs WHERE id = $1) FOR UPDATE",
            id.0
        )
        .fetch_optional(&mut *conn)
        .await?;
        // Increments the version first: this locks the row, and everything below is read after the previous lock holder ended.
        let entered = sqlx::query!(
            "UPDATE recipe_runs SET version = version + 1, updated_at = now()
             WHERE id = $1 AND completed_at IS NULL
               AND ($2::uuid IS NULL OR EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2))",
            id.0,
            lease_token
        )
        .execute(&mut *conn)
        .await?;
        if entered.rows_affected() == 0 {
            return Ok(None);
        }
        let delegation = Delegation::read(conn, id).await?;
        let canvas_key = canvas.as_ref().map(|row| row.key);
        let canvas = canvas.map(|row| CanvasHandle {
            owner: AccountUid::from_stored(row.owner_uid),
            id: CanvasId::from_stored(row.id),
        });
        Ok(delegation.map(|delegation| Self { id, delegation, canvas_key, canvas }))
    }

    /// The jobs of the outputs that are not terminal. Reads no stored document.
    #[instrument(skip_all, name = "db.recipe_run.unfinished_jobs")]
    pub async fn unfinished_jobs(&self, conn: &mut PgConnection) -> Result<Vec<JobId>> {
        let jobs = sqlx::query_scalar!(
            r#"SELECT job_id AS "job_id!" FROM recipe_run_outputs
               WHERE run_id = $1 AND completed_at IS NULL AND job_id IS NOT NULL ORDER BY position"#,
            self.id.0
        );
        Ok(jobs.fetch_all(conn).await?.into_iter().map(JobId).collect())
    }

    /// The present record.
    #[instrument(skip_all, name = "db.recipe_run.record")]
    pub async fn record(&self, conn: &mut PgConnection) -> Result<RunRecord> {
        let record = read(conn, self.id).await?;
        record.ok_or_else(|| crate::Error::Unreadable { column: "recipe_runs", value: self.id.to_string() })
    }

    /// Moves an output from one status to another. Returns whether it was in the former.
    #[instrument(skip_all, name = "db.recipe_run.advance")]
    pub async fn advance(
        &self,
        conn: &mut PgConnection,
        at: usize,
        from: OutputStatus,
        to: OutputStatus,
    ) -> Result<bool> {
        let advanced = sqlx::query!(
            "UPDATE recipe_run_outputs SET status = $4,
                    started_at = CASE WHEN $4 = 'running' THEN now() ELSE started_at END,
                    completed_at = CASE WHEN $5 THEN now() END
             WHERE run_id = $1 AND position = $2 AND status = $3",
            self.id.0,
            position(at),
            from.as_str(),
            to.as_str(),
            to.is_terminal()
        )
        .execute(conn)
        .await?;
        Ok(advanced.rows_affected() == 1)
    }

    /// Records that the end of the run deletes the outputs that its start made and that are still empty.
    #[instrument(skip_all, name = "db.recipe_run.remove_targets_at_end")]
    pub async fn remove_targets_at_end(&self, conn: &mut PgConnection) -> Result<()> {
        sqlx::query!("UPDATE recipe_runs SET remove_targets = true WHERE id = $1", self.id.0).execute(conn).await?;
        Ok(())
    }

    /// Takes credit from the reservation under the run's own id.
    #[instrument(skip_all, name = "db.recipe_run.spend")]
    pub async fn spend(&self, conn: &mut PgConnection, amount: i64) -> Result<()> {
        sqlx::query!("UPDATE recipe_runs SET reserved = reserved - $2 WHERE id = $1", self.id.0, amount)
            .execute(conn)
            .await?;
        Ok(())
    }

    /// Records the job of an image step.
    #[instrument(skip_all, name = "db.recipe_run.set_job")]
    pub async fn set_job(&self, conn: &mut PgConnection, at: usize, job: JobId) -> Result<()> {
        sqlx::query!(
            "UPDATE recipe_run_outputs SET job_id = $3 WHERE run_id = $1 AND position = $2",
            self.id.0,
            position(at),
            job.0
        )
        .execute(conn)
        .await?;
        Ok(())
    }

    /// Records the image of an image step.
    #[instrument(skip_all, name = "db.recipe_run.set_image")]
    pub async fn set_image(&self, conn: &mut PgConnection, at: usize, image: &AssetHandle) -> Result<()> {
        sqlx::query!(
            "UPDATE recipe_run_outputs SET asset_owner = $3, asset_id = $4 WHERE run_id = $1 AND position = $2",
            self.id.0,
            position(at),
            image.owner.as_str(),
            image.id.as_str()
        )
        .execute(conn)
        .await?;
        Ok(())
    }

    /// Records the text of a text step.
    #[instrument(skip_all, name = "db.recipe_run.set_text")]
    pub async fn set_text(&self, conn: &mut PgConnection, at: usize, text: &str) -> Result<()> {
        sqlx::query!(
            "UPDATE recipe_run_outputs SET value = $3 WHERE run_id = $1 AND position = $2",
            self.id.0,
            position(at),
            text
        )
        .execute(conn)
        .await?;
        Ok(())
    }

    /// Records why a step failed.
    #[instrument(skip_all, name = "db.recipe_run.set_failure")]
    pub async fn set_failure(&self, conn: &mut PgConnection, at: usize, failure: &RunFailure) -> Result<()> {
        sqlx::query!(
            "UPDATE recipe_run_outputs SET failure = $3 WHERE run_id = $1 AND position = $2",
            self.id.0,
            position(at),
            Json(failure) as _
        )
        .execute(conn)
        .await?;
        Ok(())
    }

    /// Cancels the outputs that are not terminal, and makes the run terminal. Returns the credit that was still reserved under its
    /// id, for the caller to give back.
    #[instrument(skip_all, name = "db.recipe_run.end")]
    pub async fn end(&self, conn: &mut PgConnection, status: RunStatus, failure: Option<RunFailure>) -> Result<i64> {
        sqlx::query!(
            "UPDATE recipe_run_outputs SET status = 'canceled', completed_at = now()
             WHERE run_id = $1 AND status IN ('pending', 'running')",
            self.id.0
        )
        .execute(&mut *conn)
        .await?;
        let reserved = sqlx::query_scalar!("SELECT reserved FROM recipe_runs WHERE id = $1", self.id.0)
            .fetch_one(&mut *conn)
            .await?;
        sqlx::query!(
            "UPDATE recipe_runs SET status = $2, failure = $3, reserved = 0, completed_at = now() WHERE id = $1",
            self.id.0,
            status.as_str(),
            failure.map(Json) as _
        )
        .execute(conn)
        .await?;
        Ok(reserved)
    }

    /// Stores the review that the run leaves.
    #[instrument(skip_all, name = "db.recipe_run.set_review")]
    pub async fn set_review(&self, conn: &mut PgConnection, review: &CompletionReview) -> Result<()> {
        sqlx::query!("UPDATE recipe_runs SET review = $2 WHERE id = $1", self.id.0, Json(review) as _)
            .execute(conn)
            .await?;
        Ok(())
    }
}

/// The position of an output as its column stores it. A run has at most 8 outputs.
fn position(at: usize) -> i16 {
    i16::try_from(at).unwrap_or(i16::MAX)
}
