//! Capability links: files that are downloaded and uploaded without a token (docs/reference/assets.md#capability-links).

use std::time::Duration;

use bytes::Bytes;
use e2e::api::{key, text};
use e2e::{Client, Part, Reply, Stack, User, films, images};
use futures_util::stream;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::wait_for;
use uuid::Uuid;

const UPLOAD_MAX: usize = 52_428_800;

/// Who has a link and nothing else, at an address of its own: what it misses counts for nobody else.
fn outsider(stack: &Stack) -> Client {
    let [first, second, third, ..] = Uuid::new_v4().into_bytes();
    stack.anonymous().from_address([127, first.max(1), second, third.clamp(1, 254)])
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn downloads(user: &User, items: Value) -> Value {
    user.send("/assets/downloads", &json!({ "items": items })).await.ok()
}

/// A link to an asset.
async fn link_to(user: &User, asset: &Value) -> String {
    text(&downloads(user, json!([asset["handle"]])).await, "/downloads/0/url").to_owned()
}

/// Upload links for files with these members.
async fn uploads(user: &User, more: Value) -> Vec<Value> {
    let reply = user.send("/assets/uploads", &more).await.expect(201);
    assert!(reply.header("location").is_none(), "several things were made: {reply}");
    reply.json()["uploads"].as_array().expect("links").clone()
}

/// The URL of an upload link for one file.
async fn slot(user: &User) -> String {
    text(&uploads(user, json!({"files": [{"name": "a.png"}]})).await[0], "/url").to_owned()
}

async fn put(client: &Client, url: &str, bytes: impl Into<reqwest::Body>) -> Reply {
    client.call(Method::PUT, url).untyped(bytes).await
}

/// Checks the headers that keep a link from being stored or shown.
fn is_guarded(reply: &Reply) {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-robots-tag", "noindex"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}: {reply}");
    }
    assert!(reply.header("set-cookie").is_none() && reply.header("access-control-allow-origin").is_none(), "{reply}");
}

fn not_found(reply: Reply) -> String {
    is_guarded(&reply);
    reply.expect_error(404, "not_found", &[])
}

// Downloads

#[tokio::test]
async fn a_download_link_serves_the_file_that_content_serves() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    for (media_type, bytes) in [
        ("image/png", images::png(6, 4)),
        ("image/jpeg", images::jpeg(6, 4)),
        ("image/webp", images::webp(6, 4)),
        ("image/gif", images::gif()),
        ("video/mp4", films::unique(films::SILENT)),
    ] {
        let asset = user.upload(media_type, bytes).await;
        let link = downloads(&user, json!([asset["handle"]])).await["downloads"][0].clone();
        let content = user.get(&format!("/assets/{}/content", text(&asset, "/id"))).await.expect(200);
        assert_eq!(link["item"], asset["handle"]);
        for member in ["name", "mimeType", "bytes", "width", "height"] {
            assert_eq!(link[member], asset[member], "{member}");
        }
        assert_eq!(text(&link, "/sha256"), hex(&content.body));
        let url = text(&link, "/url");
        let secret = url.strip_prefix(&format!("{}/d/", stack.origin(0))).expect("is below the public URL");
        assert_eq!(secret.len(), 22, "128 bits");
        let reply = outsider.get(url).await.expect(200);
        assert!(reply.body == content.body, "{media_type}");
        is_guarded(&reply);
        let disposition = format!("attachment; filename=\"{}\"", text(&asset, "/name"));
        assert_eq!(reply.header("content-disposition"), Some(disposition.as_str()));
        for header in ["content-type", "content-length", "etag", "accept-ranges"] {
            assert_eq!(reply.header(header), content.header(header), "{header}");
        }
        let head = outsider.call(Method::HEAD, url).await.expect(200);
        assert_eq!(head.header("content-length"), content.header("content-length"));
        assert!(head.body.is_empty());
        is_guarded(&head);
        let part = outsider.get(url).header("range", "bytes=2-5").await.expect(206);
        assert!(part.body == content.body.slice(2..6));
        is_guarded(&part);
        outsider.get(url).header("range", "bytes=999999999-").await.expect(416);
        let etag = content.header("etag").expect("a tag");
        assert!(outsider.get(url).header("if-none-match", etag).await.expect(304).body.is_empty());
        outsider.call(Method::POST, url).await.expect(405);
        outsider.call(Method::PUT, url).await.expect(405);
        // A GET changes nothing: the link works again.
        assert!(outsider.get(url).await.expect(200).body == content.body);
    }
}

