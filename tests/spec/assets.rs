//! Assets and uploads (docs/reference/assets.md).

use e2e::api::{key, text};
use e2e::{Stack, images};
use serde_json::{Value, json};
use uuid::Uuid;

const UPLOAD_MAX: usize = 52_428_800;

#[tokio::test]
async fn each_format_is_stored_as_it_came() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for (media_type, bytes, extension) in [
        ("image/png", images::png(6, 4), "png"),
        ("image/png", images::transparent_png(6, 4), "png"),
        ("image/jpeg", images::jpeg(6, 4), "jpg"),
        ("image/webp", images::webp(6, 4), "webp"),
        ("image/gif", images::gif(), "gif"),
    ] {
        for declared in [media_type, "application/octet-stream"] {
            let reply = user.post("/assets").body(declared, bytes.clone()).await.expect(201);
            let (location, asset) =
                (reply.header("location").expect("a location").to_owned(), reply.json()["asset"].clone());
            let (id, (width, height)) = (text(&asset, "/id"), images::size(&bytes));
            assert_eq!(text(&asset, "/handle"), format!("asset:{}:{id}", user.uid));
            assert_eq!((&asset["ownerUid"], &asset["kind"]), (&json!(user.uid), &json!("image")));
            assert_eq!(
                (&asset["mimeType"], &asset["name"]),
                (&json!(media_type), &json!(format!("upload.{extension}")))
            );
            assert_eq!(
                (&asset["width"], &asset["height"], &asset["bytes"]),
                (&json!(width), &json!(height), &json!(bytes.len()))
            );
            assert!((1..=900).contains(&asset["previewExpiresInSeconds"].as_i64().expect("a number")));
            assert!(asset.get("node").is_none());
            assert_eq!(user.get(&location).await.ok()["asset"]["id"], id);
            let stored = stack.anonymous().get(text(&asset, "/previewUrl")).await.expect(200);
            assert_eq!(stored.header("content-type"), Some(media_type));
            assert_eq!(stored.body, bytes, "unchanged");
        }
    }
}

#[tokio::test]
async fn another_name_of_a_type_is_that_type() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for declared in ["image/jpg", "image/pjpeg", "Image/JPG; charset=binary"] {
        let reply = user.post("/assets").body(declared, images::jpeg(6, 4)).await.expect(201);
        assert_eq!(reply.json()["asset"]["mimeType"], "image/jpeg", "{declared}");
        user.post("/assets").body(declared, images::png(4, 4)).await.expect_error(415, "unsupported_media_type", &[]);
    }
}

#[tokio::test]
async fn a_type_that_disagrees_with_the_bytes_is_415() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for (declared, bytes) in [
        ("image/png", images::jpeg(4, 4)),
        ("image/jpeg", images::png(4, 4)),
        ("image/gif", images::webp(4, 4)),
        ("image/webp", images::gif()),
        ("image/png", b"not a picture at all".to_vec()),
        ("application/octet-stream", b"not a picture at all".to_vec()),
        ("application/octet-stream", b"BM\x1a\0\0\0\0\0\0\0".to_vec()),
        ("application/octet-stream", b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec()),
        ("application/octet-stream", vec![0]),
        ("text/plain", images::png(4, 4)),
        ("image/svg+xml", images::png(4, 4)),
        ("application/json", b"{}".to_vec()),
    ] {
        user.post("/assets").body(declared, bytes).await.expect_error(415, "unsupported_media_type", &[]);
    }
    user.post("/assets").untyped(images::png(4, 4)).await.expect_error(415, "unsupported_media_type", &[]);
    user.post("/assets").body("image/png; charset=binary", images::png(4, 4)).await.expect(201);
}

