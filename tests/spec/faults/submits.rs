//! Paid work at a provider whose workers die (docs/reliability.md#provider-submits, docs/reliability.md#r4-fault-matrix and
//! docs/reliability.md#r6-cancel-against-completion).

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use domain::model::ProviderKind;
use e2e::api::{key, text};
use e2e::{Chance, Part, SETTLING, Stack, User, checker, images};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};
use uuid::Uuid;

use super::races::{Racing, judge, race};
use super::scale::{R4_SUBMITS, R6_PROVIDER, is_full, measured};
use super::{mortal, start};

/// The failpoints of an output that a provider makes, in order.
const FAILPOINTS: [&str; 5] =
    ["generation.submitting", "generation.accepted", "generation.submitted", "generation.fetched", "generation.stored"];

/// The decisive failpoint: the provider has started, and the worker has not recorded it.
const DECISIVE: &str = "generation.accepted";

/// Both kinds of workers drive providers.
const WORKERS: [Part; 2] = [Part::IMAGE_WORKER, Part::VIDEO_WORKER];

/// Concurrent races between a cancel and a completion.
const RACES_AT_ONCE: usize = 6;
/// The initial delay before a cancel. The first poll of a run happens after a second, as the provider advises.
const LEAD: Duration = Duration::from_millis(1200);

/// How a provider's protocol allows a worker to handle a submit with an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It cannot: the response is the result itself, and there is no run to poll.
    AtOnce,
    /// It cannot until the response with the run's id has arrived. Then it polls the run.
    Queued,
    /// It finds the run again without the response.
    Found,
    /// It submits again under the same key. The provider rejects the second submit and does not return the first one's id.
    Refused,
}

