//! Start order: any process may start before its dependencies and before migrations; it waits, is not ready, and says so.

use std::time::Duration;

use e2e::{Chance, Kind, Load, Part, Plan, SETTLING, Service, Services, checker};

use super::mortal;

const VIDEO_WORKER: Part = Part(Kind::VideoWorker, 0);
const PARTS: [Part; 4] = [Part::GATEWAY, Part::IMAGE_WORKER, VIDEO_WORKER, Part::DISPATCHER];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_start_first_wait_for_services_and_for_the_schema() {
    let (chance, services) = (Chance::new(), Services::start().await);
    for service in Service::ALL {
        services.kill(service).await;
    }
    let stack = mortal().video_workers(1).on(&services).cold().start().await;
    for part in PARTS {
        let report = stack.readiness(part, "unready").await;
        assert_eq!(report["components"]["database"]["ok"], false, "{part}: {report}");
    }
    services.start_again().await;
    for part in PARTS {
        // Everything is there but the schema.
        testkit::wait_for(&format!("{part} to miss the schema"), e2e::PATIENCE, async || {
            let report = stack.readiness(part, "unready").await;
            let message = report["components"]["database"]["message"].as_str()?.to_owned();
            message.contains("canvas-gateway migrate").then_some(())
        })
        .await;
    }
    stack.admin(&["migrate"]).await.expect_success();
    for part in PARTS {
        stack.ready(part).await;
    }
    let load = Load::prepare(&stack, &chance, Plan { jobs: 8, clients: 2, pause: Duration::ZERO }).await;
    load.run().await;
    checker::check(&stack, &load, SETTLING).await;
    load.assert_untroubled();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_still_waits_stops_when_it_is_told() {
    let services = Services::start().await;
    services.kill(Service::Postgres).await;
    let stack = mortal().video_workers(1).on(&services).cold().start().await;
    for part in PARTS {
        stack.readiness(part, "unready").await;
        assert_eq!(stack.stop(part).await.code(), Some(0), "{part}");
    }
}
