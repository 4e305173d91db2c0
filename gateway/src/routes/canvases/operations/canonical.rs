//! The canonical form of a batch, which its fingerprint is taken from.

use std::collections::HashSet;

use domain::graph::{NodeType, Purpose};
use domain::id::{AccountUid, AssetRef};
use domain::operation::{Alignment, Direction};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::ApplyOperations;

/// The request with handles reduced to plain ids, and those of assets in their full form, so that different spellings of one batch
/// have the same fingerprint (docs/reference/conventions.md#fingerprint).
///
/// A handle that equals a `clientId` of the batch is kept: its plain form would refer to what the batch creates.
pub(super) fn canonical(request: &ApplyOperations, caller: &AccountUid) -> Value {
    let mut body = serde_json::to_value(request).expect("a parsed request serializes");
    let made: HashSet<String> = body["operations"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|operation| operation["clientId"].as_str().map(str::to_owned))
        .collect();
    for operation in body["operations"].as_array_mut().into_iter().flatten() {
        for field in ["nodeId", "fromNodeId", "toNodeId", "connectionId", "near", "sectionId"] {
            strip_kind(operation.get_mut(field), &made);
        }
        for node in operation.get_mut("nodeIds").and_then(Value::as_array_mut).into_iter().flatten() {
            strip_kind(Some(node), &made);
        }
        for holder in ["node", "patch"] {
            if let Some(asset) = operation.pointer_mut(&format!("/{holder}/asset"))
                && let Some(Ok(named)) = asset.as_str().map(AssetRef::parse)
            {
                *asset = named.resolve(caller).to_string().into();
            }
            strip_kind(operation.pointer_mut(&format!("/{holder}/metadata/sectionId")), &made);
        }
    }
    body
}

fn strip_kind(id: Option<&mut Value>, made: &HashSet<String>) {
    if let Some(Value::String(id)) = id
        && let Some((_, plain)) = id.split_once(':')
        && !made.contains(plain)
    {
        *id = plain.to_owned();
    }
}

/// Removes the members of operations that equal their default. Those of the body itself are always there.
pub(super) fn omit_defaults(body: &mut Value) {
    for operation in body["operations"].as_array_mut().into_iter().flatten() {
        if let Some(node) = operation.get_mut("node").and_then(Value::as_object_mut) {
            omit_node_defaults(node);
        }
        // `section: false` means `null`, which removes the section.
        if let Some(section) = operation.pointer_mut("/patch/metadata/section")
            && *section == false
        {
            *section = Value::Null;
        }
        let kind = operation["type"].as_str().unwrap_or_default().to_owned();
        let Some(operation) = operation.as_object_mut() else { continue };
        match kind.as_str() {
            "connection.create" => omit(operation, "purpose", |purpose| purpose == Purpose::Flow.as_str()),
            "layout.arrange" => {
                omit(operation, "align", |align| align == Alignment::Start.as_str());
                omit(operation, "direction", |direction| direction == Direction::Right.as_str());
            }
            _ => {}
        }
    }
}

fn omit_node_defaults(node: &mut Map<String, Value>) {
    let Some(kind) = node.get("type").and_then(|kind| NodeType::deserialize(kind).ok()) else { return };
    let (width, height) = kind.default_size();
    omit(node, "title", |title| title == kind.as_str());
    // The size of a node that shows an image depends on the image, that of a note or a Section on its metadata.
    let sizes_itself = node.get("metadata").is_some_and(|metadata| {
        metadata["section"] == true || metadata["content"].as_str().is_some_and(|content| !content.is_empty())
    });
    if !node.contains_key("asset") && !sizes_itself {
        omit(node, "width", |side| side.as_f64() == Some(width));
        omit(node, "height", |side| side.as_f64() == Some(height));
    }
    if let Some(metadata) = node.get_mut("metadata").and_then(Value::as_object_mut) {
        // A new node has nothing that `null` could remove, and `section: false` means `null`.
        metadata.retain(|key, value| !(value.is_null() || key == "section" && *value == false));
    }
    omit(node, "metadata", |metadata| *metadata == json!({}));
}

fn omit(object: &mut Map<String, Value>, key: &str, is_default: impl FnOnce(&Value) -> bool) {
    if object.get(key).is_some_and(is_default) {
        object.remove(key);
    }
}
