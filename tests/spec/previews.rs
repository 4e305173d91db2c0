//! Previews and renditions (docs/reference/assets.md#preview-urls).

use e2e::api::text;
use e2e::{Part, Reply, Stack, images};
use reqwest::Method;
use serde_json::{Value, json};

/// Uploads an image and returns its preview URL and its bytes.
async fn uploaded(stack: &Stack) -> (String, Vec<u8>) {
    let bytes = images::png(600, 300);
    let asset = stack.user().await.upload("image/png", bytes.clone()).await;
    (text(&asset, "/previewUrl").to_owned(), bytes)
}

#[tokio::test]
async fn a_preview_needs_no_credential_and_none_is_looked_at() {
    let stack = &Stack::with_workers().await;
    let (url, bytes) = uploaded(stack).await;
    assert!(url.starts_with(&format!("{}/api/canvas-agent/v1/assets/preview?token=", stack.origin(0))), "{url}");
    assert_eq!(stack.anonymous().get(&url).await.expect(200).body, bytes);
    assert_eq!(stack.anonymous().with_token("nonsense").get(&url).await.expect(200).body, bytes);
}

#[tokio::test]
async fn a_preview_is_served_with_its_safeguards() {
    let stack = &Stack::with_workers().await;
    let (url, bytes) = uploaded(stack).await;
    let reply = stack.anonymous().get(&url).await.expect(200);
    assert_eq!(reply.header("content-type"), Some("image/png"));
    assert_eq!(reply.header("content-length"), Some(bytes.len().to_string().as_str()));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert!(reply.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")), "{reply}");
    assert_eq!(reply.header("accept-ranges"), Some("bytes"));
    assert!(reply.header("etag").is_some_and(|tag| tag.starts_with('"')));
    let caching = reply.header("cache-control").expect("may be cached");
    let age = caching.split(',').find_map(|part| part.trim().strip_prefix("max-age=")).expect("a max-age");
    assert!(caching.contains("private") && (1..=300).contains(&age.parse::<i64>().expect("seconds")), "{caching}");
}

#[tokio::test]
async fn a_missing_token_is_400_and_a_wrong_one_401() {
    let stack = &Stack::with_workers().await;
    let (url, _) = uploaded(stack).await;
    let anonymous = stack.anonymous();
    anonymous.get("/assets/preview").await.expect_error(400, "input_validation_error", &["token"]);
    anonymous.get("/assets/preview?w=64").await.expect_error(400, "input_validation_error", &["token"]);
    let (before, token) = url.split_once("token=").expect("a token");
    for place in [0, token.len() / 2, token.len() - 1] {
        let mut bytes = token.to_owned().into_bytes();
        bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
        let tampered = String::from_utf8(bytes).expect("ASCII");
        anonymous.get(&format!("{before}token={tampered}")).await.expect_error(401, "unauthorized", &[]);
    }
    for wrong in ["", "x", "%ff", "%00", &token[1..], "YWJj", &"A".repeat(2000)] {
        let path = format!("/assets/preview?token={wrong}");
        anonymous.get(&path).await.expect_error(401, "unauthorized", &[]);
    }
    for twice in [format!("{url}&token={token}"), format!("{url}&%74oken=x")] {
        anonymous.get(&twice).await.expect_error(400, "input_validation_error", &["token"]);
    }
    // A cursor is not a valid preview token.
    let user = stack.user().await;
    user.make_canvas().await;
    user.make_canvas().await;
    let page = user.get("/canvases?limit=1").await.ok();
    let path = format!("/assets/preview?token={}", text(&page, "/page/nextCursor"));
    anonymous.get(&path).await.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn an_asset_that_is_gone_is_404() {
    let stack = &Stack::with_workers().await;
    let asset = stack.user().await.upload("image/png", images::png(3, 3)).await;
    sqlx::query("DELETE FROM assets WHERE id = $1")
        .bind(text(&asset, "/id"))
        .execute(stack.pool())
        .await
        .expect("deletes");
    stack.anonymous().get(text(&asset, "/previewUrl")).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_url_stays_the_same_for_a_while() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let asset = user.upload("image/png", images::png(3, 3)).await;
    let path = format!("/assets/{}", text(&asset, "/id"));
    // The URL may change once between two reads, at a five-minute boundary, but not twice.
    let mut seen = vec![text(&asset, "/previewUrl").to_owned()];
    for _ in 0..3 {
        seen.push(text(&user.get(&path).await.ok(), "/asset/previewUrl").to_owned());
    }
    seen.dedup();
    assert!(seen.len() <= 2, "{seen:?}");
}

#[tokio::test]
async fn ranges_are_honoured() {
    let stack = &Stack::with_workers().await;
    let (url, bytes) = uploaded(stack).await;
    let size = bytes.len();
    let range = async |range: &str| -> Reply { stack.anonymous().get(&url).header("range", range).await };
    for (asked, first, last) in [
        ("bytes=0-0".to_owned(), 0, 0),
        ("bytes=0-9".to_owned(), 0, 9),
        (format!("bytes={}-", size - 5), size - 5, size - 1),
        ("bytes=-7".to_owned(), size - 7, size - 1),
        (format!("bytes=10-{}", size * 2), 10, size - 1),
        (format!("bytes=-{}", size * 2), 0, size - 1),
    ] {
        let part = range(&asked).await.expect(206);
        assert_eq!(part.header("content-range"), Some(format!("bytes {first}-{last}/{size}").as_str()), "{asked}");
        assert_eq!(part.body, bytes[first..=last]);
        assert_eq!(part.header("content-type"), Some("image/png"));
    }
    for beyond in [format!("bytes={size}-"), "bytes=-0".to_owned()] {
        let refused = range(&beyond).await.expect(416);
        assert_eq!(refused.header("content-range"), Some(format!("bytes */{size}").as_str()), "{beyond}");
    }
    for ignored in ["bytes=9-0", "lines=0-1", "bytes=a-b", "bytes="] {
        assert_eq!(range(ignored).await.expect(200).body, bytes, "{ignored}");
    }
    // A range of another version is ignored (RFC 9110, section 13.1.5).
    let whole = stack.anonymous().get(&url).header("range", "bytes=0-1").header("if-range", "\"other\"").await;
    assert_eq!(whole.expect(200).body, bytes);
}

#[tokio::test]
async fn a_head_request_ignores_ranges() {
    let stack = &Stack::with_workers().await;
    let (url, bytes) = uploaded(stack).await;
    let length = bytes.len().to_string();
    for range in ["bytes=0-0", "bytes=999999-"] {
        let head = stack.anonymous().call(Method::HEAD, &url).header("range", range).await.expect(200);
        assert_eq!((head.header("content-length"), head.header("content-range")), (Some(length.as_str()), None));
        assert_eq!((head.header("accept-ranges"), head.body.len()), (Some("bytes"), 0));
    }
    let twice = stack.anonymous().get(&url).header("range", "bytes=0-0").header("range", "bytes=1-1");
    twice.await.expect_error(400, "input_validation_error", &["Range"]);
}

#[tokio::test]
async fn a_validator_is_honoured() {
    let stack = &Stack::with_workers().await;
    let (url, _) = uploaded(stack).await;
    let tag = stack.anonymous().get(&url).await.expect(200).header("etag").expect("a tag").to_owned();
    let same = stack.anonymous().get(&url).header("if-none-match", &tag).await.expect(304);
    assert!(same.body.is_empty() && same.header("etag") == Some(tag.as_str()));
    stack.anonymous().get(&url).header("if-none-match", "\"other\"").await.expect(200);
}

#[tokio::test]
async fn renditions_are_no_wider_than_asked_and_never_enlarged() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let preview = async |asset: &Value, width: u32| {
        let url = format!("{}&w={width}", text(asset, "/previewUrl"));
        let reply = stack.anonymous().get(&url).await.expect(200);
        let kind = reply.header("content-type").expect("a type").to_owned();
        (kind, images::size(&reply.body))
    };
    let opaque = user.upload("image/png", images::png(600, 300)).await;
    for (width, size) in
        [(64, (64, 32)), (128, (128, 64)), (256, (256, 128)), (512, (512, 256)), (1024, (600, 300)), (2048, (600, 300))]
    {
        assert_eq!(preview(&opaque, width).await, ("image/jpeg".to_owned(), size));
        assert_eq!(preview(&opaque, width).await.1, size, "made once and kept");
    }
    let transparent = user.upload("image/png", images::transparent_png(600, 300)).await;
    assert_eq!(preview(&transparent, 64).await, ("image/png".to_owned(), (64, 32)));
    let small = user.upload("image/jpeg", images::jpeg(20, 10)).await;
    assert_eq!(preview(&small, 64).await, ("image/jpeg".to_owned(), (20, 10)));
    // The rendition of 512 pixels is created without a request for it.
    let asset = user.upload("image/webp", images::webp(700, 70)).await;
    testkit::wait_for("the rendition of 512", e2e::PATIENCE, async || {
        let made: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM renditions JOIN assets ON source_key = assets.blob_key
             WHERE assets.id = $1 AND renditions.width = 512 AND state = 'ready'",
        )
        .bind(text(&asset, "/id"))
        .fetch_one(stack.pool())
        .await
        .expect("counts");
        (made == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_result_of_an_action_has_its_preview_when_its_job_ends() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let canvas = text(&canvas, "/id");
    let photo = user.upload("image/png", images::png(900, 600)).await;
    for (width, preview) in [(800, (512, 341)), (30, (30, 20))] {
        let target = user.slot(canvas).await;
        let mut request = user.resize_request(canvas, &target, text(&photo, "/handle")).await;
        request["params"] = json!({"width": width});
        let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
        let ended = user.finished(&job).await;
        let asset = text(&ended, "/images/0/assetId");
        let ready: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM renditions JOIN assets ON source_key = assets.blob_key
             WHERE assets.id = split_part($1, ':', 3) AND renditions.width = 512 AND state = 'ready'",
        )
        .bind(asset)
        .fetch_one(stack.pool())
        .await
        .expect("counts");
        assert_eq!(ready, 1, "{ended}");
        let content = user.get(&format!("/assets/{asset}/content?w=512")).await.expect(200);
        assert_eq!(images::size(&content.body), preview);
    }
}

#[tokio::test]
async fn an_invalid_width_is_400() {
    let stack = &Stack::with_workers().await;
    let (url, _) = uploaded(stack).await;
    for width in ["0", "63", "65", "4096", "-64", "x", "", "64.0", "64&w=128"] {
        let refused = stack.anonymous().get(&format!("{url}&w={width}")).await;
        refused.expect_error(400, "input_validation_error", &["w"]);
    }
}

#[tokio::test]
async fn a_broken_image_has_no_rendition() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    for bytes in [images::broken_png(50, 50), images::jpeg(50, 50)[..300].to_vec()] {
        let asset = user.upload("application/octet-stream", bytes.clone()).await;
        let url = text(&asset, "/previewUrl");
        let refused = stack.anonymous().get(&format!("{url}&w=64")).await.expect(422);
        assert_eq!(refused.json()["error"]["code"], "unprocessable_entity");
        assert_eq!(stack.anonymous().get(url).await.expect(200).body, bytes, "the stored bytes are served");
    }
}

#[tokio::test]
async fn a_token_reaches_no_log() {
    let stack = &Stack::with_workers().await;
    let (url, _) = uploaded(stack).await;
    stack.anonymous().get(&url).await.expect(200);
    stack.anonymous().get(&format!("{url}&w=63")).await.expect(400);
    let token = url.split_once("token=").expect("a token").1;
    assert!(!stack.log(Part::GATEWAY).contains(token));
    assert!(!stack.log(Part::GATEWAY).contains("token="));
}

#[tokio::test]
async fn a_token_expires() {
    let stack = &Stack::builder().env("CANVAS_PREVIEW_TTL_SECONDS", 1).start().await;
    let (url, _) = uploaded(stack).await;
    let refused = testkit::wait_for("the token to expire", e2e::PATIENCE, async || {
        let reply = stack.anonymous().get(&url).await;
        (reply.status != 200).then_some(reply)
    })
    .await;
    refused.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn a_rendition_that_nobody_makes_is_503_and_the_image_itself_is_served() {
    let stack = &Stack::without_workers().await;
    let (url, bytes) = uploaded(stack).await;
    let late = stack.anonymous().get(&format!("{url}&w=64")).await;
    assert!(late.header("retry-after").is_some(), "{late}");
    late.expect_error(503, "service_unavailable", &[]);
    assert_eq!(stack.anonymous().get(&url).await.expect(200).body, bytes);
}

#[tokio::test]
async fn previews_end_when_a_share_is_withdrawn_or_narrowed() {
    let stack = &Stack::with_workers().await;
    let (owner, member) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let id = text(&canvas, "/id");
    let handle = text(&canvas, "/handle");
    let stored = owner.upload_into(id, "image/png", images::png(4, 4)).await;
    // Two images that the canvas only shows, one of them in a node that is deleted, and one that it does not show.
    let (shown, gone, other) = (
        owner.upload("image/png", images::png(5, 5)).await,
        owner.upload("image/png", images::png(6, 6)).await,
        owner.upload("image/png", images::png(7, 7)).await,
    );
    let mut nodes = Vec::new();
    for (asset, y) in [(&shown, 2000), (&gone, 4000)] {
        let node = json!({"type": "image", "asset": text(asset, "/handle"), "position": {"x": 0, "y": y}});
        let revision = owner.canvas(id).await["revision"].clone();
        let made = owner.batch(id, text(&revision, ""), json!([{"type": "node.create", "node": node}])).await.ok();
        nodes.push(text(&made, "/changedNodeIds/0").to_owned());
    }
    let of_node = async |node: &str| {
        let read = member.get(&format!("/canvases/{handle}/nodes/{node}")).await.ok();
        text(&read, "/previewUrl").to_owned()
    };
    let of_stored = async || {
        let read = owner.get(&format!("/assets/{}", text(&stored, "/handle"))).await.ok();
        text(&read, "/asset/previewUrl").to_owned()
    };
    let status = async |url: &str| stack.anonymous().get(url).await.status;
    stack.share(&owner, id, &member.uid, "viewer").await;
    let of_gone = of_node(&nodes[1]).await;
    let revision = owner.canvas(id).await["revision"].clone();
    let delete = json!([{"type": "node.delete", "nodeId": nodes[1]}]);
    owner.batch(id, text(&revision, ""), delete).await.ok();
    for (role, ends) in [("editor", false), ("editor", false), ("viewer", true), ("none", true)] {
        let urls = [of_stored().await, of_node(&nodes[0]).await];
        stack.share(&owner, id, &member.uid, role).await;
        for url in &urls {
            let expected = if ends { 404 } else { 200 };
            assert_eq!((status(url).await, status(&format!("{url}&w=64")).await), (expected, expected), "{role}");
        }
    }
    assert_eq!(status(&of_gone).await, 404);
    assert_eq!(status(text(&other, "/previewUrl")).await, 200, "no share gave a right to it");
    // Whoever may still read it gets a URL that works, also from the record of a job.
    assert_eq!(status(&of_stored().await).await, 200);
    let job = owner.finished(&owner.start_resize(id, json!({})).await).await;
    assert_eq!(status(text(&job, "/images/0/previewUrl")).await, 200);
}

#[tokio::test]
async fn previews_end_when_the_owner_is_disabled() {
    let stack = &Stack::with_workers().await;
    let owner = stack.user().await;
    let canvas = owner.make_canvas().await;
    let own = owner.upload("image/png", images::png(4, 4)).await;
    let stored = owner.upload_into(text(&canvas, "/id"), "image/png", images::png(5, 5)).await;
    let (elsewhere, _) = uploaded(stack).await;
    for command in ["disable", "enable"] {
        stack.admin(&["admin", "account", command, "--account", &owner.uid]).await.expect_success();
        for asset in [&own, &stored] {
            let preview = stack.anonymous().get(text(asset, "/previewUrl")).await;
            preview.expect_error(404, "not_found", &[]);
        }
    }
    stack.anonymous().get(&elsewhere).await.expect(200);
    let read = owner.get(&format!("/assets/{}", text(&own, "/handle"))).await.ok();
    stack.anonymous().get(text(&read, "/asset/previewUrl")).await.expect(200);
}