#[tokio::test]
async fn items_are_assets_nodes_and_videos_and_what_has_no_file_is_refused() {
    let stack = &Stack::without_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let shown = user.upload_into(&canvas, "image/png", images::png(6, 4)).await;
    let node = text(&shown, "/node");
    let empty = user.slot(&canvas).await;
    let foreign = other.upload("image/png", images::png(3, 3)).await;
    let purged = user.upload("image/png", images::png(5, 5)).await;
    let purge = ["admin", "asset", "purge", "--asset", text(&purged, "/handle"), "--yes"];
    stack.admin(&purge).await.expect_success();
    stack.grant(&user.uid, 1000).await;
    let video = json!({"model": "animatic", "prompt": "p", "idempotencyKey": key()});
    let job = user.send("/videos/generate", &video).await.expect(202).json();
    let plain = text(&shown, "/id");
    let items = json!([
        shown["handle"],
        format!("asset:{plain}"),
        node,
        node.trim_start_matches("node:"),
        shown["handle"],
        format!("node:{empty}"),
        "node:absent",
        foreign["handle"],
        purged["handle"],
        format!("job:{}", text(&job, "/rawId")),
        format!("job:{}", Uuid::new_v4()),
        format!("job:{}", "-".repeat(36)),
    ]);
    let links = user.send("/assets/downloads", &json!({"items": items, "canvasId": canvas})).await.ok();
    let named: Vec<&Value> = links["downloads"].as_array().expect("links").iter().map(|link| &link["item"]).collect();
    assert_eq!(json!(named), json!(items.as_array().expect("items")[..5]));
    let mut urls: Vec<&str> =
        links["downloads"].as_array().expect("links").iter().map(|link| text(link, "/url")).collect();
    urls.sort_unstable();
    urls.dedup();
    assert_eq!(urls.len(), 5, "each has a link of its own");
    let refused = links["refused"].as_array().expect("refused");
    let codes: Vec<&str> = refused.iter().map(|refused| text(refused, "/code")).collect();
    assert_eq!(codes, ["not_found", "not_found", "not_found", "not_found", "conflict", "not_found", "not_found"]);
    let items: Vec<&Value> = refused.iter().map(|refused| &refused["item"]).collect();
    assert_eq!(items[0], &json!(format!("node:{empty}")));
    // Jobs need their scope.
    let reader = stack.user_of(&stack.account().await, "asset:read").await;
    let body = json!({"items": [format!("job:{}", Uuid::new_v4())]});
    assert!(reader.send("/assets/downloads", &body).await.expect_error(403, "forbidden", &[]).contains("job:manage"));
}

#[tokio::test]
async fn a_video_of_a_job_is_downloaded_by_a_link() {
    let stack = &Stack::with_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    stack.grant(&user.uid, 1000).await;
    let video = json!({"model": "animatic", "prompt": "p", "idempotencyKey": key()});
    let job = user.send("/videos/generate", &video).await.expect(202).json();
    let done = user.finished(&job).await;
    assert_eq!(done["status"], "succeeded", "{done}");
    let id = text(&job, "/rawId");
    let link = downloads(&user, json!([format!("job:{id}")])).await["downloads"][0].clone();
    assert_eq!((&link["name"], &link["mimeType"]), (&json!(format!("{id}.mp4")), &json!("video/mp4")));
    let output = user.get(&format!("/jobs/{id}/output")).await.expect(200);
    let reply = outsider.get(text(&link, "/url")).await.expect(200);
    assert!(reply.body == output.body && text(&link, "/sha256") == hex(&output.body));
    assert_eq!((reply.header("etag"), &link["bytes"]), (output.header("etag"), &json!(output.body.len())));
}

#[tokio::test]
async fn a_request_for_download_links_states_what_is_wrong() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let asset = user.upload("image/png", images::png(3, 3)).await["handle"].clone();
    let many = |count: usize| json!(vec![asset.clone(); count]);
    for (body, fields) in [
        (json!({}), &["items"][..]),
        (json!({"items": []}), &["items"]),
        (json!({"items": many(51)}), &["items"]),
        (json!({"items": [3]}), &["items[0]"]),
        (json!({"items": ["asset:a b", "job:1", "node:a"]}), &["items[0]", "items[1]", "canvasId"]),
        (json!({"items": [""], "canvasId": "c"}), &["items[0]"]),
        (json!({"items": many(1), "canvasId": "a b"}), &["canvasId"]),
        (json!({"items": many(1), "expiresInSeconds": 59}), &["expiresInSeconds"]),
        (json!({"items": many(1), "expiresInSeconds": 86_401}), &["expiresInSeconds"]),
        (json!({"items": many(1), "expiresInSeconds": 3600.5}), &["expiresInSeconds"]),
        (json!({"items": many(1), "forever": true}), &["forever"]),
    ] {
        user.send("/assets/downloads", &body).await.expect_error(400, "input_validation_error", fields);
    }
    user.send("/assets/downloads", &json!({"items": many(1), "canvasId": "absent"})).await.expect_error(
        404,
        "not_found",
        &[],
    );
    for seconds in [60, 86_400] {
        let reply = user.send("/assets/downloads", &json!({"items": many(1), "expiresInSeconds": seconds})).await;
        let expires_at = reply.ok()["downloads"][0]["expiresAt"].clone();
        let expires_at: domain::Timestamp = serde_json::from_value(expires_at).expect("a time");
        let left = expires_at.get().timestamp() - service::clock::now().timestamp();
        assert!((seconds - 30..=seconds + 1).contains(&left), "{seconds}: {left}");
    }
    let links = downloads(&user, many(50)).await;
    assert_eq!(links["downloads"].as_array().map(Vec::len), Some(50));
}

