//! What is held at once, such as bytes of memory or slots, shared fairly among accounts ([`Shares`]).
//!
//! **Guarantee.** The held units never exceed the total, and those of one key never exceed the limit of a key. However
//! much others ask for, a key that holds nothing is admitted before those that hold something, except for one waiter that was next
//! and did not fit. Every waiter is admitted when the holders end. Units are released when they are dropped, also by a panic. A waiter that is dropped leaves its queue and holds
//! nothing.
//!
//! **Mechanism.** Of the waiting keys, the one that holds least is next; keys that hold the same take turns; within a key, waiters are
//! admitted in the order of their arrival. A key at its limit waits for itself alone. When the next waiter does not fit, the others
//! wait behind it, so that small requests do not overtake a large one forever. Only keys that hold nothing may pass it,
//! [`PASSES`] times. A wait has no time limit of its own: the caller decides how long to wait, and what follows.
//!
//! **Reason.** A semaphore is fair to requests, so whoever sends most requests gets most. To hold the least first equals max-min
//! fairness of what is held, and needs neither a clock nor weights.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

/// How often keys that hold nothing pass one waiter that does not fit.
const PASSES: u32 = 16;
/// How often shares are measured, and after how many times the log names who holds most.
const MEASURED_EVERY: Duration = Duration::from_secs(5);
const TOLD_EVERY: u32 = 12;
/// The part of a share above which it is told.
const NOTABLE: f64 = 0.8;

/// The shares of this process.
static ALL: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// Who holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    Account(Arc<str>),
    /// A client without a credential: an IPv4 address, or the first address of an IPv6 /64.
    Address(IpAddr),
    /// A host, a connection or another name.
    Name(Arc<str>),
}

impl Key {
    /// The key of an account.
    pub fn account(account: &str) -> Self {
        Self::Account(account.into())
    }

    /// The key of another name.
    pub fn name(name: &str) -> Self {
        Self::Name(name.into())
    }
}

/// Units that keys hold, with a total and a limit for each key. Clones share them.
#[derive(Clone)]
pub struct Shares(Arc<Inner>);

struct Inner {
    name: &'static str,
    total: u64,
    per_key: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: u64,
    /// The keys that hold something or wait.
    keys: HashMap<Key, Entry>,
    /// The waiting keys that are not at their limit: by what they hold, then by turn.
    order: BTreeSet<(u64, u64, Key)>,
    /// The waiter that is next and does not fit: its key, its number, and how many may still pass it.
    head: Option<(Key, u64, u32)>,
    /// The last number given to a waiter or a turn.
    last: u64,
}

#[derive(Default)]
struct Entry {
    held: u64,
    turn: u64,
    waiters: VecDeque<Waiter>,
}

struct Waiter {
    number: u64,
    units: u64,
    admitted: oneshot::Sender<()>,
}

/// Units held of [`Shares`], released on drop.
pub struct Held {
    shares: Shares,
    key: Key,
    units: u64,
}

/// The units would exceed the limit of a key by themselves, so that waiting is in vain.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

