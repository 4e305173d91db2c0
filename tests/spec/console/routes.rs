//! What holds for every route for people: which credentials are accepted, and that writes come from the console.

use e2e::Stack;
use reqwest::Method;
use serde_json::json;

use super::holder::Holder;

/// Every operation for people, from the console's document: method, path with ids, and whether it takes a body.
async fn operations(person: &Holder) -> Vec<(Method, String, bool)> {
    let document = person.get("/openapi.json").await.ok();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            if matches!(operation["operationId"].as_str(), Some("getSession" | "signOut" | "showPointer"))
                || operation["security"] == json!([])
            {
                continue;
            }
            let path =
                path.strip_prefix("/console").expect("a route of the console").replace("{email}", "a@example.com");
            let id = "01991f2c-1a05-7c38-8e61-2f9d4b7a6c10";
            let path =
                path.split('/').map(|part| if part.starts_with('{') { id } else { part }).collect::<Vec<_>>().join("/");
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            operations.push((method, path, operation.get("requestBody").is_some()));
        }
    }
    assert!(operations.len() >= 17, "{operations:?}");
    operations
}

#[tokio::test]
async fn a_narrow_session_is_403_at_every_route_for_people() {
    let stack = &Stack::without_workers().await;
    let narrow = Holder::narrow(stack).await;
    for (method, path, has_body) in operations(&narrow).await {
        let call = narrow.call(method, &path);
        let call = if has_body { call.body("application/json", "{}") } else { call };
        assert!(call.await.expect_error(403, "forbidden", &[]).contains("signed in by a token"), "{path}");
    }
    // Its own session is the exception.
    narrow.get("/session").await.ok();
    narrow.delete("/session").await.expect(204);
    narrow.get("/session").await.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn only_a_session_is_a_credential() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    for (method, path, _) in operations(&person).await {
        let url = format!("{}/console{path}", stack.origin(0));
        let call = person.user.call(method, &url).header("origin", &stack.origin(0));
        call.header("x-canvas-console", "1").await.expect_error(401, "unauthorized", &[]);
    }
}

#[tokio::test]
async fn a_write_without_the_headers_of_the_console_is_403() {
    let stack = &Stack::without_workers().await;
    let person = Holder::new(stack).await;
    for (method, path, _) in operations(&person).await.into_iter().filter(|(method, ..)| *method != Method::GET) {
        person.request(method.clone(), &path).await.expect_error(403, "forbidden", &[]);
        let foreign = person.request(method, &path).header("origin", "https://evil.example.com");
        foreign.header("x-canvas-console", "1").await.expect_error(403, "forbidden", &[]);
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_its_list_and_account() {
    let stack = &Stack::without_workers().await;
    let (person, other) = (Holder::new(stack).await, Holder::new(stack).await);
    for label in ["a", "b"] {
        person.send("/tokens", &json!({"label": label, "scopes": ["canvas:read"]})).await.expect(201);
    }
    let page = person.get("/tokens?limit=1").await.ok();
    let cursor = page["page"]["nextCursor"].as_str().expect("a cursor");
    person.get(&format!("/tokens?limit=1&cursor={cursor}")).await.ok();
    for (who, list) in [(&other, "tokens"), (&person, "credit"), (&person, "deliveries")] {
        let reply = who.get(&format!("/{list}?cursor={cursor}")).await;
        reply.expect_error(400, "input_validation_error", &["cursor"]);
    }
    for list in ["/tokens", "/credit", "/deliveries"] {
        for limit in ["0", "101", "x", ""] {
            let reply = person.get(&format!("{list}?limit={limit}")).await;
            reply.expect_error(400, "input_validation_error", &["limit"]);
        }
        person.get(&format!("{list}?limit=100")).await.ok();
    }
}