#[tokio::test]
async fn a_link_that_gives_nothing_is_the_same_404_whatever_the_cause() {
    let stack = &Stack::without_workers().await;
    let outsider = outsider(stack);
    let mut messages = Vec::new();
    let stored = async |user: &User| user.upload("image/png", images::png(3, 3)).await;
    let (user, member) = (stack.user().await, stack.user().await);
    let account = stack.account().await;
    // The token is revoked.
    let token = stack.user_of(&account, "all").await;
    let revoked = link_to(&token, &stored(&token).await).await;
    outsider.get(&revoked).await.expect(200);
    stack.admin(&["admin", "token", "revoke", &token.token_id]).await.expect_success();
    messages.push(not_found(outsider.get(&revoked).await));
    // The account is disabled.
    let token = stack.user_of(&account, "all").await;
    let disabled = link_to(&token, &stored(&token).await).await;
    stack.admin(&["admin", "account", "disable", "--account", &account.uid]).await.expect_success();
    messages.push(not_found(outsider.get(&disabled).await));
    // The asset is purged.
    let asset = stored(&user).await;
    let purged = link_to(&user, &asset).await;
    let purge = ["admin", "asset", "purge", "--asset", text(&asset, "/handle"), "--yes"];
    stack.admin(&purge).await.expect_success();
    messages.push(not_found(outsider.get(&purged).await));
    // A member is removed. The link of the owner goes on.
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let shared = user.upload_into(&canvas, "image/png", images::png(4, 4)).await;
    stack.share(&user, &canvas, &member.uid, "viewer").await;
    let (of_member, of_owner) = (link_to(&member, &shared).await, link_to(&user, &shared).await);
    outsider.get(&of_member).await.expect(200);
    stack.share(&user, &canvas, &member.uid, "none").await;
    messages.push(not_found(outsider.get(&of_member).await));
    outsider.get(&of_owner).await.expect(200);
    // It expired.
    let expired = link_to(&user, &stored(&user).await).await;
    expire(stack, &user, "download").await;
    messages.push(not_found(outsider.get(&expired).await));
    // It never existed.
    let (before, secret) = expired.rsplit_once('/').expect("a path");
    for wrong in [&secret[1..], &format!("{secret}A"), "AAAAAAAAAAAAAAAAAAAAAA", "%ff", "%00", "x"] {
        messages.push(not_found(outsider.get(&format!("{before}/{wrong}")).await));
    }
    messages.dedup();
    assert_eq!(messages, ["link not found"]);
}

/// Ends the links of an account.
async fn expire(stack: &Stack, user: &User, kind: &str) {
    let expire = "UPDATE capability_links SET expires_at = now() - interval '1 s' WHERE account_uid = $1 AND kind = $2";
    sqlx::query(expire).bind(&user.uid).bind(kind).execute(stack.pool()).await.expect("expires");
}

#[tokio::test]
async fn a_link_of_a_session_ends_with_it() {
    let stack = &Stack::without_workers().await;
    let outsider = outsider(stack);
    let account = stack.account().await;
    let asset = stack.user_of(&account, "all").await.upload("image/png", images::png(3, 3)).await;
    let person = stack.person(&account).await;
    let path = e2e::Person::api("/assets/downloads");
    let made = person.send(&path, &json!({"items": [asset["handle"]]})).await.ok();
    let url = text(&made, "/downloads/0/url");
    outsider.get(url).await.expect(200);
    let end = "UPDATE tokens SET expires_at = now() - interval '1 s' WHERE account_uid = $1 AND kind = 'session'";
    sqlx::query(end).bind(&account.uid).execute(stack.pool()).await.expect("ends");
    not_found(outsider.get(url).await);
}

