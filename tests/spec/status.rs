//! Queues, and what work waits for (docs/reference/status.md).

use std::time::{Duration, Instant};

use e2e::api::{key, text};
use e2e::tools::{STATELESS, Tools};
use e2e::{Client, Kind, PATIENCE, Part, Shell, Stack, User};
use serde_json::{Value, json};
use testkit::wait_for;

const VIDEO_WORKER: Part = Part(Kind::VideoWorker, 0);
/// By when a worker that was killed is known to be gone: after CANVAS_WORKER_SILENT_SECONDS, an interval of its reports, and what a
/// gateway keeps of the state.
const NOTICED: Duration = Duration::from_secs(25);
/// What a command makes.
const VIDEO: [&str; 9] =
    ["video", "--prompt", "a walk", "--model", "animatic", "--yes", "--seconds", "1", "--resolution=480p"];

fn wanted() -> Value {
    json!({"model": "animatic", "prompt": "a kite over the sea", "idempotencyKey": key()})
}

async fn start(user: &User) -> Value {
    user.send("/videos/generate", &wanted()).await.expect(202).json()
}

async fn balance(user: &User) -> Value {
    user.get("/auth/status").await.ok()["creditBalance"].clone()
}

async fn queue(client: &Client, name: &str) -> Value {
    let status = client.get("/status").await.ok();
    let queues = status["queues"].as_array().expect("queues");
    queues.iter().find(|queue| queue["queue"] == name).expect("the queue").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_has_lost_its_worker_says_so_and_goes_on_with_the_next_one() {
    let stack =
        Stack::builder().image_workers(1).video_workers(1).env("CANVAS_WORKER_SILENT_SECONDS", 10).start().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 1000).await;
    let shell = stack.shell(&user);
    queues_have_workers_or_are_silent(&stack).await;
    let dry = shell.run(&[&VIDEO[..], &["--dry-run"]].concat()).await.expect(0).stdout;
    assert!(!dry.contains("wait"), "{dry}");

    stack.kill(VIDEO_WORKER);
    let killed = Instant::now();
    let before = balance(&user).await;
    let job = start(&user).await;
    assert_eq!(text(&job, "/waitingFor/what"), "slot", "the worker may be back in a moment: {job}");
    let command = [&VIDEO[..], &["--timeout", "30"]].concat();
    let (record, ran) = tokio::join!(a_wait_in_progress_ends_early(&user, &job, killed), shell.run(&command));
    let said: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("waiting: ")).collect();
    assert_eq!(ran.code, 9, "{}", ran.stderr);
    assert!(
        matches!(said[..], [.., last] if last.starts_with("waiting: no worker of the queue video has been seen for ")),
        "{}",
        ran.stderr
    );
    assert_eq!(said.iter().filter(|line| line.contains("no worker")).count(), 1, "{}", ran.stderr);

    the_status_says_it(&user).await;
    metrics_say_it(&stack).await;
    answers_say_it(&user, text(&record, "/id")).await;
    commands_say_it(&shell, text(&record, "/id")).await;
    tools_say_it(&user, text(&record, "/id")).await;
    work_that_waits_is_canceled_for_nothing(&user, &before).await;

    let kept = start(&user).await;
    stack.restart(VIDEO_WORKER).await;
    let path = format!("/jobs/{}", text(&kept, "/id"));
    let done = wait_for("the work to go on", PATIENCE * 2, async || {
        Some(user.get(&path).await.json()).filter(|record| record["status"] == "succeeded")
    })
    .await;
    assert_eq!(done.get("waitingFor"), None, "{done}");
    // A gateway keeps the state for two seconds.
    wait_for("the queue to be ok", PATIENCE, async || (queue(&user, "video").await["state"] == "ok").then_some(()))
        .await;
}

/// No dispatcher runs, and none ever did.
async fn queues_have_workers_or_are_silent(stack: &Stack) {
    // A token without any scope that matters may ask.
    let poor = stack.user_with("asset:read").await;
    for name in ["image", "import", "generation", "recipe", "video"] {
        let queue = wait_for("workers to be seen", PATIENCE, async || {
            Some(queue(&poor, name).await).filter(|queue| queue["state"] == "ok")
        })
        .await;
        assert_eq!((&queue["workers"], &queue["oldestWaitingSeconds"]), (&json!(1), &json!(0)), "{queue}");
        assert!(queue["lastSeenAt"].is_string(), "{queue}");
    }
    let webhook = queue(&poor, "webhook").await;
    assert_eq!(webhook, json!({"queue": "webhook", "state": "silent", "workers": 0, "oldestWaitingSeconds": 0}));
    stack.anonymous().get("/status").await.expect_error(401, "unauthorized", &[]);
}

/// Those of the gateway, because a worker that is gone publishes none.
async fn metrics_say_it(stack: &Stack) {
    let metric = async |name: &str| stack.metric(Part::GATEWAY, name).await;
    wait_for("the metrics of the queues", PATIENCE * 3, async || {
        let workers = metric("canvas_queue_workers").await;
        let silent_for = metric("canvas_queue_silent_seconds").await;
        let waiting = metric("canvas_queue_oldest_waiting_seconds").await;
        (workers == 4.0 && silent_for >= 10.0 && waiting >= 10.0).then_some(())
    })
    .await;
}

