//! Receiving a body into memory.
//!
//! **Guarantee.** Memory is taken as bytes arrive, never for a length that the client declares. The first [`FREE`] bytes of a body
//! wait for nobody. Beyond them the unfinished bodies of this process hold at most 128 MiB, and those of one account at most 32 MiB
//! (their buffers at most twice that). A body that cannot grow waits at most about [`WAIT`] behind another account that only holds.
//!
//! **Mechanism.** A body is charged in steps of 64 KiB. One that has waited [`WAIT`] in all ends the newest unfinished body of the
//! account that holds most, or of its own account if that has its part. The end of a body is a 503 for its sender.
//!
//! **Reason.** Bodies that wait while they hold can block each other for ever, and slow ones would hold what all others need.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use domain::id::AccountUid;
use domain::limits::OPERATIONS_BODY_MAX;
use http_body_util::BodyExt;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::memory::CROWDED;
use crate::problem::{Problem, Result};

/// Bytes of a body that nobody waits for.
pub(super) const FREE: usize = 64 * 1024;
/// Larger bodies are charged in multiples of this many bytes.
const STEP: usize = 64 * 1024;
/// How long a body waits for room, in all, before it ends another one.
const WAIT: Duration = Duration::from_secs(2);
/// Maximum time from the first byte of a body to its last.
const READ_MAX: Duration = Duration::from_secs(60);
/// Limits of the bytes of unfinished bodies: two of the largest for one account, eight for all.
static UNFINISHED: LazyLock<Unfinished> =
    LazyLock::new(|| Unfinished::new(8 * OPERATIONS_BODY_MAX, 2 * OPERATIONS_BODY_MAX));

/// Receives a body of `account` into one buffer. A list of small chunks would cost far more memory than their bytes.
pub(super) async fn receive(mut body: Body, limit: usize, account: Option<&AccountUid>) -> Result<Vec<u8>> {
    let collect = async {
        let mut bytes = Vec::new();
        let mut charge = UNFINISHED.charge(account.map_or("", AccountUid::as_str));
        loop {
            let frame = tokio::select! {
                () = charge.ended.cancelled() => return Err(crowded()),
                frame = body.frame() => frame,
            };
            let Some(frame) = frame else { return Ok(bytes) };
            let frame = frame.map_err(|_| Problem::InvalidJson("it ended prematurely".into()))?;
            let piece = frame.data_ref().map_or(&[][..], Bytes::as_ref);
            let length = bytes.len() + piece.len();
            if length > limit {
                return Err(Problem::PayloadTooLarge(limit as u64));
            }
            if length > FREE {
                charge.grow(length).await?;
            }
            bytes.extend_from_slice(piece);
        }
    };
    let took_too_long = |_| Err(Problem::InvalidJson("it took too long to arrive".into()));
    timeout(READ_MAX, collect).await.unwrap_or_else(took_too_long)
}

fn crowded() -> Problem {
    Problem::Unavailable(CROWDED.into(), Some(1))
}

/// The bytes that unfinished bodies hold.
struct Unfinished {
    total: usize,
    per_key: usize,
    /// How many bodies began.
    began: AtomicU64,
    state: Mutex<State>,
    released: Notify,
}

#[derive(Default)]
struct State {
    /// The bodies that exceeded [`FREE`], in the order in which they began.
    bodies: BTreeMap<u64, UnfinishedBody>,
}

struct UnfinishedBody {
    key: String,
    bytes: usize,
    ended: CancellationToken,
}

/// The reserved bytes of one body, released on drop.
struct Charge<'a> {
    of: &'a Unfinished,
    key: &'a str,
    number: u64,
    /// How long it still waits for room before it ends another body.
    patience: Duration,
    /// Cancelled when the body is ended for others.
    ended: CancellationToken,
}

impl State {
    fn held_by(&self, key: &str) -> usize {
        self.bodies.values().filter(|held| held.key == key).map(|held| held.bytes).sum()
    }

    /// The key that holds most.
    fn heaviest(&self) -> Option<&str> {
        let mut sums: HashMap<&str, usize> = HashMap::new();
        for held in self.bodies.values() {
            *sums.entry(&held.key).or_default() += held.bytes;
        }
        sums.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(key, _)| key)
    }
}

