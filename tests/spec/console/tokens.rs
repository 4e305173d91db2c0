//! Tokens of a person (docs/reference/console.md#tokens).

use e2e::api::text;
use e2e::{Account, Stack};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::holder::Holder;

#[tokio::test]
async fn a_token_is_created_and_its_secret_shown_once() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let body =
        json!({"label": "Agent", "scopes": ["canvas:write", "canvas:read"], "expiresDays": 2, "surface": "tool"});
    let reply = person.send("/tokens", &body).await.expect(201);
    assert_eq!(reply.header("cache-control"), Some("private, no-store"));
    let made = reply.json();
    let (id, secret) = (text(&made, "/token/id"), text(&made, "/secret"));
    assert!(secret.starts_with(&format!("cba_{id}.")), "{secret}");
    let token = &made["token"];
    assert_eq!(
        (&token["label"], &token["scopes"], &token["surface"]),
        (&json!("Agent"), &json!(["canvas:read", "canvas:write"]), &json!("tool"))
    );
    assert!(token["createdAt"].is_string() && token["expiresAt"].is_string() && token.get("revokedAt").is_none());
    let status = stack.anonymous().with_token(secret).get("/auth/status").await.ok();
    assert_eq!((&status["uid"], &status["agentLabel"]), (&json!(person.user.uid), &json!("Agent")));
    assert_eq!(status["expiresAt"], token["expiresAt"]);
    let listed = person.get("/tokens").await.ok();
    assert!(!listed.to_string().contains(secret.split_once('.').expect("a dot").1));
    assert_eq!((&listed["tokens"][0]["id"], listed["tokens"][0].get("secret")), (&token["id"], None));
    let plain = person.send("/tokens", &json!({"label": "l", "scopes": ["job:manage"]})).await.expect(201).json();
    assert_eq!((&plain["token"]["surface"], plain["token"].get("expiresAt")), (&json!("api"), None));
}

#[tokio::test]
async fn what_is_wrong_with_a_token_is_reported_by_its_fields() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    for (body, fields) in [
        (json!({}), &["label", "scopes"][..]),
        (json!({"label": "l", "scopes": []}), &["scopes"]),
        (json!({"label": "l", "scopes": "all"}), &["scopes"]),
        (json!({"label": "l", "scopes": ["canvas:delete"]}), &["scopes[0]"]),
        (json!({"label": "l", "scopes": ["canvas:write"]}), &["scopes"]),
        (json!({"label": "l", "scopes": ["canvas:read", "asset:read", "image:generate"]}), &["scopes"]),
        (json!({"label": "l", "scopes": ["video:generate", "canvas:read"]}), &["scopes"]),
        (json!({"scopes": ["element:write"], "expiresDays": 0}), &["label", "expiresDays"]),
        (json!({"label": "l", "scopes": ["canvas:read"], "surface": "phone"}), &["surface"]),
        (json!({"label": "l", "scopes": ["canvas:read"], "account": "x"}), &["account"]),
        (json!({"label": "a\u{0}", "scopes": ["canvas:read"]}), &["label"]),
        (json!({"label": null, "scopes": ["canvas:read"]}), &["label"]),
    ] {
        person.send("/tokens", &body).await.expect_error(400, "input_validation_error", fields);
    }
    person.call(Method::POST, "/tokens").body("application/json", "{").await.expect_error(400, "invalid_json", &[]);
    let untyped = person.call(Method::POST, "/tokens").untyped("{}").await;
    untyped.expect_error(415, "unsupported_media_type", &[]);
    assert_eq!(person.get("/tokens").await.ok()["tokens"].as_array().map(Vec::len), Some(1), "nothing was created");
}

#[tokio::test]
async fn a_label_has_1_to_80_characters_and_a_token_lives_1_to_90_days() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let create = async |label: &str, days: Value| {
        person.send("/tokens", &json!({"label": label, "scopes": ["canvas:read"], "expiresDays": days})).await
    };
    for (label, days) in [("x", 1), (&*"ü".repeat(80), 90), (&*"😀".repeat(80), 1), ("\u{202e}<b>", 1)] {
        create(label, days.into()).await.expect(201);
    }
    for label in [String::new(), "x".repeat(81), "😀".repeat(81)] {
        create(&label, 1.into()).await.expect_error(400, "input_validation_error", &["label"]);
    }
    for days in [json!(0), json!(91), json!(-1), json!(1.5), json!("1"), json!(null)] {
        create("l", days).await.expect_error(400, "input_validation_error", &["expiresDays"]);
    }
}

