//! Models, providers and saved connections (docs/reference/models.md).

use std::collections::BTreeSet;

use e2e::api::text;
use e2e::{Client, Stack, User};
use serde_json::{Value, json};
use uuid::Uuid;

const KEY: &str = "sk-0123456789abcdef-wxyz";

/// Saves a connection of `account` (uid or email), and returns what the command printed.
async fn connect(stack: &Stack, account: &str, provider: &str, name: &str, key: &str) -> Value {
    let create = ["admin", "connection", "create", "--account", account, "--api-key-stdin"];
    let create = [&create[..], &["--provider", provider, "--name", name]].concat();
    stack.admin_with_input(&create, &format!("{key}\n")).await.expect_success()
}

/// The models of a list, by id.
async fn ids(client: &Client, query: &str) -> Vec<String> {
    let list = client.get(&format!("/models{query}")).await.ok();
    let models = list["models"].as_array().expect("a list").clone();
    models.iter().map(|model| text(model, "/modelId").to_owned()).collect()
}

#[tokio::test]
async fn models_are_listed_to_those_who_may_run_them() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let image = stack.user_of(&account, "canvas:read,canvas:write,asset:read,image:generate").await;
    let video = stack.user_of(&account, "canvas:read,asset:read,video:generate").await;
    let both = stack.user_of(&account, "all").await;
    assert_eq!(ids(&image, "").await, ["sketch"], "the embedded runtime, and no text models");
    assert_eq!(ids(&video, "").await, ["animatic"]);
    assert_eq!(ids(&both, "").await, ["sketch", "animatic"]);
    connect(stack, &account.uid, "runway", "r", KEY).await;
    for (user, kind) in [(&image, "image"), (&video, "video")] {
        let list = user.get("/models?limit=100").await.ok();
        let models = list["models"].as_array().expect("a list");
        assert!(models.len() > 1 && models.iter().all(|model| model["type"] == kind), "{list}");
    }
}

#[tokio::test]
async fn a_model_is_described_whole() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    let saved = connect(stack, &account.uid, "openai", "mine", KEY).await;
    let list = user.get("/models?limit=100").await.ok();
    let models = list["models"].as_array().expect("a list");
    for model in models {
        let key = text(model, "/id");
        assert_eq!(text(model, "/handle"), format!("model:{key}"));
        assert!((8..=600).contains(&key.len()), "{model}");
        assert!(!model["capabilities"].as_array().expect("a list").is_empty(), "{model}");
        assert!(model["estimatedSeconds"].as_i64() >= Some(1) && model["beta"].is_boolean(), "{model}");
        let parameters = model["parameters"].as_array().expect("a list");
        assert!(parameters.iter().any(|parameter| parameter["name"] == "prompt"), "{model}");
    }
    let (first, sketch) = (&models[0], models.iter().find(|model| model["modelId"] == "sketch").expect("is there"));
    assert_eq!(
        (&first["provider"], &first["providerLabel"], &first["connectionId"], &first["connectionName"]),
        (&json!("openai"), &json!("OpenAI"), &saved["id"], &json!("mine"))
    );
    assert_eq!(first["creditCost"], 0, "saved connections cost no credit");
    assert_eq!((&first["standIn"], &sketch["standIn"]), (&json!(false), &json!(true)));
    assert_eq!(
        (&sketch["provider"], &sketch["connectionId"], &sketch["connectionName"], &sketch["creditCost"]),
        (&json!("managed"), &Value::Null, &json!("Managed"), &json!(1))
    );
    assert!(!list.to_string().contains(KEY));
}

#[tokio::test]
async fn the_list_is_searched_and_filtered() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    connect(stack, &account.uid, "openai", "Studio north", KEY).await;
    for (query, expected) in [
        ("?q=SKETCH", &["sketch"][..]),
        ("?q=no-such-model", &[]),
        ("?provider=managed", &["sketch", "animatic"]),
        ("?provider=fal", &[]),
        ("?capability=video.generate.fromFrames", &["animatic"]),
        ("?provider=managed&capability=image.edit", &["sketch"]),
    ] {
        assert_eq!(ids(&user, query).await, expected, "{query}");
    }
    let by_connection = ids(&user, "?q=studio%20N").await;
    assert!(!by_connection.is_empty() && by_connection == ids(&user, "?provider=openai").await);
    assert_eq!(ids(&user, &format!("?q={}", "y".repeat(240))).await, [""; 0]);
    for (query, field) in [
        (&*format!("?q={}", "y".repeat(241)), "q"),
        ("?provider=midjourney", "provider"),
        ("?provider=", "provider"),
        (&*format!("?provider={}", "y".repeat(81)), "provider"),
        ("?capability=image.dream", "capability"),
        ("?limit=0", "limit"),
        ("?limit=101", "limit"),
        ("?cursor=AAAA", "cursor"),
    ] {
        let refused = user.get(&format!("/models{query}")).await;
        refused.expect_error(400, "input_validation_error", &[field]);
    }
}

