//! The spine under fire (reliability.md 3), scaled down: leases of a second, loads of seconds.
//!
//! Every test runs a seeded load of jobs with webhooks, breaks something meanwhile, and lets [`e2e::checker`] look at what it left.
//! `FAULT_SEED=<seed>` repeats what a seed decided. [`scale`] has the sizes of this form and of the full one, which `tests/campaign`
//! runs. `tests/mutants` shows that each of these can fail.

mod campaign;
mod deaths;
#[cfg(feature = "campaign")]
mod events;
mod films;
mod isolation;
#[cfg(feature = "campaign")]
mod matrix;
mod order;
mod races;
mod replicas;
mod restarts;
mod restore;
mod scale;
mod skew;
mod sockets;
mod steps;
mod submits;
#[cfg(feature = "campaign")]
mod upgrade;

use std::time::Duration;

use e2e::{Builder, Kind, Part, Plan, Stack};

/// The second image-worker, and the second of the others.
const OTHER_WORKER: Part = Part(Kind::ImageWorker, 1);
const OTHER_DISPATCHER: Part = Part(Kind::Dispatcher, 1);
const OTHER_GATEWAY: Part = Part(Kind::Gateway, 1);

/// The lease of these tests in seconds; the product's is thirty times as long.
const LEASE: Duration = Duration::from_secs(1);

/// A whole service with one receiver, in which the work of the dead is soon somebody else's.
fn mortal() -> Builder {
    Stack::builder()
        .image_workers(1)
        .dispatchers(1)
        .receivers(1)
        .env("CANVAS_LEASE_SECONDS", LEASE.as_secs())
        .env("CANVAS_IDLE_CLAIM_MILLISECONDS", 500)
        .env("CANVAS_WEBHOOK_BACKOFF_SECONDS", "0.5,1,2")
        // A load is no abuse.
        .env("CANVAS_RATE_PER_MINUTE", 0)
}

/// The same with two of everything: nothing may depend on being alone.
fn doubled() -> Builder {
    mortal().gateways(2).image_workers(2).dispatchers(2)
}

/// Starts a stack, and forgets the messages that an earlier one left in its virtual host.
async fn start(builder: Builder) -> Stack {
    let stack = builder.start().await;
    stack.purge_queues().await;
    stack
}

/// A few jobs, one after the other at each client.
fn few(jobs: usize) -> Plan {
    Plan { jobs, clients: 4, pause: Duration::ZERO }
}