impl Shares {
    /// Shares of `total` units, of which one key holds at most `per_key`; both are at least 1. `name` is their label in metrics.
    pub fn new(name: &'static str, total: u64, per_key: u64) -> Self {
        let total = total.max(1);
        let inner = Inner { name, total, per_key: per_key.clamp(1, total), state: Mutex::default() };
        let shares = Self(Arc::new(inner));
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&shares.0));
        shares
    }

    /// The shares of this process that are in use.
    fn all() -> Vec<Self> {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|shares| shares.strong_count() > 0);
        all.iter().filter_map(Weak::upgrade).map(Self).collect()
    }

    /// The label in metrics.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The units that all keys hold at most.
    pub fn total(&self) -> u64 {
        self.0.total
    }

    /// The units that one key holds at most.
    pub fn per_key(&self) -> u64 {
        self.0.per_key
    }

    /// The units that are held.
    pub fn held(&self) -> u64 {
        self.lock().held
    }

    /// The number of waiters.
    pub fn waiting(&self) -> usize {
        self.lock().keys.values().map(|entry| entry.waiters.len()).sum()
    }

    /// Counts a request that is refused for want of these shares. `reason` is one of a few names, for metrics.
    pub fn refuse(&self, reason: &'static str) {
        metrics::counter!("canvas_share_refused_total", "share" => self.name(), "reason" => reason).increment(1);
    }

    /// The key that holds most, and how much.
    pub fn heaviest(&self) -> Option<(Key, u64)> {
        self.heaviest_of(|_| true)
    }

    fn heaviest_of(&self, is_meant: impl Fn(&Key) -> bool) -> Option<(Key, u64)> {
        let state = self.lock();
        let heaviest = state.keys.iter().filter(|(key, _)| is_meant(key)).max_by_key(|(_, entry)| entry.held);
        heaviest.filter(|(_, entry)| entry.held > 0).map(|(key, entry)| (key.clone(), entry.held))
    }

    /// Whose units must be released before `key` can hold `units` more: its own at its limit, else those of the heaviest key. `None`
    /// when they fit.
    pub fn blocker(&self, key: &Key, units: u64) -> Option<Key> {
        let state = self.lock();
        if state.keys.get(key).is_some_and(|entry| entry.held + units > self.0.per_key) {
            return Some(key.clone());
        }
        let fits = state.held + units <= self.0.total;
        drop(state);
        if fits { None } else { self.heaviest().map(|(key, _)| key) }
    }

    /// Waits until `key` may hold `units`, and at most as many as a key may hold. Nothing waits for zero units.
    ///
    /// A holder must not wait for the same shares a second time, because two such holders could deadlock; [`Held::grow`] says how a
    /// holder may.
    pub async fn hold(&self, key: &Key, units: u64) -> Held {
        let units = units.min(self.0.per_key);
        let (admitted, admission) = oneshot::channel();
        let number = {
            let mut state = self.lock();
            if state.take(&self.0, key, units) {
                return self.held_by(key, units);
            }
            state.last += 1;
            let number = state.last;
            state.change(&self.0, key, |entry| {
                if entry.waiters.is_empty() {
                    entry.turn = number;
                }
                entry.waiters.push_back(Waiter { number, units, admitted });
            });
            state.admit(&self.0);
            number
        };
        let mut waiting = Waiting { shares: self, key, number, units, ended: false };
        // The sender is in the queue until it is used, so there is no other outcome.
        admission.await.ok();
        waiting.ended = true;
        self.held_by(key, units)
    }

    /// Holds `units` for `key` if nobody has to wait for them.
    pub fn try_hold(&self, key: &Key, units: u64) -> Option<Held> {
        self.lock().take(&self.0, key, units).then(|| self.held_by(key, units))
    }

    fn held_by(&self, key: &Key, units: u64) -> Held {
        Held { shares: self.clone(), key: key.clone(), units }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs while the state is inconsistent.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, key: &Key, units: u64) {
        if units > 0 {
            let mut state = self.lock();
            state.held -= units;
            state.change(&self.0, key, |entry| entry.held -= units);
            state.admit(&self.0);
        }
    }
}

impl State {
    /// Holds at once if nobody would be passed.
    fn take(&mut self, shares: &Inner, key: &Key, units: u64) -> bool {
        if units == 0 {
            return true;
        }
        let (mine, waits) = self.keys.get(key).map_or((0, false), |entry| (entry.held, !entry.waiters.is_empty()));
        let fits = self.held + units <= shares.total && mine + units <= shares.per_key;
        if waits || !fits || !self.order.is_empty() {
            return false;
        }
        self.held += units;
        self.keys.entry(key.clone()).or_default().held += units;
        true
    }

    /// Changes the entry of a key and brings its place in the order up to date.
    fn change<T>(&mut self, shares: &Inner, key: &Key, change: impl FnOnce(&mut Entry) -> T) -> T {
        let entry = self.keys.entry(key.clone()).or_default();
        self.order.remove(&(entry.held, entry.turn, key.clone()));
        let result = change(entry);
        match entry.waiters.front() {
            Some(first) if entry.held + first.units <= shares.per_key => {
                self.order.insert((entry.held, entry.turn, key.clone()));
            }
            None if entry.held == 0 => {
                self.keys.remove(key);
            }
            _ => {}
        }
        result
    }

    /// Admits the waiters that are next as long as they fit.
    fn admit(&mut self, shares: &Inner) {
        while let Some(key) = self.next(shares.total - self.held) {
            self.last += 1;
            let turn = self.last;
            let admitted = self.change(shares, &key, |entry| {
                let waiter = entry.waiters.pop_front()?;
                entry.held += waiter.units;
                entry.turn = turn;
                Some(waiter)
            });
            if let Some(waiter) = admitted {
                self.held += waiter.units;
                // A waiter that is being dropped finds itself admitted, and releases.
                waiter.admitted.send(()).ok();
            }
        }
    }

