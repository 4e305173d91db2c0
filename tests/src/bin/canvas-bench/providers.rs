//! Work that takes minutes at a provider: its cost while it waits, and how much of it one worker can run.

use std::time::{Duration, Instant};

use e2e::api::{key, text};
use e2e::{Kind, Part, Stack, User};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};
use testkit::wait_for;

use crate::memory::resident_mib;
use crate::seed;
use crate::statements::Recorder;
use crate::table::BenchRow;

/// Videos in progress at a provider, and the number of their accounts.
const WAITING: i64 = 10_000;
const ACCOUNTS: i64 = 10;
/// The size of a provider's video, and the memory that storing it may take.
const VIDEO_MIB: usize = 200;
const VIDEO_GROWTH_MIB: f64 = 50.0;
const WAITING_MIB: f64 = 300.0;
const STATEMENTS_PER_SECOND: f64 = 50.0;
/// The time for which statements are counted: twice the longest time between two polls of a run.
const COUNTED: Duration = Duration::from_secs(30);
/// The same for an idle service.
const COUNTED_IDLE: Duration = Duration::from_secs(10);
/// The time before counting, in which every run is polled at its own interval.
const SETTLE: Duration = Duration::from_secs(16);

/// Concurrent image jobs of one worker, the number of clients that start them, and the provider's latency for each.
const JOBS: i32 = 200;
const CLIENTS: usize = 8;
const LATENCY: Duration = Duration::from_secs(5);
const ALL_SECONDS: f64 = 15.0;
const ALL_MIB: f64 = 150.0;
const DRAIN: Duration = Duration::from_secs(90);
/// Longer than the benchmark runs.
const NEVER: Duration = Duration::from_secs(3600);

/// Measures the cost of ten thousand videos that are in progress at a provider.
pub async fn waiting(stack: &Stack) -> Vec<BenchRow> {
    let simulator = Simulator::start(Vendor::Runway).await;
    simulator.take(NEVER);
    let recorder = Recorder::start(stack).await;
    let idle = recorder.calls(COUNTED_IDLE).await;
    for _ in 0..ACCOUNTS {
        submitted(stack, &simulator).await;
    }
    multiply(stack).await;
    seed::analyze(stack).await;
    tokio::time::sleep(SETTLE).await;
    let polls = simulator.polls();
    let all = recorder.calls(COUNTED).await;
    recorder.stop().await;
    let polls = (simulator.polls() - polls) as f64 / COUNTED.as_secs_f64();
    let mib = resident_mib(Kind::VideoWorker.binary());
    let waiting = stack.count("SELECT count(*) FROM jobs WHERE kind = 'video' AND status = 'running'").await;
    assert_eq!(waiting, WAITING, "all of them still wait");
    stack.execute("DELETE FROM task_queue WHERE queue = 'video'").await;
    stack.execute("DELETE FROM jobs WHERE kind = 'video'").await;
    let cost = all - idle;
    vec![
        BenchRow::reported("10000 waiting videos, statements", format!("{cost:.0} /s"))
            .ours(format!("{all:.0} /s"))
            .peer(format!("{idle:.0} /s idle"))
            .goal(format!("<= {STATEMENTS_PER_SECOND} /s"), cost <= STATEMENTS_PER_SECOND)
            .note(format!(
                "Every statement of every process, by pg_stat_statements, less those of the same service with nothing to do. One \
                 video-worker, {ACCOUNTS} accounts; the runs were begun two minutes ago and were polled {polls:.0} times a second."
            )),
        BenchRow::reported("10000 waiting videos, memory of the video-worker", format!("{mib:.0} MiB"))
            .goal(format!("<= {WAITING_MIB} MiB"), mib <= WAITING_MIB),
    ]
}

/// Starts a video of a new account and waits until it is submitted.
async fn submitted(stack: &Stack, simulator: &Simulator) {
    let (user, job) = ordered(stack, simulator).await;
    user.until(&job, |job| job["providerRunId"].is_string()).await;
}

/// Starts a video of a new account.
pub async fn ordered(stack: &Stack, simulator: &Simulator) -> (User, Value) {
    let user = stack.user().await;
    stack.connect_to(&user.uid, "runway", simulator.url(), SIMULATOR_KEY).await;
    let models = user.get("/models?provider=runway&capability=video.generate").await.ok();
    let request = json!({"model": models["models"][0]["handle"], "prompt": "a kite", "idempotencyKey": key()});
    let job = user.send("/videos/generate", &request).await.expect(202).json();
    (user, job)
}

