//! Failed credentials of addresses, judged before the database (docs/reference/conventions.md#failed-credentials).
//!
//! **Guarantee.** An address with more failures in a minute than allowed gets 429 for every credential but those that were valid in
//! this process within 10 minutes, and costs no query. So who guesses keeps nobody out who works behind the same address. Nothing is
//! granted here: what passes is looked up as ever.
//!
//! **Mechanism.** The failures of an address are counted in windows of a minute that begin with its first failure. Those of the window
//! before count in proportion to the part of it that is less than a minute ago. Of credentials only ids are kept, no secrets. Both
//! memories are bounded; the entries that were used least go first.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quick_cache::unsync::Cache;
use tokio::time::Instant;
use uuid::Uuid;

use crate::address::ClientAddress;

use crate::problem::{Problem, Result};
use crate::rates::whole_seconds;

/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 65_536;
/// Credentials that are remembered, and for how long.
const VALID_MAX: usize = 100_000;
const VALID_FOR: Duration = Duration::from_secs(10 * 60);
const MINUTE: Duration = Duration::from_secs(60);

/// The failures of addresses, and the credentials that were valid lately.
pub struct Failures {
    /// Failures of an address in a minute; 0 for no limit.
    per_minute: u32,
    addresses: Mutex<Cache<ClientAddress, Window>>,
    valid: Mutex<Cache<Uuid, Instant>>,
}

/// The failures of an address.
#[derive(Clone, Copy)]
struct Window {
    began: Instant,
    failures: u32,
    /// Those of the minute before it began.
    before: u32,
}

impl Failures {
    /// Allows an address `per_minute` failures in a minute; any number if that is 0.
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, addresses: Mutex::new(Cache::new(ADDRESSES_MAX)), valid: Mutex::new(Cache::new(VALID_MAX)) }
    }

    /// What `lookup` finds for a credential that `address` presents; `id` is its id, if it has the form of a credential.
    ///
    /// # Errors
    ///
    /// 401 if it finds nothing, and 429 without a lookup after too many failures of the address.
    pub async fn judge<T>(
        &self,
        address: ClientAddress,
        id: Option<Uuid>,
        lookup: impl Future<Output = Result<Option<T>>>,
    ) -> Result<T> {
        if !id.is_some_and(|id| self.was_valid(id))
            && let Some(wait) = self.wait(address)
        {
            let why = "too many failed credentials from this address".into();
            return Err(Problem::RateLimited(why, whole_seconds(wait)));
        }
        match (lookup.await?, id) {
            (Some(found), id) => {
                if let Some(id) = id {
                    lock(&self.valid).insert(id, Instant::now());
                }
                Ok(found)
            }
            (None, _) => {
                self.count(address);
                Err(Problem::Unauthorized)
            }
        }
    }

    fn was_valid(&self, id: Uuid) -> bool {
        lock(&self.valid).get(&id).is_some_and(|seen| seen.elapsed() < VALID_FOR)
    }

    /// How long the address has to wait for its next attempt, if it has to.
    fn wait(&self, address: ClientAddress) -> Option<Duration> {
        if self.per_minute == 0 {
            return None;
        }
        let now = Instant::now();
        let window = lock(&self.addresses).get(&address)?.at(now);
        let (allowed, failures, before) =
            (f64::from(self.per_minute), f64::from(window.failures), f64::from(window.before));
        // The part of a window that has to pass until its failures and those of the window before are no more than allowed.
        let parts = match failures > allowed {
            true => 1.0 + (1.0 - allowed / failures),
            false => 1.0 - (allowed - failures) / before,
        };
        let wait = MINUTE.mul_f64(parts.max(0.0)).saturating_sub(now - window.began);
        (!wait.is_zero()).then_some(wait)
    }

    fn count(&self, address: ClientAddress) {
        let now = Instant::now();
        let mut addresses = lock(&self.addresses);
        let window =
            addresses.get(&address).map_or(Window { began: now, failures: 0, before: 0 }, |window| window.at(now));
        addresses.insert(address, Window { failures: window.failures.saturating_add(1), ..window });
    }
}