/// A kind of provider, its models, and the [`Way`] of each.
#[derive(Clone, Copy)]
struct Kind {
    vendor: Vendor,
    /// The name in connections. `None` for the operator's own server.
    provider: Option<&'static str>,
    image: (&'static str, Way),
    video: Option<(&'static str, Way)>,
}

impl Kind {
    const fn saved(vendor: Vendor, image: (&'static str, Way)) -> Self {
        Self { vendor, provider: Some(vendor.name()), image, video: None }
    }

    const fn own(vendor: Vendor, image: (&'static str, Way)) -> Self {
        Self { vendor, provider: None, image, video: None }
    }

    const fn making_video(self, model: &'static str, way: Way) -> Self {
        Self { video: Some((model, way)), ..self }
    }

    /// Returns `true` if its workers die at this failpoint. At small size, one kind for each way dies at every failpoint and
    /// the others only
    /// at the decisive one. At full size, every kind dies at every failpoint.
    fn dies_at(&self, failpoint: &str) -> bool {
        let is_example = matches!(self.vendor, Vendor::Compatible | Vendor::Comfy | Vendor::Fal | Vendor::Replicate);
        is_full() || failpoint == DECISIVE || is_example
    }
}

const FAL: Kind =
    Kind::saved(Vendor::Fal, ("fal-ai/flux/schnell", Way::Queued)).making_video("fal-ai/veo3.1", Way::Queued);

/// The kinds that an account can connect to.
const SAVED: [Kind; 7] = [
    Kind::saved(Vendor::OpenAi, ("gpt-image-2", Way::AtOnce)),
    Kind::saved(Vendor::Google, ("gemini-3.1-flash-lite-image", Way::AtOnce))
        .making_video("gemini-omni-1.1-flash", Way::Queued),
    Kind::saved(Vendor::Replicate, ("black-forest-labs/flux-schnell", Way::Found))
        .making_video("google/veo-3", Way::Found),
    FAL,
    Kind::saved(Vendor::Stability, ("stable-image-core", Way::AtOnce)),
    Kind::saved(Vendor::BlackForestLabs, ("flux-2-pro", Way::Queued)).making_video("flux-3-video", Way::Queued),
    Kind::saved(Vendor::Runway, ("gen4_image", Way::Queued)).making_video("veo3.1", Way::Queued),
];

/// The servers of an operator. A stack has one of them.
const COMPATIBLE: Kind = Kind::own(Vendor::Compatible, ("sd-cpp-local", Way::AtOnce));
const COMFY: Kind = Kind::own(Vendor::Comfy, ("sdxl", Way::Refused)).making_video("wan2.2-5b", Way::Refused);

/// Long enough that a lease does not expire on a busy machine while a worker is held with more than a dozen jobs.
const LEASE_SECONDS: u64 = 5;
/// How often the simulators are told to finish their runs: more often than workers poll.
const MOMENT: Duration = Duration::from_millis(100);

/// The final status of a job whose worker died at a failpoint, and how often the provider started it. `None` if no job of this
/// way reaches the failpoint.
fn ending(way: Way, failpoint: &str) -> Option<(&'static str, usize)> {
    match (way, failpoint) {
        (Way::Refused, "generation.submitting") => Some(("succeeded", 1)),
        (_, "generation.submitting") => Some(("failed", 0)),
        (Way::Found, DECISIVE) => Some(("succeeded", 1)),
        (_, DECISIVE) => Some(("failed", 1)),
        (Way::AtOnce, "generation.submitted") => None,
        (Way::AtOnce, "generation.fetched") => Some(("failed", 1)),
        _ => Some(("succeeded", 1)),
    }
}

/// An account with credit and a provider of its own.
struct Payer {
    kind: Kind,
    simulator: Simulator,
    user: User,
    /// The member of a request that names the saved connection. Empty for the operator's own server.
    connection: Value,
    canvas: String,
}

impl Payer {
    /// Uses a saved connection, which costs no credit.
    async fn connected(stack: &Stack, kind: Kind) -> Self {
        let mut payer = Self::new(stack, Simulator::start(kind.vendor).await, kind).await;
        let (provider, url) = (kind.provider.expect("a kind with saved connections"), payer.simulator.url());
        let connection = stack.connect_to(&payer.user.uid, provider, url, SIMULATOR_KEY).await;
        payer.connection = json!({"connectionId": connection});
        payer
    }

    /// Uses the server of the stack's operator, which costs credit.
    async fn new(stack: &Stack, simulator: Simulator, kind: Kind) -> Self {
        let user = stack.user().await;
        stack.grant(&user.uid, 10_000).await;
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        Self { kind, simulator, user, connection: json!({}), canvas }
    }

    /// Starts an image in a new node for the current revision. `more` is merged into the request.
    async fn image(&self, canvas: &str, more: Value) -> Value {
        let target = self.user.slot(canvas).await;
        let now = self.user.canvas(canvas).await;
        let target = json!({"canvasId": canvas, "baseRevision": now["revision"], "targetNodeId": target});
        self.start("/images/generate", self.kind.image.0, [target, more]).await
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

    /// Checks the end of a job, and that the provider received exactly this number of submits.
    async fn check(&self, stack: &Stack, job: &Value, failpoint: &str, (status, submits): (&str, usize)) {
        let what = format!("{:?}, {} at {failpoint}", self.kind.vendor, text(job, "/kind"));
        let end = self.user.finished(job).await;
        assert_eq!(end["status"], status, "{what}: {end}");
        let order = format!("{}-0", text(job, "/rawId"));
        let seen = self.simulator.submits();
        let seen = seen.iter().filter(|submit| submit.idempotency_key.as_deref() == Some(&*order)).count();
        assert_eq!((seen, self.simulator.accepted(&order)), (submits, submits), "{what}");
        let (orphans, possible_orphans): (i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM job_outputs WHERE job_id = $1 AND orphan),
                    (SELECT coalesce(sum(possible_orphans), 0)::bigint FROM ledger WHERE job_id = $1)",
        )
        .bind(text(job, "/rawId").parse::<Uuid>().expect("a uuid"))
        .fetch_one(stack.pool())
        .await
        .expect("reads orphans and ledger");
        let is_charged = job["creditCost"] != 0;
        assert_eq!(is_charged, self.connection == json!({}), "{what}: a saved connection costs no credit");
        if status == "failed" {
            let failure = &end["failure"];
            // A video has one failure code for every cause; the message names the cause
            // (docs/reference/videos.md#video-failures).
            let names_cause = match text(job, "/kind") {
                "video" => text(failure, "/message").starts_with("provider_timeout: "),
                _ => failure["code"] == "provider_timeout",
            };
            assert!(names_cause && failure["retryable"] == true && end["creditCost"] == 0, "{what}: {end}");
            assert_eq!(
                (orphans, possible_orphans),
                (1, i64::from(is_charged)),
                "{what}: a possible output is recorded"
            );
        } else {
            assert_eq!(
                (&end["creditCost"], orphans, possible_orphans),
                (&job["creditCost"], 0, 0),
                "{what}: paid once"
            );
        }
    }
}

/// Starts a job for each payer's provider and kills the workers when all jobs are at a failpoint. Every job must end as its way
/// requires, whichever worker resumes it.
async fn die_at(stack: &Stack, payers: &[Payer], failpoint: &str) {
    let (hold, held) = stack.make_hold(failpoint);
    let env = [("CANVAS_FAILPOINTS", held.as_str())];
    join_all(WORKERS.map(|part| stack.restart_with(part, &env))).await;
    let mut jobs = Vec::new();
    for payer in payers.iter().filter(|payer| payer.kind.dies_at(failpoint)) {
        if let Some(ending) = ending(payer.kind.image.1, failpoint) {
            jobs.push((payer, payer.image(&payer.canvas, json!({})).await, ending));
        }
        if let Some((model, way)) = payer.kind.video
            && let Some(ending) = ending(way, failpoint)
        {
            jobs.push((payer, payer.video(model).await, ending));
        }
    }
    hold.reached_by(jobs.len()).await;
    WORKERS.iter().for_each(|part| stack.kill(*part));
    hold.release();
    join_all(WORKERS.map(|part| stack.restart(part))).await;
    let ends = jobs.iter().map(|(payer, job, ending)| payer.check(stack, job, failpoint, *ending));
    join_all(ends).await;
}

/// Finishes every run that a provider has started, so that the first poll finds it complete. This only saves time.
async fn hasten(payers: &[Payer]) -> Infallible {
    loop {
        payers.iter().for_each(|payer| payer.simulator.finish());
        tokio::time::sleep(MOMENT).await;
    }
}

/// Kills workers that use the operator's own server and the servers that accounts connect to.
async fn survive(own: Kind, protocol: &str, saved: &[Kind]) {
    let server = Simulator::start(own.vendor).await;
    let builder = mortal().video_workers(1).env("CANVAS_LEASE_SECONDS", LEASE_SECONDS);
    let builder = builder.env("CANVAS_MANAGED_URL", server.url()).env("CANVAS_MANAGED_PROTOCOL", protocol);
    let stack = start(builder).await;
    let mut payers = vec![Payer::new(&stack, server, own).await];
    for kind in saved {
        payers.push(Payer::connected(&stack, *kind).await);
    }
    let strikes = R4_SUBMITS.now();
    let deaths = async {
        for _ in 0..strikes {
            for failpoint in FAILPOINTS {
                die_at(&stack, &payers, failpoint).await;
            }
        }
    };
    tokio::select! {
        () = deaths => {}
        never = hasten(&payers) => match never {},
    }
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
    let submits: usize = payers.iter().map(|payer| payer.simulator.submits().len()).sum();
    let (kinds, places) = (payers.len(), FAILPOINTS.len());
    measured(
        "R4",
        format_args!("{kinds} kinds of provider, {places} places x {strikes}: {submits} submits, none twice"),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_provider_begins_twice_wherever_a_worker_dies() {
    assert!(ProviderKind::third_parties().map(ProviderKind::as_str).eq(SAVED.iter().filter_map(|kind| kind.provider)));
    survive(COMPATIBLE, "openai", &SAVED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_a_second_submit_is_submitted_to_again_and_begins_once() {
    survive(COMFY, "comfy", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_masked_edit_is_paid_once_and_ends_with_the_same_image_wherever_a_worker_dies() {
    let server = Simulator::start(Vendor::Comfy).await;
    let builder = mortal().env("CANVAS_LEASE_SECONDS", LEASE_SECONDS);
    let builder = builder.env("CANVAS_MANAGED_URL", server.url()).env("CANVAS_MANAGED_PROTOCOL", "comfy");
    let stack = start(builder).await;
    let payer = Payer::new(&stack, server, COMFY).await;
    let upload = async |file: Vec<u8>| text(&payer.user.upload("image/png", file).await, "/handle").to_owned();
    let (source, mask) = (upload(images::png(96, 64)).await, upload(images::transparent_png(96, 64)).await);
    let edits = async {
        let mut files = Vec::new();
        for failpoint in [None, Some("generation.fetched"), Some("generation.stored")] {
            let holding = failpoint.map(|failpoint| stack.make_hold(failpoint));
            if let Some((_, held)) = &holding {
                stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", held.as_str())]).await;
            }
            let target = payer.user.slot(&payer.canvas).await;
            let now = payer.user.canvas(&payer.canvas).await;
            let into = json!({"canvasId": payer.canvas, "baseRevision": now["revision"], "targetNodeId": target});
            let masked = json!({"source": source, "mask": mask});
            let job = payer.start("/images/edit", "sdxl-inpaint", [into, masked]).await;
            if let Some((hold, _)) = holding {
                hold.reached_by(1).await;
                stack.kill(Part::IMAGE_WORKER);
                hold.release();
                stack.restart(Part::IMAGE_WORKER).await;
            }
            payer.check(&stack, &job, failpoint.unwrap_or("no death"), ("succeeded", 1)).await;
            let end = payer.user.finished(&job).await;
            assert_eq!(end["images"][0]["masked"], true, "{end}");
            let path = format!("/assets/{}/content", text(&end, "/images/0/assetId"));
            files.push(payer.user.get(&path).await.expect(200).body);
        }
        files
    };
    let files = tokio::select! {
        files = edits => files,
        never = hasten(std::slice::from_ref(&payer)) => match never {},
    };
    assert!(files.iter().all(|file| *file == files[0]), "the same file each time");
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_against_a_provider_leaves_one_end_one_settlement_and_one_event() {
    let (chance, stack) = (Chance::new(), start(mortal().image_workers(2)).await);
    let (payer, receiver) = (Payer::connected(&stack, FAL).await, stack.take_receiver());
    let racers = (0..RACES_AT_ONCE).map(|racer| {
        let (stack, payer, receiver, chance) = (&stack, &payer, &receiver, chance.fork(racer as u64));
        async move {
            let canvas = text(&payer.user.make_canvas().await, "/id").to_owned();
            let racing =
                Racing { stack, receiver, user: &payer.user, racer, rounds: R6_PROVIDER.now() / RACES_AT_ONCE };
            let start = async |webhook: Value| payer.image(&canvas, json!({"webhook": webhook})).await;
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
