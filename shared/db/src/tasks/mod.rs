//! The task queue: tasks that are ready, scheduled or leased (docs/reliability.md#tasks-and-leases).
//!
//! **Exclusive.** A claim draws a random `lease_token`, the fencing token. Settling, rescheduling or releasing a task requires
//! it. After a lease expired and the task was made ready again, the token is gone, so a worker that resumes after a stall
//! changes no row. Settling deletes the row in the transaction that writes the result: either both happen or neither.
//!
//! **Fair.** `fair_seq`, the queue position, implements start-time fair queueing by fairness key. A task's position is one more
//! than the last one waiting with its key, and at least the position in service: the highest leased position, or the lowest
//! waiting one if that is higher, since a key at its cap stays behind without holding back the others. Claims go by position. A
//! key with ten thousand tasks thus has ten thousand consecutive positions, and a key that comes later gets the position that is
//! served next: at most one task of each other key at that same position comes before it. An empty queue takes its position from
//! a sequence, from which every enqueue and every wake-up draws, so no position is above the sequence and an idle key accumulates
//! no credit. Two transactions that enqueue with one key at the same time may get the same position. That costs the others one
//! place each, and no order is promised.
//!
//! **Independent of history.** Searches by position begin at the queue's low-water mark ([`refresh_low_water`]), below which no
//! live task is. Rows are named by `id = ANY(…)` even where a join would say the same: for a table that was empty when it was
//! last analyzed, the planner reads the whole primary key instead of looking up rows. The cost of a queue therefore does not grow
//! with the work done while some transaction stays open.
//!
//! **Quarantine.** A task whose lease expired twice may have killed its workers. Only a worker that asks for quarantined tasks
//! and has no other task in progress claims it, so that it affects no other task (docs/reliability.md#quarantine).
//!
//! **Limited.** The number of claims of a task is limited. So that a database that is unavailable on and off for a minute does
//! not use them up, each claim after an expired lease waits longer than the one before ([`promote`]).
//!
//! **One clock.** Leases and due times are set and checked by the database's `now()` only.

mod claim;
mod lease;
mod low_water;
mod promote;

use std::time::Duration;

use domain::message::{Queue, TaskKind};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::error::known;

pub use claim::{Claim, ClaimRequest, FairnessCaps, HeldKey, claim};
pub use lease::{Beat, cancel_requests, heartbeat, release, reschedule, reschedule_all, retry, settle, settle_all};
pub use low_water::{LowWaterMarks, refresh_low_water};
pub use promote::{Promoted, promote};

/// A task to enqueue.
#[derive(Clone, Debug)]
pub struct NewTask<'a> {
    /// Id of the record that it works on.
    pub id: Uuid,
    /// The queue in which it waits.
    pub queue: Queue,
    /// Objects that it works on.
    pub kind: TaskKind,
    /// The fairness key: an account or a destination.
    pub fairness_key: &'a str,
    /// `None`: ready at once. Otherwise scheduled for this long.
    pub due_in: Option<Duration>,
    /// W3C trace context of the work that enqueues it.
    pub traceparent: Option<&'a str>,
}

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// The task may be claimed.
    Ready,
    /// The task waits until it is due.
    Scheduled,
    /// A worker holds a lease on the task.
    Leased,
}

impl std::str::FromStr for TaskState {
    type Err = ();

    fn from_str(name: &str) -> std::result::Result<Self, ()> {
        match name {
            "ready" => Ok(TaskState::Ready),
            "parked" => Ok(TaskState::Scheduled),
            "leased" => Ok(TaskState::Leased),
            _ => Err(()),
        }
    }
}

/// Size and age of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueStats {
    /// Number of ready tasks.
    pub ready: i64,
    /// Number of scheduled tasks.
    pub scheduled: i64,
    /// Number of leased tasks.
    pub leased: i64,
    /// How long the ready task that waits longest has been due.
    pub oldest_ready: Option<Duration>,
}

