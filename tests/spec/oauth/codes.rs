//! Codes, and what they are exchanged for.

use e2e::Stack;
use futures_util::future::join;
use reqwest::Method;
use serde_json::json;

use super::{Flow, REDIRECT, Tokens, expect_invalid_grant, expect_oauth_error, parts, pass, register, stack};

#[tokio::test]
async fn a_code_is_exchanged_for_an_app_that_acts_for_the_person() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let code = flow.code(&[]).await;
    let reply = flow.exchange_at(&stack.anonymous_at(1), &code, &[]).await.expect(200);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let app = Tokens::from(reply.json());
    assert!(app.access.starts_with("cba_") && app.refresh.starts_with("cbr_"));
    assert_eq!((parts(&app.access).0, parts(&app.refresh).0), (parts(&code).0, parts(&code).0), "one id");
    assert_eq!(app.scope.split(' ').count(), 8, "all that there are, when none was named");
    let client = flow.client.with_token(&app.access);
    let canvas = client.send("/canvases", &json!({"title": "Of the app"})).await.expect(201).json();
    assert_eq!(canvas["canvas"]["title"], "Of the app");
    // A code ends with its first use, and later uses are told nothing.
    assert_eq!(flow.status(&app.access).await, 200);
}

/// Row 26.
#[tokio::test]
async fn a_code_with_a_wrong_verifier_is_good_for_nothing_any_more() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    for changes in [
        ("code_verifier", "another-verifier-of-forty-three-characters-x"),
        ("redirect_uri", "https://app.example/other"),
    ] {
        let code = flow.code(&[]).await;
        expect_invalid_grant(&flow.exchange(&code, &[changes]).await);
        expect_invalid_grant(&flow.exchange(&code, &[]).await);
    }
    assert_eq!(flow.person.get("/apps").await.ok()["apps"], json!([]));
    // A wrong secret says nothing about the code.
    let code = flow.code(&[]).await;
    let wrong = format!("cbc_{}.{}", parts(&code).0, "x".repeat(43));
    expect_invalid_grant(&flow.exchange(&wrong, &[]).await);
    flow.exchange(&code, &[]).await.ok();
}

/// Row 27.
#[tokio::test]
async fn a_code_that_is_used_twice_ends_its_app() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let code = flow.code(&[]).await;
    let (gateways, exchange) = ([stack.anonymous(), stack.anonymous_at(1)], &flow);
    let (one, two) =
        join(exchange.exchange_at(&gateways[0], &code, &[]), exchange.exchange_at(&gateways[1], &code, &[])).await;
    let (made, refused) = if one.status == 200 { (one, two) } else { (two, one) };
    let app = Tokens::from(made.ok());
    expect_invalid_grant(&refused);
    assert_eq!(flow.status(&app.access).await, 401);
    expect_invalid_grant(&flow.refresh(&app.refresh, &[]).await);
    assert_eq!(flow.person.get("/apps").await.ok()["apps"], json!([]));
}

/// Row 28.
#[tokio::test]
async fn a_code_is_of_its_client() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let other = register(stack, "https://other.example/callback").await;
    let code = flow.code(&[]).await;
    expect_invalid_grant(&flow.exchange(&code, &[("client_id", other.as_str())]).await);
    expect_invalid_grant(&flow.exchange(&code, &[]).await);
}

/// Row 29.
#[tokio::test]
async fn a_code_lives_for_a_minute() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let code = flow.code(&[]).await;
    pass(stack, &code, 58.0).await;
    flow.exchange(&code, &[]).await.ok();
    let code = flow.code(&[]).await;
    pass(stack, &code, 61.0).await;
    expect_invalid_grant(&flow.exchange(&code, &[]).await);
}

/// Row 42.
#[tokio::test]
async fn parameters_are_in_the_body_and_once() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let code = flow.code(&[]).await;
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", flow.client_id.as_str()),
        ("code", code.as_str()),
        ("redirect_uri", REDIRECT),
        ("code_verifier", super::VERIFIER),
    ];
    for twice in ["client_id", "redirect_uri", "code"] {
        let form: Vec<_> = form.into_iter().chain([(twice, "x")]).collect();
        expect_oauth_error(&flow.client.form("/oauth/token", &form).await, 400, "invalid_request");
    }
    let in_query = flow.client.form(&format!("/oauth/token?code={code}"), &form).await;
    expect_oauth_error(&in_query, 400, "invalid_request");
    for missing in ["grant_type", "client_id", "code", "redirect_uri", "code_verifier"] {
        let form: Vec<_> = form.into_iter().filter(|(name, _)| *name != missing).collect();
        expect_oauth_error(&flow.client.form("/oauth/token", &form).await, 400, "invalid_request");
    }
    expect_oauth_error(&flow.client.send("/oauth/token", &json!({})).await, 415, "invalid_request");
    let large = flow.client.form("/oauth/token", &[("x", "x".repeat(16 * 1024).as_str())]).await;
    expect_oauth_error(&large, 413, "invalid_request");
    let get = flow.client.get("/oauth/token").await;
    expect_oauth_error(&get, 405, "invalid_request");
    assert!(get.header("allow").is_some_and(|allow| allow.contains("POST")), "{get}");
    expect_oauth_error(&flow.exchange(&code, &[("grant_type", "password")]).await, 400, "unsupported_grant_type");
    expect_oauth_error(&flow.exchange(&code, &[("resource", "https://a.example")]).await, 400, "invalid_target");
    flow.exchange(&code, &[("resource", format!("{}/mcp", stack.origin(0)).as_str())]).await.ok();
}

