//! The time for which the end of a job keeps others from writing to a large canvas.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use e2e::api::text;
use e2e::{API_ROOT, Stack, User, images};
use serde_json::{Value, json};

use crate::jobs::finish;
use crate::load::{Connection, post};
use crate::seed;
use crate::table::{BenchRow, median, quantile};

/// Half of the most that a canvas has (docs/reference/limits.md#canvases-and-nodes).
const NODES: usize = 10_000;
/// Measured jobs, one after the other.
const JOBS: usize = 40;
const WARM_UP: usize = 3;
/// The goal for the milliseconds that another writer waits.
const LOCKED_MS: f64 = 5.0;

/// Runs Actions into nodes of one canvas while another connection takes the lock of the canvas again and again. The longest of its
/// waits from the acceptance of a job to its end is the time for which the end held the lock.
pub async fn measure(stack: &Stack) -> Vec<BenchRow> {
    let user = stack.user().await;
    let template = seed::template(stack, &user).await;
    let canvas = seed::multiple(stack, &template, "ends", (NODES / seed::NODES) as i32).await;
    let targets: Vec<String> =
        sqlx::query_scalar("SELECT id FROM nodes WHERE canvas_key = $1 AND type = 'image' ORDER BY ordinal LIMIT $2")
            .bind(canvas.key)
            .bind((JOBS + WARM_UP) as i64)
            .fetch_all(stack.pool())
            .await
            .expect("reads the targets");
    seed::analyze(stack).await;
    let asset = user.upload("image/png", images::png(1, 1)).await;
    let input = text(&asset, "/handle");
    let mut connection = Connection::to(&stack.authority(0));
    let mut waits = Vec::new();
    for target in &targets {
        let poll_url = start(stack, &user, &canvas, target, input, &mut connection).await;
        let ended = Arc::new(AtomicBool::new(false));
        let longest = tokio::spawn(longest_wait(stack.pool().clone(), canvas.key, Arc::clone(&ended)));
        finish(&mut connection, &poll_url, &user.token).await;
        ended.store(true, Ordering::Relaxed);
        waits.push(longest.await.expect("asks for the lock"));
    }
    let waits = &waits[WARM_UP..];
    let [p50, p90] = [median(waits), quantile(waits, 0.9)];
    vec![
        BenchRow::reported(
            format!("lock of a canvas of {NODES} nodes by the end of a job, median and p90"),
            format!("{p50:.1}, {p90:.1} ms"),
        )
        .goal(format!("<= {LOCKED_MS} ms"), p50 <= LOCKED_MS)
        .note(format!(
            "The longest wait of another connection for the row lock of the canvas between the acceptance of a job and its end; \
             {JOBS} resizes of 1x1, one after the other."
        )),
    ]
}

/// Starts a job and returns where it is polled.
async fn start(
    stack: &Stack,
    user: &User,
    canvas: &seed::Canvas,
    target: &str,
    input: &str,
    connection: &mut Connection,
) -> String {
    let revision: String = sqlx::query_scalar("SELECT revision FROM canvases WHERE key = $1")
        .bind(canvas.key)
        .fetch_one(stack.pool())
        .await
        .expect("reads the revision");
    let body = json!({
        "canvasId": canvas.id, "baseRevision": revision, "idempotencyKey": format!("bench-{}-{target}", canvas.id),
        "targetNodeId": target, "inputs": [input], "params": {"width": 1},
    });
    let request = post(&format!("{API_ROOT}/actions/resize/runs"), &user.token, &body.to_string());
    let answer = connection.exchange(&request).await;
    assert_eq!(answer.status, 202, "{}", String::from_utf8_lossy(answer.body));
    let job: Value = serde_json::from_slice(answer.body).expect("a record");
    text(&job, "/pollUrl").to_owned()
}

/// The milliseconds of the longest wait for the lock of the canvas until `ended`.
async fn longest_wait(pool: sqlx::PgPool, canvas_key: i64, ended: Arc<AtomicBool>) -> f64 {
    let mut connection = pool.acquire().await.expect("connects");
    let mut longest = 0.0_f64;
    while !ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        sqlx::query("SELECT key FROM canvases WHERE key = $1 FOR UPDATE")
            .bind(canvas_key)
            .execute(&mut *connection)
            .await
            .expect("takes the lock");
        longest = longest.max(began.elapsed().as_secs_f64() * 1e3);
        tokio::task::yield_now().await;
    }
    longest
}