/// Enqueues a task. If it is ready, the caller announces it after the commit.
#[tracing::instrument(skip_all, name = "db.task.enqueue")]
pub async fn enqueue(conn: &mut PgConnection, task: &NewTask<'_>) -> Result<()> {
    insert(conn, task, None).await
}

/// [`enqueue`] for a queue whose fairness keys are not accounts: `tenant` names the account, whose tasks share a number of
/// slots over all fairness keys ([`FairnessCaps::tenant_cap`]).
#[tracing::instrument(skip_all, name = "db.task.enqueue_for")]
pub async fn enqueue_for(conn: &mut PgConnection, task: &NewTask<'_>, tenant: &str) -> Result<()> {
    insert(conn, task, Some(tenant)).await
}

/// [`jobs::insert`](crate::jobs::insert) enqueues the task of a job in the same way, as part of its own statement.
async fn insert(conn: &mut PgConnection, task: &NewTask<'_>, tenant: Option<&str>) -> Result<()> {
    sqlx::query!(
        "WITH place AS (
             SELECT greatest(
                 (SELECT max(fair_seq) + 1 FROM task_queue
                  WHERE queue = $2 AND fairness_key = $4 AND state = 'ready' AND fair_seq >= floor),
                 coalesce(greatest(
                     (SELECT max(fair_seq) FROM task_queue WHERE queue = $2 AND state = 'leased' AND fair_seq >= floor),
                     (SELECT min(fair_seq) FROM task_queue WHERE queue = $2 AND state = 'ready' AND fair_seq >= floor)
                 ), drawn)
             ) AS fair_seq
             FROM nextval('task_turns') AS drawn, task_floor($2) AS floor
         )
         INSERT INTO task_queue (id, queue, kind, fairness_key, state, fair_seq, due_at, traceparent, tenant)
         SELECT $1, $2, $3, $4, CASE WHEN $5::float8 IS NULL THEN 'ready' ELSE 'parked' END, fair_seq,
                now() + make_interval(secs => coalesce($5, 0)), $6, $7
         FROM place",
        task.id,
        task.queue.as_str(),
        task.kind.as_str(),
        task.fairness_key,
        task.due_in.map(|delay| delay.as_secs_f64()),
        task.traceparent,
        tenant,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Reads the state of a task and locks its row until the transaction ends: its lease holder keeps it, and no other worker
/// claims it.
#[tracing::instrument(skip_all, name = "db.task.lock")]
pub async fn lock(conn: &mut PgConnection, id: Uuid) -> Result<Option<TaskState>> {
    let state =
        sqlx::query_scalar!("SELECT state FROM task_queue WHERE id = $1 FOR UPDATE", id).fetch_optional(conn).await?;
    state.map(|state| known("task_queue.state", &state)).transpose()
}

/// Makes a task that no worker holds ready for a worker to cancel it; the caller announces it after the commit. The worker that
/// claims it sees the cancel request. `false`: the task is leased or does not exist anymore.
#[tracing::instrument(skip_all, name = "db.task.make_ready_to_cancel")]
pub async fn make_ready_to_cancel(conn: &mut PgConnection, id: Uuid) -> Result<bool> {
    let woken = sqlx::query!(
        "UPDATE task_queue SET state = 'ready', cancel_requested = true, due_at = now(),
                fair_seq = greatest(fair_seq, task_floor(queue))
         WHERE id = $1 AND state IN ('ready', 'parked')",
        id,
    )
    .execute(conn)
    .await?;
    Ok(woken.rows_affected() == 1)
}

/// Makes a task ready that waits for what this transaction does. A scheduled task becomes ready at once, with a new
/// position: then the result is `true`, and the caller announces it after the commit. A leased task is not rescheduled before it
/// has run once more ([`reschedule`]). A concurrent `make_ready` and `reschedule` lock the same row, so no wake-up is lost. A task
/// that no longer exists needs no wake-up.
#[tracing::instrument(skip_all, name = "db.task.make_ready")]
pub async fn make_ready(conn: &mut PgConnection, id: Uuid) -> Result<bool> {
    let is_ready = sqlx::query_scalar!(
        r#"UPDATE task_queue SET ready_requested = true,
                state = CASE state WHEN 'parked' THEN 'ready' ELSE state END,
                due_at = CASE state WHEN 'parked' THEN now() ELSE due_at END,
                fair_seq = CASE state WHEN 'parked' THEN greatest(
                           (SELECT max(t.fair_seq) + 1 FROM task_queue t
                            WHERE t.queue = task_queue.queue AND t.fairness_key = task_queue.fairness_key
                              AND t.state = 'ready' AND t.fair_seq >= task_floor(task_queue.queue)),
                           coalesce(greatest(
                               (SELECT max(t.fair_seq) FROM task_queue t
                                WHERE t.queue = task_queue.queue AND t.state = 'leased'
                                  AND t.fair_seq >= task_floor(task_queue.queue)),
                               (SELECT min(t.fair_seq) FROM task_queue t
                                WHERE t.queue = task_queue.queue AND t.state = 'ready'
                                  AND t.fair_seq >= task_floor(task_queue.queue))
                           ), drawn)
                       ) ELSE fair_seq END
         FROM nextval('task_turns') AS drawn
         WHERE id = $1 AND (state = 'parked' OR state = 'leased' AND NOT ready_requested)
         RETURNING state = 'ready' AS "is_ready!""#,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(is_ready.unwrap_or_default())
}

/// Requests the cancel of a task and returns its state. The row stays locked until the transaction ends.
///
/// Ready or scheduled: no worker has it and the row is deleted, so the caller ends the record in the same transaction.
/// Leased: the worker is notified, and ends the record itself. `None`: the task has ended already.
#[tracing::instrument(skip_all, name = "db.task.request_cancel")]
pub async fn request_cancel(conn: &mut PgConnection, id: Uuid) -> Result<Option<TaskState>> {
    let Some(state) = lock(conn, id).await? else { return Ok(None) };
    match state {
        TaskState::Ready | TaskState::Scheduled => {
            sqlx::query!("DELETE FROM task_queue WHERE id = $1", id).execute(conn).await?
        }
        TaskState::Leased => {
            sqlx::query!("UPDATE task_queue SET cancel_requested = true WHERE id = $1", id).execute(conn).await?
        }
    };
    Ok(Some(state))
}

/// Takes the task away from a worker whose lease has expired, if no worker of its queue was seen for `silent_after`. The caller
/// holds the row's lock.
#[tracing::instrument(skip_all, name = "db.task.release_abandoned")]
pub async fn release_abandoned(conn: &mut PgConnection, id: Uuid, silent_after: Duration) -> Result<()> {
    sqlx::query!(
        "UPDATE task_queue t SET state = 'ready', lease_token = NULL, lease_until = NULL, lease_owner = NULL
         WHERE t.id = $1 AND t.state = 'leased' AND t.lease_until < now()
           AND NOT EXISTS (SELECT FROM workers w WHERE w.queue = t.queue AND w.seen_at >= now() - make_interval(secs => $2))",
        id,
        silent_after.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Reads size and age of a queue.
#[tracing::instrument(skip_all, name = "db.task.stats")]
pub async fn stats(conn: &mut PgConnection, queue: Queue) -> Result<QueueStats> {
    let row = sqlx::query!(
        r#"SELECT count(*) FILTER (WHERE state = 'ready') AS "ready!", count(*) FILTER (WHERE state = 'parked') AS "parked!",
                  count(*) FILTER (WHERE state = 'leased') AS "leased!",
                  extract(epoch FROM now() - min(due_at) FILTER (WHERE state = 'ready'))::float8 AS oldest_ready
           FROM task_queue WHERE queue = $1"#,
        queue.as_str(),
    )
    .fetch_one(conn)
    .await?;
    Ok(QueueStats {
        ready: row.ready,
        scheduled: row.parked,
        leased: row.leased,
        oldest_ready: row.oldest_ready.and_then(seconds),
    })
}

/// Converts a number to a `bigint` parameter.
fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts the database's seconds to a duration; `None` if they are negative.
pub(crate) fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

#[cfg(test)]
mod tests;