#[tokio::test]
async fn the_list_is_walked_in_its_order() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    for name in ["older", "newer"] {
        connect(stack, &account.uid, "fal", name, KEY).await;
    }
    let whole = user.get("/models?limit=100").await.ok();
    let whole = whole["models"].as_array().expect("a list");
    let mut names: Vec<&Value> = whole.iter().map(|model| &model["connectionName"]).collect();
    names.dedup();
    assert_eq!(
        names,
        [&json!("older"), &json!("newer"), &json!("Managed")],
        "the oldest first, the managed runtime last"
    );
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = user.get(&format!("/models?limit=3{cursor}")).await.ok();
        walked.extend(page["models"].as_array().expect("a list").clone());
        let Some(next) = page["page"]["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(&walked, whole);
    let page = user.get("/models?limit=1").await.ok();
    let next = text(&page, "/page/nextCursor");
    for elsewhere in [format!("/models?provider=fal&cursor={next}"), format!("/providers?cursor={next}")] {
        user.get(&elsewhere).await.expect_error(400, "input_validation_error", &["cursor"]);
    }
    let page = user.get("/providers?limit=1").await.ok();
    assert_eq!((&page["connections"][0]["name"], &page["page"]["hasMore"]), (&json!("older"), &json!(true)));
    let next = text(&page, "/page/nextCursor");
    let page = user.get(&format!("/providers?limit=1&cursor={next}")).await.ok();
    assert_eq!((&page["connections"][0]["name"], &page["page"]["hasMore"]), (&json!("newer"), &json!(false)));
    user.get("/providers?limit=101").await.expect_error(400, "input_validation_error", &["limit"]);
}

#[tokio::test]
async fn a_model_is_read_by_its_key() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (user, stranger) = (stack.user_of(&account, "all").await, stack.user().await);
    let list = user.get("/models").await.ok();
    for model in list["models"].as_array().expect("a list") {
        for name in [text(model, "/id").to_owned(), text(model, "/handle").to_owned()] {
            assert_eq!(user.get(&format!("/models/{name}")).await.ok(), json!({"model": model}));
            stranger.get(&format!("/models/{name}")).await.expect_error(404, "not_found", &[]);
        }
    }
    let theirs = stranger.get("/models").await.ok();
    assert_ne!(theirs["models"][0]["id"], list["models"][0]["id"], "each account has its own model keys");
    let image = stack.user_of(&account, "canvas:read,canvas:write,asset:read,image:generate").await;
    let animatic = list["models"].as_array().expect("a list").iter().find(|model| model["type"] == "video");
    let path = format!("/models/{}", text(animatic.expect("there is one"), "/id"));
    image.get(&path).await.expect_error(404, "not_found", &[]);
    user.get("/models/abcdefgh").await.expect_error(404, "not_found", &[]);
    for malformed in ["abcdefg", &"k".repeat(601), "abcd%20efgh"] {
        let refused = user.get(&format!("/models/{malformed}")).await;
        refused.expect_error(400, "input_validation_error", &["modelKey"]);
    }
}

