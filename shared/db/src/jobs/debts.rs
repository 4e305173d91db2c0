//! What work owes: outputs that were wanted and that no node stands for (docs/reference/findings.md#works-without-a-node).
//!
//! **Mechanism.** `unmet` is written by the start, by a later start that makes up for it, and by giving up. The end of a job leaves it:
//! a video without a target owes itself until it has succeeded, which its status says.

use domain::id::{AccountUid, JobId};
use domain::review::OwingWork;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

struct Row {
    id: Uuid,
    kind: String,
    is_active: bool,
    made: i32,
    owed: i32,
    given_up: i16,
}

/// The work of the account that is about a canvas and owes outputs, or has owed some that were given up, in order of its start.
#[tracing::instrument(skip_all, name = "db.job.owing")]
pub async fn owing(conn: &mut PgConnection, canvas_key: i64, account: &AccountUid) -> Result<Vec<OwingWork>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT id, kind, completed_at IS NULL AS "is_active!", made AS "made!", greatest(unmet - alone, 0) AS "owed!", given_up
           FROM jobs
           CROSS JOIN LATERAL (
               SELECT (kind = 'video' AND status = 'succeeded' AND request ->> 'target' IS NULL)::int AS alone
           ) AS video
           CROSS JOIN LATERAL (
               SELECT CASE WHEN kind = 'video' THEN (request ->> 'target' IS NOT NULL)::int + alone
                           ELSE jsonb_array_length(request -> 'targets') END AS made
           ) AS outputs
           WHERE about_canvas = $1 AND account_uid = $2 AND (unmet > 0 OR given_up > 0)
           ORDER BY created_at, id"#,
        canvas_key,
        account.as_str(),
    );
    let work = |row: Row| {
        let id = JobId(row.id);
        OwingWork {
            handle: if row.kind == "video" { id.job_handle() } else { id.run_handle() },
            is_active: row.is_active,
            made: row.made.unsigned_abs(),
            owed: row.owed.unsigned_abs(),
            given_up: row.given_up.unsigned_abs().into(),
        }
    };
    Ok(rows.fetch_all(conn).await?.into_iter().map(work).collect())
}

/// Returns `true` if a start about this canvas, or about none, can make up for the work: it is the account's, has ended, and is about
/// the same canvas or about none.
#[tracing::instrument(skip_all, name = "db.job.may_be_retried")]
pub async fn may_be_retried(
    conn: &mut PgConnection,
    id: JobId,
    account: &AccountUid,
    canvas_key: Option<i64>,
) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM jobs
               WHERE id = $1 AND account_uid = $2 AND completed_at IS NOT NULL AND recipe_run IS NULL
                 AND coalesce(coalesce(about_canvas, canvas_key) = $3, coalesce(about_canvas, canvas_key) IS NULL)
           ) AS "may!""#,
        id.0,
        account.as_str(),
        canvas_key,
    );
    Ok(found.fetch_one(conn).await?)
}

/// Records that a start makes so many outputs that the work owes.
#[tracing::instrument(skip_all, name = "db.job.make_up")]
pub async fn make_up(conn: &mut PgConnection, id: JobId, outputs: i16) -> Result<()> {
    sqlx::query!(
        "UPDATE jobs SET unmet = greatest(unmet - $2::smallint, 0) WHERE id = $1 AND unmet > 0",
        id.0,
        outputs
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Gives up what ended work owes, and the outputs of its targets that were removed.
#[tracing::instrument(skip_all, name = "db.job.give_up")]
pub async fn give_up(conn: &mut PgConnection, id: JobId, removed_targets: i16) -> Result<()> {
    sqlx::query!(
        "UPDATE jobs
         SET given_up = given_up + unmet + $2::smallint
                        - CASE WHEN unmet > 0 AND kind = 'video' AND status = 'succeeded' AND request ->> 'target' IS NULL
                               THEN 1 ELSE 0 END,
             unmet = 0
         WHERE id = $1 AND completed_at IS NOT NULL AND about_canvas IS NOT NULL AND (unmet > 0 OR $2::smallint > 0)",
        id.0,
        removed_targets,
    )
    .execute(conn)
    .await?;
    Ok(())
}
