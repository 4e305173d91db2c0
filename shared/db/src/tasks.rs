//! Work that is waiting, parked or leased: the spine's own table (reliability.md 2, decisions 9.2 and 9.8).
//!
//! **Exclusive.** A claim makes a fresh random `lease_token`, the fencing token. Whoever settles, parks or releases a
//! task names the token; after a lease expired and the task was made ready again the token is gone, so a worker that
//! comes back from the dead changes no row. Settling deletes the row in the transaction that writes the
//! result: either both happen or neither.
//!
//! **Fair.** `turn` is start-time fair queueing. A task's turn is one more than the last that waits in its lane, and at
//! least the one in service: the highest in workers' hands, or the lowest that waits if that is higher, as a lane at its cap
//! stays behind without holding the others' time back. Claims go by turn. A lane with ten thousand tasks thus stands in ten thousand
//! consecutive turns, and a lane that comes later stands in the turn that is served next: before it come at most the one
//! task of each other lane in that same turn. An empty queue takes its turn from a sequence of which every enqueue and
//! every awakening draws, so no turn is above the sequence and an idle lane saves up no credit. Two transactions that
//! enqueue in one lane at once may share a turn; that costs the others one place each and no order is promised.
//!
//! **Without a past.** Searches by turn begin at the queue's floor ([`survey`]), below which nothing lives, and rows are named by
//! `id = ANY(…)` also where a join says as much: in a table that was empty when it was last analyzed the planner looks nothing up,
//! it reads the whole primary key. So what a queue costs does not grow with what was done while some transaction stays open.
//!
//! **Contained.** A task whose lease ran out twice may be what killed its workers: a *suspect*, claimed only by a worker
//! that asks for suspects and then has nothing else in hand, so that it takes no further neighbours down.
//!
//! **Patient.** A task may be claimed a number of times in all (reliability.md 2). So that a database that goes and comes for a
//! minute does not use them up, each claim after a lease that ran out waits longer than the one before ([`promote`]).
//!
//! **Timed by one clock.** Leases and due times are set and judged by the database's `now()` alone.

mod claim;
mod floors;

use std::time::Duration;

use domain::message::{Queue, TaskKind};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::error::known;

pub use claim::{Claim, LaneCap, Wanted, claim};
pub use floors::{Floors, survey};

/// A task to be.
#[derive(Clone, Debug)]
pub struct NewTask<'a> {
    /// That of the record it works on.
    pub id: Uuid,
    /// Where it waits.
    pub queue: Queue,
    /// What it works on.
    pub kind: TaskKind,
    /// Whom to be fair to: an account, or a destination.
    pub lane: &'a str,
    /// `None`: ready at once, announced by an outbox row. Else parked for this long.
    pub due_in: Option<Duration>,
    /// W3C trace context of what causes it.
    pub traceparent: Option<&'a str>,
}

/// What a heartbeat found of a lease that is still held; a lease that is missing from the answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The task.
    pub id: Uuid,
    /// Whether the lease was extended; not so when a transaction has the row locked, the settling one most likely.
    pub renewed: bool,
    /// Whether somebody asked to stop it.
    pub cancel_requested: bool,
}

/// What [`promote`] did and what it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promoted {
    /// Parked tasks whose time had come.
    pub due: u64,
    /// Leases that had run out.
    pub expired: u64,
    /// How long until the next parked task is due.
    pub next_due: Option<Duration>,
    /// Whether a suspect was ready before.
    pub suspects: bool,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It may be claimed.
    Ready,
    /// It waits for its time.
    Parked,
    /// A worker has it.
    Leased,
}

impl std::str::FromStr for TaskState {
    type Err = ();

    fn from_str(name: &str) -> std::result::Result<Self, ()> {
        match name {
            "ready" => Ok(TaskState::Ready),
            "parked" => Ok(TaskState::Parked),
            "leased" => Ok(TaskState::Leased),
            _ => Err(()),
        }
    }
}