    /// The key whose first waiter is admitted next into `free` units. Nobody is chosen while there are none.
    fn next(&mut self, free: u64) -> Option<Key> {
        if free == 0 {
            return None;
        }
        let first = |key: &Key| self.keys.get(key).and_then(|entry| entry.waiters.front());
        let still = |(key, number, _): &(Key, u64, u32)| first(key).is_some_and(|waiter| waiter.number == *number);
        let (head, number, passes) = match self.head.take().filter(still) {
            Some(head) => head,
            None => {
                let (_, _, key) = self.order.first()?;
                (key.clone(), first(key)?.number, PASSES)
            }
        };
        let fits = |key: &Key| first(key).is_some_and(|waiter| waiter.units <= free);
        if fits(&head) {
            return Some(head);
        }
        let mut without = self.order.iter().take_while(|(held, ..)| *held == 0).map(|(.., key)| key);
        let passing = if passes > 0 { without.find(|key| **key != head && fits(key)).cloned() } else { None };
        self.head = Some((head, number, passes - u32::from(passing.is_some())));
        passing
    }
}

/// Measures the shares of this process, and once a minute tells in one line of the log who held most of each that was almost taken. Runs
/// until it is dropped; spawn it once in a process.
pub async fn watch() {
    let mut notable = Notable::new();
    for round in 1_u32.. {
        sleep(MEASURED_EVERY).await;
        measure(&Shares::all(), &mut notable);
        if round % TOLD_EVERY == 0 && !notable.is_empty() {
            let told: Vec<String> = std::mem::take(&mut notable).into_values().map(|(_, told)| told).collect();
            tracing::warn!(shares = told.join("; "), "shares were almost taken; see docs/reference/limits.md#shares");
        }
    }
}

/// The largest part of a share that was held, and by whom.
type Notable = BTreeMap<&'static str, (f64, String)>;

/// Sets the metrics, and notes the account and the address that hold most of each share that is almost taken.
fn measure(all: &[Shares], notable: &mut Notable) {
    for shares in all {
        let ratio = shares.held() as f64 / shares.total() as f64;
        metrics::gauge!("canvas_share_held_ratio", "share" => shares.name()).set(ratio);
        if ratio > NOTABLE && notable.get(shares.name()).is_none_or(|(before, _)| ratio >= *before) {
            let account = shares.heaviest_of(|key| matches!(key, Key::Account(_)));
            let address = shares.heaviest_of(|key| matches!(key, Key::Address(_)));
            let heaviest = account.iter().chain(&address).map(|(key, units)| format!(", {key:?} {units}"));
            let told = format!("{} {ratio:.2}{}", shares.name(), heaviest.collect::<String>());
            notable.insert(shares.name(), (ratio, told));
        }
    }
}

/// A place in a queue, given up on drop.
struct Waiting<'a> {
    shares: &'a Shares,
    key: &'a Key,
    number: u64,
    units: u64,
    ended: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut state = self.shares.lock();
        let waited = state.change(&self.shares.0, self.key, |entry| {
            let place = entry.waiters.iter().position(|waiter| waiter.number == self.number);
            place.and_then(|place| entry.waiters.remove(place)).is_some()
        });
        if waited {
            // Those behind it may fit.
            state.admit(&self.shares.0);
        } else {
            drop(state);
            self.shares.release(self.key, self.units);
        }
    }
}

impl Held {
    /// The units that are held.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Waits until `by` more units are held; [`Full`] when they could never be.
    ///
    /// Two holders that grow may wait for each other. The caller limits the wait, and ends a holder that [`Shares::blocker`] names.
    pub async fn grow(&mut self, by: u64) -> Result<(), Full> {
        if self.units.saturating_add(by) > self.shares.per_key() {
            return Err(Full);
        }
        let mut more = self.shares.hold(&self.key, by).await;
        self.units += std::mem::take(&mut more.units);
        Ok(())
    }

    /// Releases what exceeds `units`.
    pub fn shrink_to(&mut self, units: u64) {
        let surplus = self.units.saturating_sub(units);
        self.units -= surplus;
        self.shares.release(&self.key, surplus);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shares.release(&self.key, self.units);
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} held by {:?}", self.units, self.shares.name(), self.key)
    }
}

impl std::fmt::Debug for Shares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} {}", self.held(), self.total(), self.name())
    }
}

#[cfg(test)]
mod tests;
