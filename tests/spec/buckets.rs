//! The object store as a bucket (docs/reference/assets.md#stored-bytes): everything that is stored is written to, served from
//! and removed from the bucket. Also what happens to work while the bucket's server fails.

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::api::{key, text};
use e2e::{Builder, Chance, Load, PATIENCE, Part, Plan, SETTLING, Stack, User, checker, images};
use serde_json::{Value, json};
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};
use testkit::{Answer, Proxy, S3, wait_for};
use uuid::Uuid;

/// More than two parts of a multipart upload.
const IN_PARTS: usize = 20 << 20;

/// The keys that a record refers to.
const REFERRED: &str = "SELECT blob_key FROM assets UNION SELECT blob_key FROM renditions WHERE blob_key IS NOT NULL
                        UNION SELECT original_blob FROM assets WHERE original_blob IS NOT NULL
                        UNION SELECT poster_key FROM assets WHERE poster_key IS NOT NULL
                        UNION SELECT video_poster FROM jobs WHERE video_poster IS NOT NULL
                        UNION SELECT video_blob FROM jobs WHERE video_blob IS NOT NULL";

/// A stack with its blobs in a bucket, behind a network that can fail.
struct Bucket {
    stack: Stack,
    network: Proxy,
    server: S3,
    name: String,
}

impl Bucket {
    async fn new(builder: Builder) -> Self {
        Self::on(S3::start().await, builder).await
    }

    async fn on(server: S3, builder: Builder) -> Self {
        let (name, network) = (server.make_bucket().await, Proxy::in_front_of(&server.endpoint()).await);
        let mut builder = builder.env("CANVAS_BLOB_URL", format!("s3://{name}/canvas"));
        for (variable, value) in S3::environment(network.url().trim_end_matches('/')) {
            builder = builder.env(variable, value);
        }
        let stack = builder.start().await;
        Self { stack, network, server, name }
    }

    async fn objects(&self) -> BTreeSet<String> {
        self.server.objects(&self.name).await.into_iter().collect()
    }

    /// The expected objects: one for each stored blob.
    async fn stored(&self) -> BTreeSet<String> {
        self.objects_of("SELECT key FROM blobs WHERE state = 'stored'").await
    }

    async fn objects_of(&self, keys: &'static str) -> BTreeSet<String> {
        let keys: Vec<Uuid> = sqlx::query_scalar(keys).fetch_all(self.stack.pool()).await.expect("reads the blobs");
        keys.into_iter().map(object).collect()
    }

    /// Makes all blobs older than a day and waits until the sweeper has left exactly the blobs that a record refers to.
    async fn swept(&self) -> BTreeSet<String> {
        wait_for("the sweep of the bucket", PATIENCE, async || {
            self.stack.execute("UPDATE blobs SET touched_at = now() - interval '25 hours'").await;
            let (left, referred) = (self.objects().await, self.objects_of(REFERRED).await);
            (left == referred).then_some(left)
        })
        .await
    }
}

/// The object name of a blob.
fn object(key: Uuid) -> String {
    let key = key.simple().to_string();
    format!("canvas/blobs/{}/{key}", &key[30..])
}

/// A file of this size that begins as a PNG.
fn sized(bytes: usize) -> Vec<u8> {
    let mut image = images::png(8, 8);
    image.resize(bytes, 0);
    image
}

async fn upload(user: &User, bytes: Vec<u8>) -> e2e::Reply {
    user.post("/assets").body("image/png", bytes).await
}

/// The final record of a job that succeeded.
async fn made(user: &User, job: &Value) -> Value {
    let end = user.finished(job).await;
    assert_eq!(end["status"], "succeeded", "{end}");
    end
}

async fn video(user: &User) -> Value {
    let request = json!({
        "model": "animatic", "prompt": "a kite over the sea", "durationSeconds": 1, "resolution": "480p",
        "idempotencyKey": key(),
    });
    made(user, &user.send("/videos/generate", &request).await.expect(202).json()).await
}

