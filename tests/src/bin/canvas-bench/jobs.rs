//! The latency of one job from acceptance to end, minus the time in the engine.

use std::time::Instant;

use e2e::api::text;
use e2e::{API_ROOT, Part, Stack, User, images};
use raster::{Bounds, FormatChoice, Resize};
use serde_json::{Value, json};

use crate::load::{Client, Connection, get, post};
use crate::seed;
use crate::table::{BenchRow, median, quantile};

/// Measured jobs, one after the other.
const SAMPLES: u32 = 200;
const WARM_UP: u32 = 10;
/// The goal for milliseconds from acceptance to end, minus the time in the engine (docs/benchmarks.md).
const OVERHEAD_MS: f64 = 25.0;
/// The goals for milliseconds from commit to claim, median and p99 (docs/reliability.md#r2-commit-to-claim).
const CLAIM_MS: (f64, f64) = (20.0, 150.0);
/// The size of the image, and the first width that it is resized to.
const IMAGE: (u32, u32) = (640, 480);
const FIRST_WIDTH: u32 = 64;
/// The Action's default quality.
const QUALITY: u8 = 85;

/// Starts resizes, each into the target of the next seeded canvas.
pub struct Starter {
    connection: Connection,
    token: String,
    prefix: String,
    input: String,
    params: Box<dyn Fn(u32) -> Value>,
    started: u32,
    poll_url: String,
}

impl Starter {
    /// A starter for this many runs on one image. `params` returns the parameters of each, counted from 1.
    pub async fn new(
        stack: &Stack,
        user: &User,
        prefix: &str,
        runs: i32,
        image: (&str, Vec<u8>),
        params: impl Fn(u32) -> Value + 'static,
    ) -> Self {
        seed::targets(stack, user, prefix, runs).await;
        let asset = user.upload(image.0, image.1).await;
        Self {
            connection: Connection::to(&stack.authority(0)),
            token: user.token.clone(),
            prefix: prefix.to_owned(),
            input: text(&asset, "/handle").to_owned(),
            params: Box::new(params),
            started: 0,
            poll_url: String::new(),
        }
    }

    /// Waits for the end of the last job.
    async fn finish(&mut self) {
        finish(&mut self.connection, &self.poll_url, &self.token).await;
    }
}

/// Waits with a long poll until a job has succeeded.
pub async fn finish(connection: &mut Connection, poll_url: &str, token: &str) {
    let mut request = get(poll_url, Some(token));
    request.truncate(request.len() - 2);
    request.extend(b"prefer: wait=20\r\n\r\n");
    loop {
        let answer = connection.exchange(&request).await;
        let record: Value = serde_json::from_slice(answer.body).expect("a record");
        match text(&record, "/status") {
            "succeeded" => return,
            "failed" | "canceled" | "expired" => panic!("{record}"),
            _ => {}
        }
    }
}

impl Client for Starter {
    /// Sends one start and asserts that it is accepted.
    async fn step(&mut self) {
        self.started += 1;
        let canvas = format!("{}{}", self.prefix, self.started);
        let body = json!({
            "canvasId": canvas, "baseRevision": format!("{canvas}-seeded"), "idempotencyKey": format!("bench-{canvas}"),
            "targetNodeId": "target", "inputs": [self.input], "params": (self.params)(self.started),
        });
        let request = post(&format!("{API_ROOT}/actions/resize/runs"), &self.token, &body.to_string());
        let answer = self.connection.exchange(&request).await;
        assert_eq!(answer.status, 202, "{}", String::from_utf8_lossy(answer.body));
        let job: Value = serde_json::from_slice(answer.body).expect("a record");
        self.poll_url = text(&job, "/pollUrl").to_owned();
    }
}

