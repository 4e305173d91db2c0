//! Every failpoint of the job and delivery path meets every fault (reliability.md 3, R4): a process is held exactly there, under a
//! load; then it or what it talks to goes away. A test for each fault, so that the whole can be run in pieces.
//!
//! Two failpoints are not here: `recipe.written` lies behind a text that a provider writes (`steps.rs` has it), and those of imports
//! are on no job's path.

use std::time::Duration;

use e2e::{Chance, Hold, Load, Part, Plan, SETTLING, Service, Services, Stack, Work, checker};

use super::scale::{Scale, measured, scale};
use super::{LEASE, mortal};

/// How often each failpoint meets each fault.
const R4_STRIKES: Scale<usize> = scale(1, 25);

/// Who is held where, and what has to be started so that it comes by.
const PLACES: [(Part, &str, &[Work]); 26] = [
    (Part::GATEWAY, "start.committed", &[Work::Resize]),
    (Part::GATEWAY, "relay.claimed", &[Work::Resize]),
    (Part::GATEWAY, "relay.published", &[Work::Resize]),
    (Part::IMAGE_WORKER, "task.claimed", &[Work::Resize]),
    (Part::IMAGE_WORKER, "task.acked", &[Work::Resize]),
    (Part::IMAGE_WORKER, "action.loaded", &[Work::Resize]),
    (Part::IMAGE_WORKER, "action.computed", &[Work::Resize]),
    (Part::IMAGE_WORKER, "action.stored", &[Work::Resize]),
    (Part::IMAGE_WORKER, "job.committed", &[Work::Resize]),
    (Part::IMAGE_WORKER, "task.finished", &[Work::Resize]),
    (Part::IMAGE_WORKER, "relay.claimed", &[Work::Resize]),
    (Part::IMAGE_WORKER, "relay.published", &[Work::Resize]),
    (Part::IMAGE_WORKER, "generation.submitting", &[Work::Picture]),
    (Part::IMAGE_WORKER, "generation.accepted", &[Work::Picture]),
    (Part::IMAGE_WORKER, "generation.submitted", &[Work::Picture]),
    (Part::IMAGE_WORKER, "generation.fetched", &[Work::Picture]),
    (Part::IMAGE_WORKER, "generation.stored", &[Work::Picture]),
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
/// Starts that a load has for each strike: more than come in the time of the slowest.
const STARTS: usize = 60;

/// The longest pause of a client: something always comes by soon, and no more than two processors do meanwhile.
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
    /// All that the processes talk to is out of reach.
    Cut,
}

impl Fault {
    /// Strikes while somebody is held, lets go, and mends it after a moment.
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

/// What a fault strikes.
struct Struck<'a> {
    stack: &'a Stack,
    services: &'a Services,
    part: Part,
    hold: Hold,
    /// That the part is started with, so that it is held.
    held: &'a str,
}

/// Strikes at each place as often as R4 wants, and looks at everything after each place. `E2E_ONLY=<part of a failpoint's name>`
/// leaves out the others.
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
        let load = Load::of(&stack, &chance, plan, works).await;
        let (hold, held) = stack.make_hold(failpoint);
        stack.restart_with(part, &[("CANVAS_FAILPOINTS", &held)]).await;
        let on = Struck { stack: &stack, services: &services, part, hold, held: &held };
        let faults = async {
            for _ in 0..strikes {
                on.hold.arm();
                on.hold.reached().await;
                fault.strike(&on, chance.time(2 * LEASE)).await;
                // What was caught is not caught again: a job is claimed five times at most, a delivery attempted four times.
                checker::drained(&stack, SETTLING).await;
            }
            // Some that met no fault.
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
