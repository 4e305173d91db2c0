//! `POST /images/import` (docs/reference/imports.md#import-an-image).

use std::time::Duration;

use e2e::api::{key, text};
use e2e::{Stack, images};
use serde_json::json;
use testkit::Answer;

use super::{File, canvas, file, html, image_request, import_image, nodes, png, serve};

#[tokio::test]
async fn an_image_is_brought_as_it_is() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let bytes = images::png(400, 300);
    serve(&shop, vec![png("/media/shoe.png", bytes.clone())]);
    let canvas = canvas(&user).await;
    let url = shop.url("/media/shoe.png?v=1");
    let import = import_image(&user, &canvas, &url).await.ok();
    let handle = format!("canvas:{}:{canvas}", user.uid);
    assert_eq!((text(&import, "/canvasId"), &import["replayed"]), (handle.as_str(), &json!(false)));
    let image = &import["image"];
    assert_eq!((text(image, "/mediaType"), text(image, "/sourceImageUrl")), ("image/png", url.as_str()));
    assert_eq!((&image["width"], &image["height"], &image["bytes"]), (&json!(400), &json!(300), &json!(bytes.len())));
    let preview = text(image, "/previewUrl");
    assert_eq!(text(image, "/markdown"), format!(r"![shoe\.png]({preview})"));
    let shown = stack.anonymous().get(preview).await.expect(200);
    assert_eq!(shown.body, bytes, "the stored bytes are the received bytes");
    let now = user.canvas(&canvas).await;
    assert_eq!((&import["canvasRevision"], text(&import, "/canvasUrl").is_empty()), (&now["revision"], false));
    let node = &now["nodes"][0];
    assert_eq!(
        (&node["handle"], &node["asset"], &node["title"]),
        (&image["nodeId"], &image["assetId"], &json!("shoe.png"))
    );
    assert_eq!(
        (&node["width"], &node["height"], &node["position"]),
        (&json!(320.0), &json!(268.0), &json!({"x": 0.0, "y": 0.0}))
    );
    let metadata = &node["metadata"];
    assert_eq!((&metadata["createdBy"], &metadata["source"]), (&json!("agent"), &json!({"imageUrl": url})));
    let provenance = &metadata["provenance"];
    assert_eq!((&provenance["kind"], &provenance["sourceUrl"]), (&json!("import"), &json!(url)));
    assert!(provenance["createdAt"].is_string());
    let activity = &user.get(&format!("/canvases/{canvas}")).await.ok()["activity"][0];
    assert_eq!((&activity["type"], &activity["nodeIds"]), (&json!("references.imported"), &json!([node["id"]])));
    assert_eq!(activity["revision"], now["revision"]);
    // The command line names what it brought.
    let stdout = stack.shell(&user).run(&["import", "image", &url, "--on", &canvas]).await.expect(0).stdout;
    let now = user.canvas(&canvas).await;
    let node = now["nodes"].as_array().and_then(|nodes| nodes.last()).expect("a node");
    let expected = [text(node, "/handle"), text(node, "/asset"), "revision", text(&now, "/revision")];
    assert_eq!(stdout.split_whitespace().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_bytes_say_what_an_image_is() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(
        &shop,
        vec![
            file("/jpeg", "image/png", images::jpeg(30, 20)),
            file("/webp", "text/html", images::webp(30, 20)),
            file("/gif", "application/octet-stream", images::gif()),
            file("/turned", "image/jpeg", images::turned_jpeg(30, 20, 6)),
        ],
    );
    let canvas = canvas(&user).await;
    for (path, media_type, width) in [
        ("/jpeg", "image/jpeg", 30),
        ("/webp", "image/webp", 30),
        ("/gif", "image/gif", 1),
        ("/turned", "image/jpeg", 20),
    ] {
        let import = import_image(&user, &canvas, &shop.url(path)).await.ok();
        assert_eq!(
            (text(&import, "/image/mediaType"), &import["image"]["width"]),
            (media_type, &json!(width)),
            "{path}"
        );
    }
    let review = user.get(&format!("/canvases/{canvas}/review")).await.ok();
    assert_eq!(review["validation"]["findings"], json!([]), "each at a spot of its own");
}

