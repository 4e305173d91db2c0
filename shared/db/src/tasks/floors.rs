//! Where a queue begins, so that nobody reads what stands before.
//!
//! **Reason.** While a transaction stays open, a dump above all, nothing that was deleted since it began leaves the indexes. Who
//! asks for the first of a queue then walks past everything that was done meanwhile, with every enqueue and every claim, and the
//! service grinds to a halt long before the dump has ended.
//!
//! **Mechanism.** A *floor* is a turn below which no ready or leased task stands. Each queue has one, in a sequence: a number that
//! is written and read outside transactions. Every search by turn begins there (`task_floor`). A [`survey`] raises it: it looks,
//! from the floor on, for the lowest turn that lives. What it found becomes the floor one survey later, so that who was about to
//! commit a task meanwhile is not passed over. Who comes back keeps a turn that the floor has waited for (a lease that ran out, a
//! release), or gets one above it (whatever was parked).
//!
//! **Guarantee.** A floor that is too high (beside a transaction that enqueued and stayed open between two surveys, where two
//! surveys crossed, in a restored dump, whose sequences are newer than its rows) hides tasks until the next survey of everything,
//! no longer. What lives long, the backlog of a lane at its cap or a run of minutes, keeps the floor where it is: what is done above
//! it meanwhile is walked past until it has ended.

use std::time::Duration;

use domain::message::Queue;
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};

use crate::Result;

/// How much later than it says a time may be committed: it is that of its transaction's beginning.
const UNSEEN: Duration = Duration::from_secs(10);

/// Lower bounds of what lives in a queue. By default everything is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floors {
    /// The lowest turn of a ready or leased task; of none the last that was drawn.
    pub(super) turn: i64,
    /// What is parked is due no earlier than this, and no lease ends earlier.
    pub(super) since: DateTime<Utc>,
}

/// Finds the lowest of what lives in a queue, from its floor on and from the times of the survey before, which is `last`; or of
/// `everything`. The floor is raised to what `last` found, and lowered to what there is.
#[tracing::instrument(skip_all, name = "db.task.survey")]
pub async fn survey(conn: &mut PgConnection, queue: Queue, last: &Floors, everything: bool) -> Result<Floors> {
    let row = sqlx::query!(
        r#"WITH found AS MATERIALIZED (
               SELECT coalesce(
                          least((SELECT min(turn) FROM tasks WHERE queue = $1 AND state = 'ready' AND turn >= from_turn),
                                (SELECT min(turn) FROM tasks WHERE queue = $1 AND state = 'leased' AND turn >= from_turn)),
                          pg_sequence_last_value('task_turns'), 0) AS turn,
                      least((SELECT min(due_at) FROM tasks WHERE queue = $1 AND state = 'parked' AND due_at >= from_time),
                            (SELECT min(lease_until) FROM tasks WHERE queue = $1 AND lease_until >= from_time),
                            now()) AS since
               FROM (SELECT CASE WHEN $4 THEN 0 ELSE task_floor($1) END AS from_turn,
                            CASE WHEN $4 THEN 'epoch' ELSE $3::timestamptz END AS from_time) AS whence
           )
           SELECT turn AS "turn!", since AS "since!",
                  setval(to_regclass('task_floor_' || $1), least(turn, greatest(task_floor($1), $2))) AS floor
           FROM found"#,
        queue.as_str(),
        last.turn,
        last.since,
        everything,
    )
    .fetch_one(conn)
    .await?;
    Ok(Floors { turn: row.turn, since: row.since - UNSEEN })
}
