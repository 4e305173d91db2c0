//! Real-world pages: content types, character encodings, sizes and errors (docs/reference/imports.md#gallery-discovery).

use std::time::Duration;

use e2e::api::text;
use e2e::{Stack, images};
use serde_json::json;
use testkit::Answer;

use super::{File, canvas, file, html, import_product, nodes, png, serve};

const IMAGE: &str = "<img src=/a.png>";

#[tokio::test]
async fn what_is_no_page_is_422() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(
        &shop,
        vec![
            png("/image", images::scene(300, 300, 1)),
            html("/disguised", ""),
            file("/json", "application/json", "{\"image\": \"/a.png\"}"),
            file("/text", "text/plain", IMAGE),
            file("/pdf", "application/pdf", "%PDF-1.7"),
            file("/html-image", "text/html", images::scene(300, 300, 2)),
        ],
    );
    let canvas = canvas(&user).await;
    for path in ["/image", "/json", "/text", "/pdf", "/html-image"] {
        let reply = import_product(&user, &canvas, &shop.url(path), json!({})).await;
        reply.expect_error(422, "unprocessable_entity", &["productPageUrl"]);
    }
    let empty = import_product(&user, &canvas, &shop.url("/disguised"), json!({})).await.ok();
    assert_eq!(empty["reason"], "no_gallery_images_discovered", "an empty page is a valid page");
    assert!(nodes(&user, &canvas).await.is_empty());
}

#[tokio::test]
async fn an_error_of_the_page_is_502() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let canvas = canvas(&user).await;
    for answer in [Answer::status(404), Answer::status(503), Answer::close()] {
        shop.answer(answer.header("content-type", "text/html"));
        let reply = import_product(&user, &canvas, &shop.url("/boots"), json!({})).await;
        reply.expect_error(502, "upstream_error", &[]);
    }
}

#[tokio::test]
async fn a_redirected_page_is_read_from_where_it_leads() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let moved = File { path: "/old", answer: Answer::status(301).header("location", "/new/boots") };
    serve(&shop, vec![moved, html("/new/boots", "<img src=a.png>"), png("/new/a.png", images::scene(300, 300, 1))]);
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/old"), json!({})).await.ok();
    assert_eq!(import["page"], json!({"url": shop.url("/old"), "resolvedUrl": shop.url("/new/boots")}));
    assert_eq!(text(&import, "/images/0/sourceImageUrl"), shop.url("/new/a.png"));
}

#[tokio::test]
async fn a_location_in_utf_8_is_followed() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let moved = File { path: "/old", answer: Answer::redirect("/p/détail-店?größe=é") };
    let page = html("/p/d%C3%A9tail-%E5%BA%97?gr%C3%B6%C3%9Fe=%C3%A9", IMAGE);
    serve(&shop, vec![moved, page, png("/a.png", images::scene(300, 300, 1))]);
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/old"), json!({})).await.ok();
    assert_eq!(import["page"]["resolvedUrl"], shop.url("/p/d%C3%A9tail-%E5%BA%97?gr%C3%B6%C3%9Fe=%C3%A9"));
    assert_eq!(import["pack"]["imageCount"], 1);
}

#[tokio::test]
async fn two_types_in_one_header_are_a_page_if_one_is() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let merged = file("/merged", "text/html, text/html; charset=utf-8", IMAGE);
    let twice = File {
        path: "/twice",
        answer: Answer::status(200)
            .header("content-type", "text/plain")
            .header("content-type", "text/html")
            .body(IMAGE.as_bytes().to_vec()),
    };
    let none = file("/none", "text/plain, application/json", IMAGE);
    serve(&shop, vec![merged, twice, none, png("/a.png", images::scene(300, 300, 1))]);
    let canvas = canvas(&user).await;
    for path in ["/merged", "/twice"] {
        let import = import_product(&user, &canvas, &shop.url(path), json!({})).await.ok();
        assert_eq!(import["pack"]["imageCount"], 1, "{path}: {import}");
    }
    let reply = import_product(&user, &canvas, &shop.url("/none"), json!({})).await;
    reply.expect_error(422, "unprocessable_entity", &["productPageUrl"]);
}

