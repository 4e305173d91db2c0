//! Traces exported to the operator's collector (docs/reference/configuration.md#traces).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use e2e::api::text;
use e2e::collector::{Collector, Exported, SpanKind};
use e2e::{Builder, Kind, PATIENCE, Part, Stack, User, images};
use serde_json::{Value, json};
use testkit::{Receiver, free_ports, wait_for};
use tokio::net::TcpListener;

const SECRET: &str = "a secret of the caller's own, long enough";
/// The id of the caller's span.
const CALLER: &str = "00f067aa0ba902b7";
const PARTS: [Part; 3] = [Part::GATEWAY, Part::IMAGE_WORKER, Part::DISPATCHER];

/// A stack of three processes that export to `endpoint` at short intervals.
fn traced(endpoint: &str) -> Builder {
    Stack::builder()
        .image_workers(1)
        .dispatchers(1)
        .receivers(1)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_BSP_SCHEDULE_DELAY", 100)
}

/// Starts a resize with a webhook to `receiver` as part of `trace`. `flags` are the flags of the trace context.
async fn resize(user: &User, receiver: &Receiver, trace: &str, flags: &str) -> Value {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let asset = user.upload("image/png", images::png(9, 9)).await;
    let mut request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    request["webhook"] = json!({"url": receiver.url("/"), "secret": SECRET});
    let traceparent = format!("00-{trace}-{CALLER}-{flags}");
    user.send("/actions/resize/runs", &request).header("traceparent", &traceparent).await.expect(202).json()
}

