//! Changes of a task by the holder of its lease. Every change requires the fencing token.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// State of a lease that is still held, as a heartbeat found it. A lease missing from the answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Id of the task.
    pub id: Uuid,
    /// `true` if the lease was extended. False when a transaction has locked the row, most likely the one that settles the task.
    pub renewed: bool,
    /// `true` if a cancel was requested.
    pub cancel_requested: bool,
}

/// Extends the leases `(task, token)` to `lease` from now, all in one statement.
///
/// A locked row is skipped instead of waited for: one slow finishing transaction must not cost its process the other leases.
#[tracing::instrument(skip_all, name = "db.task.heartbeat")]
pub async fn heartbeat(conn: &mut PgConnection, leases: &[(Uuid, Uuid)], lease: Duration) -> Result<Vec<Beat>> {
    let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = leases.iter().copied().unzip();
    let beats = sqlx::query_as!(
        Beat,
        r#"WITH held AS (
               SELECT * FROM unnest($1::uuid[], $2::uuid[]) AS held(id, token)
           ), mine AS (
               SELECT t.id FROM task_queue t JOIN held ON t.id = held.id AND t.lease_token = held.token
               WHERE t.id = ANY($1) FOR UPDATE OF t SKIP LOCKED
           ), renewed AS (
               UPDATE task_queue SET lease_until = now() + make_interval(secs => $3)
               WHERE id = ANY(ARRAY(SELECT id FROM mine))
               RETURNING id
           )
           SELECT t.id, renewed.id IS NOT NULL AS "renewed!", t.cancel_requested
           FROM task_queue t JOIN held ON t.id = held.id AND t.lease_token = held.token
           LEFT JOIN renewed ON renewed.id = t.id
           WHERE t.id = ANY($1)"#,
        &ids,
        &tokens,
        lease.as_secs_f64(),
    )
    .fetch_all(conn)
    .await?;
    Ok(beats)
}