#[tokio::test]
async fn a_header_that_cannot_be_parsed_is_422() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let mut flipped = images::png(4, 4);
    // The checksum of the PNG header becomes invalid.
    flipped[20] ^= 1;
    for (media_type, bytes) in [
        ("image/png", images::png(4, 4)[..20].to_vec()),
        ("image/png", flipped),
        ("image/jpeg", images::jpeg(4, 4)[..20].to_vec()),
        ("image/webp", images::webp(4, 4)[..16].to_vec()),
        ("image/gif", b"GIF89a\x01".to_vec()),
        ("application/octet-stream", images::png(4, 4)[..8].to_vec()),
    ] {
        let refused = user.post("/assets").body(media_type, bytes).await.expect(422);
        assert_eq!(refused.json()["error"]["code"], "unprocessable_entity", "{media_type}");
    }
}

#[tokio::test]
async fn images_have_at_most_100_megapixels_and_30000_a_side() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for (width, height, status) in [
        (10_000, 10_000, 201),
        (10_001, 10_000, 422),
        (30_000, 3_333, 201),
        (30_000, 3_334, 422),
        (30_001, 1, 422),
        (1, 30_001, 422),
        (u32::MAX, u32::MAX, 422),
        (0, 5, 422),
    ] {
        let reply = user.post("/assets").body("image/png", images::broken_png(width, height)).await;
        assert_eq!(reply.status, status, "{width} × {height}: {reply}");
    }
}

#[tokio::test]
async fn an_empty_upload_is_400() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for media_type in ["image/png", "application/octet-stream"] {
        let refused = user.post("/assets").body(media_type, "").await.expect(400);
        assert_eq!(refused.json()["error"]["code"], "input_validation_error");
        user.post("/assets").chunked(media_type, Vec::new()).await.expect(400);
    }
    let refused = user.post("/assets?canvasId=a%20b").body("image/png", "").await;
    refused.expect_error(400, "input_validation_error", &["body", "canvasId"]);
}

#[tokio::test]
async fn an_upload_has_at_most_50_mebibytes() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let mut bytes = images::broken_png(8, 8);
    bytes.resize(UPLOAD_MAX, 0);
    let stored = user.post("/assets").body("image/png", bytes.clone()).await.expect(201).json();
    assert_eq!(stored["asset"]["bytes"], UPLOAD_MAX);
    bytes.push(0);
    let declared = user.post("/assets").body("image/png", bytes.clone()).attempt().await;
    let chunked = user.post("/assets").chunked("image/png", bytes).attempt().await;
    // A client that is still sending can see the connection close before it reads the response.
    for reply in [declared, chunked].into_iter().flatten() {
        reply.expect_error(413, "payload_too_large", &[]);
    }
    let listed = user.get("/assets").await.ok();
    assert_eq!(listed["assets"].as_array().map(Vec::len), Some(1), "uploads that were too large are not listed");
}

#[tokio::test]
async fn a_refused_upload_leaves_nothing() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/assets?canvasId={}", text(&canvas, "/id"));
    user.post(&path).body("image/png", images::jpeg(4, 4)).await.expect(415);
    user.post(&path).body("image/png", images::png(4, 4)[..30].to_vec()).await.expect(422);
    user.post(&path).body("image/png", "").await.expect(400);
    assert_eq!(user.canvas(text(&canvas, "/id")).await, canvas);
    assert_eq!(user.get(&path).await.ok()["assets"], json!([]));
    assert_eq!(user.get("/assets").await.ok()["assets"], json!([]));
}

