//! `/mcp`: versions, credentials, origins and limits; the list of tools, resources and prompts; `/llms.txt`.

use std::time::Duration;

use e2e::Stack;
use e2e::api::text;
use e2e::tools::{STATELESS, Tools, WITH_HANDSHAKE, tool_result};
use serde_json::{Value, json};

use super::{board, tools_of};

/// A stack that the pages of an origin may call.
async fn stack() -> Stack {
    Stack::builder().gateways(2).image_workers(1).env("CANVAS_CORS_ORIGINS", "https://host.example").shared().await
}

#[tokio::test]
async fn every_version_is_spoken() {
    let stack = &stack().await;
    let user = stack.user().await;
    for version in ["2025-03-26", "2025-06-18", WITH_HANDSHAKE] {
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"},
        });
        let result = user.mcp_result(version, "initialize", params).await;
        assert_eq!(result["protocolVersion"], version, "{result}");
        assert_eq!(result["serverInfo"]["name"], "canvas-service");
        assert_eq!(result["capabilities"]["resources"], json!({}), "without a session there are no subscriptions");
        let instructions = result["instructions"].as_str().expect("instructions");
        assert!(instructions.len() <= 1024, "{} bytes", instructions.len());
        // No session: another gateway answers what follows.
        let list = user.at(stack, 1).mcp_result(version, "tools/list", json!({})).await;
        assert_eq!(list["tools"].as_array().map(Vec::len), Some(22));
    }
    let found = user.mcp_result(STATELESS, "server/discover", json!({})).await;
    let versions = json!(["2025-03-26", "2025-06-18", WITH_HANDSHAKE, STATELESS]);
    assert_eq!(found["supportedVersions"], versions, "{found}");
    assert_eq!(found["capabilities"]["resources"]["subscribe"], true, "{found}");
    let list = user.mcp_result(STATELESS, "tools/list", json!({})).await;
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(3_600_000), &json!("private")), "{list}");
}

#[tokio::test]
async fn an_unknown_version_is_refused() {
    let stack = &stack().await;
    let user = stack.user().await;
    for version in ["1999-01-01", "2024-11-05", "2027-01-01"] {
        let reply = user.mcp(version, "server/discover", json!({})).await;
        assert_eq!(reply.status, 400, "{version}: {reply}");
    }
}

/// Sends a body with these headers.
async fn sent(user: &e2e::User, headers: &[(&'static str, &str)], body: &str) -> e2e::Reply {
    let call = headers.iter().fold(user.post("/mcp"), |call, (name, value)| call.header(name, value));
    call.body("application/json", body.to_owned()).attempt().await.expect("is answered")
}

#[tokio::test]
async fn a_damaged_message_is_answered_as_json_rpc() {
    let stack = &stack().await;
    let user = stack.user().await;
    let call =
        |id: u8, params: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
    for (body, code, id) in [
        ("{".to_owned(), -32700, json!(null)),
        (String::new(), -32700, json!(null)),
        ("[]".to_owned(), -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":4}"#.to_owned(), -32600, json!(4)),
        (call(4, r#"{"name":"canvas_create","arguments":"x"}"#), -32602, json!(4)),
        (call(5, "{}"), -32602, json!(5)),
    ] {
        let reply = sent(&user, &[], &body).await;
        assert_eq!(reply.header("content-type"), Some("application/json"));
        let answer = reply.json();
        assert_eq!((&answer["error"]["code"], answer.get("id")), (&json!(code), Some(&id)), "{body}: {reply}");
    }
    let title = async |escaped: &str| {
        let made = call(1, &format!(r#"{{"name":"canvas_create","arguments":{{"title":"{escaped}"}}}}"#));
        let made = tool_result(&sent(&user, &[], &made).await.expect(200).json()["result"]).ok();
        user.get(&format!("/canvases/{}", text(&made, "/canvas"))).await.ok()["canvas"]["title"].clone()
    };
    assert_eq!(title(r"half \ud83d").await, "half \u{fffd}");
    assert_eq!(title(r"whole \ud83d\ude00").await, "whole \u{1f600}");
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let stack = &stack().await;
    let user = stack.user().await;
    let call = |id: u8, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "canvas_create", "arguments": arguments, "_meta": {"progressToken": id}}})
    };
    let batch = json!([call(2, json!({"title": "One"})), call(1, json!({"title": 5}))]).to_string();
    let answers = sent(&user, &[("mcp-protocol-version", "2025-03-26")], &batch).await.expect(200).json();
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!(2), &json!(1)), "{answers}");
    tool_result(&answers[0]["result"]).ok();
    tool_result(&answers[1]["result"]).fails("input_validation_error");
    let refused = sent(&user, &[("mcp-protocol-version", WITH_HANDSHAKE)], &batch).await.expect(400).json();
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Value::Null));
}

