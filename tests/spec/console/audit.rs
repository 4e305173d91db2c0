//! The audit (docs/reference/administration.md#audit): every act leaves its row, and no secret does.

use e2e::api::text;
use e2e::{Stack, images};
use reqwest::Method;
use serde_json::{Value, json};

use super::holder::Holder;

impl Holder {
    /// The events of the account, newest first.
    async fn events(&self) -> Vec<Value> {
        self.pages("/audit", "entries").await
    }
}

/// Names of events.
fn names(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| text(entry, "/event")).collect()
}

#[tokio::test]
async fn what_a_person_does_is_in_the_audit_of_the_account() {
    let stack = &Stack::without_workers().await;
    let (person, other) = (Holder::new(stack).await, Holder::new(stack).await);
    let mut secrets = vec![person.session.clone(), person.user.token.clone()];
    let made =
        person.send("/tokens", &json!({"label": "Berta's loom", "scopes": ["canvas:read"]})).await.expect(201).json();
    secrets.push(text(&made, "/secret").to_owned());
    let token = text(&made, "/token/id").to_owned();
    person.delete(&format!("/tokens/{token}")).await.expect(204);
    person.delete(&format!("/tokens/{token}")).await.expect(204);
    let save = json!({"provider": "fal", "name": "Berta's key", "apiKey": "key-that-nobody-may-see"});
    let saved = person.send("/connections", &save).await.expect(201).json();
    let connection = text(&saved, "/connection/id").to_owned();
    person.delete(&format!("/connections/{connection}")).await.expect(204);
    let canvas = text(&person.user.make_canvas().await, "/id").to_owned();
    let asset = person.user.upload_into(&canvas, "image/png", images::png(3, 3)).await;
    let member = format!("{}/members/{}", person.canvas_path(&canvas), other.email);
    person.put(&member, &json!({"role": "editor"})).await.ok();
    person.delete(&member).await.expect(204);
    person
        .call(Method::PATCH, "/account")
        .body("application/json", json!({"displayName": "Berta"}).to_string())
        .await
        .ok();
    let asset = text(&asset, "/handle").to_owned();
    let asset_path = asset.replacen("asset:", "/assets/", 1).replacen(':', "/", 1);
    let confirmed = json!({"confirm": true}).to_string();
    let forced = json!({"confirm": true, "force": true}).to_string();
    person.call(Method::DELETE, &asset_path).body("application/json", forced).await.ok();
    person.call(Method::DELETE, &person.canvas_path(&canvas)).body("application/json", confirmed).await.ok();
    let entries = person.events().await;
    assert_eq!(
        names(&entries),
        [
            "canvas.deleted",
            "asset.deleted",
            "account.renamed",
            "canvas.unshared",
            "canvas.shared",
            "connection.deleted",
            "connection.saved",
            "token.revoked",
            "token.created",
            "signin.ok",
            "signin.link",
            "token.created",
            "account.created",
        ],
    );
    for entry in &entries[..10] {
        let actor = &entry["actor"];
        assert_eq!((text(actor, "/via"), text(actor, "/account/id")), ("session", person.user.uid.as_str()), "{entry}");
        assert_eq!(text(actor, "/account/email"), person.email, "{entry}");
        assert!(entry["requestId"].is_string() && entry["address"].is_string(), "{entry}");
        assert_eq!(
            (&entry["outcome"], text(entry, "/account/id")),
            (&json!("ok"), person.user.uid.as_str()),
            "{entry}"
        );
    }
    for entry in &entries[10..] {
        assert_eq!((text(entry, "/actor/via"), &entry["address"]), ("command", &Value::Null), "{entry}");
    }
    let handle = format!("canvas:{}:{canvas}", person.user.uid);
    assert_eq!(entries[0]["details"], json!({"canvas": handle, "nodes": 1, "assets": 0}));
    assert_eq!(entries[1]["details"]["asset"], asset);
    assert_eq!(entries[4]["details"], json!({"canvas": handle, "with": other.user.uid, "role": "editor"}));
    assert_eq!(entries[6]["details"], json!({"connection": connection, "provider": "fal"}));
    assert_eq!(entries[7]["details"], json!({ "token": token }));
    let session = text(&person.signed_in, "/session/id");
    assert_eq!(entries[9]["details"], json!({"session": session, "by": "link"}));
    // Another account has none of it, and no secret and no name is in the table.
    assert_eq!(names(&other.events().await).first(), Some(&"signin.ok"));
    let kept: String = sqlx::query_scalar("SELECT coalesce(string_agg(a::text, ' '), '') FROM audit a")
        .fetch_one(stack.pool())
        .await
        .expect("reads");
    let secrets = secrets.iter().filter_map(|secret| Some(secret.rsplit_once('.')?.1));
    for text in secrets.chain(["Berta", "key-that-nobody-may-see", person.email.as_str()]) {
        assert!(!kept.contains(text), "{text}");
    }
}