/// How full a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueStats {
    /// Tasks that may be claimed.
    pub ready: i64,
    /// Tasks that wait for their time.
    pub parked: i64,
    /// Tasks in workers' hands.
    pub leased: i64,
    /// How long the longest waiting ready task has been due.
    pub oldest_ready: Option<Duration>,
}

/// Adds a task, and the outbox row that announces it if it is ready. The caller nudges its relay after the commit.
#[tracing::instrument(skip_all, name = "db.task.enqueue")]
pub async fn enqueue(conn: &mut PgConnection, task: &NewTask<'_>) -> Result<()> {
    insert(conn, task, None).await
}

/// [`enqueue`] where the lane does not tell whose work it is: `tenant` does, and has a share of slots over all its lanes
/// ([`LaneCap::tenant_cap`]).
#[tracing::instrument(skip_all, name = "db.task.enqueue_for")]
pub async fn enqueue_for(conn: &mut PgConnection, task: &NewTask<'_>, tenant: &str) -> Result<()> {
    insert(conn, task, Some(tenant)).await
}

/// The query that `$then!` makes of the table expressions `$before` and those that add a task and announce it if it is ready, so
/// that a record and its task can be one statement. Its arguments begin with the seven of the task: id, queue, kind, lane, seconds
/// until it is due, trace context, tenant.
macro_rules! with_task {
    ($then:ident! [$($before:literal),*] $($rest:tt)*) => {
        $then!(
            [$($before,)*
            r#" place AS (
                   SELECT greatest(
                       (SELECT max(turn) + 1 FROM tasks
                        WHERE queue = $2 AND lane = $4 AND state = 'ready' AND turn >= floor),
                       coalesce(greatest(
                           (SELECT max(turn) FROM tasks WHERE queue = $2 AND state = 'leased' AND turn >= floor),
                           (SELECT min(turn) FROM tasks WHERE queue = $2 AND state = 'ready' AND turn >= floor)
                       ), drawn)
                   ) AS turn
                   FROM nextval('task_turns') AS drawn, task_floor($2) AS floor
               ), task AS (
                   INSERT INTO tasks (id, queue, kind, lane, state, turn, due_at, traceparent, tenant)
                   SELECT $1, $2, $3, $4, CASE WHEN $5::float8 IS NULL THEN 'ready' ELSE 'parked' END, turn,
                          now() + make_interval(secs => coalesce($5, 0)), $6, $7
                   FROM place
               ), announced AS (
                   INSERT INTO outbox (queue, task_id, traceparent) SELECT $2, $1, $6 WHERE $5 IS NULL
               )"#]
            $($rest)*
        )
    };
}
pub(crate) use with_task;

/// A query of no rows behind table expressions.
macro_rules! just {
    ([$($with:literal),*] $($argument:expr),*) => { sqlx::query!($($with +)* " SELECT", $($argument),*) };
}

