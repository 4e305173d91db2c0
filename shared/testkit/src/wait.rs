//! Waiting for a condition by polling it.

use std::panic::Location;
use std::time::{Duration, Instant};

/// The first probe runs at once. The pauses between probes begin with this and double …
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// … up to this limit: short enough to notice a change quickly, long enough to cost little.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Calls `probe` until it returns something, and returns that. Panics at the caller's line after
/// `deadline`.
///
/// `what` completes the sentence "waited 5s for …". A probe that hangs counts against the deadline
/// too.
#[track_caller]
pub fn wait_for<T>(what: &str, deadline: Duration, probe: impl AsyncFnMut() -> Option<T>) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        match tokio::time::timeout(deadline, look(probe)).await {
            Ok(found) => found,
            Err(_) => panic!("waited {deadline:?} for {what} without success, at {caller}"),
        }
    }
}

async fn look<T>(mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        tokio::time::sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2).min(start.elapsed().max(FIRST_PAUSE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_there_already_is_returned_without_a_pause() {
        assert_eq!(wait_for("a value", Duration::ZERO, async || Some(7)).await, 7);
    }

    #[tokio::test]
    async fn looks_again_until_the_value_is_there() {
        let mut looks = 0;
        let seen = wait_for("the third look", Duration::from_secs(5), async || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(seen.await, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "for a miracle without success, at ")]
    async fn gives_up_at_the_deadline() {
        wait_for("a miracle", Duration::from_millis(20), async || None::<()>).await;
    }

    #[tokio::test]
    #[should_panic(expected = "for an answer without success")]
    async fn a_look_that_hangs_does_not_outlive_the_deadline() {
        wait_for("an answer", Duration::from_millis(20), async || std::future::pending::<Option<()>>().await).await;
    }
}
