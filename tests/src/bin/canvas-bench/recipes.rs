//! The time that a Recipe run takes in addition to its images: the time between its steps.

use domain::Timestamp;
use e2e::api::{key, text};
use e2e::{Stack, User};
use serde_json::{Value, json};

use crate::table::{BenchRow, median, quantile};

const RUNS: usize = 20;
const WARM_UP: usize = 3;
/// The goal for milliseconds of a run of three steps in which none of its jobs was running: two starts and three ends of jobs,
/// each by way of the broker.
const BETWEEN_MS: f64 = 150.0;

/// Measures runs of a text and two images by the embedded runtime, each made from the previous output.
pub async fn measure(stack: &Stack) -> Vec<BenchRow> {
    let user = stack.user().await;
    stack.grant(&user.uid, 1000).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let output = |name: &str, kind: &str, from: &str| {
        let prompt = format!("A {name} of {{{{{from}}}}}");
        json!({"key": name, "label": name, "type": kind, "prompt": prompt, "inputKeys": [from]})
    };
    let workflow = json!({
        "name": "Three steps", "idempotencyKey": key(),
        "inputs": [{"key": "thing", "label": "Thing", "type": "text", "useAsDefault": false}],
        "outputs": [output("copy", "text", "thing"), output("hero", "image", "copy"), output("crop", "image", "hero")],
    });
    let made = user.send(&format!("/canvases/{canvas}/workflows"), &workflow).await.expect(201).json();
    let path = format!("/recipes/{}/runs", text(&made, "/workflow/id"));
    let mut between = Vec::new();
    for run in 0..WARM_UP + RUNS {
        let ended = run_once(&user, &path).await;
        if run >= WARM_UP {
            between.push(between_steps(&user, &ended).await);
        }
    }
    let (p50, p99) = (median(&between), quantile(&between, 0.99));
    vec![
        BenchRow::reported("Recipe run of 3 steps less its jobs, median", format!("{p50:.0} ms"))
            .ours(format!("p99 {p99:.0} ms"))
            .goal(format!("<= {BETWEEN_MS} ms"), p50 <= BETWEEN_MS)
            .note(format!(
                "{RUNS} runs of a text and two images, one after the other, on the embedded runtime; a run's own time less that \
                 of its two jobs from start to end."
            )),
    ]
}

/// Starts a run on a new canvas and returns its final record.
async fn run_once(user: &User, path: &str) -> Value {
    let canvas = user.make_canvas().await;
    let request = json!({
        "canvasId": canvas["id"], "baseRevision": canvas["revision"], "idempotencyKey": key(), "inputs": {"thing": "a kite"},
    });
    let run = user.send(path, &request).await.expect(202).json();
    let ended = user.finished(&run).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    ended
}

/// The milliseconds of a run in which none of its jobs was running.
async fn between_steps(user: &User, run: &Value) -> f64 {
    let mut rest = span(run, "/timing/createdAt", "/timing/completedAt");
    for output in run["outputs"].as_array().expect("outputs") {
        if let Some(job) = output["runHandle"].as_str() {
            let job = user.get(&format!("/runs/{job}")).await.ok();
            rest -= span(&job, "/timing/startedAt", "/timing/completedAt");
        }
    }
    rest
}

/// The milliseconds between two times of a record.
fn span(record: &Value, from: &str, to: &str) -> f64 {
    let at = |pointer: &str| -> Timestamp {
        let time = record.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}: {record}"));
        serde_json::from_value(time.clone()).expect("a time")
    };
    at(to).millis_since(at(from)) as f64
}