#[tokio::test]
async fn an_account_has_20_active_tokens_besides_its_sessions() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let create = async || person.send("/tokens", &json!({"label": "l", "scopes": ["canvas:read"]})).await;
    // One token belongs to the account from the beginning. The operator creates most of the others, because the console creates no
    // more than 20 in an hour.
    let account = Account { uid: person.user.uid.clone(), email: person.email.clone() };
    for _ in 0..18 {
        stack.user_of(&account, "canvas:read").await;
    }
    let last = text(&create().await.expect(201).json(), "/token/id").to_owned();
    create().await.expect_error(409, "conflict", &[]);
    person.delete(&format!("/tokens/{last}")).await.expect(204);
    create().await.expect(201);
    create().await.expect_error(409, "conflict", &[]);
}

#[tokio::test]
async fn an_account_creates_20_tokens_in_an_hour() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let create = async || person.send("/tokens", &json!({"label": "l", "scopes": ["canvas:read"]})).await;
    // A body that is refused counts for nothing.
    person.send("/tokens", &json!({"label": "l", "scopes": []})).await.expect_error(
        400,
        "input_validation_error",
        &["scopes"],
    );
    let mut created = 0;
    let refused = loop {
        let reply = create().await;
        if reply.status != 201 {
            break reply;
        }
        created += 1;
        assert!(created < 30, "never limited");
        let id = text(&reply.json(), "/token/id").to_owned();
        person.delete(&format!("/tokens/{id}")).await.expect(204);
    };
    // One more becomes free in each three minutes.
    assert!((20..=21).contains(&created), "{created}");
    let wait: u64 = refused.header("retry-after").expect("a wait").parse().expect("seconds");
    assert!((1..=180).contains(&wait), "{wait}");
    refused.expect_error(429, "rate_limited", &[]);
    Holder::new(stack).await.send("/tokens", &json!({"label": "l", "scopes": ["canvas:read"]})).await.expect(201);
}

#[tokio::test]
async fn tokens_are_listed_newest_first_without_sessions() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    for label in ["a", "b", "c", "d"] {
        person.send("/tokens", &json!({"label": label, "scopes": ["canvas:read"]})).await.expect(201);
    }
    let all = person.pages("/tokens", "tokens").await;
    let labels: Vec<&str> = all.iter().map(|token| text(token, "/label")).collect();
    assert_eq!(labels, ["d", "c", "b", "a", "e2e"]);
    assert!(person.pages("/tokens", "tokens").await.iter().all(|token| token["id"].is_string()));
    let sessions = person.get("/sessions").await.ok();
    let session = text(&sessions, "/sessions/0/id");
    assert!(all.iter().all(|token| token["id"] != session));
    person.delete(&format!("/tokens/{session}")).await.expect_error(404, "not_found", &[]);
    person.get("/session").await.ok();
}

#[tokio::test]
async fn a_token_is_revoked_for_the_next_request() {
    let stack = &Stack::without_workers().await;
    let narrow = Holder::narrow(stack).await;
    let account = e2e::Account { uid: narrow.user.uid.clone(), email: narrow.email.clone() };
    let person = Holder::with_account(stack, &account).await;
    let path = format!("/tokens/{}", narrow.user.token_id);
    narrow.user.get("/auth/status").await.ok();
    narrow.get("/session").await.ok();
    for _ in 0..2 {
        person.delete(&path).await.expect(204);
    }
    narrow.user.get("/auth/status").await.expect_error(401, "unauthorized", &[]);
    narrow.get("/session").await.expect_error(401, "unauthorized", &[]);
    // The time of use is recorded asynchronously.
    let revoked = testkit::wait_for("the use to be noted", e2e::PATIENCE, async || {
        let listed = person.pages("/tokens", "tokens").await;
        let token = listed.into_iter().find(|token| token["id"] == narrow.user.token_id.as_str()).expect("is listed");
        token["lastUsedAt"].is_string().then_some(token)
    })
    .await;
    assert!(revoked["revokedAt"].is_string(), "{revoked}");
}

#[tokio::test]
async fn a_token_of_another_account_is_404() {
    let stack = &Stack::without_workers().await;
    let (person, other) = (Holder::new(stack).await, Holder::new(stack).await);
    for id in [other.user.token_id.clone(), Uuid::new_v4().to_string()] {
        person.delete(&format!("/tokens/{id}")).await.expect_error(404, "not_found", &[]);
    }
    person.delete("/tokens/x").await.expect_error(400, "input_validation_error", &["tokenId"]);
    other.user.get("/auth/status").await.ok();
}