#[tokio::test]
async fn an_account_has_1000_open_download_links() {
    let stack = &Stack::without_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let asset = user.upload("image/png", images::png(3, 3)).await["handle"].clone();
    let many = |count: usize| json!({"items": vec![asset.clone(); count]});
    for _ in 0..19 {
        user.send("/assets/downloads", &many(50)).await.ok();
    }
    user.send("/assets/downloads", &many(49)).await.ok();
    let refused = user.send("/assets/downloads", &many(2)).await;
    assert!(refused.header("retry-after").is_some());
    refused.expect_error(429, "rate_limited", &[]);
    user.send("/assets/downloads", &many(1)).await.ok();
    user.send("/assets/downloads", &many(1)).await.expect_error(429, "rate_limited", &[]);
    assert_eq!(user.get("/auth/status").await.ok()["openLinks"], json!({"downloads": 1000, "uploads": 0}));
    let own = other.upload("image/png", images::png(3, 3)).await;
    link_to(&other, &own).await;
    // What is refused needs no link, and what has ended is not counted.
    user.send("/assets/downloads", &json!({"items": [own["handle"]]})).await.ok();
    expire(stack, &user, "download").await;
    assert_eq!(user.get("/auth/status").await.ok()["openLinks"]["downloads"], 0);
    user.send("/assets/downloads", &many(50)).await.ok();
}

#[tokio::test]
async fn links_that_do_not_exist_are_failed_credentials_of_the_address() {
    let stack = &Stack::builder().env("CANVAS_FAILED_AUTH_PER_MINUTE", 4).shared().await;
    let (user, guesser) = (stack.user().await, outsider(stack));
    let (known, unknown) =
        (link_to(&user, &user.upload("image/png", images::png(3, 3)).await).await, stack.origin(0) + "/d/x");
    guesser.get(&known).await.expect(200);
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(guesser.get(&unknown).await.status);
    }
    assert_eq!((&seen[..4], seen[5]), (&[404; 4][..], 429), "{seen:?}");
    put(&guesser, &(stack.origin(0) + "/u/x"), "x").await.expect_error(429, "rate_limited", &[]);
    // A link that was valid lately is not refused for the guesses of somebody behind the same address.
    guesser.get(&known).await.expect(200);
}

#[tokio::test]
async fn no_log_and_no_page_of_another_origin_sees_a_secret() {
    let stack = &Stack::builder().env("CANVAS_CORS_ORIGINS", "https://studio.example").shared().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    let download = link_to(&user, &user.upload("image/png", images::png(3, 3)).await).await;
    let upload = slot(&user).await;
    outsider.get(&download).header("origin", "https://studio.example").await.expect(200);
    is_guarded(&outsider.get(&download).header("origin", "https://studio.example").await);
    let preflight = outsider.call(Method::OPTIONS, &download).header("origin", "https://studio.example");
    let preflight = preflight.header("access-control-request-method", "GET").await.expect(405);
    assert!(preflight.header("access-control-allow-origin").is_none(), "{preflight}");
    put(&outsider, &upload, b"%PDF-1.7".to_vec()).await.expect(415);
    put(&outsider, &upload, images::png(3, 3)).await.expect(201);
    let logged = stack.parts().into_iter().map(|part| stack.log(part)).collect::<String>();
    for url in [&download, &upload] {
        let secret = url.rsplit('/').next().expect("a secret");
        assert!(!logged.contains(secret), "{secret}");
    }
    assert!(logged.contains(r#""route":"/d/{secret}""#) && logged.contains(r#""route":"/u/{secret}""#));
    let hash = "SELECT count(*) FROM capability_links WHERE account_uid = $1 AND length(hash) = 32";
    assert_eq!(stack.count_of(hash, &user.uid).await, 2, "only hashes are stored");
}

// Uploads

#[tokio::test]
async fn an_upload_link_stores_a_file_once() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    let formats = [
        ("a.png", "image/png", images::png(6, 4)),
        ("b.jpg", "image/jpeg", images::jpeg(6, 4)),
        ("c.webp", "image/webp", images::webp(6, 4)),
        ("d.gif", "image/gif", images::gif()),
    ];
    let files: Vec<Value> = formats
        .iter()
        .map(|(name, _, bytes)| json!({"name": name, "bytes": bytes.len(), "sha256": hex(bytes)}))
        .collect();
    let links = uploads(&user, json!({ "files": files })).await;
    assert_eq!(user.get("/auth/status").await.ok()["openLinks"], json!({"downloads": 0, "uploads": 4}));
    for ((name, media_type, bytes), link) in formats.iter().zip(&links) {
        let url = text(link, "/url");
        assert!(url.starts_with(&format!("{}/u/", stack.origin(0))), "{url}");
        assert_eq!(link["maxBytes"], bytes.len());
        assert_eq!(text(link, "/curl"), format!("curl -fsS -T '{name}' '{url}'"));
        outsider.get(url).await.expect(405);
        let reply = put(&outsider, url, bytes.clone()).await.expect(201);
        is_guarded(&reply);
        let stored = reply.json();
        assert_eq!((&stored["asset"]["mimeType"], &stored["asset"]["name"]), (&json!(media_type), &json!(name)));
        assert!(stored.get("node").is_none() && stored.get("canvas").is_none(), "{stored}");
        let id = text(&stored, "/asset/id");
        let content = user.get(&format!("/assets/{id}/content")).await.expect(200);
        assert!(content.body == *bytes, "{media_type}");
        let again = put(&outsider, url, bytes.clone()).await.expect(200).json();
        assert_eq!((&again["replayed"], &again["asset"]["id"]), (&json!(true), &json!(id)));
        put(&outsider, url, images::png(9, 9)).await.expect_error(409, "conflict", &[]);
    }
    assert_eq!(user.get("/auth/status").await.ok()["openLinks"], json!({"downloads": 0, "uploads": 0}));
    let assets = "SELECT count(*) FROM assets WHERE owner_uid = $1";
    assert_eq!(stack.count_of(assets, &user.uid).await, 4);
    // The asset can be purged; the link then gives nothing.
    let url = text(&links[0], "/url");
    sqlx::query("DELETE FROM assets WHERE owner_uid = $1")
        .bind(&user.uid)
        .execute(stack.pool())
        .await
        .expect("deletes");
    not_found(put(&outsider, url, formats[0].2.clone()).await);
}

#[tokio::test]
async fn the_type_of_an_upload_is_that_of_its_bytes() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    for declared in ["image/jpeg", "text/plain", "application/x-www-form-urlencoded", "nonsense"] {
        let url = slot(&user).await;
        let sent = outsider.call(Method::PUT, &url).body(declared, images::png(4, 4)).await.expect(201);
        assert_eq!(sent.json()["asset"]["mimeType"], "image/png");
    }
    // Without a length.
    let url = slot(&user).await;
    outsider.call(Method::PUT, &url).chunked("image/png", images::png(4, 4)).await.expect(201);
    // Private metadata is removed as from any upload.
    let (url, photo) = (slot(&user).await, images::photo_with_place(40, 30));
    let stored = put(&outsider, &url, photo.clone()).await.expect(201).json();
    assert_eq!(stored["asset"]["metadataRemoved"][0], "location", "{stored}");
    let original = format!("/assets/{}/content?original=true", text(&stored, "/asset/id"));
    assert!(user.get(&original).await.expect(200).body == photo);
    put(&outsider, &url, photo).await.expect(200);
}

