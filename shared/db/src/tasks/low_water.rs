//! Low-water marks: where a queue begins, so that dead rows before it are not read (docs/reliability.md#low-water-marks).
//!
//! **Reason.** While a transaction stays open, above all a dump, nothing that was deleted since it began leaves the indexes. A
//! search for the first task of a queue then reads past everything that was done meanwhile, at every enqueue and every claim,
//! and the service slows to a halt long before the dump ends.
//!
//! **Mechanism.** A *low-water mark* is a position below which no ready or leased task is. Each queue has one, in a sequence: a number
//! that is written and read outside of transactions. Every search by position begins there (`task_floor` in SQL).
//! [`refresh_low_water`] raises it: it finds the lowest live position from the mark on. What it found becomes the mark one refresh
//! later, so that a transaction that was about to commit a task meanwhile is not skipped. A task that becomes ready again
//! keeps a position for which the mark has waited (expired lease, release) or gets one above the mark (scheduled tasks).
//!
//! **Guarantee.** A mark that is too high hides tasks until the next refresh of everything and no longer. It can be too high
//! when a transaction enqueued and stayed open between two refreshes, when two refreshes overlapped, and in a restored dump,
//! whose sequences are newer than its rows. A long-lived task, such as the backlog of a fairness key at its cap or a run of several
//! minutes, keeps the mark where it is: what is done above it meanwhile is read past until that task ends.

use std::time::Duration;

use domain::message::Queue;
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};

use crate::Result;

/// How long after its timestamp a row may be committed: the timestamp is that of its transaction's start.
const UNSEEN: Duration = Duration::from_secs(10);

/// Lower bounds of the live tasks of a queue. The default reads everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowWaterMarks {
    /// The lowest position of a ready or leased task; when there is none, the last one that was drawn.
    pub(super) fair_seq: i64,
    /// No scheduled task is due and no lease expires before this time.
    pub(super) since: DateTime<Utc>,
}

/// Finds the lowest live position of a queue, from its mark and from the times of the previous refresh `last` on, or of
/// `everything`. Raises the mark to what `last` found, and lowers it to what exists.
#[tracing::instrument(skip_all, name = "db.task.refresh_low_water")]
pub async fn refresh_low_water(
    conn: &mut PgConnection,
    queue: Queue,
    last: &LowWaterMarks,
    everything: bool,
) -> Result<LowWaterMarks> {
    let row = sqlx::query!(
        r#"WITH found AS MATERIALIZED (
               SELECT coalesce(
                          least((SELECT min(fair_seq) FROM task_queue
                                 WHERE queue = $1 AND state = 'ready' AND fair_seq >= from_seq),
                                (SELECT min(fair_seq) FROM task_queue
                                 WHERE queue = $1 AND state = 'leased' AND fair_seq >= from_seq)),
                          pg_sequence_last_value('task_turns'), 0) AS fair_seq,
                      least((SELECT min(due_at) FROM task_queue WHERE queue = $1 AND state = 'parked' AND due_at >= from_time),
                            (SELECT min(lease_until) FROM task_queue WHERE queue = $1 AND lease_until >= from_time),
                            now()) AS since
               FROM (SELECT CASE WHEN $4 THEN 0 ELSE task_floor($1) END AS from_seq,
                            CASE WHEN $4 THEN 'epoch' ELSE $3::timestamptz END AS from_time) AS whence
           )
           SELECT fair_seq AS "fair_seq!", since AS "since!",
                  setval(to_regclass('task_floor_' || $1), least(fair_seq, greatest(task_floor($1), $2))) AS floor
           FROM found"#,
        queue.as_str(),
        last.fair_seq,
        last.since,
        everything,
    )
    .fetch_one(conn)
    .await?;
    Ok(LowWaterMarks { fair_seq: row.fair_seq, since: row.since - UNSEEN })
}
