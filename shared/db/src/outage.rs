//! When this process last saw an error of a database. While that is recent, every pool checks its connections before use.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long an error is recent.
const RECENT: Duration = Duration::from_secs(30);

/// Time of the last error, in milliseconds since [`BEGINNING`]; 0: never. One value for all pools: they connect to the same
/// server, and a needless check costs only a round trip.
static LAST: AtomicU64 = AtomicU64::new(0);
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Notes that there was an error now.
pub(crate) fn note() {
    LAST.store(milliseconds().max(1), Ordering::Relaxed);
}

pub(crate) fn is_recent() -> bool {
    match LAST.load(Ordering::Relaxed) {
        0 => false,
        at => u128::from(milliseconds().saturating_sub(at)) < RECENT.as_millis(),
    }
}

fn milliseconds() -> u64 {
    u64::try_from(BEGINNING.elapsed().as_millis()).unwrap_or(u64::MAX)
}