impl Unfinished {
    fn new(total: usize, per_key: usize) -> Self {
        Self { total, per_key, began: AtomicU64::new(0), state: Mutex::default(), released: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent after every statement, so a poisoned lock guards a valid value.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new body of `key`, which holds nothing yet.
    fn charge<'a>(&'a self, key: &'a str) -> Charge<'a> {
        let number = self.began.fetch_add(1, Ordering::Relaxed);
        Charge { of: self, key, number, patience: WAIT, ended: CancellationToken::new() }
    }
}

impl Charge<'_> {
    /// Charges `bytes` in all, rounded up to [`STEP`], and waits for room; 503 when this body is ended instead.
    async fn grow(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes.next_multiple_of(STEP);
        loop {
            // Begins to listen before it looks, so that no release is missed.
            let mut released = pin!(self.of.released.notified());
            if self.take(bytes) {
                return Ok(());
            }
            let began = Instant::now();
            tokio::select! {
                biased;
                () = self.ended.cancelled() => return Err(crowded()),
                () = &mut released => {}
                () = sleep(self.patience) => {
                    self.end_newest(bytes);
                    tokio::select! {
                        () = self.ended.cancelled() => return Err(crowded()),
                        () = released => {}
                        () = sleep(WAIT) => {}
                    }
                }
            }
            self.patience = self.patience.saturating_sub(began.elapsed());
        }
    }

    fn take(&self, bytes: usize) -> bool {
        let mut state = self.of.state();
        let total: usize = state.bodies.values().map(|held| held.bytes).sum();
        let of_key = state.held_by(self.key);
        let new = || UnfinishedBody { key: self.key.to_owned(), bytes: 0, ended: self.ended.clone() };
        let held = state.bodies.entry(self.number).or_insert_with(new);
        let more = bytes.saturating_sub(held.bytes);
        let fits = more == 0 || (total + more <= self.of.total && of_key + more <= self.of.per_key);
        if fits {
            held.bytes += more;
        }
        fits
    }

    /// Ends the newest body of the key that leaves no room for `bytes`: this one, or one that holds something. One at a time, so that many
    /// that wait do not end each other.
    fn end_newest(&self, bytes: usize) {
        let state = self.of.state();
        let own = state.bodies.get(&self.number).map_or(0, |held| held.bytes);
        let is_own = state.held_by(self.key) + bytes.saturating_sub(own) > self.of.per_key;
        let key = if is_own { Some(self.key) } else { state.heaviest() };
        let of_key = || state.bodies.iter().rev().filter(|(_, held)| key == Some(held.key.as_str()));
        if of_key().any(|(_, held)| held.ended.is_cancelled()) {
            return;
        }
        if let Some((_, newest)) = of_key().find(|(number, held)| held.bytes > 0 || **number == self.number) {
            newest.ended.cancel();
        }
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        if self.of.state().bodies.remove(&self.number).is_some() {
            self.of.released.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt, stream};

    use super::*;

    fn is_crowded<T: std::fmt::Debug>(outcome: Result<T>) -> bool {
        matches!(outcome, Err(Problem::Unavailable(_, Some(1))))
    }

    /// A body of `pieces` pieces of 64 KiB, one every `interval`, of `account`.
    async fn slow(account: &str, pieces: usize, interval: Duration) -> Result<usize> {
        let pieces = stream::iter(0..pieces).then(move |_| async move {
            sleep(interval).await;
            Ok::<_, std::io::Error>(Bytes::from(vec![b' '; STEP]))
        });
        let account = AccountUid::try_from(account.to_owned()).expect("valid");
        let body = receive(Body::from_stream(pieces), OPERATIONS_BODY_MAX, Some(&account)).await;
        body.map(|bytes| bytes.len())
    }

    #[tokio::test]
    async fn a_body_is_received_up_to_its_limit() {
        for (bytes, fits) in [(0, true), (4095, true), (4096, true), (4097, false)] {
            match receive(Body::from(vec![b' '; bytes]), 4096, None).await {
                Ok(received) => assert!(fits && received.len() == bytes, "{bytes}"),
                Err(problem) => assert!(!fits && matches!(problem, Problem::PayloadTooLarge(4096)), "{bytes}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_bodies_of_one_account_do_not_delay_a_large_body_of_another() {
        let slow_ones = (0..40).map(|_| slow("slow", 256, Duration::from_millis(200)));
        let others = async {
            sleep(Duration::from_secs(10)).await;
            let began = Instant::now();
            assert_eq!(slow("other", 256, Duration::ZERO).await.expect("is received"), OPERATIONS_BODY_MAX);
            // Each piece comes after a moment, of a millisecond.
            assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        };
        let (slow_ones, ()) = tokio::join!(futures_util::future::join_all(slow_ones), others);
        assert!(slow_ones.iter().any(Result::is_ok), "the oldest ones of the account are received");
        assert!(slow_ones.into_iter().all(|outcome| outcome.is_ok() || is_crowded(outcome)));
        assert!(UNFINISHED.state().bodies.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_waits_two_seconds_and_ends_the_newest_of_the_account_that_holds_most() {
        let unfinished = Unfinished::new(8 * STEP, 6 * STEP);
        let (mut older, mut newer) = (unfinished.charge("a"), unfinished.charge("a"));
        let mut other = unfinished.charge("b");
        for charge in [&mut older, &mut newer] {
            charge.grow(3 * STEP).await.expect("fits");
        }
        other.grow(2 * STEP).await.expect("fits");
        let began = Instant::now();
        let ended = async {
            newer.ended.cancelled().await;
            drop(newer);
        };
        let (grown, ()) = tokio::join!(other.grow(2 * STEP + 1), ended);
        assert!(grown.is_ok() && !older.ended.is_cancelled());
        assert_eq!(began.elapsed(), WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_that_has_its_part_ends_its_own_newest_body() {
        let unfinished = Unfinished::new(64 * STEP, 4 * STEP);
        let (mut older, mut newer) = (unfinished.charge("a"), unfinished.charge("a"));
        let mut other = unfinished.charge("b");
        other.grow(4 * STEP).await.expect("the part of a key");
        older.grow(2 * STEP).await.expect("fits");
        newer.grow(2 * STEP).await.expect("fits exactly");
        assert!(is_crowded(newer.grow(2 * STEP + 1).await), "it is the newest itself");
        assert!(!other.ended.is_cancelled());
        drop(newer);
        assert!(older.grow(4 * STEP).now_or_never().is_some_and(|grown| grown.is_ok()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_waits_goes_on_when_another_ends_in_time() {
        let unfinished = Unfinished::new(2 * STEP, 2 * STEP);
        let (mut first, mut second) = (unfinished.charge("a"), unfinished.charge("b"));
        first.grow(STEP).await.expect("fits");
        let began = Instant::now();
        let finishes = async {
            sleep(Duration::from_secs(1)).await;
            drop(first);
        };
        let (grown, ()) = tokio::join!(second.grow(2 * STEP), finishes);
        assert!(grown.is_ok());
        assert_eq!(began.elapsed(), Duration::from_secs(1));
    }
}
