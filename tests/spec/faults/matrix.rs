//! Every failpoint of jobs and deliveries combined with every fault (docs/reliability.md#r4-fault-matrix). A process is held at
//! the failpoint under a load; then the process, or a service that it uses, goes away. Each fault is a test of its own, so that
//! the matrix can be run in parts.
//!
//! Two kinds of failpoints are not in the matrix: `recipe.written` follows a text of a provider and is covered by `steps.rs`, and
//! the failpoints of imports are not part of any job.

use std::time::Duration;

use e2e::{Chance, Hold, Load, Part, Plan, SETTLING, Service, Services, Stack, Work, checker};

use super::scale::{Scale, measured, scale};
use super::{LEASE, mortal};

/// How often each failpoint is combined with each fault.
const R4_STRIKES: Scale<usize> = scale(1, 25);

/// The process that is held, its failpoint, and the work that reaches it.
const PLACES: [(Part, &str, &[Work]); 22] = [
    (Part::GATEWAY, "start.committed", &[Work::Resize]),
    (Part::IMAGE_WORKER, "task.claimed", &[Work::Resize]),
    (Part::IMAGE_WORKER, "task.acked", &[Work::Resize]),
    (Part::IMAGE_WORKER, "action.loaded", &[Work::Resize]),
    (Part::IMAGE_WORKER, "action.computed", &[Work::Resize]),
    (Part::IMAGE_WORKER, "action.stored", &[Work::Resize]),
    (Part::IMAGE_WORKER, "job.committed", &[Work::Resize]),
    (Part::IMAGE_WORKER, "task.finished", &[Work::Resize]),
    (Part::IMAGE_WORKER, "generation.submitting", &[Work::Image]),
    (Part::IMAGE_WORKER, "generation.accepted", &[Work::Image]),
    (Part::IMAGE_WORKER, "generation.submitted", &[Work::Image]),
    (Part::IMAGE_WORKER, "generation.fetched", &[Work::Image]),
    (Part::IMAGE_WORKER, "generation.stored", &[Work::Image]),
    (Part::IMAGE_WORKER, "recipe.writing", &[Work::Recipe]),
    (Part::IMAGE_WORKER, "recipe.stepped", &[Work::Recipe]),
    (Part::VIDEO_WORKER, "generation.submitting", &[Work::Video]),
    (Part::VIDEO_WORKER, "generation.accepted", &[Work::Video]),
    (Part::VIDEO_WORKER, "generation.stored", &[Work::Video]),
    (Part::DISPATCHER, "task.claimed", &[Work::Resize]),
    (Part::DISPATCHER, "delivery.begun", &[Work::Resize]),
    (Part::DISPATCHER, "delivery.sent", &[Work::Resize]),
    (Part::DISPATCHER, "task.finished", &[Work::Resize]),
];

/// Clients of a load.
const CLIENTS: usize = 4;
/// The starts of a load for each strike. The slowest failpoint uses fewer.
const STARTS: usize = 60;

/// The longest pause of a client: short enough that some work always reaches the failpoint soon, long enough for two processors.
fn pause(works: &[Work]) -> Duration {
    let is_dear = works.iter().any(|work| matches!(work, Work::Recipe | Work::Video));
    Duration::from_secs(if is_dear { 16 } else { 4 })
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// SIGKILL to the process that is held.
    Kill,
    /// PostgreSQL's immediate stop.
    Postgres,
    /// SIGKILL to RabbitMQ.
    RabbitMq,
    /// A cut of every network between processes and services.
    Cut,
}

impl Fault {
    /// Strikes while a process is held, releases the process, and repairs the damage after `time`.
    async fn strike(self, on: &Struck<'_>, time: Duration) {
        let networks = on.stack.networks();
        let networks = [&networks.database, &networks.redis, &networks.broker];
        match self {
            Self::Kill => on.stack.kill(on.part),
            Self::Postgres => on.services.kill(Service::Postgres).await,
            Self::RabbitMq => on.services.kill(Service::RabbitMq).await,
            Self::Cut => networks.iter().for_each(|network| network.cut()),
        }
        on.hold.release();
        tokio::time::sleep(time).await;
        match self {
            Self::Kill => on.stack.restart_with(on.part, &[("CANVAS_FAILPOINTS", on.held)]).await,
            Self::Postgres | Self::RabbitMq => on.services.start_again().await,
            Self::Cut => networks.iter().for_each(|network| network.resume()),
        }
    }
}

/// The target of a fault.
struct Struck<'a> {
    stack: &'a Stack,
    services: &'a Services,
    part: Part,
    hold: Hold,
    /// The environment that makes the part stop at the failpoint.
    held: &'a str,
}

/// Strikes at each place [`R4_STRIKES`] times and runs the checker after each place. `E2E_ONLY` restricts the run to failpoints
/// whose name contains its value.
async fn every_place_survives(fault: Fault) {
    let (chance, services) = (Chance::new(), Services::start().await);
    let (strikes, only) = (R4_STRIKES.now(), std::env::var("E2E_ONLY").unwrap_or_default());
    let builder = mortal().video_workers(1).on(&services).behind_networks().receivers(PLACES.len());
    let stack = builder.start().await;
    let mut places = 0;
    for (number, (part, failpoint, works)) in
        PLACES.into_iter().enumerate().filter(|(_, place)| place.1.contains(&only))
    {
        let mut chance = chance.fork(number as u64);
        let plan = Plan { jobs: STARTS * strikes, clients: CLIENTS, pause: pause(works) };
        let load = Load::new(&stack, &chance, plan, works).await;
        let (hold, held) = stack.make_hold(failpoint);
        stack.restart_with(part, &[("CANVAS_FAILPOINTS", &held)]).await;
        let on = Struck { stack: &stack, services: &services, part, hold, held: &held };
        let faults = async {
            for _ in 0..strikes {
                on.hold.arm();
                on.hold.reached().await;
                fault.strike(&on, chance.time(2 * LEASE)).await;
                // Waits, so that no work is hit twice: a job has at most five claims, a delivery at most four attempts.
                checker::drained(&stack, SETTLING).await;
            }
            // Some jobs without any fault.
            load.until(load.accepted().len() + CLIENTS).await;
            load.stop();
        };
        tokio::join!(load.run(), faults);
        stack.restart(part).await;
        let settled = checker::settled(&stack, SETTLING).await;
        let starts = load.accepted().len();
        println!("{part} at {failpoint}: {strikes} x {fault:?}, {starts} starts, settled after {settled:?}");
        checker::check(&stack, &load, SETTLING).await;
        checker::forget(&stack).await;
        places += 1;
    }
    measured("R4", format_args!("{fault:?}: {places} places x {strikes}, 0 stuck, 0 lost, at most 1 submit an output"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failpoint_survives_the_death_of_its_process() {
    every_place_survives(Fault::Kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failpoint_survives_an_immediate_stop_of_postgres() {
    every_place_survives(Fault::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failpoint_survives_the_death_of_rabbitmq() {
    every_place_survives(Fault::RabbitMq).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failpoint_survives_a_network_that_is_cut() {
    every_place_survives(Fault::Cut).await;
}
