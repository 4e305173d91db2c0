//! Two processes of each kind, and stops under load (docs/reference/command-line.md#signals).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use e2e::api::text;
use e2e::{Chance, Load, PATIENCE, Part, Plan, SETTLING, Stack, Work, checker};
use futures_util::future::join_all;
use serde_json::json;

use super::{OTHER_DISPATCHER, OTHER_GATEWAY, OTHER_WORKER, doubled, start};

/// Clients of a gateway while it stops, and the pause of each between two requests.
const CLIENTS: usize = 12;
const PAUSE: Duration = Duration::from_millis(1);
/// How often the gateway is stopped: a connection may be established in the moment of a stop, or none.
const STOPS: usize = 5;
/// The limit on open waits and streams of a token in one gateway.
const WAITS_MAX: usize = 64;
/// The default lease, in seconds: long enough that a lease does not expire on a busy machine.
const LONG_LEASE: u64 = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_depends_on_being_alone() {
    let (chance, stack) = (
        Chance::new(),
        start(doubled().env("CANVAS_LEASE_SECONDS", LONG_LEASE).env("CANVAS_SWEEP_SECONDS", 0.1)).await,
    );
    let load = Load::prepare(&stack, &chance, Plan { jobs: 80, clients: 8, pause: Duration::ZERO }).await;
    load.run().await;
    checker::check(&stack, &load, SETTLING).await;
    load.assert_untroubled();
    // Both processes worked on the same load.
    for (one, other, metric) in [
        (Part::IMAGE_WORKER, OTHER_WORKER, "canvas_claims_total"),
        (Part::DISPATCHER, OTHER_DISPATCHER, "canvas_claims_total"),
    ] {
        for part in [one, other] {
            assert!(stack.metric(part, metric).await > 0.0, "{part} has done no work");
        }
    }
    // Both gateways return the same Agent Canvas, whichever is asked first.
    let user = stack.user().await;
    let asked = (0..20).map(|number| {
        let user = user.at(&stack, number % 2);
        async move { user.send("/canvases", &json!({"canvasType": "agent"})).await.expect(201).json() }
    });
    let canvases = join_all(asked).await;
    assert!(canvases.iter().all(|canvas| canvas["canvas"]["id"] == canvases[0]["canvas"]["id"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_is_one_for_all_gateways() {
    let builder = e2e::Stack::builder().gateways(2).env("CANVAS_RATE_PER_MINUTE", 60).env("CANVAS_RATE_BURST", 10);
    let stack = start(builder).await;
    let user = stack.user().await;
    let began = Instant::now();
    let asked = (0..40).map(|number| {
        let user = user.at(&stack, number % 2);
        async move { user.get("/auth/status").await.status }
    });
    let statuses = join_all(asked).await;
    let admitted = statuses.iter().filter(|status| **status == 200).count();
    // The burst, one more each second, and requests that were admitted because Redis did not respond in time
    // (docs/reference/conventions.md#rate-limits).
    let allowed = 10 + 1 + usize::try_from(began.elapsed().as_secs()).expect("seconds");
    let mut unanswered = 0.0;
    for gateway in [Part::GATEWAY, OTHER_GATEWAY] {
        unanswered += stack.metric(gateway, "canvas_cache_fail_open_total").await;
    }
    let allowed = allowed + unanswered as usize;
    assert!((10..=allowed).contains(&admitted), "{admitted} of {allowed}: {statuses:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_gateway_counts_its_own_open_waits() {
    let stack = start(e2e::Stack::builder().gateways(2).env("CANVAS_RATE_PER_MINUTE", 0)).await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let job = user.start_resize(text(&canvas, "/id"), json!({})).await;
    let path = text(&job, "/pollUrl");
    let events = format!("{path}/events");
    let elsewhere = user.at(&stack, 1);
    // As many as the limit. A stream counts once its response has started.
    let open = join_all((0..WAITS_MAX).map(|_| elsewhere.get(&events).streamed())).await;
    assert!(open.iter().all(|stream| stream.status() == 200), "{open:?}");
    elsewhere.get(path).header("prefer", "wait=1").await.expect_error(429, "rate_limited", &[]);
    user.get(path).header("prefer", "wait=1").await.expect(202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_stops_under_load_answers_every_request_it_took() {
    let stack = start(doubled()).await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let path = format!("/canvases/{canvas}");
    for _ in 0..STOPS {
        let (answered, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let client = async || {
            while !stopped.load(Ordering::Relaxed) {
                match user.at(&stack, 1).get(&path).attempt().await {
                    Ok(reply) => {
                        reply.expect(200);
                        answered.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(PAUSE).await;
                    }
                    // The gateway no longer listens. A client can retry this failure at another gateway at once.
                    Err(error) if error.is_connect() => return,
                    Err(error) => panic!("an accepted request was not answered: {error:?}"),
                }
            }
        };
        let stop = async {
            let at_work = async || (answered.load(Ordering::Relaxed) > 40).then_some(());
            testkit::wait_for("clients at work", PATIENCE, at_work).await;
            let status = stack.stop(OTHER_GATEWAY).await;
            stopped.store(true, Ordering::Relaxed);
            assert_eq!(status.code(), Some(0));
        };
        tokio::join!(join_all((0..CLIENTS).map(|_| client())), stop);
        stack.restart(OTHER_GATEWAY).await;
    }
}

/// Stops and starts every process, one after the other, under a load. Each must exit successfully while the load continues.
async fn roll(stack: &Stack, load: &Load<'_>, jobs: usize) {
    load.until(10).await;
    for part in stack.parts() {
        let before = load.accepted().len();
        assert_eq!(stack.stop(part).await.code(), Some(0), "{part}");
        stack.restart(part).await;
        // The load must last beyond every single restart; otherwise the test shows nothing.
        assert!(load.accepted().len() < jobs, "the load was over before {part} was back");
        load.until(before + 1).await;
    }
    load.stop();
}

/// Asserts that clients were rejected only while one gateway was closed, and that no run of a task ended in one of `fates`, that
/// is, with work released or lost.
async fn assert_unnoticed(stack: &Stack, load: &Load<'_>, fates: &[&str]) {
    checker::check(stack, load, SETTLING).await;
    load.assert_served();
    for part in stack.parts() {
        let log = stack.log(part);
        for fate in fates {
            let fate = format!(r#""result":"{fate}""#);
            assert!(!log.contains(&fate), "{part} released or lost work: {fate}");
        }
    }
    let retried = "SELECT count(*) FROM webhook_deliveries WHERE attempts <> 1";
    assert_eq!(stack.count(retried).await, 0, "nothing was sent twice");
}

/// A rolling restart: every process of a doubled stack is stopped and started again, one after the other, while jobs arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_request_and_loses_no_work() {
    let builder = doubled().video_workers(2).env("CANVAS_LEASE_SECONDS", LONG_LEASE);
    let (chance, stack) = (Chance::new(), start(builder).await);
    let plan = Plan { jobs: 240, clients: 8, pause: Duration::from_millis(200) };
    let load = Load::prepare(&stack, &chance, plan).await;
    tokio::join!(load.run(), roll(&stack, &load, plan.jobs));
    assert_unnoticed(&stack, &load, &["released", "retry", "stale"]).await;
}

/// The same while images wait for a provider and Recipe runs are between two steps. Waiting work has no owner, and any worker
/// resumes it when it is due.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_image_and_no_recipe_run() {
    const WORKS: &[Work] = &[Work::Image, Work::Image, Work::Image, Work::Recipe, Work::Image, Work::Image];
    let builder = doubled().env("CANVAS_LEASE_SECONDS", LONG_LEASE);
    let (chance, stack) = (Chance::new(), start(builder).await);
    let plan = Plan { jobs: 200, clients: 6, pause: Duration::from_secs(4) };
    let load = Load::new(&stack, &chance, plan, WORKS).await;
    let simulator = load.simulator().expect("a provider makes the images");
    // Longer than a restart, so that some work is in progress during each one.
    simulator.take(Duration::from_secs(3));
    tokio::join!(load.run(), roll(&stack, &load, plan.jobs));
    // A slow database on a busy machine can fail a task, which is then retried. That is unrelated to the restart.
    assert_unnoticed(&stack, &load, &["released", "stale"]).await;
    // A fault can fail an image or a step. A restart must not.
    let failed = "SELECT (SELECT count(*) FROM jobs WHERE status <> 'succeeded')
                       + (SELECT count(*) FROM recipe_runs WHERE status <> 'succeeded')";
    assert_eq!(stack.count(failed).await, 0);
    let submits = simulator.submits();
    let ordered: BTreeSet<_> = submits.iter().map(|submit| &submit.idempotency_key).collect();
    assert_eq!(ordered.len(), submits.len(), "no image was ordered twice");
}