async fn insert(conn: &mut PgConnection, task: &NewTask<'_>, tenant: Option<&str>) -> Result<()> {
    with_task!(
        just! ["WITH"]
        task.id,
        task.queue.as_str(),
        task.kind.as_str(),
        task.lane,
        task.due_in.map(|delay| delay.as_secs_f64()),
        task.traceparent,
        tenant
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Extends the leases `(task, token)` to `lease` from now, all in one statement.
///
/// A row that is locked is skipped instead of waited for: one slow finishing transaction must not cost its process the
/// other leases.
#[tracing::instrument(skip_all, name = "db.task.heartbeat")]
pub async fn heartbeat(conn: &mut PgConnection, leases: &[(Uuid, Uuid)], lease: Duration) -> Result<Vec<Beat>> {
    let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = leases.iter().copied().unzip();
    let beats = sqlx::query_as!(
        Beat,
        r#"WITH held AS (
               SELECT * FROM unnest($1::uuid[], $2::uuid[]) AS held(id, token)
           ), mine AS (
               SELECT t.id FROM tasks t JOIN held ON t.id = held.id AND t.lease_token = held.token
               WHERE t.id = ANY($1) FOR UPDATE OF t SKIP LOCKED
           ), renewed AS (
               UPDATE tasks SET lease_until = now() + make_interval(secs => $3)
               WHERE id = ANY(ARRAY(SELECT id FROM mine))
               RETURNING id
           )
           SELECT t.id, renewed.id IS NOT NULL AS "renewed!", t.cancel_requested
           FROM tasks t JOIN held ON t.id = held.id AND t.lease_token = held.token
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

/// Which of `ids` somebody asked to stop.
#[tracing::instrument(skip_all, name = "db.task.cancel_requests")]
pub async fn cancel_requests(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<Uuid>> {
    let found = sqlx::query_scalar!("SELECT id FROM tasks WHERE id = ANY($1) AND cancel_requested", ids)
        .fetch_all(conn)
        .await?;
    Ok(found)
}

/// Ends a task, as part of every finishing transaction; `false`: the lease is somebody else's, roll back.
#[tracing::instrument(skip_all, name = "db.task.settle")]
pub async fn settle(conn: &mut PgConnection, id: Uuid, lease_token: Uuid) -> Result<bool> {
    let done =
        sqlx::query!("DELETE FROM tasks WHERE id = $1 AND lease_token = $2", id, lease_token).execute(conn).await?;
    Ok(done.rows_affected() == 1)
}

/// Parks a task that did not work out, to be tried again `after` this long; the claim counts. `false`: not ours any more.
#[tracing::instrument(skip_all, name = "db.task.retry")]
pub async fn retry(conn: &mut PgConnection, id: Uuid, lease_token: Uuid, after: Duration) -> Result<bool> {
    park(conn, id, lease_token, after, false).await
}

/// Parks a task that went as planned and goes on `after` this long, as a poll does; claims count from zero again. One that
/// somebody asked to stop or woke ([`wake`]) meanwhile is ready at once, announced by an outbox row. `false`: not ours any more.
#[tracing::instrument(skip_all, name = "db.task.reschedule")]
pub async fn reschedule(conn: &mut PgConnection, id: Uuid, lease_token: Uuid, after: Duration) -> Result<bool> {
    park(conn, id, lease_token, after, true).await
}

async fn park(
    conn: &mut PgConnection,
    id: Uuid,
    lease_token: Uuid,
    after: Duration,
    went_as_planned: bool,
) -> Result<bool> {
    let parked = sqlx::query_scalar!(
        r#"WITH parked AS (
               UPDATE tasks SET state = CASE WHEN $4 AND (cancel_requested OR woken) THEN 'ready' ELSE 'parked' END,
                                due_at = now() + make_interval(secs => CASE WHEN $4 AND (cancel_requested OR woken) THEN 0
                                                                            ELSE $3::float8 END),
                                claims = CASE WHEN $4 THEN 0 ELSE claims END,
                                expired = CASE WHEN $4 THEN 0 ELSE expired END,
                                lease_token = NULL, lease_until = NULL, lease_owner = NULL
               WHERE id = $1 AND lease_token = $2
               RETURNING id, queue, traceparent, state
           ), announced AS (
               INSERT INTO outbox (queue, task_id, traceparent) SELECT queue, id, traceparent FROM parked WHERE state = 'ready'
           )
           SELECT EXISTS (SELECT FROM parked) AS "parked!""#,
        id,
        lease_token,
        after.as_secs_f64(),
        went_as_planned,
    )
    .fetch_one(conn)
    .await?;
    Ok(parked)
}

/// [`reschedule`] of many at once, each `(task, token)` after its own time; those that were parked. What is not among them is not
/// ours any more, or another transaction has its row at this moment: nobody waits for one.
#[tracing::instrument(skip_all, name = "db.task.reschedule_all")]
pub async fn reschedule_all(conn: &mut PgConnection, plans: &[(Uuid, Uuid, Duration)]) -> Result<Vec<Uuid>> {
    let ids: Vec<Uuid> = plans.iter().map(|(id, _, _)| *id).collect();
    let tokens: Vec<Uuid> = plans.iter().map(|(_, token, _)| *token).collect();
    let after: Vec<f64> = plans.iter().map(|(_, _, after)| after.as_secs_f64()).collect();
    let parked = sqlx::query_scalar!(
        r#"WITH mine AS (
               SELECT t.id, plan.after
               FROM tasks t JOIN unnest($1::uuid[], $2::uuid[], $3::float8[]) AS plan(id, token, after)
                    ON plan.id = t.id AND plan.token = t.lease_token
               WHERE t.id = ANY($1) FOR UPDATE OF t SKIP LOCKED
           ), parked AS (
               UPDATE tasks SET state = CASE WHEN cancel_requested OR woken THEN 'ready' ELSE 'parked' END,
                                due_at = now() + make_interval(secs => CASE WHEN cancel_requested OR woken THEN 0
                                                                            ELSE mine.after END),
                                claims = 0, expired = 0, lease_token = NULL, lease_until = NULL, lease_owner = NULL
               FROM mine WHERE tasks.id = mine.id AND tasks.id = ANY($1)
               RETURNING tasks.id, queue, traceparent, state
           ), announced AS (
               INSERT INTO outbox (queue, task_id, traceparent) SELECT queue, id, traceparent FROM parked WHERE state = 'ready'
           )
           SELECT id FROM parked"#,
        &ids,
        &tokens,
        &after,
    )
    .fetch_all(conn)
    .await?;
    Ok(parked)
}

/// Hands a task back untouched, as at shutdown: the claim does not count, it keeps its turn, and an outbox row announces
/// it to the others. `false`: not ours any more.
#[tracing::instrument(skip_all, name = "db.task.release")]
pub async fn release(conn: &mut PgConnection, id: Uuid, lease_token: Uuid) -> Result<bool> {
    let announced = sqlx::query!(
        r#"WITH released AS (
               UPDATE tasks SET state = 'ready', claims = claims - 1,
                                lease_token = NULL, lease_until = NULL, lease_owner = NULL
               WHERE id = $1 AND lease_token = $2
               RETURNING id, queue, traceparent
           )
           INSERT INTO outbox (queue, task_id, traceparent) SELECT queue, id, traceparent FROM released"#,
        id,
        lease_token,
    )
    .execute(conn)
    .await?;
    Ok(announced.rows_affected() == 1)
}

/// Makes up to `limit` due and up to `limit` lease-expired tasks of a queue ready: what was due with a fresh turn, what a
/// worker lost in the turn that it had. What `floors` say is too old to be there is not looked for.
///
/// What a worker lost is parked first where `pauses` say so: for the first of them after its first claim, and so on, for the last
/// of them after any later one.
///
/// Rows that another worker is waking, or that are being settled at this moment, are skipped.
#[tracing::instrument(skip_all, name = "db.task.promote")]
pub async fn promote(
    conn: &mut PgConnection,
    queue: Queue,
    limit: usize,
    floors: &Floors,
    pauses: &[Duration],
) -> Result<Promoted> {
    let pauses: Vec<f64> = pauses.iter().map(Duration::as_secs_f64).collect();
    let row = sqlx::query!(
        r#"WITH due AS MATERIALIZED (
               SELECT id, lane FROM tasks WHERE queue = $1 AND state = 'parked' AND due_at BETWEEN $3 AND now()
               ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED
           ), expired AS MATERIALIZED (
               SELECT id, coalesce(($4::float8[])[least(claims, cardinality($4))], 0) AS pause
               FROM tasks WHERE queue = $1 AND lease_until BETWEEN $3 AND now()
               ORDER BY lease_until LIMIT $2 FOR UPDATE SKIP LOCKED
           ), awake AS MATERIALIZED (
               SELECT id, lane, nextval('task_turns') AS drawn FROM due
           ), before AS (
               SELECT lane, greatest(
                   (SELECT max(turn) FROM tasks t
                    WHERE t.queue = $1 AND t.lane = awake.lane AND t.state = 'ready' AND t.turn >= floor),
                   coalesce(greatest(
                       (SELECT max(turn) FROM tasks WHERE queue = $1 AND state = 'leased' AND turn >= floor),
                       (SELECT min(turn) FROM tasks WHERE queue = $1 AND state = 'ready' AND turn >= floor)
                   ), min(drawn)) - 1
               ) AS turn
               FROM awake, task_floor($1) AS floor GROUP BY lane, floor
           ), placed AS (
               SELECT id, before.turn + row_number() OVER (PARTITION BY lane ORDER BY drawn) AS turn
               FROM awake JOIN before USING (lane)
           ), woken AS (
               UPDATE tasks SET state = 'ready', turn = placed.turn
               FROM placed WHERE tasks.id = placed.id AND tasks.id = ANY(ARRAY(SELECT id FROM due))
           ), freed AS (
               UPDATE tasks SET state = CASE WHEN pause > 0 THEN 'parked' ELSE 'ready' END,
                                due_at = CASE WHEN pause > 0 THEN now() + make_interval(secs => pause) ELSE due_at END,
                                expired = tasks.expired + 1,
                                lease_token = NULL, lease_until = NULL, lease_owner = NULL
               FROM expired WHERE tasks.id = expired.id AND tasks.id = ANY(ARRAY(SELECT id FROM expired))
           )
           SELECT (SELECT count(*) FROM due) AS "due!", (SELECT count(*) FROM expired) AS "expired!",
                  (SELECT extract(epoch FROM min(due_at) - now())::float8 FROM tasks
                   WHERE queue = $1 AND state = 'parked' AND due_at > now()) AS next_due,
                  EXISTS (SELECT FROM tasks WHERE queue = $1 AND state = 'ready' AND suspect) AS "suspects!""#,
        queue.as_str(),
        count(limit),
        floors.since,
        &pauses,
    )
    .fetch_one(conn)
    .await?;
    Ok(Promoted {
        due: row.due.unsigned_abs(),
        expired: row.expired.unsigned_abs(),
        next_due: row.next_due.and_then(seconds),
        suspects: row.suspects,
    })
}

