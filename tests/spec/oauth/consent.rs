//! What a person is asked, and decides.

use reqwest::Method;
use serde_json::json;

use super::{Flow, REDIRECT, decide, query, stack, told};

#[tokio::test]
async fn a_person_sees_who_asks_for_what_and_narrows_it() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let scopes = [("scope", Some("openid offline_access asset:read canvas:read canvas:write"))];
    let asked = query(&flow.client_id, &scopes);
    for asked in [asked.clone(), format!("?{asked}")] {
        let preview = flow.person.send("/authorizations/preview", &json!({"query": asked})).await.ok();
        assert_eq!(
            preview,
            json!({"request": {
                "clientId": flow.client_id, "name": "Test app", "kind": "registered", "redirectUri": REDIRECT, "redirectHost": "app.example",
                "redirectTarget": "web", "scopes": ["canvas:read", "canvas:write", "asset:read"], "budgets": [],
            }})
        );
    }
    let answer = decide(&flow.person, &asked, json!({"scopes": ["canvas:read"]})).await.ok();
    let told = told(&answer);
    assert!(answer["redirectTo"].as_str().is_some_and(|to| to.starts_with(&format!("{REDIRECT}?"))));
    assert_eq!((told["state"].as_str(), &told["iss"]), ("a state", &stack.origin(0)));
    let app = flow.exchange(&told["code"], &[]).await.ok();
    assert_eq!(app["scope"], "canvas:read");
    let status = flow.client.with_token(app["access_token"].as_str().expect("a token")).get("/auth/status").await.ok();
    assert_eq!((&status["scopes"], &status["agentLabel"]), (&json!(["canvas:read"]), &json!("Test app")));
    assert_eq!(status["app"], json!({"clientId": flow.client_id, "name": "Test app"}));
    assert_eq!(status["authType"], "agent_token");
    let listed = flow.person.get("/apps").await.ok();
    let entry = &listed["apps"][0];
    assert_eq!((&entry["id"], &entry["scopes"]), (&status["agentTokenId"], &json!(["canvas:read"])));
    assert_eq!(
        (&entry["name"], &entry["kind"], &entry["expiresAt"]),
        (&json!("Test app"), &json!("registered"), &status["expiresAt"])
    );
    // It is no agent token.
    assert_eq!(flow.person.get("/tokens").await.ok()["tokens"], json!([]));
}

#[tokio::test]
async fn a_denial_is_told_and_grants_nothing() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let answer = decide(&flow.person, &query(&flow.client_id, &[]), json!({"decision": "deny"})).await.ok();
    let told = told(&answer);
    assert_eq!(
        (told["error"].as_str(), told["state"].as_str(), &told["iss"]),
        ("access_denied", "a state", &stack.origin(0))
    );
    assert!(!told.contains_key("code"));
    assert_eq!(flow.person.get("/apps").await.ok()["apps"], json!([]));
}

/// Row 22.
#[tokio::test]
async fn an_address_that_is_not_the_client_s_is_told_nothing() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    for uri in [
        "https://app.example/callbac",
        "https://app.example/callback2",
        "https://app.example/callback/",
        "https://app.example/other",
        "https://app.example/%2e%2e/callback",
        "https://App.example/callback",
        "https://user@app.example/callback",
        "https://app.example/callback#x",
        "https://app.example/callback?x=1",
        "http://app.example/callback",
        "https://evil.example/callback",
        "javascript:alert(1)",
        "",
    ] {
        let asked = query(&flow.client_id, &[("redirect_uri", Some(uri))]);
        for path in ["/authorizations/preview", "/authorizations"] {
            let mut body = json!({"query": asked});
            if path == "/authorizations" {
                body["decision"] = json!("allow");
            }
            flow.person.send(path, &body).await.expect_error(400, "input_validation_error", &["query"]);
        }
    }
    let asked = query(&flow.client_id, &[("redirect_uri", None)]);
    decide(&flow.person, &asked, json!({})).await.expect_error(400, "input_validation_error", &["query"]);
}

/// Row 23: what only looks like this computer cannot be registered, and does not match.
#[tokio::test]
async fn what_looks_like_this_computer_is_not() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    for uri in ["http://localhost.evil.example/cb", "http://127.0.0.1.nip.io/", "http://[::ffff:127.0.0.1]/"] {
        let refused = stack.anonymous().send("/oauth/register", &json!({"redirect_uris": [uri]})).await;
        super::expect_oauth_error(&refused, 400, "invalid_redirect_uri");
    }
    let loopback = super::register(stack, "http://localhost/callback").await;
    for (uri, matches) in [
        ("http://localhost:51234/callback", true),
        ("http://localhost:51234/other", false),
        ("http://127.0.0.1:51234/callback", false),
        ("http://localhost.evil.example:51234/callback", false),
    ] {
        let asked = query(&loopback, &[("redirect_uri", Some(uri))]);
        let reply = flow.person.send("/authorizations/preview", &json!({"query": asked})).await;
        assert_eq!(reply.status, if matches { 200 } else { 400 }, "{uri}");
        if matches {
            assert_eq!(reply.json()["request"]["redirectTarget"], "loopback");
        }
    }
}