/// The connections that `/providers` shows.
async fn connections(user: &User) -> Vec<Value> {
    user.get("/providers").await.ok()["connections"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn connections_are_saved_listed_and_deleted() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    assert_eq!(connections(&user).await, [json!(null); 0]);
    let saved = connect(stack, &account.email, "stability", "mine", KEY).await;
    assert_eq!(
        (&saved["provider"], &saved["name"], &saved["maskedKey"]),
        (&json!("stability"), &json!("mine"), &json!("••••wxyz"))
    );
    assert!(saved["models"].as_array().is_some_and(|models| !models.is_empty()));
    assert_eq!(connections(&user).await, std::slice::from_ref(&saved));
    let listed = stack.admin(&["admin", "connection", "list", "--account", &account.uid]).await.expect_success();
    assert_eq!(listed["connections"][0]["id"], saved["id"]);
    assert!(!listed.to_string().contains(KEY));
    let kept: String = sqlx::query_scalar("SELECT sealed_key FROM provider_connections WHERE account_uid = $1")
        .bind(&account.uid)
        .fetch_one(stack.pool())
        .await
        .expect("reads the row");
    assert!(kept.starts_with("v1.e2e.") && !kept.contains(KEY));
    assert!(!ids(&user, "?provider=stability").await.is_empty());
    let delete = ["admin", "connection", "delete", text(&saved, "/id")];
    let deleted = stack.admin(&delete).await.expect_success();
    assert_eq!(deleted, json!({"id": saved["id"], "deleted": true}));
    stack.admin(&delete).await.expect_refusal();
    assert_eq!(connections(&user).await, [json!(null); 0]);
    assert!(ids(&user, "?provider=stability").await.is_empty());
}

#[tokio::test]
async fn saving_again_replaces_the_key_and_keeps_the_id() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    let saved = connect(stack, &account.uid, "openai", "mine", KEY).await;
    let before = user.get("/models").await.ok();
    let again = connect(stack, &account.uid, "openai", "mine", "sk-0123456789abcdef-9876").await;
    assert_eq!((&again["id"], &again["maskedKey"]), (&saved["id"], &json!("••••9876")));
    assert_eq!(connections(&user).await, [again]);
    assert_eq!(user.get("/models").await.ok(), before, "the models' keys stay");
    let other = connect(stack, &account.uid, "openai", "other", KEY).await;
    let elsewhere = connect(stack, &account.uid, "google", "mine", KEY).await;
    let different: BTreeSet<&str> = [&saved, &other, &elsewhere].map(|it| text(it, "/id")).into();
    assert_eq!(different.len(), 3);
}

#[tokio::test]
async fn nobody_sees_another_accounts_connections() {
    let stack = &Stack::without_workers().await;
    let (mine, yours) = (stack.account().await, stack.account().await);
    connect(stack, &mine.uid, "openai", "mine", KEY).await;
    let (me, you) = (stack.user_of(&mine, "all").await, stack.user_of(&yours, "all").await);
    assert_eq!(connections(&me).await.len(), 1);
    assert_eq!(connections(&you).await, [json!(null); 0]);
    assert!(ids(&you, "?provider=openai").await.is_empty());
    let model = me.get("/models?provider=openai").await.ok()["models"][0].clone();
    you.get(&format!("/models/{}", text(&model, "/id"))).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn what_the_rules_refuse_of_a_connection() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let create = async |provider: &str, name: &str, key: &str, more: &[&str]| {
        let create = ["admin", "connection", "create", "--account", &account.uid, "--api-key-stdin"];
        stack.admin_in(&[&create[..], &["--provider", provider, "--name", name], more].concat(), key, &[]).await
    };
    for provider in ["managed", "midjourney", "OpenAI", ""] {
        create(provider, "n", KEY, &[]).await.expect_refusal();
    }
    for name in ["", " ", &"n".repeat(81)] {
        create("fal", name, KEY, &[]).await.expect_refusal();
    }
    for key in ["", "\n", "two words", "schlüssel", &"k".repeat(4097)] {
        let refusal = create("fal", "n", key, &[]).await.expect_refusal();
        assert!(key.trim().is_empty() || !refusal.contains(key), "{refusal}");
    }
    for url in ["", "host:80", "ftp://host/", "https://a:b@host/", "https://host/#x"] {
        create("fal", "n", KEY, &["--base-url", url]).await.expect_refusal();
    }
    let unknown = ["admin", "connection", "create", "--account", "nobody", "--provider", "fal", "--name", "n"];
    let refused = stack.admin_in(&[&unknown[..], &["--api-key-stdin"]].concat(), KEY, &[]).await.expect_refusal();
    assert!(refused.contains("nobody"));
    stack.admin(&["admin", "connection", "delete", &Uuid::new_v4().to_string()]).await.expect_refusal();
    let user = stack.user_of(&account, "all").await;
    assert_eq!(connections(&user).await, [json!(null); 0], "nothing was saved");
    let longest = "n".repeat(80);
    create("fal", &longest, &"k".repeat(4095), &["--base-url", "http://127.0.0.1:9/v1"]).await.expect_success();
    assert_eq!(connections(&user).await[0]["name"], longest);
}

