//! Uploads of which two files are kept, and processes that die meanwhile (docs/reference/assets.md#idempotent-uploads,
//! docs/reference/assets.md#converted-formats,
//! docs/reference/command-line.md#admin-asset-clean).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use e2e::api::{key, text};
use e2e::images::{self, PLACE, avif, photo_with_place};
use e2e::{Part, Reply, SETTLING, Stack, User, checker};
use serde_json::{Value, json};
use testkit::wait_for;

use super::{mortal, start};

/// The failpoints at which the worker dies that converts an image, or makes the preview of a photograph.
const WORKER: [&str; 2] = ["task.claimed", "task.finished"];
/// The failpoints at which the gateway dies, and the status of the repeated upload.
const GATEWAY: [(&str, u16); 2] = [("upload.received", 201), ("upload.committed", 200)];

/// New files of which the upload and another file are kept, with the class of what is removed.
fn files() -> [(&'static str, Vec<u8>, Option<&'static str>); 3] {
    [
        ("image/avif", avif(avif::TURNED), None),
        ("image/heic", images::heic(24, 40, &images::png(24, 40)), None),
        ("image/jpeg", photo_with_place(40, 24), Some("location")),
    ]
}

/// Checks what is stored of an upload, and returns the id of the asset.
async fn check(user: &User, reply: Reply, file: &[u8], removed: Option<&str>) -> String {
    let asset = reply.json()["asset"].clone();
    let content = format!("/assets/{}/content", text(&asset, "/handle"));
    let original = user.get(&format!("{content}?original=true")).await.expect(200);
    assert!(original.body == file, "the original, byte for byte: {asset}");
    let served: Bytes = user.get(&content).await.expect(200).body;
    assert_eq!((served.len(), images::size(&served)), (asset["bytes"].as_u64().expect("a size") as usize, (24, 40)));
    assert!(!served.windows(PLACE.len()).any(|window| window == PLACE));
    assert_eq!(asset.get("metadataRemoved"), removed.map(|class| json!([class])).as_ref());
    text(&asset, "/id").to_owned()
}

/// Checks that these assets are all that is stored, each with an original, and that nothing contradicts them.
async fn check_stored(stack: &Stack, assets: &BTreeSet<String>) {
    let count = assets.len() as i64;
    assert_eq!(stack.count("SELECT count(*) FROM assets").await, count, "none is stored twice");
    assert_eq!(stack.count("SELECT count(DISTINCT original_blob) FROM assets").await, count);
    checker::settled(stack, SETTLING).await;
    assert_eq!(checker::invariants(stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_of_two_files_is_stored_once_whatever_dies() {
    let stack = start(mortal().env("CANVAS_HEIF_COMMAND", images::heif_command())).await;
    let user = stack.user().await;
    let mut assets = BTreeSet::new();
    for failpoint in WORKER {
        for (media_type, file, removed) in files() {
            let key = key();
            let upload =
                async || user.post("/assets").header("Idempotency-Key", &key).body(media_type, file.clone()).await;
            let (hold, held) = stack.make_hold(failpoint);
            checker::settled(&stack, SETTLING).await;
            stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", &held)]).await;
            let death = async {
                hold.reached().await;
                stack.kill(Part::IMAGE_WORKER);
                stack.restart(Part::IMAGE_WORKER).await;
            };
            let (first, ()) = tokio::join!(upload(), death);
            let first = check(&user, first.expect(201), &file, removed).await;
            let again = check(&user, upload().await.expect(200), &file, removed).await;
            assert_eq!(first, again, "{failpoint}, {media_type}");
            assets.insert(first);
        }
    }
    for (failpoint, status) in GATEWAY {
        for (media_type, file, removed) in files() {
            let key = key();
            let upload = || user.post("/assets").header("Idempotency-Key", &key).body(media_type, file.clone());
            stack.restart_with(Part::GATEWAY, &[("CANVAS_FAILPOINTS", &format!("{failpoint}=kill"))]).await;
            upload().attempt().await.expect_err("is not answered");
            assert_eq!(stack.ended(Part::GATEWAY).await.code(), None, "{failpoint}, {media_type}: killed");
            stack.restart(Part::GATEWAY).await;
            let again = check(&user, upload().await.expect(status), &file, removed).await;
            assert_eq!(
                check(&user, upload().await.expect(200), &file, removed).await,
                again,
                "{failpoint}, {media_type}"
            );
            assets.insert(again);
        }
    }
    assert_eq!(assets.len(), (WORKER.len() + GATEWAY.len()) * files().len());
    check_stored(&stack, &assets).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cleaning_that_is_killed_is_finished_by_the_next() {
    let stack = start(mortal()).await;
    let user = stack.user().await;
    let mut uploads = BTreeMap::new();
    for _ in 0..3 {
        let file = photo_with_place(40, 24);
        let kept = user.post("/assets?metadata=keep").body("image/jpeg", file.clone()).await.expect(201).json();
        uploads.insert(text(&kept, "/asset/id").to_owned(), file);
    }
    // In the order in which they are cleaned.
    let ids: Vec<String> =
        sqlx::query_scalar("SELECT id FROM assets ORDER BY id").fetch_all(stack.pool()).await.expect("reads");
    stack.execute("UPDATE assets SET created_at = '2026-01-01'").await;
    checker::settled(&stack, SETTLING).await;
    let clean = ["admin", "asset", "clean", "--account", &user.uid];

    // It stops when the second file is stored and not yet served, and is killed there.
    let mut holder = stack.pool().begin().await.expect("begins");
    let lock = sqlx::query("SELECT FROM assets WHERE id = $1 FOR UPDATE").bind(&ids[1]);
    lock.execute(&mut *holder).await.expect("locks");
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'UPDATE assets %'";
    tokio::select! {
        _ = stack.admin(&clean) => panic!("passed the lock"),
        () = wait_for("the lock", SETTLING, async || (stack.count(waiting).await == 1).then_some(())) => {}
    }
    holder.rollback().await.expect("ends");
    let left = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND state <> 'idle' AND query LIKE 'UPDATE assets %'";
    wait_for("the command's transaction to end", SETTLING, async || (stack.count(left).await == 0).then_some(())).await;
    for (id, expected) in ids.iter().zip([1, 0, 0]) {
        let cleaned = stack.count_of("SELECT count(original_blob) FROM assets WHERE id = $1", id).await;
        assert_eq!(cleaned, expected, "{ids:?}");
    }
    assert_eq!(checker::invariants(&stack).await, [""; 0]);

    let report = |examined: i64, cleaned: i64| json!({"dryRun": false, "examined": examined, "cleaned": cleaned, "unreadable": 0});
    assert_eq!(stack.admin(&clean).await.expect_success(), report(2, 2));
    assert_eq!(stack.admin(&clean).await.expect_success(), report(0, 0));
    for (id, file) in &uploads {
        let read: Value = user.get(&format!("/assets/asset:{}:{id}", user.uid)).await.ok();
        let asset = &read["asset"];
        assert_eq!(
            (&asset["metadataRemoved"], &asset["original"]["bytes"]),
            (&json!(["location"]), &json!(file.len()))
        );
        let content = format!("/assets/{}/content", text(asset, "/handle"));
        assert!(user.get(&format!("{content}?original=true")).await.expect(200).body == *file);
        let served = user.get(&content).await.expect(200).body;
        assert!(!served.windows(PLACE.len()).any(|window| window == PLACE));
    }
    check_stored(&stack, &ids.into_iter().collect()).await;
}
