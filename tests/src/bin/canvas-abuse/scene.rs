//! One attack: its own stack, the accounts of the attacker, and what is seen of it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use e2e::{Account, Part, Services, Stack, User};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::rows::Row;
use crate::wire::{Heard, Outcome};

/// Egress is allowed to all of loopback, because foreign servers are there. The addresses of receivers are in it.
const EGRESS: &str = "127.0.0.0/8";
/// The address of a name server that does not answer.
pub const NAMESERVER: &str = "127.0.0.253";
/// Receivers of the victims (shop and webhooks) and of the attacker.
const RECEIVERS: usize = 4;
/// The defaults of an installation, which the harness of the tests changes (tests/src/stack.rs).
const DEFAULTS: [(&str, &str); 3] = [
    ("CANVAS_CONNECTIONS_PER_ADDRESS", "256"),
    ("CANVAS_FAILED_AUTH_PER_MINUTE", "60"),
    ("CANVAS_DATABASE_CONNECTIONS", "16"),
];

/// How often an attacker saw something, and the first reason that it was given.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub count: u64,
    pub reason: Option<String>,
}

/// A stack under attack.
pub struct Scene {
    pub stack: Stack,
    /// `true` in the short form, which is made of fewer seconds.
    pub short: bool,
    /// Present if the attack stops services.
    pub services: Option<Services>,
    seen: Mutex<BTreeMap<Outcome, Seen>>,
    faults: Mutex<Vec<String>>,
    notes: Mutex<Vec<String>>,
    attackers: Mutex<Vec<Account>>,
    killed: Mutex<Vec<Part>>,
    prepared: Notify,
    begun: Notify,
    over: CancellationToken,
}

impl Scene {
    /// Starts the stack of a row.
    pub async fn start(row: &Row, short: bool) -> Self {
        let services = match row.own_services {
            true => Some(Services::start().await),
            false => None,
        };
        let mut builder = Stack::builder().gateways(row.gateways).image_workers(1).dispatchers(1).receivers(RECEIVERS);
        if let Some(services) = &services {
            builder = builder.on(services);
        }
        if row.dead_nameserver {
            builder = builder.nameserver(NAMESERVER);
        }
        builder = builder.env("CANVAS_EGRESS_ALLOW", EGRESS);
        for (name, value) in DEFAULTS.iter().chain(row.env) {
            builder = builder.env(name, value);
        }
        Self {
            stack: builder.start().await,
            short,
            services,
            seen: Mutex::default(),
            faults: Mutex::default(),
            notes: Mutex::default(),
            attackers: Mutex::default(),
            killed: Mutex::default(),
            prepared: Notify::new(),
            begun: Notify::new(),
            over: CancellationToken::new(),
        }
    }

    /// An account of the attacker, which is purged after the attack.
    pub async fn account(&self) -> Account {
        let account = self.stack.account().await;
        lock(&self.attackers).push(account.clone());
        account
    }

    /// An account of the attacker and a token of it.
    pub async fn user(&self) -> User {
        self.stack.user_of(&self.account().await, "all").await
    }

    /// The accounts of the attacker.
    pub fn attackers(&self) -> Vec<Account> {
        lock(&self.attackers).clone()
    }

    /// The address of the first gateway.
    pub fn gateway(&self) -> SocketAddr {
        self.stack.authority(0).parse().expect("an address")
    }

    /// Runs the attack from the moment at which the baseline is measured until its time is over. It must not end before.
    pub async fn during(&self, attack: impl Future<Output = ()>) {
        self.prepared.notify_one();
        self.begun.notified().await;
        tokio::select! {
            () = attack => self.fail("the attack ended before its time"),
            () = self.over.cancelled() => {}
        }
    }

    /// Waits until the attack is prepared.
    pub async fn prepared(&self) {
        self.prepared.notified().await;
    }

    /// Lets the attack begin.
    pub fn begin(&self) {
        self.begun.notify_one();
    }

