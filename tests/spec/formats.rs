//! Uploads in formats that are not kept (docs/reference/assets.md#converted-formats).

use e2e::api::{key, text};
use e2e::images::{self, avif};
use e2e::{Part, Stack, User};
use serde_json::{Value, json};

async fn put(user: &User, path: &str, name: &str, bytes: Vec<u8>) -> e2e::Reply {
    user.post(path).header("x-service-file-name", name).body("image/avif", bytes).await
}

async fn content(user: &User, asset: &Value, query: &str) -> e2e::Reply {
    user.get(&format!("/assets/{}/content{query}", text(asset, "/handle"))).await
}

#[tokio::test]
async fn an_avif_becomes_a_jpeg_and_its_owner_keeps_the_file() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let file = avif(avif::TURNED);
    let made = put(&user, &format!("/assets?canvasId={canvas}"), "IMG.1.avif", file.clone()).await.expect(201).json();
    let asset = &made["asset"];
    assert_eq!((text(asset, "/mimeType"), text(asset, "/name")), ("image/jpeg", "IMG.1.jpg"));
    assert_eq!((&asset["width"], &asset["height"]), (&json!(24), &json!(40)), "turned");
    assert_eq!(asset["original"], json!({"mimeType": "image/avif", "bytes": file.len(), "reason": "converted"}));
    assert!(asset.get("metadataRemoved").is_none(), "{asset}");
    let served = content(&user, asset, "").await.expect(200);
    assert_eq!((images::size(&served.body), served.header("content-type")), ((24, 40), Some("image/jpeg")));
    assert_eq!(asset["bytes"], served.body.len());
    let original = content(&user, asset, "?original=true").await.expect(200);
    assert_eq!(original.header("content-type"), Some("image/avif"));
    assert_eq!(original.body, file, "byte for byte");
    let node = user.canvas(&canvas).await["nodes"][0].clone();
    assert_eq!((&node["asset"], text(&node, "/title")), (&asset["handle"], "IMG.1.jpg"));
    // Both files count, each at least 64 KiB.
    let quota = stack.admin(&["admin", "account", "quota", "--account", &user.uid]).await.expect_success();
    assert!(quota["storedBytes"].as_i64() >= Some(2 * 65536), "{quota}");
    user.finished(&{
        let target = user.slot(&canvas).await;
        let request = user.resize_request(&canvas, &target, text(asset, "/handle")).await;
        user.send("/actions/resize/runs", &request).await.expect(202).json()
    })
    .await;
}

#[tokio::test]
async fn alpha_origin_and_the_rule_for_metadata_are_kept() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let transparent = put(&user, "/assets", "a.avif", avif(avif::TRANSPARENT)).await.expect(201).json();
    assert_eq!((text(&transparent, "/asset/mimeType"), text(&transparent, "/asset/name")), ("image/png", "a.png"));
    let generated = put(&user, "/assets", "b", avif(avif::GENERATED)).await.expect(201).json();
    assert_eq!(text(&generated, "/asset/aiGenerated"), "yes");
    assert_eq!((text(&generated, "/asset/originFrom"), text(&generated, "/asset/name")), ("metadata", "b"));
    for (rule, has_original) in [("strip", false), ("keep", true), ("auto", true)] {
        let made = put(&user, &format!("/assets?metadata={rule}"), "", avif(avif::TURNED)).await.expect(201).json();
        assert_eq!(made["asset"].get("original").is_some(), has_original, "{rule}");
        assert_eq!(text(&made, "/asset/name"), "upload.jpg");
    }
    let undeclared = user.post("/assets").body("application/octet-stream", avif(avif::TURNED)).await;
    assert_eq!(text(&undeclared.expect(201).json(), "/asset/mimeType"), "image/jpeg");
}

#[tokio::test]
async fn an_avif_is_checked_before_it_is_converted() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = avif(avif::TURNED);
    let sized = |width: u32, height: u32| {
        let at = file.windows(4).position(|kind| kind == b"ispe").expect("a size") + 8;
        let mut file = file.clone();
        file[at..at + 8].copy_from_slice(&[width.to_be_bytes(), height.to_be_bytes()].concat());
        file
    };
    let data = file.windows(4).position(|kind| kind == b"mdat").expect("data");
    for (bytes, what) in [
        (sized(30_001, 1), "too long a side"),
        (sized(10_001, 10_000), "too many pixels"),
        (sized(0, 24), "no pixels"),
        (sized(10_000, 10_000), "another size than that of its frame"),
        (file[..40].to_vec(), "a part of the header"),
        (file[..data + 20].to_vec(), "a part of the data"),
    ] {
        let refused = put(&user, "/assets", "", bytes).await;
        assert_eq!(refused.status, 422, "{what}: {refused}");
        refused.expect_error(422, "unprocessable_entity", &["body"]);
    }
    let wrong = user.post("/assets").body("image/png", file).await;
    wrong.expect_error(415, "unsupported_media_type", &[]);
    put(&user, "/assets", "", images::png(4, 4)).await.expect_error(415, "unsupported_media_type", &[]);
    assert_eq!(user.get("/assets").await.ok()["assets"], json!([]));
}

#[tokio::test]
async fn a_damaged_avif_is_refused_whatever_it_does_to_its_decoder() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = avif(avif::TRANSPARENT);
    let data = file.windows(4).position(|kind| kind == b"mdat").expect("data") + 4;
    let mut refused = 0;
    for at in (data..file.len() - 16).step_by(17) {
        let mut damaged = avif(avif::TRANSPARENT);
        damaged[at] ^= 0xff;
        let status = put(&user, "/assets", "", damaged).await.status;
        assert!([201, 422].contains(&status), "{at}: {status}");
        refused += usize::from(status == 422);
    }
    assert!(refused > 0);
    put(&user, "/assets", "", file).await.expect(201);
}