/// Which of `ids` have a cancel request.
#[tracing::instrument(skip_all, name = "db.task.cancel_requests")]
pub async fn cancel_requests(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<Uuid>> {
    let found = sqlx::query_scalar!("SELECT id FROM task_queue WHERE id = ANY($1) AND cancel_requested", ids)
        .fetch_all(conn)
        .await?;
    Ok(found)
}

/// Settles a task, as part of every transaction that finishes work. `false`: the lease is lost, and the caller must roll back.
pub async fn settle(conn: &mut PgConnection, id: Uuid, lease_token: Uuid) -> Result<bool> {
    Ok(!settle_all(conn, &[(id, lease_token)]).await?.is_empty())
}

/// [`settle`] for several leases, each `(task, token)`. Returns those that were current.
#[tracing::instrument(skip_all, name = "db.task.settle")]
pub async fn settle_all(conn: &mut PgConnection, leases: &[(Uuid, Uuid)]) -> Result<HashSet<(Uuid, Uuid)>> {
    let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = leases.iter().copied().unzip();
    let settled = sqlx::query!(
        r#"DELETE FROM task_queue t USING unnest((SELECT $1::uuid[]), (SELECT $2::uuid[])) AS held (id, token)
           WHERE t.id = ANY((SELECT $1::uuid[])::uuid[]) AND t.id = held.id AND t.lease_token = held.token
           RETURNING t.id, held.token AS "token!""#,
        &ids,
        &tokens,
    );
    Ok(settled.fetch_all(conn).await?.into_iter().map(|row| (row.id, row.token)).collect())
}

/// Reschedules a task that failed, to be retried after `after`; the claim counts. Returns that time. `None`: the lease is lost.
#[tracing::instrument(skip_all, name = "db.task.retry")]
pub async fn retry(conn: &mut PgConnection, id: Uuid, lease_token: Uuid, after: Duration) -> Result<Option<Duration>> {
    reschedule_row(conn, id, lease_token, after, false).await
}

/// Reschedules a task that went as planned and continues after `after`, as a poll does; the count of claims restarts at zero.
/// A task with a cancel request, or one that [`make_ready`](super::make_ready) marked meanwhile, becomes ready at once. Returns
/// when it is due, 0 for one that is ready: the runner that rescheduled it looks for it then. `None`: the lease is lost.
#[tracing::instrument(skip_all, name = "db.task.reschedule")]
pub async fn reschedule(
    conn: &mut PgConnection,
    id: Uuid,
    lease_token: Uuid,
    after: Duration,
) -> Result<Option<Duration>> {
    reschedule_row(conn, id, lease_token, after, true).await
}

async fn reschedule_row(
    conn: &mut PgConnection,
    id: Uuid,
    lease_token: Uuid,
    after: Duration,
    went_as_planned: bool,
) -> Result<Option<Duration>> {
    let is_ready = sqlx::query_scalar!(
        r#"UPDATE task_queue
           SET state = CASE WHEN $4 AND (cancel_requested OR ready_requested) THEN 'ready' ELSE 'parked' END,
               due_at = now() + make_interval(secs => CASE WHEN $4 AND (cancel_requested OR ready_requested) THEN 0
                                                           ELSE $3::float8 END),
               claims = CASE WHEN $4 THEN 0 ELSE claims END,
               expired_leases = CASE WHEN $4 THEN 0 ELSE expired_leases END,
               lease_token = NULL, lease_until = NULL, lease_owner = NULL
           WHERE id = $1 AND lease_token = $2
           RETURNING state = 'ready' AS "is_ready!""#,
        id,
        lease_token,
        after.as_secs_f64(),
        went_as_planned,
    )
    .fetch_optional(conn)
    .await?;
    Ok(is_ready.map(|is_ready| if is_ready { Duration::ZERO } else { after }))
}

/// [`reschedule`] for many tasks, each `(task, token)` after its own time. Returns those that were rescheduled, and when. For the
/// others the lease is lost, or another transaction has locked the row, which is not waited for.
#[tracing::instrument(skip_all, name = "db.task.reschedule_all")]
pub async fn reschedule_all(
    conn: &mut PgConnection,
    plans: &[(Uuid, Uuid, Duration)],
) -> Result<HashMap<Uuid, Duration>> {
    let ids: Vec<Uuid> = plans.iter().map(|(id, _, _)| *id).collect();
    let tokens: Vec<Uuid> = plans.iter().map(|(_, token, _)| *token).collect();
    let after: Vec<f64> = plans.iter().map(|(_, _, after)| after.as_secs_f64()).collect();
    let scheduled = sqlx::query!(
        r#"WITH mine AS (
               SELECT t.id, plan.after
               FROM task_queue t JOIN unnest($1::uuid[], $2::uuid[], $3::float8[]) AS plan(id, token, after)
                    ON plan.id = t.id AND plan.token = t.lease_token
               WHERE t.id = ANY($1) FOR UPDATE OF t SKIP LOCKED
           )
           UPDATE task_queue
           SET state = CASE WHEN cancel_requested OR ready_requested THEN 'ready' ELSE 'parked' END,
               due_at = now() + make_interval(secs => CASE WHEN cancel_requested OR ready_requested THEN 0
                                                           ELSE mine.after END),
               claims = 0, expired_leases = 0, lease_token = NULL, lease_until = NULL, lease_owner = NULL
           FROM mine WHERE task_queue.id = mine.id AND task_queue.id = ANY($1)
           RETURNING task_queue.id, CASE state WHEN 'ready' THEN 0 ELSE mine.after END AS "due_in!""#,
        &ids,
        &tokens,
        &after,
    )
    .fetch_all(conn)
    .await?;
    Ok(scheduled.into_iter().filter_map(|row| Some((row.id, super::seconds(row.due_in)?))).collect())
}

/// Releases a task unchanged, as at shutdown: the claim does not count, and the task keeps its position. `false`: the lease is
/// lost.
#[tracing::instrument(skip_all, name = "db.task.release")]
pub async fn release(conn: &mut PgConnection, id: Uuid, lease_token: Uuid) -> Result<bool> {
    let released = sqlx::query!(
        "UPDATE task_queue SET state = 'ready', claims = claims - 1, lease_token = NULL, lease_until = NULL, lease_owner = NULL
         WHERE id = $1 AND lease_token = $2",
        id,
        lease_token,
    )
    .execute(conn)
    .await?;
    Ok(released.rows_affected() == 1)
}
