//! The ends of apps.

use e2e::Stack;
use reqwest::Method;
use serde_json::json;

use super::{Flow, Tokens, expect_invalid_grant, expect_oauth_error, parts, register, stack};

/// Row 33: in force at the next request on every gateway, and for open streams.
#[tokio::test]
async fn a_person_ends_an_app_at_once() {
    let stack = &stack().await;
    let (flow, other) = (Flow::new(stack).await, Flow::new(stack).await);
    let app = flow.app().await;
    let elsewhere = stack.anonymous_at(1).with_token(&app.access);
    elsewhere.get("/auth/status").await.expect(200);
    let mut stream = elsewhere.get("/events?runs=mine").streamed().await;
    assert_eq!(stream.status(), 200);
    let path = format!("/apps/{}", parts(&app.access).0);
    other.person.delete(&path).await.expect_error(404, "not_found", &[]);
    flow.person.delete(&path).await.expect(204);
    elsewhere.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    assert_eq!(flow.status(&app.access).await, 401);
    expect_invalid_grant(&flow.refresh(&app.refresh, &[]).await);
    let ends = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(std::time::Duration::from_secs(10), ends).await.expect("the stream ends");
    flow.person.delete(&path).await.expect(204);
    assert_eq!(flow.person.get("/apps").await.ok()["apps"], json!([]));
    // An agent token or a session is no app.
    let token = stack.user().await;
    flow.person.delete(&format!("/apps/{}", token.token_id)).await.expect_error(404, "not_found", &[]);
    flow.person.delete("/apps/x").await.expect_error(400, "input_validation_error", &["appId"]);
}

#[tokio::test]
async fn a_client_ends_its_app_by_any_of_its_tokens() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let other = register(stack, "https://other.example/callback").await;
    let revoke = async |token: &str, client_id: &str| {
        flow.client.form("/oauth/revoke", &[("token", token), ("client_id", client_id)]).await.expect(200);
    };
    let first = flow.app().await;
    let second = Tokens::from(flow.refresh(&first.refresh, &[]).await.ok());
    for unknown in ["x", "cba_x", &format!("cba_{}.{}", parts(&first.access).0, "A".repeat(43))] {
        revoke(unknown, &flow.client_id).await;
    }
    revoke(&second.access, &other).await;
    assert_eq!(flow.status(&second.access).await, 200);
    for pick in [|app: &Tokens| app.access.clone(), |app: &Tokens| app.refresh.clone()] {
        let app = flow.app().await;
        revoke(&pick(&app), &flow.client_id).await;
        assert_eq!(flow.status(&app.access).await, 401);
        expect_invalid_grant(&flow.refresh(&app.refresh, &[]).await);
        revoke(&pick(&app), &flow.client_id).await;
    }
    // Also by one that was replaced.
    revoke(&first.refresh, &flow.client_id).await;
    assert_eq!(flow.status(&second.access).await, 401);
    expect_oauth_error(&flow.client.form("/oauth/revoke", &[("token", "x")]).await, 400, "invalid_request");
}

#[tokio::test]
async fn what_ends_all_access_of_an_account_ends_its_apps() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let uid = flow.person.signed_in["account"]["id"].as_str().expect("a uid").to_owned();
    let app = flow.app().await;
    // Signing out everywhere ends no app.
    flow.person.call(Method::DELETE, "/sessions").await.expect(204);
    assert_eq!(flow.status(&app.access).await, 200);
    stack.admin(&["admin", "account", "disable", "--account", &uid]).await.expect_success();
    assert_eq!(flow.status(&app.access).await, 401);
    expect_invalid_grant(&flow.refresh(&app.refresh, &[]).await);
    stack.admin(&["admin", "account", "enable", "--account", &uid]).await.expect_success();
    assert_eq!(flow.status(&app.access).await, 200);
    let listed = stack.admin(&["admin", "app", "list", "--account", &uid]).await.expect_success();
    assert_eq!(
        (&listed["apps"][0]["id"], &listed["apps"][0]["name"]),
        (&json!(parts(&app.access).0), &json!("Test app"))
    );
    stack.admin(&["admin", "session", "revoke", "--account", &uid]).await.expect_success();
    assert_eq!(flow.status(&app.access).await, 401);
    expect_invalid_grant(&flow.refresh(&app.refresh, &[]).await);
}

#[tokio::test]
async fn an_operator_ends_an_app() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let app = flow.app().await;
    stack.admin(&["admin", "app", "revoke", parts(&app.access).0]).await.expect_success();
    assert_eq!(flow.status(&app.access).await, 401);
    for unknown in ["x", "01991f2c-1a05-7c38-8e61-2f9d4b7a6c10"] {
        stack.admin(&["admin", "app", "revoke", unknown]).await.expect_refusal();
    }
}

#[tokio::test]
async fn a_purged_account_leaves_no_grant() {
    let stack = &Stack::without_workers().await;
    let flow = Flow::new(stack).await;
    let uid = flow.person.signed_in["account"]["id"].as_str().expect("a uid").to_owned();
    let app = flow.app().await;
    flow.code(&[]).await;
    stack.admin(&["admin", "account", "purge", "--account", &uid, "--yes"]).await.expect_success();
    assert_eq!(flow.status(&app.access).await, 401);
    assert_eq!(stack.count_of("SELECT count(*) FROM oauth_grants WHERE account_uid = $1", &uid).await, 0);
}
