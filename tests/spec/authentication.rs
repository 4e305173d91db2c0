//! Authentication (docs/reference/authentication.md).

use e2e::Stack;
use e2e::api::{key, text};
use e2e::contract::{self, Access};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test]
async fn every_route_but_the_public_ones_needs_a_credential() {
    let stack = &Stack::without_workers().await;
    let (open, closed): (Vec<_>, Vec<_>) = contract::built().partition(|it| matches!(it.access, Access::Open));
    let open: Vec<_> = open.iter().map(|endpoint| endpoint.path).collect();
    assert_eq!(open, ["/assets/preview", "/assets/video", "/digest.md", "/openapi.json", "/docs"]);
    for endpoint in closed {
        // The credential is checked before the id in the path.
        let method = Method::from_bytes(endpoint.method.as_bytes()).expect("a method");
        let path = endpoint.path.replace(['{', '}'], "");
        stack.anonymous().call(method, &path).await.expect_error(401, "unauthorized", &[]);
    }
    stack.anonymous().get("/openapi.json").await.expect(200);
    stack.anonymous().get("/docs").await.expect(200);
    for path in ["/assets/preview", "/assets/video"] {
        stack.anonymous().get(path).await.expect_error(400, "input_validation_error", &["token"]);
    }
}

#[tokio::test]
async fn a_credential_has_one_form() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, secret) = user.token.strip_prefix("cba_").and_then(|rest| rest.split_once('.')).expect("id and secret");
    assert!(Uuid::parse_str(id).is_ok());
    assert!(secret.len() == 43 && secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    let send = async |header: &str| stack.anonymous().get("/auth/status").header("authorization", header).await;
    send(&format!("Bearer {}", user.token)).await.ok();
    send(&format!("bearer {}", user.token)).await.ok();
    for wrong in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        user.token.clone(),
        format!("Basic {}", user.token),
        format!("Bearer {id}.{secret}"),
        format!("Bearer cba_{id}"),
        format!("Bearer cba_{id}."),
        format!("Bearer cba_{id}.{secret}="),
        format!("Bearer cba_{id}.{}", &secret[1..]),
        format!("Bearer cba_{}.{secret}", id.replace('-', "")),
        format!("Bearer cba_not-a-uuid.{secret}"),
        format!("Bearer {} {}", user.token, user.token),
    ] {
        send(&wrong).await.expect_error(401, "unauthorized", &[]);
    }
    // The credential is accepted in no other place.
    let anonymous = stack.anonymous();
    anonymous.get(&format!("/auth/status?access_token={}", user.token)).await.expect(401);
    anonymous.get("/auth/status").header("x-api-key", &user.token).await.expect(401);
    anonymous.get("/auth/status").header("cookie", &format!("token={}", user.token)).await.expect(401);
    let twice = anonymous.get("/auth/status").header("authorization", &format!("Bearer {}", user.token));
    twice.header("authorization", &format!("Bearer {}", user.token)).await.expect(401);
}

#[tokio::test]
async fn an_unknown_id_and_a_wrong_secret_are_the_same_refusal() {
    let stack = &Stack::without_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let secret = user.token.split_once('.').expect("a dot").1;
    let unknown = stack.anonymous().with_token(&format!("cba_{}.{secret}", Uuid::now_v7()));
    let swapped = stack.anonymous().with_token(&format!("cba_{}.{secret}", other.token_id));
    let mut bytes = user.token.clone().into_bytes();
    let first = bytes.len() - 43;
    bytes[first] = if bytes[first] == b'A' { b'B' } else { b'A' };
    let wrong = stack.anonymous().with_token(&String::from_utf8(bytes).expect("ASCII"));
    let mut messages = Vec::new();
    for client in [unknown, swapped, wrong, stack.anonymous()] {
        messages.push(client.get("/auth/status").await.expect_error(401, "unauthorized", &[]));
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "the messages do not reveal the reason: {messages:?}");
}

