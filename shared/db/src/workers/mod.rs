//! The workers of each queue, and what work waits for (docs/reference/status.md).
//!
//! **Guarantee.** A worker that claims is seen: its row is at most a few seconds old. Times are those of the database's clock.
//!
//! **Mechanism.** The loop that claims writes the row, so that a loop that hangs is not seen. Rows that no worker renews are
//! deleted after an hour by any other worker; the last row of a queue stays for as long as nobody works at all.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use domain::Timestamp;
use domain::message::Queue;
use domain::queue::{QueueState, QueueStatus, WaitCause, WaitingFor};
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::Result;
use crate::error::known;
use crate::tasks::{TaskState, seconds};

/// A worker of one queue.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a> {
    /// The queue whose tasks it claims.
    pub queue: Queue,
    /// Its name as the holder of leases, unique for each start of a process.
    pub instance: &'a str,
    /// Version of its build.
    pub version: &'a str,
    /// Number of tasks that it runs at once, at most.
    pub slots: usize,
    /// Number of tasks that it runs.
    pub busy: usize,
}

/// Records that a worker claims, and forgets those that have not for an hour.
#[tracing::instrument(skip_all, name = "db.worker.report")]
pub async fn report(conn: &mut PgConnection, worker: &Worker<'_>) -> Result<()> {
    let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    sqlx::query!(
        "WITH gone AS (
             DELETE FROM workers WHERE seen_at < now() - interval '1 hour' AND NOT (queue = $1 AND instance = $2)
         )
         INSERT INTO workers (queue, instance, version, slots, busy) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (queue, instance) DO UPDATE
         SET seen_at = now(), version = excluded.version, slots = excluded.slots, busy = excluded.busy",
        worker.queue.as_str(),
        worker.instance,
        worker.version,
        number(worker.slots),
        number(worker.busy),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The versions of the workers that were seen within a minute, each once.
#[tracing::instrument(skip_all, name = "db.worker.versions")]
pub async fn versions(conn: &mut PgConnection) -> Result<Vec<String>> {
    let versions = sqlx::query_scalar!(
        "SELECT DISTINCT version FROM workers WHERE seen_at > now() - interval '1 minute' ORDER BY version"
    );
    Ok(versions.fetch_all(conn).await?)
}

/// Every queue at one moment.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    queues: HashMap<Queue, Observed>,
    /// The workers that were seen lately, of any queue.
    instances: HashSet<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    workers: u32,
    last_seen_at: Option<Timestamp>,
    /// Time since a worker was last seen.
    unseen_for: Option<Duration>,
    oldest_waiting: Duration,
}

impl Queues {
    /// Each queue as users see it, in the order of the contract.
    pub fn status(&self) -> Vec<QueueStatus> {
        let status = |&queue: &Queue| {
            let observed = self.observed(queue);
            QueueStatus {
                queue,
                state: self.state(queue),
                workers: observed.workers,
                last_seen_at: observed.last_seen_at,
                oldest_waiting_seconds: (observed.oldest_waiting.as_secs() + 5) / 10 * 10,
            }
        };
        Queue::ALL.iter().map(status).collect()
    }

    /// For how long no worker of a silent queue was seen; zero for any other queue. If none ever was, as long as its oldest work
    /// waits.
    pub fn silent_for(&self, queue: Queue) -> Duration {
        let observed = self.observed(queue);
        match self.state(queue) {
            QueueState::Silent => observed.unseen_for.unwrap_or(observed.oldest_waiting),
            QueueState::Ok | QueueState::Slow => Duration::ZERO,
        }
    }

    /// The cause of the wait of ready work of the queue, since `since`.
    pub fn ready(&self, queue: Queue, since: Timestamp) -> WaitingFor {
        if self.state(queue) == QueueState::Silent {
            self.worker(queue, since)
        } else {
            waiting(WaitCause::Slot, since)
        }
    }

    fn worker(&self, queue: Queue, since: Timestamp) -> WaitingFor {
        WaitingFor { last_seen_at: self.observed(queue).last_seen_at, ..waiting(WaitCause::Worker, since) }
    }

    fn state(&self, queue: Queue) -> QueueState {
        let observed = self.observed(queue);
        QueueState::new(queue, observed.workers, observed.oldest_waiting)
    }

    fn observed(&self, queue: Queue) -> Observed {
        self.queues.get(&queue).copied().unwrap_or_default()
    }

