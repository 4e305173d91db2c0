//! The latency of one image of a provider from acceptance to end, minus the provider's own time.

use std::time::Instant;

use e2e::api::text;
use e2e::{API_ROOT, Stack};
use serde_json::{Value, json};
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};

use crate::jobs::finish;
use crate::load::{Connection, post};
use crate::seed;
use crate::table::{BenchRow, median, quantile};

/// Measured jobs, one after the other.
const SAMPLES: usize = 100;
const WARM_UP: usize = 10;
/// The goal for milliseconds from acceptance to end, minus the provider's time: twice the goal of an Action, because a submit is
/// recorded before it is sent, which is an additional transaction, and the returned image is decoded.
const OVERHEAD_MS: f64 = 50.0;

/// Measures images of a provider that responds at once with the image itself. Pauses between polls, which the provider
/// determines, therefore do not count.
pub async fn measure(stack: &Stack) -> Vec<BenchRow> {
    let simulator = Simulator::start(Vendor::OpenAi).await;
    let user = stack.user().await;
    stack.connect_to(&user.uid, "openai", simulator.url(), SIMULATOR_KEY).await;
    let models = user.get("/models?provider=openai&capability=image.generate").await.ok();
    let model = text(&models, "/models/0/handle");
    let jobs = SAMPLES + WARM_UP;
    seed::targets(stack, &user, "overhead-", jobs as i32).await;
    seed::analyze(stack).await;
    let authority = simulator.url().strip_prefix("http://").expect("it speaks HTTP");
    let (mut service, mut provider) = (Connection::to(&stack.authority(0)), Connection::to(authority));
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
    assert_eq!(simulator.submits().len(), 2 * jobs, "each was submitted once");
    let (totals, own) = (&totals[WARM_UP..], median(&own[WARM_UP..]));
    let [p50, p99] = [0.5, 0.99].map(|q| quantile(totals, q) - own);
    let note = format!(
        "{SAMPLES} images of 1024x1024 one after the other by a simulator of OpenAI's without latency, from the client's 202 to \
         the terminal record that a waiting poll brings; the provider's own time is the median of the same requests sent by this \
         process in between, {own:.1} ms."
    );
    vec![
        BenchRow::reported("provider job, accepted to terminal less provider, median", format!("{p50:.1} ms"))
            .ours(format!("{:.1} ms", p50 + own))
            .peer(format!("{own:.1} ms"))
            .goal(format!("<= {OVERHEAD_MS} ms"), p50 <= OVERHEAD_MS)
            .note(note),
        BenchRow::reported("provider job, accepted to terminal less provider, p99", format!("{p99:.1} ms"))
            .ours(format!("{:.1} ms", p99 + own))
            .peer(format!("{own:.1} ms")),
    ]
}

/// The milliseconds that the last submit takes when this process repeats it.
async fn asked_here(provider: &mut Connection, simulator: &Simulator) -> f64 {
    let last = simulator.submits().pop().expect("there was a submit");
    let request = post(&last.path, SIMULATOR_KEY, &last.body.to_string());
    let began = Instant::now();
    let answer = provider.exchange(&request).await;
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(answer.body));
    began.elapsed().as_secs_f64() * 1e3
}
