//! Rate limits (docs/reference/conventions.md#rate-limits, docs/reference/conventions.md#failed-credentials).

use e2e::{Part, Person, Stack};
use serde_json::json;

/// A stack with low limits of requests.
async fn limited() -> Stack {
    Stack::builder()
        .env("CANVAS_RATE_PER_MINUTE", 60)
        .env("CANVAS_RATE_BURST", 3)
        .env("CANVAS_FAILED_AUTH_PER_MINUTE", 4)
        .env("CANVAS_TRUSTED_PROXIES", "127.0.0.2/32")
        .shared()
        .await
}

#[tokio::test]
async fn a_token_has_a_burst_and_is_then_told_when_to_come_back() {
    let stack = &limited().await;
    let account = stack.account().await;
    let (one, other) = (stack.user_of(&account, "all").await, stack.user_of(&account, "all").await);
    let mut refused = None;
    for sent in 0..10 {
        let reply = one.get("/auth/status").await;
        let number = |name: &str| -> i64 {
            reply.header(name).unwrap_or_else(|| panic!("{name}: {reply}")).parse().expect("a number")
        };
        assert!(number("ratelimit-limit") > 0 && number("ratelimit-reset") >= 0);
        assert!((0..=3).contains(&number("ratelimit-remaining")), "{reply}");
        match reply.status {
            200 => assert!(sent < 9, "never limited"),
            _ => {
                assert!(sent >= 3, "refused within the burst: {sent}");
                assert!((1..=60).contains(&number("retry-after")));
                assert_eq!(number("ratelimit-remaining"), 0);
                reply.clone().expect_error(429, "rate_limited", &[]);
                refused = Some(sent);
                break;
            }
        }
    }
    assert!(refused.is_some());
    other.get("/auth/status").await.ok();
}

#[tokio::test]
async fn the_rate_comes_before_the_scopes() {
    let stack = &limited().await;
    let user = stack.user_with("canvas:read").await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(user.post("/canvases").await.status);
    }
    assert_eq!(seen[0], 403);
    assert!(seen.contains(&429), "{seen:?}");
}

#[tokio::test]
async fn failed_credentials_are_limited_by_address() {
    let stack = &limited().await;
    let (user, stranger) = (stack.user().await, stack.user().await);
    let address = new_address();
    user.get("/auth/status").await.ok();
    let guesser = stack.anonymous().from_address(address).with_token("cba_wrong");
    let mut seen = Vec::new();
    for _ in 0..6 {
        let reply = guesser.get("/auth/status").await;
        assert_eq!(reply.status == 429, reply.header("retry-after").is_some());
        seen.push(reply.status);
    }
    assert_eq!(seen[..4], [401; 4]);
    // A request without a credential is not a failed attempt.
    stack.anonymous().from_address(address).get("/auth/status").await.expect(401);
    assert_eq!(seen[5], 429, "{seen:?}");
    // A credential that was valid lately is still accepted from that address. One that was not seen is refused without a lookup.
    let from_there = |token: &str| stack.anonymous().from_address(address).with_token(token);
    from_there(&user.token).get("/auth/status").await.ok();
    from_there(&stranger.token).get("/auth/status").await.expect_error(429, "rate_limited", &[]);
    // Other addresses are not affected, and there the stranger becomes known.
    stranger.get("/auth/status").await.ok();
    from_there(&stranger.token).get("/auth/status").await.ok();
    stack.anonymous().with_token("cba_wrong").get("/auth/status").await.expect(401);
}

#[tokio::test]
async fn an_address_that_a_client_forges_is_ignored() {
    let stack = &limited().await;
    let guesser = stack.anonymous().from_address(new_address()).with_token("cba_wrong");
    let mut seen = Vec::new();
    for guess in 0..6 {
        let forged = format!("198.51.100.{guess}");
        seen.push(guesser.get("/auth/status").header("x-forwarded-for", &forged).await.status);
    }
    assert_eq!((&seen[..4], seen[5]), (&[401; 4][..], 429), "{seen:?}");
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_an_address_of_its_own() {
    let stack = &limited().await;
    let proxy = stack.anonymous().from_address([127, 0, 0, 2]).with_token("cba_wrong");
    let [client, other] = [new_address(), new_address()].map(|address| std::net::IpAddr::from(address).to_string());
    let mut seen = Vec::new();
    for guess in 0..6 {
        // What the client itself writes is left of what the proxy appends.
        let forwarded = format!("198.51.100.{guess}, {client}");
        seen.push(proxy.get("/auth/status").header("x-forwarded-for", &forwarded).await.status);
    }
    assert_eq!((&seen[..4], seen[5]), (&[401; 4][..], 429), "{seen:?}");
    proxy.get("/auth/status").header("x-forwarded-for", &other).await.expect(401);
    let logged = stack.log(Part::GATEWAY);
    assert!(logged.contains(&format!(r#""address":"{other}""#)), "{logged}");
    assert!(!logged.contains("198.51.100."));
}

#[tokio::test]
async fn a_failed_sign_in_is_a_failed_credential() {
    let stack = &limited().await;
    let guesser = stack.anonymous().from_address(new_address());
    let mut seen = Vec::new();
    for guess in
        [json!({"link": "x"}), json!({"token": "x"}), json!({"link": "x", "preview": true})].iter().cycle().take(6)
    {
        let call = guesser.send("/console/session", guess).header("origin", &stack.origin(0));
        let reply = call.header("x-canvas-console", "1").await;
        assert_eq!(reply.status == 429, reply.header("retry-after").is_some());
        seen.push(reply.status);
    }
    assert_eq!((&seen[..4], seen[5]), (&[401; 4][..], 429), "{seen:?}");
    let cookie = guesser.get("/console/session").header("cookie", "__Host-canvas=x");
    cookie.await.expect_error(429, "rate_limited", &[]);
    guesser.get("/console/session").await.expect_error(401, "unauthorized", &[]);
}

/// A new loopback address for each test, because tests share the stack.
fn new_address() -> [u8; 4] {
    let [first, second, third, ..] = uuid::Uuid::new_v4().into_bytes();
    [127, first.max(1), second, third.clamp(1, 254)]
}

#[tokio::test]
async fn a_session_has_the_rate_of_a_token_of_its_own() {
    let stack = &limited().await;
    let account = stack.account().await;
    let (person, other) = (stack.person(&account).await, stack.person(&account).await);
    // A page of another account takes nothing of it, and is no failed credential.
    for _ in 0..9 {
        person.get("/session").header("x-canvas-account", "another").await.expect_error(401, "unauthorized", &[]);
    }
    let mut sent = 0;
    let refused = loop {
        let reply = person.get("/session").await;
        assert!(reply.header("ratelimit-limit").is_some(), "{reply}");
        if reply.status != 200 {
            break reply;
        }
        sent += 1;
        assert!(sent < 10, "never limited");
    };
    assert!(sent >= 3, "refused within the burst: {sent}");
    assert!(refused.header("retry-after").is_some(), "{refused}");
    refused.expect_error(429, "rate_limited", &[]);
    // The contract below the console counts for the same session.
    person.get(&Person::api("/canvases")).await.expect_error(429, "rate_limited", &[]);
    other.get("/session").await.ok();
    stack.user_of(&account, "all").await.get("/auth/status").await.ok();
}