#[tokio::test]
async fn an_avif_is_converted_and_no_original_is_kept() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let avif = images::avif(images::avif::TURNED);
    serve(
        &shop,
        vec![
            file("/shoe.avif", "image/avif", avif.clone()),
            file("/clear", "text/plain", images::avif(images::avif::TRANSPARENT)),
            file("/made.avif", "image/avif", images::avif(images::avif::GENERATED)),
            file("/cut.avif", "image/avif", avif[..avif.len() / 2].to_vec()),
        ],
    );
    let canvas = canvas(&user).await;
    for (path, media_type, name) in [
        ("/shoe.avif", "image/jpeg", "shoe.jpg"),
        ("/clear", "image/png", "clear.png"),
        ("/made.avif", "image/jpeg", "made.jpg"),
    ] {
        let import = import_image(&user, &canvas, &shop.url(path)).await.ok();
        assert_eq!(text(&import, "/image/mediaType"), media_type, "{path}");
        let asset = user.get(&format!("/assets/{}", text(&import, "/image/assetId"))).await.ok()["asset"].clone();
        assert_eq!((text(&asset, "/name"), asset.get("original")), (name, None), "{path}");
        assert_eq!(asset["aiGenerated"], if path == "/made.avif" { "yes" } else { "unknown" }, "{path}");
        let served = user.get(&format!("/assets/{}/content", text(&asset, "/handle"))).await.expect(200);
        let sides = (asset["width"].as_u64(), asset["height"].as_u64());
        let (width, height) = images::size(&served.body);
        assert_eq!(
            (sides, served.body.len()),
            ((Some(width.into()), Some(height.into())), import["image"]["bytes"].as_u64().expect("a size") as usize)
        );
    }
    let import = import_image(&user, &canvas, &shop.url("/shoe.avif")).await.ok();
    assert_eq!((&import["image"]["width"], &import["image"]["height"]), (&json!(24), &json!(40)), "turned");
    // The same file as that of an upload.
    let upload = user.post("/assets").body("image/avif", avif).await.expect(201).json();
    assert_eq!(upload["asset"]["bytes"], import["image"]["bytes"]);
    let cut = import_image(&user, &canvas, &shop.url("/cut.avif")).await;
    cut.expect_error(422, "unprocessable_entity", &["imageUrl"]);
}

#[tokio::test]
async fn heic_is_refused_with_a_remedy_or_converted_by_the_decoder_of_the_operator() {
    for command in ["", images::heif_command()] {
        let stack = Stack::builder().image_workers(1).receivers(1).env("CANVAS_HEIF_COMMAND", command).start().await;
        let (user, shop) = (stack.user().await, stack.take_receiver());
        serve(&shop, vec![file("/shoe.heic", "image/heic", images::heic(40, 24, &images::png(40, 24)))]);
        let canvas = canvas(&user).await;
        let import = import_image(&user, &canvas, &shop.url("/shoe.heic")).await;
        if command.is_empty() {
            let error = import.expect(422).json()["error"].clone();
            assert_eq!((text(&error, "/fields/0/field"), text(&error, "/details/format")), ("imageUrl", "heic"));
            assert!(text(&error, "/details/remedy").contains("heif-dec"), "{error}");
        } else {
            assert_eq!(text(&import.ok(), "/image/mediaType"), "image/jpeg");
        }
    }
}

#[tokio::test]
async fn title_and_place_are_as_asked_for() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(&shop, vec![png("/a.png", images::png(10, 10))]);
    let canvas = canvas(&user).await;
    let mut request = image_request(&canvas, &shop.url("/a.png"));
    request["title"] = json!("a](b) *c*");
    request["x"] = json!(-100.5);
    request["y"] = json!(70);
    let import = user.send("/images/import", &request).await.ok();
    assert!(text(&import, "/image/markdown").starts_with(r"![a\]\(b\) \*c\*]("), "{import}");
    let node = &nodes(&user, &canvas).await[0];
    assert_eq!((&node["title"], &node["position"]), (&json!("a](b) *c*"), &json!({"x": -100.5, "y": 70.0})));
}