/// Rows 20, 21, 41 and 56.
#[tokio::test]
async fn a_secret_is_good_for_its_purpose_alone() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let code = flow.code(&[]).await;
    let app = Tokens::from(flow.exchange(&code, &[]).await.ok());
    let (id, refresh) = parts(&app.refresh);
    for bearer in [&code, &app.refresh, &format!("cba_{id}.{refresh}"), &format!("cba_{id}.{}", parts(&code).1)] {
        flow.client.with_token(bearer).get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    }
    for refresh in [&app.access, &format!("cbr_{id}.{}", parts(&app.access).1), &code] {
        expect_invalid_grant(&flow.refresh(refresh, &[]).await);
    }
    expect_invalid_grant(&flow.exchange(&app.access, &[]).await);
    let session = &flow.person.session;
    flow.client.with_token(&format!("cba_{session}")).get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    // It signs nobody in.
    stack.signing_in(&json!({"token": app.access})).await.expect_error(401, "unauthorized", &[]);
    // The console takes no bearer token, and the contract has no such routes.
    let client = flow.client.with_token(&app.access);
    for path in ["/console/tokens", "/console/apps"] {
        let call = client.send(path, &json!({})).header("origin", &stack.origin(0)).header("x-canvas-console", "1");
        assert!([401, 405].contains(&call.await.status), "{path}");
    }
    client.call(Method::GET, "/console/tokens").await.expect_error(401, "unauthorized", &[]);
    // It is accepted in one header and nowhere else.
    let anonymous = stack.anonymous();
    anonymous.get(&format!("/auth/status?access_token={}", app.access)).await.expect(401);
    let form = [("access_token", app.access.as_str())];
    anonymous.form("/canvases", &form).await.expect(401);
    let twice = anonymous.get("/auth/status").header("authorization", &format!("Bearer {}", app.access));
    twice.header("authorization", &format!("Bearer {}", app.access)).await.expect(401);
}

/// Row 55: an earlier release compares secrets by another hash.
#[tokio::test]
async fn an_earlier_release_does_not_accept_an_app() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let app = flow.app().await;
    // To an earlier release, it is a token as any other.
    let id = uuid::Uuid::parse_str(parts(&app.access).0).expect("an id");
    let update = sqlx::query("UPDATE tokens SET kind = 'agent' WHERE id = $1").bind(id);
    update.execute(stack.pool()).await.expect("changes its kind");
    assert_eq!(flow.status(&app.access).await, 401);
}

#[tokio::test]
async fn the_51st_app_ends_the_one_that_was_not_used_for_the_longest_time() {
    let stack = &Stack::without_workers().await;
    let flow = Flow::new(stack).await;
    let first = flow.app().await;
    let account = flow.person.signed_in["account"]["id"].as_str().expect("a uid");
    // The others, of which the oldest was never used.
    sqlx::query(
        "WITH made AS (
             INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash, kind, idle_until, created_at)
             SELECT gen_random_uuid(), t.account_uid, t.session_id, 'app', t.scopes, 'api', '', 'oauth', now() + interval '1 day',
                    now() - make_interval(hours => n)
             FROM tokens t, generate_series(1, 49) n WHERE t.id = $1 RETURNING id, created_at
         )
         INSERT INTO oauth_grants (id, account_uid, client_id, client_kind, client_name, redirect_uri, scopes, surface, challenge, code_hash,
                                   code_until, generation, created_at)
         SELECT m.id, g.account_uid, 'c', 'listed', 'app', '', g.scopes, 'api', '', '', now(), 1, m.created_at
         FROM oauth_grants g, made m WHERE g.id = $1",
    )
    .bind(uuid::Uuid::parse_str(parts(&first.access).0).expect("an id"))
    .execute(stack.pool())
    .await
    .expect("makes apps");
    let living = "SELECT count(*) FROM tokens WHERE account_uid = $1 AND kind = 'oauth' AND revoked_at IS NULL";
    assert_eq!(stack.count_of(living, account).await, 50);
    let oldest = "SELECT count(*) FROM tokens WHERE account_uid = $1 AND kind = 'oauth' AND revoked_at IS NULL AND created_at < now() - interval '48 hours 30 minutes'";
    assert_eq!(stack.count_of(oldest, account).await, 1);
    let last = flow.app().await;
    assert_eq!((stack.count_of(living, account).await, stack.count_of(oldest, account).await), (50, 0));
    assert_eq!((flow.status(&first.access).await, flow.status(&last.access).await), (200, 200));
    let page = flow.person.get("/apps?limit=2").await.ok();
    assert_eq!((page["apps"].as_array().map(Vec::len), &page["page"]["hasMore"]), (Some(2), &json!(true)));
    assert_eq!(page["apps"][0]["id"], parts(&last.access).0);
}