#[tokio::test]
async fn requests_for_images_name_the_page_as_those_of_browsers() {
    let stack = &Stack::with_workers().await;
    let (user, shop, cdn) = (stack.user().await, stack.take_receiver(), stack.take_receiver());
    let there = cdn.url("/there.png");
    let page = html("/boots?size=41", &format!("<img src=/a.png><img src='{there}'><img src=/away.png>"));
    let away = File { path: "/away.png", answer: Answer::redirect(&cdn.url("/away.png")) };
    let old = File { path: "/old", answer: Answer::redirect("/boots?size=41") };
    serve(&shop, vec![page, away, old, png("/a.png", images::scene(300, 300, 1))]);
    serve(&cdn, vec![png("/there.png", images::scene(300, 300, 2)), png("/away.png", images::scene(300, 300, 3))]);
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/old"), json!({})).await.ok();
    assert_eq!(import["pack"]["imageCount"], 3, "{import}");
    let seen = |server: &testkit::Receiver, path: &str| {
        let request = server.requests().into_iter().find(|request| request.path == path);
        let request = request.unwrap_or_else(|| panic!("{path} was not asked for"));
        let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        (header("referer"), header("accept").unwrap_or_default())
    };
    let (page, origin) = (Some(shop.url("/boots?size=41")), Some(shop.url("/")));
    for (server, path, referer) in [
        (&shop, "/old", &None),
        (&shop, "/boots?size=41", &None),
        (&shop, "/a.png", &page),
        (&shop, "/away.png", &page),
        (&cdn, "/there.png", &origin),
        (&cdn, "/away.png", &origin),
    ] {
        let (seen, accept) = seen(server, path);
        assert_eq!(&seen, referer, "{path}");
        let wanted = if path.ends_with(".png") { "image/webp," } else { "text/html," };
        assert!(accept.starts_with(wanted) && !accept.contains("avif"), "{path}: {accept}");
    }
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_422() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let canvas = canvas(&user).await;
    for location in
        ["https://10.0.0.1/", "https://127.0.0.1:1/", "https://[fd00::1]/", "https://localhost/", "http://example.com/"]
    {
        shop.answer(Answer::redirect(location));
        let reply = import_product(&user, &canvas, &shop.url("/boots"), json!({})).await;
        reply.expect_error(422, "unprocessable_entity", &["productPageUrl"]);
    }
    // An image that redirects to a forbidden address is skipped.
    let astray = File { path: "/astray.png", answer: Answer::redirect("https://10.0.0.1/a.png") };
    let page = html("/boots", "<img src=/astray.png><img src=https://192.168.0.1/b.png><img src=/a.png>");
    serve(&shop, vec![page, astray, png("/a.png", images::scene(300, 300, 1))]);
    let import = import_product(&user, &canvas, &shop.url("/boots"), json!({})).await.ok();
    assert_eq!((&import["pack"]["imageCount"], &import["discovery"]["skippedImageCount"]), (&json!(1), &json!(2)));
}

#[tokio::test]
async fn a_page_in_another_encoding_is_read() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let utf16: Vec<u8> = "\u{feff}<img src='/b.png'>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    serve(
        &shop,
        vec![
            // Declares UTF-8 but is Windows-1251. The URL of the image contains letters of that encoding.
            file("/wrong", "text/html; charset=utf-8", b"<title>\xca\xee\xe6\xe0\xed\xfb\xe5 \xe1\xee\xf2\xe8\xed\xea\xe8</title><p>\xee\xf1\xe5\xed\xed\xff\xff \xea\xee\xeb\xeb\xe5\xea\xf6\xe8\xff <img src='/\xe1\xee\xf2.png'>".to_vec()),
            file("/utf16", "text/html", utf16),
            png("/%D0%B1%D0%BE%D1%82.png", images::scene(300, 300, 1)),
            png("/b.png", images::scene(300, 300, 2)),
        ],
    );
    let canvas = canvas(&user).await;
    for path in ["/wrong", "/utf16"] {
        let import = import_product(&user, &canvas, &shop.url(path), json!({})).await.ok();
        assert_eq!(import["status"], "succeeded", "{path}: {import}");
    }
}