#[tokio::test]
async fn json_is_answered_to_whoever_accepts_it() {
    let stack = &stack().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let arguments = json!({"canvas": canvas, "revision": revision, "inputs": [node], "steps": [{"action": "rotate", "params": {"degrees": 90}}]});
    let params = json!({"name": "action_run", "arguments": arguments, "_meta": {"progressToken": "p1"}});
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    for accept in [
        "application/json",
        "application/*;q=0.5",
        "*/*",
        "",
        "text/html, application/json;q=0.1",
        "application/json, text/event-stream",
    ] {
        let reply = sent(&user, &[("accept", accept)], &list).await.expect(200);
        assert_eq!(reply.header("content-type"), Some("application/json"), "{accept}");
        assert_eq!(reply.json()["result"]["tools"].as_array().map(Vec::len), Some(22));
    }
    for accept in ["text/event-stream", "text/html", "application/json;q=0, */*"] {
        let reply = sent(&user, &[("accept", accept)], &list).await;
        assert_eq!(reply.status, 406, "{accept}: {reply}");
    }
    // Progress would need a stream.
    let run = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let reply = sent(&user, &[("accept", "application/json")], &run).await.expect(200);
    assert_eq!(tool_result(&reply.json()["result"]).ok()["runs"][0]["status"], "succeeded");
}

#[tokio::test]
async fn a_call_needs_a_token() {
    let stack = &stack().await;
    let user = stack.user().await;
    stack.anonymous().send("/mcp", &json!({})).await.expect_error(401, "unauthorized", &[]);
    let wrong = stack.anonymous().with_token(&user.token.replace("cba_", "cba-"));
    let refused = wrong.send("/mcp", &json!({})).await.expect(401);
    assert!(refused.header("www-authenticate").is_some_and(|challenge| challenge.ends_with("error=\"invalid_token\"")));
    stack.admin(&["admin", "token", "revoke", &user.token_id]).await.expect_success();
    user.send("/mcp", &json!({})).await.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn foreign_pages_are_refused() {
    let stack = &stack().await;
    let user = stack.user().await;
    let ask = async |origin: &str| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let call = user.post("/mcp").header("accept", "application/json, text/event-stream").header("origin", origin);
        call.body("application/json", message).attempt().await.expect("is answered")
    };
    for origin in ["https://foreign.example", "https://host.example:444", "http://host.example", "null"] {
        assert_eq!(ask(origin).await.status, 403, "{origin}");
    }
    let admitted = ask("https://host.example").await.expect(200);
    assert_eq!(admitted.header("access-control-allow-origin"), Some("https://host.example"));
}

#[tokio::test]
async fn a_message_has_at_most_12_mebibytes() {
    let stack = &stack().await;
    const MOST: usize = 12 * 1024 * 1024;
    let user = stack.user().await;
    user.send("/mcp", &json!("x".repeat(MOST))).await.expect_error(413, "payload_too_large", &[]);
    let tools = tools_of(&user).await;
    // Base64 that is none: the message is read, and the argument is refused.
    let refused = tools.call("asset_upload", json!({"data": "-".repeat(MOST - 4096)})).await;
    assert_eq!(refused.fails("input_validation_error")["error"]["fields"][0]["field"], "data");
}

