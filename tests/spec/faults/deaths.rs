//! Processes that die or stall at the worst moment (docs/reliability.md#r2-commit-to-claim,
//! docs/reliability.md#r3-a-worker-that-dies-or-stalls and docs/reliability.md#r4-fault-matrix). `processes.rs` shows that a
//! single run survives this. Here other jobs run concurrently, and the checker runs afterwards.

use std::time::{Duration, Instant};

use e2e::api::text;
use e2e::{Chance, Load, PATIENCE, Part, SETTLING, Work, checker};
use serde_json::json;
use testkit::wait_for;
use tokio::time::timeout;

use super::scale::{R2_LOST, R3_KILLED, R3_STOPPED, is_full, measured};
use super::{LEASE, OTHER_WORKER, doubled, few, mortal, start};

/// The number of loads in which a process can reach a failpoint. Another process can take the task first.
const LOADS_MAX: usize = 3;

/// Kills `part` when it first reaches each of `failpoints` under a load, and restarts it.
async fn dies_at_each_of(part: Part, failpoints: &[&str]) {
    let builder = doubled().receivers(failpoints.len() * LOADS_MAX);
    let (chance, stack) = (Chance::new(), start(builder).await);
    for (round, failpoint) in failpoints.iter().enumerate() {
        let mut loads = 0..LOADS_MAX;
        loop {
            let number = loads.next().unwrap_or_else(|| panic!("{part} never reached {failpoint}"));
            let chance = chance.fork((round * LOADS_MAX + number) as u64);
            let load = Load::new(&stack, &chance, few(16), &[Work::Resize]).await;
            stack.restart_with(part, &[("CANVAS_FAILPOINTS", &format!("{failpoint}=kill"))]).await;
            let death = async {
                let end = timeout(PATIENCE, stack.ended(part)).await.ok();
                stack.restart(part).await;
                end
            };
            let ((), end) = tokio::join!(load.run(), death);
            checker::check(&stack, &load, SETTLING).await;
            println!("{failpoint}: {} requests at the receiver", load.receiver().requests().len());
            checker::forget(&stack).await;
            if let Some(status) = end {
                assert_eq!(status.code(), None, "{failpoint}: killed");
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_survives_a_worker_that_dies_at_each_step() {
    let failpoints = [
        "task.claimed",
        "task.acked",
        "action.loaded",
        "action.computed",
        "action.stored",
        "job.committed",
        "task.finished",
    ];
    dies_at_each_of(Part::IMAGE_WORKER, &failpoints).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_survives_a_dispatcher_that_dies_at_each_step() {
    dies_at_each_of(Part::DISPATCHER, &["task.claimed", "delivery.begun", "delivery.sent", "task.finished"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_dies_between_commit_and_publish_loses_nothing() {
    dies_at_each_of(Part::GATEWAY, &["start.committed"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_up_that_is_lost_costs_seconds() {
    // The default interval of idle claims.
    let stack = start(mortal().behind_networks().env("CANVAS_IDLE_CLAIM_MILLISECONDS", 2000)).await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    // No message leaves the gateway or arrives at a worker.
    stack.networks().broker.cut();
    let mut longest = 0;
    for _ in 0..R2_LOST.now() {
        let job = user.start_resize(&canvas, json!({})).await;
        let record = user.finished(&job).await;
        assert_eq!(record["status"], "succeeded");
        longest = record["timing"]["queueDurationMs"].as_u64().expect("was queued").max(longest);
    }
    measured("R2", format_args!("{} wake-ups lost, the longest accept to start {longest} ms", R2_LOST.now()));
    assert!(longest <= 3000, "{longest} ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_made_ready_is_announced() {
    // No worker looks by itself during the test: starts, the steps of Recipe runs, renditions and webhooks need their messages.
    let stack = start(mortal().video_workers(1).env("CANVAS_IDLE_CLAIM_MILLISECONDS", 3_600_000)).await;
    let works = &[Work::Resize, Work::Image, Work::Recipe, Work::Video];
    let load = Load::new(&stack, &Chance::new(), few(8), works).await;
    load.run().await;
    checker::check(&stack, &load, SETTLING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_killed_worker_is_resumed_when_its_lease_is_over() {
    // A full run uses the default lease and interval of idle claims, and must stay within the 35 s of R3.
    let (lease, idle, resumed) = match is_full() {
        true => (30, 2000, Duration::from_secs(35)),
        false => (LEASE.as_secs(), 500, LEASE + PATIENCE / 2),
    };
    let builder =
        mortal().image_workers(2).env("CANVAS_LEASE_SECONDS", lease).env("CANVAS_IDLE_CLAIM_MILLISECONDS", idle);
    let stack = start(builder).await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let mut longest = Duration::ZERO;
    for _ in 0..R3_KILLED.now() {
        let (hold, held) = stack.make_hold("action.computed");
        stack.kill(OTHER_WORKER);
        stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", &held)]).await;
        let job = user.start_resize(&canvas, json!({})).await;
        hold.reached().await;
        stack.restart(OTHER_WORKER).await;
        stack.kill(Part::IMAGE_WORKER);
        let began = Instant::now();
        wait_for("the other worker to end the job", resumed, async || {
            let record = user.get(text(&job, "/pollUrl")).await.json();
            (record["status"] == "succeeded").then_some(())
        })
        .await;
        longest = longest.max(began.elapsed());
    }
    measured(
        "R3",
        format_args!(
            "{} kills in a job, lease {lease} s, resumed and ended after {longest:.1?} at most",
            R3_KILLED.now()
        ),
    );
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_stopped_past_its_lease_writes_nothing() {
    for _ in 0..R3_STOPPED.now() {
        stop_past_the_lease().await;
    }
    measured("R3", format_args!("{} workers stopped past their leases, 0 stale writes accepted", R3_STOPPED.now()));
}

async fn stop_past_the_lease() {
    let stack = start(mortal().image_workers(2)).await;
    let (hold_first, at_stored) = stack.make_hold("action.stored");
    let (hold_second, at_loaded) = stack.make_hold("action.loaded");
    stack.kill(OTHER_WORKER);
    stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", &at_stored)]).await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let job = user.start_resize(&canvas, json!({})).await;
    hold_first.reached().await;
    stack.pause(Part::IMAGE_WORKER);
    // The other worker takes over and is running the task when the first one returns with its result.
    let began = Instant::now();
    stack.restart_with(OTHER_WORKER, &[("CANVAS_FAILPOINTS", &at_loaded)]).await;
    hold_second.reached().await;
    assert!(began.elapsed() < LEASE + PATIENCE / 2, "{:?}", began.elapsed());
    hold_first.release();
    stack.resume(Part::IMAGE_WORKER);
    wait_for("the first worker's result to be rejected", PATIENCE, async || {
        (stack.metric(Part::IMAGE_WORKER, "canvas_stale_writes_refused_total").await > 0.0).then_some(())
    })
    .await;
    assert_eq!(user.get(text(&job, "/pollUrl")).await.expect(202).json()["status"], "running");
    assert_eq!(stack.count("SELECT count(*) FROM assets WHERE canvas_key IS NOT NULL").await, 0);
    hold_second.release();
    assert_eq!(user.finished(&job).await["status"], "succeeded");
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_was_stopped_past_its_lease_records_nothing() {
    let stack = start(mortal().dispatchers(2)).await;
    let (hold_first, at_sent) = stack.make_hold("delivery.sent");
    stack.kill(super::OTHER_DISPATCHER);
    stack.restart_with(Part::DISPATCHER, &[("CANVAS_FAILPOINTS", &at_sent)]).await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let webhook = json!({"webhook": {"url": receiver.url("/"), "secret": e2e::load::SECRET}});
    let job = user.start_resize(&canvas, webhook).await;
    hold_first.reached().await;
    stack.pause(Part::DISPATCHER);
    // The second attempt gets a 503, so that the delivery is still open when the first dispatcher resumes.
    receiver.answer(testkit::Answer::status(503));
    stack.restart(super::OTHER_DISPATCHER).await;
    let again = user.until(&job, |record| record["webhook"]["lastStatus"] == 503).await;
    assert_eq!(again["webhook"]["attempts"], 2);
    receiver.answer(testkit::Answer::status(200));
    hold_first.release();
    stack.resume(Part::DISPATCHER);
    let done = user.until(&job, |record| record["webhook"]["status"] == "delivered").await;
    assert_eq!(done["webhook"]["attempts"], 3, "the attempt from before the pause does not end the delivery");
    let requests = receiver.requests();
    assert!(requests.iter().all(|request| request.body == requests[0].body));
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}
