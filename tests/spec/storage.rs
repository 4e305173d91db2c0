//! Limits of storage: an account's quota (docs/reference/assets.md#storage-quota) and a full disk
//! (docs/reference/jobs.md#storage-outages).

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::api::{key, text};
use e2e::{PATIENCE, Part, Stack, User, images};
use reqwest::Method;
use serde_json::json;
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};
use testkit::wait_for;

/// Sets the quota if `bytes` is given, and returns the stored bytes and the quota.
async fn quota(stack: &Stack, uid: &str, bytes: Option<&str>) -> (i64, Option<i64>) {
    let show = ["admin", "account", "quota", "--account", uid];
    let arguments = match bytes {
        Some(bytes) => [&show[..], &["--bytes", bytes]].concat(),
        None => show.to_vec(),
    };
    let account = stack.admin(&arguments).await.expect_success();
    assert_eq!(account["uid"], uid);
    (account["storedBytes"].as_i64().expect("a number"), account["maxBytes"].as_i64())
}

/// An image of exactly this many bytes.
fn sized(bytes: usize) -> Vec<u8> {
    let mut image = images::png(8, 8);
    assert!(image.len() <= bytes, "the smallest image has {} bytes", image.len());
    image.resize(bytes, 0);
    image
}

async fn upload(user: &User, bytes: usize) -> e2e::Reply {
    user.post("/assets").body("image/png", sized(bytes)).await
}

#[tokio::test]
async fn an_account_stores_20_gib_unless_another_limit_is_set() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    assert_eq!(quota(stack, &user.uid, None).await, (0, Some(20 << 30)));
    upload(&user, 100_000).await.expect(201);
    upload(&user, 100_000).await.expect(201);
    assert_eq!(
        quota(stack, &user.uid, None).await,
        (200_000, Some(20 << 30)),
        "equal bytes count as often as they are stored"
    );
}

#[tokio::test]
async fn an_upload_up_to_the_quota_is_stored_and_one_beyond_it_422() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    upload(&user, 300_000).await.expect(201);
    assert_eq!(quota(stack, &user.uid, Some("500000")).await, (300_000, Some(500_000)));
    let message = upload(&user, 200_001).await.expect_error(422, "unprocessable_entity", &["body"]);
    assert!(!message.is_empty());
    // Without a declared length, the upload is received first and then rejected.
    let streamed = user.post("/assets").chunked("image/png", sized(200_001)).await;
    streamed.expect_error(422, "unprocessable_entity", &["body"]);
    assert_eq!(quota(stack, &user.uid, None).await.0, 300_000, "a rejected upload is not stored");
    upload(&user, 200_000).await.expect(201);
    upload(&user, 1000).await.expect_error(422, "unprocessable_entity", &["body"]);
    assert_eq!(quota(stack, &user.uid, Some("none")).await, (500_000, None));
    upload(&user, 1000).await.expect(201);
}

#[tokio::test]
async fn a_canvas_counts_with_what_can_be_undone() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let parts = async || {
        let shown = stack.admin(&["admin", "account", "storage", "--account", &user.uid]).await.expect_success();
        assert_eq!(shown["storedBytes"], shown["parts"]["canvases"], "{shown}");
        shown["storedBytes"].as_i64().expect("a number")
    };
    assert_eq!(parts().await, 65536, "an empty canvas");
    let content = |bytes: usize| json!({"custom": {"text": "x".repeat(bytes)}});
    let create =
        json!([{"type": "node.create", "clientId": "n", "node": {"type": "text", "metadata": content(60_000)}}]);
    let node = text(&user.apply(&canvas, create.clone()).await, "/resolvedIds/n").to_owned();
    assert_eq!(parts().await, 65536, "within the first step");
    user.apply(&canvas, create).await;
    assert_eq!(parts().await, 2 * 65536);
    user.apply(&canvas, json!([{"type": "node.delete", "nodeId": node}])).await;
    assert_eq!(parts().await, 2 * 65536, "what is deleted can be restored, and counts");
    let recounted = stack.admin(&["admin", "account", "recount", "--account", &user.uid]).await.expect_success();
    assert_eq!(recounted, json!({"accounts": 1, "corrected": 0}));
    sqlx::query("UPDATE account_storage SET bytes = bytes + 1 WHERE account_uid = $1")
        .bind(&user.uid)
        .execute(stack.pool())
        .await
        .expect("miscounts");
    let recounted = stack.admin(&["admin", "account", "recount", "--account", &user.uid]).await.expect_success();
    assert_eq!(recounted, json!({"accounts": 1, "corrected": 1}));
    assert_eq!(parts().await, 2 * 65536);
}

