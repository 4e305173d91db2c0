//! When it is looked where a queue begins (`db::tasks::survey`, `db::outbox::lowest`).

use std::time::Duration;

use tokio::time::Instant;

/// How often it is looked from the floor on.
const PERIOD: Duration = Duration::from_secs(2);
/// How often at everything, which finds what a floor hides.
const WHOLE_PERIOD: Duration = Duration::from_secs(10);
/// What grows with what was deleted beside an open transaction rests for so many times as long as it took, and at most a minute.
const REST: u32 = 20;
const REST_MAX: Duration = Duration::from_secs(60);

/// The times of surveys.
#[derive(Debug)]
pub(crate) struct Surveys {
    /// No two are closer together: a floor is to be one period behind.
    next: Instant,
    next_whole: Instant,
}

/// How much a survey looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What lives from the floor on.
    FromFloor,
    /// Everything.
    Whole,
}

impl Surveys {
    /// The first is due at once, of everything.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { next: now, next_whole: now }
    }

    /// What is to be looked at now, if anything is.
    pub(crate) fn due(&self) -> Option<Scope> {
        let now = Instant::now();
        (now >= self.next).then_some(if now >= self.next_whole { Scope::Whole } else { Scope::FromFloor })
    }

    /// Notes one that was begun at `began` and has ended.
    pub(crate) fn made(&mut self, scope: Scope, began: Instant) {
        let took = began.elapsed();
        if scope == Scope::Whole {
            self.next_whole = Instant::now() + rested(WHOLE_PERIOD, took);
        }
        self.next = Instant::now() + PERIOD;
    }
}

/// How long to wait after what took so long and is done every `period`.
pub(crate) fn rested(period: Duration, took: Duration) -> Duration {
    period.max(REST_MAX.min(took * REST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn everything_is_looked_at_first_and_every_ten_seconds() {
        let mut surveys = Surveys::new();
        let mut scopes = Vec::new();
        for _ in 0..11 {
            let scope = surveys.due().expect("is due");
            surveys.made(scope, Instant::now());
            scopes.push(scope == Scope::Whole);
            tokio::time::advance(PERIOD - Duration::from_millis(1)).await;
            assert_eq!(surveys.due(), None, "no two are closer together");
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let five = [true, false, false, false, false];
        assert_eq!(scopes, [&five[..], &five, &[true]].concat());
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_is_done_seldom() {
        let mut surveys = Surveys::new();
        let began = Instant::now();
        tokio::time::advance(Duration::from_secs(2)).await;
        surveys.made(Scope::Whole, began);
        tokio::time::advance(Duration::from_secs(39)).await;
        assert_eq!(surveys.due(), Some(Scope::FromFloor));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(surveys.due(), Some(Scope::Whole));
        assert_eq!(rested(PERIOD, Duration::from_secs(30)), REST_MAX);
    }
}
