//! Services that die during a stream of jobs (docs/reliability.md#r1-accepting-work-without-rabbitmq,
//! docs/reliability.md#r4-fault-matrix), and networks that fail.

use std::time::Duration;

use e2e::{Chance, Load, Plan, SETTLING, Service, Services, checker};

use super::scale::{R1_AWAY, R1_JOBS, R1_PAUSE, measured};
use super::{doubled, start};

/// Clients of the stream of jobs.
const CLIENTS: usize = 8;
/// The longest time until work that was accepted without the broker is done, once the broker is back (R1).
const DRAINED: Duration = Duration::from_secs(60);

/// The longest time that clients retry a start, minus the time in which PostgreSQL starts.
const POSTGRES_AWAY: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_jobs_survives_the_death_of_each_service() {
    let (chance, services) = (Chance::new(), Services::start().await);
    let stack = doubled().on(&services).receivers(3).start().await;
    let stream = Plan { jobs: R1_JOBS.now(), clients: CLIENTS, pause: R1_PAUSE.now() };
    for (round, service) in Service::ALL.into_iter().enumerate() {
        let load = Load::prepare(&stack, &chance.fork(round as u64), stream).await;
        let fault = async {
            load.until(stream.jobs / 4).await;
            services.kill(service).await;
            let down = load.accepted().len();
            // Clients give up when the database is away for too long.
            let away = if service == Service::Postgres { R1_AWAY.now().min(POSTGRES_AWAY) } else { R1_AWAY.now() };
            tokio::time::sleep(away).await;
            let before = load.accepted().len();
            services.start_again().await;
            if service == Service::RabbitMq {
                // Each client can have had one start under way when the broker died.
                assert!(before > down + CLIENTS, "only {} starts were accepted without RabbitMQ", before - down);
                let drained = checker::drained(&stack, DRAINED).await;
                let accepted = before - down;
                measured(
                    "R1",
                    format_args!("{accepted} accepted in {away:?} without RabbitMQ, drained {drained:.1?} after"),
                );
            }
        };
        tokio::join!(load.run(), fault);
        let settled = checker::settled(&stack, SETTLING).await;
        println!("{service:?}: settled {settled:?} after the last start, clients saw {:?}", load.trouble());
        checker::check(&stack, &load, SETTLING).await;
        if service != Service::Postgres {
            // Requests do not need the broker or the cache (docs/reliability.md#guarantees).
            load.assert_untroubled();
        }
        checker::forget(&stack).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_jobs_survives_a_network_that_fails_in_every_way() {
    let (chance, stack) = (Chance::new(), start(doubled().behind_networks()).await);
    let load =
        Load::prepare(&stack, &chance, Plan { jobs: 80, clients: CLIENTS, pause: Duration::from_millis(200) }).await;
    let fault = async {
        load.until(10).await;
        let networks = stack.networks();
        for network in [&networks.broker, &networks.redis, &networks.database] {
            network.reset();
            tokio::time::sleep(Duration::from_millis(300)).await;
            network.cut();
            tokio::time::sleep(Duration::from_secs(1)).await;
            network.resume();
            network.delay(Duration::from_millis(20));
            tokio::time::sleep(Duration::from_millis(500)).await;
            network.pause();
            tokio::time::sleep(Duration::from_secs(1)).await;
            network.resume();
        }
    };
    tokio::join!(load.run(), fault);
    checker::check(&stack, &load, SETTLING).await;
}
