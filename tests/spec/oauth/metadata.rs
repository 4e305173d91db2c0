//! Documents and challenges by which a client finds its way.

use e2e::{API_ROOT, Stack};
use serde_json::{Value, json};

use super::{Flow, stack};

const SCOPES: [&str; 8] = [
    "canvas:read",
    "canvas:write",
    "asset:read",
    "element:read",
    "element:write",
    "image:generate",
    "video:generate",
    "job:manage",
];

#[tokio::test]
async fn the_documents_lead_from_a_resource_to_the_endpoints() {
    let stack = &stack().await;
    let origin = stack.origin(0);
    for path in ["", "/mcp", API_ROOT] {
        let reply = stack.anonymous().get(&format!("/.well-known/oauth-protected-resource{path}")).await.expect(200);
        assert_eq!(reply.header("cache-control"), Some("public, max-age=300"));
        let document = reply.json();
        assert_eq!(document["resource"], format!("{origin}{path}"));
        assert_eq!(document["authorization_servers"], json!([origin]));
        assert_eq!(document["scopes_supported"], json!(SCOPES));
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    }
    let reply =
        stack.anonymous().get("/.well-known/oauth-authorization-server").header("origin", "https://a.example").await;
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    let document = reply.ok();
    assert_eq!(document["issuer"], json!(origin));
    for (member, path) in [
        ("authorization_endpoint", "/oauth/authorize"),
        ("token_endpoint", "/oauth/token"),
        ("registration_endpoint", "/oauth/register"),
        ("revocation_endpoint", "/oauth/revoke"),
        ("device_authorization_endpoint", "/oauth/device"),
    ] {
        assert_eq!(document[member], format!("{origin}{path}"));
    }
    for (member, values) in [
        ("response_types_supported", json!(["code"])),
        (
            "grant_types_supported",
            json!(["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"]),
        ),
        ("code_challenge_methods_supported", json!(["S256"])),
        ("token_endpoint_auth_methods_supported", json!(["none"])),
        ("scopes_supported", json!(SCOPES)),
        ("authorization_response_iss_parameter_supported", json!(true)),
    ] {
        assert_eq!(document[member], values, "{member}");
    }
    // The service is no provider of OpenID Connect.
    stack.anonymous().get("/.well-known/openid-configuration").await.expect(404);
}

#[tokio::test]
async fn a_refusal_says_where_access_is_given() {
    let stack = &stack().await;
    let anonymous = stack.anonymous();
    let of = |path: &str| {
        format!("Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource{path}\"", stack.origin(0))
    };
    let reply = anonymous.get("/canvases").await.expect(401);
    assert_eq!(reply.header("www-authenticate"), Some(of(API_ROOT).as_str()));
    let reply = anonymous.send("/mcp", &json!({})).await.expect(401);
    assert_eq!(reply.header("www-authenticate"), Some(of("/mcp").as_str()));
    let wrong = anonymous.with_token("cba_wrong");
    let reply = wrong.get("/canvases").await.expect(401);
    assert_eq!(reply.header("www-authenticate"), Some(format!("{}, error=\"invalid_token\"", of(API_ROOT)).as_str()));
    let reader = stack.user_with("canvas:read").await;
    let reply = reader.send("/canvases", &json!({"title": "x"})).await.expect(403);
    let scopes = format!("{}, error=\"insufficient_scope\", scope=\"canvas:read canvas:write\"", of(API_ROOT));
    assert_eq!(reply.header("www-authenticate"), Some(scopes.as_str()));
    // The console has another credential.
    let reply = anonymous.get("/console/session").await.expect(401);
    assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
}

fn call(tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

#[tokio::test]
async fn a_tool_that_an_app_may_not_use_is_refused_with_all_its_scopes() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let app = flow
        .app_with(&[
            ("scope", Some("canvas:read asset:read")),
            ("resource", Some(format!("{}/mcp", stack.origin(0)).as_str())),
        ])
        .await;
    let client = flow.client.with_token(&app.access);
    let send = |tool: &str| client.send("/mcp", &call(tool)).header("accept", "application/json, text/event-stream");
    let reply = send("image_generate").await;
    reply.clone().expect_error(403, "forbidden", &[]);
    let challenge = reply.header("www-authenticate").expect("a challenge");
    let scopes = "error=\"insufficient_scope\", scope=\"canvas:read canvas:write asset:read image:generate\"";
    assert!(challenge.contains("/oauth-protected-resource/mcp\"") && challenge.ends_with(scopes), "{challenge}");
    send("status").await.expect(200);
    send("no_such_tool").await.expect(200);
    // An agent token cannot get more scopes: its tool says so.
    let reader = stack.user_with("canvas:read").await;
    let reply =
        reader.send("/mcp", &call("image_generate")).header("accept", "application/json, text/event-stream").await;
    reply.expect(200);
}

#[tokio::test]
async fn without_oauth_there_is_no_trace_of_it() {
    let stack = &Stack::builder().env("CANVAS_OAUTH", "off").shared().await;
    let anonymous = stack.anonymous();
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        anonymous.get(path).await.expect(404);
    }
    for path in ["/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/device"] {
        assert_eq!(anonymous.form(path, &[]).attempt().await.expect("is answered").status, 404, "{path}");
    }
    for path in ["/oauth/authorize", "/device"] {
        assert_eq!(anonymous.navigate(path).await.0, 404, "{path}");
    }
    let reply = anonymous.get("/canvases").await.expect(401);
    assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    let person = stack.person(&stack.account().await).await;
    person.send("/authorizations/preview", &json!({"query": ""})).await.expect(404);
    person.send("/authorizations", &json!({"query": "", "decision": "allow"})).await.expect(404);
    person.send("/devices/preview", &json!({"userCode": "BCDFGHJK"})).await.expect(404);
    person.send("/devices", &json!({"userCode": "BCDFGHJK", "decision": "allow"})).await.expect(404);
    person.get("/apps").await.expect(200);
}
