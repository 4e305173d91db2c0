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
pub(super) mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use http::{HeaderMap, HeaderName, HeaderValue};
    use service::probes::Readiness;

    use super::*;

    /// A gate without trusted proxies.
    pub(in crate::server) fn gate(connections: usize, per_address: usize) -> Gate {
        behind(&[], connections, per_address)
    }

    fn behind(trusted: &[&str], connections: usize, per_address: usize) -> Gate {
        let trusted = trusted.iter().map(|block| block.parse().expect("a block")).collect();
        let readiness = Readiness::new(CancellationToken::new()).component("connections", true);
        Gate::new(Limits { connections, per_address, trusted }, readiness)
    }

    /// A connection through a gate of its own.
    pub(in crate::server) fn connection() -> Connection {
        open(&gate(10, 10), "127.0.0.1").expect("admitted")
    }

    fn open(gate: &Gate, peer: &str) -> Option<Connection> {
        gate.open(peer.parse().expect("an address"))
    }

    fn is_closing(connection: &Connection) -> bool {
        pin!(connection.closing()).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    /// Lets the connection handle a request to its end.
    fn request(connection: &Connection) {
        assert!(connection.begin_request());
        connection.end_request(None);
        drop(InProgress { connection: connection.clone(), _held: None });
        assert!(connection.in_request(), "the response is not written yet");
        connection.flushed();
        assert!(!connection.in_request());
    }

    async fn seconds(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[test]
    fn an_address_has_its_part_and_gets_no_more() {
        let gate = gate(100, 3);
        for (mine, also_mine, other) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff::2", "2001:db8:1:3::1"),
        ] {
            let mut held: Vec<_> =
                [mine, also_mine, mine].iter().map(|peer| open(&gate, peer).expect("admitted")).collect();
            assert!(open(&gate, mine).is_none() && open(&gate, also_mine).is_none());
            assert!(open(&gate, other).is_some());
            assert!(!held.iter().any(is_closing), "an address loses none for its own");
            held.pop();
            assert!(open(&gate, mine).is_some());
        }
        assert!(gate.lock().addresses.is_empty() && gate.lock().closable.is_empty());
    }

    #[test]
    fn connections_of_a_trusted_proxy_do_not_count_for_it_and_requests_count_for_their_clients() {
        let gate = behind(&["10.0.0.0/8"], 100, 3);
        let proxy: Vec<_> = (0..10).map(|_| open(&gate, "10.0.0.1").expect("admitted")).collect();
        let held = |connection: &Connection, client: &'static str| {
            let headers: HeaderMap =
                [(HeaderName::from_static("x-forwarded-for"), HeaderValue::from_static(client))].into_iter().collect();
            connection.hold_request(connection.client_address(&headers))
        };
        let mut of_client: Vec<_> = (0..3).map(|at| held(&proxy[at], "192.0.2.1").expect("fits")).collect();
        assert!(of_client.iter().all(Option::is_some));
        assert!(held(&proxy[3], "192.0.2.1").is_err());
        assert!(held(&proxy[3], "192.0.2.2").is_ok(), "another client");
        of_client.pop();
        assert!(held(&proxy[3], "192.0.2.1").is_ok());
        // The requests of other peers are bounded by their connections.
        let direct = open(&gate, "192.0.2.1").expect("admitted");
        for _ in 0..10 {
            assert!(matches!(held(&direct, "10.0.0.1"), Ok(None)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_of_the_address_with_the_most_makes_room() {
        let gate = gate(6, 4);
        let mut large = Vec::new();
        for _ in 0..4 {
            large.push(open(&gate, "192.0.2.1").expect("admitted"));
            seconds(1).await;
        }
        let small = [open(&gate, "192.0.2.2").expect("admitted"), open(&gate, "192.0.2.2").expect("admitted")];
        seconds(1).await;
        // The second one is the longest idle: the first has had a request since, and the third handles one.
        request(&large[0]);
        assert!(large[2].begin_request());
        let new = [open(&gate, "192.0.2.3").expect("admitted")];
        assert!(is_closing(&large[1]) && !large[1].begin_request(), "no request begins on what makes room");
        assert!(!is_closing(&large[0]) && !is_closing(&large[2]) && !is_closing(&large[3]));
        // The books do not wait for the end of its task, and do not count it twice.
        assert_eq!(gate.lock().open(), 6);
        large.remove(1);
        assert_eq!(gate.lock().open(), 6);
        let newer = open(&gate, "192.0.2.4").expect("admitted");
        assert!(is_closing(&large[2]), "the last one has waited longer than the first");
        // All that remain handle a request: a new one is refused, also of an address that has none.
        for busy in [&large[0], &small[0], &small[1], &new[0], &newer] {
            assert!(!is_closing(busy) && busy.begin_request());
        }
        assert!(open(&gate, "192.0.2.5").is_none());
        small[0].end_request(None);
        assert!(open(&gate, "192.0.2.5").is_none(), "its response is being read");
        request(&small[0]);
        assert!(open(&gate, "192.0.2.5").is_some() && is_closing(&small[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_has_less_time_above_four_fifths() {
        let gate = gate(10, 10);
        let mut held: Vec<_> = (0..8).map(|_| open(&gate, "192.0.2.1").expect("admitted")).collect();
        request(&held[0]);
        assert_eq!(held[0].idle_left(), IDLE_MAX, "at 80 %");
        held.extend(open(&gate, "192.0.2.1"));
        assert_eq!(held[0].idle_left(), IDLE_CROWDED_MAX, "above 80 %");
        seconds(4).await;
        assert_eq!(held[0].idle_left(), Duration::from_secs(1));
        held.pop();
        assert_eq!(held[0].idle_left(), IDLE_MAX - Duration::from_secs(4));
        seconds(70).await;
        assert_eq!(held[0].idle_left(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_gate_that_refuses_everybody_for_five_seconds_is_not_ready_until_it_is_calm() {
        let stopping = CancellationToken::new();
        let readiness = Readiness::new(stopping);
        let component = readiness.component("connections", true);
        let gate = Gate::new(Limits { connections: 10, per_address: 10, trusted: Vec::new() }, component);
        let is_ready = || {
            gate.report();
            readiness.report().components["connections"].ok
        };
        let mut busy: Vec<_> = (0..10).map(|_| open(&gate, "192.0.2.1").expect("admitted")).collect();
        assert!(busy.iter().all(Connection::begin_request) && is_ready());
        let refused = || open(&gate, "192.0.2.2").is_none();
        assert!(refused() && is_ready());
        seconds(4).await;
        assert!(refused() && is_ready(), "not five seconds yet");
        // One that is admitted begins the time anew.
        busy.pop();
        busy.push(open(&gate, "192.0.2.3").expect("admitted"));
        busy[9].begin_request();
        seconds(1).await;
        assert!(refused() && is_ready());
        seconds(5).await;
        assert!(is_ready(), "nobody was refused since");
        assert!(refused() && !is_ready());
        let message = readiness.report().components["connections"].message.clone().expect("says why");
        assert!(message.starts_with("saturated"), "{message}");
        // Calm is below nine tenths, for ten seconds on end.
        busy.pop();
        assert!(!is_ready());
        seconds(11).await;
        assert!(!is_ready(), "at 90 %");
        busy.pop();
        assert!(!is_ready());
        seconds(9).await;
        assert!(!is_ready());
        seconds(1).await;
        assert!(is_ready());
    }

    /// The books agree with the connections after any history.
    #[tokio::test(start_paused = true)]
    async fn the_books_are_right_after_any_history() {
        for seed in 0..200_u64 {
            let gate = gate(12, 5);
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = |below: usize| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as usize % below
            };
            let mut open: Vec<Connection> = Vec::new();
            for _ in 0..200 {
                match (next(4), open.len()) {
                    (0, 1..) => drop(open.swap_remove(next(open.len()))),
                    (1, 1..) => {
                        let connection = &open[next(open.len())];
                        assert_eq!(connection.begin_request(), !is_closing(connection));
                    }
                    (2, 1..) => {
                        let connection = &open[next(open.len())];
                        connection.body_sent();
                        connection.flushed();
                    }
                    _ => open.extend(gate.open(IpAddr::from([192, 0, 2, next(4) as u8]))),
                }
                seconds(next(2) as u64).await;
                let live: Vec<_> = open.iter().filter(|connection| !is_closing(connection)).collect();
                let books = gate.lock();
                assert_eq!(books.open(), live.len());
                assert!(live.len() <= 12);
                for (address, entry) in &books.addresses {
                    let of_address = live.iter().filter(|connection| connection.0.address == *address);
                    assert_eq!(entry.open, of_address.clone().count());
                    assert!((1..=5).contains(&entry.open));
                    assert_eq!(entry.waiting.len(), of_address.filter(|connection| !connection.in_request()).count());
                    assert_eq!(books.closable.contains(&(entry.open, *address)), !entry.waiting.is_empty());
                }
                assert!(books.closable.len() <= books.addresses.len());
            }
            drop(open);
            let books = gate.lock();
            assert!(books.open() == 0 && books.addresses.is_empty() && books.closable.is_empty(), "{seed}");
        }
    }
}