/// Rows 25 and 42, and what else is wrong with a request: the client is told.
#[tokio::test]
async fn an_invalid_request_is_told_to_the_client() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let (short, long) = ("x".repeat(42), "x".repeat(44));
    let (longest, too_long) = ("s".repeat(2048), "s".repeat(2049));
    for (changes, error) in [
        (&[("code_challenge", None)][..], "invalid_request"),
        (&[("code_challenge_method", None)], "invalid_request"),
        (&[("code_challenge_method", Some("plain"))], "invalid_request"),
        (&[("code_challenge", Some(short.as_str()))], "invalid_request"),
        (&[("code_challenge", Some(long.as_str()))], "invalid_request"),
        (&[("response_type", None)], "invalid_request"),
        (&[("response_type", Some("token"))], "unsupported_response_type"),
        (&[("response_mode", Some("fragment"))], "invalid_request"),
        (&[("resource", Some("https://other.example/mcp"))], "invalid_target"),
        (&[("scope", Some("canvas:admin"))], "invalid_scope"),
        (&[("scope", Some("canvas:write"))], "invalid_scope"),
        (&[("state", Some(too_long.as_str()))], "invalid_request"),
    ] {
        let asked = query(&flow.client_id, changes);
        for answer in [
            flow.person.send("/authorizations/preview", &json!({"query": asked})).await.ok(),
            decide(&flow.person, &asked, json!({})).await.ok(),
        ] {
            let told = told(&answer);
            assert_eq!((told["error"].as_str(), &told["iss"]), (error, &stack.origin(0)), "{changes:?}");
            assert_eq!(told.contains_key("state"), changes[0].0 != "state");
        }
    }
    let asked = format!("{}&scope=a&scope=b", query(&flow.client_id, &[]));
    assert_eq!(told(&decide(&flow.person, &asked, json!({})).await.ok())["error"], "invalid_request");
    for name in ["client_id", "redirect_uri"] {
        let asked = format!("{}&{name}=x", query(&flow.client_id, &[]));
        decide(&flow.person, &asked, json!({})).await.expect_error(400, "input_validation_error", &["query"]);
    }
    for resource in ["", "/", "/mcp", "/mcp/", "/api/canvas-agent/v1"] {
        let resource = format!("{}{resource}", stack.origin(0));
        let asked = query(&flow.client_id, &[("resource", Some(resource.as_str())), ("state", Some(longest.as_str()))]);
        assert!(told(&decide(&flow.person, &asked, json!({})).await.ok()).contains_key("code"), "{resource}");
    }
}

/// Row 39.
#[tokio::test]
async fn only_a_person_on_the_service_s_own_page_decides() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let body = json!({"query": query(&flow.client_id, &[]), "decision": "allow"}).to_string();
    let post = || flow.person.request(Method::POST, "/authorizations").body("application/json", body.clone());
    post().await.expect_error(403, "forbidden", &[]);
    post().header("origin", "https://evil.example").header("x-canvas-console", "1").await.expect_error(
        403,
        "forbidden",
        &[],
    );
    post().header("origin", &stack.origin(0)).await.expect_error(403, "forbidden", &[]);
    let user = stack.user().await;
    let narrow = stack.signed_in(&json!({"token": user.token})).await;
    decide(&narrow, &query(&flow.client_id, &[]), json!({})).await.expect_error(403, "forbidden", &[]);
    // No page frames the page of the application.
    let (status, headers, _) = stack.anonymous().navigate("/oauth/authorize?client_id=x").await;
    let policy = headers["content-security-policy"].to_str().expect("a policy");
    assert!(policy.contains("frame-ancestors 'none'") && status != 500, "{policy}");
}

/// Row 40.
#[tokio::test]
async fn a_decision_grants_no_more_than_was_asked_for() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let asked = query(&flow.client_id, &[("scope", Some("canvas:read canvas:write"))]);
    for (changes, fields) in [
        (json!({"scopes": ["canvas:read", "asset:read"]}), &["scopes"][..]),
        (json!({"scopes": ["canvas:write"]}), &["scopes"]),
        (json!({"scopes": []}), &["scopes"]),
        (json!({"scopes": ["canvas:admin"]}), &["scopes[0]"]),
        (json!({"canvases": []}), &["canvases"]),
        (json!({"canvases": ["canvas:a:b"]}), &["canvases"]),
        (json!({"expiresDays": 0}), &["expiresDays"]),
        (json!({"expiresDays": 91}), &["expiresDays"]),
        (json!({"decision": "maybe"}), &["decision"]),
    ] {
        decide(&flow.person, &asked, changes).await.expect_error(400, "input_validation_error", fields);
    }
    for days in [json!(1), json!(90), json!(null)] {
        decide(&flow.person, &asked, json!({"expiresDays": days})).await.ok();
    }
}

#[tokio::test]
async fn an_account_allows_20_apps_an_hour_with_the_tokens_that_it_creates() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    for _ in 0..20 {
        flow.code(&[]).await;
    }
    decide(&flow.person, &query(&flow.client_id, &[]), json!({})).await.expect_error(429, "rate_limited", &[]);
    // A denial is always possible.
    decide(&flow.person, &query(&flow.client_id, &[]), json!({"decision": "deny"})).await.ok();
}
