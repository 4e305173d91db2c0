//! Private metadata of images (docs/reference/assets.md#private-metadata).

use e2e::api::{key, text};
use e2e::images::{self, PLACE, photo_with_place};
use e2e::{Stack, User};
use serde_json::{Value, json};
use testkit::Answer;

fn holds_place(bytes: &[u8]) -> bool {
    bytes.windows(PLACE.len()).any(|window| window == PLACE)
}

async fn content(user: &User, asset: &Value, query: &str) -> e2e::Reply {
    user.get(&format!("/assets/{}/content{query}", text(asset, "/handle"))).await
}

#[tokio::test]
async fn a_photograph_is_served_without_its_place_and_its_owner_gets_the_original() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let photo = photo_with_place(60, 40);
    let asset = user.upload("image/jpeg", photo.clone()).await;
    assert_eq!((&asset["width"], &asset["height"]), (&json!(40), &json!(60)), "turned");
    assert_eq!(asset["metadataRemoved"], json!(["location"]));
    let original = json!({"mimeType": "image/jpeg", "bytes": photo.len(), "reason": "private-metadata"});
    assert_eq!(asset["original"], original);
    let read = user.get(&format!("/assets/{}", text(&asset, "/handle"))).await.ok()["asset"].clone();
    assert_eq!((&read["original"], &read["metadataRemoved"]), (&original, &asset["metadataRemoved"]));
    assert_eq!(user.get("/assets").await.ok()["assets"][0]["original"], original);

    let served = content(&user, &asset, "").await.expect(200);
    assert!(!holds_place(&served.body));
    assert_eq!(asset["bytes"], served.body.len());
    assert!(served.body.windows(11).any(|window| window == b"Author-4419"));
    let (_, image) = photo.split_at(photo.len() - images_tail(&photo));
    assert!(served.body.ends_with(image), "the same coded image");
    let preview = stack.anonymous().get(text(&asset, "/previewUrl")).await.expect(200);
    assert_eq!(preview.body, served.body);
    let rendition = content(&user, &asset, "?w=64").await.expect(200);
    assert!(!holds_place(&rendition.body));
    assert_eq!(images::size(&rendition.body), (40, 60));

    let original = content(&user, &asset, "?original=true").await.expect(200);
    assert_eq!(original.body, photo, "byte for byte");
    assert_eq!(original.header("content-type"), Some("image/jpeg"));
    assert_ne!(original.header("etag"), served.header("etag"));
    assert_eq!(content(&user, &asset, "?original=false").await.expect(200).body, served.body);
    content(&user, &asset, "?original=true&w=64").await.expect_error(400, "input_validation_error", &["original"]);
    content(&user, &asset, "?original=maybe").await.expect_error(400, "input_validation_error", &["original"]);
}

/// The length of a JPEG from its first quantization table.
fn images_tail(jpeg: &[u8]) -> usize {
    jpeg.len() - jpeg.windows(2).position(|window| window == [0xff, 0xdb]).expect("a table")
}

#[tokio::test]
async fn a_gif_keeps_its_frames_and_nothing_else() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (file, clean) = images::gif_with_place();
    let asset = user.upload("image/gif", file.clone()).await;
    assert_eq!(asset["metadataRemoved"], json!(["location", "text", "other"]));
    assert_eq!(asset["original"], json!({"mimeType": "image/gif", "bytes": file.len(), "reason": "private-metadata"}));
    assert_eq!((&asset["animated"], &asset["bytes"]), (&json!(true), &json!(clean.len())));
    assert!(content(&user, &asset, "").await.expect(200).body == clean, "byte for byte");
    assert!(content(&user, &asset, "?original=true").await.expect(200).body == file, "byte for byte");
    assert!(!holds_place(&content(&user, &asset, "?w=64").await.expect(200).body));
    // A comment is no reason.
    let commented = images::animated_gif(2);
    let asset = user.upload("image/gif", commented.clone()).await;
    assert!(asset.get("metadataRemoved").is_none() && asset.get("original").is_none(), "{asset}");
    assert!(content(&user, &asset, "").await.expect(200).body == commented);
}

