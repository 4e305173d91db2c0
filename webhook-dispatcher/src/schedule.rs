//! The time of the next attempt: never before the configured delay, and at most a tenth of it later
//! (docs/reference/webhooks.md#backoff).

use std::time::Duration;

use domain::limits::WEBHOOK_ATTEMPTS_MAX;

/// Number of delays between attempts.
const DELAYS: usize = WEBHOOK_ATTEMPTS_MAX as usize - 1;
/// Maximum jitter, as a fraction of the delay. Half of the permitted tenth; claiming a due delivery and connecting take the
/// other half.
const JITTER: f64 = 0.05;

/// The delay before each attempt except the first (`CANVAS_WEBHOOK_BACKOFF_SECONDS`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff(pub [Duration; DELAYS]);

impl Default for Backoff {
    /// 10 s, 60 s, 300 s.
    fn default() -> Self {
        Self([10, 60, 300].map(Duration::from_secs))
    }
}

impl Backoff {
    /// The delay after the failure of attempt `number` (from 1); `None` after the last one.
    /// `chance` in [0, 1) spreads deliveries that failed together.
    pub fn after(&self, number: i32, chance: f64) -> Option<Duration> {
        let delay = usize::try_from(number - 1).ok().and_then(|index| self.0.get(index))?;
        Some(delay.mul_f64(1.0 + JITTER * chance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_delays_lie_between_four_attempts() {
        let backoff = Backoff::default();
        let delays: Vec<_> = (1..=4).map(|number| backoff.after(number, 0.0).map(|delay| delay.as_secs())).collect();
        assert_eq!(delays, [Some(10), Some(60), Some(300), None]);
    }

    #[test]
    fn chance_adds_less_than_a_tenth_and_never_subtracts() {
        let backoff = Backoff::default();
        for chance in [0.0, 0.5, 0.999_999] {
            let delay = backoff.after(1, chance).expect("a second attempt");
            assert!((Duration::from_secs(10)..Duration::from_secs(11)).contains(&delay), "{delay:?}");
        }
        assert_ne!(backoff.after(1, 0.1), backoff.after(1, 0.9));
    }
}
