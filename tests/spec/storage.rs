//! Where bytes are kept, and how many (decisions 6.1, 6.6): a bucket, a full disk, an account's quota.

use e2e::api::{key, text};
use e2e::{Part, Stack, User, pictures, suite};
use serde_json::{Value, json};
use testkit::{Proxy, S3};

suite! {
    quotas on Stack::builder().image_workers(1);
    an_account_stores_without_limit_unless_one_is_set,
    an_upload_up_to_the_quota_is_stored_and_one_beyond_it_422,
    a_replay_is_answered_however_full_the_account_is,
    an_editor_fills_the_quota_of_the_owner,
    a_result_beyond_the_quota_fails_its_job,
    a_quota_is_a_number_of_bytes_or_none_or_the_default,
}

suite! {
    default_quotas on Stack::builder().env("CANVAS_ACCOUNT_STORAGE_MAX", 5000);
    the_default_holds_where_an_account_has_no_quota_of_its_own,
}

/// Stored bytes and the limit, after setting the quota where one is given.
async fn quota(stack: &Stack, uid: &str, bytes: Option<&str>) -> (i64, Option<i64>) {
    let show = ["admin", "account", "quota", "--account", uid];
    let arguments = match bytes {
        Some(bytes) => [&show[..], &["--bytes", bytes]].concat(),
        None => show.to_vec(),
    };
    let told = stack.admin(&arguments).await.expect_success();
    assert_eq!(told["uid"], uid);
    (told["storedBytes"].as_i64().expect("a number"), told["maxBytes"].as_i64())
}

/// A picture of exactly so many bytes.
fn sized(bytes: usize) -> Vec<u8> {
    let mut picture = pictures::png(8, 8);
    assert!(picture.len() <= bytes, "the smallest has {}", picture.len());
    picture.resize(bytes, 0);
    picture
}

async fn upload(user: &User, bytes: usize) -> e2e::Reply {
    user.post("/assets").body("image/png", sized(bytes)).await
}

async fn an_account_stores_without_limit_unless_one_is_set(stack: &Stack) {
    let user = stack.user().await;
    assert_eq!(quota(stack, &user.uid, None).await, (0, None));
    upload(&user, 3000).await.expect(201);
    upload(&user, 3000).await.expect(201);
    assert_eq!(quota(stack, &user.uid, None).await, (6000, None), "equal bytes count as often as they are stored");
}

async fn an_upload_up_to_the_quota_is_stored_and_one_beyond_it_422(stack: &Stack) {
    let user = stack.user().await;
    upload(&user, 3000).await.expect(201);
    assert_eq!(quota(stack, &user.uid, Some("5000")).await, (3000, Some(5000)));
    let message = upload(&user, 2001).await.expect_error(422, "unprocessable_entity", &["body"]);
    assert!(!message.is_empty());
    // Without a declared length it is received first, and refused all the same.
    let streamed = user.post("/assets").chunked("image/png", sized(2001)).await;
    streamed.expect_error(422, "unprocessable_entity", &["body"]);
    assert_eq!(quota(stack, &user.uid, None).await.0, 3000, "what is refused is not stored");
    upload(&user, 2000).await.expect(201);
    upload(&user, 1000).await.expect_error(422, "unprocessable_entity", &["body"]);
    assert_eq!(quota(stack, &user.uid, Some("none")).await, (5000, None));
    upload(&user, 1000).await.expect(201);
}

async fn a_replay_is_answered_however_full_the_account_is(stack: &Stack) {
    let (user, key) = (stack.user().await, key());
    let bytes = sized(2000);
    let upload = async || user.post("/assets").header("idempotency-key", &key).body("image/png", bytes.clone()).await;
    let first = upload().await.expect(201).json();
    quota(stack, &user.uid, Some("2000")).await;
    assert_eq!(upload().await.expect(200).json()["asset"]["handle"], first["asset"]["handle"]);
}

async fn an_editor_fills_the_quota_of_the_owner(stack: &Stack) {
    let (owner, editor) = (stack.user().await, stack.user().await);
    let canvas = text(&owner.make_canvas().await, "/id").to_owned();
    stack.share(&owner, &canvas, &editor.uid, "editor").await;
    quota(stack, &owner.uid, Some("2500")).await;
    let path = format!("/assets?canvasId=canvas:{}:{canvas}", owner.uid);
    editor.post(&path).body("image/png", sized(2500)).await.expect(201);
    let refused = editor.post(&path).body("image/png", sized(500)).await;
    refused.expect_error(422, "unprocessable_entity", &["body"]);
    assert_eq!((quota(stack, &owner.uid, None).await.0, quota(stack, &editor.uid, None).await.0), (2500, 0));
}

async fn a_result_beyond_the_quota_fails_its_job(stack: &Stack) {
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let asset = user.upload("image/png", pictures::png(640, 480)).await;
    let (stored, _) = quota(stack, &user.uid, None).await;
    quota(stack, &user.uid, Some(&(stored + 1).to_string())).await;
    let target = user.slot(&canvas).await;
    let resize = async || {
        let request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
        let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
        user.finished(&job).await
    };
    let failed = resize().await;
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["failure"]["code"], "output_finalization_failed");
    assert!(text(&failed, "/failure/message").contains("quota"), "{failed}");
    assert_eq!(quota(stack, &user.uid, None).await.0, stored);
    quota(stack, &user.uid, Some("none")).await;
    assert_eq!(resize().await["status"], "succeeded", "the target is free again");
}

