//! Jobs per second, from acceptance to end: small jobs, the same with an open transaction, and photographs relative to the
//! engine alone.

use std::time::{Duration, Instant};

use e2e::{Stack, images};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::wait_for;

use crate::cost::{Cost, Counters};
use crate::jobs::{Starter, resize_here};
use crate::load::Client;
use crate::pgbench::Pgbench;
use crate::seed;
use crate::statements::Recorder;
use crate::table::BenchRow;

/// Clients, each with its own account.
const CLIENTS: usize = 8;
const JOBS_EACH: i32 = 200;
/// Jobs of each client for which statements are counted, and the goal for the statements of one.
const RECORDED_EACH: i32 = 50;
const STATEMENTS: f64 = 26.0;
/// The goals for jobs per second, and for the share that remains while a snapshot is open
/// (docs/reliability.md#r10-job-throughput).
const JOBS_PER_SECOND: f64 = 500.0;
const BESIDE_A_SNAPSHOT: f64 = 0.8;
/// The time for which the baseline is measured.
const BASELINE_TURN: Duration = Duration::from_secs(5);
const DRAIN: Duration = Duration::from_secs(60);
/// The goal for jobs per second, as a share of those that `pgbench` accepts, claims and ends with one statement each.
const SHARE_OF_BASELINE: f64 = 0.4;
/// The goal for photographs, as a share of the rate of the engine alone.
const SHARE_OF_ENGINE: f64 = 0.85;
const BASELINE_SCRIPT: &str = include_str!("job.sql");
const ON_CANVAS_SCRIPT: &str = include_str!("job-on-canvas.sql");
/// Canvases that pgbench starts jobs on.
const BASELINE_CANVASES: i32 = 4000;
/// Jobs that end while the snapshot is open: more than in ten minutes.
const DONE: i32 = 100_000;
/// The time in which processes refresh the low-water marks of their queues (db::tasks::refresh_low_water).
const REFRESHED: Duration = Duration::from_secs(6);

/// Twelve megapixels, and the width of an image in a gallery.
const PHOTOGRAPH: (u32, u32) = (4000, 3000);
const PHOTOGRAPHS_EACH: i32 = 12;
const WIDTH: u32 = 1024;

