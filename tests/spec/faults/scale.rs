//! The sizes of the figures in docs/reliability.md#figures: small ones for `tests/run` and full ones for `tests/campaign`, which
//! sets `FAULT_SCALE=full`. The sizes of R9 and of the matrix of R4 are in their tests, which only `tests/campaign` runs.

use std::fmt::Display;
use std::time::Duration;

/// A size of a test, small and full.
#[derive(Clone, Copy)]
pub(super) struct Scale<T> {
    small: T,
    full: T,
}

/// Returns a size with a small and a full value.
pub(super) const fn scale<T>(small: T, full: T) -> Scale<T> {
    Scale { small, full }
}

impl<T: Copy> Scale<T> {
    /// The value for this run.
    pub(super) fn now(self) -> T {
        if is_full() { self.full } else { self.small }
    }
}

/// Returns `true` if the full figures are measured. Some are judged only then, because other tests on the same machine would distort
/// latencies such as a p99.
pub(super) fn is_full() -> bool {
    match std::env::var("FAULT_SCALE").as_deref() {
        Err(_) | Ok("" | "small") => false,
        Ok("full") => true,
        Ok(other) => panic!("FAULT_SCALE: {other} is neither small nor full"),
    }
}

/// Prints a figure for the table of `tests/campaign`.
pub(super) fn measured(figure: &str, what: impl Display) {
    println!("measured {figure}: {what}");
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// R1: jobs of the stream, the longest pause between two starts of a client, and how long a service is unavailable.
pub(super) const R1_JOBS: Scale<usize> = scale(200, 2000);
pub(super) const R1_PAUSE: Scale<Duration> = scale(Duration::from_millis(200), seconds(2));
pub(super) const R1_AWAY: Scale<Duration> = scale(seconds(2), seconds(180));
/// R2: lost wake-up messages.
pub(super) const R2_LOST: Scale<usize> = scale(1, 20);
/// R3: workers that are stopped past their leases, and workers that are killed during a job.
pub(super) const R3_STOPPED: Scale<usize> = scale(1, 25);
pub(super) const R3_KILLED: Scale<usize> = scale(1, 10);
/// R4 for submits to providers: deaths of the workers at each failpoint.
pub(super) const R4_SUBMITS: Scale<usize> = scale(1, 25);
/// R5: rounds of equal starts.
pub(super) const R5_ROUNDS: Scale<usize> = scale(3, 500);
/// R6: cancels that race completions, of Actions and of jobs at a provider: 10000 together.
pub(super) const R6_ACTIONS: Scale<usize> = scale(120, 9000);
pub(super) const R6_PROVIDER: Scale<usize> = scale(36, 1002);
/// R8: healthy deliveries, and deliveries to each of three misbehaving receivers: 5 % of all.
pub(super) const R8_HEALTHY: Scale<usize> = scale(80, 2040);
pub(super) const R8_SICK: Scale<usize> = scale(8, 120);
/// R10: jobs with an old snapshot open.
pub(super) const R10_JOBS: Scale<usize> = scale(120, 5000);
/// R13: slow sockets of each of three kinds, and requests of the healthy client before and during the attack.
pub(super) const R13_SOCKETS: Scale<usize> = scale(60, 667);
pub(super) const R13_READS: Scale<(usize, usize)> = scale((100, 300), (500, 500));
/// R14: rounds of ten poison messages.
pub(super) const R14_ROUNDS: Scale<usize> = scale(1, 50);
/// R16: the backlog of one account.
pub(super) const R16_BACKLOG: Scale<usize> = scale(100, 5000);