impl Window {
    /// The window at a later time.
    fn at(self, now: Instant) -> Self {
        match (now - self.began).as_secs() / MINUTE.as_secs() {
            0 => self,
            1 => Self { began: self.began + MINUTE, failures: 0, before: self.failures },
            _ => Self { began: now, failures: 0, before: 0 },
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A cache is consistent after every call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::IpAddr;

    use super::*;

    const ALLOWED: u32 = 60;

    fn address(number: u32) -> ClientAddress {
        IpAddr::from(number.to_be_bytes()).into()
    }

    /// Presents a credential, valid or not. 200, 401 or 429, and whether it was looked up.
    async fn present(failures: &Failures, from: u32, id: u128, is_valid: bool) -> (u16, bool) {
        let looked_up = Cell::new(false);
        let lookup = async {
            looked_up.set(true);
            Ok(is_valid.then_some(()))
        };
        let status = match failures.judge(address(from), Some(Uuid::from_u128(id)), lookup).await {
            Ok(()) => 200,
            Err(Problem::Unauthorized) => 401,
            Err(Problem::RateLimited(..)) => 429,
            Err(other) => panic!("{other:?}"),
        };
        (status, looked_up.get())
    }

    const ACCEPTED: (u16, bool) = (200, true);
    const FAILED: (u16, bool) = (401, true);
    const REFUSED: (u16, bool) = (429, false);

    #[tokio::test(start_paused = true)]
    async fn more_failures_than_allowed_are_refused_without_a_lookup_until_a_minute_has_passed() {
        let failures = Failures::new(ALLOWED);
        assert_eq!(present(&failures, 1, 7, true).await, ACCEPTED);
        for sent in 0..=ALLOWED {
            assert_eq!(present(&failures, 1, 1000 + u128::from(sent), false).await, FAILED, "{sent}");
        }
        for wait in [0, 30, 29] {
            tokio::time::advance(Duration::from_secs(wait)).await;
            assert_eq!(present(&failures, 1, 2, false).await, REFUSED);
            assert_eq!(present(&failures, 1, 2, true).await, REFUSED, "a credential that was not seen before");
            assert_eq!(present(&failures, 1, 7, true).await, ACCEPTED, "one that was");
            assert_eq!(present(&failures, 2, 8, true).await, ACCEPTED, "another address");
        }
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(present(&failures, 1, 3, true).await, ACCEPTED);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attack_costs_as_many_lookups_a_minute_as_failures_are_allowed() {
        let failures = Failures::new(ALLOWED);
        for minute in 0..5 {
            let mut lookups = 0;
            for sent in 0..600 {
                lookups += u32::from(present(&failures, 1, sent, false).await.1);
                tokio::time::advance(Duration::from_millis(100)).await;
            }
            assert!((ALLOWED - 2..=ALLOWED + 2).contains(&lookups), "{minute}: {lookups}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_that_is_told_is_enough() {
        let failures = Failures::new(3);
        let mut failed = 0;
        while failed < 20 {
            match failures.judge::<()>(address(1), None, async { Ok(None) }).await {
                Err(Problem::Unauthorized) => failed += 1,
                Err(Problem::RateLimited(_, seconds)) => {
                    assert!((1..=80).contains(&seconds), "{seconds}");
                    tokio::time::advance(Duration::from_secs(seconds)).await;
                    assert!(failures.wait(address(1)).is_none(), "{seconds}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_credential_is_known_for_ten_minutes() {
        let failures = Failures::new(1);
        for (wait, expected) in [(VALID_FOR - Duration::from_millis(1), ACCEPTED), (VALID_FOR, REFUSED)] {
            assert_eq!(present(&failures, 2, 7, true).await, ACCEPTED);
            tokio::time::advance(wait).await;
            for _ in 0..2 {
                present(&failures, 1, 1, false).await;
            }
            assert_eq!(present(&failures, 1, 7, true).await, expected, "{wait:?}");
        }
    }

    #[tokio::test]
    async fn a_credential_of_no_form_counts_and_a_limit_of_zero_is_none() {
        let (failures, unlimited) = (Failures::new(1), Failures::new(0));
        let fail = async |failures: &Failures| failures.judge::<()>(address(1), None, async { Ok(None) }).await;
        for _ in 0..2 {
            assert!(matches!(fail(&failures).await, Err(Problem::Unauthorized)));
        }
        assert!(matches!(fail(&failures).await, Err(Problem::RateLimited(..))));
        for _ in 0..200 {
            assert!(matches!(fail(&unlimited).await, Err(Problem::Unauthorized)));
        }
    }

    #[tokio::test]
    async fn the_memory_is_bounded() {
        let failures = Failures::new(1);
        for number in 0..2 * ADDRESSES_MAX as u32 {
            failures.count(address(number));
            lock(&failures.valid).insert(Uuid::from_u128(u128::from(number)), Instant::now());
        }
        assert!(lock(&failures.addresses).len() <= ADDRESSES_MAX && lock(&failures.valid).len() <= VALID_MAX);
        // The one that fails most is not forgotten for those that fail once.
        for number in 0..3 * ADDRESSES_MAX as u32 {
            failures.count(address(number));
            failures.count(address(u32::MAX));
        }
        assert!(failures.wait(address(u32::MAX)).is_some());
    }
}