/// Measures all three rates, and the statements of a small job.
pub async fn measure(stack: &Stack) -> Vec<BenchRow> {
    let small = ("image/png", images::png(1, 1));
    let width = |_, _| json!({"width": 1});
    let plain = rate(stack, "jobs", JOBS_EACH, &small, width).await;
    let plain_cost = plain.cost(stack).await;
    // Before the open snapshot, whose dead rows autovacuum removes for some time afterwards.
    let photograph = ("image/jpeg", images::jpeg(PHOTOGRAPH.0, PHOTOGRAPH.1));
    // Each result differs, so that each is stored.
    let widths = |client: usize, run: u32| json!({"width": WIDTH + client as u32 * PHOTOGRAPHS_EACH as u32 + run});
    let photographs = rate(stack, "photographs", PHOTOGRAPHS_EACH, &photograph, widths).await;
    let photographs_cost = photographs.cost(stack).await;
    let engine = engine_rate(&photograph.1);
    let recorder = Recorder::start(stack).await;
    let recorded = f64::from(RECORDED_EACH) * CLIENTS as f64;
    let record = async || {
        let _ = rate(stack, "recorded", RECORDED_EACH, &small, width).await;
    };
    // A statement that runs less often than for every tenth job belongs to the preparation or to an idle process.
    let statements = recorder.calls_during(record, recorded as i64 / 10).await as f64 / recorded;
    recorder.stop().await;
    let snapshot = Snapshot::hold(stack, DONE).await;
    let beside = rate(stack, "beside", JOBS_EACH, &small, width).await;
    snapshot.release().await;
    // Last, because of the dead rows that it leaves.
    let baseline = baseline_rate(stack, "job.sql", BASELINE_SCRIPT).await;
    let on_canvas = baseline_rate(stack, "job-on-canvas.sql", ON_CANVAS_SCRIPT).await;
    let old = format!("jobs beside a transaction that stays open, {DONE} jobs old");
    vec![
        BenchRow::reported("jobs, accepted to terminal (R10)", format!("{:.0} /s", plain.per_second))
            .ours(format!("{} in {:.1} s", plain.jobs, plain.seconds))
            .goal(format!(">= {JOBS_PER_SECOND} /s"), plain.per_second >= JOBS_PER_SECOND)
            .note(format!(
                "Resizes of 1x1, {CLIENTS} accounts, one image-worker; from the first request to the last end. All were \
                 accepted after {:.1} s. {plain_cost}",
                plain.accepted
            )),
        BenchRow::reported("jobs beside pgbench with three statements for each", format!("{:.2}", plain.per_second / baseline))
            .ours(format!("{:.0} /s", plain.per_second))
            .peer(format!("{baseline:.0} /s"))
            .goal(format!(">= {SHARE_OF_BASELINE}"), plain.per_second >= SHARE_OF_BASELINE * baseline)
            .note(format!(
                "{CLIENTS} clients of pgbench, one statement each to accept a job, to claim one and to end it, in the same tables: \
                 key, record and task, without canvas, asset, history or message."
            )),
        BenchRow::reported("the same, with the rows of canvas, asset and history", format!("{:.2}", plain.per_second / on_canvas))
            .ours(format!("{:.0} /s", plain.per_second))
            .peer(format!("{on_canvas:.0} /s"))
            .goal(format!(">= {SHARE_OF_BASELINE}"), plain.per_second >= SHARE_OF_BASELINE * on_canvas)
            .note("Three statements that write what such a job leaves: also node, revision and change of its canvas at acceptance and end, the asset, and the history of the record."),
        BenchRow::reported("SQL statements of a job", format!("{statements:.1}"))
            .goal(format!("<= {STATEMENTS}"), statements <= STATEMENTS)
            .note(format!("Of {recorded} such jobs, in all processes; bounds of transactions are not counted.")),
        BenchRow::reported(old, format!("{:.2}", beside.per_second / plain.per_second))
            .ours(format!("{:.0} /s", beside.per_second))
            .peer(format!("{:.0} /s", plain.per_second))
            .goal(format!(">= {BESIDE_A_SNAPSHOT}"), beside.per_second >= BESIDE_A_SNAPSHOT * plain.per_second),
        BenchRow::reported("photographs made smaller beside the engine alone", format!("{:.2}", photographs.per_second / engine))
            .ours(format!("{:.1} /s", photographs.per_second))
            .peer(format!("{engine:.1} /s"))
            .goal(format!(">= {SHARE_OF_ENGINE}"), photographs.per_second >= SHARE_OF_ENGINE * engine)
            .note(format!(
                "{} JPEGs of {}x{} to a width of {WIDTH}, each result stored; beside the same resizes by raster in this \
                 process, on as many threads as there are processors. {photographs_cost}",
                photographs.jobs, PHOTOGRAPH.0, PHOTOGRAPH.1
            )),
    ]
}

/// The rate at which jobs were done.
struct Rate {
    jobs: i64,
    /// Seconds from the first request to the last acceptance.
    accepted: f64,
    /// Seconds from the first request to the last end.
    seconds: f64,
    per_second: f64,
    before: Counters,
}

impl Rate {
    /// The cost of each job.
    async fn cost(&self, stack: &Stack) -> Cost {
        self.before.cost(stack, self.jobs as f64).await
    }
}

/// Starts runs of `resize` on an image as fast as they are accepted, and waits until all have ended.
async fn rate(
    stack: &Stack,
    name: &str,
    runs: i32,
    image: &(&str, Vec<u8>),
    params: impl Fn(usize, u32) -> Value + Copy + 'static,
) -> Rate {
    let mut starters = Vec::new();
    for number in 0..CLIENTS {
        let user = stack.user().await;
        let (prefix, params) = (format!("{name}{number}-"), move |run| params(number, run));
        starters.push(Starter::new(stack, &user, &prefix, runs, image.clone(), params).await);
    }
    seed::analyze(stack).await;
    // Waits for the renditions of the uploaded images and any other task.
    drained(stack).await;
    let ended_before = ended(stack).await;
    let before = Counters::settled(stack).await;
    let began = Instant::now();
    join_all(starters.iter_mut().map(async |starter| {
        for _ in 0..runs {
            starter.step().await;
        }
    }))
    .await;
    let accepted = began.elapsed().as_secs_f64();
    let jobs = i64::from(runs) * CLIENTS as i64;
    // By the index of unfinished jobs: counting the ended ones would take more of the processors than the jobs.
    let unfinished = async || stack.count("SELECT count(*) FROM jobs WHERE completed_at IS NULL").await;
    wait_for("all jobs to end", DRAIN, async || (unfinished().await == 0).then_some(())).await;
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(ended(stack).await - ended_before, jobs, "every job succeeds");
    drained(stack).await;
    Rate { jobs, accepted, seconds, per_second: jobs as f64 / seconds, before }
}