#[tokio::test]
async fn the_original_is_for_the_owner_alone() {
    let stack = &Stack::with_workers().await;
    let (owner, editor, viewer, other) =
        (stack.user().await, stack.user().await, stack.user().await, stack.user().await);
    let canvas = text(&owner.make_canvas().await, "/id").to_owned();
    for (user, role) in [(&editor, "editor"), (&viewer, "viewer")] {
        stack.share(&owner, &canvas, &user.uid, role).await;
    }
    let asset = owner.upload_into(&canvas, "image/jpeg", photo_with_place(60, 40)).await;
    assert!(asset["original"].is_object());
    for user in [&editor, &viewer] {
        let path = format!("/assets/{}", text(&asset, "/handle"));
        let read = user.get(&path).await.ok()["asset"].clone();
        assert!(read.get("original").is_none(), "{read}");
        assert_eq!(read["metadataRemoved"], asset["metadataRemoved"]);
        let listed = user.get(&format!("/assets?canvasId={canvas}&ownerUid={}", owner.uid)).await.ok();
        assert!(listed["assets"][0].get("original").is_none(), "{listed}");
        assert!(!holds_place(&content(user, &asset, "").await.expect(200).body));
        content(user, &asset, "?original=true").await.expect_error(404, "not_found", &[]);
    }
    content(&other, &asset, "?original=true").await.expect_error(404, "not_found", &[]);
    let plain = owner.upload("image/jpeg", images::jpeg(6, 4)).await;
    assert!(plain.get("original").is_none() && plain.get("metadataRemoved").is_none(), "{plain}");
    content(&owner, &plain, "?original=true").await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn what_others_upload_into_a_canvas_keeps_no_original() {
    let stack = &Stack::with_workers().await;
    let (owner, editor) = (stack.user().await, stack.user().await);
    let canvas = text(&owner.make_canvas().await, "/id").to_owned();
    stack.share(&owner, &canvas, &editor.uid, "editor").await;
    for rule in ["", "&metadata=auto"] {
        let path = format!("/assets?canvasId={canvas}&ownerUid={}{rule}", owner.uid);
        let asset =
            editor.post(&path).body("image/jpeg", photo_with_place(60, 40)).await.expect(201).json()["asset"].clone();
        let read = owner.get(&format!("/assets/{}", text(&asset, "/handle"))).await.ok()["asset"].clone();
        assert_eq!(read["metadataRemoved"], json!(["location"]));
        assert!(asset.get("original").is_none() && read.get("original").is_none(), "{read}");
        for user in [&owner, &editor] {
            assert!(!holds_place(&content(user, &asset, "").await.expect(200).body));
            content(user, &asset, "?original=true").await.expect_error(404, "not_found", &[]);
        }
    }
}

#[tokio::test]
async fn an_upload_says_what_happens_to_its_metadata() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let photo = photo_with_place(60, 40);
    for (rule, is_clean, has_original) in [("auto", true, true), ("strip", true, false), ("keep", false, false)] {
        let path = format!("/assets?metadata={rule}");
        let asset = user.post(&path).body("image/jpeg", photo.clone()).await.expect(201).json()["asset"].clone();
        assert_eq!(asset.get("original").is_some(), has_original, "{rule}");
        assert_eq!(asset.get("metadataRemoved").is_some(), is_clean, "{rule}");
        let served = content(&user, &asset, "").await.expect(200).body;
        assert_eq!(holds_place(&served), !is_clean, "{rule}");
        if rule == "keep" {
            assert_eq!(served, photo, "byte for byte");
        }
        let status = if has_original { 200 } else { 404 };
        content(&user, &asset, "?original=true").await.expect(status);
    }
    for rule in ["", "Auto", "remove"] {
        let refused = user.post(&format!("/assets?metadata={rule}")).body("image/jpeg", photo.clone()).await;
        refused.expect_error(400, "input_validation_error", &["metadata"]);
    }
}