#[tokio::test]
async fn an_expired_token_is_refused() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let create = ["admin", "token", "create", "--account", &account.uid, "--label", "short", "--scopes", "all"];
    let made = stack.admin(&[&create[..], &["--expires-days", "1"]].concat()).await.expect_success();
    let client = stack.anonymous().with_token(text(&made, "/token"));
    assert_eq!(client.get("/auth/status").await.ok()["expiresAt"], made["expiresAt"]);
    let id = Uuid::parse_str(text(&made, "/id")).expect("a UUID");
    sqlx::query("UPDATE tokens SET expires_at = now() - interval '1 millisecond' WHERE id = $1")
        .bind(id)
        .execute(stack.pool())
        .await
        .expect("lets time pass");
    client.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once_on_every_gateway() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (user, other) = (stack.user_of(&account, "all").await, stack.user_of(&account, "all").await);
    let elsewhere = user.at(stack, 1);
    user.get("/auth/status").await.ok();
    elsewhere.get("/auth/status").await.ok();
    stack.admin(&["admin", "token", "revoke", &user.token_id]).await.expect_success();
    user.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    elsewhere.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    other.get("/auth/status").await.ok();
}

#[tokio::test]
async fn a_disabled_account_is_refused_and_comes_back_when_enabled() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    let revoked = stack.user_of(&account, "all").await;
    stack.admin(&["admin", "token", "revoke", &revoked.token_id]).await.expect_success();
    stack.admin(&["admin", "account", "disable", "--account", &account.uid]).await.expect_success();
    user.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    user.at(stack, 1).get("/auth/status").await.expect(401);
    stack.admin(&["admin", "account", "enable", "--account", &account.email]).await.expect_success();
    user.get("/auth/status").await.ok();
    revoked.get("/auth/status").await.expect(401);
}

#[tokio::test]
async fn a_revoked_session_kills_its_tokens_and_a_new_token_opens_another() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (one, two) = (stack.user_of(&account, "all").await, stack.user_of(&account, "all").await);
    stack.admin(&["admin", "session", "revoke", "--account", &account.uid]).await.expect_success();
    one.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    two.get("/auth/status").await.expect(401);
    let three = stack.user_of(&account, "all").await;
    three.get("/auth/status").await.ok();
    one.get("/auth/status").await.expect(401);
    // Disabling and enabling the account does not restore revoked tokens.
    stack.admin(&["admin", "account", "disable", "--account", &account.uid]).await.expect_success();
    stack.admin(&["admin", "account", "enable", "--account", &account.uid]).await.expect_success();
    one.get("/auth/status").await.expect(401);
    three.get("/auth/status").await.ok();
}

#[tokio::test]
async fn the_status_tells_who_asks() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    stack.admin(&["admin", "credits", "grant", "--account", &account.uid, "--amount", "7"]).await.expect_success();
    let user = stack.user_of(&account, "job:manage,asset:read,canvas:write,canvas:read").await;
    let status = user.get("/auth/status").await.ok();
    let mut expected = json!({
        "authenticated": true, "authType": "agent_token", "email": account.email, "agentTokenId": user.token_id,
        "agentLabel": "e2e", "uid": account.uid, "creditBalance": 7, "displayName": account.email.split('@').next(),
        "storage": {"bytes": 0, "max": 20_i64 << 30}, "openLinks": {"downloads": 0, "uploads": 0},
        "budgets": [],
        // In the order of the table of scopes.
        "scopes": ["canvas:read", "canvas:write", "asset:read", "job:manage"],
    });
    if status.get("expiresAt").is_some() {
        expected["expiresAt"] = Value::Null;
    }
    assert_eq!(status, expected);
}

#[tokio::test]
async fn a_token_without_scopes_that_a_route_needs_changes_nothing() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (owner, reader) = (stack.user_of(&account, "all").await, stack.user_of(&account, "canvas:read").await);
    let canvas = owner.make_canvas().await;
    let (id, revision) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let batch = json!({"baseRevision": revision, "idempotencyKey": key(), "operations": [
        {"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}}}
    ]});
    reader.send(&format!("/canvases/{id}/operations"), &batch).await.expect(403);
    assert_eq!(reader.canvas(id).await, canvas);
    // The rejected request did not consume the key.
    owner.send(&format!("/canvases/{id}/operations"), &batch).await.ok();
}
