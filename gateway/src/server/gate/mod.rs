//! The gate: which connections are open, whose they are, and which one makes room for a new one
//! (docs/reference/conventions.md#connections-and-timeouts).
//!
//! **Guarantee.** There are never more connections than the limits, and a new one is decided on at once. Whoever has most connections
//! loses one first, and nobody loses a connection whose request is being handled or whose response is being read.
//!
//! **Mechanism.** Connections without a request are ordered by address and by the time since which they wait, and addresses by their
//! connections. So the longest waiting connection of the address with the most is found without a search. A connection that has to go
//! leaves the books before its task ends, and a request that arrives on it at this moment is not begun.
//!
//! **Reason.** An accept loop that waits for room is deaf to everybody while one client holds all connections.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use service::probes::ComponentHandle;
use service::shares::{Held, Key, Shares};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::address::{ClientAddress, is_trusted};

/// Time without a request after which a connection is closed; longer than common load balancers keep idle connections.
const IDLE_MAX: Duration = Duration::from_secs(65);
/// The same while the gate is crowded.
pub(super) const IDLE_CROWDED_MAX: Duration = Duration::from_secs(5);
/// Percent of the connections above which the gate is crowded.
const CROWDED: usize = 80;
/// How long every new connection is refused until the process is not ready.
const SATURATED_AFTER: Duration = Duration::from_secs(5);
/// It is ready again after this time below a share of the connections, in percent.
const CALM_AFTER: Duration = Duration::from_secs(10);
const CALM: usize = 90;
/// Interval between log lines about a crowded gate.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// What `/readyz` and the log say of a saturated gate.
const SATURATED: &str = "saturated: every new connection is refused; raise CANVAS_CONNECTIONS_MAX or add gateways";

/// The limits of a gate.
pub struct Limits {
    /// Open connections.
    pub connections: usize,
    /// Open connections of one address that is no trusted proxy, and requests in progress of one client address behind one.
    pub per_address: usize,
    /// The trusted proxies.
    pub trusted: Vec<IpNet>,
}

/// The open connections of one process. Clones share them.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    limits: Limits,
    /// Requests in progress of client addresses behind trusted proxies.
    requests: Shares,
    readiness: ComponentHandle,
    state: Mutex<State>,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has not sent a request yet.
    Accepted,
    /// A request is being handled, or its response read.
    Request,
    /// It waits for another request.
    Idle,
}

const PLACES: [(Place, &str); 3] = [(Place::Accepted, "accepted"), (Place::Request, "request"), (Place::Idle, "idle")];

#[derive(Default)]
struct State {
    /// Connections that were ever opened.
    opened: u64,
    /// Open connections by [`Place`].
    places: [usize; PLACES.len()],
    addresses: HashMap<IpAddr, Address>,
    /// The addresses with a connection that may be closed, by their number of connections.
    closable: BTreeSet<(usize, IpAddr)>,
    /// The first refusal since the last connection that was not refused.
    refusing: Option<Instant>,
    /// Since when the gate is below the share at which it is ready again.
    calm: Option<Instant>,
    saturated: bool,
    logged: Option<Instant>,
}

#[derive(Default)]
struct Address {
    open: usize,
    /// The connections without a request, by the time since which they wait and their number.
    waiting: BTreeMap<(Instant, u64), (Place, CancellationToken)>,
}

/// The mark of a request whose client address has too many in progress, in the extensions of the request.
#[derive(Clone, Copy, Debug)]
pub struct TooManyInProgress;

impl Gate {
    /// An empty gate, which reports to `readiness`.
    pub fn new(limits: Limits, readiness: ComponentHandle) -> Self {
        let requests = Shares::new("requests of an address", limits.connections as u64, limits.per_address as u64);
        Self(Arc::new(Inner { limits, requests, readiness, state: Mutex::default() }))
    }