    fn of_task(&self, task: &TaskRow) -> Result<Option<WaitingFor>> {
        let queue = known("task_queue.queue", &task.queue)?;
        let (since, expired) = (Timestamp::from(task.since), task.is_expired);
        let is_silent = self.state(queue) == QueueState::Silent;
        Ok(match known("task_queue.state", &task.state)? {
            TaskState::Leased if !expired => None,
            TaskState::Leased => {
                let is_seen = task.lease_owner.as_ref().is_some_and(|owner| self.instances.contains(owner));
                Some(if is_seen { self.ready(queue, since) } else { self.worker(queue, since) })
            }
            TaskState::Ready => Some(self.ready(queue, since)),
            TaskState::Scheduled if is_silent => Some(self.worker(queue, since)),
            TaskState::Scheduled if task.has_failed => {
                let retry_at = Some(Timestamp::from(task.due_at));
                Some(WaitingFor { retry_at, ..waiting(WaitCause::Retry, since) })
            }
            TaskState::Scheduled if task.is_submitted => Some(waiting(WaitCause::Provider, since)),
            // A pause between two steps.
            TaskState::Scheduled => Some(waiting(WaitCause::Slot, since)),
        })
    }
}

fn waiting(what: WaitCause, since: Timestamp) -> WaitingFor {
    WaitingFor { what, since, last_seen_at: None, retry_at: None }
}

/// Reads the state of every queue. A worker that was not seen for `silent_after` does not count.
#[tracing::instrument(skip_all, name = "db.worker.queues")]
pub async fn queues(conn: &mut PgConnection, silent_after: Duration) -> Result<Queues> {
    let mut queues: HashMap<Queue, Observed> = HashMap::new();
    let mut instances = HashSet::new();
    let workers = sqlx::query!(
        r#"SELECT queue, instance, seen_at, extract(epoch FROM now() - seen_at)::float8 AS "age!" FROM workers"#
    )
    .fetch_all(&mut *conn)
    .await?;
    for worker in workers {
        // A later release may have queues that this one does not know.
        let Ok(queue) = worker.queue.parse() else { continue };
        let age = seconds(worker.age).unwrap_or_default();
        let observed = queues.entry(queue).or_default();
        if age <= silent_after {
            observed.workers += 1;
            instances.insert(worker.instance);
        }
        observed.last_seen_at = observed.last_seen_at.max(Some(worker.seen_at.into()));
        observed.unseen_for = Some(observed.unseen_for.map_or(age, |least| least.min(age)));
    }
    let waiting = sqlx::query!(
        r#"SELECT queue, extract(epoch FROM now() - min(due_at))::float8 AS "oldest!"
           FROM task_queue WHERE state = 'ready' GROUP BY queue"#
    )
    .fetch_all(conn)
    .await?;
    for row in waiting {
        if let Ok(queue) = row.queue.parse() {
            queues.entry(queue).or_default().oldest_waiting = seconds(row.oldest).unwrap_or_default();
        }
    }
    Ok(Queues { queues, instances })
}

struct TaskRow {
    record: Uuid,
    queue: String,
    state: String,
    /// When it began to wait in this state, as far as is known.
    since: DateTime<Utc>,
    due_at: DateTime<Utc>,
    has_failed: bool,
    is_expired: bool,
    is_submitted: bool,
    lease_owner: Option<String>,
}

/// Causes of the waits of the jobs and Recipe runs of these ids. Those that are in progress or over are missing from the result.
///
/// A Recipe run whose image is being made waits for what the job of the image waits for.
#[tracing::instrument(skip_all, name = "db.worker.waiting")]
pub async fn waiting_for(conn: &mut PgConnection, queues: &Queues, ids: &[Uuid]) -> Result<HashMap<Uuid, WaitingFor>> {
    let rows = sqlx::query_as!(
        TaskRow,
        r#"WITH wanted AS (
               SELECT id AS record, id AS task, false AS is_child FROM unnest($1::uuid[]) AS id
               UNION ALL
               SELECT o.run_id, o.job_id, true FROM recipe_run_outputs o
               WHERE o.run_id = ANY($1) AND o.status = 'running' AND o.job_id IS NOT NULL
           )
           SELECT w.record AS "record!", t.queue, t.state,
                  CASE WHEN t.state = 'leased' THEN t.lease_until
                       WHEN t.state = 'ready' THEN t.due_at
                       ELSE coalesce(o.submitted_at, t.created_at) END AS "since!",
                  t.due_at, t.claims > 0 AS "has_failed!", coalesce(t.lease_until < now(), false) AS "is_expired!",
                  o.submitted_at IS NOT NULL AS "is_submitted!", t.lease_owner
           FROM wanted w
           JOIN task_queue t ON t.id = w.task
           LEFT JOIN LATERAL (
               SELECT max(submitted_at) AS submitted_at FROM job_outputs
               WHERE job_id = w.task AND state = 'submitted'
           ) AS o ON true
           ORDER BY w.is_child"#,
        ids
    )
    .fetch_all(conn)
    .await?;
    let mut waits = HashMap::new();
    for row in rows {
        match queues.of_task(&row)? {
            Some(waits_for) => waits.insert(row.record, waits_for),
            // The job of a run is in progress, and so is the run.
            None => waits.remove(&row.record),
        };
    }
    Ok(waits)
}

#[cfg(test)]
mod tests;
