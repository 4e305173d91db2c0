//! One test for each rule; batches as requests write them.

mod connections;
mod layout;
mod nodes;
mod placed;
mod refs;
mod sections;
mod whole;

use domain::Timestamp;
use domain::graph::{Connection, NodeType, Purpose, Role};
use domain::id::ConnectionId;
use domain::limits::{CANVAS_BYTES_MAX, CANVAS_CONNECTIONS_MAX, CANVAS_NODES_MAX, METADATA_BYTES_MAX};
use serde_json::{Value, json};

use super::*;
use crate::fixture::{
    AGENT, asset, batch, cid, connection, graph, id, image, invalid, member, object, run, section, seen, server,
    sticky, text, unprocessable, video, working, written,
};
use crate::size::serialized_size;

fn ids<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(T::to_string).collect()
}

/// When assets were read.
fn moment() -> Timestamp {
    serde_json::from_value(json!("2026-01-02T03:04:05.678Z")).expect("a time")
}

fn update(node: &str, patch: Value) -> Value {
    json!({"type": "node.update", "nodeId": node, "patch": patch})
}

fn metadata(node: &str, metadata: Value) -> Value {
    update(node, json!({"metadata": metadata}))
}

fn delete(node: &str) -> Value {
    json!({"type": "node.delete", "nodeId": node})
}

fn connect(from: &str, to: &str, purpose: &str) -> Value {
    json!({"type": "connection.create", "fromNodeId": from, "toNodeId": to, "purpose": purpose})
}

fn create(client_id: &str, kind: &str) -> Value {
    json!({"type": "node.create", "clientId": client_id, "node": {"type": kind}})
}
