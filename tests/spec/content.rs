//! The image of an asset by its handle (docs/reference/assets.md#content).

use e2e::api::text;
use e2e::{Stack, User, images};
use reqwest::Method;
use serde_json::Value;

async fn uploaded(user: &User) -> (Value, Vec<u8>) {
    let bytes = images::png(600, 300);
    (user.upload("image/png", bytes.clone()).await, bytes)
}

fn content(asset: &Value) -> String {
    format!("/assets/{}/content", text(asset, "/handle"))
}

#[tokio::test]
async fn the_stored_bytes_are_served_with_their_safeguards() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (asset, bytes) = uploaded(&user).await;
    let reply = user.get(&content(&asset)).await.expect(200);
    assert_eq!(reply.body, bytes);
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-length", bytes.len().to_string().as_str()),
        ("cache-control", "private, max-age=3600"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("x-content-type-options", "nosniff"),
        ("accept-ranges", "bytes"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    assert!(reply.header("vary").is_some_and(|vary| vary.contains("Authorization")), "{reply}");
    let preview = stack.anonymous().get(text(&asset, "/previewUrl")).await.expect(200);
    assert_eq!(reply.header("etag"), preview.header("etag"));
    for (media_type, bytes) in [("image/jpeg", images::jpeg(20, 10)), ("image/webp", images::webp(20, 10))] {
        let asset = user.upload(media_type, bytes.clone()).await;
        let reply = user.get(&content(&asset)).await.expect(200);
        assert_eq!((reply.header("content-type"), &*reply.body), (Some(media_type), &*bytes));
    }
}

#[tokio::test]
async fn an_asset_is_named_in_every_form() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (asset, bytes) = uploaded(&user).await;
    let (id, uid) = (text(&asset, "/id"), &user.uid);
    for path in [
        format!("/assets/{id}/content"),
        format!("/assets/asset:{id}/content"),
        format!("/assets/asset%3A{uid}%3A{id}/content"),
        format!("/assets/{id}/content?ownerUid={uid}"),
    ] {
        assert_eq!(user.get(&path).await.expect(200).body, bytes, "{path}");
    }
    let differs = user.get(&format!("{}?ownerUid=another", content(&asset))).await;
    differs.expect_error(400, "input_validation_error", &["ownerUid"]);
    let all = user.get("/assets/a%20b/content?w=65").header("range", "bytes=0-0").header("range", "bytes=1-1").await;
    all.expect_error(400, "input_validation_error", &["assetId", "w", "Range"]);
    user.get("/assets/absent/content?w=64").await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn ranges_and_validators_are_honoured() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (asset, bytes) = uploaded(&user).await;
    let (path, size) = (content(&asset), bytes.len());
    let tag = user.get(&path).await.expect(200).header("etag").expect("a tag").to_owned();
    for (asked, first, last) in [("bytes=0-0".to_owned(), 0, 0), ("bytes=-7".to_owned(), size - 7, size - 1)] {
        let part = user.get(&path).header("range", &asked).await.expect(206);
        assert_eq!(part.header("content-range"), Some(format!("bytes {first}-{last}/{size}").as_str()), "{asked}");
        assert_eq!(part.body, bytes[first..=last]);
        assert_eq!(part.header("cache-control"), Some("private, max-age=3600"));
    }
    let beyond = user.get(&path).header("range", &format!("bytes={size}-")).await.expect(416);
    assert_eq!(beyond.header("content-range"), Some(format!("bytes */{size}").as_str()));
    let ranged = async |tag: &str| user.get(&path).header("range", "bytes=0-1").header("if-range", tag).await;
    assert_eq!(ranged(&tag).await.expect(206).body, bytes[..2]);
    assert_eq!(ranged("\"other\"").await.expect(200).body, bytes);
    let same = user.get(&path).header("if-none-match", &tag).await.expect(304);
    assert!(same.body.is_empty() && same.header("etag") == Some(tag.as_str()));
    assert_eq!(same.header("cache-control"), Some("private, max-age=3600"));
    user.get(&path).header("if-none-match", "\"other\"").await.expect(200);
}

#[tokio::test]
async fn a_head_request_ignores_ranges() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (asset, bytes) = uploaded(&user).await;
    let head = user.call(Method::HEAD, &content(&asset)).header("range", "bytes=0-0").await.expect(200);
    assert_eq!(head.header("content-length"), Some(bytes.len().to_string().as_str()));
    assert_eq!((head.header("content-range"), head.body.len()), (None, 0));
}

