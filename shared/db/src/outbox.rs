//! The outbox: wake-up messages that the broker has not confirmed yet (docs/reliability.md#outbox).
//!
//! A row is committed with the task that it announces ([`crate::tasks::enqueue`]) and deleted when the broker has confirmed it.
//! A wake-up message is therefore published at least once, however often relay, broker or database fail. Relays share the work
//! by leasing rows for a few seconds. No transaction is open while they publish.

use std::time::Duration;

use domain::message::Queue;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::error::known;
use crate::tasks::seconds;

/// A wake-up message to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeUpRow {
    /// Id of the row.
    pub id: i64,
    /// The queue in which the task waits.
    pub queue: Queue,
    /// Id of the task.
    pub task: Uuid,
    /// W3C trace context of the work that enqueued the task.
    pub traceparent: Option<String>,
}

/// Result of [`claim_batch`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Rows to publish, oldest first.
    pub rows: Vec<WakeUpRow>,
    /// Whether more rows may be waiting.
    pub full: bool,
}

/// Size and age of the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OutboxStats {
    /// Number of unconfirmed rows.
    pub rows: i64,
    /// Age of the oldest row.
    pub oldest: Option<Duration>,
}

/// Leases up to `limit` rows with ids from `mark` on for `hold`, in one short statement.
///
/// Rows whose task is no longer ready are deleted instead: the task is leased or settled. A backlog that accumulated while the
/// broker was down is thus not replayed to workers that did the work long ago. Queues that this build does not know are left to
/// a build that does. Whether a task is ready is looked up for each row: for an `EXISTS`, the planner may build one list of all
/// ready tasks.
#[tracing::instrument(skip_all, name = "db.outbox.claim_batch")]
pub async fn claim_batch(conn: &mut PgConnection, mark: i64, limit: u16, hold: Duration) -> Result<Batch> {
    let queues: Vec<&str> = Queue::ALL.iter().map(|queue| queue.as_str()).collect();
    let rows = sqlx::query!(
        r#"WITH batch AS MATERIALIZED (
               SELECT o.id, o.queue, o.task_id, o.traceparent,
                      coalesce((SELECT t.state = 'ready' FROM task_queue t WHERE t.id = o.task_id), false) AS needed
               FROM outbox o
               WHERE o.id >= $4 AND (o.claimed_until IS NULL OR o.claimed_until <= now()) AND o.queue = ANY($3::text[])
               ORDER BY o.id LIMIT $1 FOR UPDATE OF o SKIP LOCKED
           ), dropped AS (
               DELETE FROM outbox WHERE id = ANY(ARRAY(SELECT id FROM batch WHERE NOT needed))
           ), claimed AS (
               UPDATE outbox SET claimed_until = now() + make_interval(secs => $2)
               WHERE id = ANY(ARRAY(SELECT id FROM batch WHERE needed))
           )
           SELECT id, queue, task_id, traceparent, needed AS "needed!" FROM batch ORDER BY id"#,
        i64::from(limit),
        hold.as_secs_f64(),
        &queues as &[&str],
        mark,
    )
    .fetch_all(conn)
    .await?;
    let full = rows.len() >= usize::from(limit);
    let rows = rows
        .into_iter()
        .filter(|row| row.needed)
        .map(|row| {
            Ok(WakeUpRow {
                id: row.id,
                queue: known("outbox.queue", &row.queue)?,
                task: row.task_id,
                traceparent: row.traceparent,
            })
        })
        .collect::<Result<_>>()?;
    Ok(Batch { rows, full })
}

/// The lowest existing id from `mark` on; when there is none, the last id that was drawn. A search that starts lower also
/// reads rows that were deleted while a transaction stayed open ([`crate::tasks::refresh_low_water`]).
#[tracing::instrument(skip_all, name = "db.outbox.lowest")]
pub async fn lowest(conn: &mut PgConnection, mark: i64) -> Result<i64> {
    let lowest = sqlx::query_scalar!(
        r#"SELECT coalesce((SELECT min(id) FROM outbox WHERE id >= $1), pg_sequence_last_value('outbox_id_seq'), 0) AS "lowest!""#,
        mark,
    );
    Ok(lowest.fetch_one(conn).await?)
}

/// Deletes rows that the broker has confirmed.
#[tracing::instrument(skip_all, name = "db.outbox.confirm")]
pub async fn confirm(conn: &mut PgConnection, ids: &[i64]) -> Result<()> {
    sqlx::query!("DELETE FROM outbox WHERE id = ANY($1)", ids).execute(conn).await?;
    Ok(())
}

/// Reads the size and age of the outbox.
#[tracing::instrument(skip_all, name = "db.outbox.stats")]
pub async fn stats(conn: &mut PgConnection) -> Result<OutboxStats> {
    let row = sqlx::query!(
        r#"SELECT count(*) AS "rows!", extract(epoch FROM now() - min(created_at))::float8 AS oldest FROM outbox"#
    )
    .fetch_one(conn)
    .await?;
    Ok(OutboxStats { rows: row.rows, oldest: row.oldest.and_then(seconds) })
}
