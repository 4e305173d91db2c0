//! Saved connections of a person (docs/reference/console.md#connections).

use e2e::Stack;
use e2e::api::text;
use serde_json::{Value, json};
use uuid::Uuid;

use super::holder::Holder;

const KEY: &str = "sk-0123456789abcdefghij";

fn body(name: &str) -> Value {
    json!({"provider": "openai", "name": name, "apiKey": KEY})
}

#[tokio::test]
async fn a_connection_is_saved_listed_and_deleted() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let reply = person.send("/connections", &body("Studio")).await.expect(201).json();
    let saved = &reply["connection"];
    assert_eq!(
        (&saved["provider"], &saved["name"], &saved["maskedKey"]),
        (&json!("openai"), &json!("Studio"), &json!("••••ghij"))
    );
    assert!(saved["models"].as_array().is_some_and(|models| !models.is_empty()), "{saved}");
    let listed = person.get("/connections").await.ok();
    assert_eq!(listed, json!({"connections": [saved]}));
    assert_eq!(person.user.get("/providers").await.ok()["connections"], listed["connections"], "agents see the same");
    for shown in [&reply, &listed] {
        assert!(!shown.to_string().contains(KEY));
    }
    let plain: i64 =
        sqlx::query_scalar("SELECT count(*) FROM provider_connections c WHERE position($1 IN c::text) > 0")
            .bind(KEY)
            .fetch_one(stack.pool())
            .await
            .expect("looks");
    assert_eq!(plain, 0, "the key is sealed");
    let path = format!("/connections/{}", text(saved, "/id"));
    person.delete(&path).await.expect(204);
    person.delete(&path).await.expect_error(404, "not_found", &[]);
    assert_eq!(person.get("/connections").await.ok(), json!({"connections": []}));
}

#[tokio::test]
async fn a_key_is_replaced_under_the_same_id_and_the_operators_url_stays() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let id =
        stack.connect_to(&person.user.uid, "openai", "https://proxy.example.com/v1", "sk-old-0123456789abcdef").await;
    let saved = person.send("/connections", &body("mine")).await.ok();
    assert_eq!((&saved["connection"]["id"], &saved["connection"]["maskedKey"]), (&json!(id), &json!("••••ghij")));
    assert!(saved["connection"].get("baseUrl").is_none(), "{saved}");
    let kept = stack.admin(&["admin", "connection", "list", "--account", &person.user.uid]).await.expect_success();
    assert_eq!(kept["connections"][0]["baseUrl"], "https://proxy.example.com/v1");
    assert_eq!(kept["connections"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn what_is_wrong_with_a_connection_is_reported_by_its_fields() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    for (more, fields) in [
        (json!({"provider": "managed"}), &["provider"][..]),
        (json!({"provider": "midjourney"}), &["provider"]),
        (json!({"baseUrl": "https://proxy.example.com"}), &["baseUrl"]),
        (json!({"name": "   "}), &["name"]),
        (json!({"name": "a\nb"}), &["name"]),
        (json!({"name": 1, "apiKey": "a b"}), &["name", "apiKey"]),
        (json!({"apiKey": "schlüssel"}), &["apiKey"]),
        (json!({"apiKey": "key\n"}), &["apiKey"]),
        (json!({"provider": null, "name": null, "apiKey": null}), &["provider", "name", "apiKey"]),
    ] {
        let mut body = body("n");
        for (field, value) in more.as_object().expect("an object") {
            body[field] = value.clone();
        }
        let reply = person.send("/connections", &body).await;
        assert!(!String::from_utf8_lossy(&reply.body).contains("schlüssel"), "{reply}");
        reply.expect_error(400, "input_validation_error", fields);
    }
    let missing = person.send("/connections", &json!({})).await;
    missing.expect_error(400, "input_validation_error", &["provider", "name", "apiKey"]);
    assert_eq!(person.get("/connections").await.ok(), json!({"connections": []}));
}

#[tokio::test]
async fn a_name_has_1_to_80_characters_and_a_key_1_to_4096() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    let save = async |name: &str, key: &str| {
        person.send("/connections", &json!({"provider": "fal", "name": name, "apiKey": key})).await
    };
    save("n", &"k".repeat(4096)).await.expect(201);
    save(&"ü".repeat(80), "k").await.expect(201);
    for (name, key, field) in
        [("", "k", "name"), (&*"n".repeat(81), "k", "name"), ("n", "", "apiKey"), ("n", &*"k".repeat(4097), "apiKey")]
    {
        save(name, key).await.expect_error(400, "input_validation_error", &[field]);
    }
}

#[tokio::test]
async fn an_account_has_100_connections() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    person.send("/connections", &body("first")).await.expect(201);
    sqlx::query(
        "INSERT INTO provider_connections (id, account_uid, provider, name, sealed_key, masked_key)
         SELECT gen_random_uuid(), account_uid, provider, 'n' || place, sealed_key, masked_key
         FROM provider_connections CROSS JOIN generate_series(1, 98) AS place WHERE account_uid = $1",
    )
    .bind(&person.user.uid)
    .execute(stack.pool())
    .await
    .expect("inserts");
    person.send("/connections", &body("last")).await.expect(201);
    person.send("/connections", &body("more")).await.expect_error(409, "conflict", &[]);
    person.send("/connections", &body("first")).await.expect(200);
    assert_eq!(person.get("/connections").await.ok()["connections"].as_array().map(Vec::len), Some(100));
}

#[tokio::test]
async fn a_connection_of_another_account_is_404() {
    let stack = &Stack::without_workers().await;
    let (person, other) = (Holder::new(stack).await, Holder::new(stack).await);
    let theirs = other.send("/connections", &body("theirs")).await.expect(201).json();
    for id in [text(&theirs, "/connection/id"), &Uuid::new_v4().to_string()] {
        person.delete(&format!("/connections/{id}")).await.expect_error(404, "not_found", &[]);
    }
    person.delete("/connections/x").await.expect_error(400, "input_validation_error", &["connectionId"]);
    assert_eq!(person.get("/connections").await.ok(), json!({"connections": []}));
    assert_eq!(other.get("/connections").await.ok()["connections"].as_array().map(Vec::len), Some(1));
}
