//! Waits for shares of the process, and their end (docs/reference/limits.md#shares).
//!
//! **Order.** A request takes shares in this order: requests in progress, its body, the parsed body, the writers of a canvas, the
//! canvas, large work, a database connection. It waits for none while it holds a later one, and for none a second time, except where a body
//! or its memory grows, which says how that ends, and where a tool goes on after it has waited for work, for at most [`WAIT_MAX`]. So no
//! two requests wait for each other.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use domain::id::AccountUid;
use service::cpu;
use service::shares::{Held, Key, Shares};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;
use tokio::time::timeout;

use crate::problem::{Problem, Result};
use crate::rates::Charges;

/// Requests with a credential that are in progress in one process, and those of one account. Waits and event streams have a share of their
/// own.
pub const REQUESTS_MAX: u64 = 512;
const REQUESTS_OF_ACCOUNT_MAX: u64 = 64;
/// Uploads received concurrently; each holds at most one part of a multipart upload in memory.
const UPLOADS_MAX: u64 = 32;
const UPLOADS_OF_ACCOUNT_MAX: u64 = 8;
/// Renders drawn concurrently: each may hold a graph, its images and its document.
const RENDERS_MAX: u64 = 16;
const RENDERS_OF_ACCOUNT_MAX: u64 = 2;
/// Bytes above which work on them is large: it takes milliseconds, in which a processor does nothing else.
const LARGE_WORK_BYTES: usize = 1024 * 1024;
/// Maximum wait for any share.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// The key under which an account holds.
pub fn account_key(account: &AccountUid) -> Key {
    Key::account(account.as_str())
}

/// Waits a bounded time until `key` holds `units`; 503 when it does not come to that.
pub async fn admitted(share: &Shares, key: &Key, units: u64) -> Result<Held> {
    timeout(WAIT_MAX, share.hold(key, units)).await.map_err(|_| crowded(share, "waited"))
}

/// The share of requests in progress.
pub fn requests() -> Shares {
    Shares::new("requests", REQUESTS_MAX, REQUESTS_OF_ACCOUNT_MAX)
}

/// The share of uploads.
pub fn uploads() -> Shares {
    Shares::new("uploads", UPLOADS_MAX, UPLOADS_OF_ACCOUNT_MAX)
}

/// The share of renders.
pub fn renders() -> Shares {
    Shares::new("renders", RENDERS_MAX, RENDERS_OF_ACCOUNT_MAX)
}

/// The share of work on more than 1 MiB, such as parsing and compressing: as many at once as there are processors, of one account half
/// of them.
pub fn large_work() -> Shares {
    let processors = available_parallelism().map_or(1, |processors| processors.get() as u64);
    Shares::new("large_work", processors, processors / 2)
}

/// Does work on `bytes` bytes. Large work waits for its share, leaves the thread's other tasks to another thread, and takes the processor
/// time of its account.
pub async fn work<T>(
    large_work: &Shares,
    charges: &Charges,
    key: &Key,
    bytes: usize,
    work: impl FnOnce() -> T,
) -> Result<T> {
    if bytes <= LARGE_WORK_BYTES {
        return Ok(work());
    }
    let _held = admitted(large_work, key, 1).await?;
    let (result, time) = match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => cpu::measured(work),
        _ => block_in_place(|| cpu::measured(work)),
    };
    charges.debit_cpu(time);
    Ok(result)
}

/// The place of a request among the requests in progress of its account. Clones share it.
#[derive(Clone)]
pub struct InProgress(Arc<Mutex<Option<Held>>>);

impl InProgress {
    /// A place that is held as long as a clone lives.
    pub fn new(held: Held) -> Self {
        Self(Arc::new(Mutex::new(Some(held))))
    }