#[tokio::test]
async fn file_names_are_decoded_and_cleaned() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let upload = async |header: &str, name: &str| {
        user.post("/assets").header(header, name).body("image/png", images::png(2, 2)).await
    };
    let longest = "n".repeat(255);
    let decoded = "%C3%BC".repeat(255);
    let emoji = "%F0%9F%98%80".repeat(160);
    for (sent, kept) in [
        ("photo.png", "photo.png"),
        ("caf%C3%A9%20%E2%98%95.png", "café ☕.png"),
        ("a+b.png", "a+b.png"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\me\\photo.png", "photo.png"),
        ("..%2F..%2Fup.png", "up.png"),
        ("a%0Ab%09c%7F.png", "abc.png"),
        ("", "upload.png"),
        ("folder/", "upload.png"),
        ("%01", "upload.png"),
        (longest.as_str(), longest.as_str()),
        (decoded.as_str(), &"ü".repeat(255)),
        (emoji.as_str(), &"😀".repeat(160)),
        ("%E2%80%AE%3Cb%3E.png", "\u{202e}<b>.png"),
        ("a%00b.png", "ab.png"),
    ] {
        for header in ["x-service-file-name", "x-canvas-file-name"] {
            let reply = upload(header, sent).await;
            assert_eq!((reply.status, &reply.json()["asset"]["name"]), (201, &json!(kept)), "{sent}");
        }
    }
    for bad in [
        "n".repeat(256),
        "%C3%BC".repeat(256),
        "%F0%9F%98%80".repeat(256),
        "%C3".into(),
        "%zz".into(),
        "100%".into(),
        "%ff%fe".into(),
    ] {
        let refused = upload("x-service-file-name", &bad).await.expect(400);
        assert_eq!(refused.json()["error"]["code"], "input_validation_error", "{bad}");
    }
}