#[tokio::test]
async fn a_key_is_bound_to_the_rule_for_metadata() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (photo, name) = (photo_with_place(60, 40), key());
    let upload =
        async |path: &str| user.post(path).header("idempotency-key", &name).body("image/jpeg", photo.clone()).await;
    let first = upload("/assets").await.expect(201).json();
    for path in ["/assets", "/assets?metadata=auto"] {
        let replay = upload(path).await.ok();
        assert_eq!((&replay["replayed"], &replay["asset"]["id"]), (&json!(true), &first["asset"]["id"]), "{path}");
        assert_eq!(replay["asset"]["original"], first["asset"]["original"]);
    }
    for path in ["/assets?metadata=keep", "/assets?metadata=strip"] {
        upload(path).await.expect_error(409, "conflict", &[]);
    }
}

#[tokio::test]
async fn equal_photographs_are_kept_once() {
    let stack = &Stack::with_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let photo = photo_with_place(60, 40);
    let mut ids = Vec::new();
    for user in [&user, &user, &other] {
        ids.push(text(&user.upload("image/jpeg", photo.clone()).await, "/id").to_owned());
    }
    let blobs = sqlx::query_as::<_, (i64, i64)>(
        "SELECT count(DISTINCT blob_key), count(DISTINCT original_blob) FROM assets WHERE id = ANY($1)",
    );
    assert_eq!(blobs.bind(&ids).fetch_one(stack.pool()).await.expect("counts"), (1, 1));
}

#[tokio::test]
async fn both_files_count_and_go_with_the_asset() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let photo = photo_with_place(60, 40);
    let asset = user.upload("image/jpeg", photo.clone()).await;
    let both = asset["bytes"].as_i64().expect("bytes") + photo.len() as i64;
    let quota = async |bytes: &[&str]| {
        let arguments = [&["admin", "account", "quota", "--account", &user.uid][..], bytes].concat();
        stack.admin(&arguments).await.expect_success()["storedBytes"].as_i64().expect("a number")
    };
    // Each file counts at least 64 KiB.
    assert!(both < 65536, "{both}");
    let counted = 2 * 65536;
    assert_eq!(quota(&[]).await, counted);
    // Room for one of two files.
    quota(&["--bytes", &(counted + 65536).to_string()]).await;
    let refused = user.post("/assets").body("image/jpeg", photo.clone()).await;
    refused.expect_error(422, "unprocessable_entity", &["body"]);
    quota(&["--bytes", &(2 * counted).to_string()]).await;
    user.upload("image/jpeg", photo.clone()).await;
    let purge = ["admin", "asset", "purge", "--asset", text(&asset, "/handle"), "--yes"];
    assert_eq!(stack.admin(&purge).await.expect_success()["bytes"], both);
    assert_eq!(quota(&[]).await, counted);
    content(&user, &asset, "?original=true").await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_file_that_is_cut_off_is_stored_without_what_was_read() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let photo = photo_with_place(60, 40);
    // Within the image, and one byte before the end of the image.
    for length in [photo.len() - 40, photo.len() - 1] {
        let asset = user.upload("image/jpeg", photo[..length].to_vec()).await;
        assert_eq!(asset["metadataRemoved"], json!(["location"]));
        assert!(!holds_place(&content(&user, &asset, "").await.expect(200).body));
    }
}

#[tokio::test]
async fn results_of_actions_carry_nothing_of_their_inputs() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let path = "/assets?metadata=keep";
    let asset = user.post(path).body("image/jpeg", photo_with_place(60, 40)).await.expect(201).json()["asset"].clone();
    let target = user.slot(&canvas).await;
    let request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    let finished = user.finished(&job).await;
    assert_eq!(finished["status"], "succeeded", "{finished}");
    let shown = user.canvas(&canvas).await["nodes"][0]["asset"].as_str().expect("an asset").to_owned();
    let made = user.get(&format!("/assets/{shown}/content")).await.expect(200).body;
    assert!(!holds_place(&made) && !made.windows(6).any(|window| window == b"Author"));
    assert_eq!(images::size(&made), (32, 48), "turned");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_imported_photograph_is_stored_without_its_place() {
    for (setting, is_clean) in [("auto", true), ("strip", true), ("keep", false)] {
        let stack = Stack::builder().image_workers(1).receivers(1).env("CANVAS_UPLOAD_METADATA", setting).start().await;
        let shop = stack.take_receiver();
        let photo = photo_with_place(60, 40);
        shop.answer_with(move |_| Answer::status(200).header("content-type", "image/jpeg").body(photo.clone()));
        let user = stack.user().await;
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let request = json!({"canvasId": canvas, "imageUrl": shop.url("/a.jpg"), "idempotencyKey": key()});
        user.send("/images/import", &request).await.ok();
        let asset = user.get(&format!("/assets?canvasId={canvas}")).await.ok()["assets"][0].clone();
        assert_eq!(asset.get("metadataRemoved").is_some(), is_clean, "{setting}");
        assert!(asset.get("original").is_none(), "{asset}");
        assert_eq!((&asset["width"], &asset["height"]), (&json!(40), &json!(60)), "turned");
        assert_eq!(holds_place(&content(&user, &asset, "").await.expect(200).body), !is_clean, "{setting}");
        let uploaded = user.upload("image/jpeg", photo_with_place(60, 40)).await;
        assert_eq!(uploaded.get("original").is_some(), setting == "auto", "the default of uploads");
        assert_eq!(uploaded.get("metadataRemoved").is_some(), is_clean, "{setting}");
    }
}

