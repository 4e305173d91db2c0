//! How a runner works.

use std::time::Duration;

use domain::limits::TASK_CLAIMS_MAX;
use domain::message::Queue;

/// The longest pause after a claim that came to nothing.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How a runner works.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// Whose tasks.
    pub queue: Queue,
    /// Tasks at once, at least one.
    pub slots: usize,
    /// The most tasks of one lane at once; `None`: as many as there are slots. Lanes at the cap are passed over and hold
    /// up nobody.
    pub lane_cap: Option<usize>,
    /// The most tasks of one tenant at once, over all its lanes; `None`: as many as there are slots.
    pub tenant_cap: Option<usize>,
    /// How long a lease lasts unless it is renewed.
    pub lease: Duration,
    /// How often leases are renewed; a third of `lease`, so that two may fail.
    pub heartbeat: Duration,
    /// How long a run may take: then it is dropped and tried again, as if it had failed, and its lease is renewed no more.
    pub run_limit: Duration,
    /// How often an idle runner looks for work that no message announced.
    pub idle_claim: Duration,
    /// How far apart looks for what is due are at least: what becomes due in between is claimed together. Messages are not waited
    /// with.
    pub gather: Duration,
    /// Pause before a task whose run panicked or failed unexpectedly is tried again; four times as long after each further claim,
    /// up to a minute. A lease that ran out is part of the pause.
    pub retry_pause: Duration,
    /// Who holds the leases; for people who look into the table.
    pub owner: String,
}

impl RunnerOptions {
    /// The defaults of reliability.md 2: leases of 30 s renewed every 10 s, runs of at most 5 min, an idle look every 2 s, no
    /// cap on lanes or tenants, what is due at once.
    pub fn new(queue: Queue, slots: usize) -> Self {
        Self {
            queue,
            slots: slots.max(1),
            lane_cap: None,
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

    /// How long a task waits after a claim that came to nothing, by how often it was claimed, from 1. The number of claims is
    /// limited: were they made at once, a database that goes and comes for half a minute would use them up.
    pub(super) fn pause_after(&self, claims: i32) -> Duration {
        let exponent = u32::try_from(claims - 1).unwrap_or(0).min(16);
        LONGEST_PAUSE.min(self.retry_pause.saturating_mul(4_u32.pow(exponent)))
    }

    /// What is left of these pauses once the lease has run out, by claims.
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
