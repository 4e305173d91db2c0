//! The options of a runner.

use std::time::Duration;

use domain::limits::TASK_CLAIMS_MAX;
use domain::message::Queue;

use super::reserve::Reserve;

/// Longest pause after a claim without success.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Options of a runner.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// The queue whose tasks it runs.
    pub queue: Queue,
    /// Maximum number of tasks at once, at least one.
    pub slots: usize,
    /// Maximum number of tasks of one fairness key at once. Keys at the cap are skipped and do not block others. The handler
    /// may name another cap for a key ([`Handler::fairness_key_cap`](crate::Handler::fairness_key_cap)). `None`: no cap, but a
    /// quarter of the slots is reserved for keys that hold none (docs/reliability.md#reserve).
    pub fairness_key_cap: Option<usize>,
    /// Maximum number of tasks of one tenant at once, over all its fairness keys; `None` means the number
    /// of slots.
    pub tenant_cap: Option<usize>,
    /// Duration of a lease unless it is renewed.
    pub lease: Duration,
    /// Interval of renewals; a third of `lease`, so that two may fail.
    pub heartbeat: Duration,
    /// Maximum duration of a run. A longer run is dropped and retried as if it had failed, and its lease is not renewed.
    pub run_limit: Duration,
    /// The interval at which an idle runner polls for work that no message announced.
    pub idle_claim: Duration,
    /// Minimum interval between polls for due tasks: tasks that become due in between are claimed together. Messages do not
    /// wait for it.
    pub gather: Duration,
    /// The pause before a task whose run panicked or failed unexpectedly is retried. It is four
    /// times as long after each further claim, up to a minute. The time of an expired lease counts
    /// towards the pause.
    pub retry_pause: Duration,
    /// Name of the worker and of the holder of its leases, unique for each start of a process.
    pub owner: String,
}

impl RunnerOptions {
    /// The defaults: leases of 30 s renewed every 10 s, runs of at most 5 min, an idle poll every 2 s, no cap on fairness keys or
    /// tenants, a reserve, due tasks at once (docs/reliability.md#tasks-and-leases).
    pub fn new(queue: Queue, slots: usize) -> Self {
        Self {
            queue,
            slots: slots.max(1),
            fairness_key_cap: None,
            tenant_cap: None,
            lease: Duration::from_secs(30),
            heartbeat: Duration::from_secs(10),
            run_limit: Duration::from_secs(300),
            idle_claim: Duration::from_secs(2),
            gather: Duration::ZERO,
            retry_pause: Duration::from_secs(1),
            owner: format!("pid {}", std::process::id()),
        }
    }

    /// The reserve of the slots.
    pub(super) fn reserve(&self) -> Reserve {
        if self.fairness_key_cap.is_some() { Reserve::none(self.slots) } else { Reserve::new(self.slots) }
    }

    /// The time for which a task waits after an unsuccessful claim, by the number of its claims, from 1. The
    /// number of claims is limited: without pauses, a database that is intermittently unavailable
    /// for half a minute would use them up.
    pub(super) fn pause_after(&self, claims: i32) -> Duration {
        let exponent = u32::try_from(claims - 1).unwrap_or(0).min(16);
        LONGEST_PAUSE.min(self.retry_pause.saturating_mul(4_u32.pow(exponent)))
    }

    /// The remainder of these pauses once the lease has expired, by the number of claims.
    pub(super) fn pauses_after_loss(&self) -> Vec<Duration> {
        (1..=TASK_CLAIMS_MAX).map(|claims| self.pause_after(claims).saturating_sub(self.lease)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_to_nothing_is_tried_again_after_growing_pauses() {
        let options = RunnerOptions::new(Queue::Image, 1);
        let seconds: Vec<u64> = (0..=7).map(|claims| options.pause_after(claims).as_secs()).collect();
        assert_eq!(seconds, [1, 1, 4, 16, 60, 60, 60, 60]);
    }

    #[test]
    fn a_lease_that_ran_out_is_part_of_the_pause() {
        let after_loss = |lease| {
            let options = RunnerOptions { lease: Duration::from_secs(lease), ..RunnerOptions::new(Queue::Image, 1) };
            options.pauses_after_loss().iter().map(Duration::as_secs).collect::<Vec<_>>()
        };
        assert_eq!(after_loss(1), [0, 3, 15, 59, 59]);
        assert_eq!(after_loss(30), [0, 0, 0, 30, 30]);
    }
}
