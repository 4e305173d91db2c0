//! Rate limits (docs/reference/conventions.md#rate-limits, docs/reference/conventions.md#failed-credentials).

use std::time::Duration;

use cache::Cache;
use e2e::api::{key, text};
use e2e::{Client, Part, Person, Reply, Stack, images};
use futures_util::future::join_all;
use serde_json::json;
use testkit::wait_for;

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

/// A number in a header of a reply.
fn number(reply: &Reply, name: &str) -> i64 {
    reply.header(name).unwrap_or_else(|| panic!("{name}: {reply}")).parse().expect("a number")
}

#[tokio::test]
async fn an_account_has_a_rate_over_all_of_its_tokens_and_sessions() {
    let builder = Stack::builder().env("CANVAS_ACCOUNT_RATE_PER_MINUTE", 60).env("CANVAS_ACCOUNT_RATE_BURST", 6);
    let stack = &builder.shared().await;
    let account = stack.account().await;
    let person = stack.person(&account).await;
    let (one, other) = (stack.user_of(&account, "all").await, stack.user_of(&account, "all").await);
    let mut sent = 0;
    let refused = loop {
        let reply = match sent % 3 {
            0 => one.get("/auth/status").await,
            1 => other.get("/auth/status").await,
            _ => person.get("/session").await,
        };
        // The account has less left than any of its tokens.
        assert_eq!(number(&reply, "ratelimit-limit"), 6, "{reply}");
        if reply.status != 200 {
            break reply;
        }
        sent += 1;
        assert!(sent < 30, "never limited");
    };
    assert!(sent >= 6, "refused within the burst: {sent}");
    assert_eq!(number(&refused, "ratelimit-remaining"), 0);
    assert!((1..=60).contains(&number(&refused, "retry-after")));
    let message = refused.expect_error(429, "rate_limited", &[]);
    assert!(message.contains("account"), "{message}");
    stack.user().await.get("/auth/status").await.ok();
    // A refusal grants nothing: the credential is judged again when its wait is over.
    stack.admin(&["admin", "token", "revoke", &one.token_id]).await.expect_success();
    wait_for("the revoked token to be refused as such", Duration::from_secs(10), async || {
        let reply = one.get("/auth/status").await;
        assert!([401, 429].contains(&reply.status), "{reply}");
        (reply.status == 401).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_console_five_agents_and_a_job_of_one_account_stay_below_a_quarter_of_the_default_rates() {
    let defaults = Stack::builder().env("CANVAS_RATE_PER_MINUTE", 1200).env("CANVAS_RATE_BURST", 200);
    let stack = &defaults.shared().await;
    let account = stack.account().await;
    let person = stack.person(&account).await;
    let mut agents = Vec::new();
    for _ in 0..6 {
        agents.push(stack.user_of(&account, "all").await);
    }
    // A page of the console loads, and each program has a burst of its own: 231 requests, of which an account may send 1000 at once.
    // Not more at once than a busy machine answers in time: without an answer of Redis there is no limit, and no header.
    let mut replies = Vec::new();
    for _ in 0..33 {
        replies.push(person.get("/session").await);
        replies.extend(join_all(agents.iter().map(|agent| agent.get("/auth/status").into_future())).await);
    }
    for reply in replies {
        assert_eq!((reply.status, number(&reply, "ratelimit-limit")), (200, 200), "{reply}");
        assert!(number(&reply, "ratelimit-remaining") >= 150, "{reply}");
    }
}

#[tokio::test]
async fn heavy_requests_weigh_more() {
    // The bucket does not refill during the test.
    let stack = &Stack::builder().env("CANVAS_RATE_PER_MINUTE", 1).env("CANVAS_RATE_BURST", 400).shared().await;
    let user = stack.user().await;
    let left = async || number(&user.get("/auth/status").await, "ratelimit-remaining");
    assert_eq!(left().await, 399);
    // The rate is judged before body and canvas.
    let import = user.send("/images/import", &json!({})).await;
    assert_eq!((import.status, number(&import, "ratelimit-remaining")), (400, 379));
    let import = user.send("/product-references/import", &json!({})).await;
    assert_eq!((import.status, number(&import, "ratelimit-remaining")), (400, 359));
    let svg = user.get("/canvases/none/render").header("accept", "image/svg+xml").await;
    assert_eq!((svg.status, number(&svg, "ratelimit-remaining")), (404, 358));
    let png = user.get("/canvases/none/render").header("accept", "image/png").await;
    assert_eq!((png.status, number(&png, "ratelimit-remaining")), (404, 348));
    // A body below 1 MiB weighs nothing. One of 1 MiB weighs as much as a request, once it has arrived.
    let send = async |bytes: usize| {
        let call = user.post("/canvases/none/operations").body("application/json", vec![b' '; bytes]);
        call.await.expect_error(400, "invalid_json", &[]);
    };
    send((1 << 20) - 1).await;
    assert_eq!(left().await, 346);
    send(1 << 20).await;
    let mut expected = 343;
    wait_for("the debit", Duration::from_secs(10), async || {
        expected -= 1;
        (left().await == expected + 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_account_whose_free_work_used_its_processor_time_starts_no_more_of_it() {
    let stack = &Stack::without_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let accepted = user.start_resize(text(&user.make_canvas().await, "/id"), json!({})).await;
    let started = text(&user.make_canvas().await, "/id").to_owned();
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let slot = user.slot(&canvas).await;
    let asset = user.upload("image/png", images::png(300, 200)).await;
    let started_slot = user.slot(&started).await;
    let first = user.resize_request(&started, &started_slot, text(&asset, "/handle")).await;
    let run = user.send("/actions/resize/runs", &first).await.expect(202).json();
    let request = user.resize_request(&canvas, &slot, text(&asset, "/handle")).await;
    let plain = text(&user.make_canvas().await, "/id").to_owned();
    let cache = Cache::connect(&testkit::redis_url(), cache::PREFIX).expect("a Redis URL");
    // The default limit: 1200 s at once.
    cache.limit_cpu(7200);
    let left = async || {
        let peeked = wait_for("redis", Duration::from_secs(10), async || cache.peek_cpu(&user.uid).await).await;
        peeked.remaining
    };
    assert_eq!(left().await, 1_200_000, "nothing was debited yet");
    // Below the limit everything starts.
    wait_for("the debit", Duration::from_secs(10), async || {
        cache.debit_cpu(&user.uid, 500_000).await;
        (left().await <= 800_000).then_some(())
    })
    .await;
    let mut dry = request.clone();
    dry["validateOnly"] = json!(true);
    user.send("/actions/resize/runs", &dry).await.ok();
    user.get(&format!("/canvases/{plain}/render")).await.expect(200);
    // Beyond it nothing does.
    wait_for("the debit", Duration::from_secs(10), async || {
        cache.debit_cpu(&user.uid, 1_300_000).await;
        (left().await == 0).then_some(())
    })
    .await;
    let import = json!({
        "canvasId": canvas, "idempotencyKey": key(), "imageUrl": "https://example.com/a.png",
    });
    let other_view = format!("/canvases/{plain}/render?labels=true");
    let preview = format!("{}&w=64", text(&asset, "/previewUrl"));
    for refused in [
        user.send("/actions/resize/runs", &request).await,
        user.send("/images/import", &import).await,
        user.get(&other_view).await,
        user.get(&preview).await,
    ] {
        let wait = number(&refused, "retry-after");
        assert!(
            (1..=600).contains(&wait),
            "at most the debt of another 1200 s, of which 2 s are paid in each: {refused}"
        );
        refused.expect_error(429, "rate_limited", &[]);
    }
    // A replay is answered from its record, and another request with its key is told so.
    let replayed = user.send("/actions/resize/runs", &first).await.expect(202).json();
    assert_eq!((&replayed["replayed"], &replayed["id"]), (&json!(true), &run["id"]));
    let mut other_request = first.clone();
    other_request["params"] = json!({"width": 11});
    user.send("/actions/resize/runs", &other_request).await.expect_error(409, "conflict", &[]);
    // What starts nothing, what was accepted, and other accounts go on.
    user.send("/actions/resize/runs", &dry).await.ok();
    user.get(text(&accepted, "/pollUrl")).await.expect(202);
    user.get(&format!("/canvases/{canvas}")).await.ok();
    user.get(&format!("/canvases/{plain}/render")).await.expect(200);
    user.get(text(&asset, "/previewUrl")).await.expect(200);
    other.start_resize(text(&other.make_canvas().await, "/id"), json!({})).await;
}

#[tokio::test]
async fn a_long_message_to_the_tools_takes_processor_time_of_its_account() {
    // A small share grows so slowly that the debit stays visible: a minute an hour, of which 10 s may be used at once.
    let stack = &Stack::builder().env("CANVAS_ACCOUNT_CPU_SECONDS", 60).shared().await;
    let user = stack.user().await;
    let cache = Cache::connect(&testkit::redis_url(), cache::PREFIX).expect("a Redis URL");
    cache.limit_cpu(60);
    let left = async || {
        let peeked = wait_for("redis", Duration::from_secs(10), async || cache.peek_cpu(&user.uid).await).await;
        peeked.remaining
    };
    let ping = async |values: usize| {
        let params = json!({"_meta": {"values": vec![0; values]}});
        user.send("/mcp", &json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": params})).await.expect(200)
    };
    ping(1000).await;
    assert_eq!(left().await, 10_000);
    // 13 MB as a value. The debit follows the answer, and is lost when Redis is late.
    let debited = async || {
        ping(400_000).await;
        (left().await < 10_000).then_some(())
    };
    wait_for("the debit", Duration::from_secs(30), debited).await;
}

#[tokio::test]
async fn an_address_signs_in_30_times_a_minute() {
    let stack = &Stack::builder().env("CANVAS_FAILED_AUTH_PER_MINUTE", 1000).shared().await;
    let client = stack.anonymous().from_address(new_address());
    let sign_in = async |client: &Client| {
        let call = client.send("/console/session", &json!({"link": "x"})).header("origin", &stack.origin(0));
        call.header("x-canvas-console", "1").await
    };
    let mut sent = 0;
    let refused = loop {
        let reply = sign_in(&client).await;
        if reply.status != 401 {
            break reply;
        }
        sent += 1;
        assert!(sent < 100, "never limited");
    };
    assert!(sent >= 30, "{sent}");
    assert!((1..=2).contains(&number(&refused, "retry-after")), "{refused}");
    refused.expect_error(429, "rate_limited", &[]);
    sign_in(&stack.anonymous().from_address(new_address())).await.expect(401);
}

/// A new loopback address for each run, because the counters of addresses outlive the stack.
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
