//! The pages and files of the browser application.

use e2e::Stack;

#[tokio::test]
async fn every_page_is_the_application_under_a_strict_policy() {
    let stack = &Stack::without_workers().await;
    let (_, _, first) = stack.anonymous().fetch("/").await;
    for path in [
        "/",
        "/signin",
        "/c/someone/canvas",
        "/runs",
        "/elements",
        "/recipes",
        "/assets",
        "/settings",
        "/settings/tokens",
    ] {
        let (status, headers, page) = stack.anonymous().fetch(path).await;
        // A gateway that was built without the application says how to build it.
        assert!(status == 200 || status == 404 && page.contains("gateway/console/build"), "{path}: {status} {page}");
        assert_eq!(page, first, "{path}");
        let policy = headers["content-security-policy"].to_str().expect("ASCII");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(policy.contains("require-trusted-types-for 'script'") && !policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(headers[name], value, "{path}");
        }
        if status == 200 {
            assert_eq!(headers["cache-control"], "no-cache");
            assert_eq!(headers["content-type"], "text/html");
        }
    }
}

#[tokio::test]
async fn the_licenses_of_the_application_are_served_with_it() {
    let stack = &Stack::without_workers().await;
    let (application, ..) = stack.anonymous().fetch("/").await;
    let (status, headers, text) = stack.anonymous().fetch("/licenses.txt").await;
    assert_eq!(status, application);
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    assert!(status == 404 || text.contains("## react - "), "{text}");
}

#[tokio::test]
async fn what_is_no_page_is_not_found() {
    let stack = &Stack::without_workers().await;
    for path in
        ["/c/someone", "/c/a/b/c", "/static/absent.js", "/static/../index.html", "/index.html", "/console", "/console/"]
    {
        let (status, headers, _) = stack.anonymous().fetch(path).await;
        assert_eq!((status, headers["content-type"].to_str().ok()), (404, Some("application/json")), "{path}");
    }
}

#[tokio::test]
async fn a_browser_is_shown_that_an_address_has_no_page() {
    let stack = &Stack::without_workers().await;
    let (_, _, page) = stack.anonymous().fetch("/").await;
    if page.contains("gateway/console/build") {
        return; // This gateway was built without the application.
    }
    for path in ["/nowhere", "/c/someone", "/c/a/b/c"] {
        let (status, headers, shown) = stack.anonymous().navigate(path).await;
        assert_eq!((status, shown == page), (404, true), "{path}");
        assert_eq!(headers["content-type"], "text/html");
        assert_eq!(headers["cache-control"], "no-store");
        assert!(headers.contains_key("content-security-policy"), "{path}");
    }
    for path in ["/api/canvas-agent/v1/nowhere", "/api", "/console/nowhere", "/static/absent.js"] {
        let (status, headers, _) = stack.anonymous().navigate(path).await;
        assert_eq!((status, headers["content-type"].to_str().ok()), (404, Some("application/json")), "{path}");
    }
}
