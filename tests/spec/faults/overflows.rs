//! A task that ends its worker in a way that cannot be caught, as a stack overflow does, in each worker
//! (docs/reliability.md#quarantine). It is failed after its five claims, and the other work of its queue goes on.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use domain::limits::TASK_CLAIMS_MAX;
use e2e::api::{key, text};
use e2e::{Part, SETTLING, Stack, User, checker};
use serde_json::{Value, json};
use testkit::{Answer, wait_for};

use super::{mortal, start};

/// The signal of `abort`.
const SIGABRT: i32 = 6;
/// How long it may take until a task that kills its worker is failed: five claims with shortened leases and restarts.
const PATIENCE: Duration = Duration::from_secs(120);
const GRANT: i64 = 100;

/// Starts the part with a failpoint that overflows the stack in each run of `task`, and again whenever it has died, until
/// `is_over`. Returns the number of its deaths.
async fn dies_of(stack: &Stack, part: Part, task: &str, is_over: impl AsyncFn() -> bool) -> i32 {
    let failpoint = format!("task.run.{task}=overflow");
    let mut deaths = 0;
    stack.launch_with(part, &[("CANVAS_FAILPOINTS", &failpoint)]);
    wait_for("the task to be failed", PATIENCE, async || {
        if let Some(status) = stack.has_ended(part) {
            assert_eq!(status.signal(), Some(SIGABRT), "{part} ended with {status}");
            deaths += 1;
            stack.launch_with(part, &[("CANVAS_FAILPOINTS", &failpoint)]);
        }
        // The pauses between claims grow to a minute. They are tested in the task queue.
        stack.execute("UPDATE task_queue SET due_at = now() WHERE state = 'parked'").await;
        is_over().await.then_some(())
    })
    .await;
    assert!(stack.log(part).contains("has overflowed its stack"));
    deaths
}

async fn payer(stack: &Stack) -> User {
    let user = stack.user().await;
    stack.grant(&user.uid, GRANT).await;
    user
}

async fn record(user: &User, job: &Value) -> Value {
    user.get(text(job, "/pollUrl")).await.json()
}

/// The job that killed its worker has failed, its neighbors have succeeded, and only these are charged.
async fn is_isolated(stack: &Stack, user: &User, poison: &Value, neighbors: &[Value], deaths: i32, price: i64) {
    let failed = record(user, poison).await;
    assert_eq!((&failed["status"], failed["creditCost"].as_i64()), (&json!("failed"), Some(0)), "{failed}");
    assert_eq!(deaths, TASK_CLAIMS_MAX, "one death for each claim");
    for neighbor in neighbors {
        assert_eq!(user.finished(neighbor).await["status"], "succeeded");
    }
    let balance = user.get("/auth/status").await.ok()["creditBalance"].as_i64();
    assert_eq!(balance, Some(GRANT - price * i64::try_from(neighbors.len()).expect("few")));
    checker::settled(stack, SETTLING).await;
    assert_eq!(checker::invariants(stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_that_overflows_the_stack_is_failed_alone() {
    let stack = start(mortal()).await;
    let user = payer(&stack).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    stack.stop(Part::IMAGE_WORKER).await;
    let poison = user.start_resize(&canvas, json!({})).await;
    let mut neighbors = Vec::new();
    for _ in 0..3 {
        neighbors.push(user.start_resize(&canvas, json!({})).await);
    }
    let is_over = async || record(&user, &poison).await["status"] == "failed";
    let deaths = dies_of(&stack, Part::IMAGE_WORKER, text(&poison, "/rawId"), is_over).await;
    let failed = record(&user, &poison).await;
    assert_eq!(
        (&failed["failure"]["code"], &failed["failure"]["retryable"]),
        (&json!("runtime_failed"), &json!(false))
    );
    is_isolated(&stack, &user, &poison, &neighbors, deaths, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_video_that_overflows_the_stack_is_failed_alone() {
    let stack = start(mortal().video_workers(1)).await;
    let user = payer(&stack).await;
    stack.stop(Part::VIDEO_WORKER).await;
    let video = async |prompt: &str| {
        let request = json!({
            "model": "animatic", "prompt": prompt, "durationSeconds": 1, "resolution": "480p", "idempotencyKey": key(),
        });
        user.send("/videos/generate", &request).await.expect(202).json()
    };
    let poison = video("a kite").await;
    let neighbors = [video("a boat").await, video("a lamp").await];
    let is_over = async || record(&user, &poison).await["status"] == "failed";
    let deaths = dies_of(&stack, Part::VIDEO_WORKER, text(&poison, "/rawId"), is_over).await;
    assert_eq!(record(&user, &poison).await["failure"]["code"], "video_generation_failed");
    is_isolated(&stack, &user, &poison, &neighbors, deaths, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_overflows_the_stack_is_failed_alone() {
    let stack = start(mortal()).await;
    let user = payer(&stack).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let receiver = stack.take_receiver();
    receiver.answer(Answer::status(204));
    stack.stop(Part::DISPATCHER).await;
    let webhook = json!({"webhook": {"url": receiver.url("/hook"), "secret": "a".repeat(32)}});
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let job = user.start_resize(&canvas, webhook.clone()).await;
        assert_eq!(user.finished(&job).await["status"], "succeeded");
        jobs.push(job);
    }
    let delivery = record(&user, &jobs[0]).await;
    let id = text(&delivery, "/webhook/id").trim_start_matches("webhook:").to_owned();
    let is_over = async || record(&user, &jobs[0]).await["webhook"]["status"] == "failed";
    let deaths = dies_of(&stack, Part::DISPATCHER, &id, is_over).await;
    assert_eq!(deaths, TASK_CLAIMS_MAX, "one death for each claim");
    let failed = record(&user, &jobs[0]).await;
    assert_eq!(
        (&failed["webhook"]["errorCode"], &failed["webhook"]["attempts"]),
        (&json!("delivery_failed"), &json!(0))
    );
    for job in &jobs[1..] {
        wait_for("the other webhooks", PATIENCE, async || {
            (record(&user, job).await["webhook"]["status"] == "delivered").then_some(())
        })
        .await;
    }
    assert_eq!(receiver.requests().len(), 2);
}
