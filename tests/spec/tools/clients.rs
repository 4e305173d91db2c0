//! The SDK's own client, over HTTP and over standard streams: both give equal results.

use std::fs;

use client::Client;
use client::network::Network;
use e2e::api::text;
use e2e::tools::tool_result;
use e2e::{Stack, User, images};
use rmcp::model::{CallToolRequestParams, ReadResourceRequestParams};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use tools::{Root, Server};

type Host = RunningService<RoleClient, ()>;

async fn over_http(stack: &Stack, user: &User) -> Host {
    let config =
        StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", stack.origin(0))).auth_header(&user.token);
    ().serve(StreamableHttpClientTransport::from_config(config)).await.expect("connects")
}

/// A host beside a server that goes over the network, as `canvas mcp` does.
async fn over_streams(stack: &Stack, user: &User, root: &std::path::Path) -> Host {
    let network = Network::new(&stack.origin(0), "e2e").expect("a client");
    beside(Client::new(network).with_token(&user.token).expect("a token"), root, &stack.origin(0)).await
}

async fn beside(client: Client, root: &std::path::Path, public_url: &str) -> Host {
    let server = Server::local(client, Root::new(root).expect("a directory"), public_url);
    let (here, there) = tokio::io::duplex(1024 * 1024);
    tokio::spawn(async move {
        let running = server.serve(there).await.expect("is initialized");
        running.waiting().await.expect("ends");
    });
    ().serve(here).await.expect("connects")
}

async fn call(host: &Host, tool: &'static str, arguments: Value) -> Value {
    let params = CallToolRequestParams::new(tool).with_arguments(arguments.as_object().expect("an object").clone());
    json!(host.call_tool(params).await.expect("is answered"))
}

#[tokio::test]
async fn both_transports_give_equal_results() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let directory = std::env::temp_dir();
    let (http, streams) = (over_http(stack, &user).await, over_streams(stack, &user, &directory).await);
    let made = tool_result(&call(&http, "canvas_create", json!({"title": "Both"})).await).ok();
    let operations =
        json!([{"type": "node.create", "clientId": "n", "node": {"type": "text", "metadata": {"content": "Hi"}}}]);
    let edit = json!({"canvas": made["canvas"], "revision": made["revision"], "operations": operations});
    let edited = tool_result(&call(&http, "canvas_edit", edit.clone()).await).ok();
    // Also the keys are equal: here it is a replay.
    let replayed = tool_result(&call(&streams, "canvas_edit", edit).await).ok();
    assert_eq!((&replayed["replayed"], &replayed["created"]), (&json!(true), &edited["created"]));
    let canvas = &made["canvas"];
    for (tool, arguments) in [
        ("status", json!({})),
        ("find", json!({"kind": "action"})),
        ("describe", json!({"handle": "action:crop"})),
        ("canvas_read", json!({"canvas": canvas})),
        ("canvas_read", json!({"canvas": canvas, "since": made["revision"]})),
        ("canvas_review", json!({"canvas": canvas})),
        ("canvas_view", json!({"canvas": canvas, "width": 256})),
        ("canvas_read", json!({"canvas": canvas, "nods": []})),
        ("run_wait", json!({"runs": ["run:none"]})),
    ] {
        let (mut one, mut other) = (
            tool_result(&call(&http, tool, arguments.clone()).await),
            tool_result(&call(&streams, tool, arguments).await),
        );
        // Each request has an id of its own.
        for result in [&mut one, &mut other] {
            if result.failed {
                result.value["error"].as_object_mut().expect("an error").remove("requestId");
                result.content.clear();
            }
        }
        assert_eq!(one, other, "{tool}");
    }
    let whole = user.canvas(canvas.as_str().expect("a slug")).await;
    let uri = format!("canvas://{}/{}/outline", text(&whole, "/ownerUid"), text(&whole, "/id"));
    let read = async |host: &Host| {
        json!(host.read_resource(ReadResourceRequestParams::new(&uri)).await.expect("is read"))["contents"].clone()
    };
    assert_eq!(read(&http).await, read(&streams).await);
    let names = async |host: &Host| -> Vec<String> {
        host.list_all_tools().await.expect("a list").into_iter().map(|tool| tool.name.into_owned()).collect()
    };
    assert_eq!(names(&http).await, names(&streams).await);
    assert_eq!(http.list_all_prompts().await.expect("a list").len(), 5);
}