#[tokio::test]
async fn a_refused_upload_leaves_the_link_open() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    let png = images::png(4, 4);
    let file = json!({"name": "a.png", "bytes": png.len(), "sha256": hex(&png)});
    let exact = text(&uploads(&user, json!({ "files": [file] })).await[0], "/url").to_owned();
    let any = slot(&user).await;
    let other = json!([{"name": "a.png", "sha256": hex(b"another")}]);
    let other = text(&uploads(&user, json!({ "files": other })).await[0], "/url").to_owned();
    put(&outsider, &any, "").await.expect_error(400, "input_validation_error", &["body"]);
    put(&outsider, &any, vec![0; UPLOAD_MAX + 1]).await.expect_error(413, "payload_too_large", &[]);
    put(&outsider, &any, b"%PDF-1.7 is no image".to_vec()).await.expect_error(415, "unsupported_media_type", &[]);
    put(&outsider, &any, films::unique(films::SILENT)).await.expect_error(415, "unsupported_media_type", &[]);
    put(&outsider, &any, b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec()).await.expect_error(
        415,
        "unsupported_media_type",
        &[],
    );
    put(&outsider, &any, png[..20].to_vec()).await.expect_error(422, "unprocessable_entity", &["body"]);
    for wrong in [images::png(40, 40), png[..png.len() - 1].to_vec()] {
        put(&outsider, &exact, wrong.clone()).await.expect_error(422, "unprocessable_entity", &["bytes"]);
        outsider.call(Method::PUT, &exact).chunked("image/png", wrong).await.expect_error(
            422,
            "unprocessable_entity",
            &["bytes"],
        );
    }
    put(&outsider, &other, png.clone()).await.expect_error(422, "unprocessable_entity", &["sha256"]);
    put(&outsider, &exact, png.clone()).await.expect(201);
    put(&outsider, &any, png).await.expect(201);
}