#[tokio::test]
async fn a_page_is_read_up_to_its_limit() {
    let stack = &Stack::with_workers().await;
    const LIMIT: usize = 5 * 1024 * 1024;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let filled = |length: usize| {
        let end = "<img src=/late.png>";
        let mut page = format!("{IMAGE}<!--");
        page.push_str(&" ".repeat(length - page.len() - 3 - end.len()));
        page + "-->" + end
    };
    serve(
        &shop,
        vec![
            html("/within", &filled(LIMIT)),
            html("/over", &filled(LIMIT + 1)),
            png("/a.png", images::scene(300, 300, 1)),
            png("/late.png", images::scene(300, 300, 2)),
        ],
    );
    let canvas = canvas(&user).await;
    let within = import_product(&user, &canvas, &shop.url("/within"), json!({})).await.ok();
    assert_eq!((&within["pack"]["imageCount"], within["discovery"].get("limited")), (&json!(2), None));
    let over = import_product(&user, &canvas, &shop.url("/over"), json!({})).await.ok();
    assert_eq!((&over["pack"]["imageCount"], &over["discovery"]["limited"]), (&json!(1), &json!(true)));
}

#[tokio::test]
async fn a_page_that_never_ends_is_read_up_to_its_limit() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(&shop, vec![File { path: "/endless", answer: Answer::endless().header("content-type", "text/html") }]);
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/endless"), json!({})).await.ok();
    assert_eq!(
        (text(&import, "/reason"), &import["discovery"]["limited"]),
        ("no_gallery_images_discovered", &json!(true))
    );
}

#[tokio::test]
async fn a_dripping_page_is_dropped_after_8_seconds() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    shop.answer(Answer::drip(Duration::from_millis(100)).header("content-type", "text/html"));
    let canvas = canvas(&user).await;
    let began = std::time::Instant::now();
    let reply = import_product(&user, &canvas, &shop.url("/slow"), json!({})).await;
    reply.expect_error(504, "upstream_timeout", &[]);
    assert!((8..20).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_gallery_that_takes_longer_than_the_budget_is_cut_and_says_so() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    // Three at a time, each dropped after 8 s: five rounds of them end before the budget does.
    let slow = (0..20).map(|number| format!("<img src=/slow.png?{number}>"));
    let gallery = "<img src=/a.png>".to_owned() + &slow.collect::<String>();
    serve(
        &shop,
        vec![
            html("/boots", &gallery),
            png("/a.png", images::scene(300, 300, 41)),
            File { path: "/slow.png", answer: Answer::drip(Duration::from_millis(100)) },
        ],
    );
    let canvas = canvas(&user).await;
    let began = std::time::Instant::now();
    let import = import_product(&user, &canvas, &shop.url("/boots"), json!({})).await.ok();
    assert!((40..55).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!((&import["pack"]["imageCount"], &import["discovery"]["limited"]), (&json!(1), &json!(true)));
    assert_eq!(import["discovery"]["skippedImageCount"], 20, "{import}");
    let skipped = import["discovery"]["skipped"].as_array().expect("reasons");
    let count = |reason: &str| {
        skipped.iter().find(|it| it["reason"] == reason).map_or(0, |it| it["count"].as_u64().expect("a count"))
    };
    assert!(count("unreachable") >= 12 && count("limit") >= 3, "{import}");
}