/// A catalog file that retires one model, changes one and adds one.
fn catalogue() -> std::path::PathBuf {
    let model = |id: &str, name: &str| {
        json!({"id": id, "name": name, "provider": "managed", "type": "image", "capabilities": ["image.generate"],
               "estimatedSeconds": 9, "promptMax": 1000, "runtime": "openai", "creditCost": 7})
    };
    let file =
        json!({"retired": ["managed/sdxl"], "models": [model("sd-cpp-local", "Changed"), model("new-one", "New")]});
    let path = std::env::temp_dir().join(format!("canvas-e2e-catalogue-{}.json", Uuid::new_v4().simple()));
    std::fs::write(&path, file.to_string()).expect("writes a catalog");
    path
}

#[tokio::test]
async fn a_server_and_a_file_change_what_is_listed() {
    let stack = &Stack::builder()
        .env("CANVAS_MODEL_CATALOGUE", catalogue().display())
        .env("CANVAS_MANAGED_URL", "http://127.0.0.1:9")
        .start()
        .await;
    let user = stack.user().await;
    let list = user.get("/models").await.ok();
    let models: Vec<_> =
        list["models"].as_array().expect("a list").iter().map(|it| (&it["name"], &it["creditCost"])).collect();
    assert_eq!(models, [(&json!("Changed"), &json!(7)), (&json!("New"), &json!(7))]);
}

#[tokio::test]
async fn wrong_settings_stop_the_start_with_one_line() {
    let stack = &Stack::builder()
        .env("CANVAS_MODEL_CATALOGUE", catalogue().display())
        .env("CANVAS_MANAGED_URL", "http://127.0.0.1:9")
        .start()
        .await;
    let malformed = std::env::temp_dir().join(format!("canvas-e2e-catalogue-{}.json", Uuid::new_v4().simple()));
    std::fs::write(&malformed, r#"{"models": [{"id": "x"}]}"#).expect("writes a file");
    for (name, value) in [
        ("CANVAS_MODEL_CATALOGUE", "/nowhere/models.json"),
        ("CANVAS_MODEL_CATALOGUE", malformed.to_str().expect("UTF-8")),
        ("CANVAS_MANAGED_PROTOCOL", "grpc"),
        ("CANVAS_MANAGED_KEY", "two words"),
        ("CANVAS_MANAGED_URL", "ftp://127.0.0.1/"),
    ] {
        let refusal = stack.admin_in(&["serve"], "", &[(name, value)]).await.expect_refusal();
        assert!(refusal.contains(name), "{refusal}");
    }
}

#[tokio::test]
async fn keys_of_connections_are_counted_and_rewrapped() {
    let stack = &Stack::builder().start().await;
    const OTHER: &str = "new:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
    let account = stack.account().await;
    let before = stack.admin(&["admin", "keys", "status"]).await.expect_success();
    connect(stack, &account.uid, "openai", "mine", KEY).await;
    let status = stack.admin(&["admin", "keys", "status"]).await.expect_success();
    let count = before["sealed"]["e2e"].as_i64().expect("a count") + 1;
    assert_eq!(status, json!({"primary": "e2e", "sealed": {"e2e": count}}));
    let old = stack.env().iter().find(|(name, _)| name == "CANVAS_MASTER_KEYS").expect("the key ring is set").1.clone();
    let (turned, alone) = (format!("{OTHER},{old}"), [("CANVAS_MASTER_KEYS", OTHER)]);
    let rewrap = ["admin", "keys", "rewrap"];
    let moved = stack.admin_in(&rewrap, "", &[("CANVAS_MASTER_KEYS", &turned)]).await.expect_success();
    assert_eq!(moved, json!({"primary": "new", "sealed": {"new": count}}));
    // Nothing is encrypted under the old key anymore.
    stack.admin_in(&rewrap, "", &alone).await.expect_success();
    let lost = stack.admin(&rewrap).await.expect_refusal();
    assert!(lost.contains("CANVAS_MASTER_KEYS") || lost.contains("ring"), "{lost}");
}
