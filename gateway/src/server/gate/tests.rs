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
    for (mine, also_mine, other) in
        [("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"), ("2001:db8:1:2::1", "2001:db8:1:2:ffff::2", "2001:db8:1:3::1")]
    {
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