    /// Ends the attack when the guard is dropped, if it has not ended by then.
    pub fn ends_when_dropped(&self) -> DropGuard {
        self.over.clone().drop_guard()
    }

    /// Ends the attack.
    pub fn end(&self) {
        self.over.cancel();
    }

    /// Counts what became of a request of the attacker.
    pub fn saw(&self, heard: impl Into<Heard>) {
        let Heard { outcome, reason } = heard.into();
        let mut all = lock(&self.seen);
        let seen = all.entry(outcome).or_default();
        seen.count += 1;
        seen.reason = seen.reason.take().or(reason);
    }

    /// Counts the answer to a call of the attacker's client.
    pub fn replied(&self, attempt: &Result<e2e::Reply, reqwest::Error>) {
        match attempt {
            Ok(reply) => self.saw(Heard {
                outcome: Outcome::Status(reply.status),
                reason: (reply.status >= 400).then(|| String::from_utf8_lossy(&reply.body).chars().take(300).collect()),
            }),
            Err(error) if error.is_connect() => self.saw(Outcome::Unreachable),
            Err(_) => self.saw(Outcome::Closed),
        }
    }

    /// What became of the requests of the attacker.
    pub fn seen(&self) -> BTreeMap<Outcome, Seen> {
        lock(&self.seen).clone()
    }

    /// How often the attacker got this status.
    pub fn count(&self, status: u16) -> u64 {
        lock(&self.seen).get(&Outcome::Status(status)).map_or(0, |seen| seen.count)
    }

    /// Reports a fault of the service.
    pub fn fail(&self, fault: impl Into<String>) {
        lock(&self.faults).push(fault.into());
    }

    /// The faults so far.
    pub fn faults(&self) -> Vec<String> {
        lock(&self.faults).clone()
    }

    /// Adds a figure to the report.
    pub fn note(&self, note: impl Into<String>) {
        lock(&self.notes).push(note.into());
    }

    /// The figures so far.
    pub fn notes(&self) -> Vec<String> {
        lock(&self.notes).clone()
    }

    /// Kills a part, which is then not expected to run.
    pub fn kill(&self, part: Part) {
        self.stack.kill(part);
        lock(&self.killed).push(part);
    }

    /// The parts that are expected to run.
    pub fn parts(&self) -> Vec<Part> {
        let killed = lock(&self.killed).clone();
        self.stack.parts().into_iter().filter(|part| !killed.contains(part)).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The source addresses of an attacker, none of which is a victim's: 127.0.1.1, 127.0.1.2 and so on.
pub fn address(number: usize) -> Ipv4Addr {
    const IN_A_BLOCK: usize = 250;
    let block = u8::try_from(1 + number / IN_A_BLOCK).expect("fewer than 254 blocks");
    let host = u8::try_from(1 + number % IN_A_BLOCK).expect("at most 250");
    Ipv4Addr::new(127, 0, block, host)
}

/// Runs `count` attackers at once, each with its number.
pub async fn crowd(count: usize, attacker: impl AsyncFn(usize)) {
    futures_util::future::join_all((0..count).map(|number| attacker(number))).await;
}

/// Waits so that something that is repeated happens at most `rate` times a second.
pub struct Pace {
    next: tokio::time::Instant,
    interval: Duration,
}

impl Pace {
    /// At most this many times a second.
    pub fn new(rate: f64) -> Self {
        Self { next: tokio::time::Instant::now(), interval: Duration::from_secs_f64(1.0 / rate) }
    }

    /// Waits for the next time. Times that were missed are not made up for.
    pub async fn wait(&mut self) {
        tokio::time::sleep_until(self.next).await;
        self.next = tokio::time::Instant::now().max(self.next) + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_attackers_differ_and_are_not_127_0_0_1() {
        let all: std::collections::BTreeSet<_> = (0..1000).map(address).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.iter().all(|address| address.is_loopback() && address.octets()[2] > 0));
    }
}
