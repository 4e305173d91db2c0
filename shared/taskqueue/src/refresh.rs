//! The schedule of the refreshes that raise the low-water marks (`db::tasks::refresh_low_water`).

use std::time::Duration;

use tokio::time::Instant;

/// The interval between refreshes that start at the mark.
const PERIOD: Duration = Duration::from_secs(2);
/// The interval between refreshes of everything, which find rows below the mark.
const WHOLE_PERIOD: Duration = Duration::from_secs(10);
/// The cost of a refresh grows with the number of rows deleted while a transaction is open. The
/// pause after a refresh is this many times its duration, at most a minute.
const REST: u32 = 20;
const REST_MAX: Duration = Duration::from_secs(60);

/// The times of the next refreshes.
#[derive(Debug)]
pub(crate) struct RefreshSchedule {
    /// The minimum time of the next refresh of any kind. A mark is one period behind.
    next: Instant,
    next_whole: Instant,
}

/// The rows that a refresh reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Live rows from the mark upwards.
    FromMark,
    /// All rows.
    Whole,
}

impl RefreshSchedule {
    /// Creates a schedule whose first refresh is due at once and reads everything.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { next: now, next_whole: now }
    }

    /// The refresh that is due now, if any.
    pub(crate) fn due(&self) -> Option<Scope> {
        let now = Instant::now();
        (now >= self.next).then_some(if now >= self.next_whole { Scope::Whole } else { Scope::FromMark })
    }

    /// Records a refresh that began at `began` and has ended now.
    pub(crate) fn made(&mut self, scope: Scope, began: Instant) {
        let took = began.elapsed();
        if scope == Scope::Whole {
            self.next_whole = Instant::now() + rested(WHOLE_PERIOD, took);
        }
        self.next = Instant::now() + PERIOD;
    }
}

/// The pause after work that took `took` and is repeated every `period`.
pub(crate) fn rested(period: Duration, took: Duration) -> Duration {
    period.max(REST_MAX.min(took * REST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn everything_is_looked_at_first_and_every_ten_seconds() {
        let mut refreshes = RefreshSchedule::new();
        let mut scopes = Vec::new();
        for _ in 0..11 {
            let scope = refreshes.due().expect("is due");
            refreshes.made(scope, Instant::now());
            scopes.push(scope == Scope::Whole);
            tokio::time::advance(PERIOD - Duration::from_millis(1)).await;
            assert_eq!(refreshes.due(), None, "no two are closer together");
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let five = [true, false, false, false, false];
        assert_eq!(scopes, [&five[..], &five, &[true]].concat());
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_is_done_seldom() {
        let mut refreshes = RefreshSchedule::new();
        let began = Instant::now();
        tokio::time::advance(Duration::from_secs(2)).await;
        refreshes.made(Scope::Whole, began);
        tokio::time::advance(Duration::from_secs(39)).await;
        assert_eq!(refreshes.due(), Some(Scope::FromMark));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(refreshes.due(), Some(Scope::Whole));
        assert_eq!(rested(PERIOD, Duration::from_secs(30)), REST_MAX);
    }
}
