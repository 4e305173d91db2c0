//! The documents as web pages (docs/reference/conventions.md#guides).

use std::collections::{HashMap, HashSet};

use e2e::Stack;
use reqwest::Method;
use serde_json::Value;

const ROOT: &str = "/docs/guides";

/// The values of an attribute in a page.
fn values(html: &str, attribute: &str) -> Vec<String> {
    let after = html.split(&format!(" {attribute}=\"")).skip(1).map(str::to_owned).collect::<Vec<_>>();
    after.iter().filter_map(|rest| rest.split('"').next().map(str::to_owned)).collect()
}

#[tokio::test]
async fn every_guide_is_found_from_the_first_and_every_link_of_each_works() {
    let stack = &Stack::without_workers().await;
    let anyone = stack.anonymous();
    let (mut pages, mut links) = (HashMap::new(), HashSet::new());
    let mut next = vec![ROOT.to_owned()];
    while let Some(address) = next.pop() {
        let reply = anyone.get(&address).await.expect(200);
        let html = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
        for link in values(&html, "href").into_iter().filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let path = if path.is_empty() { &address } else { path };
            links.insert((path.to_owned(), anchor.to_owned()));
            let is_new = !pages.contains_key(path) && !next.iter().any(|other| other == path) && path != address;
            if is_new && path.starts_with(ROOT) && !path.ends_with(".css") {
                next.push(path.to_owned());
            }
        }
        pages.insert(address, html);
    }
    assert!(pages.len() >= 60, "{:?}", pages.keys());
    let anchors: HashMap<&String, HashSet<String>> =
        pages.iter().map(|(address, html)| (address, values(html, "id").into_iter().collect())).collect();
    let is_there = |(path, anchor): &(String, String)| match anchors.get(path) {
        Some(ids) => anchor.is_empty() || ids.contains(anchor),
        None => ["/", "/docs", "/icon.svg", "/docs/guides.css"].contains(&path.as_str()),
    };
    let broken: Vec<_> = links.iter().filter(|link| !is_there(link)).collect();
    assert!(broken.is_empty(), "{broken:?}");
    for address in ["/docs/guides/console", "/docs/guides/reference/errors", "/docs/guides/deploy/runbook"] {
        assert!(pages.contains_key(address), "{address}");
    }
    let images: HashSet<String> = pages.values().flat_map(|html| values(html, "src")).collect();
    assert!(images.len() >= 10, "{images:?}");
    for image in images.iter().filter(|image| image.starts_with("/docs/guides/")) {
        assert_eq!(anyone.get(image).await.expect(200).header("content-type"), Some("image/jpeg"), "{image}");
    }
}

#[tokio::test]
async fn a_guide_is_a_strict_page_that_is_revalidated() {
    let stack = &Stack::without_workers().await;
    let anyone = stack.anonymous();
    for (path, kind) in [
        ("/docs/guides/console", "text/html; charset=utf-8"),
        ("/docs/guides.css", "text/css; charset=utf-8"),
        ("/docs/guides.js", "text/javascript; charset=utf-8"),
        ("/docs/guides.json", "application/json"),
    ] {
        let file = anyone.get(path).await.expect(200);
        assert_eq!(file.header("content-type"), Some(kind));
        assert_eq!(file.header("cache-control"), Some("public, max-age=300"), "{path}");
        assert_eq!(
            (file.header("x-content-type-options"), file.header("referrer-policy")),
            (Some("nosniff"), Some("no-referrer"))
        );
        let policy = file.header("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe") && !policy.contains("http"),
            "{policy}"
        );
        let tag = file.header("etag").expect("an entity tag");
        let kept = anyone.get(path).header("if-none-match", tag).await.expect(304);
        assert_eq!((kept.header("etag"), kept.body.len()), (Some(tag), 0));
        anyone.get(path).header("if-none-match", "\"another\"").await.expect(200);
        let head = anyone.call(Method::HEAD, path).await.expect(200);
        assert_eq!((head.header("etag"), head.body.len()), (Some(tag), 0), "{path}");
    }
    let root = anyone.get("/docs/guides/").await.expect(308);
    assert_eq!(root.header("location"), Some(ROOT));
    for unknown in
        ["/docs/guides/nothing", "/docs/guides/console.md", "/docs/guides/../mod.rs", "/docs/guides/%2e%2e/console"]
    {
        anyone.get(unknown).await.expect_error(404, "not_found", &[]);
    }
    anyone.post("/docs/guides/console").await.expect(405);
}

#[tokio::test]
async fn the_search_has_an_index_of_all_texts() {
    let stack = &Stack::without_workers().await;
    let index = stack.anonymous().get("/docs/guides.json").await.expect(200);
    let index: Value = serde_json::from_slice(&index.body).expect("JSON");
    let page = index.as_array().and_then(|pages| pages.iter().find(|page| page[0] == "/docs/guides/deploy/runbook"));
    let page = page.expect("the runbook");
    assert_eq!(page[1], "Runbook");
    assert_eq!((&page[2][0][0], &page[2][0][1]), (&"runbook".into(), &"Runbook".into()));
    assert!(
        page[2][0][2].as_str().is_some_and(|text| text.len() > 100 && !text.contains("](")),
        "texts without markup"
    );
}

#[tokio::test]
async fn the_contract_leads_to_the_guides() {
    let stack = &Stack::without_workers().await;
    let contract = stack.anonymous().get("/openapi.json").await.ok();
    assert!(contract["info"]["description"].as_str().is_some_and(|text| text.contains("(/docs/guides)")));
}
