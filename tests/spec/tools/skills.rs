//! Skills, and what agents and hosts find without a credential (docs/reference/tools.md#skills).

use e2e::Stack;
use e2e::tools::{STATELESS, WITH_HANDSHAKE};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const NAMES: [&str; 6] = ["moodboard", "product-shots", "storyboard", "tidy-and-finish", "hand-over", "deliver"];
const FOREVER: (i64, &str) = (3_600_000, "public");

fn address(name: &str) -> String {
    format!("skill://canvas/{name}/SKILL.md")
}

fn kept(result: &Value) -> (i64, &str) {
    (result["ttlMs"].as_i64().expect("a number"), result["cacheScope"].as_str().expect("a scope"))
}

#[tokio::test]
async fn the_extension_lists_every_skill_with_its_file() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let found = user.mcp_result(STATELESS, "server/discover", json!({})).await;
    assert_eq!(found["capabilities"]["extensions"]["io.modelcontextprotocol/skills"], json!({}), "{found}");
    let list = user.mcp_result(STATELESS, "skills/list", json!({})).await;
    assert_eq!(kept(&list), FOREVER);
    let skills = list["skills"].as_array().expect("skills");
    assert_eq!(skills.iter().map(|it| &it["frontmatter"]["name"]).collect::<Vec<_>>(), NAMES);
    for (skill, name) in skills.iter().zip(NAMES) {
        assert_eq!(skill["uri"], address(name));
        let read = user.mcp_result(STATELESS, "resources/read", json!({"uri": skill["uri"]})).await;
        assert_eq!(kept(&read), FOREVER);
        let [file] = read["contents"].as_array().expect("contents").as_slice() else { panic!("{read}") };
        assert_eq!((&file["uri"], &file["mimeType"]), (&skill["uri"], &json!("text/markdown")));
        let text = file["text"].as_str().expect("a text");
        let head = format!(
            "---\nname: {name}\ndescription: {}\n---\n",
            skill["frontmatter"]["description"].as_str().expect("a text")
        );
        assert!(text.starts_with(&head), "{text}");
        let digest: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        let listed = json!([{"uri": skill["uri"], "digest": format!("sha256:{digest}"), "size": text.len()}]);
        assert_eq!(skill["resources"], listed);
        let got = user.mcp_result(STATELESS, "skills/get", json!({"uri": skill["uri"]})).await;
        assert_eq!((&got["skill"], kept(&got)), (skill, FOREVER));
        let page = stack.anonymous().get(&format!("{}/skills/{name}/SKILL.md", stack.origin(0))).await.expect(200);
        assert_eq!(page.body, text);
        let prompt = json!({"name": name, "arguments": {"canvas": "~7kq2m9xa"}});
        let prompt = user.mcp_result(STATELESS, "prompts/get", prompt).await;
        let prompt = prompt["messages"][0]["content"]["text"].as_str().expect("a text");
        let (_, steps) = prompt.split_once("\n\n").expect("steps");
        assert!(text.ends_with(steps), "{prompt}");
    }
}

#[tokio::test]
async fn an_older_client_reads_skills_as_resources() {
    let stack = &Stack::without_workers().await;
    // No scope is needed: a skill is the same for everybody.
    let user = stack.user_with("canvas:read").await;
    let listed = user.mcp_result(WITH_HANDSHAKE, "resources/list", json!({})).await;
    let listed: Vec<&str> =
        listed["resources"].as_array().expect("a list").iter().filter_map(|it| it["uri"].as_str()).collect();
    assert_eq!(listed, NAMES.map(address));
    let read = user.mcp_result(WITH_HANDSHAKE, "resources/read", json!({"uri": address("deliver")})).await;
    assert!(read["contents"][0]["text"].as_str().expect("a text").contains("asset_download"), "{read}");
}

