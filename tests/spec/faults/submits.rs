//! Work that costs money at a provider, and workers that die over it (reliability.md 2, "Provider submits"; 3, R4 and R6).

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::api::{key, text};
use e2e::{Chance, Part, SETTLING, Stack, User, checker};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};
use uuid::Uuid;

use super::races::{Racing, judge, race};
use super::scale::{R6_PROVIDER, measured};
use super::{mortal, start};

/// Where a worker comes by with an output that a provider makes, in this order.
const FAILPOINTS: [&str; 5] =
    ["generation.submitting", "generation.accepted", "generation.submitted", "generation.fetched", "generation.stored"];

/// Both drive providers.
const WORKERS: [Part; 2] = [Part::IMAGE_WORKER, Part::VIDEO_WORKER];

/// Cancels against completions that go on at once.
const RACES_AT_ONCE: usize = 6;
/// The first time that a completion is ahead of its cancel: a run is first looked at after a second, as its provider advises.
const LEAD: Duration = Duration::from_millis(1200);

/// How a job ends whose worker died at a failpoint, and how often its provider began; nothing where no job comes by. None of
/// the three honours an idempotency key. What may have been begun is found again at one of them alone, and given up at the
/// others; one answers with the result itself, so that there is no run to follow.
fn ending(vendor: Vendor, failpoint: &str) -> Option<(&'static str, usize)> {
    match (vendor, failpoint) {
        (_, "generation.submitting") => Some(("failed", 0)),
        (Vendor::Replicate, "generation.accepted") => Some(("succeeded", 1)),
        (_, "generation.accepted") => Some(("failed", 1)),
        (Vendor::Compatible, "generation.submitted") => None,
        (Vendor::Compatible, "generation.fetched") => Some(("failed", 1)),
        _ => Some(("succeeded", 1)),
    }
}

/// Models of theirs, for pictures and for videos.
fn models(vendor: Vendor) -> (&'static str, Option<&'static str>) {
    match vendor {
        Vendor::Fal => ("fal-ai/flux/schnell", Some("fal-ai/veo3.1")),
        Vendor::Replicate => ("black-forest-labs/flux-schnell", Some("google/veo-3")),
        _ => ("sd-cpp-local", None),
    }
}

/// An account with credit and a provider of its own.
struct Payer {
    vendor: Vendor,
    simulator: Simulator,
    user: User,
    /// What a request says of the saved connection; nothing of the operator's own server.
    connection: Value,
    canvas: String,
}

impl Payer {
    /// With a saved connection, which costs no credit.
    async fn connected(stack: &Stack, vendor: Vendor, provider: &str) -> Self {
        let mut payer = Self::of(stack, Simulator::start(vendor).await, vendor).await;
        let url = payer.simulator.url();
        let connection = stack.connect_to(&payer.user.uid, provider, url, SIMULATOR_KEY).await;
        payer.connection = json!({"connectionId": connection});
        payer
    }

    /// With the server that the stack's operator has, which costs credit.
    async fn of(stack: &Stack, simulator: Simulator, vendor: Vendor) -> Self {
        let user = stack.user().await;
        stack.grant(&user.uid, 100).await;
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        Self { vendor, simulator, user, connection: json!({}), canvas }
    }

    /// Starts a picture in a new node, for the canvas as it is then; `more` is merged into the request.
    async fn picture(&self, canvas: &str, more: Value) -> Value {
        let target = self.user.slot(canvas).await;
        let now = self.user.canvas(canvas).await;
        let target = json!({"canvasId": canvas, "baseRevision": now["revision"], "targetNodeId": target});
        self.start("/images/generate", models(self.vendor).0, [target, more]).await
    }

    async fn video(&self, model: &str) -> Value {
        self.start("/videos/generate", model, [json!({}), json!({})]).await
    }

    async fn start(&self, path: &str, model: &str, more: [Value; 2]) -> Value {
        let mut request = json!({"model": model, "prompt": "a kite", "idempotencyKey": key()});
        let fields = request.as_object_mut().expect("an object");
        for more in more.iter().chain([&self.connection]) {
            fields.extend(more.as_object().expect("an object").clone());
        }
        self.user.send(path, &request).await.expect(202).json()
    }

