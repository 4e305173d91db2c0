//! Start order: any process can start before its dependencies and before the migrations. It waits, is not ready, and reports why.

use std::time::Duration;

use e2e::api::text;
use e2e::{Chance, Kind, Load, Part, Plan, SETTLING, Service, Services, Stack, checker};

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
        // The schema is the only thing that is missing.
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

/// How processes react to a missing service.
struct Missing {
    service: Service,
    /// The advice for the operator in the log.
    advice: &'static str,
    /// The processes that need the service, the component in their `/readyz`, and their overall status.
    needed_by: &'static [(Part, &'static str, &'static str)],
    /// The processes that only log the outage and stay ready: without Redis, workers are correct and late by seconds.
    logged_by: &'static [Part],
    /// The processes that do not use the service.
    indifferent: &'static [Part],
}

const MISSING: [Missing; 3] = [
    Missing {
        service: Service::RabbitMq,
        advice: "broker is not connected: start RabbitMQ, or correct CANVAS_AMQP_URL",
        needed_by: &[
            // No request is rejected because the broker is missing, and the workers find accepted work without it
            // (docs/reference/jobs.md#crash-guarantees).
            (Part::GATEWAY, "broker publisher", "degraded"),
            (Part::IMAGE_WORKER, "broker consumer image", "unready"),
            (Part::IMAGE_WORKER, "broker consumer import", "unready"),
            (Part::IMAGE_WORKER, "broker consumer generation", "unready"),
            (Part::IMAGE_WORKER, "broker consumer recipe", "unready"),
            (VIDEO_WORKER, "broker consumer video", "unready"),
            (Part::DISPATCHER, "broker consumer webhook", "unready"),
        ],
        logged_by: &[],
        indifferent: &[],
    },
    Missing {
        service: Service::Redis,
        advice: "redis does not answer: start Redis, or correct CANVAS_REDIS_URL",
        needed_by: &[(Part::GATEWAY, "cache", "degraded")],
        logged_by: &[Part::IMAGE_WORKER, VIDEO_WORKER],
        indifferent: &[Part::DISPATCHER],
    },
    Missing {
        service: Service::Postgres,
        advice: "database does not answer: start PostgreSQL, or correct CANVAS_DATABASE_URL",
        needed_by: &[
            (Part::GATEWAY, "database", "unready"),
            (Part::IMAGE_WORKER, "database", "unready"),
            (VIDEO_WORKER, "database", "unready"),
            (Part::DISPATCHER, "database", "unready"),
        ],
        logged_by: &[],
        indifferent: &[],
    },
];

/// Waits until a part has logged this advice.
async fn logs(stack: &Stack, part: Part, advice: &str) {
    testkit::wait_for(&format!("{part} to log {advice:?}"), e2e::PATIENCE, async || {
        stack.log(part).contains(advice).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_starts_without_a_service_says_which_and_what_to_do_and_needs_no_restart() {
    let services = Services::start().await;
    let builder = mortal().video_workers(1).on(&services);
    // Only to migrate the schema. No process declares a queue here, because a queue that RabbitMQ declared just before
    // it was killed may never respond again.
    drop(Stack::builder().gateways(0).on(&services).start().await);
    for Missing { service, advice, needed_by, logged_by, indifferent } in MISSING {
        services.kill(service).await;
        let stack = builder.clone().cold().start().await;
        for (part, component, status) in needed_by {
            let report = stack.readiness(*part, status).await;
            assert_eq!(report["components"][component]["ok"], false, "{part}: {report}");
            logs(&stack, *part, advice).await;
            // The first check of the component may still be pending.
            testkit::wait_for(&format!("{part} to report {component}"), e2e::PATIENCE, async || {
                let report = stack.readiness(*part, status).await;
                text(&report, &format!("/components/{component}/message")).contains(advice).then_some(())
            })
            .await;
        }
        for part in logged_by {
            stack.ready(*part).await;
            logs(&stack, *part, advice).await;
        }
        for part in indifferent {
            stack.ready(*part).await;
            assert!(!stack.log(*part).contains(advice), "{part} does not use {service:?}");
        }
        services.start_again().await;
        for part in PARTS {
            // The process is still the one that was started: this panics if it has exited.
            stack.ready(part).await;
        }
    }
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