#[tokio::test]
async fn one_upload_at_a_time_goes_through_a_link_and_one_that_breaks_off_frees_it() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    let (url, png) = (slot(&user).await, images::noise_png(200));
    // A body whose end does not come until it is told to.
    let slow = |png: &[u8]| {
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        let (begin, end) = png.split_at(png.len() / 2);
        let (begin, end) = (Bytes::copy_from_slice(begin), Bytes::copy_from_slice(end));
        let pieces = stream::unfold((0, Some(finished)), move |(step, finished)| {
            let (begin, end) = (begin.clone(), end.clone());
            async move {
                match (step, finished) {
                    (0, finished) => Some((Ok::<_, std::io::Error>(begin), (1, finished))),
                    (1, Some(finished)) => {
                        let told = finished.await.map(|()| end).map_err(std::io::Error::other);
                        Some((told, (2, None)))
                    }
                    _ => None,
                }
            }
        });
        (reqwest::Body::wrap_stream(pieces), finish)
    };
    let leased = "SELECT count(*) FROM capability_links WHERE account_uid = $1 AND lease IS NOT NULL";
    let is_leased = async |count| {
        let wanted = async || (stack.count_of(leased, &user.uid).await == count).then_some(());
        wait_for("the lease", Duration::from_secs(10), wanted).await;
    };
    let (body, finish) = slow(&png);
    let first = tokio::spawn(outsider.call(Method::PUT, &url).untyped(body).attempt());
    is_leased(1).await;
    put(&outsider, &url, png.clone()).await.expect_error(409, "conflict", &[]);
    drop(finish);
    assert!(first.await.expect("ends").is_err(), "it broke off");
    is_leased(0).await;
    let (body, finish) = slow(&png);
    let second = tokio::spawn(outsider.call(Method::PUT, &url).untyped(body).attempt());
    is_leased(1).await;
    put(&outsider, &url, png.clone()).await.expect_error(409, "conflict", &[]);
    finish.send(()).expect("waits");
    second.await.expect("ends").expect("is answered").expect(201);
    put(&outsider, &url, png).await.expect(200);
    assert_eq!(stack.count_of("SELECT count(*) FROM assets WHERE owner_uid = $1", &user.uid).await, 1);
}

#[tokio::test]
async fn uploads_into_a_canvas_lie_in_one_block_whatever_their_order() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let files: Vec<Value> = (0..5).map(|number| json!({"name": format!("{number}.png")})).collect();
    let links = uploads(&user, json!({"files": files, "canvasId": canvas, "place": {"x": 1000, "y": 2000}})).await;
    let mut revision = user.canvas(&canvas).await["revision"].clone();
    for (number, link) in links.iter().enumerate().rev() {
        let png = images::png(10, 10);
        let answer = put(&outsider, text(link, "/url"), png.clone()).await.expect(201).json();
        let now = user.canvas(&canvas).await;
        assert_eq!(answer["canvas"], json!({"handle": now["handle"], "revision": now["revision"]}));
        assert_ne!(now["revision"], revision);
        revision = now["revision"].clone();
        let node = user.get(&format!("/canvases/{canvas}/nodes/{}", text(&answer, "/node"))).await.ok();
        assert_eq!(
            (&node["node"]["asset"], &node["node"]["title"]),
            (&answer["asset"]["handle"], &json!(format!("{number}.png")))
        );
        assert_eq!(node["node"]["metadata"]["provenance"]["kind"], "upload", "{node}");
        let corner = (1000 + 360 * (number % 3) as i64, 2000 + 360 * (number / 3) as i64);
        let position = &node["node"]["position"];
        let at = ["x", "y"].map(|axis| position[axis].as_f64().expect("a number") as i64);
        assert_eq!((at[0], at[1]), corner, "{number}");
        // Again: the answer of the first time.
        let again = put(&outsider, text(link, "/url"), png).await.expect(200).json();
        assert_eq!((&again["node"], &again["canvas"]), (&answer["node"], &answer["canvas"]));
        assert_eq!((&answer["ref"], &again["ref"]), (&node["node"]["ref"], &node["node"]["ref"]));
    }
    assert_eq!(user.canvas(&canvas).await["nodes"].as_array().map(Vec::len), Some(5));
}

#[tokio::test]
async fn a_cell_that_was_taken_is_replaced_by_the_nearest_free_place() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let section = json!([{"type": "section.create", "title": "S", "clientId": "s"}]);
    let made = user.apply(&canvas, section).await;
    let section = text(&made, "/resolvedIds/s").to_owned();
    let place = json!({"sectionId": section, "title": "Shot"});
    let links = uploads(&user, json!({"files": [{"name": "a.png"}], "canvasId": canvas, "place": place})).await;
    let free =
        uploads(&user, json!({"files": [{"name": "b.png"}], "canvasId": canvas, "place": {"x": 9000, "y": 0}})).await;
    let note = json!([{"type": "node.create", "node": {"type": "text", "position": {"x": 9000, "y": 0}}}]);
    user.apply(&canvas, note).await;
    let read = async |answer: &Value| {
        user.get(&format!("/canvases/{canvas}/nodes/{}", text(answer, "/node"))).await.ok()["node"].clone()
    };
    let shot = put(&outsider, text(&links[0], "/url"), images::png(10, 10)).await.expect(201).json();
    let shot = read(&shot).await;
    assert_eq!((&shot["title"], &shot["metadata"]["sectionId"]), (&json!("Shot"), &json!(section)));
    let moved = put(&outsider, text(&free[0], "/url"), images::png(10, 10)).await.expect(201).json();
    assert_ne!(read(&moved).await["position"], json!({"x": 9000, "y": 0}));
}

