//! Scheduling of quarantined tasks: tasks that may have killed their workers (docs/reliability.md#quarantine).

use std::time::Duration;

use tokio::time::Instant;

/// The time for which a quarantined task waits for an idle process before nothing else is claimed, and for
/// which quarantined tasks then run one after another. Many quarantined tasks in a full queue thus get half of the time,
/// and the other tasks the other half.
const TURN: Duration = Duration::from_secs(10);

/// The turns of quarantined tasks and of other tasks.
#[derive(Debug, Default)]
pub(super) struct Quarantine {
    /// While a quarantined task waits: the time from which it takes precedence over all other tasks.
    first_from: Option<Instant>,
    /// The time at which the current series of quarantined tasks began.
    since: Option<Instant>,
    /// `true` if a quarantined task is in progress.
    is_running: bool,
}

impl Quarantine {
    /// Records whether the queue contains a waiting quarantined task.
    pub(super) fn seen(&mut self, waits: bool) {
        if waits {
            self.first_from.get_or_insert_with(|| Instant::now() + TURN);
        } else {
            (self.first_from, self.since) = (None, None);
        }
    }

    /// Returns `true` if a quarantined task must be claimed as soon as no other task is in progress.
    pub(super) fn wait(&self) -> bool {
        self.first_from.is_some()
    }

    /// Returns `true` if only quarantined tasks may be claimed.
    pub(super) fn are_next(&self) -> bool {
        self.first_from.is_some_and(|from| Instant::now() >= from)
    }

    /// Returns `true` if a quarantined task is in progress. Meanwhile nothing is claimed.
    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Records that a quarantined task was claimed.
    pub(super) fn began(&mut self) {
        self.is_running = true;
        self.since.get_or_insert_with(Instant::now);
    }

    /// Records that a run ended. Returns whether it was that of a quarantined task. The next quarantined task follows
    /// unless their time is over.
    pub(super) fn ended(&mut self) -> bool {
        let was_running = std::mem::take(&mut self.is_running);
        if was_running {
            let now = Instant::now();
            self.since = self.since.filter(|since| now.duration_since(*since) < TURN);
            self.first_from = Some(if self.since.is_some() { now } else { now + TURN });
        }
        was_running
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// Claims a quarantined task that runs for `time`.
    async fn run(quarantine: &mut Quarantine, time: Duration) {
        quarantine.began();
        advance(time).await;
        assert!(quarantine.ended());
    }

    #[tokio::test(start_paused = true)]
    async fn a_quarantined_task_gives_the_others_ten_seconds_and_then_goes_before_them() {
        let mut quarantine = Quarantine::default();
        assert!(!quarantine.wait() && !quarantine.are_next());
        quarantine.seen(true);
        advance(TURN - Duration::from_millis(1)).await;
        // Its waiting time does not start over when it is seen again.
        quarantine.seen(true);
        assert!(quarantine.wait() && !quarantine.are_next());
        advance(Duration::from_millis(1)).await;
        assert!(quarantine.are_next());
        quarantine.seen(false);
        assert!(!quarantine.wait() && !quarantine.are_next());
    }

    #[tokio::test(start_paused = true)]
    async fn quarantined_tasks_follow_one_another_for_ten_seconds_and_then_it_is_the_others_turn() {
        let mut quarantine = Quarantine::default();
        quarantine.seen(true);
        advance(TURN).await;
        for _ in 0..3 {
            run(&mut quarantine, Duration::from_secs(3)).await;
            assert!(quarantine.are_next());
        }
        run(&mut quarantine, Duration::from_secs(3)).await;
        assert!(quarantine.wait() && !quarantine.are_next(), "twelve seconds have passed");
        advance(TURN).await;
        assert!(quarantine.are_next());
        run(&mut quarantine, Duration::from_secs(3)).await;
        assert!(quarantine.are_next(), "a turn of their own again");
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_beside_no_quarantined_task_changes_nothing() {
        let mut quarantine = Quarantine::default();
        assert!(!quarantine.ended());
        assert!(!quarantine.wait());
    }
}