#[tokio::test]
async fn local_files_are_uploaded_and_downloaded_over_standard_streams_alone() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let directory = std::env::temp_dir().join(format!("canvas-e2e-root-{}", user.uid));
    fs::create_dir_all(&directory).expect("makes a directory");
    fs::write(directory.join("boot.png"), images::png(30, 20)).expect("writes");
    fs::write(directory.join("sole.png"), images::png(20, 20)).expect("writes");
    std::os::unix::fs::symlink("/etc/passwd", directory.join("out.png")).expect("links");
    let streams = over_streams(stack, &user, &directory).await;
    let stored = tool_result(&call(&streams, "asset_upload", json!({"paths": ["boot.png", "sole.png"]})).await).ok();
    let [boot, sole] = &stored["assets"].as_array().expect("assets")[..] else { panic!("{stored}") };
    assert_eq!((&boot["name"], &boot["width"]), (&json!("boot.png"), &json!(30)));
    assert_eq!((&sole["name"], &sole["width"]), (&json!("sole.png"), &json!(20)));
    for path in ["out.png", "../etc/passwd", "/etc/passwd", "/dev/zero", "."] {
        let refused = tool_result(&call(&streams, "asset_upload", json!({"paths": ["boot.png", path]})).await)
            .fails("input_validation_error");
        assert_eq!(refused["error"]["fields"][0]["field"], "paths[1]", "{refused}");
    }
    let links = tool_result(&call(&streams, "asset_upload", json!({"files": [{"name": "boot.png"}]})).await);
    assert_eq!(links.fails("input_validation_error")["error"]["fields"][0]["field"], "files", "there are no links");
    // They are downloaded below the root, too, and no file is replaced.
    let items = json!([boot["asset"], sole["asset"], boot["asset"]]);
    let saved = tool_result(&call(&streams, "asset_download", json!({"items": items, "into": "out/here"})).await).ok();
    let names: Vec<&str> = saved["saved"].as_array().expect("files").iter().map(|file| text(file, "/path")).collect();
    let folder = fs::canonicalize(directory.join("out/here")).expect("was made");
    let expected = ["boot.png", "sole.png", "boot-2.png"].map(|name| folder.join(name).display().to_string());
    assert_eq!(names, expected);
    for (name, copy) in [("boot.png", "boot.png"), ("sole.png", "sole.png"), ("boot.png", "boot-2.png")] {
        assert!(
            fs::read(directory.join(name)).expect("reads") == fs::read(folder.join(copy)).expect("reads"),
            "{copy}"
        );
    }
    for (arguments, field) in [
        (json!({"items": items}), "into"),
        (json!({"items": items, "into": "../out"}), "into"),
        (json!({"items": items, "into": "/tmp"}), "into"),
        (json!({"items": items, "into": "out", "expiresInSeconds": 60}), "expiresInSeconds"),
        (json!({"items": ["node:a"], "into": "out"}), "canvas"),
    ] {
        let refused = tool_result(&call(&streams, "asset_download", arguments).await).fails("input_validation_error");
        assert_eq!(refused["error"]["fields"][0]["field"], field, "{refused}");
    }
    fs::remove_dir_all(directory).expect("removes");
}

#[tokio::test]
async fn an_unanswered_call_is_repeated_only_if_it_takes_effect_once() {
    let nowhere = Client::new(Network::new("http://127.0.0.1:1", "e2e").expect("a client")).without_retries();
    let host = beside(nowhere, &std::env::temp_dir(), "http://127.0.0.1:1").await;
    let edit = json!({"canvas": "c", "revision": "r", "operations": [{"type": "canvas.update", "title": "New"}]});
    for (tool, arguments, retry, said) in [
        ("canvas_edit", edit, "same_call", "takes effect once"),
        ("canvas_create", json!({"title": "Board"}), "with_changes", "may have taken effect"),
        ("element_save", json!({"name": "Calm", "type": "style"}), "with_changes", "may have taken effect"),
        (
            "element_manage",
            json!({"do": "collection.create", "target": "Mugs"}),
            "with_changes",
            "may have taken effect",
        ),
    ] {
        let failure = tool_result(&call(&host, tool, arguments).await).fails("service_unavailable");
        assert_eq!(failure["retry"]["when"], retry, "{failure}");
        assert!(failure["error"]["message"].as_str().expect("a text").contains(said), "{failure}");
    }
}