async fn a_quota_is_a_number_of_bytes_or_none_or_the_default(stack: &Stack) {
    let user = stack.user().await;
    for bytes in ["", "0", "-1", "1.5", "9223372036854775808", "1GiB"] {
        stack.admin(&["admin", "account", "quota", "--account", &user.uid, "--bytes", bytes]).await.expect_refusal();
    }
    assert_eq!(quota(stack, &user.uid, Some("1")).await, (0, Some(1)));
    assert_eq!(quota(stack, &user.uid, Some("default")).await, (0, None));
    stack.admin(&["admin", "account", "quota", "--account", "nobody"]).await.expect_refusal();
    stack.admin(&["admin", "account", "quota"]).await.expect_misuse();
}

async fn the_default_holds_where_an_account_has_no_quota_of_its_own(stack: &Stack) {
    let user = stack.user().await;
    assert_eq!(quota(stack, &user.uid, None).await, (0, Some(5000)));
    upload(&user, 5001).await.expect_error(422, "unprocessable_entity", &["body"]);
    upload(&user, 5000).await.expect(201);
    quota(stack, &user.uid, Some("6000")).await;
    upload(&user, 1000).await.expect(201);
    quota(stack, &user.uid, Some("default")).await;
    upload(&user, 500).await.expect_error(422, "unprocessable_entity", &["body"]);
}

/// The run's one picture.
fn image(record: &Value) -> &Value {
    assert_eq!(record["status"], "succeeded", "{record}");
    &record["images"][0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pictures_live_in_a_bucket_from_upload_to_preview() {
    let server = S3::start().await;
    let (bucket, network) = (server.make_bucket().await, Proxy::in_front_of(&server.endpoint()).await);
    let mut builder = Stack::builder().image_workers(1).env("CANVAS_BLOB_URL", format!("s3://{bucket}/canvas"));
    for (name, value) in S3::environment(network.url().trim_end_matches('/')) {
        builder = builder.env(name, value);
    }
    let stack = builder.start().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    // Above a part of a multipart upload.
    let bytes = sized(9 << 20);
    let asset = user.upload("image/png", bytes.clone()).await;
    let preview = text(&asset, "/previewUrl");
    assert!(stack.anonymous().get(preview).await.expect(200).body == bytes, "the stored bytes are the uploaded ones");
    let part = stack.anonymous().get(preview).header("range", "bytes=1-3").await.expect(206);
    assert_eq!(part.body.as_ref(), b"PNG");
    let record = user.finished(&user.start_resize(&canvas, json!({})).await).await;
    let preview = text(image(&record), "/previewUrl");
    let shown = stack.anonymous().get(preview).await.expect(200);
    assert_eq!(pictures::size(&shown.body), (32, 24));
    let rendition = stack.anonymous().get(&format!("{preview}&w=64")).await.expect(200);
    assert_eq!(pictures::size(&rendition.body), (32, 24), "never enlarged");
    let objects = server.objects(&bucket).await;
    assert!(objects.len() >= 3 && objects.iter().all(|key| key.starts_with("canvas/blobs/")), "{objects:?}");

    // A server that is away is an outage and nothing worse.
    network.cut();
    let refused = user.post("/assets").body("image/png", sized(1000)).await;
    refused.expect_error(503, "service_unavailable", &[]);
    stack.readiness(Part::GATEWAY, "unready").await;
    network.resume();
    stack.ready(Part::GATEWAY).await;
    upload(&user, 1000).await.expect(201);
    assert_eq!(
        stack.count("SELECT count(*) FROM assets WHERE bytes = 1000").await,
        1,
        "only what was answered with 201"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_uploads_and_nothing_is_half_written() {
    let stack = Stack::builder().disk("1m").start().await;
    let user = stack.user().await;
    upload(&user, 300 << 10).await.expect(201);
    // What did not fit gives its room back.
    for _ in 0..3 {
        upload(&user, 3 << 20).await.expect_error(503, "service_unavailable", &[]);
    }
    upload(&user, 300 << 10).await.expect(201);
    stack.ready(Part::GATEWAY).await;
    while upload(&user, 40 << 10).await.status == 201 {}
    let report = stack.readiness(Part::GATEWAY, "degraded").await;
    assert_eq!(report["components"]["object store writes"]["ok"], false, "{report}");
    // Reading goes on.
    let stored = user.get("/assets").await.ok()["assets"].as_array().cloned().expect("assets");
    let asset = user.get(&format!("/assets/{}", text(&stored[0], "/id"))).await.ok();
    stack.anonymous().get(text(&asset, "/asset/previewUrl")).await.expect(200);
    assert_eq!(stack.count("SELECT count(*) FROM assets").await as usize, stored.len());
}