    /// Admits a connection of `peer`. `None` if it has to be refused.
    pub(super) fn open(&self, peer: IpAddr) -> Option<Connection> {
        let limits = &self.0.limits;
        let trusted = is_trusted(peer, &limits.trusted);
        let address = ClientAddress::from(peer).into();
        let now = Instant::now();
        let mut state = self.lock();
        if !trusted && state.addresses.get(&address).is_some_and(|entry| entry.open >= limits.per_address) {
            metrics::counter!("canvas_gate_refused_total", "reason" => "address").increment(1);
            return None;
        }
        if state.open() >= limits.connections && !state.close_waiting() {
            metrics::counter!("canvas_gate_refused_total", "reason" => "full").increment(1);
            let since = *state.refusing.get_or_insert(now);
            state.saturated |= now - since >= SATURATED_AFTER;
            return None;
        }
        state.refusing = None;
        state.opened += 1;
        let connection = Shared {
            gate: self.clone(),
            peer,
            address,
            trusted,
            number: state.opened,
            spot: Mutex::new(Spot { place: Place::Accepted, since: now, is_sent: false, due: None }),
            closing: CancellationToken::new(),
            begun: CancellationToken::new(),
        };
        state.change(address, |entry| entry.open += 1);
        state.enter(&connection, Place::Accepted, now);
        Some(Connection(Arc::new(connection)))
    }

    /// Closes a connection without a request, if there is one.
    pub(super) fn close_waiting(&self) -> bool {
        self.lock().close_waiting()
    }

    /// Reports the connections to metrics, readiness and the log. Called every second.
    pub(super) fn report(&self) {
        let (now, most) = (Instant::now(), self.0.limits.connections);
        let mut state = self.lock();
        for (place, name) in PLACES {
            metrics::gauge!("canvas_gate_connections", "state" => name).set(state.places[place as usize] as f64);
        }
        let open = state.open();
        if open * 100 >= most * CALM {
            state.calm = None;
        } else if now - *state.calm.get_or_insert(now) >= CALM_AFTER {
            state.saturated = false;
        }
        match state.saturated {
            true => self.0.readiness.set_failing(SATURATED),
            false => self.0.readiness.set_ok(),
        }
        if open * 100 > most * CROWDED && state.logged.is_none_or(|logged| now - logged >= LOG_INTERVAL) {
            state.logged = Some(now);
            let heaviest = state.addresses.iter().max_by_key(|(_, entry)| entry.open);
            let (address, of_address) = heaviest.map_or((None, 0), |(address, entry)| (Some(*address), entry.open));
            let address = address.map(|address| tracing::field::display(ClientAddress::from(address)));
            tracing::warn!(connections = open, address, of_address, "the gate is crowded");
        }
    }

    fn is_crowded(&self) -> bool {
        self.lock().open() * 100 > self.0.limits.connections * CROWDED
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs while the state is inconsistent.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open(&self) -> usize {
        self.places.iter().sum()
    }

    /// Changes the entry of an address and its rank among those with a connection that may be closed.
    fn change<T>(&mut self, address: IpAddr, change: impl FnOnce(&mut Address) -> T) -> T {
        let rank = |entry: &Address| (!entry.waiting.is_empty()).then_some((entry.open, address));
        let entry = self.addresses.entry(address).or_default();
        let before = rank(entry);
        let changed = change(entry);
        let after = rank(entry);
        if entry.open == 0 {
            self.addresses.remove(&address);
        }
        if before != after {
            before.map(|rank| self.closable.remove(&rank));
            self.closable.extend(after);
        }
        changed
    }

    fn enter(&mut self, connection: &Shared, place: Place, now: Instant) {
        self.places[place as usize] += 1;
        if place != Place::Request {
            let waiting = (place, connection.closing.clone());
            self.change(connection.address, |entry| entry.waiting.insert((now, connection.number), waiting));
        }
    }

    /// Returns `false` if the connection was closed before.
    fn leave(&mut self, connection: &Shared, spot: Spot) -> bool {
        let waiting = (spot.since, connection.number);
        let is_open = spot.place == Place::Request
            || self.change(connection.address, |entry| entry.waiting.remove(&waiting).is_some());
        if is_open {
            self.places[spot.place as usize] -= 1;
        }
        is_open
    }

    /// Closes the connection that waits longest of the address with the most connections, of those that have one that waits.
    fn close_waiting(&mut self) -> bool {
        let Some((_, address)) = self.closable.last().copied() else { return false };
        let closed = self.change(address, |entry| {
            entry.open -= 1;
            entry.waiting.pop_first()
        });
        if let Some((_, (place, closing))) = &closed {
            self.places[*place as usize] -= 1;
            closing.cancel();
        }
        closed.is_some()
    }
}

/// An open connection; it leaves the gate when its last clone is dropped.
#[derive(Clone)]
pub(super) struct Connection(Arc<Shared>);

struct Shared {
    gate: Gate,
    peer: IpAddr,
    /// What the connection counts for.
    address: IpAddr,
    trusted: bool,
    number: u64,
    spot: Mutex<Spot>,
    /// Canceled when it makes room for another one.
    closing: CancellationToken,
    /// Canceled when its first request begins.
    begun: CancellationToken,
}

#[derive(Clone, Copy)]
struct Spot {
    place: Place,
    since: Instant,
    /// The body of the response is complete and may be written.
    is_sent: bool,
    /// Until when the response has to be read.
    due: Option<Instant>,
}

impl Connection {
    /// The address of a request with these headers.
    pub(super) fn client_address(&self, headers: &http::HeaderMap) -> ClientAddress {
        ClientAddress::from_request(self.0.peer, headers, &self.0.gate.0.limits.trusted)
    }