#[tokio::test]
async fn a_replay_is_answered_however_full_the_account_is() {
    let stack = &Stack::with_workers().await;
    let (user, key) = (stack.user().await, key());
    let bytes = sized(200_000);
    let upload = async || user.post("/assets").header("idempotency-key", &key).body("image/png", bytes.clone()).await;
    let first = upload().await.expect(201).json();
    quota(stack, &user.uid, Some("200000")).await;
    assert_eq!(upload().await.expect(200).json()["asset"]["handle"], first["asset"]["handle"]);
}

#[tokio::test]
async fn an_editor_fills_the_quota_of_the_owner() {
    let stack = &Stack::with_workers().await;
    let (owner, editor) = (stack.user().await, stack.user().await);
    let canvas = text(&owner.make_canvas().await, "/id").to_owned();
    stack.share(&owner, &canvas, &editor.uid, "editor").await;
    quota(stack, &owner.uid, Some("200000")).await;
    let path = format!("/assets?canvasId=canvas:{}:{canvas}", owner.uid);
    editor.post(&path).body("image/png", sized(100_000)).await.expect(201);
    let refused = editor.post(&path).body("image/png", sized(500)).await;
    let details = refused.json()["error"]["details"].clone();
    assert_eq!(
        details,
        json!({"remedies": ["ask the owner of the canvas to make room"]}),
        "the size is the owner's to know"
    );
    refused.expect_error(422, "unprocessable_entity", &["body"]);
    let stored = (quota(stack, &owner.uid, None).await.0, quota(stack, &editor.uid, None).await.0);
    assert_eq!(stored, (65536 + 100_000, 0), "the canvas and the image");
}

#[tokio::test]
async fn work_that_was_accepted_is_stored_in_a_full_account_and_no_more_is_accepted() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let asset = user.upload("image/png", images::png(640, 480)).await;
    let target = user.slot(&canvas).await;
    let resize = async |more: serde_json::Value| {
        let mut request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
        request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        user.send("/actions/resize/runs", &request).await
    };
    let (stored, _) = quota(stack, &user.uid, None).await;
    // The result counts 64 KiB.
    quota(stack, &user.uid, Some(&(stored + 65536 - 1).to_string())).await;
    for more in [json!({}), json!({"validateOnly": true})] {
        let refused = resize(more).await;
        let details = refused.json()["error"]["details"].clone();
        refused.expect_error(422, "unprocessable_entity", &["canvasId"]);
        assert_eq!((&details["bytes"], &details["max"]), (&json!(stored), &json!(stored + 65535)), "{details}");
        assert!(details["remedies"].as_array().is_some_and(|remedies| !remedies.is_empty()), "{details}");
    }
    quota(stack, &user.uid, Some(&(stored + 65536).to_string())).await;
    let job = resize(json!({})).await.expect(202).json();
    quota(stack, &user.uid, Some("1")).await;
    assert_eq!(user.finished(&job).await["status"], "succeeded");
    assert_eq!(quota(stack, &user.uid, None).await.0, stored + 65536);
}