    /// Judges the end of a job of which the provider saw at most one submit.
    async fn check(&self, stack: &Stack, job: &Value, failpoint: &str, (status, submits): (&str, usize)) {
        let what = format!("{:?}, {} at {failpoint}", self.vendor, text(job, "/kind"));
        let end = self.user.finished(job).await;
        assert_eq!(end["status"], status, "{what}: {end}");
        let order = format!("{}-0", text(job, "/rawId"));
        let seen = self.simulator.submits();
        let seen = seen.iter().filter(|submit| submit.idempotency_key.as_deref() == Some(&*order)).count();
        assert_eq!((seen, self.simulator.accepted(&order)), (submits, submits), "{what}");
        let (orphans, told): (i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM job_outputs WHERE job_id = $1 AND orphan),
                    (SELECT coalesce(sum(possible_orphans), 0)::bigint FROM ledger WHERE job_id = $1)",
        )
        .bind(text(job, "/rawId").parse::<Uuid>().expect("a uuid"))
        .fetch_one(stack.pool())
        .await
        .expect("reads the books");
        let is_charged = job["creditCost"] != 0;
        assert_eq!(is_charged, self.connection == json!({}), "{what}: a saved connection costs no credit");
        if status == "failed" {
            let failure = &end["failure"];
            // A video has one code for every failure, and tells which in words (specification, VideoJob).
            let told_why = match text(job, "/kind") {
                "video" => text(failure, "/message").starts_with("provider_timeout: "),
                _ => failure["code"] == "provider_timeout",
            };
            assert!(told_why && failure["retryable"] == true && end["creditCost"] == 0, "{what}: {end}");
            assert_eq!((orphans, told), (1, i64::from(is_charged)), "{what}: what may have been made is on record");
        } else {
            assert_eq!((&end["creditCost"], orphans, told), (&job["creditCost"], 0, 0), "{what}: paid once");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_provider_begins_twice_wherever_a_worker_dies() {
    let own = Simulator::start(Vendor::Compatible).await;
    let stack = start(mortal().video_workers(1).env("CANVAS_MANAGED_URL", own.url())).await;
    let payers = [
        Payer::of(&stack, own, Vendor::Compatible).await,
        Payer::connected(&stack, Vendor::Fal, "fal").await,
        Payer::connected(&stack, Vendor::Replicate, "replicate").await,
    ];
    for failpoint in FAILPOINTS {
        let (hold, held) = stack.make_hold(failpoint);
        let env = [("CANVAS_FAILPOINTS", held.as_str())];
        join_all(WORKERS.map(|part| stack.restart_with(part, &env))).await;
        let mut jobs = Vec::new();
        for payer in &payers {
            let Some(ending) = ending(payer.vendor, failpoint) else { continue };
            jobs.push((payer, payer.picture(&payer.canvas, json!({})).await, ending));
            if let Some(model) = models(payer.vendor).1 {
                jobs.push((payer, payer.video(model).await, ending));
            }
        }
        hold.reached_by(jobs.len()).await;
        WORKERS.iter().for_each(|part| stack.kill(*part));
        hold.release();
        join_all(WORKERS.map(|part| stack.restart(part))).await;
        let ends = jobs.iter().map(|(payer, job, ending)| payer.check(&stack, job, failpoint, *ending));
        join_all(ends).await;
    }
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_against_a_provider_leaves_one_end_one_settlement_and_one_event() {
    let (chance, stack) = (Chance::new(), start(mortal().image_workers(2)).await);
    let (payer, receiver) = (Payer::connected(&stack, Vendor::Fal, "fal").await, stack.take_receiver());
    let racers = (0..RACES_AT_ONCE).map(|racer| {
        let (stack, payer, receiver, chance) = (&stack, &payer, &receiver, chance.fork(racer as u64));
        async move {
            let canvas = text(&payer.user.make_canvas().await, "/id").to_owned();
            let racing =
                Racing { stack, receiver, user: &payer.user, racer, rounds: R6_PROVIDER.now() / RACES_AT_ONCE };
            let start = async |webhook: Value| payer.picture(&canvas, json!({"webhook": webhook})).await;
            race(&racing, chance, LEAD, start).await
        }
    });
    let ends = join_all(racers).await.concat();
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0], "seed {}", chance.seed());
    measured("R6", format_args!("a provider's runs: {}", judge(&ends, &receiver, &chance)));
    let submits = payer.simulator.submits();
    let begun: BTreeSet<_> = submits.iter().map(|submit| &submit.idempotency_key).collect();
    assert_eq!(begun.len(), submits.len(), "no output is submitted twice");
}