    /// Counts a request of `address` as in progress, where its connection does not count for it.
    pub(super) fn hold_request(&self, address: ClientAddress) -> Result<Option<Held>, TooManyInProgress> {
        match self.0.trusted {
            true => {
                self.0.gate.0.requests.try_hold(&Key::Address(address.into()), 1).map(Some).ok_or(TooManyInProgress)
            }
            false => Ok(None),
        }
    }

    /// A request head is complete. Returns `false` if the connection makes room for another one, so that no request may begin.
    pub(super) fn begin_request(&self) -> bool {
        let is_open = self.enter(Place::Request);
        self.0.begun.cancel();
        is_open
    }

    /// The response is made, and has to be read within `most` if given.
    pub(super) fn end_request(&self, most: Option<Duration>) {
        self.0.spot().due = most.map(|most| Instant::now() + most);
    }

    /// The body of the response is complete.
    fn body_sent(&self) {
        self.0.spot().is_sent = true;
    }

    /// All that was written has left the process.
    pub(super) fn flushed(&self) {
        let is_sent = self.0.spot().is_sent;
        if is_sent {
            self.enter(Place::Idle);
        }
    }

    fn enter(&self, place: Place) -> bool {
        let now = Instant::now();
        let mut spot = self.0.spot();
        let mut state = self.0.gate.lock();
        let is_open = state.leave(&self.0, *spot);
        if is_open {
            state.enter(&self.0, place, now);
            *spot = Spot { place, since: now, is_sent: false, due: None };
        }
        is_open
    }

    /// Waits for the first request.
    pub(super) async fn begun(&self) {
        self.0.begun.cancelled().await;
    }

    /// Waits until the connection has to make room for another one.
    pub(super) async fn closing(&self) {
        self.0.closing.cancelled().await;
    }

    /// Returns `true` if a request is being handled, or its response read.
    pub(super) fn in_request(&self) -> bool {
        self.0.spot().place == Place::Request
    }

    /// What the connection is doing, and since when.
    pub(super) fn place(&self) -> (Place, Instant) {
        let spot = self.0.spot();
        (spot.place, spot.since)
    }

    /// How long an idle connection may still wait, at present.
    pub(super) fn idle_left(&self) -> Duration {
        let most = if self.0.gate.is_crowded() { IDLE_CROWDED_MAX } else { IDLE_MAX };
        most.saturating_sub(self.place().1.elapsed())
    }

    /// Returns `true` if the deadline of the response has passed.
    pub(super) fn is_overdue(&self) -> bool {
        self.0.spot().due.is_some_and(|due| Instant::now() >= due)
    }
}

impl Shared {
    fn spot(&self) -> MutexGuard<'_, Spot> {
        self.spot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let spot = *self.spot();
        let mut state = self.gate.lock();
        if state.leave(self, spot) {
            state.change(self.address, |entry| entry.open -= 1);
        }
    }
}

/// A request in progress, until the body of its response is complete.
pub(super) struct InProgress {
    pub(super) connection: Connection,
    pub(super) _held: Option<Held>,
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.connection.body_sent();
    }
}

#[cfg(test)]
pub(super) mod tests;