#[tokio::test]
async fn only_posts_are_taken() {
    let stack = &stack().await;
    let user = stack.user().await;
    for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
        let refused = user.call(method, "/mcp").await.expect(405);
        assert_eq!(refused.header("allow"), Some("POST"));
    }
}

#[tokio::test]
async fn the_list_is_short_and_the_same_everywhere() {
    let stack = &stack().await;
    let user = stack.user().await;
    let list = async |gateway: usize, version: &'static str| {
        user.at(stack, gateway).mcp_result(version, "tools/list", json!({})).await["tools"].clone()
    };
    let first = list(0, STATELESS).await;
    assert!(first.to_string().len() <= 26_000, "{} bytes", first.to_string().len());
    assert!(first.as_array().expect("a list").iter().all(|tool| tool.get("outputSchema").is_none()));
    for (gateway, version) in [(1, STATELESS), (0, WITH_HANDSHAKE), (1, "2025-03-26")] {
        assert_eq!(list(gateway, version).await, first, "{version}");
    }
}

#[tokio::test]
async fn the_list_has_what_the_token_may_do() {
    let stack = &stack().await;
    let reader = stack.user_with("canvas:read,asset:read").await;
    let tools = tools_of(&reader).await;
    let names: Vec<&str> = tools.list().iter().map(|tool| text(tool, "/name")).collect();
    assert_eq!(names, ["status", "find", "describe", "canvas_read", "canvas_view", "canvas_review", "asset_download"]);
    // What is not listed is refused by the service, not by the list.
    let refused = tools.call("canvas_create", json!({})).await.fails("forbidden");
    assert_eq!(refused["retry"]["when"], "never");
    assert!(refused["error"]["message"].as_str().expect("a text").contains("canvas:write"), "{refused}");
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_of_the_protocol() {
    let stack = &stack().await;
    let user = stack.user().await;
    let reply = user.mcp(WITH_HANDSHAKE, "tools/call", json!({"name": "rm", "arguments": {}})).await.json();
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
}

/// `canvas://<owner>/<id>` of a canvas that a slug names.
async fn address_of(user: &e2e::User, canvas: &Value) -> String {
    let canvas = user.canvas(canvas.as_str().expect("a slug")).await;
    format!("canvas://{}/{}", text(&canvas, "/ownerUid"), text(&canvas, "/id"))
}

#[tokio::test]
async fn resources_are_read_by_address() {
    let stack = &stack().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, _, _) = board(&tools).await;
    let address = address_of(&user, &canvas).await;
    let read = async |uri: String| {
        user.mcp_result(STATELESS, "resources/read", json!({"uri": uri})).await["contents"][0].clone()
    };
    let listed = user.mcp_result(STATELESS, "resources/list", json!({})).await;
    assert_eq!(listed["resources"][0]["uri"], format!("{address}/outline"), "{listed}");
    assert_eq!((&listed["ttlMs"], &listed["cacheScope"]), (&json!(0), &json!("private")));
    let outline = read(format!("{address}/outline")).await;
    assert!(outline["text"].as_str().expect("a text").contains("boot.png"), "{outline}");
    assert!(read(format!("{address}/review")).await["text"].as_str().expect("a text").contains("doneClaimAllowed"));
    let render = read(format!("{address}/render.png")).await;
    assert!(render["mimeType"] == "image/png" && render["blob"].as_str().expect("base64").starts_with("iVBOR"));
    let templates = user.mcp_result(STATELESS, "resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"].as_array().map(Vec::len), Some(5));
    assert_eq!((&templates["ttlMs"], &templates["cacheScope"]), (&json!(3_600_000), &json!("public")));
    for missing in ["canvas://none/none/outline", "canvas://a/b/c/d", "file:///etc/passwd"] {
        let reply = user.mcp(WITH_HANDSHAKE, "resources/read", json!({"uri": missing})).await.json();
        assert_eq!(reply["error"]["code"], -32002, "{missing}: {reply}");
    }
}