#[tokio::test]
async fn an_upload_into_a_canvas_out_of_reach_is_404() {
    let stack = &Stack::without_workers().await;
    let (owner, editor, outsider) = (stack.user().await, stack.user().await, outsider(stack));
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    stack.share(&owner, id, &editor.uid, "editor").await;
    let files = json!([{"name": "a.png"}, {"name": "b.png"}, {"name": "c.png"}]);
    let links = uploads(&editor, json!({"files": files, "canvasId": handle})).await;
    let url = |index: usize| text(&links[index], "/url").to_owned();
    let stored = put(&outsider, &url(0), images::png(4, 4)).await.expect(201).json();
    assert_eq!(stored["asset"]["ownerUid"], json!(owner.uid), "it is the owner's, and counts for its storage");
    stack.share(&owner, id, &editor.uid, "viewer").await;
    not_found(put(&outsider, &url(1), images::png(4, 4)).await);
    not_found(put(&outsider, &url(0), images::png(4, 4)).await);
    editor.send("/assets/uploads", &json!({"files": files, "canvasId": handle})).await.expect_error(
        403,
        "forbidden",
        &[],
    );
    stack.share(&owner, id, &editor.uid, "none").await;
    not_found(put(&outsider, &url(1), images::png(4, 4)).await);
    stack.share(&owner, id, &editor.uid, "editor").await;
    put(&outsider, &url(1), images::png(4, 4)).await.expect(201);
    stack.admin(&["admin", "canvas", "purge", "--canvas", handle, "--yes"]).await.expect_success();
    not_found(put(&outsider, &url(2), images::png(4, 4)).await);
}

#[tokio::test]
async fn an_upload_link_ends_with_its_time_and_its_token() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    let (expired, revoked) = (slot(&user).await, slot(&user).await);
    expire(stack, &user, "upload").await;
    not_found(put(&outsider, &expired, images::png(4, 4)).await);
    let open = slot(&user).await;
    stack.admin(&["admin", "token", "revoke", &user.token_id]).await.expect_success();
    for url in [&revoked, &open] {
        not_found(put(&outsider, url, images::png(4, 4)).await);
    }
    not_found(put(&outsider, &(stack.origin(0) + "/u/AAAAAAAAAAAAAAAAAAAAAA"), images::png(4, 4)).await);
}

#[tokio::test]
async fn an_account_has_100_open_upload_links() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    let files = |count: usize| json!({"files": vec![json!({"name": "a.png"}); count]});
    let mut urls = Vec::new();
    for count in [20, 20, 20, 20, 19] {
        urls.extend(uploads(&user, files(count)).await);
    }
    user.send("/assets/uploads", &files(2)).await.expect_error(429, "rate_limited", &[]);
    uploads(&user, files(1)).await;
    let refused = user.send("/assets/uploads", &files(1)).await;
    assert!(refused.header("retry-after").is_some());
    refused.expect_error(429, "rate_limited", &[]);
    // One that received its file is not open any more.
    put(&outsider, text(&urls[0], "/url"), images::png(4, 4)).await.expect(201);
    uploads(&user, files(1)).await;
    user.send("/assets/uploads", &files(1)).await.expect_error(429, "rate_limited", &[]);
}

#[tokio::test]
async fn an_upload_counts_for_the_storage_of_the_account() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    let url = slot(&user).await;
    let quota = ["admin", "account", "quota", "--account", &user.uid, "--bytes"];
    stack.admin(&[&quota[..], &["1"]].concat()).await.expect_success();
    let refused = put(&outsider, &url, images::png(4, 4)).await.expect(422);
    let error = refused.json()["error"].clone();
    assert_eq!(error["fields"][0]["field"], "body");
    assert!(error["details"].get("bytes").is_none(), "the holder of a link is not told about the account: {error}");
    stack.admin(&[&quota[..], &["1000000000"]].concat()).await.expect_success();
    put(&outsider, &url, images::png(4, 4)).await.expect(201);
}