/// Where a task stands, its row locked until the transaction ends: whoever has it keeps it, and nobody takes it.
#[tracing::instrument(skip_all, name = "db.task.lock")]
pub async fn lock(conn: &mut PgConnection, id: Uuid) -> Result<Option<TaskState>> {
    let state =
        sqlx::query_scalar!("SELECT state FROM tasks WHERE id = $1 FOR UPDATE", id).fetch_optional(conn).await?;
    state.map(|state| known("tasks.state", &state)).transpose()
}

/// Asks for a task that nobody has to be stopped by a worker: it is ready at once, announced by an outbox row, and whoever
/// claims it is told. False: it is leased, or gone.
#[tracing::instrument(skip_all, name = "db.task.wake_to_cancel")]
pub async fn wake_to_cancel(conn: &mut PgConnection, id: Uuid) -> Result<bool> {
    let announced = sqlx::query!(
        "WITH woken AS (
             UPDATE tasks SET state = 'ready', cancel_requested = true, due_at = now(),
                    turn = greatest(turn, task_floor(queue))
             WHERE id = $1 AND state IN ('ready', 'parked')
             RETURNING id, queue, traceparent
         )
         INSERT INTO outbox (queue, task_id, traceparent) SELECT queue, id, traceparent FROM woken",
        id,
    )
    .execute(conn)
    .await?;
    Ok(announced.rows_affected() == 1)
}

