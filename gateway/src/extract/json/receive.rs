//! Receiving a body into memory.
//!
//! **Guarantee.** Memory is taken as bytes arrive, never for a length that the client declares. The first [`FREE`] bytes of a body
//! wait for nobody, and a body without a credential has no more. Beyond them the unfinished bodies of this process hold at most 128 MiB,
//! and those of one account at most 32 MiB (their buffers at most twice that). A body that cannot grow waits at most about [`WAIT`]
//! behind another account that only holds.
//!
//! **Mechanism.** A body is charged in steps of 64 KiB. One that has waited [`WAIT`] in all ends the newest unfinished body of the
//! account that holds most, or of its own account if that has its part. The end of a body is a 503 for its sender.
//!
//! **Reason.** Bodies that wait while they hold can block each other for ever, and slow ones would hold what all others need.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use service::shares::{Held, Key, Shares};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::admission::crowded;
use crate::problem::{Problem, Result};
use crate::server::min_rate_body::MinRateBody;

/// Bytes of a body that nobody waits for, and the most of one without a credential.
pub(super) const FREE: usize = 16 * 1024;
/// Larger bodies are charged in multiples of this many bytes.
const STEP: usize = 64 * 1024;
/// How long a body waits for room, in all, before it ends another one.
const WAIT: Duration = Duration::from_secs(2);
/// Maximum time from the first byte of a body to its last.
const READ_MAX: Duration = Duration::from_secs(60);
/// Time without a byte after which a body ends. One below its minimum rate uses it up as well.
const STALL_MAX: Duration = Duration::from_secs(10);
/// Minimum rate of a body, in bytes per second, and that of what exceeds [`LARGE`].
const RATE_MIN: u32 = 16 * 1024;
const LARGE_RATE_MIN: u32 = 64 * 1024;
/// Bytes after which a body must arrive faster.
const LARGE: usize = 1024 * 1024;
/// Bytes that the unfinished bodies of a process hold, and those of one account: eight and two of the largest.
pub(super) const TOTAL: u64 = 128 * 1024 * 1024;
pub(super) const PER_ACCOUNT: u64 = 32 * 1024 * 1024;

static UNFINISHED: LazyLock<Unfinished> = LazyLock::new(|| Unfinished::new(Shares::new("bodies", TOTAL, PER_ACCOUNT)));

/// Receives a body of `key` into one buffer. A list of small chunks would cost far more memory than their bytes.
pub(super) async fn receive(body: Body, limit: usize, key: Key) -> Result<Vec<u8>> {
    let mut body = MinRateBody::at(RATE_MIN, STALL_MAX, body);
    let collect = async {
        let mut bytes = Vec::new();
        let mut room = UNFINISHED.begin(key.clone());
        loop {
            let frame = tokio::select! {
                () = room.ended.cancelled() => return Err(room.refusal()),
                frame = body.frame() => frame,
            };
            let Some(frame) = frame else { return Ok(bytes) };
            let frame =
                frame.map_err(|_| Problem::InvalidJson("it ended prematurely, or arrived too slowly".into()))?;
            let piece = frame.data_ref().map_or(&[][..], Bytes::as_ref);
            let length = bytes.len() + piece.len();
            if length > limit {
                return Err(Problem::PayloadTooLarge(limit as u64));
            }
            if length > FREE {
                room.grow(length).await?;
            }
            if length > LARGE {
                body.require(LARGE_RATE_MIN);
            }
            bytes.extend_from_slice(piece);
        }
    };
    let took_too_long = |_| Err(Problem::InvalidJson("it took too long to arrive".into()));
    timeout(READ_MAX, collect).await.unwrap_or_else(took_too_long)
}

/// The unfinished bodies of a process.
struct Unfinished {
    share: Shares,
    /// How many bodies began.
    began: AtomicU64,
    /// The bodies that hold memory, in the order in which they began, each with what ends it.
    holding: Mutex<BTreeMap<u64, (Key, CancellationToken)>>,
}