#[tokio::test]
async fn a_key_stands_for_one_import() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(&shop, vec![png("/a.png", images::png(10, 10))]);
    let canvas = canvas(&user).await;
    let mut request = image_request(&canvas, &shop.url("/a.png"));
    let first = user.send("/images/import", &request).await.ok();
    request["canvasId"] = json!(format!("canvas:{}:{canvas}", user.uid));
    let second = user.send("/images/import", &request).await.ok();
    assert_eq!(second["replayed"], true);
    for same in ["canvasId", "canvasRevision"] {
        assert_eq!(first[same], second[same], "{same}");
    }
    for same in ["assetId", "nodeId", "bytes"] {
        assert_eq!(first["image"][same], second["image"][same], "{same}");
    }
    assert_eq!((shop.requests().len(), nodes(&user, &canvas).await.len()), (1, 1));
    request["title"] = json!("another");
    user.send("/images/import", &request).await.expect_error(409, "conflict", &[]);
    let page =
        json!({"canvasId": canvas, "productPageUrl": shop.url("/a.png"), "idempotencyKey": request["idempotencyKey"]});
    user.send("/product-references/import", &page).await.expect_error(409, "conflict", &[]);
}

#[tokio::test]
async fn equal_requests_at_once_are_one_import() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let answer = Answer::status(200).body(images::png(10, 10)).after(Duration::from_millis(300));
    shop.answer(answer);
    let canvas = canvas(&user).await;
    let request = image_request(&canvas, &shop.url("/a.png"));
    let send = || async { user.send("/images/import", &request).await.ok() };
    let (one, two, three) = tokio::join!(send(), send(), send());
    let replayed = [&one, &two, &three].iter().filter(|reply| reply["replayed"] == true).count();
    assert_eq!((replayed, shop.requests().len(), nodes(&user, &canvas).await.len()), (2, 1, 1));
    assert!(one["image"]["nodeId"] == two["image"]["nodeId"] && two["image"]["nodeId"] == three["image"]["nodeId"]);
    // A failure is returned to every waiting request.
    shop.answer(Answer::status(500).after(Duration::from_millis(300)));
    let request = image_request(&canvas, &shop.url("/b.png"));
    let send = || async { user.send("/images/import", &request).await.status };
    assert_eq!(tokio::join!(send(), send(), send()), (502, 502, 502));
}

#[tokio::test]
async fn an_editor_brings_images_for_the_owner() {
    let stack = &Stack::with_workers().await;
    let (owner, editor, shop) = (stack.user().await, stack.user().await, stack.take_receiver());
    serve(&shop, vec![png("/a.png", images::png(10, 10))]);
    let canvas = canvas(&owner).await;
    stack.share(&owner, &canvas, &editor.uid, "editor").await;
    let handle = format!("canvas:{}:{canvas}", owner.uid);
    let import = import_image(&editor, &handle, &shop.url("/a.png")).await.ok();
    assert!(text(&import, "/image/assetId").starts_with(&format!("asset:{}:", owner.uid)));
    assert_eq!(nodes(&owner, &canvas).await[0]["handle"], import["image"]["nodeId"]);
}

#[tokio::test]
async fn what_is_no_supported_image_is_422() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(
        &shop,
        vec![
            file("/svg", "image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
            html("/html", "<html><img src=a.png></html>"),
            png("/broken", images::broken_png(30, 30)),
            png("/cut", images::png(64, 64)[..100].to_vec()),
            png("/empty", Vec::new()),
            png("/huge", images::broken_png(30_001, 3)),
        ],
    );
    let canvas = canvas(&user).await;
    for path in ["/svg", "/html", "/broken", "/cut", "/empty", "/huge"] {
        let reply = import_image(&user, &canvas, &shop.url(path)).await;
        reply.expect_error(422, "unprocessable_entity", &["imageUrl"]);
    }
    assert!(nodes(&user, &canvas).await.is_empty(), "nothing was created");
}

#[tokio::test]
async fn what_is_too_large_is_422() {
    let stack = &Stack::with_workers().await;
    const LIMIT: usize = 52_428_800;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let mut most = images::png(30, 20);
    // Bytes after the end of a PNG are ignored.
    most.resize(LIMIT, 0);
    let over = [&most[..], b"x"].concat();
    serve(&shop, vec![png("/most", most), png("/over", over), File { path: "/endless", answer: Answer::endless() }]);
    let canvas = canvas(&user).await;
    import_image(&user, &canvas, &shop.url("/most")).await.ok();
    for path in ["/over", "/endless"] {
        let reply = import_image(&user, &canvas, &shop.url(path)).await;
        reply.expect_error(422, "unprocessable_entity", &["imageUrl"]);
    }
}