fn new_trace() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// The only span of this service, kind and name.
#[track_caller]
fn the<'a>(spans: &'a [Exported], service: &str, kind: SpanKind, name: &str) -> &'a Exported {
    let wanted = |span: &&Exported| span.service == service && span.kind == kind && span.name == name;
    let found: Vec<&Exported> = spans.iter().filter(wanted).collect();
    assert_eq!(found.len(), 1, "{service} {kind:?} {name:?}: {spans:#?}");
    found[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_its_work_and_its_webhook_are_one_trace() {
    let collector = Collector::start().await;
    let stack = traced(&collector.endpoint()).env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b").start().await;
    let (user, receiver, trace) = (stack.user().await, stack.take_receiver(), new_trace());
    let job = resize(&user, &receiver, &trace, "01").await;
    user.until(&job, |record| record["webhook"]["status"] == "delivered").await;
    let requests = receiver.wait_for(1, PATIENCE).await;

    // The request, the task, the delivery and the call to the receiver. There can also be a rendition of the result, which is
    // another task of the image-worker.
    let of = |span: &Exported, key: &str| span.attributes.get(key).cloned().unwrap_or_default();
    let is_work = |span: &Exported| of(span, "task.kind") == "action";
    let is_expected = |span: &Exported| is_work(span) || span.kind == SpanKind::Server || span.name == "task webhook";
    let spans = wait_for("the spans of the three processes", PATIENCE, async || {
        let spans = collector.trace(&trace);
        let count = |is_wanted: &dyn Fn(&Exported) -> bool| spans.iter().filter(|span| is_wanted(span)).count();
        // Each span is exported some time after its end.
        (count(&is_expected) == 3).then_some(spans)
    })
    .await;
    let request = the(&spans, "canvas-gateway", SpanKind::Server, "POST /api/canvas-agent/v1/actions/{actionKey}/runs");
    let work = spans.iter().find(|span| is_work(span)).expect("exists");
    let found = (work.service.as_str(), &work.kind, work.name.as_str());
    assert_eq!(found, ("canvas-image-worker", &SpanKind::Consumer, "task image"));
    let delivery = the(&spans, "canvas-webhook-dispatcher", SpanKind::Consumer, "task webhook");
    let call = the(&spans, "canvas-webhook-dispatcher", SpanKind::Client, "deliver");
    assert_eq!(request.parent, CALLER);
    assert_eq!(work.parent, request.id);
    assert_eq!(delivery.parent, work.id);
    assert_eq!(call.parent, delivery.id);
    let known: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).chain([CALLER]).collect();
    assert_eq!(known.len(), spans.len() + 1, "ids are unique: {spans:#?}");
    for span in &spans {
        assert!(known.contains(span.parent.as_str()), "the parent was exported as well: {span:#?} of {spans:#?}");
        assert!(!span.failed, "{span:#?}");
    }

    assert_eq!(of(request, "http.request.method"), "POST");
    assert_eq!(of(request, "http.route"), "/api/canvas-agent/v1/actions/{actionKey}/runs");
    assert_eq!(of(request, "http.response.status_code"), "202");
    assert_eq!(of(request, "account"), user.uid);
    assert_eq!((of(work, "task.kind"), of(work, "result")), ("action".to_owned(), "done".to_owned()));
    assert!(text(&job, "/id").ends_with(&of(work, "task.id")), "{work:#?} is of {job}");
    assert!(work.nanoseconds > 0);
    assert_eq!(of(call, "http.response.status_code"), "200");
    assert_eq!(of(call, "delivery.id"), text(&job, "/webhook/id"));

    // The webhook's header and the log lines have the same ids.
    assert_eq!(requests[0].header("traceparent"), Ok(&*format!("00-{trace}-{}-01", call.id)));
    for (part, span) in [(Part::GATEWAY, request), (Part::IMAGE_WORKER, work), (Part::DISPATCHER, delivery)] {
        let line = format!(r#""trace_id":"{trace}","span_id":"{}""#, span.id);
        assert!(stack.log(part).contains(&line), "{part} logs {line}");
    }
    for (headers, _) in collector.requests() {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert_eq!(headers["x-key"], "a b");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_secrets_nor_what_the_caller_did_not_sample_are_exported() {
    let collector = Collector::start().await;
    let stack = traced(&collector.endpoint()).env("OTEL_SERVICE_NAME", "ours").start().await;
    let (user, receiver, unsampled) = (stack.user().await, stack.take_receiver(), new_trace());
    let job = resize(&user, &receiver, &unsampled, "00").await;
    user.until(&job, |record| record["webhook"]["status"] == "delivered").await;
    let asset = user.upload("image/png", images::png(9, 9)).await;
    let preview = text(&asset, "/previewUrl");
    stack.anonymous().get(preview).await.expect(200);
    user.get("/canvases?limit=7&marked=query").await;
    for part in PARTS {
        assert_eq!(stack.stop(part).await.code(), Some(0), "{part}");
    }
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.service == "ours"));
    assert!(spans.iter().any(|span| span.name == "GET /api/canvas-agent/v1/assets/preview"), "{spans:#?}");
    assert!(spans.iter().all(|span| span.trace != unsampled), "{spans:#?}");
    let capability = preview.split_once("token=").expect("a capability").1;
    let exported: Vec<u8> = collector.requests().into_iter().flat_map(|(_, body)| body).collect();
    for secret in [capability, &user.token, SECRET, "marked=query"] {
        assert!(!exported.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret} is exported");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_spans_are_exported_when_a_process_stops() {
    let collector = Collector::start().await;
    // Longer than the test, so that nothing is exported before shutdown.
    let stack = Stack::builder()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("{}/", collector.endpoint()))
        .env("OTEL_BSP_SCHEDULE_DELAY", 600_000)
        .start()
        .await;
    let (user, trace) = (stack.user().await, new_trace());
    user.get("/canvases").header("traceparent", &format!("00-{trace}-{CALLER}-01")).await.ok();
    assert_eq!(stack.stop(Part::GATEWAY).await.code(), Some(0));
    let spans = collector.trace(&trace);
    assert_eq!(the(&spans, "canvas-gateway", SpanKind::Server, "GET /api/canvas-agent/v1/canvases").parent, CALLER);
}

/// Work succeeds and every process stops in time while spans for `endpoint` are lost, counted and logged.
async fn works_without_a_collector(endpoint: &str) {
    let stack = traced(endpoint).start().await;
    let (user, receiver, trace) = (stack.user().await, stack.take_receiver(), new_trace());
    let job = resize(&user, &receiver, &trace, "01").await;
    assert_eq!(user.finished(&job).await["status"], "succeeded");
    receiver.wait_for(1, PATIENCE).await;
    for part in PARTS {
        wait_for(&format!("{part} to count lost spans"), PATIENCE, async || {
            (stack.metric(part, "canvas_trace_spans_total").await > 0.0).then_some(())
        })
        .await;
        let warning = "spans were lost on their way to the collector";
        wait_for("the warning", PATIENCE, async || stack.log(part).contains(warning).then_some(())).await;
        let began = Instant::now();
        assert_eq!(stack.stop(part).await.code(), Some(0), "{part}");
        assert!(began.elapsed() < Duration::from_secs(10), "{part} stops after {:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_a_collector_that_is_down() {
    works_without_a_collector(&format!("http://127.0.0.1:{}", free_ports(1)[0])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_a_collector_that_never_answers() {
    // The listener accepts connections and never reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("binds a free port");
    works_without_a_collector(&format!("http://{}", silent.local_addr().expect("has an address"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_made_without_a_collector() {
    let stack = Stack::builder().image_workers(1).video_workers(1).start().await;
    stack.user().await.get("/canvases").await.ok();
    for part in [Part::GATEWAY, Part::IMAGE_WORKER, Part(Kind::VideoWorker, 0)] {
        let (_, _, metrics) = stack.probes(part).fetch("/metrics").await;
        assert!(!metrics.contains("canvas_trace_spans_total"), "{part}: {metrics}");
    }
}