#[tokio::test]
async fn renditions_have_the_widths_of_previews() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (asset, bytes) = uploaded(&user).await;
    let path = content(&asset);
    let mut tags = std::collections::HashSet::new();
    for (width, size) in
        [(64, (64, 32)), (128, (128, 64)), (256, (256, 128)), (512, (512, 256)), (1024, (600, 300)), (2048, (600, 300))]
    {
        let reply = user.get(&format!("{path}?w={width}")).await.expect(200);
        assert_eq!((reply.header("content-type"), images::size(&reply.body)), (Some("image/jpeg"), size), "{width}");
        tags.insert(reply.header("etag").expect("a tag").to_owned());
    }
    assert!(tags.len() >= 4, "each file has its tag");
    for width in ["0", "63", "65", "4096", "-64", "x", "", "64.0", "64&w=128"] {
        let refused = user.get(&format!("{path}?w={width}")).await;
        refused.expect_error(400, "input_validation_error", &["w"]);
    }
    assert_eq!(user.get(&path).await.expect(200).body, bytes);
}

#[tokio::test]
async fn a_broken_image_is_served_and_has_no_rendition() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let bytes = images::broken_png(50, 50);
    let asset = user.upload("image/png", bytes.clone()).await;
    let refused = user.get(&format!("{}?w=64", content(&asset))).await;
    refused.expect_error(422, "unprocessable_entity", &["w"]);
    assert_eq!(user.get(&content(&asset)).await.expect(200).body, bytes);
}

#[tokio::test]
async fn members_of_the_canvas_may_read_and_nobody_else() {
    let stack = &Stack::with_workers().await;
    let (owner, stranger) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let stored = owner.upload_into(text(&canvas, "/id"), "image/png", images::png(4, 4)).await;
    let (own, _) = uploaded(&owner).await;
    for role in ["editor", "viewer"] {
        let member = stack.user_with("asset:read").await;
        member.get(&content(&stored)).await.expect_error(404, "not_found", &[]);
        stack.share(&owner, text(&canvas, "/id"), &member.uid, role).await;
        member.get(&content(&stored)).await.expect(200);
        member.get(&format!("{}?w=64", content(&stored))).await.expect(200);
        member.get(&content(&own)).await.expect_error(404, "not_found", &[]);
    }
    let tag = owner.get(&content(&stored)).await.expect(200).header("etag").expect("a tag").to_owned();
    for path in [content(&stored), content(&own), format!("{}?w=64", content(&stored))] {
        stranger.get(&path).header("if-none-match", &tag).await.expect_error(404, "not_found", &[]);
    }
    let without = stack.user_with("canvas:read").await;
    without.get(&content(&own)).await.expect_error(403, "forbidden", &[]);
    stack.anonymous().get(&content(&own)).await.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn a_tag_is_equal_for_one_account_and_tells_nothing_of_others() {
    let stack = &Stack::with_workers().await;
    let (one, other) = (stack.user().await, stack.user().await);
    let tags = async |user: &User, asset: &Value| {
        let mut tags = Vec::new();
        for query in ["", "?w=64"] {
            let reply = user.get(&format!("{}{query}", content(asset))).await.expect(200);
            tags.push(reply.header("etag").expect("a tag").to_owned());
        }
        tags
    };
    let bytes = images::png(600, 300);
    let upload = async |user: &User| user.upload("image/png", bytes.clone()).await;
    let (first, again) = (upload(&one).await, upload(&one).await);
    let of_one = tags(&one, &first).await;
    assert_eq!(of_one, tags(&one, &again).await, "equal for one account");
    assert_ne!(of_one[0], of_one[1]);
    let of_other = tags(&other, &upload(&other).await).await;
    assert!(of_other.iter().all(|tag| !of_one.contains(tag)), "{of_one:?} {of_other:?}");
    assert_eq!(of_one, tags(&one, &first).await, "constant");
    // Readers of a shared canvas and holders of a preview have the tag of the owner's asset.
    let canvas = one.make_canvas().await;
    let stored = one.upload_into(text(&canvas, "/id"), "image/png", bytes.clone()).await;
    stack.share(&one, text(&canvas, "/id"), &other.uid, "viewer").await;
    assert_eq!(of_one, tags(&other, &stored).await);
}

#[tokio::test]
async fn a_first_upload_is_answered_alike_whether_another_account_has_the_bytes() {
    let stack = &Stack::with_workers().await;
    let bytes = images::png(37, 41);
    let mut shapes = Vec::new();
    for _ in 0..2 {
        let user = stack.user().await;
        let reply = user.post("/assets").body("image/png", bytes.clone()).await.expect(201);
        let mut headers: Vec<String> = reply.headers.keys().map(ToString::to_string).collect();
        headers.sort();
        let members = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
        shapes.push((headers, members(&reply.json()), members(&reply.json()["asset"])));
    }
    assert_eq!(shapes[0], shapes[1]);
}