#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    let stack = &stack().await;
    let user = stack.user().await;
    let list = user.mcp_result(STATELESS, "prompts/list", json!({})).await;
    let names: Vec<&Value> = list["prompts"].as_array().expect("a list").iter().map(|prompt| &prompt["name"]).collect();
    assert_eq!(names, ["moodboard", "product-shots", "storyboard", "tidy-and-finish", "hand-over", "deliver"]);
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(3_600_000), &json!("public")));
    // The second name is that of an earlier release.
    for name in ["product-shots", "product_shots"] {
        let arguments = json!({"name": name, "arguments": {"canvas": "canvas:a:b", "brief": "quiet"}});
        let prompt = user.mcp_result(STATELESS, "prompts/get", arguments).await;
        assert!(prompt["messages"][0]["content"]["text"].as_str().expect("a text").contains("\"quiet\""), "{prompt}");
    }
}

#[tokio::test]
async fn canvases_are_completed_by_the_beginning_of_their_names() {
    let stack = &stack().await;
    let user = stack.user().await;
    let make = async |title: &str| {
        let made = user.send("/canvases", &json!({"title": title})).await.expect(201).json()["canvas"].clone();
        (text(&made, "/slug").to_owned(), text(&made, "/id").to_owned(), text(&made, "/handle").to_owned())
    };
    let (autumn, autumn_id, _) = make("Autumn").await;
    let (spring, spring_id, spring_handle) = make("Spring campaign").await;
    let complete = async |reference: &Value, argument: &str, typed: &str| {
        let params = json!({"ref": reference, "argument": {"name": argument, "value": typed}});
        user.mcp_result(STATELESS, "completion/complete", params).await["completion"].clone()
    };
    let prompt = json!({"type": "ref/prompt", "name": "moodboard"});
    // The latest first.
    for (typed, values) in [
        ("", json!([spring, autumn])),
        ("sPR", json!([spring])),
        (&*autumn, json!([autumn])),
        (&*spring_id, json!([spring])),
        (&*spring_handle, json!([spring_handle])),
        ("campaign", json!([])),
    ] {
        let found = complete(&prompt, "canvas", typed).await;
        assert_eq!((&found["values"], &found["hasMore"]), (&values, &json!(false)), "{typed}");
    }
    let template = json!({"type": "ref/resource", "uri": "canvas://{owner}/{id}/outline"});
    assert_eq!(complete(&template, "owner", "").await["values"], json!([user.uid]));
    assert_eq!(complete(&template, "id", "aut").await["values"], json!([autumn_id]));
    // Any brief will do.
    assert_eq!(complete(&prompt, "brief", "s").await["values"], json!([]));
    // Nobody's canvases but one's own.
    let other = stack.user().await;
    let params = json!({"ref": prompt, "argument": {"name": "canvas", "value": ""}});
    let found = other.mcp_result(STATELESS, "completion/complete", params).await;
    assert_eq!(found["completion"]["values"], json!([]));
    for params in [
        json!({"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "canvas", "value": ""}}),
        json!({"ref": {"type": "ref/resource", "uri": "file:///{path}"}, "argument": {"name": "path", "value": ""}}),
        json!({"ref": prompt}),
    ] {
        let refused = user.mcp(STATELESS, "completion/complete", params).await.json();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[tokio::test]
async fn a_hundred_completions_are_given_at_most() {
    let stack = &stack().await;
    let user = stack.user().await;
    let complete = async || {
        let reference = json!({"type": "ref/prompt", "name": "moodboard"});
        let params = json!({"ref": reference, "argument": {"name": "canvas", "value": "many"}});
        let found = user.mcp_result(STATELESS, "completion/complete", params).await["completion"].clone();
        (found["values"].as_array().expect("values").len(), found["hasMore"].clone())
    };
    let make = async |title: String| user.send("/canvases", &json!({"title": title})).await.expect(201);
    for number in 0..100 {
        make(format!("Many {number}")).await;
    }
    assert_eq!(complete().await, (100, json!(false)));
    make("Many more".into()).await;
    assert_eq!(complete().await, (100, json!(true)));
}

/// The messages of a stream of the protocol.
fn messages(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

#[tokio::test]
async fn progress_is_reported_to_who_asks_for_it() {
    let stack = &stack().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let arguments = json!({"canvas": canvas, "revision": revision, "inputs": [node], "steps": [{"action": "rotate", "params": {"degrees": 90}}]});
    let params = json!({"name": "action_run", "arguments": arguments, "_meta": {"progressToken": "p1"}});
    let reply = user.mcp(STATELESS, "tools/call", params).await.expect(200);
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
    let sent = messages(std::str::from_utf8(&reply.body).expect("UTF-8"));
    let (last, notifications) = sent.split_last().expect("messages");
    assert!(!notifications.is_empty());
    let mut made = 0.0;
    for message in notifications {
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(
            (&message["params"]["progressToken"], message["params"]["total"].as_f64()),
            (&json!("p1"), Some(1.0))
        );
        let progress = message["params"]["progress"].as_f64().expect("a number");
        assert!((made..=1.0).contains(&progress), "outputs that are made, which never fall: {message}");
        made = progress;
    }
    assert_eq!(tool_result(&last["result"]).ok()["runs"][0]["status"], "succeeded");
}

#[tokio::test]
async fn a_subscription_tells_of_changes() {
    let stack = &stack().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let made = tools.ok("canvas_create", json!({})).await;
    let by_id = format!("{}/outline", address_of(&user, &made["canvas"]).await);
    let by_slug = format!("canvas://{}/review", text(&made, "/canvas"));
    let params = json!({"notifications": {"resourceSubscriptions": [by_id, by_slug, "https://elsewhere.example"]}});
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut params = params;
    params["_meta"] = meta;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
    let request = user.post("/mcp").header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", STATELESS).header("mcp-method", "subscriptions/listen");
    let mut stream = request.body("application/json", message.to_string()).streamed().await;
    assert_eq!(stream.status(), 200);
    let mut received = String::new();
    let mut until = async |count: usize| {
        let enough = |text: &str| text.matches("notifications/resources/updated").count() >= count;
        while !enough(&received) {
            let piece = tokio::time::timeout(Duration::from_secs(20), stream.chunk()).await.expect("in time");
            received.push_str(std::str::from_utf8(&piece.expect("reads").expect("goes on")).expect("UTF-8"));
        }
        received.clone()
    };
    // The present state, then each change.
    until(2).await;
    let operations = json!([{"type": "canvas.update", "title": "New"}]);
    tools
        .ok("canvas_edit", json!({"canvas": made["canvas"], "revision": made["revision"], "operations": operations}))
        .await;
    let received = until(4).await;
    for uri in [&by_id, &by_slug] {
        assert_eq!(received.matches(&format!(r#""uri":"{uri}""#)).count(), 2, "{received}");
    }
    assert!(!received.contains("elsewhere"), "{received}");
}

#[tokio::test]
async fn requests_of_tools_are_logged_with_their_surface() {
    let stack = &stack().await;
    let user = stack.user().await;
    Tools::new(&user, STATELESS).await.ok("status", json!({})).await;
    let log = stack.log(e2e::Part(e2e::Kind::Gateway, 0));
    let of_token = |line: &&str| line.contains(&user.token_id) && line.contains("request done");
    let lines: Vec<&str> = log.lines().filter(of_token).collect();
    assert!(lines.iter().any(|line| line.contains("/mcp")), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains("/auth/status") && line.contains("surface") && line.contains("tool")),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_page_for_models_names_the_doors() {
    let stack = &stack().await;
    let page = stack.anonymous().get("/llms.txt").await.expect(200);
    let text = String::from_utf8(page.body.to_vec()).expect("UTF-8");
    for part in [
        "# Canvas Service",
        "/mcp",
        "[Digest]",
        "openapi.json",
        "/docs",
        "`canvas_edit`",
        "/skills/deliver/SKILL.md",
        "/docs/guides/agents",
    ] {
        assert!(text.contains(part), "{part}");
    }
}