async fn sketch(user: &User, canvas: &str) -> Value {
    let target = user.slot(canvas).await;
    let request = json!({
        "canvasId": canvas, "baseRevision": user.canvas(canvas).await["revision"], "targetNodeId": target,
        "model": "sketch", "prompt": "a kite", "idempotencyKey": key(),
    });
    made(user, &user.send("/images/generate", &request).await.expect(202).json()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_live_in_a_bucket_from_upload_to_preview() {
    let bucket = Bucket::new(Stack::builder().image_workers(1)).await;
    let stack = &bucket.stack;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let bytes = sized(IN_PARTS);
    let asset = user.upload("image/png", bytes.clone()).await;
    let preview = text(&asset, "/previewUrl");
    assert!(stack.anonymous().get(preview).await.expect(200).body == bytes, "the stored bytes are the uploaded ones");
    let part = stack.anonymous().get(preview).header("range", "bytes=1-3").await.expect(206);
    assert_eq!(part.body.as_ref(), b"PNG");
    let record = made(&user, &user.start_resize(&canvas, json!({})).await).await;
    let preview = text(&record, "/images/0/previewUrl");
    let shown = stack.anonymous().get(preview).await.expect(200);
    assert_eq!(images::size(&shown.body), (32, 24));
    let rendition = stack.anonymous().get(&format!("{preview}&w=64")).await.expect(200);
    assert_eq!(images::size(&rendition.body), (32, 24), "never enlarged");
    assert!(bucket.objects().await.len() >= 3);
    assert_eq!(bucket.objects().await, bucket.stored().await);

    // An unreachable bucket server is reported as an outage, with no other damage.
    bucket.network.cut();
    upload(&user, sized(1000)).await.expect_error(503, "service_unavailable", &[]);
    stack.readiness(Part::GATEWAY, "unready").await;
    bucket.network.resume();
    stack.ready(Part::GATEWAY).await;
    upload(&user, sized(1000)).await.expect(201);
    let asked = "SELECT count(*) FROM assets WHERE bytes = 1000";
    assert_eq!(stack.count(asked).await, 1, "only uploads that were answered with 201");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_is_made_lies_in_a_bucket_until_nobody_refers_to_it() {
    let builder = Stack::builder().image_workers(1).video_workers(1).receivers(1);
    let builder = builder.env("CANVAS_SWEEP_SECONDS", 0.2).env("CANVAS_LEASE_SECONDS", 5);
    let bucket = Bucket::new(builder).await;
    let (stack, shop) = (&bucket.stack, bucket.stack.take_receiver());
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();

    // Uploads, imports, generated images and videos.
    let uploaded = user.upload_into(&canvas, "image/png", images::png(600, 400)).await;
    let brought = images::png(500, 300);
    shop.answer(Answer::status(200).header("content-type", "image/png").body(brought.clone()));
    let import = json!({"canvasId": canvas, "imageUrl": shop.url("/shoe.png"), "idempotencyKey": key()});
    let import = user.send("/images/import", &import).await.ok();
    assert!(stack.anonymous().get(text(&import, "/image/previewUrl")).await.expect(200).body == brought);
    let drawn = sketch(&user, &canvas).await;
    stack.anonymous().get(text(&drawn, "/images/0/previewUrl")).await.expect(200);
    let made_video = video(&user).await;
    let output = text(&made_video, "/video/downloadUrl");
    let whole = user.get(output).await.expect(200).body;
    assert_eq!(&whole[4..8], b"ftyp");
    let size = whole.len();
    for (range, bytes) in [("bytes=4-7", 4..8), ("bytes=-9", size - 9..size), ("bytes=100-", 100..size)] {
        let part = user.get(output).header("range", range).await.expect(206);
        let content_range = format!("bytes {}-{}/{size}", bytes.start, bytes.end - 1);
        assert_eq!(part.header("content-range"), Some(&*content_range));
        assert!(part.body == whole.slice(bytes), "{range}");
    }
    user.get(output).header("range", &format!("bytes={size}-")).await.expect(416);
    // Renditions and renders of them.
    let narrow = stack.anonymous().get(&format!("{}&w=128", text(&uploaded, "/previewUrl"))).await.expect(200);
    assert_eq!(images::size(&narrow.body).0, 128);
    let render = wait_for("a render with every image", PATIENCE, async || {
        let render = user.get(&format!("/canvases/{canvas}/render")).header("accept", "image/png").await.expect(200);
        render.header("etag").is_some().then_some(render)
    })
    .await;
    assert!(images::size(&render.body).0 > 0);
    checker::settled(stack, SETTLING).await;
    assert_eq!(bucket.objects().await, bucket.stored().await, "each blob is an object, and there is no other");

    // A video's record is removed after 30 days, and with it every blob that nothing else refers to.
    let month =
        "SELECT count(*) FROM jobs WHERE video_blob IS NOT NULL AND retain_until - completed_at = interval '30 days'";
    assert_eq!(stack.count(month).await, 1);
    let gone: Uuid = sqlx::query_scalar("SELECT video_blob FROM jobs WHERE video_blob IS NOT NULL")
        .fetch_one(stack.pool())
        .await
        .expect("reads the video's blob");
    assert!(bucket.objects().await.contains(&object(gone)));
    stack.execute("UPDATE jobs SET retain_until = now() WHERE video_blob IS NOT NULL").await;
    wait_for("the record of the video to be removed", PATIENCE, async || {
        (user.get(output).await.status == 404).then_some(())
    })
    .await;
    let left = bucket.swept().await;
    assert!(!left.contains(&object(gone)) && !left.is_empty());

    // A result without a record: its worker died before it committed, and the job was canceled.
    let (hold, held) = stack.make_hold("action.stored");
    stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", &held)]).await;
    let job = user.start_resize(&canvas, json!({})).await;
    hold.reached().await;
    // Renditions of the input are being stored as well.
    let orphans = wait_for("result and preview to be the only objects without a stored blob", PATIENCE, async || {
        let orphans = &bucket.objects().await - &bucket.stored().await;
        (orphans.len() == 2).then_some(orphans)
    })
    .await;
    user.delete(text(&job, "/pollUrl")).await.expect(202);
    stack.kill(Part::IMAGE_WORKER);
    stack.restart(Part::IMAGE_WORKER).await;
    assert_eq!(user.finished(&job).await["status"], "canceled");
    assert!(bucket.swept().await.is_disjoint(&orphans));
    stack.anonymous().get(text(&drawn, "/images/0/previewUrl")).await.expect(200);

    // Purging the account removes everything.
    stack.admin(&["admin", "account", "purge", "--account", &user.uid, "--yes"]).await.expect_success();
    wait_for("the bucket to be empty", PATIENCE, async || bucket.swept().await.is_empty().then_some(())).await;
    wait_for("the last row of a blob to be deleted", PATIENCE, async || {
        (stack.count("SELECT count(*) FROM blobs").await == 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_the_bucket_does_not_take_costs_the_upload_and_delays_the_video() {
    let bucket = Bucket::new(Stack::builder().video_workers(1)).await;
    let stack = &bucket.stack;
    let user = stack.user().await;
    let simulator = Simulator::start(Vendor::Fal).await;
    simulator.weigh(IN_PARTS);
    let connection = stack.connect_to(&user.uid, "fal", simulator.url(), SIMULATOR_KEY).await;
    bucket.network.refuse("partNumber=2");
    upload(&user, sized(IN_PARTS)).await.expect_error(503, "service_unavailable", &[]);
    let request = json!({
        "model": "fal-ai/veo3.1", "prompt": "a kite", "connectionId": connection, "idempotencyKey": key(),
    });
    let job = user.send("/videos/generate", &request).await.expect(202).json();
    // The log states what the video waits for.
    wait_for("the video to wait for the bucket", PATIENCE, async || {
        let log = stack.log(Part::VIDEO_WORKER);
        log.lines().any(|line| line.contains("waits for 1s") && line.contains("cannot write object")).then_some(())
    })
    .await;
    assert_eq!(user.get(text(&job, "/pollUrl")).await.expect(202).json()["status"], "running");
    wait_for("unreferenced parts to be removed", PATIENCE, async || {
        bucket.server.unfinished_uploads(&bucket.name).await.is_empty().then_some(())
    })
    .await;
    assert_eq!(bucket.objects().await, BTreeSet::new(), "no partial object is visible");
    assert_eq!(stack.count("SELECT count(*) FROM assets").await, 0);
    bucket.network.resume();
    let end = made(&user, &job).await;
    let video = user.get(text(&end, "/video/downloadUrl")).await.expect(200);
    assert_eq!((video.body.len() >= IN_PARTS, &video.body[4..8]), (true, &b"ftyp"[..]));
    upload(&user, sized(IN_PARTS)).await.expect(201);
    assert_eq!(bucket.objects().await, bucket.stored().await);
    assert_eq!(simulator.submits().len(), 1, "the finished video was downloaded again, not submitted again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_survives_the_death_of_the_buckets_server() {
    let chance = Chance::new();
    let builder = Stack::builder().image_workers(2).dispatchers(1).receivers(1).env("CANVAS_RATE_PER_MINUTE", 0);
    let mut bucket = Bucket::on(S3::start_durable().await, builder.hold("action.computed")).await;
    let hold = bucket.stack.hold("action.computed");
    bucket.stack.purge_queues().await;
    let plan = Plan { jobs: 40, clients: 4, pause: Duration::from_millis(200) };
    let load = Load::prepare(&bucket.stack, &chance, plan).await;
    let death = async {
        // The workers hold results that are not stored yet.
        hold.reached().await;
        bucket.server.kill();
        // No process reaches the server before it has restarted completely.
        bucket.network.cut();
        hold.release();
        let report = bucket.stack.readiness(Part::IMAGE_WORKER, "unready").await;
        assert_eq!(report["components"]["object store"]["ok"], false, "{report}");
        bucket.server.start_again().await;
        bucket.network.resume();
    };
    tokio::join!(load.run(), death);
    // The longest pause of work that waits for an outage to end is two minutes.
    checker::check(&bucket.stack, &load, 2 * SETTLING).await;
    // No start was rejected: acceptance stores nothing in the bucket (docs/reference/jobs.md#acceptance).
    load.assert_untroubled();
    assert!(bucket.objects().await.is_superset(&bucket.stored().await), "every stored blob is an object");
    let shown = "SELECT count(*) FROM assets WHERE canvas_key IS NOT NULL";
    assert_eq!(bucket.stack.count(shown).await, 40, "each job shows its image");
}