#[tokio::test]
async fn a_request_for_upload_links_states_what_is_wrong() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let file = json!([{"name": "a.png"}]);
    let named = |name: &str| json!({"files": [{"name": name}]});
    for (body, fields) in [
        (json!({}), &["files"][..]),
        (json!({"files": []}), &["files"]),
        (json!({"files": vec![json!({"name": "a"}); 21]}), &["files"]),
        (json!({"files": [{}]}), &["files[0].name"]),
        (named(""), &["files[0].name"]),
        (named("a/"), &["files[0].name"]),
        (named(&"x".repeat(256)), &["files[0].name"]),
        (json!({"files": [{"name": "a", "bytes": 0}]}), &["files[0].bytes"]),
        (json!({"files": [{"name": "a", "bytes": UPLOAD_MAX + 1}]}), &["files[0].bytes"]),
        (json!({"files": [{"name": "a", "sha256": "A".repeat(64)}]}), &["files[0].sha256"]),
        (json!({"files": [{"name": "a", "sha256": "a".repeat(63)}]}), &["files[0].sha256"]),
        (json!({"files": file, "expiresInSeconds": 59}), &["expiresInSeconds"]),
        (json!({"files": file, "expiresInSeconds": 3601}), &["expiresInSeconds"]),
        (json!({"files": file, "place": {}}), &["place"]),
        (json!({"files": file, "canvasId": canvas, "place": {"x": 1}}), &["place.y"]),
        (json!({"files": file, "canvasId": canvas, "place": {"x": 1, "y": 1, "near": "n"}}), &["place.near"]),
        (json!({"files": file, "canvasId": canvas, "place": {"count": 1}}), &["place.count"]),
    ] {
        user.send("/assets/uploads", &body).await.expect_error(400, "input_validation_error", fields);
    }
    let place = json!({"near": "absent", "sectionId": "absent"});
    user.send("/assets/uploads", &json!({"files": file, "canvasId": canvas, "place": place})).await.expect_error(
        422,
        "unprocessable_entity",
        &["place.near", "place.sectionId"],
    );
    // At the bounds.
    for seconds in [60, 3600] {
        uploads(&user, json!({"files": file, "expiresInSeconds": seconds})).await;
    }
    let exact =
        json!([{"name": "x".repeat(255), "bytes": UPLOAD_MAX, "sha256": "a".repeat(64)}, {"name": "a", "bytes": 1}]);
    let links = uploads(&user, json!({ "files": exact })).await;
    assert_eq!((&links[0]["maxBytes"], &links[1]["maxBytes"]), (&json!(UPLOAD_MAX), &json!(1)));
    // One name twice is two files.
    let twice = uploads(&user, json!({"files": [{"name": "a.png"}, {"name": "a.png"}]})).await;
    assert_ne!(twice[0]["url"], twice[1]["url"]);
}

#[tokio::test]
async fn a_file_name_is_kept_as_any_and_is_one_word_of_the_shell() {
    let stack = &Stack::without_workers().await;
    let (user, outsider) = (stack.user().await, outsider(stack));
    for (name, kept, word) in [
        ("it's.png", "it's.png", r"'it'\''s.png'"),
        ("a\nb.png", "ab.png", "'ab.png'"),
        ("../up/a.png", "a.png", "'../up/a.png'"),
        ("\u{202e}gnp.a", "\u{202e}gnp.a", "'\u{202e}gnp.a'"),
        ("$(id).png", "$(id).png", "'$(id).png'"),
    ] {
        let link = uploads(&user, json!({"files": [{"name": name}]})).await[0].clone();
        assert_eq!(link["name"], kept);
        assert!(text(&link, "/curl").contains(&format!(" -T {word} '")), "{link}");
        let stored = put(&outsider, text(&link, "/url"), images::png(4, 4)).await.expect(201).json();
        assert_eq!(stored["asset"]["name"], kept);
    }
}

#[tokio::test]
async fn the_curl_command_uploads_the_file() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let folder = std::env::temp_dir().join(format!("canvas-links-{}", Uuid::new_v4()));
    std::fs::create_dir(&folder).expect("makes a folder");
    for name in ["it's [1] $HOME.png", "large.png"] {
        // curl asks before it sends a large file.
        let bytes = if name == "large.png" { images::noise_png(1200) } else { images::png(5, 4) };
        std::fs::write(folder.join(name), &bytes).expect("writes");
        let link = uploads(&user, json!({"files": [{"name": name, "sha256": hex(&bytes)}]})).await[0].clone();
        let mut shell = tokio::process::Command::new("sh");
        let output = shell.arg("-c").arg(text(&link, "/curl")).current_dir(&folder).output().await.expect("runs");
        assert!(output.status.success(), "{}: {}", text(&link, "/curl"), String::from_utf8_lossy(&output.stderr));
        let stored: Value = serde_json::from_slice(&output.stdout).expect("an answer");
        let content = user.get(&format!("/assets/{}/content", text(&stored, "/asset/id"))).await.expect(200);
        assert!(content.body == bytes, "{name}");
    }
    std::fs::remove_dir_all(folder).expect("removes");
}

#[tokio::test]
async fn links_that_have_ended_are_swept() {
    let stack = &Stack::builder().image_workers(1).env("CANVAS_SWEEP_SECONDS", 1).shared().await;
    let user = stack.user().await;
    slot(&user).await;
    link_to(&user, &user.upload("image/png", images::png(3, 3)).await).await;
    expire(stack, &user, "upload").await;
    let links = "SELECT count(*) FROM capability_links WHERE account_uid = $1";
    let swept = async || (stack.count_of(links, &user.uid).await == 1).then_some(());
    wait_for("the sweep", Duration::from_secs(30), swept).await;
    assert!(!stack.log(Part::GATEWAY).is_empty());
}