#[tokio::test]
async fn an_upload_into_a_canvas_places_a_node_beside_the_content() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let before = user
        .apply(id, json!([{"type": "node.create", "node": {"type": "text", "position": {"x": 100, "y": 50}, "width": 400, "height": 300}}]))
        .await["canvas"]
        .clone();
    let mut revision = text(&before, "/revision").to_owned();
    for _ in 0..3 {
        let asset = user.upload_into(id, "image/png", images::png(40, 30)).await;
        let read = user.get(&format!("/canvases/{id}")).await.ok();
        assert_ne!(read["canvas"]["revision"], revision.as_str(), "a new revision");
        revision = text(&read, "/canvas/revision").to_owned();
        let node = read["canvas"]["nodes"].as_array().and_then(|nodes| nodes.last()).expect("a node").clone();
        assert_eq!(
            (&node["handle"], &node["asset"], &node["type"]),
            (&asset["node"], &asset["handle"], &json!("image"))
        );
        assert_eq!(node["metadata"]["provenance"]["kind"], "upload");
        let entry = &read["activity"][0];
        assert_eq!((&entry["type"], &entry["revision"]), (&json!("asset.uploaded"), &json!(revision)));
        assert_eq!(entry["nodeIds"], json!([node["id"]]));
        assert_eq!(user.get(&format!("/assets/{}", text(&asset, "/id"))).await.ok()["asset"]["node"], asset["node"]);
    }
    let nodes = user.canvas(id).await["nodes"].as_array().expect("a list").clone();
    let frame = |node: &Value| {
        let number = |pointer: &str| node.pointer(pointer).and_then(Value::as_f64).expect("a number");
        (number("/position/x"), number("/position/y"), number("/width"), number("/height"))
    };
    let frames: Vec<_> = nodes.iter().map(frame).collect();
    assert!(frames[1..].iter().all(|(x, ..)| *x >= 500.0), "to the right of the content: {frames:?}");
    for (index, (x, y, width, height)) in frames.iter().enumerate() {
        for (other_x, other_y, other_width, other_height) in &frames[index + 1..] {
            let apart = x + width <= *other_x
                || other_x + other_width <= *x
                || y + height <= *other_y
                || other_y + other_height <= *y;
            assert!(apart, "nodes overlap: {frames:?}");
        }
    }
    // An asset outlives its node.
    let assets = user.get(&format!("/assets?canvasId={id}")).await.ok()["assets"].clone();
    let (gone, kept) = (&assets[0], &assets[1]);
    user.apply(id, json!([{"type": "node.delete", "nodeId": gone["node"]}])).await;
    let read = async |asset: &Value| user.get(&format!("/assets/{}", text(asset, "/id"))).await.ok()["asset"].clone();
    assert_eq!((read(gone).await.get("node"), read(kept).await.get("node")), (None, Some(&kept["node"])));
    let listed = user.get(&format!("/assets?canvasId={id}")).await.ok()["assets"].clone();
    let nodes: Vec<_> = listed.as_array().expect("a list").iter().map(|asset| asset.get("node").is_some()).collect();
    assert_eq!(nodes.iter().filter(|shown| **shown).count(), 2, "{listed}");
    user.post("/assets?canvasId=absent").body("image/png", images::png(2, 2)).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn own_assets_and_those_of_a_canvas_are_listed_apart() {
    let stack = &Stack::without_workers().await;
    let (user, member) = (stack.user().await, stack.user().await);
    let canvas = user.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    let (mut own, mut placed) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        own.insert(0, text(&user.upload("image/png", images::png(2, 2)).await, "/handle").to_owned());
        placed.insert(0, text(&user.upload_into(id, "image/png", images::png(2, 2)).await, "/handle").to_owned());
    }
    let list = async |who: &e2e::User, path: &str| {
        let listed = who.get(path).await.ok();
        let assets = listed["assets"].as_array().expect("a list").clone();
        assets.iter().map(|asset| text(asset, "/handle").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list(&user, "/assets").await, own, "newest first");
    for path in [
        format!("/assets?canvasId={id}"),
        format!("/assets?canvasId={handle}"),
        format!("/assets?canvasId={id}&ownerUid={}", user.uid),
    ] {
        assert_eq!(list(&user, &path).await, placed, "{path}");
    }
    stack.share(&user, id, &member.uid, "viewer").await;
    assert_eq!(list(&member, &format!("/assets?canvasId={handle}")).await, placed);
    assert_eq!(list(&member, "/assets").await, Vec::<String>::new());
    // Members of a shared canvas can read the assets stored in it, but not the owner's other assets.
    member.get(&format!("/assets/{}", placed[0])).await.ok();
    member.get(&format!("/assets/{}", own[0])).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_walk_meets_every_asset_that_was_there() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let mut there = std::collections::BTreeSet::new();
    for _ in 0..9 {
        there.insert(text(&user.upload("image/png", images::png(2, 2)).await, "/handle").to_owned());
    }
    let writing = async {
        for _ in 0..10 {
            user.upload("image/png", images::png(2, 2)).await;
        }
    };
    let walking = async {
        for limit in [1, 2, 5] {
            let (mut walked, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = user.get(&format!("/assets?limit={limit}{cursor}")).await.ok();
                let items = page["assets"].as_array().expect("a list");
                walked.extend(items.iter().map(|item| text(item, "/handle").to_owned()));
                match page["page"]["nextCursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            let unique: std::collections::BTreeSet<_> = walked.iter().cloned().collect();
            assert_eq!(unique.len(), walked.len(), "an asset never changes, so none comes twice");
            assert!(unique.is_superset(&there), "{walked:?}");
        }
    };
    tokio::join!(writing, walking);
}

/// Uploads an image under this name; returns its handle.
async fn named(user: &e2e::User, name: &str, bytes: Vec<u8>) -> String {
    let upload = user.post("/assets").header("x-service-file-name", name);
    text(&upload.body("image/png", bytes).await.expect(201).json(), "/asset/handle").to_owned()
}

/// The handles of a list.
async fn listed(user: &e2e::Client, query: &str) -> Vec<String> {
    let list = user.get(&format!("/assets?{query}")).await.ok();
    list["assets"].as_array().expect("a list").iter().map(|asset| text(asset, "/handle").to_owned()).collect()
}

#[tokio::test]
async fn a_read_says_when_an_asset_was_stored_and_what_a_node_that_the_caller_can_read_calls_it() {
    let stack = &Stack::without_workers().await;
    let (user, member) = (stack.user().await, stack.user().await);
    let (shared, private) = (user.make_canvas().await, user.make_canvas().await);
    let id = text(&shared, "/id");
    let asset = user.upload_into(id, "image/png", images::png(4, 4)).await;
    let handle = text(&asset, "/handle");
    stack.share(&user, id, &member.uid, "viewer").await;
    let of_canvas = format!("canvasId={}", text(&shared, "/handle"));
    let titles = async |who: &e2e::User| {
        let read = who.get(&format!("/assets/{handle}")).await.ok();
        let included = who.get(&format!("/assets/{handle}?include=usedIn")).await.ok();
        let entry = who.get(&format!("/assets?{of_canvas}")).await.ok()["assets"][0].clone();
        assert_eq!((&read["asset"]["createdAt"], &entry["createdAt"]), (&read["made"]["at"], &read["made"]["at"]));
        for other in [&included["asset"], &entry] {
            assert_eq!(other.get("title"), read["asset"].get("title"));
        }
        read["asset"].get("title").cloned()
    };
    let rename = json!([{"type": "node.update", "nodeId": asset["node"], "patch": {"title": "Hero still"}}]);
    user.apply(id, rename).await;
    for who in [&user, &member] {
        assert_eq!(titles(who).await, Some(json!("Hero still")));
    }
    // The newest node counts, of those that the caller can read.
    let node = json!({"type": "image", "title": "Secret", "asset": handle});
    user.apply(text(&private, "/id"), json!([{"type": "node.create", "node": node}])).await;
    assert_eq!(titles(&user).await, Some(json!("Secret")));
    assert_eq!(titles(&member).await, Some(json!("Hero still")));
    user.apply(id, json!([{"type": "node.delete", "nodeId": asset["node"]}])).await;
    assert_eq!(titles(&member).await, None);
}

#[tokio::test]
async fn a_list_is_filtered_by_words_model_time_and_tag() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let start = json!({"canvasId": canvas, "baseRevision": user.canvas(&canvas).await["revision"], "place": {},
        "idempotencyKey": e2e::api::key(), "model": "sketch", "prompt": "A wide cover, 100% brass"});
    let job = user.send("/images/generate", &start).await.expect(202).json();
    let record = user.finished(&job).await;
    let (made, node) = (text(&record, "/images/0/assetId"), text(&record, "/images/0/nodeId"));
    let uploaded = user.upload_into(&canvas, "image/png", images::png(6, 6)).await;
    let other = text(&uploaded, "/handle");
    let tag = |node: &Value, tags: Value| json!({"type": "node.update", "nodeId": node, "patch": {"metadata": {"tags": tags}}});
    let (favorite, rated) = (json!(["favorite"]), json!(["rating:3", "favorite"]));
    user.apply(&canvas, json!([tag(&json!(node), favorite), tag(&uploaded["node"], rated)])).await;
    let read = user.get(&format!("/assets/{made}")).await.ok();
    let stored = text(&read, "/asset/createdAt").to_owned();
    let list = user.get(&format!("/assets?canvasId={canvas}")).await.ok();
    let model = |handle: &str| {
        let entry = list["assets"].as_array().and_then(|all| all.iter().find(|asset| asset["handle"] == handle));
        entry.and_then(|entry| entry.get("model").cloned())
    };
    assert_eq!((model(made), model(other)), (Some(read["made"]["model"].clone()), None), "of an upload, none");
    for (query, expected) in [
        ("q=wide+cover", vec![made]),
        ("q=COVER%20Wide", vec![made]),
        ("q=100%25", vec![made]),
        ("q=w_de", vec![]),
        ("q=%25", vec![made]),
        ("model=sketch", vec![made]),
        ("model=SKETCH", vec![]),
        ("model=sketch&q=absent", vec![]),
        ("tag=favorite", vec![other, made]),
        ("tag=rating:3", vec![other]),
        ("tag=rating", vec![]),
        (&format!("since={stored}"), vec![other, made]),
        (&format!("until={stored}"), vec![]),
        ("since=2026-01-01T00:00:00%2B01:00&until=2126-01-01T00:00:00Z", vec![other, made]),
        ("since=2126-01-01T00:00:00Z", vec![]),
        ("kind=video&tag=favorite", vec![]),
        ("aiGenerated=yes&tag=favorite", vec![]),
    ] {
        assert_eq!(listed(&user, &format!("canvasId={canvas}&{query}")).await, expected, "{query}");
    }
    assert_eq!(listed(&user, "tag=favorite").await, [""; 0], "they are stored in a canvas");
}

#[tokio::test]
async fn a_list_is_sorted_by_age_name_or_size() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let sizes = [(8, "b.png"), (64, "C.png"), (32, "a.png")];
    let mut handles = Vec::new();
    for (side, name) in sizes {
        handles.push(named(&user, name, images::png(side, side)).await);
    }
    let [b, c, a] = [&*handles[0], &*handles[1], &*handles[2]];
    for (query, expected) in [
        ("", [a, c, b]),
        ("sort=new", [a, c, b]),
        ("sort=old", [b, c, a]),
        ("sort=name", [a, b, c]),
        ("sort=size", [c, a, b]),
    ] {
        assert_eq!(listed(&user, query).await, expected, "{query}");
        let (mut walked, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = user.get(&format!("/assets?{query}&limit=1{cursor}")).await.ok();
            walked.push(text(&page, "/assets/0/handle").to_owned());
            let Some(next) = page["page"]["nextCursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(walked, expected, "{query}");
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_its_filters_and_its_order() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for name in ["a-cat.png", "b-cat.png"] {
        named(&user, name, images::png(4, 4)).await;
    }
    let first = |query: &str| format!("/assets?limit=1&{query}");
    let plain = user.get(&first("")).await.ok();
    let searched = user.get(&first("q=cat")).await.ok();
    let [plain, searched] = [&plain, &searched].map(|page| text(page, "/page/nextCursor").to_owned());
    user.get(&first(&format!("cursor={plain}"))).await.ok();
    user.get(&first(&format!("q=cat&cursor={searched}"))).await.ok();
    for other in
        ["q=cat", "model=cat", "since=2026-01-01T00:00:00Z", "until=2126-01-01T00:00:00Z", "tag=cat", "sort=new"]
    {
        let refused = user.get(&first(&format!("{other}&cursor={plain}"))).await;
        refused.expect_error(400, "input_validation_error", &["cursor"]);
    }
    for other in ["", "q=b-cat", "model=cat", "tag=cat", "q=cat&sort=name"] {
        let refused = user.get(&first(&format!("{other}&cursor={searched}"))).await;
        refused.expect_error(400, "input_validation_error", &["cursor"]);
    }
}

#[tokio::test]
async fn what_no_filter_of_assets_can_be_is_refused_by_its_name() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for (field, most) in [("q", 200), ("model", 200), ("tag", 80)] {
        for length in [1, most] {
            assert_eq!(listed(&user, &format!("{field}={}", "x".repeat(length))).await, [""; 0]);
        }
        for wrong in [String::new(), "x".repeat(most + 1), "%00".into(), "%FF".into(), format!("a&{field}=b")] {
            let refused = user.get(&format!("/assets?{field}={wrong}")).await;
            refused.expect_error(400, "input_validation_error", &[field]);
        }
    }
    for (query, field) in [
        ("q=%20+", "q"),
        ("since=", "since"),
        ("since=yesterday", "since"),
        ("since=2026-01-15", "since"),
        ("until=2026-13-01T00:00:00Z", "until"),
        ("until=1736932200", "until"),
        ("sort=", "sort"),
        ("sort=newest", "sort"),
        ("sort=new&sort=old", "sort"),
    ] {
        user.get(&format!("/assets?{query}")).await.expect_error(400, "input_validation_error", &[field]);
    }
    let all = user.get("/assets?q=&model=&tag=&sort=x&since=x&until=x&limit=0").await;
    all.expect_error(400, "input_validation_error", &["q", "model", "tag", "sort", "since", "until", "limit"]);
}

#[tokio::test]
async fn an_asset_is_read_by_every_form_of_its_id() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let asset = user.upload("image/png", images::png(2, 2)).await;
    let (id, uid) = (text(&asset, "/id"), &user.uid);
    for path in [
        id.to_owned(),
        format!("asset:{id}"),
        format!("asset:{uid}:{id}"),
        format!("asset%3A{uid}%3A{id}"),
        format!("{id}?ownerUid={uid}"),
    ] {
        let mut read = user.get(&format!("/assets/{path}")).await.ok()["asset"].clone();
        for passing in ["previewExpiresInSeconds", "previewUrl"] {
            read[passing] = asset[passing].clone();
        }
        assert_eq!(read, asset, "{path}");
    }
}

#[tokio::test]
async fn equal_bytes_are_kept_once() {
    let stack = &Stack::without_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let bytes = images::png(7, 7);
    let (one, two) = (user.upload("image/png", bytes.clone()).await, user.upload("image/png", bytes.clone()).await);
    let three = other.upload("image/png", bytes.clone()).await;
    assert_ne!(one["id"], two["id"], "each upload is an asset of its own");
    let ids = [&one, &two, &three].map(|asset| text(asset, "/id").to_owned());
    let blobs: i64 = sqlx::query_scalar("SELECT count(DISTINCT blob_key) FROM assets WHERE id = ANY($1)")
        .bind(&ids[..])
        .fetch_one(stack.pool())
        .await
        .expect("counts");
    assert_eq!(blobs, 1);
    let both = futures_util::future::join_all((0..6).map(|_| user.upload("image/png", bytes.clone()))).await;
    assert_eq!(both.len(), 6);
    let stored = "SELECT count(*) FROM blobs WHERE state = 'stored' AND sha256 = (SELECT sha256 FROM blobs JOIN assets ON blob_key = blobs.key WHERE id = $1)";
    assert_eq!(stack.count_of(stored, &ids[0]).await, 1);
}

/// An equal upload under the same key returns the stored asset (docs/reference/assets.md#idempotent-uploads).
#[tokio::test]
async fn an_idempotency_key_replays_an_upload() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/assets?canvasId={}", text(&canvas, "/id"));
    let (bytes, name) = (images::png(5, 5), key());
    let upload = async |path: &str, name: &str, bytes: Vec<u8>| {
        user.post(path).header("idempotency-key", name).body("image/png", bytes).await
    };
    let first = upload(&path, &name, bytes.clone()).await.expect(201).json();
    let read = user.canvas(text(&canvas, "/id")).await;
    let replay = upload(&path, &name, bytes.clone()).await.ok();
    assert_eq!((&replay["replayed"], &replay["asset"]["id"]), (&json!(true), &first["asset"]["id"]));
    assert_eq!(replay["asset"]["node"], first["asset"]["node"]);
    assert_eq!(user.canvas(text(&canvas, "/id")).await, read, "the replay changed nothing");
    upload(&path, &name, images::png(5, 5)).await.expect_error(409, "conflict", &[]);
    upload("/assets", &name, bytes.clone()).await.expect_error(409, "conflict", &[]);
    for bad in ["1234567".to_owned(), "k".repeat(201)] {
        let refused = upload("/assets", &bad, bytes.clone()).await.expect(400);
        assert_eq!(refused.json()["error"]["code"], "input_validation_error");
    }
    let named = async |file: &str| {
        let upload = user.post(&path).header("idempotency-key", &name).header("x-service-file-name", file);
        upload.body("image/png", bytes.clone()).await
    };
    assert_eq!(named("upload.png").await.ok()["replayed"], true, "the default name");
    named("other.png").await.expect_error(409, "conflict", &[]);
    // A rejected upload does not consume its key.
    let name = key();
    upload("/assets", &name, b"nonsense".to_vec()).await.expect(415);
    upload("/assets", &name, bytes.clone()).await.expect(201);
    // Two concurrent uploads with one key create one asset.
    let name = Uuid::new_v4().to_string();
    let both = futures_util::future::join_all((0..4).map(|_| upload("/assets", &name, bytes.clone()))).await;
    let created = both.iter().filter(|reply| reply.status == 201).count();
    let ids: std::collections::BTreeSet<String> =
        both.iter().map(|reply| text(&reply.json(), "/asset/id").to_owned()).collect();
    assert_eq!((created, ids.len()), (1, 1), "{both:?}");
}
