//! Services that die under a stream of jobs (reliability.md 3, R1 and R4), and networks that fail.

use std::time::Duration;

use e2e::{Chance, Load, Plan, SETTLING, Service, Services, checker};

use super::{doubled, start};

/// 200 jobs over some seconds.
const STREAM: Plan = Plan { jobs: 200, clients: 8, pause: Duration::from_millis(200) };
/// How long a service is away.
const AWAY: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_jobs_survives_the_death_of_each_service() {
    let (chance, services) = (Chance::new(), Services::start().await);
    let stack = doubled().on(&services).receivers(3).start().await;
    for (round, service) in Service::ALL.into_iter().enumerate() {
        let load = Load::prepare(&stack, &chance.fork(round as u64), STREAM).await;
        let fault = async {
            load.until(STREAM.jobs / 4).await;
            services.kill(service).await;
            tokio::time::sleep(AWAY).await;
            services.start_again().await;
        };
        tokio::join!(load.run(), fault);
        let settled = checker::settled(&stack, SETTLING).await;
        println!("{service:?}: settled {settled:?} after the last start, clients saw {:?}", load.trouble());
        checker::check(&stack, &load, SETTLING).await;
        if service != Service::Postgres {
            // Without broker or cache no request fails (reliability.md 2).
            load.assert_untroubled();
        }
        checker::forget(&stack).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_jobs_survives_a_network_that_fails_in_every_way() {
    let (chance, stack) = (Chance::new(), start(doubled().behind_networks()).await);
    let load = Load::prepare(&stack, &chance, Plan { jobs: 80, ..STREAM }).await;
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
