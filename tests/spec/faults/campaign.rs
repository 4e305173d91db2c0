//! Random faults under a mixed load of Actions, images of a provider, Recipe runs and videos: processes are killed or stopped,
//! services are restarted and networks are cut. The checker runs after every round. The seed decides which fault happens when.
//! `tests/run` runs one short round, `tests/campaign` many long ones.

use std::time::{Duration, Instant};

use e2e::{Chance, Load, Part, Plan, SETTLING, Service, Services, Stack, Work, checker};

use super::scale::measured;
use super::{LEASE, doubled};

/// The length of one round.
#[derive(Clone, Copy)]
struct Round {
    faults: Duration,
    jobs: usize,
}

const SHORT: Round = Round { faults: Duration::from_secs(15), jobs: 150 };

/// The possible faults. A kind that is listed several times is drawn more often.
const FAULTS: [Fault; 8] =
    [Fault::Kill, Fault::Kill, Fault::Kill, Fault::Pause, Fault::Pause, Fault::Service, Fault::Cut, Fault::Reset];

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// SIGKILL to a process, which is then restarted.
    Kill,
    /// SIGSTOP to a process, and SIGCONT at most three leases later.
    Pause,
    /// The death and the restart of a service.
    Service,
    /// A network that is cut and restored.
    Cut,
    /// A reset of every connection of a network.
    Reset,
}

async fn strike(stack: &Stack, services: &Services, chance: &mut Chance) {
    let fault = chance.pick(&FAULTS);
    let parts = stack.parts();
    let part: Part = chance.pick(&parts);
    let networks = stack.networks();
    let network = chance.pick(&[&networks.database, &networks.broker, &networks.redis]);
    let service = chance.pick(&Service::ALL);
    let time = chance.time(3 * LEASE);
    println!("{fault:?} ({part}, {service:?}) for {time:?}");
    match fault {
        Fault::Kill => {
            stack.kill(part);
            tokio::time::sleep(time).await;
            stack.restart(part).await;
        }
        Fault::Pause => {
            stack.pause(part);
            tokio::time::sleep(time).await;
            stack.resume(part);
        }
        Fault::Service => {
            services.kill(service).await;
            tokio::time::sleep(time).await;
            services.start_again().await;
        }
        Fault::Cut => {
            network.cut();
            tokio::time::sleep(time).await;
            network.resume();
        }
        Fault::Reset => network.reset(),
    }
    tokio::time::sleep(chance.time(LEASE)).await;
}

async fn campaign(rounds: usize, round: Round) {
    let (chance, services) = (Chance::new(), Services::start().await);
    let stack = doubled().video_workers(2).on(&services).behind_networks().receivers(rounds).start().await;
    for number in 0..rounds {
        let mut chance = chance.fork(number as u64);
        println!("round {number}");
        let clients = 6;
        let pause = round.faults * u32::try_from(2 * clients).expect("few") / u32::try_from(round.jobs).expect("few");
        let load = Load::new(&stack, &chance, Plan { jobs: round.jobs, clients, pause }, Work::MIXED).await;
        let faults = async {
            let (began, mut strikes) = (Instant::now(), 0);
            while began.elapsed() < round.faults {
                strike(&stack, &services, &mut chance).await;
                strikes += 1;
            }
            strikes
        };
        let ((), strikes) = tokio::join!(load.run(), faults);
        let settled = checker::settled(&stack, SETTLING).await;
        println!("settled after {settled:?}; clients saw {:?}", load.trouble());
        checker::check(&stack, &load, SETTLING).await;
        measured("random", format_args!("{} starts through {strikes} faults, settled after {settled:?}", round.jobs));
        checker::forget(&stack).await;
    }
}

/// One short round, or the number and length that `tests/campaign` sets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_survives_random_faults() {
    let round = asked("FAULT_SECONDS").map_or(SHORT, |seconds| Round {
        faults: Duration::from_secs(seconds),
        jobs: usize::try_from(seconds * 10).expect("few"),
    });
    let rounds = asked("FAULT_ROUNDS").map_or(1, |rounds| usize::try_from(rounds).expect("few"));
    campaign(rounds, round).await;
}

/// A number from a variable of the environment.
fn asked(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
}