#[tokio::test]
async fn heic_is_refused_with_a_remedy() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let file = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic\0\0\0\x08free".to_vec();
    for media_type in ["image/heic", "image/heif", "application/octet-stream"] {
        let refused = user.post("/assets").body(media_type, file.clone()).await;
        let error = refused.expect(415).json()["error"].clone();
        assert_eq!((text(&error, "/code"), text(&error, "/details/format")), ("unsupported_media_type", "heic"));
        assert!(text(&error, "/details/remedy").contains("heif-dec"), "{error}");
    }
    let video = b"\0\0\0\x18ftypisom\0\0\0\0mp41avc1\0\0\0\x08free".to_vec();
    let refused = user.post("/assets").body("application/octet-stream", video).await.expect(415).json();
    assert!(refused["error"].get("details").is_none(), "{refused}");
}

#[tokio::test]
async fn heic_is_converted_where_the_operator_has_set_a_decoder() {
    let stack = Stack::builder().image_workers(1).env("CANVAS_HEIF_COMMAND", images::heif_command()).start().await;
    let user = stack.user().await;
    let put = async |media_type: &str, file: Vec<u8>| {
        user.post("/assets").header("x-service-file-name", "IMG_1.HEIC").body(media_type, file).await
    };
    let file = images::heic(40, 24, &images::png(40, 24));
    for media_type in ["image/heic", "image/heif", "application/octet-stream"] {
        let made = put(media_type, file.clone()).await.expect(201).json();
        let asset = &made["asset"];
        assert_eq!((text(asset, "/mimeType"), text(asset, "/name")), ("image/jpeg", "IMG_1.jpg"));
        assert_eq!((&asset["width"], &asset["height"]), (&json!(40), &json!(24)));
        assert_eq!(asset["original"], json!({"mimeType": "image/heic", "bytes": file.len(), "reason": "converted"}));
        assert_eq!(images::size(&content(&user, asset, "").await.expect(200).body), (40, 24));
        let original = content(&user, asset, "?original=true").await.expect(200);
        assert_eq!((original.header("content-type"), original.body == file), (Some("image/heic"), true));
    }
    let transparent = images::heic(40, 24, &images::transparent_png(40, 24));
    let made = put("image/heic", transparent.clone()).await.expect(201).json();
    assert_eq!((text(&made, "/asset/mimeType"), text(&made, "/asset/name")), ("image/png", "IMG_1.png"));
    let stripped = user.post("/assets?metadata=strip").body("image/heic", transparent).await.expect(201).json();
    assert!(stripped["asset"].get("original").is_none(), "{stripped}");
    let png = images::png(40, 24);
    for (bytes, what) in [
        (images::heic(30_001, 1, &png), "too long a side"),
        (images::heic(10_001, 10_000, &png), "too many pixels"),
        (images::heic(0, 24, &png), "no pixels"),
        (images::heic(40, 23, &png), "more pixels than it declares"),
        (images::heic(40, 24, &png[..60]), "a part of the result"),
        (images::heic(40, 24, b""), "no result"),
        (images::heic(40, 24, &images::jpeg(40, 24)), "a result of another format"),
        (file[..40].to_vec(), "a part of the header"),
    ] {
        let refused = put("image/heic", bytes).await;
        assert_eq!(refused.status, 422, "{what}: {refused}");
        refused.expect_error(422, "unprocessable_entity", &["body"]);
    }
    put("image/heic", avif(avif::TURNED)).await.expect_error(415, "unsupported_media_type", &[]);
    put("image/avif", file).await.expect_error(415, "unsupported_media_type", &[]);
}

#[tokio::test]
async fn an_image_of_several_frames_says_so() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    for (frames, animated) in [(1, None), (2, Some(true))] {
        let file = images::animated_gif(frames);
        let asset = user.upload("image/gif", file.clone()).await;
        assert_eq!(asset.get("animated").map(|it| *it == true), animated, "{asset}");
        let again = user.upload("image/gif", file.clone()).await;
        assert_eq!(again.get("animated"), asset.get("animated"), "the same file");
        let read = user.get(&format!("/assets/{}", text(&asset, "/handle"))).await.ok();
        assert_eq!(read["asset"].get("animated"), asset.get("animated"));
        let listed = user.get("/assets?limit=1").await.ok();
        assert_eq!(listed["assets"][0].get("animated"), asset.get("animated"));
        assert_eq!(content(&user, &asset, "").await.expect(200).body, file, "stored as it came");
        content(&user, &asset, "?w=64").await.expect(200);
    }
}

#[tokio::test]
async fn after_55_seconds_a_conversion_is_503_and_the_key_resumes() {
    let stack = &Stack::builder().image_workers(1).start().await;
    let user = stack.user().await;
    let (file, name) = (avif(avif::TURNED), key());
    let upload = async || user.post("/assets").header("idempotency-key", &name).body("image/avif", file.clone()).await;
    stack.pause(Part::IMAGE_WORKER);
    let began = std::time::Instant::now();
    let late = upload().await;
    assert!(late.header("retry-after").is_some(), "{late}");
    late.expect_error(503, "service_unavailable", &[]);
    assert!((54..65).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    stack.resume(Part::IMAGE_WORKER);
    let made = upload().await.expect(201).json();
    let again = upload().await.ok();
    assert_eq!((&again["replayed"], &again["asset"]["id"]), (&json!(true), &made["asset"]["id"]));
    assert_eq!(user.get("/assets").await.ok()["assets"].as_array().map(Vec::len), Some(1));
}