/// Copies each video by SQL up to the total number, as if all had started two minutes ago. Through the API this would take
/// longer than the whole benchmark.
async fn multiply(stack: &Stack) {
    sqlx::query(
        "WITH copies AS MATERIALIZED (
             SELECT j.id AS source, gen_random_uuid() AS id
             FROM jobs j, generate_series(2, $1 / $2) WHERE j.kind = 'video' AND j.status = 'running'
         ), made AS (
             INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, version, request, estimated_seconds, queued_at,
                               started_at)
             SELECT c.id, j.account_uid, j.token_id, j.kind, j.operation, j.status, j.version, j.request, j.estimated_seconds,
                    j.queued_at, j.started_at
             FROM copies c JOIN jobs j ON j.id = c.source
         ), outputs AS (
             INSERT INTO job_outputs (job_id, position, state, attempts, accepted, run, submitted_at, due_at, deadline_at)
             SELECT c.id, 0, o.state, 1, true, o.run, now() - interval '2 minutes', now(), now() + interval '1 hour'
             FROM copies c JOIN job_outputs o ON o.job_id = c.source
         )
         INSERT INTO task_queue (id, queue, kind, fairness_key, state, fair_seq, due_at)
         SELECT c.id, 'video', 'video', j.account_uid, 'parked', nextval('task_turns'), now() + random() * interval '12 seconds'
         FROM copies c JOIN jobs j ON j.id = c.source",
    )
    .bind(WAITING)
    .bind(ACCOUNTS)
    .execute(stack.pool())
    .await
    .expect("makes videos");
}

/// Measures the download of a large video from a provider into the store.
pub async fn streamed(stack: &Stack) -> Vec<BenchRow> {
    let simulator = Simulator::start(Vendor::Runway).await;
    simulator.weigh(VIDEO_MIB << 20);
    let before = resident_mib(Kind::VideoWorker.binary());
    ordered(stack, &simulator).await;
    let mut peak = before;
    let began = Instant::now();
    let ended = async || stack.count("SELECT count(*) FROM jobs WHERE video_blob IS NOT NULL").await;
    wait_for("the video", DRAIN, async || {
        peak = peak.max(resident_mib(Kind::VideoWorker.binary()));
        (ended().await == 1).then_some(())
    })
    .await;
    let seconds = began.elapsed().as_secs_f64();
    let growth = peak - before;
    vec![
        BenchRow::reported(
            format!("a video of {VIDEO_MIB} MiB from a provider, more memory"),
            format!("{growth:.0} MiB"),
        )
        .ours(format!("{before:.0} to {peak:.0} MiB"))
        .goal(format!("<= {VIDEO_GROWTH_MIB} MiB"), growth <= VIDEO_GROWTH_MIB)
        .note(format!(
            "Resident memory of the video-worker, looked at all the time; {seconds:.1} s with three polls 5 s apart."
        )),
    ]
}

/// Measures one worker with many concurrent jobs of a provider.
pub async fn carried(stack: &Stack) -> Vec<BenchRow> {
    let simulator = Simulator::start(Vendor::Replicate).await;
    simulator.take(LATENCY);
    let many = JOBS.to_string();
    let env = [("CANVAS_PROVIDER_CONCURRENCY", many.as_str()), ("CANVAS_GENERATION_SLOTS", many.as_str())];
    stack.restart_with(Part::IMAGE_WORKER, &env).await;
    let user = stack.user().await;
    stack.connect_to(&user.uid, "replicate", simulator.url(), SIMULATOR_KEY).await;
    let models = user.get("/models?provider=replicate&capability=image.generate").await.ok();
    let model = text(&models, "/models/0/handle").to_owned();
    seed::targets(stack, &user, "carried-", JOBS).await;
    seed::analyze(stack).await;
    let ended = async || stack.count("SELECT count(*) FROM jobs WHERE kind = 'image' AND status = 'succeeded'").await;
    let before = ended().await;
    let began = Instant::now();
    let starts = (1..=JOBS).map(|number| {
        let canvas = format!("carried-{number}");
        let request = json!({
            "canvasId": canvas, "baseRevision": format!("{canvas}-seeded"), "idempotencyKey": format!("bench-{canvas}"),
            "targetNodeId": "target", "prompt": format!("kite {number}"), "model": model,
        });
        let user = &user;
        async move { user.send("/images/generate", &request).await.expect(202) }
    });
    stream::iter(starts).buffer_unordered(CLIENTS).collect::<Vec<_>>().await;
    let accepted = began.elapsed().as_secs_f64();
    let mut peak: f64 = 0.0;
    wait_for("the images", DRAIN, async || {
        peak = peak.max(resident_mib(Kind::ImageWorker.binary()));
        (ended().await - before >= i64::from(JOBS)).then_some(())
    })
    .await;
    let seconds = began.elapsed().as_secs_f64();
    stack.restart(Part::IMAGE_WORKER).await;
    let polls = simulator.polls();
    vec![
        BenchRow::reported(format!("{JOBS} provider jobs of {} s at once", LATENCY.as_secs()), format!("{seconds:.1} s"))
            .goal(format!("<= {ALL_SECONDS} s"), seconds <= ALL_SECONDS)
            .note(format!(
                "One image-worker, one connection, up to {JOBS} calls; from the first request to the last end. All were accepted \
                 after {accepted:.1} s, and polled {polls} times altogether."
            )),
        BenchRow::reported(format!("{JOBS} provider jobs at once, most memory of the image-worker"), format!("{peak:.0} MiB"))
            .goal(format!("<= {ALL_MIB} MiB"), peak <= ALL_MIB),
    ]
}
