//! When tasks that may have killed their workers have their turn.

use std::time::Duration;

use tokio::time::Instant;

/// How long a suspect waits for the process to have nothing else in hand, before nothing else is claimed any more; and how long
/// suspects then follow one another. Many of them beside a full queue have half of the time, the others the other half.
const TURN: Duration = Duration::from_secs(10);

/// Whether there is a suspect, as far as is known, and whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// While there is one: from when on it goes before everything else.
    first_from: Option<Instant>,
    /// Since when they have followed one another.
    since: Option<Instant>,
    /// Whether one is in hand.
    is_in_hand: bool,
}

impl Suspects {
    /// Whether one waits, as was seen in the queue just now.
    pub(super) fn seen(&mut self, waits: bool) {
        if waits {
            self.first_from.get_or_insert_with(|| Instant::now() + TURN);
        } else {
            (self.first_from, self.since) = (None, None);
        }
    }

    /// Whether there is one to claim while nothing else is in hand.
    pub(super) fn wait(&self) -> bool {
        self.first_from.is_some()
    }

    /// Whether nothing else may be claimed.
    pub(super) fn are_next(&self) -> bool {
        self.first_from.is_some_and(|from| Instant::now() >= from)
    }

    /// Whether one is in hand, beside which nothing is claimed.
    pub(super) fn is_in_hand(&self) -> bool {
        self.is_in_hand
    }

    /// One was claimed.
    pub(super) fn began(&mut self) {
        self.is_in_hand = true;
        self.since.get_or_insert_with(Instant::now);
    }

    /// A run ended; whether it was a suspect's. The next of them follows unless their turn is over.
    pub(super) fn ended(&mut self) -> bool {
        let was_in_hand = std::mem::take(&mut self.is_in_hand);
        if was_in_hand {
            let now = Instant::now();
            self.since = self.since.filter(|since| now.duration_since(*since) < TURN);
            self.first_from = Some(if self.since.is_some() { now } else { now + TURN });
        }
        was_in_hand
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// One claim of a suspect that runs for `time`.
    async fn run(suspects: &mut Suspects, time: Duration) {
        suspects.began();
        advance(time).await;
        assert!(suspects.ended());
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspect_gives_the_others_ten_seconds_and_then_goes_before_them() {
        let mut suspects = Suspects::default();
        assert!(!suspects.wait() && !suspects.are_next());
        suspects.seen(true);
        advance(TURN - Duration::from_millis(1)).await;
        // Seen again: it does not begin to wait anew.
        suspects.seen(true);
        assert!(suspects.wait() && !suspects.are_next());
        advance(Duration::from_millis(1)).await;
        assert!(suspects.are_next());
        suspects.seen(false);
        assert!(!suspects.wait() && !suspects.are_next());
    }

    #[tokio::test(start_paused = true)]
    async fn suspects_follow_one_another_for_ten_seconds_and_then_it_is_the_others_turn() {
        let mut suspects = Suspects::default();
        suspects.seen(true);
        advance(TURN).await;
        for _ in 0..3 {
            run(&mut suspects, Duration::from_secs(3)).await;
            assert!(suspects.are_next());
        }
        run(&mut suspects, Duration::from_secs(3)).await;
        assert!(suspects.wait() && !suspects.are_next(), "twelve seconds have passed");
        advance(TURN).await;
        assert!(suspects.are_next());
        run(&mut suspects, Duration::from_secs(3)).await;
        assert!(suspects.are_next(), "a turn of their own again");
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_beside_no_suspect_changes_nothing() {
        let mut suspects = Suspects::default();
        assert!(!suspects.ended());
        assert!(!suspects.wait());
    }
}