#[tokio::test]
async fn what_goes_beyond_the_storage_quota_is_422() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(&shop, vec![png("/shoe.png", images::png(320, 240))]);
    let canvas = canvas(&user).await;
    let quota = async |bytes: usize| {
        let set = ["admin", "account", "quota", "--account", &user.uid, "--bytes", &bytes.to_string()];
        stack.admin(&set).await.expect_success();
    };
    // The canvas counts 64 KiB, and so does the image.
    quota(2 * 65536 - 1).await;
    let refused = import_image(&user, &canvas, &shop.url("/shoe.png")).await;
    refused.expect_error(422, "unprocessable_entity", &["canvasId"]);
    assert!(nodes(&user, &canvas).await.is_empty());
    quota(2 * 65536).await;
    import_image(&user, &canvas, &shop.url("/shoe.png")).await.ok();
}

#[tokio::test]
async fn an_error_of_the_other_side_is_502_and_frees_the_key() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let canvas = canvas(&user).await;
    let request = image_request(&canvas, &shop.url("/a.png"));
    let gzip = Answer::status(200).header("content-encoding", "gzip").body("x");
    for answer in
        [Answer::status(404), Answer::status(500), Answer::status(403), Answer::close(), gzip, Answer::status(302)]
    {
        shop.answer(answer);
        user.send("/images/import", &request).await.expect_error(502, "upstream_error", &[]);
    }
    shop.answer(Answer::status(200).body(images::png(10, 10)));
    let import = user.send("/images/import", &request).await.ok();
    assert_eq!(import["replayed"], false, "failures do not consume the key");
    let refused = import_image(&user, &canvas, "https://absent.invalid/a.png").await;
    assert!(matches!(refused.status, 422 | 502), "{refused}");
}

#[tokio::test]
async fn three_redirects_are_followed_and_vetted() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let image = images::png(10, 10);
    let port = shop.port();
    let elsewhere = |path: &'static str, to: String| File { path, answer: Answer::redirect(&to) };
    serve(
        &shop,
        vec![
            elsewhere("/1", "/2#part".to_owned()),
            File { path: "/2", answer: Answer::status(308).header("location", &shop.url("/3")) },
            elsewhere("/3", "end.png".to_owned()),
            elsewhere("/0", "/1".to_owned()),
            png("/end.png", image),
            elsewhere("/http", format!("http://127.0.0.1:{port}/end.png")),
            elsewhere("/port", "https://127.0.0.1:1/end.png".to_owned()),
            elsewhere("/six", "https://[::1]:8443/end.png".to_owned()),
            elsewhere("/meta", "https://169.254.169.254/latest/meta-data".to_owned()),
            elsewhere("/name", format!("https://localhost:{port}/end.png")),
            elsewhere("/user", format!("https://a:b@127.0.0.1:{port}/end.png")),
            elsewhere("/data", "data:image/png;base64,AA".to_owned()),
        ],
    );
    let canvas = canvas(&user).await;
    let import = import_image(&user, &canvas, &shop.url("/1")).await.ok();
    assert_eq!(text(&import, "/image/sourceImageUrl"), shop.url("/end.png"));
    for path in ["/0", "/http", "/port", "/six", "/meta", "/name", "/user", "/data"] {
        let message = import_image(&user, &canvas, &shop.url(path)).await.expect_error(
            422,
            "unprocessable_entity",
            &["imageUrl"],
        );
        assert!(!message.contains("127.0.0.1") && !message.contains("169.254"), "{path}: {message}");
    }
}

#[tokio::test]
async fn an_asset_that_was_brought_is_an_asset_like_any_other() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(&shop, vec![png("/a.png", images::png(64, 48))]);
    let canvas = canvas(&user).await;
    let import = import_image(&user, &canvas, &shop.url("/a.png")).await.ok();
    let asset = text(&import, "/image/assetId");
    let listed = user.get(&format!("/assets?canvasId={canvas}")).await.ok();
    assert_eq!(
        (&listed["assets"][0]["handle"], &listed["assets"][0]["node"]),
        (&json!(asset), &import["image"]["nodeId"])
    );
    let target = user.slot(&canvas).await;
    let request = user.resize_request(&canvas, &target, asset).await;
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    let done = user.finished(&job).await;
    assert_eq!((&done["status"], &done["images"][0]["width"]), (&json!("succeeded"), &json!(32)));
}