#[tokio::test]
async fn a_full_account_cannot_add_and_can_do_everything_else() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let create = |bytes: usize| {
        let node = json!({"type": "text", "metadata": {"custom": {"text": "x".repeat(bytes)}}});
        json!([{"type": "node.create", "clientId": "n", "node": node}])
    };
    let node = text(&user.apply(&canvas, create(40_000)).await, "/resolvedIds/n").to_owned();
    quota(stack, &user.uid, Some("65536")).await;

    let full = async |reply: e2e::Reply, fields: &[&str]| {
        let details = reply.json()["error"]["details"].clone();
        reply.expect_error(422, "unprocessable_entity", fields);
        assert_eq!((&details["bytes"], &details["max"]), (&json!(65536), &json!(65536)), "{details}");
    };
    full(user.send("/canvases", &json!({"title": "Another"})).await, &[]).await;
    full(user.send("/canvases", &json!({"destination": "agent-canvas"})).await, &[]).await;
    let revision = text(&user.canvas(&canvas).await, "/revision").to_owned();
    full(user.batch(&canvas, &revision, create(40_000)).await, &["operations"]).await;
    full(upload(&user, 1000).await, &["body"]).await;
    let import = json!({"canvasId": canvas, "imageUrl": "https://example.com/a.png", "idempotencyKey": key()});
    full(user.send("/images/import", &import).await, &["canvasId"]).await;
    assert_eq!(quota(stack, &user.uid, None).await.0, 65536);

    user.apply(&canvas, create(1000)).await;
    user.apply(&canvas, json!([{"type": "node.move", "nodeId": node, "position": {"x": 1.5, "y": -20000.25}}])).await;
    user.apply(&canvas, json!([{"type": "node.delete", "nodeId": node}])).await;
    user.apply(&canvas, json!([{"type": "node.restore", "nodeId": node}])).await;
    user.apply(&canvas, json!([{"type": "canvas.update", "title": "Full"}])).await;
    assert_eq!(user.canvas(&canvas).await["title"], "Full");
}

/// Runs a statement with the account as `$1` and a number as `$2`.
async fn fill_rows(stack: &Stack, sql: &'static str, user: &User, count: i64) {
    sqlx::query(sql).bind(&user.uid).bind(count).execute(stack.pool()).await.expect("inserts");
}

#[tokio::test]
async fn one_canvas_element_collection_or_version_beyond_its_cap_is_422() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let insert = "INSERT INTO canvases (owner_uid, id, title, revision) SELECT $1, 'c' || n, '', 'r' FROM generate_series(1, $2) n";
    fill_rows(stack, insert, &user, 9_999).await;
    user.send("/canvases", &json!({"id": "last"})).await.expect(201);
    let refused = user.send("/canvases", &json!({"id": "more"})).await;
    refused.expect_error(422, "unprocessable_entity", &["title"]);
    user.send("/canvases", &json!({"id": "last"})).await.expect_error(409, "conflict", &[]);

    let insert =
        "INSERT INTO element_collections (owner_uid, id, name) SELECT $1, 'c' || n, '' FROM generate_series(1, $2) n";
    fill_rows(stack, insert, &user, 499).await;
    user.send("/element-collections", &json!({"name": "last"})).await.expect(201);
    let refused = user.send("/element-collections", &json!({"name": "more"})).await;
    refused.expect_error(422, "unprocessable_entity", &["name"]);

    let element = json!({"name": "e", "type": "style", "sourceAssetIds": [], "guidelines": "g"});
    let made = user.send("/elements", &element).await.expect(201).json()["element"].clone();
    let insert = "INSERT INTO elements (owner_uid, id, search_name, search_guidelines)
                  SELECT $1, 'e' || n, '', '' FROM generate_series(1, $2) n";
    fill_rows(stack, insert, &user, 4_998).await;
    user.send("/elements", &element).await.expect(201);
    user.send("/elements", &element).await.expect_error(422, "unprocessable_entity", &["name"]);

    let path = format!("/elements/{}", text(&made, "/id"));
    let patch = async |body: serde_json::Value| {
        user.call(Method::PATCH, &path).body("application/json", body.to_string()).await
    };
    // The first Element gets 499 versions.
    let insert =
        "INSERT INTO element_versions (owner_uid, element_id, version, name, type, source_asset_ids, guidelines)
                  SELECT owner_uid, element_id, n, name, type, source_asset_ids, guidelines
                  FROM (SELECT * FROM element_versions WHERE owner_uid = $1 ORDER BY created_at LIMIT 1) AS made,
                       generate_series(2, $2) n";
    fill_rows(stack, insert, &user, 499).await;
    let newest = "UPDATE elements SET version = $2 WHERE owner_uid = $1 AND id IN
                      (SELECT element_id FROM element_versions WHERE owner_uid = $1 AND version = $2)";
    fill_rows(stack, newest, &user, 499).await;
    patch(json!({"operation": "update", "element": element})).await.ok();
    let refused = patch(json!({"operation": "update", "element": element})).await;
    refused.expect_error(422, "unprocessable_entity", &["operation"]);
    patch(json!({"operation": "archive", "confirm": true})).await.ok();
    patch(json!({"operation": "restore"})).await.expect_error(422, "unprocessable_entity", &["operation"]);
}

