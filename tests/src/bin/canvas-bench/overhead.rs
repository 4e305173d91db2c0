//! One picture by a provider from its acceptance to its end: how long it takes beside the provider.

use std::time::Instant;

use e2e::api::text;
use e2e::{API_ROOT, Stack};
use serde_json::{Value, json};
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};

use crate::jobs::finish;
use crate::load::{Connection, post};
use crate::seed;
use crate::table::{Row, median, quantile};

/// Jobs whose time is taken, one after the other.
const SAMPLES: usize = 100;
const WARM_UP: usize = 10;
/// Milliseconds from acceptance to end beside the provider: twice what an Action may take beside its engine (issue 3). A submit is
/// on record before it is sent, which is a transaction more, and what came back is decoded before it is believed.
const OVERHEAD_MS: f64 = 50.0;

/// Takes the time of pictures by a provider that answers at once with the picture itself, so that no pause between two polls, which
/// is the provider's wish, is counted.
pub async fn measure(stack: &Stack) -> Vec<Row> {
    let simulator = Simulator::start(Vendor::OpenAi).await;
    let user = stack.user().await;
    stack.connect_to(&user.uid, "openai", simulator.url(), SIMULATOR_KEY).await;
    let models = user.get("/models?provider=openai&capability=image.generate").await.ok();
    let model = text(&models, "/models/0/handle");
    let jobs = SAMPLES + WARM_UP;
    seed::targets(stack, &user, "overhead-", jobs as i32).await;
    seed::analyze(stack).await;
    let authority = simulator.url().strip_prefix("http://").expect("it speaks HTTP");
    let (mut service, mut provider) = (Connection::open(&stack.authority(0)).await, Connection::open(authority).await);
    let (mut totals, mut own) = (Vec::new(), Vec::new());
    for number in 1..=jobs {
        let canvas = format!("overhead-{number}");
        let request = json!({
            "canvasId": canvas, "baseRevision": format!("{canvas}-seeded"), "idempotencyKey": format!("bench-{canvas}"),
            "targetNodeId": "target", "prompt": format!("kite {number}"), "model": model,
        });
        let request = post(&format!("{API_ROOT}/images/generate"), &user.token, &request.to_string());
        let answer = service.exchange(&request).await;
        let accepted = Instant::now();
        assert_eq!(answer.status, 202, "{}", String::from_utf8_lossy(answer.body));
        let job: Value = serde_json::from_slice(answer.body).expect("a record");
        finish(&mut service, text(&job, "/pollUrl"), &user.token).await;
        totals.push(accepted.elapsed().as_secs_f64() * 1e3);
        own.push(asked_here(&mut provider, &simulator).await);
    }
    assert_eq!(simulator.submits().len(), 2 * jobs, "each was asked for once");
    let (totals, own) = (&totals[WARM_UP..], median(&own[WARM_UP..]));
    let [p50, p99] = [0.5, 0.99].map(|q| quantile(totals, q) - own);
    let note = format!(
        "{SAMPLES} pictures of 1024x1024 one after the other by a simulator of OpenAI's without latency, from the client's 202 to \
         the terminal record that a waiting poll brings; the provider's own time is the median of the same requests sent by this \
         process in between, {own:.1} ms."
    );
    vec![
        Row::told("provider job, accepted to terminal less provider, median", format!("{p50:.1} ms"))
            .ours(format!("{:.1} ms", p50 + own))
            .peer(format!("{own:.1} ms"))
            .goal(format!("<= {OVERHEAD_MS} ms"), p50 <= OVERHEAD_MS)
            .note(note),
        Row::told("provider job, accepted to terminal less provider, p99", format!("{p99:.1} ms"))
            .ours(format!("{:.1} ms", p99 + own))
            .peer(format!("{own:.1} ms")),
    ]
}

/// Milliseconds of the last submit, sent by this process.
async fn asked_here(provider: &mut Connection, simulator: &Simulator) -> f64 {
    let last = simulator.submits().pop().expect("it was asked");
    let request = post(&last.path, SIMULATOR_KEY, &last.body.to_string());
    let began = Instant::now();
    let answer = provider.exchange(&request).await;
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(answer.body));
    began.elapsed().as_secs_f64() * 1e3
}
