//! Clients that register themselves, and those that an operator lists.

use e2e::Stack;
use serde_json::json;

use super::{Flow, REDIRECT, Tokens, decide, expect_oauth_error, query, register, stack};

#[tokio::test]
async fn a_registration_stores_nothing_and_keeps_what_is_usable() {
    let stack = &stack().await;
    let before = stack.count("SELECT count(*) FROM oauth_clients").await;
    let body = json!({
        "client_name": "Cursor", "token_endpoint_auth_method": "client_secret_basic", "grant_types": ["implicit"], "logo_uri": "https://a.example/x",
        "redirect_uris": ["cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/cb", "http://192.168.1.5/", "vscode://x/y"],
    });
    let reply =
        stack.anonymous().send("/oauth/register", &body).header("origin", "https://a.example").await.expect(201);
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    let made = reply.json();
    let id = made["client_id"].as_str().expect("an id");
    assert!(id.starts_with("cbi_") && id.len() <= 1500, "{id}");
    assert_eq!(
        made["redirect_uris"],
        json!(["cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/cb"])
    );
    assert_eq!((&made["client_name"], &made["token_endpoint_auth_method"]), (&json!("Cursor"), &json!("none")));
    assert!(made.get("logo_uri").is_none() && made.get("client_secret").is_none());
    assert_eq!(stack.count("SELECT count(*) FROM oauth_clients").await, before);
}

#[tokio::test]
async fn a_registration_without_a_usable_address_is_refused() {
    let stack = &stack().await;
    let send = |body| stack.anonymous().send("/oauth/register", &body);
    for uris in [
        json!(["javascript:alert(1)"]),
        json!(["data:text/html,x"]),
        json!(["file:///etc/passwd"]),
        json!(["http://192.168.1.5/"]),
        json!([]),
    ] {
        expect_oauth_error(&send(json!({"redirect_uris": uris})).await, 400, "invalid_redirect_uri");
    }
    let many = |count: usize| json!({"redirect_uris": (0..count).map(|number| format!("https://a.example/{number}")).collect::<Vec<_>>()});
    send(many(5)).await.expect(201);
    expect_oauth_error(&send(many(6)).await, 400, "invalid_client_metadata");
    let long = json!({"redirect_uris": (0..5).map(|number| format!("https://a.example/{number}{}", "a".repeat(400))).collect::<Vec<_>>()});
    expect_oauth_error(&send(long).await, 400, "invalid_client_metadata");
    expect_oauth_error(&send(json!({"redirect_uris": "https://a.example"})).await, 400, "invalid_client_metadata");
    let form = stack.anonymous().form("/oauth/register", &[("redirect_uris", REDIRECT)]).await;
    expect_oauth_error(&form, 415, "invalid_request");
    let padding = |length: usize| {
        let body = json!({"redirect_uris": [REDIRECT], "x": ""}).to_string();
        let padding = "x".repeat(length - body.len());
        stack
            .anonymous()
            .post("/oauth/register")
            .body("application/json", body.replace("\"x\":\"\"", &format!("\"x\":\"{padding}\"")))
    };
    padding(16 * 1024).await.expect(201);
    expect_oauth_error(&padding(16 * 1024 + 1).await, 413, "invalid_request");
    expect_oauth_error(&stack.anonymous().get("/oauth/register").await, 405, "invalid_request");
}

/// Row 34.
#[tokio::test]
async fn a_changed_or_foreign_client_id_is_unknown() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let changed = |id: &str| {
        let middle = id.len() / 2;
        let other = if id.as_bytes()[middle] == b'A' { "B" } else { "A" };
        format!("{}{other}{}", &id[..middle], &id[middle + 1..])
    };
    let foreign = &Stack::builder().env("CANVAS_OAUTH_ACCESS_SECONDS", 5).shared().await;
    for id in [
        changed(&flow.client_id),
        register(foreign, REDIRECT).await,
        "cbi_".into(),
        "cbl_x".into(),
        "https://a.example/c".into(),
    ] {
        let answer = decide(&flow.person, &query(&id, &[]), json!({})).await;
        assert!(answer.expect_error(400, "input_validation_error", &["query"]).contains("unknown"), "{id}");
        expect_oauth_error(&flow.exchange("cbc_x", &[("client_id", id.as_str())]).await, 401, "invalid_client");
    }
}