/// The read waits for a change of a record that does not change.
async fn a_wait_in_progress_ends_early(user: &User, job: &Value, killed: Instant) -> Value {
    let path = format!("/jobs/{}", text(job, "/id"));
    let tag = user.get(&path).await.expect(202).header("etag").expect("an entity tag").to_owned();
    let reply = user.get(&path).header("prefer", "wait=30").header("if-none-match", &tag).await.expect(202);
    assert!(killed.elapsed() < NOTICED, "after {} s", killed.elapsed().as_secs());
    assert_eq!(reply.header("etag"), Some(tag.as_str()), "nothing else has changed");
    let record = reply.json();
    assert_eq!((text(&record, "/status"), text(&record, "/waitingFor/what")), ("queued", "worker"), "{record}");
    assert!(record["waitingFor"]["lastSeenAt"].is_string(), "{record}");
    // The next wait lasts: it was said.
    let began = Instant::now();
    user.get(&path).header("prefer", "wait=2").header("if-none-match", &tag).await.expect(304);
    assert!(began.elapsed() >= Duration::from_millis(1500), "{} ms", began.elapsed().as_millis());
    record
}

async fn the_status_says_it(user: &User) {
    let video = queue(user, "video").await;
    assert_eq!((text(&video, "/state"), &video["workers"]), ("silent", &json!(0)), "{video}");
    assert_eq!(queue(user, "image").await["state"], "ok");
}

async fn answers_say_it(user: &User, job: &str) {
    let mut dry = wanted();
    dry["validateOnly"] = true.into();
    let quote = user.send("/videos/generate", &dry).await.ok();
    assert_eq!(text(&quote, "/waitingFor/what"), "worker", "{quote}");
    let listed = user.get("/runs?kind=video").await.ok();
    let run = listed["runs"].as_array().expect("runs").iter().find(|run| run["handle"] == job).expect("the job");
    assert!(run["waitingFor"]["what"] == "worker" && run["waitingFor"]["lastSeenAt"].is_string(), "{run}");
}

async fn commands_say_it(shell: &Shell, job: &str) {
    const SAID: &str = "no worker of the queue video has been seen for ";
    let doctor = shell.run(&["doctor"]).await.expect(1).stdout;
    let line = doctor.lines().find(|line| line.starts_with("queue video")).expect("a line");
    assert!(line.contains("FAILED") && line.contains(SAID), "{doctor}");
    assert!(doctor.lines().any(|line| line.starts_with("queue image") && line.ends_with("1 worker")), "{doctor}");
    let dry = shell.run(&[&VIDEO[..], &["--dry-run"]].concat()).await.expect(0).stdout;
    assert!(dry.contains("it would wait: no worker for it has been seen for "), "{dry}");
    let shown = shell.run(&["run", "show", job]).await.expect(0).stdout;
    assert!(shown.contains(&format!("waiting: {SAID}")), "{shown}");
    let listed = shell.run(&["run", "list"]).await.expect(0).stdout;
    assert!(listed.contains("worker, last seen "), "{listed}");
    for (option, count) in [("--quiet", 1), ("--json", 1)] {
        let waited = shell.run(&["run", "wait", job, "--timeout", "3", option]).await.expect(9);
        assert_eq!(waited.stdout, "", "{option}");
        assert_eq!(waited.stderr.matches(SAID).count(), count, "{option}: {}", waited.stderr);
    }
    let json = shell.run(&["run", "wait", job, "--timeout", "1", "--json"]).await.expect(9).stderr;
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(text(&lines[0], "/note/message").contains(SAID) && lines[1]["error"]["code"] == "still_running", "{json}");
    let started = shell.run(&[&VIDEO[..], &["--no-wait", "--new-attempt"]].concat()).await.expect(0);
    assert!(started.stdout.starts_with("job:") && started.stderr.contains(SAID), "{started:?}");
}

async fn tools_say_it(user: &User, job: &str) {
    let tools = Tools::new(user, STATELESS).await;
    let is_said = |text: &str| {
        text.starts_with("no worker of the queue video has been seen for ")
            && text.contains("Never start it again")
            && text.contains("Tell the user")
    };
    let status = tools.ok("status", json!({})).await;
    let queues: Vec<&str> = status["queues"].as_array().expect("queues").iter().map(|it| text(it, "/queue")).collect();
    assert_eq!(queues, ["video", "webhook"], "{status}");
    assert_eq!(status["running"][0]["waitingFor"]["what"], "worker", "{status}");
    let waited = tools.ok("run_wait", json!({"runs": [job], "seconds": 1})).await;
    assert!(is_said(text(&waited, "/runs/0/waiting")), "{waited}");
    let began = Instant::now();
    let model =
        user.get("/models?capability=video.generate&provider=managed").await.ok()["models"][0]["handle"].clone();
    let started = tools.ok("video_generate", json!({"model": model, "prompt": "a boat", "wait": 40})).await;
    assert!(is_said(text(&started, "/waiting")), "{started}");
    assert!(began.elapsed() < Duration::from_secs(10), "there is nothing to wait for");
    tools.ok("run_cancel", json!({"run": started["run"]})).await;
}

async fn work_that_waits_is_canceled_for_nothing(user: &User, before: &Value) {
    let running = user.get("/runs?status=queued").await.ok();
    for run in running["runs"].as_array().expect("runs") {
        let canceled = user.delete(&format!("/jobs/{}", text(run, "/handle"))).await.ok();
        assert_eq!((text(&canceled, "/status"), canceled.get("waitingFor")), ("canceled", None), "{canceled}");
    }
    assert_eq!(&balance(user).await, before);
}
