//! Misbehaving receivers, messages and accounts do not affect others (docs/reliability.md#r8-misbehaving-receivers,
//! docs/reliability.md#r14-poison-messages, docs/reliability.md#r16-fairness-between-accounts).

use std::time::Duration;

use domain::message::Queue;
use e2e::api::text;
use e2e::{Chance, Load, PATIENCE, Part, Plan, SETTLING, Stack, User, checker};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{Answer, Receiver, wait_for};

use super::scale::{R8_HEALTHY, R8_SICK, R14_ROUNDS, R16_BACKLOG, is_full, measured};
use super::{doubled, few, mortal, start};

/// The most by which the memory of a dispatcher may grow because of misbehaving receivers (R8).
const GROWTH_BYTES: u64 = 50 << 20;
/// Jobs on one canvas. Their number is limited because every start reads the canvas.
const JOBS_A_CANVAS: usize = 100;

/// Starts `count` jobs of one account, each into a new node, with webhooks to `receiver` if it is given.
async fn flood(user: &User, count: usize, receiver: Option<&Receiver>) {
    let asset = user.upload("image/png", e2e::images::png(64, 48)).await;
    for started in (0..count).step_by(JOBS_A_CANVAS) {
        flood_canvas(user, (count - started).min(JOBS_A_CANVAS), &asset, receiver).await;
    }
}

async fn flood_canvas(user: &User, count: usize, asset: &Value, receiver: Option<&Receiver>) {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let create = |index: usize| {
        let node = json!({"type": "image", "position": {"x": 400 * index, "y": 0}});
        json!({"type": "node.create", "clientId": format!("t{index}"), "node": node})
    };
    let made = user.apply(&canvas, (0..count).map(create).collect()).await;
    let mut started = 0;
    while started < count {
        let target = text(&made, &format!("/resolvedIds/t{started}"));
        let mut request = user.resize_request(&canvas, target, text(asset, "/handle")).await;
        if let Some(receiver) = receiver {
            request["webhook"] = json!({"url": receiver.url("/sick"), "secret": e2e::load::SECRET});
        }
        let reply = user.send("/actions/resize/runs", &request).await;
        // A job that ended in the meantime changed the revision of the canvas.
        if reply.status != 409 {
            reply.expect(202);
            started += 1;
        }
    }
}

/// Measurements of healthy deliveries.
struct Health {
    /// The 99th percentile of the time from a job's end to its recorded delivery, in seconds.
    p99: f64,
    /// Deliveries per second.
    rate: f64,
}