/// Measures the latency of resizes, one after the other, on an idle service.
pub async fn latency(stack: &Stack) -> Vec<BenchRow> {
    let user = stack.user().await;
    let image = images::png(IMAGE.0, IMAGE.1);
    let runs = (SAMPLES + WARM_UP) as i32;
    // Each result differs, so that each is stored.
    let params = |number| json!({"width": FIRST_WIDTH + number});
    let mut starter = Starter::new(stack, &user, "latency-", runs, ("image/png", image.clone()), params).await;
    seed::analyze(stack).await;
    for _ in 0..WARM_UP {
        starter.step().await;
        starter.finish().await;
    }
    let before = Waits::new(stack).await;
    let mut totals = Vec::new();
    for _ in 0..SAMPLES {
        starter.step().await;
        let accepted = Instant::now();
        starter.finish().await;
        totals.push(accepted.elapsed().as_secs_f64() * 1e3);
    }
    let waits = Waits::new(stack).await.since(&before);
    let engine = median(&engine_times(&image));
    let [p50, p99] = [0.5, 0.99].map(|q| quantile(&totals, q) - engine);
    let [claim_p50, claim_p99] = [0.5, 0.99].map(|q| waits.quantile_ms(q));
    let note = format!(
        "{SAMPLES} resizes of {}x{} one after the other, from the client's 202 to the terminal record that a waiting poll \
         brings; the engine's own time is the median of the same resizes by raster in this process, {engine:.1} ms.",
        IMAGE.0, IMAGE.1
    );
    vec![
        BenchRow::reported("resize, accepted to terminal less engine, median", format!("{p50:.1} ms"))
            .ours(format!("{:.1} ms", p50 + engine))
            .peer(format!("{engine:.1} ms"))
            .goal(format!("<= {OVERHEAD_MS} ms"), p50 <= OVERHEAD_MS)
            .note(note),
        BenchRow::reported("resize, accepted to terminal less engine, p99", format!("{p99:.1} ms"))
            .ours(format!("{:.1} ms", p99 + engine))
            .peer(format!("{engine:.1} ms")),
        BenchRow::reported("commit to claim, idle (R2), median and p99", format!("{claim_p50:.1}, {claim_p99:.1} ms"))
            .goal(
                format!("<= {}, {} ms", CLAIM_MS.0, CLAIM_MS.1),
                claim_p50 <= CLAIM_MS.0 && claim_p99 <= CLAIM_MS.1,
            )
            .note("From canvas_task_wait_seconds of the same jobs, interpolated in its buckets; it counts from the start of the accepting transaction."),
    ]
}

/// The milliseconds that the same resizes take in this process.
fn engine_times(image: &[u8]) -> Vec<f64> {
    (1..=SAMPLES)
        .map(|number| {
            let began = Instant::now();
            resize_here(image, FIRST_WIDTH + number);
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect()
}

/// Runs the same engine functions as the Action `resize` with only a width.
pub fn resize_here(image: &[u8], width: u32) {
    let resize = Resize {
        bounds: Bounds::new(Some(width), None).expect("a width"),
        fit: "inside".parse().expect("a fit"),
        anchor: "center".parse().expect("an anchor"),
        background: "#00000000".parse().expect("a color"),
        enlarge: true,
    };
    raster::transform_resize(image, &resize, FormatChoice::Auto, QUALITY).expect("resizes");
}

/// The image-worker's histogram of the time from commit to claim: upper bounds in seconds and cumulative counts.
struct Waits(Vec<(f64, f64)>);

impl Waits {
    async fn new(stack: &Stack) -> Self {
        let (_, _, metrics) = stack.probes(Part::IMAGE_WORKER).fetch("/metrics").await;
        let buckets = metrics.lines().filter_map(|line| {
            let rest = line.strip_prefix("canvas_task_wait_seconds_bucket{")?;
            let bound = rest.split_once("le=\"")?.1.split_once('"')?.0;
            let count = rest.rsplit_once(' ')?.1.parse().ok()?;
            // "+Inf" parses as a number.
            Some((bound.parse().ok()?, count))
        });
        Self(buckets.collect())
    }

    fn since(self, before: &Self) -> Self {
        let counted = |bound: f64| before.0.iter().find(|(known, _)| *known == bound).map_or(0.0, |(_, count)| *count);
        Self(self.0.into_iter().map(|(bound, count)| (bound, count - counted(bound))).collect())
    }

    /// A quantile in milliseconds, interpolated within the bucket.
    fn quantile_ms(&self, q: f64) -> f64 {
        let rank = q * self.0.last().map_or(0.0, |(_, count)| *count);
        let mut below = (0.0, 0.0);
        for (bound, count) in &self.0 {
            if *count >= rank {
                let within = (rank - below.1) / (count - below.1).max(1.0);
                return (below.0 + (bound - below.0) * within) * 1e3;
            }
            below = (*bound, *count);
        }
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated_within_a_bucket() {
        let before = Waits(vec![(0.01, 5.0), (0.02, 5.0), (f64::INFINITY, 5.0)]);
        let waits = Waits(vec![(0.01, 15.0), (0.02, 25.0), (f64::INFINITY, 25.0)]).since(&before);
        assert_eq!((waits.quantile_ms(0.5), waits.quantile_ms(0.75)), (10.0, 15.0));
    }
}