#[tokio::test]
async fn an_unknown_skill_is_not_found() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for uri in [&address("none"), "skill://canvas/moodboard", "skill://canvas/moodboard/OTHER"] {
        let refused = user.mcp(STATELESS, "skills/get", json!({"uri": uri})).await.json();
        assert_eq!(refused["error"]["code"], -32602, "{uri}: {refused}");
        let refused = user.mcp(WITH_HANDSHAKE, "resources/read", json!({"uri": uri})).await.json();
        assert_eq!(refused["error"]["code"], -32002, "{uri}: {refused}");
    }
    let refused = user.mcp(STATELESS, "skills/get", json!({})).await.json();
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let anyone = stack.anonymous();
    for path in ["/skills/none/SKILL.md", "/skills/moodboard/OTHER", "/skills/moodboard", "/skills"] {
        anyone.get(&format!("{}{path}", stack.origin(0))).await.expect_error(404, "not_found", &[]);
    }
}

#[tokio::test]
async fn what_needs_no_credential_may_be_kept_by_anybody_and_runs_nothing() {
    let stack = &Stack::without_workers().await;
    let anyone = stack.anonymous();
    for (path, media_type) in [
        ("/llms.txt", "text/plain; charset=utf-8"),
        ("/skills/moodboard/SKILL.md", "text/markdown; charset=utf-8"),
        ("/.well-known/mcp/server.json", "application/json"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        let url = format!("{}{path}", stack.origin(0));
        let reply = anyone.get(&url).await.expect(200);
        for (name, value) in [
            ("content-type", media_type),
            ("cache-control", "public, max-age=3600"),
            ("content-security-policy", "default-src 'none'; sandbox"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("set-cookie", ""),
        ] {
            assert_eq!(reply.header(name).unwrap_or_default(), value, "{path}: {name}");
        }
        // A credential that is none does not matter.
        assert_eq!(anyone.with_token("cba_none").get(&url).await.expect(200).body, reply.body);
        anyone.call(Method::HEAD, &url).await.expect(200);
        let refused = anyone.call(Method::POST, &url).await.expect(405);
        assert_eq!(refused.header("allow"), Some("GET,HEAD"), "{path}");
    }
}

#[tokio::test]
async fn a_host_learns_from_server_json_how_to_connect() {
    let stack = &Stack::without_workers().await;
    let origin = stack.origin(0);
    let found = stack.anonymous().get(&format!("{origin}/.well-known/mcp/server.json")).await.ok();
    assert_eq!(found["$schema"], "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json");
    assert_eq!((&found["name"], &found["title"]), (&json!("1.0.0.127/canvas-service"), &json!("Canvas Service")));
    let remote = &found["remotes"][0];
    assert_eq!((&remote["type"], &remote["url"]), (&json!("streamable-http"), &json!(format!("{origin}/mcp"))));
    assert_eq!(remote.get("variables"), None, "{found}");
    let header = &remote["headers"][0];
    assert_eq!((&header["name"], &header["isSecret"]), (&json!("Authorization"), &json!(true)));
    // What it says is enough.
    let user = stack.user().await;
    let authorization = header["value"].as_str().expect("a value").replace("{token}", &user.token);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let call = stack.anonymous().post(remote["url"].as_str().expect("a URL")).body("application/json", message);
    let list = call.header("accept", "application/json").header("authorization", &authorization).await.ok();
    assert!(list["result"]["tools"].is_array(), "{list}");
    assert_eq!(found["version"], server_info(&user).await["version"]);
}

#[tokio::test]
async fn the_server_has_an_icon_of_its_own() {
    let stack = &Stack::without_workers().await;
    let info = server_info(&stack.user().await).await;
    let icon = &info["icons"][0];
    assert_eq!((&icon["mimeType"], &icon["sizes"]), (&json!("image/svg+xml"), &json!(["any"])), "{info}");
    let image = stack.anonymous().get(icon["src"].as_str().expect("an address")).await.expect(200);
    assert!(image.body.starts_with(b"<svg"), "{image}");
}

async fn server_info(user: &e2e::User) -> Value {
    let client = json!({"name": "e2e", "version": "1"});
    let params = json!({"protocolVersion": WITH_HANDSHAKE, "capabilities": {}, "clientInfo": client});
    user.mcp_result(WITH_HANDSHAKE, "initialize", params).await["serverInfo"].clone()
}