/// The memory of one unfinished body.
struct Room<'a> {
    of: &'a Unfinished,
    key: Key,
    number: u64,
    held: Option<Held>,
    /// How long it still waits for room before it ends another body.
    patience: Duration,
    /// Cancelled when the body is ended for others.
    ended: CancellationToken,
}

impl Unfinished {
    fn new(share: Shares) -> Self {
        Self { share, began: AtomicU64::new(0), holding: Mutex::default() }
    }

    fn holding(&self) -> MutexGuard<'_, BTreeMap<u64, (Key, CancellationToken)>> {
        // The map is consistent after every statement, so a poisoned lock guards a valid value.
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new body of `key`, which holds nothing yet.
    fn begin(&self, key: Key) -> Room<'_> {
        let number = self.began.fetch_add(1, Ordering::Relaxed);
        Room { of: self, key, number, held: None, patience: WAIT, ended: CancellationToken::new() }
    }
}

impl Room<'_> {
    /// Holds `bytes` in all, rounded up to [`STEP`]; 503 when this body is ended instead.
    async fn grow(&mut self, bytes: usize) -> Result<()> {
        let by = (bytes.next_multiple_of(STEP) as u64).saturating_sub(self.held.as_ref().map_or(0, Held::units));
        if by == 0 {
            return Ok(());
        }
        let began = Instant::now();
        let mut held = self.held.take();
        let mut patience = self.patience;
        {
            let mut growing = pin!(async {
                match &mut held {
                    Some(held) => held.grow(by).await.map_err(|_| Problem::PayloadTooHeavy),
                    None => {
                        held = Some(self.of.share.hold(&self.key, by).await);
                        self.of.holding().insert(self.number, (self.key.clone(), self.ended.clone()));
                        Ok(())
                    }
                }
            });
            loop {
                tokio::select! {
                    biased;
                    () = self.ended.cancelled() => return Err(self.refusal()),
                    grown = &mut growing => break grown?,
                    () = sleep(patience) => {
                        self.end_newest(by);
                        patience = WAIT;
                    }
                }
            }
        }
        self.held = held;
        self.patience = self.patience.saturating_sub(began.elapsed());
        Ok(())
    }

    /// Ends the newest body of the key that leaves no room for `by` more bytes: this one, or one that holds something. One at a time, so
    /// that many that wait do not end each other.
    fn end_newest(&self, by: u64) {
        let Some(blocker) = self.of.share.blocker(&self.key, by) else { return };
        let holding = self.of.holding();
        let mut of_blocker = holding.iter().filter(|(_, (key, _))| *key == blocker);
        if of_blocker.clone().any(|(_, (_, ended))| ended.is_cancelled()) {
            return;
        }
        match of_blocker.next_back() {
            Some((number, (_, ended))) if blocker != self.key || *number > self.number => ended.cancel(),
            _ if blocker == self.key => self.ended.cancel(),
            _ => {}
        }
    }

    fn refusal(&self) -> Problem {
        crowded(&self.of.share, "ended")
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.of.holding().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use domain::limits::OPERATIONS_BODY_MAX;
    use futures_util::{FutureExt, StreamExt, stream};

    use super::*;

    /// Unfinished bodies that hold `total` steps, and of one key `per_key`.
    fn unfinished(total: usize, per_key: usize) -> Unfinished {
        Unfinished::new(Shares::new("test", (total * STEP) as u64, (per_key * STEP) as u64))
    }

    fn is_crowded<T: std::fmt::Debug>(outcome: Result<T>) -> bool {
        matches!(outcome, Err(Problem::Unavailable(_, Some(1))))
    }

    /// A body of `pieces` pieces of 64 KiB, one every `interval`, of `account`.
    async fn slow(account: &str, pieces: usize, interval: Duration) -> Result<usize> {
        let pieces = stream::iter(0..pieces).then(move |_| async move {
            sleep(interval).await;
            Ok::<_, std::io::Error>(Bytes::from(vec![b' '; STEP]))
        });
        let body = receive(Body::from_stream(pieces), OPERATIONS_BODY_MAX, Key::account(account)).await;
        body.map(|bytes| bytes.len())
    }

    #[tokio::test]
    async fn a_body_is_received_up_to_its_limit() {
        for (bytes, fits) in [(0, true), (4095, true), (4096, true), (4097, false)] {
            match receive(Body::from(vec![b' '; bytes]), 4096, Key::name("")).await {
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
        assert!(UNFINISHED.holding().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_waits_two_seconds_and_ends_the_newest_of_the_account_that_holds_most() {
        let unfinished = unfinished(8, 6);
        let (mut older, mut newer) = (unfinished.begin(Key::account("a")), unfinished.begin(Key::account("a")));
        let mut other = unfinished.begin(Key::account("b"));
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
        let unfinished = unfinished(64, 4);
        let (mut older, mut newer) = (unfinished.begin(Key::account("a")), unfinished.begin(Key::account("a")));
        let mut other = unfinished.begin(Key::account("b"));
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
        let unfinished = unfinished(2, 2);
        let (mut first, mut second) = (unfinished.begin(Key::account("a")), unfinished.begin(Key::account("b")));
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

    #[tokio::test]
    async fn what_exceeds_sixteen_kib_is_held_in_steps() {
        let unfinished = unfinished(4, 4);
        let mut body = unfinished.begin(Key::account("a"));
        for (bytes, steps) in [(FREE + 1, 1), (STEP, 1), (STEP + 1, 2), (3 * STEP + 1, 4)] {
            body.grow(bytes).await.expect("fits");
            assert_eq!(unfinished.share.held(), (steps * STEP) as u64, "{bytes}");
        }
        drop(body);
        assert_eq!(unfinished.share.held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_of_sixteen_kib_waits_for_nobody() {
        let key = Key::account("full");
        let mut all = Vec::new();
        for _ in 0..2 {
            let mut room = UNFINISHED.begin(key.clone());
            room.grow(OPERATIONS_BODY_MAX).await.expect("fits");
            all.push(room);
        }
        for (bytes, waits) in [(FREE - 1, false), (FREE, false), (FREE + 1, true)] {
            let received = receive(Body::from(vec![b' '; bytes]), OPERATIONS_BODY_MAX, key.clone()).now_or_never();
            assert_eq!(received.is_none(), waits, "{bytes}");
        }
    }

    /// How a body ends that sends `rate` bytes a second, after the bytes that it sends at once.
    async fn at_rate(at_once: usize, rate: usize, seconds: usize) -> Result<usize> {
        let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from(vec![b' '; at_once]))]);
        let rest = stream::iter(0..seconds).then(move |_| async move {
            sleep(Duration::from_secs(1)).await;
            Ok(Bytes::from(vec![b' '; rate]))
        });
        let key = Key::account("of a rate");
        let body = receive(Body::from_stream(first.chain(rest)), OPERATIONS_BODY_MAX, key).await;
        body.map(|bytes| bytes.len())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_below_its_minimum_rate_ends_and_a_large_one_must_be_faster() {
        const KIB: usize = 1024;
        for (at_once, rate, is_received) in [
            // A little below the rate, the allowance of ten seconds outlasts the minute that any body may take.
            (0, 13 * KIB, false),
            (0, 16 * KIB, true),
            (0, 17 * KIB, true),
            (LARGE, 16 * KIB, false),
            (LARGE, 52 * KIB, false),
            (LARGE, 64 * KIB, true),
            (LARGE, 65 * KIB, true),
        ] {
            let outcome = at_rate(at_once, rate, 58).await;
            assert_eq!(outcome.is_ok(), is_received, "{at_once} and {rate}: {outcome:?}");
        }
    }
}