/// The rate at which pgbench accepts, claims and ends jobs with the three statements of a script: `job.sql` or `job-on-canvas.sql`.
async fn baseline_rate(stack: &Stack, name: &str, script: &str) -> f64 {
    let user = stack.user().await;
    seed::targets(stack, &user, "baseline-", BASELINE_CANVASES).await;
    seed::analyze(stack).await;
    // The values that the last job left.
    let [request, outcome, server, activity, blob]: [String; 5] = sqlx::query_scalar(
        "SELECT ARRAY[j.request::text, j.outcome::text, n.server::text, c.activity::text, a.blob_key::text]
         FROM jobs j
         JOIN nodes n ON n.canvas_key = j.canvas_key AND n.id = 'target'
         JOIN assets a ON a.owner_uid = n.asset_owner AND a.id = n.asset_id
         JOIN canvas_changes c ON c.canvas_key = j.canvas_key AND c.revision = j.canvas_revision
         WHERE j.kind = 'action' AND j.status = 'succeeded' ORDER BY j.id DESC LIMIT 1",
    )
    .fetch_one(stack.pool())
    .await
    .map(|texts: Vec<String>| texts.try_into().expect("five texts"))
    .expect("a job has ended");
    let variables = [
        ("uid", user.uid.clone()),
        ("token", user.token_id.to_string()),
        ("fingerprint", format!("\\x{}", "5a".repeat(32))),
        ("canvases", BASELINE_CANVASES.to_string()),
        ("request", request),
        ("outcome", outcome),
        ("server", server),
        ("activity", activity),
        ("blob", blob),
    ];
    let pgbench = Pgbench::new(stack, name, script, &variables);
    pgbench.run(CLIENTS, &["-T", "1"]).await;
    let before = ended(stack).await;
    let ran = pgbench.run(CLIENTS, &["-T", &BASELINE_TURN.as_secs().to_string()]).await;
    // Clients that found no task have left some behind.
    stack.execute("DELETE FROM task_queue WHERE queue = 'baseline'").await;
    stack.execute("DELETE FROM jobs WHERE completed_at IS NULL").await;
    ran.per_second * (ended(stack).await - before) as f64 / ran.transactions as f64
}

/// An open transaction with a snapshot, as a dump holds it: PostgreSQL cannot remove rows that are deleted from now on.
struct Snapshot(sqlx::PgConnection);

impl Snapshot {
    /// Opens the snapshot and leaves the dead rows of `done` jobs that ended since.
    async fn hold(stack: &Stack, done: i32) -> Self {
        let mut connection = stack.pool().acquire().await.expect("connects").detach();
        sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM task_queue")
            .execute(&mut connection)
            .await
            .expect("begins");
        leave_behind(stack, done).await;
        tokio::time::sleep(REFRESHED).await;
        Self(connection)
    }

    async fn release(mut self) {
        sqlx::raw_sql("COMMIT").execute(&mut self.0).await.expect("ends");
    }
}

/// Inserts tasks and deletes them, without a process ever seeing them.
async fn leave_behind(stack: &Stack, done: i32) {
    let mut transaction = stack.pool().begin().await.expect("begins");
    sqlx::query(
        "INSERT INTO task_queue (id, queue, kind, fairness_key, fair_seq)
         SELECT gen_random_uuid(), 'image', 'action', 'done ' || n % 8, nextval('task_turns')
         FROM generate_series(1, $1) n",
    )
    .bind(done)
    .execute(&mut *transaction)
    .await
    .expect("makes tasks");
    for statement in [
        "UPDATE task_queue SET state = 'leased', lease_token = id, lease_until = now() + interval '30 s'
         WHERE fairness_key LIKE 'done %'",
        "DELETE FROM task_queue WHERE fairness_key LIKE 'done %'",
    ] {
        sqlx::query(statement).execute(&mut *transaction).await.expect("moves or deletes the rows");
    }
    transaction.commit().await.expect("commits");
}

/// The rate of the same resizes in this process, per second.
fn engine_rate(image: &[u8]) -> f64 {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let began = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                (0..PHOTOGRAPHS_EACH as u32).for_each(|number| resize_here(image, WIDTH + thread + number))
            });
        }
    });
    f64::from(threads) * f64::from(PHOTOGRAPHS_EACH) / began.elapsed().as_secs_f64()
}

async fn ended(stack: &Stack) -> i64 {
    stack.count("SELECT count(*) FROM jobs WHERE status = 'succeeded'").await
}

async fn drained(stack: &Stack) {
    wait_for("an idle service", DRAIN, async || {
        (stack.count("SELECT count(*) FROM task_queue").await == 0).then_some(())
    })
    .await;
}
