//! Addresses of the test services, and names that are unique to one test.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

use uuid::Uuid;

/// The URL of the test run's Redis.
pub fn redis_url() -> String {
    variable("TEST_REDIS_URL")
}

/// The URL of the test run's RabbitMQ.
pub fn amqp_url() -> String {
    variable("TEST_AMQP_URL")
}

/// A unique prefix for the exchanges and queues of one test, with its separator: `test-<12 hex>.`.
pub fn amqp_prefix() -> String {
    format!("test-{}.", unique())
}

/// A unique prefix for the keys and channels of one test, with its separator: `test-<12 hex>:`.
pub fn redis_prefix() -> String {
    format!("test-{}:", unique())
}

/// The range in which free ports are searched: below the ephemeral ports of the kernel (from 32768), so that no outgoing connection of another
/// test takes one before its process listens, and below the ports of the services that the tests share (from 20000).
const PORTS: Range<u16> = 10_000..20_000;

/// Loopback ports that are free at the moment, for processes that cannot be told to take any.
///
/// # Panics
///
/// If fewer than `count` ports are free.
pub fn free_ports(count: usize) -> Vec<u16> {
    // Starts at a random port, because several tests search at the same time.
    let start = (Uuid::new_v4().as_u128() % PORTS.len() as u128) as usize;
    let candidates = PORTS.cycle().skip(start).take(PORTS.len());
    // Listeners keep all ports until the last one is found, so that the ports differ.
    let held: Vec<(u16, TcpListener)> = candidates
        .filter_map(|port| Some((port, TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?)))
        .take(count)
        .collect();
    assert_eq!(held.len(), count, "not enough free ports in {PORTS:?}");
    held.iter().map(|(port, _)| *port).collect()
}

/// Twelve random hexadecimal digits.
pub(crate) fn unique() -> String {
    let mut text = Uuid::new_v4().simple().to_string();
    text.truncate(12);
    text
}

/// The value of an environment variable that `tests/run` sets. Panics if it is missing.
pub(crate) fn variable(name: &str) -> String {
    match std::env::var(name) {
        Ok(value) => value,
        Err(_) => panic!(
            "{name} is not set: run through tests/run, or source .local/test/env after tests/run --services-only"
        ),
    }
}