#[tokio::test]
async fn assets_of_earlier_releases_are_cleaned_by_an_operator() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let photo = photo_with_place(60, 40);
    let old = async |path: &str, media_type: &str, bytes: Vec<u8>| {
        let asset = user.post(path).body(media_type, bytes).await.expect(201).json()["asset"].clone();
        let dated = sqlx::query("UPDATE assets SET created_at = '2026-01-01' WHERE id = $1").bind(text(&asset, "/id"));
        dated.execute(stack.pool()).await.expect("an update");
        asset
    };
    let private = old("/assets?metadata=keep", "image/jpeg", photo.clone()).await;
    let plain = old("/assets", "image/jpeg", images::jpeg(6, 4)).await;
    let (animation, frames) = images::gif_with_place();
    let animation = old("/assets?metadata=keep", "image/gif", animation).await;
    let chosen =
        user.post("/assets?metadata=keep").body("image/jpeg", photo_with_place(61, 40)).await.expect(201).json();
    let clean = async |more: &[&str]| {
        let arguments = [&["admin", "assets", "clean", "--account", &user.uid][..], more].concat();
        stack.admin(&arguments).await.expect_success()
    };
    let stored = async || {
        let quota = stack.admin(&["admin", "account", "quota", "--account", &user.uid]).await.expect_success();
        quota["storedBytes"].as_i64().expect("a number")
    };
    let before = stored().await;
    assert_eq!(clean(&["--dry-run"]).await, json!({"dryRun": true, "examined": 3, "cleaned": 2, "unreadable": 0}));
    assert!(holds_place(&content(&user, &private, "").await.expect(200).body));
    assert_eq!(clean(&[]).await, json!({"dryRun": false, "examined": 3, "cleaned": 2, "unreadable": 0}));

    let read = user.get(&format!("/assets/{}", text(&private, "/handle"))).await.ok()["asset"].clone();
    assert_eq!(read["metadataRemoved"], json!(["location"]));
    assert_eq!(read["original"], json!({"mimeType": "image/jpeg", "bytes": photo.len(), "reason": "private-metadata"}));
    let file = content(&user, &private, "").await.expect(200);
    assert!(!holds_place(&file.body) && read["bytes"] == file.body.len());
    assert_eq!(content(&user, &private, "?original=true").await.expect(200).body, photo);
    assert_eq!(images::size(&content(&user, &private, "?w=64").await.expect(200).body), (40, 60));
    assert!(content(&user, &animation, "").await.expect(200).body == frames);
    // Each original counts at least 64 KiB.
    assert_eq!(stored().await, before + 2 * 65536);
    assert!(user.get(&format!("/assets/{}", text(&plain, "/handle"))).await.ok()["asset"].get("original").is_none());
    assert!(holds_place(&content(&user, &chosen["asset"], "").await.expect(200).body), "somebody chose so");
    assert_eq!(clean(&[]).await, json!({"dryRun": false, "examined": 1, "cleaned": 0, "unreadable": 0}));
    stack.admin(&["admin", "asset", "clean", "--account", "nobody@example.com"]).await.expect_refusal();
}
