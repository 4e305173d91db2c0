//! The tools of a service over `/mcp`, as a host calls them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::{Call, Client, Reply};

/// The protocol without sessions and handshake.
pub const STATELESS: &str = "2026-07-28";
/// The newest protocol with a handshake.
pub const WITH_HANDSHAKE: &str = "2025-11-25";

/// The result of a call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// `true` if it is an error.
    pub failed: bool,
    /// The value of a success, or the text of an error as JSON.
    pub value: Value,
    /// All parts of the content.
    pub content: Vec<Value>,
}

impl ToolResult {
    /// The value of a success.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!(!self.failed, "{}", self.value);
        self.value
    }

    /// The text of an error with this code, as JSON.
    #[track_caller]
    pub fn fails(self, code: &str) -> Value {
        assert!(self.failed, "{}", self.value);
        assert_eq!(self.value["error"]["code"], code, "{}", self.value);
        assert!(self.value["next"].is_array() && self.value["retry"]["when"].is_string(), "{}", self.value);
        self.value
    }

    /// The bytes of the images.
    pub fn images(&self) -> Vec<Vec<u8>> {
        let images = self.content.iter().filter(|part| part["type"] == "image");
        images.map(|image| STANDARD.decode(image["data"].as_str().expect("data")).expect("base64")).collect()
    }
}

impl Client {
    /// Sends a request of the protocol.
    pub async fn mcp(&self, version: &str, method: &str, params: Value) -> Reply {
        self.mcp_call(version, method, params).attempt().await.expect("is answered")
    }

    /// A request of the protocol.
    pub fn mcp_call(&self, version: &str, method: &str, mut params: Value) -> Call {
        let mut request = self.post("/mcp").header("accept", "application/json, text/event-stream");
        request = request.header("mcp-protocol-version", version);
        if version >= STATELESS {
            request = request.header("mcp-method", method);
            if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
                request = request.header("mcp-name", name);
            }
            let progress = params["_meta"]["progressToken"].take();
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            if !progress.is_null() {
                params["_meta"]["progressToken"] = progress;
            }
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        request.body("application/json", message.to_string())
    }

    /// The result of a request of the protocol.
    pub async fn mcp_result(&self, version: &str, method: &str, params: Value) -> Value {
        let reply = self.mcp(version, method, params).await.ok();
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].clone()
    }
}

/// A host that knows the list of tools.
#[derive(Clone)]
pub struct Tools {
    client: Client,
    version: &'static str,
    list: Vec<Value>,
}

impl Tools {
    /// The tools for a token.
    pub async fn new(client: &Client, version: &'static str) -> Self {
        let list = client.mcp_result(version, "tools/list", json!({})).await;
        let list = list["tools"].as_array().expect("a list").clone();
        Self { client: client.clone(), version, list }
    }

    /// The same list with another client.
    pub fn with(&self, client: &Client) -> Self {
        Self { client: client.clone(), ..self.clone() }
    }

    /// The tools as they are listed.
    pub fn list(&self) -> &[Value] {
        &self.list
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        let params = json!({"name": tool, "arguments": arguments});
        tool_result(&self.client.mcp_result(self.version, "tools/call", params).await)
    }

    /// The value of a call that succeeds.
    pub async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.ok()
    }
}

/// The result of `tools/call`.
pub fn tool_result(result: &Value) -> ToolResult {
    let content = result["content"].as_array().cloned().unwrap_or_default();
    let failed = result["isError"] == true;
    let value = match failed {
        true => serde_json::from_str(content[0]["text"].as_str().expect("a text")).expect("an error is JSON"),
        false => result["structuredContent"].clone(),
    };
    ToolResult { failed, value, content }
}