#[tokio::test]
async fn a_quota_is_a_number_of_bytes_or_none_or_the_default() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    for bytes in ["", "0", "-1", "1.5", "9223372036854775808", "1GiB"] {
        stack.admin(&["admin", "account", "quota", "--account", &user.uid, "--bytes", bytes]).await.expect_refusal();
    }
    assert_eq!(quota(stack, &user.uid, Some("1")).await, (0, Some(1)));
    assert_eq!(quota(stack, &user.uid, Some("default")).await, (0, Some(20 << 30)));
    stack.admin(&["admin", "account", "quota", "--account", "nobody"]).await.expect_refusal();
    stack.admin(&["admin", "account", "quota"]).await.expect_misuse();
}

#[tokio::test]
async fn the_default_holds_where_an_account_has_no_quota_of_its_own() {
    let stack = &Stack::builder().env("CANVAS_ACCOUNT_STORAGE_MAX", 500_000).start().await;
    let user = stack.user().await;
    assert_eq!(quota(stack, &user.uid, None).await, (0, Some(500_000)));
    upload(&user, 500_001).await.expect_error(422, "unprocessable_entity", &["body"]);
    upload(&user, 500_000).await.expect(201);
    quota(stack, &user.uid, Some("600000")).await;
    upload(&user, 1000).await.expect(201);
    quota(stack, &user.uid, Some("default")).await;
    upload(&user, 500).await.expect_error(422, "unprocessable_entity", &["body"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_uploads_and_nothing_is_half_written() {
    let stack = Stack::builder().disk("1m").start().await;
    let user = stack.user().await;
    upload(&user, 300 << 10).await.expect(201);
    // Rejected uploads release the space that they used.
    for _ in 0..3 {
        upload(&user, 3 << 20).await.expect_error(503, "service_unavailable", &[]);
    }
    upload(&user, 300 << 10).await.expect(201);
    stack.ready(Part::GATEWAY).await;
    while upload(&user, 40 << 10).await.status == 201 {}
    let report = stack.readiness(Part::GATEWAY, "degraded").await;
    assert_eq!(report["components"]["object store writes"]["ok"], false, "{report}");
    // Reads still work.
    let stored = user.get("/assets").await.ok()["assets"].as_array().cloned().expect("assets");
    let asset = user.get(&format!("/assets/{}", text(&stored[0], "/id"))).await.ok();
    stack.anonymous().get(text(&asset, "/asset/previewUrl")).await.expect(200);
    assert_eq!(stack.count("SELECT count(*) FROM assets").await as usize, stored.len());
}

/// The files of a store and their sizes, except the probe files that test for free space.
fn files(directory: &Path) -> BTreeMap<String, u64> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("lists a directory of the store") {
        let entry = entry.expect("reads an entry");
        if entry.path().is_dir() {
            files.extend(self::files(&entry.path()));
        } else if !entry.file_name().as_encoded_bytes().starts_with(b".probe") {
            let size = entry.metadata().expect("reads a size").len();
            files.insert(entry.file_name().to_string_lossy().into_owned(), size);
        }
    }
    files
}

/// Fills a disk. Removing the returned file frees the space.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("filler");
    let mut filler = File::create(&path).expect("makes a file on the disk");
    let full = loop {
        if let Err(error) = std::io::Write::write_all(&mut filler, &[1; 4096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull, "{full}");
    path
}

/// Waits until every file on this disk, except the filler, is a blob that the database records as stored, with its size. A file is
/// written before it is recorded, so the two can differ while a result or a rendition is being stored.
async fn no_partial_files(stack: &Stack, disk: &Path) {
    wait_for("every file to be a complete, recorded blob", PATIENCE, async || {
        let mut here = files(disk);
        here.remove("filler");
        let rows: Vec<(String, i64)> =
            sqlx::query_as("SELECT replace(key::text, '-', ''), bytes FROM blobs WHERE state = 'stored'")
                .fetch_all(stack.pool())
                .await
                .expect("reads the blobs");
        let stored: BTreeMap<String, u64> =
            rows.into_iter().map(|(key, bytes)| (key, bytes.try_into().expect("a size"))).collect();
        here.iter().all(|(key, size)| stored.get(key) == Some(size)).then_some(())
    })
    .await;
}

/// The longest pause before a job that an outage interrupted is resumed.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// A result that does not fit (docs/reference/jobs.md#storage-outages): work that can be repeated waits for space. A result that
/// was paid for and is only in memory is retried for half a minute; then the job fails with `output_finalization_failed`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_delays_results_or_fails_them_and_stores_no_half() {
    let stack = Stack::builder().image_workers(1).disk("24m").start().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let (of_gateway, of_worker) = (stack.disk_of(Part::GATEWAY), stack.disk_of(Part::IMAGE_WORKER));
    let sketch = async || {
        let target = user.slot(&canvas).await;
        let request = json!({
            "canvasId": canvas, "baseRevision": user.canvas(&canvas).await["revision"], "targetNodeId": target,
            // A different image each time, because equal contents are stored once.
            "model": "sketch", "prompt": key(), "idempotencyKey": key(),
        });
        user.send("/images/generate", &request).await.expect(202).json()
    };
    let balance = async || user.get("/auth/status").await.ok()["creditBalance"].clone();
    assert_eq!(user.finished(&sketch().await).await["status"], "succeeded", "there is space");
    let paid = balance().await;

    let target = user.slot(&canvas).await;
    let asset = user.upload("image/png", images::png(640, 480)).await;
    // Every process has its own disk. The worker gets a copy of the input on its disk.
    for blob in files(&of_gateway).keys() {
        let beside = format!("blobs/{}", &blob[30..]);
        std::fs::create_dir_all(of_worker.join(&beside)).expect("makes a directory of the store");
        let file = format!("{beside}/{blob}");
        std::fs::copy(of_gateway.join(&file), of_worker.join(&file)).expect("copies a blob");
    }
    let filler = fill(&of_worker);
    let request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    let resized = user.send("/actions/resize/runs", &request).await.expect(202).json();
    let drawn = sketch().await;
    let report = stack.readiness(Part::IMAGE_WORKER, "degraded").await;
    let message = text(&report, "/components/object store writes/message");
    assert!(message.contains("No space left on device"), "{report}");
    // The worker retries for 26 s and then gives up.
    let failed = wait_for("the image to fail", 3 * PATIENCE, async || {
        let record = user.get(text(&drawn, "/pollUrl")).await.json();
        (record["status"] == "failed").then_some(record)
    })
    .await;
    assert_eq!(failed["failure"]["code"], "output_finalization_failed", "{failed}");
    assert_eq!(
        (&failed["creditCost"], balance().await),
        (&json!(0), paid.clone()),
        "an image that is not shown is not charged"
    );
    let waiting = user.get(text(&resized, "/pollUrl")).await.expect(202).json();
    assert!(matches!(text(&waiting, "/status"), "running" | "finalizing"), "it waits for space: {waiting}");
    no_partial_files(&stack, &of_worker).await;
    assert_eq!(stack.count("SELECT count(*) FROM assets WHERE canvas_key IS NOT NULL").await, 1, "nothing is shown");

    std::fs::remove_file(filler).expect("frees the space");
    stack.ready(Part::IMAGE_WORKER).await;
    let next = sketch().await;
    wait_for("the Action to find space", LONGEST_PAUSE + PATIENCE, async || {
        let record = user.get(text(&resized, "/pollUrl")).await.json();
        assert!(matches!(text(&record, "/status"), "running" | "finalizing" | "succeeded"), "{record}");
        (record["status"] == "succeeded").then_some(())
    })
    .await;
    assert_eq!(user.finished(&next).await["status"], "succeeded");
    no_partial_files(&stack, &of_worker).await;
    assert_eq!(stack.count("SELECT count(*) FROM assets WHERE canvas_key IS NOT NULL").await, 3, "and all are shown");
}

/// A provider's video of which only the first part fits on the disk. Because it is paid for, it is downloaded again until there
/// is space, and it is never ordered again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_delays_a_video_and_stores_no_half() {
    let stack = Stack::builder().video_workers(1).disk("40m").start().await;
    let user = stack.user().await;
    let simulator = Simulator::start(Vendor::Runway).await;
    simulator.pad(20 << 20);
    stack.connect_to(&user.uid, "runway", simulator.url(), SIMULATOR_KEY).await;
    let model = user.get("/models?provider=runway&capability=video.generate").await.ok()["models"][0].clone();
    let disk = stack.disk_of(Part::VIDEO_WORKER);
    let filler = fill(&disk);
    {
        // The file is closed afterwards, because an open file keeps its space when it is removed.
        let room = File::options().write(true).open(&filler).expect("opens the filler");
        let taken = room.metadata().expect("reads a size").len();
        room.set_len(taken - (12 << 20)).expect("frees a part of the space");
    }

    let request = json!({"model": model["handle"], "prompt": "a kite over the sea", "idempotencyKey": key()});
    let job = user.send("/videos/generate", &request).await.expect(202).json();
    wait_for("the video to run out of space", PATIENCE, async || {
        let line = format!("video {} waits for", text(&job, "/rawId"));
        stack.log(Part::VIDEO_WORKER).contains(&line).then_some(())
    })
    .await;
    assert_eq!(user.get(text(&job, "/pollUrl")).await.expect(202).json()["status"], "running");
    assert_eq!(stack.count("SELECT count(*) FROM blobs WHERE state = 'stored'").await, 0, "no part of it is stored");

    std::fs::remove_file(filler).expect("frees the space");
    wait_for("the video to find space", LONGEST_PAUSE + PATIENCE, async || {
        let record = user.get(text(&job, "/pollUrl")).await.json();
        assert!(matches!(text(&record, "/status"), "running" | "finalizing" | "succeeded"), "{record}");
        (record["status"] == "succeeded").then_some(())
    })
    .await;
    let whole = "SELECT count(*) FROM blobs b JOIN jobs j ON j.video_blob = b.key WHERE b.bytes > 20 << 20";
    assert_eq!(stack.count(whole).await, 1);
    no_partial_files(&stack, &disk).await;
    assert_eq!((simulator.submits().len(), simulator.leaks()), (1, 0), "it was ordered once");
}