#[tokio::test]
async fn filters_and_the_pages_of_the_audit() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let list = async |query: &str| person.get(&format!("/audit?{query}")).await.ok()["entries"].clone();
    let all = person.events().await;
    assert_eq!(list("event=signin.").await.as_array().map(Vec::len), Some(2));
    assert_eq!(list("event=%25").await, json!([]));
    assert_eq!(list("outcome=refused").await, json!([]));
    let newest = &all[0];
    assert_eq!(list(&format!("requestId={}", text(newest, "/requestId"))).await, json!([newest]));
    let at = text(newest, "/at");
    assert_eq!(list(&format!("from={at}&event=signin.ok")).await, json!([newest]));
    assert!(!list(&format!("to={at}")).await.as_array().is_some_and(|list| list.contains(newest)));
    for wrong in ["outcome=x", "requestId=x", "from=yesterday", "to=1", "limit=0", "limit=101", "cursor=x"] {
        let field = wrong.split('=').next().expect("a name");
        person.get(&format!("/audit?{wrong}")).await.expect_error(400, "input_validation_error", &[field]);
    }
    person.get(&format!("/audit?event={}", "e".repeat(80))).await.ok();
    person.get(&format!("/audit?event={}", "e".repeat(81))).await.expect_error(
        400,
        "input_validation_error",
        &["event"],
    );
}

#[tokio::test]
async fn sessions_that_end_and_sign_ins_that_are_refused() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let person = Holder::with_account(stack, &account).await;
    let narrow = stack.signed_in(&json!({"token": person.user.token})).await;
    narrow.delete("/session").await.expect(204);
    let refused = stack.signing_in(&json!({"link": person.session})).await;
    let request = refused.header("x-request-id").expect("a request id").to_owned();
    refused.expect_error(401, "unauthorized", &[]);
    let second = stack.person(&account).await;
    person.delete(&format!("/sessions/{}", text(&second.signed_in, "/session/id"))).await.expect(204);
    let entries = person.events().await;
    let expected = ["session.ended", "signin.ok", "signin.link", "session.ended", "signin.ok"];
    assert_eq!(names(&entries)[..5], expected);
    assert_eq!(entries[4]["details"]["by"], "token");
    let refused: (String, Option<String>) = sqlx::query_as(
        "SELECT a.details::text, a.account_uid FROM audit a JOIN audit_origins o ON o.audit_id = a.id
         WHERE request_id = $1::uuid AND event = 'signin.refused' AND outcome = 'refused' AND via = 'nobody'",
    )
    .bind(&request)
    .fetch_one(stack.pool())
    .await
    .expect("is there");
    assert_eq!(refused, (r#"{"by": "link"}"#.to_owned(), None));
    person.delete("/sessions").await.expect(204);
    let all: Value = sqlx::query_scalar("SELECT details FROM audit WHERE account_uid = $1 ORDER BY id DESC LIMIT 1")
        .bind(&account.uid)
        .fetch_one(stack.pool())
        .await
        .expect("is there");
    assert_eq!(all, json!({"sessions": 1, "tokens": false}));
}

#[tokio::test]
async fn of_what_an_operator_did_a_person_sees_the_command() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let admin = async |arguments: &[&str]| stack.admin(&[&["admin"], arguments].concat()).await.expect_success();
    admin(&["account", "quota", "--account", &person.email, "--bytes", "1000000"]).await;
    admin(&["credits", "grant", "--account", &person.email, "--amount", "7"]).await;
    admin(&["account", "enable", "--account", &person.email]).await;
    let entries = person.events().await;
    assert_eq!(names(&entries)[..2], ["account.credit", "account.quota"], "enabling an enabled account is no change");
    assert_eq!(entries[0]["details"], json!({"amount": 7, "balance": 7}));
    assert_eq!(entries[1]["details"], json!({"max": 1_000_000}));
    assert_eq!((text(&entries[0], "/actor/via"), text(&entries[0], "/actor/id",)), ("command", "admin credits"));
}