/// Row 38.
#[tokio::test]
async fn a_name_cannot_deceive() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    for (name, shown) in [
        ("Canvas Service ✔ verified\u{202e}".to_owned(), "Canvas Service ✔ verified".to_owned()),
        ("x".repeat(10_000), "x".repeat(80)),
    ] {
        let body = json!({"client_name": name, "redirect_uris": [REDIRECT]});
        let made = stack.anonymous().send("/oauth/register", &body).await.expect(201).json();
        let id = made["client_id"].as_str().expect("an id");
        let preview = flow.person.send("/authorizations/preview", &json!({"query": query(id, &[])})).await.ok();
        let request = &preview["request"];
        assert_eq!((&request["name"], &request["kind"]), (&json!(shown), &json!("registered")));
        assert_eq!(
            (&request["redirectHost"], request.get("host")),
            (&json!("app.example"), None),
            "nobody vouches for it"
        );
    }
}

#[tokio::test]
async fn where_clients_are_listed_others_are_unknown() {
    let stack = &Stack::builder().env("CANVAS_OAUTH", "listed").shared().await;
    let flow = &mut Flow {
        person: stack.person(&stack.account().await).await,
        client_id: String::new(),
        client: stack.anonymous(),
    };
    let body = json!({"redirect_uris": [REDIRECT]});
    let refused = flow.client.send("/oauth/register", &body).await;
    assert_eq!(refused.status, 404, "{refused}");
    let document = flow.client.get("/.well-known/oauth-authorization-server").await.ok();
    assert!(document.get("registration_endpoint").is_none());
    let create = ["admin", "app", "client", "create", "--name", "Listed app", "--redirect-uri", REDIRECT];
    let made = stack.admin(&create).await.expect_success();
    flow.client_id = made["clientId"].as_str().expect("an id").to_owned();
    let listed = stack.admin(&["admin", "app", "client", "list"]).await.expect_success();
    assert!(listed["clients"].as_array().expect("a list").contains(&made));
    let app: Tokens = flow.app().await;
    assert_eq!(flow.status(&app.access).await, 200);
    let code = flow.code(&[]).await;
    let deleted = stack.admin(&["admin", "app", "client", "delete", &flow.client_id]).await.expect_success();
    assert_eq!(deleted["endedApps"], 1);
    assert_eq!(flow.status(&app.access).await, 401);
    expect_oauth_error(&flow.exchange(&code, &[]).await, 401, "invalid_client");
    stack.admin(&["admin", "app", "client", "delete", &flow.client_id]).await.expect_refusal();
}

#[tokio::test]
async fn what_is_wrong_with_a_listed_client_is_said() {
    let stack = &stack().await;
    let create = async |name: &str, uris: &[&str]| {
        let mut arguments = vec!["admin", "app", "client", "create", "--name", name];
        arguments.extend(uris.iter().flat_map(|uri| ["--redirect-uri", uri]));
        stack.admin(&arguments).await
    };
    create("", &[REDIRECT]).await.expect_refusal();
    create(&"x".repeat(81), &[REDIRECT]).await.expect_refusal();
    create("a\u{200b}", &[REDIRECT]).await.expect_refusal();
    assert!(create("a", &["http://a.example/"]).await.expect_refusal().contains("is not a redirect address"));
    create("a", &[REDIRECT; 6]).await.expect_refusal();
    create("a", &[]).await.expect_misuse();
    create(&"x".repeat(80), &[REDIRECT; 5]).await.expect_success();
}

#[tokio::test]
async fn registrations_and_requests_for_tokens_of_an_address_are_limited() {
    let stack = &Stack::builder().env("CANVAS_FAILED_AUTH_PER_MINUTE", 1000).shared().await;
    let client = stack.anonymous().from_address([127, 0, 0, 93]);
    let body = json!({"redirect_uris": [REDIRECT]});
    for _ in 0..20 {
        client.send("/oauth/register", &body).await.expect(201);
    }
    let refused = client.send("/oauth/register", &body).await;
    expect_oauth_error(&refused, 429, "temporarily_unavailable");
    assert!(refused.header("retry-after").is_some());
    let token = || client.form("/oauth/token", &[("grant_type", "x")]);
    for _ in 0..60 {
        expect_oauth_error(&token().await, 400, "unsupported_grant_type");
    }
    expect_oauth_error(&token().await, 429, "temporarily_unavailable");
    stack.anonymous().from_address([127, 0, 0, 94]).send("/oauth/register", &body).await.expect(201);
}
