//! Those who misbehave hurt themselves (reliability.md 3, R8, R14 and R16).

use std::time::{Duration, Instant};

use domain::message::Queue;
use e2e::api::text;
use e2e::{Chance, Load, PATIENCE, Plan, SETTLING, Stack, User, checker};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{Answer, Receiver, wait_for};

use super::{doubled, few, mortal, start};

/// The healthy deliveries of R8, and those to each of the three that misbehave.
const HEALTHY: Plan = Plan { jobs: 80, clients: 4, pause: Duration::from_millis(50) };
const SICK: usize = 8;

/// Starts so many jobs of one account, each in a node of its own, with webhooks to `receiver` where there is one.
async fn flood(user: &User, count: usize, receiver: Option<&Receiver>) -> Vec<Value> {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let asset = user.upload("image/png", e2e::pictures::png(64, 48)).await;
    let create = |index: usize| {
        let node = json!({"type": "image", "position": {"x": 400 * index, "y": 0}});
        json!({"type": "node.create", "clientId": format!("t{index}"), "node": node})
    };
    let made = user.apply(&canvas, (0..count).map(create).collect()).await;
    let mut jobs = Vec::with_capacity(count);
    while jobs.len() < count {
        let target = text(&made, &format!("/resolvedIds/t{}", jobs.len())).to_owned();
        let mut request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
        if let Some(receiver) = receiver {
            request["webhook"] = json!({"url": receiver.url("/sick"), "secret": e2e::load::SECRET});
        }
        let reply = user.send("/actions/resize/runs", &request).await;
        // A job that ended meanwhile has changed the canvas.
        if reply.status != 409 {
            jobs.push(reply.expect(202).json());
        }
    }
    jobs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_that_never_answer_or_never_end_hurt_nobody_else() {
    let (chance, stack) = (Chance::new(), start(mortal().dispatchers(1).receivers(4)).await);
    let load = Load::prepare(&stack, &chance, HEALTHY).await;
    let sick = [Answer::never(), Answer::drip(Duration::from_secs(1)), Answer::endless()];
    let sick = sick.map(|answer| {
        let receiver = stack.take_receiver();
        receiver.answer(answer);
        receiver
    });
    let floods = sick.iter().map(|receiver| async {
        let user = stack.user().await;
        flood(&user, SICK, Some(receiver)).await;
    });
    // They are all at it before the healthy begin.
    join_all(floods).await;
    let began = Instant::now();
    load.run().await;
    load.receiver().wait_for(HEALTHY.jobs, PATIENCE).await;
    let lags: Vec<f64> = sqlx::query_scalar(
        "SELECT extract(epoch FROM d.delivered_at - j.completed_at)::float8 FROM webhook_deliveries d
         JOIN jobs j ON j.id = d.job_id WHERE d.url NOT LIKE '%/sick' AND d.delivered_at IS NOT NULL ORDER BY 1",
    )
    .fetch_all(stack.pool())
    .await
    .expect("reads");
    let p99 = lags[lags.len() * 99 / 100];
    println!("{} healthy deliveries in {:?}, p99 of the lag {p99:.3} s", lags.len(), began.elapsed());
    // Far below the 10 s that an attempt at the sick takes.
    assert!(p99 < 3.0, "{lags:?}");
    assert!(load.receiver().requests().iter().all(|request| request.verify_signature(e2e::load::SECRET).is_ok()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poison_goes_to_the_dead_letters_and_its_neighbours_are_unhurt() {
    let (chance, stack) = (Chance::new(), start(doubled()).await);
    let load = Load::prepare(&stack, &chance, few(24)).await;
    let poison = async {
        load.until(4).await;
        for body in [&b""[..], b"no JSON", br#"{"v":"9"}"#, br#"{"v":"1","task":"no uuid"}"#, &[0xff; 4096]] {
            stack.publish_raw(Queue::Image, body).await;
            stack.publish_raw(Queue::Webhook, body).await;
        }
        // A wake-up for a task that never was is an empty claim.
        let stray = json!({"v": "1", "task": uuid::Uuid::new_v4()}).to_string();
        stack.publish_raw(Queue::Image, stray.as_bytes()).await;
    };
    tokio::join!(load.run(), poison);
    wait_for("ten dead letters", PATIENCE, async || {
        let depths = stack.queue_depths().await?;
        (depths.last()? == &(stack.dead_letters(), 10)).then_some(())
    })
    .await;
    stack.purge_queues().await;
    checker::check(&stack, &load, SETTLING).await;
    load.assert_untroubled();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_job_is_not_starved_by_another_accounts_backlog() {
    // All jobs go through one slot, which is held until the backlog is there.
    let builder = mortal().image_workers(1).env("CANVAS_SLOTS", 1).env("CANVAS_ACTIVE_JOBS", 10_000);
    let stack = start(builder.hold("action.loaded")).await;
    let (busy, late) = (stack.user().await, stack.user().await);
    flood(&busy, 100, None).await;
    stack.hold("action.loaded").reached().await;
    let canvas = text(&late.make_canvas().await, "/id").to_owned();
    let job = late.start_resize(&canvas, json!({})).await;
    stack.hold("action.loaded").release();
    assert_eq!(late.finished(&job).await["status"], "succeeded");
    let before: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM jobs WHERE started_at < (SELECT started_at FROM jobs WHERE id = $1::uuid)",
    )
    .bind(text(&job, "/rawId"))
    .fetch_one(stack.pool())
    .await
    .expect("counts");
    // The one in hand, and twice as many as there are slots (renditions are no jobs).
    assert!(before <= 3, "{before} jobs of the other account began before");
    unfinished_is_fine(&stack).await;
}

/// What is left of the backlog is nobody's concern, and takes no time from the next test.
async fn unfinished_is_fine(stack: &Stack) {
    stack.execute("TRUNCATE tasks").await;
}