/// Wakes a task that waits for what this transaction does: parked it is ready at once, with a fresh turn and announced by an
/// outbox row; in a worker's hands it is not parked again before it was looked at once more ([`reschedule`]). Of a wake-up and a
/// park at the same moment one waits for the other's row, so that none is lost. A task that is gone needs no waking.
#[tracing::instrument(skip_all, name = "db.task.wake")]
pub async fn wake(conn: &mut PgConnection, id: Uuid) -> Result<()> {
    sqlx::query!(
        "WITH woken AS (
             UPDATE tasks SET woken = true,
                    state = CASE state WHEN 'parked' THEN 'ready' ELSE state END,
                    due_at = CASE state WHEN 'parked' THEN now() ELSE due_at END,
                    turn = CASE state WHEN 'parked' THEN greatest(
                               (SELECT max(t.turn) + 1 FROM tasks t
                                WHERE t.queue = tasks.queue AND t.lane = tasks.lane AND t.state = 'ready'
                                  AND t.turn >= task_floor(tasks.queue)),
                               coalesce(greatest(
                                   (SELECT max(t.turn) FROM tasks t
                                    WHERE t.queue = tasks.queue AND t.state = 'leased' AND t.turn >= task_floor(tasks.queue)),
                                   (SELECT min(t.turn) FROM tasks t
                                    WHERE t.queue = tasks.queue AND t.state = 'ready' AND t.turn >= task_floor(tasks.queue))
                               ), drawn)
                           ) ELSE turn END
             FROM nextval('task_turns') AS drawn
             WHERE id = $1 AND (state = 'parked' OR state = 'leased' AND NOT woken)
             RETURNING id, queue, traceparent, state
         )
         INSERT INTO outbox (queue, task_id, traceparent) SELECT queue, id, traceparent FROM woken WHERE state = 'ready'",
        id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Asks for a task to be stopped, and tells where it stood. The row stays locked until the transaction ends.
///
/// Ready or parked: nobody has it, and the row is gone, so the caller ends the record in the same transaction. Leased: the
/// worker is told, and ends the record itself. `None`: it has ended already.
#[tracing::instrument(skip_all, name = "db.task.request_cancel")]
pub async fn request_cancel(conn: &mut PgConnection, id: Uuid) -> Result<Option<TaskState>> {
    let Some(state) = lock(conn, id).await? else { return Ok(None) };
    match state {
        TaskState::Ready | TaskState::Parked => {
            sqlx::query!("DELETE FROM tasks WHERE id = $1", id).execute(conn).await?
        }
        TaskState::Leased => {
            sqlx::query!("UPDATE tasks SET cancel_requested = true WHERE id = $1", id).execute(conn).await?
        }
    };
    Ok(Some(state))
}

/// How full a queue is.
#[tracing::instrument(skip_all, name = "db.task.stats")]
pub async fn stats(conn: &mut PgConnection, queue: Queue) -> Result<QueueStats> {
    let row = sqlx::query!(
        r#"SELECT count(*) FILTER (WHERE state = 'ready') AS "ready!", count(*) FILTER (WHERE state = 'parked') AS "parked!",
                  count(*) FILTER (WHERE state = 'leased') AS "leased!",
                  extract(epoch FROM now() - min(due_at) FILTER (WHERE state = 'ready'))::float8 AS oldest_ready
           FROM tasks WHERE queue = $1"#,
        queue.as_str(),
    )
    .fetch_one(conn)
    .await?;
    Ok(QueueStats {
        ready: row.ready,
        parked: row.parked,
        leased: row.leased,
        oldest_ready: row.oldest_ready.and_then(seconds),
    })
}

/// A number for a `bigint` parameter.
fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A non-negative duration out of the database's seconds.
pub(crate) fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

#[cfg(test)]
mod tests;