#[tokio::test]
async fn a_url_that_is_not_public_is_400_in_every_disguise() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = canvas(&user).await;
    for url in [
        "http://example.com/a.png",
        "ftp://example.com/a.png",
        "https://user@example.com/a.png",
        "https://user:pass@example.com/a.png",
        "https://example.com/a.png#part",
        "https://example.com:0/a.png",
        "https://example.com:80/a.png",
        "https://127.0.0.1/a.png",
        "https://2130706433/a.png",
        "https://0x7f.1/a.png",
        "https://0177.0.0.1/a.png",
        "https://127.1/a.png",
        "https://0/a.png",
        "https://10.0.0.1/a.png",
        "https://172.16.0.1/a.png",
        "https://192.168.1.1/a.png",
        "https://100.64.0.1/a.png",
        "https://169.254.169.254/latest/meta-data",
        "https://192.0.2.1/a.png",
        "https://224.0.0.1/a.png",
        "https://255.255.255.255/a.png",
        "https://[::1]/a.png",
        "https://[::]/a.png",
        "https://[::ffff:127.0.0.1]/a.png",
        "https://[64:ff9b::7f00:1]/a.png",
        "https://[2002:7f00:1::]/a.png",
        "https://[fe80::1]/a.png",
        "https://[fd00::1]/a.png",
        "https://localhost/a.png",
        "https://a.localhost/a.png",
        "https://LOCALHOST./a.png",
        "https://printer.local/a.png",
        "https://vault.internal/a.png",
        "https://nas.home.arpa/a.png",
        "https://intranet/a.png",
        "https://①②⑦.0.0.1/a.png",
        "https:/example.com/a.png",
        "https:\\\\example.com\\a.png",
        "https://exa mple.com/a.png",
        "https://%31%32%37.0.0.1/a.png",
        "not a url",
        "",
    ] {
        let reply = import_image(&user, &canvas, url).await;
        reply.expect_error(400, "input_validation_error", &["imageUrl"]);
        let reply = super::import_product(&user, &canvas, url, json!({})).await;
        reply.expect_error(400, "input_validation_error", &["productPageUrl"]);
    }
}

#[tokio::test]
async fn fields_have_their_lengths_and_ranges() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = canvas(&user).await;
    let image = |field: &str, value| {
        let mut request = image_request(&canvas, "https://127.0.0.1/a.png");
        request[field] = value;
        request
    };
    // The URL is invalid in each request, so that no valid request is sent. Other violations are reported with it.
    for (field, value, right) in [
        ("title", json!("t".repeat(160)), true),
        ("title", json!("t".repeat(161)), false),
        ("title", json!(""), false),
        ("idempotencyKey", json!("12345678"), true),
        ("idempotencyKey", json!("1234567"), false),
        ("idempotencyKey", json!("k".repeat(200)), true),
        ("idempotencyKey", json!("k".repeat(201)), false),
        ("x", json!(10_000_000), true),
        ("x", json!(10_000_001), false),
        ("y", json!(-10_000_000), true),
        ("y", json!("1"), false),
        ("z", json!(1), false),
    ] {
        let reply = user.send("/images/import", &image(field, value.clone())).await.expect(400);
        let names: Vec<_> = reply.json()["error"]["fields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| entry["field"].clone())
            .collect();
        assert_eq!(names.contains(&json!(field)), !right, "{field} {value}: {reply}");
    }
    for (field, value, right) in [
        ("variantSelector", json!("a=b"), true),
        ("variantSelector", json!("a=="), true),
        ("variantSelector", json!("=ab"), false),
        ("variantSelector", json!("ab"), false),
        ("variantSelector", json!("abc"), false),
        ("variantSelector", json!(format!("a={}", "b".repeat(298))), true),
        ("variantSelector", json!(format!("a={}", "b".repeat(299))), false),
        ("title", json!("t".repeat(160)), true),
        ("title", json!("t".repeat(161)), false),
        ("baseRevision", json!("r"), false),
    ] {
        let request = super::product_request(&canvas, "https://127.0.0.1/a", json!({field: value}));
        let reply = user.send("/product-references/import", &request).await.expect(400);
        let names: Vec<_> = reply.json()["error"]["fields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| entry["field"].clone())
            .collect();
        assert_eq!(names.contains(&json!(field)), !right, "{field} {value}: {reply}");
    }
    let long = format!("https://example.com/{}", "a".repeat(4077));
    let reply = import_image(&user, "absent", &long).await;
    reply.expect_error(400, "input_validation_error", &["imageUrl"]);
    import_image(&user, "absent", &long[..4096]).await.expect_error(404, "not_found", &[]);
    let missing = user.send("/images/import", &json!({"idempotencyKey": key()})).await;
    missing.expect_error(400, "input_validation_error", &["canvasId", "imageUrl"]);
}
