//! Fault tests (docs/reliability.md#figures), scaled down to leases of a second and loads of seconds.
//!
//! Every test runs a seeded load of jobs with webhooks, injects a fault, and then runs [`e2e::checker`]. `FAULT_SEED=<seed>`
//! repeats the random decisions. [`scale`] has the sizes for this form and for the full one, which `tests/campaign` runs.
//! `tests/mutants` shows that each of these tests can fail.

mod budgets;
mod campaign;
mod conversions;
mod deaths;
mod events;
mod isolation;
mod links;
mod matrix;
mod order;
mod overflows;
mod races;
mod replicas;
mod restarts;
mod restore;
mod scale;
mod skew;
mod sockets;
mod steps;
mod streams;
mod submits;
mod undo;
mod upgrade;
mod videos;

use std::time::Duration;

use e2e::{Builder, Kind, Part, Plan, Stack};

/// The second image-worker, and the second of the others.
const OTHER_WORKER: Part = Part(Kind::ImageWorker, 1);
const OTHER_DISPATCHER: Part = Part(Kind::Dispatcher, 1);
const OTHER_GATEWAY: Part = Part(Kind::Gateway, 1);

/// The lease of these tests. The default is thirty seconds.
const LEASE: Duration = Duration::from_secs(1);

/// A whole service with one receiver and short leases, so that the work of a killed process is soon claimed by another one.
fn mortal() -> Builder {
    Stack::builder()
        .image_workers(1)
        .dispatchers(1)
        .receivers(1)
        .env("CANVAS_LEASE_SECONDS", LEASE.as_secs())
        .env("CANVAS_IDLE_CLAIM_MILLISECONDS", 500)
        .env("CANVAS_WEBHOOK_BACKOFF_SECONDS", "0.5,1,2")
        // The load must not hit the rate limit.
        .env("CANVAS_RATE_PER_MINUTE", 0)
}

/// The same with two processes of each kind.
fn doubled() -> Builder {
    mortal().gateways(2).image_workers(2).dispatchers(2)
}

/// Starts a stack and removes the messages that an earlier stack left in its virtual host.
async fn start(builder: Builder) -> Stack {
    let stack = builder.start().await;
    stack.purge_queues().await;
    stack
}

/// A few jobs; each client starts one after the other.
fn few(jobs: usize) -> Plan {
    Plan { jobs, clients: 4, pause: Duration::ZERO }
}