/// Runs a load with a healthy receiver until every event has arrived.
async fn health(stack: &Stack, load: &Load<'_>, jobs: usize) -> Health {
    load.run().await;
    load.receiver().wait_for(jobs, PATIENCE).await;
    let lags = "SELECT extract(epoch FROM d.delivered_at - j.completed_at)::float8 FROM webhook_deliveries d
                JOIN jobs j ON j.id = d.job_id WHERE starts_with(d.url, $1) AND d.delivered_at IS NOT NULL ORDER BY 1";
    let lags: Vec<f64> =
        sqlx::query_scalar(lags).bind(load.receiver().url("/")).fetch_all(stack.pool()).await.expect("reads");
    let requests = load.receiver().requests();
    assert!(requests.iter().all(|request| request.verify_signature(e2e::load::SECRET).is_ok()));
    let took = requests[requests.len() - 1].at - requests[0].at;
    Health { p99: lags[lags.len() * 99 / 100], rate: requests.len() as f64 / took.as_secs_f64() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_that_never_answer_or_never_end_hurt_nobody_else() {
    let (chance, stack) = (Chance::new(), start(mortal().dispatchers(1).receivers(5)).await);
    let plan = Plan { jobs: R8_HEALTHY.now(), clients: 4, pause: Duration::from_millis(50) };
    // The figures are ratios. The baseline is measured only in a full run, which judges them.
    let before = match is_full() {
        true => Some(health(&stack, &Load::prepare(&stack, &chance.fork(1), plan).await, plan.jobs).await),
        false => None,
    };
    let load = Load::prepare(&stack, &chance, plan).await;
    let sick = [Answer::never(), Answer::drip(Duration::from_secs(1)), Answer::endless()];
    let sick = sick.map(|answer| {
        let receiver = stack.take_receiver();
        receiver.answer(answer);
        receiver
    });
    let floods = sick.iter().map(|receiver| async {
        let user = stack.user().await;
        flood(&user, R8_SICK.now(), Some(receiver)).await;
    });
    // All misbehaving deliveries are in progress before the healthy load starts.
    join_all(floods).await;
    let resident = stack.peak_resident(Part::DISPATCHER);
    let beside = health(&stack, &load, plan.jobs).await;
    let growth = stack.peak_resident(Part::DISPATCHER) - resident;
    measured(
        "R8",
        format_args!(
            "with 3 x {} misbehaving deliveries: {:.0} /s, p99 of the lag {:.3} s, {} MiB more",
            R8_SICK.now(),
            beside.rate,
            beside.p99,
            growth >> 20
        ),
    );
    // Far below the 10 s that an attempt to a misbehaving receiver takes.
    assert!(beside.p99 < 3.0, "{}", beside.p99);
    if let Some(before) = before {
        measured("R8", format_args!("without them: {:.0} /s, p99 of the lag {:.3} s", before.rate, before.p99));
        assert!(beside.p99 <= before.p99 * 2.0, "p99 {} s against {} s", beside.p99, before.p99);
        assert!(beside.rate >= before.rate * 0.95, "{} /s against {} /s", beside.rate, before.rate);
        assert!(growth <= GROWTH_BYTES, "{growth} bytes more");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poison_goes_to_the_dead_letters_and_its_neighbours_are_unhurt() {
    let (chance, stack) = (Chance::new(), start(doubled()).await);
    let load = Load::prepare(&stack, &chance, few(24)).await;
    let poison = async {
        load.until(4).await;
        let poisons = [&b""[..], b"no JSON", br#"{"v":"9"}"#, br#"{"v":"1","task":"no uuid"}"#, &[0xff; 4096]];
        for _ in 0..R14_ROUNDS.now() {
            for body in poisons {
                stack.publish_raw(Queue::Image, body).await;
                stack.publish_raw(Queue::Webhook, body).await;
            }
        }
        // A wake-up message for a task that never existed leads to an empty claim.
        let stray = json!({"v": "1", "task": uuid::Uuid::new_v4()}).to_string();
        stack.publish_raw(Queue::Image, stray.as_bytes()).await;
    };
    tokio::join!(load.run(), poison);
    let letters = u32::try_from(10 * R14_ROUNDS.now()).expect("few");
    wait_for("as many dead letters", PATIENCE, async || {
        let depths = stack.queue_depths().await?;
        (depths.last()? == &(stack.dead_letters(), letters)).then_some(())
    })
    .await;
    stack.purge_queues().await;
    checker::check(&stack, &load, SETTLING).await;
    load.assert_untroubled();
    measured("R14", format_args!("{letters} poison messages, {letters} dead letters, 24 neighbors unaffected"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_job_is_not_starved_by_another_accounts_backlog() {
    // All jobs use one slot, which is held until the backlog exists.
    let builder = mortal().image_workers(1).env("CANVAS_SLOTS", 1).env("CANVAS_ACTIVE_JOBS", 10_000);
    let stack = start(builder.hold("action.loaded")).await;
    let (busy, late) = (stack.user().await, stack.user().await);
    flood(&busy, R16_BACKLOG.now(), None).await;
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
    measured("R16", format_args!("{before} of {} jobs of the other account began before, one slot", R16_BACKLOG.now()));
    // The running one, and twice as many as there are slots. Renditions are not jobs.
    assert!(before <= 3, "{before} jobs of the other account began before");
    unfinished_is_fine(&stack).await;
}

/// Deletes the rest of the backlog, so that it does not slow down the next test.
async fn unfinished_is_fine(stack: &Stack) {
    stack.execute("TRUNCATE task_queue").await;
}
