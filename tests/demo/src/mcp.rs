//! The tools of `/mcp`, as a program of an agent calls them: plain JSON over streamable HTTP without a session.

use client::{Payload, Transport, Unreachable};
use futures_util::TryStreamExt;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, Request};
use serde_json::{Value, json};

use crate::error::{Error, Result, list, text};
use crate::service::Service;

const VERSION: &str = "2025-11-25";

/// Introduces itself, and has the tool `canvas_review` look at the canvas, which must be done.
pub async fn review(service: &Service, canvas: &str) -> Result<String> {
    let hello =
        json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "canvas-demo", "version": "1"}});
    let hello = call(service, "initialize", hello).await?;
    let tools = call(service, "tools/list", json!({})).await?;
    let arguments = json!({"name": "canvas_review", "arguments": {"canvas": canvas}});
    let review = call(service, "tools/call", arguments).await?;
    if review["isError"] == true {
        return Err(Error::Unexpected(format!("canvas_review answered {review}")));
    }
    let name = text(&hello, "/serverInfo/name")?;
    // What the demo makes is what people see first: it must pass the service's own review.
    if review["structuredContent"]["doneClaimAllowed"] != true {
        return Err(Error::Unexpected(format!("the canvas is not done: {review}")));
    }
    Ok(format!("{} tools of {name}; the canvas passes canvas_review", list(&tools, "/tools")?.len()))
}

async fn call(service: &Service, method: &str, params: Value) -> Result<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let request = format!("POST /mcp ({method})");
    service.awaited.set(&request);
    let answer = service.repeat(&request, || exchange(service, body.clone())).await?;
    match answer.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(Error::Unexpected(format!("{request} answered {answer}"))),
    }
}

async fn exchange(service: &Service, body: String) -> client::Result<Value> {
    let request = Request::post("/mcp")
        .header(AUTHORIZATION, format!("Bearer {}", service.token))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .header(HeaderName::from_static("mcp-protocol-version"), VERSION)
        .body(Payload { bytes: body.into(), sent: None })
        .map_err(|error| client::Error::Unexpected(error.to_string()))?;
    let answer = service.network.send(request).await?;
    let status = answer.status();
    let body = answer.into_body().try_fold(Vec::new(), async |mut whole, piece| {
        whole.extend_from_slice(&piece);
        Ok(whole)
    });
    let body = body.await.map_err(|error| Unreachable(error.to_string()))?;
    match status {
        status if status.is_success() => {
            serde_json::from_slice(&body).map_err(|error| client::Error::Unexpected(error.to_string()))
        }
        status if status.is_server_error() => Err(Unreachable(status.to_string()).into()),
        status => Err(client::Error::Unexpected(format!("{status}: {}", String::from_utf8_lossy(&body)))),
    }
}