    /// Returns `true` if the place was not given up.
    pub fn is_held(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Gives the place up, for a request that waits for others from now on.
    pub fn leave(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Admits one writer of a canvas at a time to the database. The accounts that write to a canvas take turns.
///
/// Writers of one canvas serialize on its row lock in Postgres, each holding a connection while it waits. Without a queue in front of
/// the pool, one busy canvas would take every connection of the process and block all other accounts. A request that waits here holds no
/// connection.
pub struct Writers {
    /// One writer of an account stands in the queue of a canvas.
    accounts: Shares,
    canvases: Shares,
}

/// The turn of a writer. The canvas is released first, so that the account's next writer is behind all that wait.
pub struct Writing {
    _canvas: Held,
    _account: Held,
}

impl Default for Writers {
    fn default() -> Self {
        Self { accounts: Shares::new("writers", u64::MAX, 1), canvases: Shares::new("written_canvases", u64::MAX, 1) }
    }
}

impl Writers {
    /// Waits for the turn of `account` to write to `canvas`; 503 when it does not come in time.
    pub async fn pass(&self, account: &AccountUid, canvas: &str) -> Result<Writing> {
        let turn = async {
            let account = self.accounts.hold(&Key::name(&format!("{canvas} {account}")), 1).await;
            Writing { _canvas: self.canvases.hold(&Key::name(canvas), 1).await, _account: account }
        };
        timeout(WAIT_MAX, turn).await.map_err(|_| crowded(&self.canvases, "waited"))
    }
}

/// The response to a request for which nothing is free of `share`.
pub fn crowded(share: &Shares, reason: &'static str) -> Problem {
    share.refuse(reason);
    Problem::Unavailable(
        format!("all that an account or all together may hold is taken: {}", share.name()).into(),
        Some(1),
    )
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::documents;
    use crate::extract::json;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_its_share_and_is_told_when_to_come_back() {
        let share = Shares::new("test", 2, 1);
        let [a, b] = ["a", "b"].map(Key::account);
        let held = admitted(&share, &a, 1).await.expect("free");
        assert!(admitted(&share, &b, 1).await.is_ok(), "another account");
        let began = tokio::time::Instant::now();
        assert!(matches!(admitted(&share, &a, 1).await, Err(Problem::Unavailable(_, Some(1)))));
        assert_eq!(began.elapsed(), WAIT_MAX);
        let (next, ()) = tokio::join!(admitted(&share, &a, 1), async { drop(held) });
        assert!(next.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_that_write_to_a_canvas_take_turns() {
        let writers = Writers::default();
        let [busy, other] = ["busy", "other"].map(|name| AccountUid::try_from(name.to_owned()).expect("valid"));
        let writing = writers.pass(&busy, "c").await.expect("nobody writes");
        assert!(writers.pass(&busy, "another").await.is_ok());
        let mut many: Vec<_> = (0..3).map(|_| Box::pin(writers.pass(&busy, "c"))).collect();
        for waiting in &mut many {
            assert!(waiting.now_or_never().is_none());
        }
        let mut mine = Box::pin(writers.pass(&other, "c"));
        assert!((&mut mine).now_or_never().is_none());
        drop(writing);
        let mine = (&mut mine).now_or_never().expect("is next, although it came last");
        assert!((&mut many[0]).now_or_never().is_none());
        drop(mine);
        assert!((&mut many[0]).now_or_never().is_some_and(|turn| turn.is_ok()));
        let began = tokio::time::Instant::now();
        let _held = writers.pass(&other, "d").await;
        assert!(writers.pass(&busy, "d").await.is_err());
        assert_eq!(began.elapsed(), WAIT_MAX);
    }

    #[tokio::test]
    async fn work_on_more_than_a_mebibyte_waits_for_its_share() {
        let key = Key::account("busy");
        let share = large_work();
        let _all = share.hold(&key, share.per_key()).await;
        for (bytes, waits) in [(LARGE_WORK_BYTES - 1, false), (LARGE_WORK_BYTES, false), (LARGE_WORK_BYTES + 1, true)] {
            assert_eq!(
                work(&share, &Charges::default(), &key, bytes, || ()).now_or_never().is_none(),
                waits,
                "{bytes}"
            );
        }
        let processors = share.total();
        assert_eq!(share.per_key(), (processors / 2).max(1));
    }

    #[test]
    fn a_request_leaves_its_place_once_for_all_that_share_it() {
        let share = requests();
        let held = share.try_hold(&Key::account("a"), 1).expect("free");
        let place = InProgress::new(held);
        let clone = place.clone();
        assert!(clone.is_held());
        place.leave();
        assert!(!clone.is_held());
        assert_eq!(share.held(), 0);
        clone.leave();
        drop((place, clone));
        assert_eq!(share.held(), 0);
    }

    /// The default of `CANVAS_CONNECTIONS_MAX`, and the limit of the container (deploy/helm/canvas/values.yaml, deploy/docker/compose.yaml).
    #[test]
    fn what_a_gateway_holds_at_once_fits_into_its_memory() {
        const MIB: u64 = 1024 * 1024;
        let shares = documents::MEMORY_MAX + json::memory_max(10_000, REQUESTS_MAX);
        assert!((1244 * MIB..=1248 * MIB).contains(&shares), "{} MiB", shares / MIB);
        // The process that does nothing takes less than 64 MiB.
        let all = shares + app::graphs::CAPACITY_BYTES + 64 * MIB;
        assert!(all < 1536 * MIB, "{} MiB", all / MIB);
        for limits in ["helm/canvas/values.yaml", "docker/compose.yaml"] {
            let path = format!("{}/../deploy/{limits}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&path).expect("is part of the repository");
            assert!(text.to_lowercase().contains("1536m"), "{path}");
        }
    }
}
