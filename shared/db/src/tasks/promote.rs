//! Promotion: scheduled tasks that are due and tasks whose lease expired become ready.

use std::time::Duration;

use domain::message::Queue;
use sqlx::PgConnection;

use super::{LowWaterMarks, count, seconds};
use crate::Result;

/// The result of [`promote`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promoted {
    /// Number of scheduled tasks that became due.
    pub due: u64,
    /// Number of expired leases.
    pub expired: u64,
    /// Time until the next scheduled task is due.
    pub next_due: Option<Duration>,
    /// `true` if a quarantined task was ready before.
    pub quarantined: bool,
}

/// Makes up to `limit` due and up to `limit` lease-expired tasks of a queue ready. Due tasks get a new position; tasks with an
/// expired lease keep theirs. The search begins at `marks`.
///
/// Where `pauses` say so, a task with an expired lease is scheduled first: for the first pause after its first claim, and so on,
/// and for the last pause after any later claim.
///
/// Rows that another worker is promoting, or that are being settled at this moment, are skipped.
#[tracing::instrument(skip_all, name = "db.task.promote")]
pub async fn promote(
    conn: &mut PgConnection,
    queue: Queue,
    limit: usize,
    marks: &LowWaterMarks,
    pauses: &[Duration],
) -> Result<Promoted> {
    let pauses: Vec<f64> = pauses.iter().map(Duration::as_secs_f64).collect();
    let row = sqlx::query!(
        r#"WITH due AS MATERIALIZED (
               SELECT id, fairness_key FROM task_queue WHERE queue = $1 AND state = 'parked' AND due_at BETWEEN $3 AND now()
               ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED
           ), expired AS MATERIALIZED (
               SELECT id, coalesce(($4::float8[])[least(claims, cardinality($4))], 0) AS pause
               FROM task_queue WHERE queue = $1 AND lease_until BETWEEN $3 AND now()
               ORDER BY lease_until LIMIT $2 FOR UPDATE SKIP LOCKED
           ), awake AS MATERIALIZED (
               SELECT id, fairness_key, nextval('task_turns') AS drawn FROM due
           ), before AS (
               SELECT fairness_key, greatest(
                   (SELECT max(fair_seq) FROM task_queue t
                    WHERE t.queue = $1 AND t.fairness_key = awake.fairness_key AND t.state = 'ready' AND t.fair_seq >= floor),
                   coalesce(greatest(
                       (SELECT max(fair_seq) FROM task_queue WHERE queue = $1 AND state = 'leased' AND fair_seq >= floor),
                       (SELECT min(fair_seq) FROM task_queue WHERE queue = $1 AND state = 'ready' AND fair_seq >= floor)
                   ), min(drawn)) - 1
               ) AS fair_seq
               FROM awake, task_floor($1) AS floor GROUP BY fairness_key, floor
           ), placed AS (
               SELECT id, before.fair_seq + row_number() OVER (PARTITION BY fairness_key ORDER BY drawn) AS fair_seq
               FROM awake JOIN before USING (fairness_key)
           ), woken AS (
               UPDATE task_queue SET state = 'ready', fair_seq = placed.fair_seq
               FROM placed WHERE task_queue.id = placed.id AND task_queue.id = ANY(ARRAY(SELECT id FROM due))
           ), freed AS (
               UPDATE task_queue SET state = CASE WHEN pause > 0 THEN 'parked' ELSE 'ready' END,
                                due_at = CASE WHEN pause > 0 THEN now() + make_interval(secs => pause) ELSE due_at END,
                                expired_leases = task_queue.expired_leases + 1,
                                lease_token = NULL, lease_until = NULL, lease_owner = NULL
               FROM expired WHERE task_queue.id = expired.id AND task_queue.id = ANY(ARRAY(SELECT id FROM expired))
           )
           SELECT (SELECT count(*) FROM due) AS "due!", (SELECT count(*) FROM expired) AS "expired!",
                  (SELECT extract(epoch FROM min(due_at) - now())::float8 FROM task_queue
                   WHERE queue = $1 AND state = 'parked' AND due_at > now()) AS next_due,
                  EXISTS (SELECT FROM task_queue WHERE queue = $1 AND state = 'ready' AND quarantined) AS "quarantined!""#,
        queue.as_str(),
        count(limit),
        marks.since,
        &pauses,
    )
    .fetch_one(conn)
    .await?;
    Ok(Promoted {
        due: row.due.unsigned_abs(),
        expired: row.expired.unsigned_abs(),
        next_due: row.next_due.and_then(seconds),
        quarantined: row.quarantined,
    })
}
