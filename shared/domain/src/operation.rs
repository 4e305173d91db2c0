//! Operations on the graph (decisions 4.1), as requests write them.
//!
//! Ids are still texts here: each may be a plain id, a handle, or a `clientId` made earlier in the same batch; the
//! graph engine resolves them.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::graph::{NodeType, Position, Purpose, Role};

/// One step of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", deny_unknown_fields)]
pub enum Operation {
    /// Makes a node.
    #[serde(rename = "node.create", rename_all = "camelCase")]
    NodeCreate {
        /// A name for the node within this batch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$", nullable = false)]
        client_id: Option<String>,
        /// The node.
        node: NewNode,
    },
    /// Changes title, size, metadata or, between text and sticky, type.
    #[serde(rename = "node.update", rename_all = "camelCase")]
    NodeUpdate {
        /// The node: id, handle or `clientId`.
        #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$")]
        node_id: String,
        /// What changes; at least one field.
        patch: NodePatch,
    },
    /// Moves a node.
    #[serde(rename = "node.move", rename_all = "camelCase")]
    NodeMove {
        /// The node: id, handle or `clientId`.
        #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$")]
        node_id: String,
        /// Where to.
        position: Position,
    },
    /// Copies a node's title, size, writable metadata and shown asset.
    #[serde(rename = "node.duplicate", rename_all = "camelCase")]
    NodeDuplicate {
        /// The node: id, handle or `clientId`.
        #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$")]
        node_id: String,
        /// A name for the copy within this batch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$", nullable = false)]
        client_id: Option<String>,
        /// Where the copy goes.
        position: Position,
    },
    /// Deletes a node and its connections.
    #[serde(rename = "node.delete", rename_all = "camelCase")]
    NodeDelete {
        /// The node: id, handle or `clientId`.
        #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$")]
        node_id: String,
    },
    /// Connects two nodes.
    #[serde(rename = "connection.create", rename_all = "camelCase")]
    ConnectionCreate {
        /// A name for the connection within this batch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$", nullable = false)]
        client_id: Option<String>,
        /// Where it starts: id, handle or `clientId`.
        #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$")]
        from_node_id: String,
        /// Where it ends: id, handle or `clientId`.
        #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$")]
        to_node_id: String,
        /// What it is for; `flow` when left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        purpose: Option<Purpose>,
        /// Only with purpose `reference`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        role: Option<Role>,
    },
    /// Changes a connection's purpose or role.
    #[serde(rename = "connection.update", rename_all = "camelCase")]
    ConnectionUpdate {
        /// The connection: id, handle or `clientId`.
        #[schema(pattern = "^(connection:)?[A-Za-z0-9_-]{1,180}$")]
        connection_id: String,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        purpose: Option<Purpose>,
        /// Only with purpose `reference`; `null` removes it.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        role: Option<Option<Role>>,
    },
    /// Deletes a connection.
    #[serde(rename = "connection.delete", rename_all = "camelCase")]
    ConnectionDelete {
        /// The connection: id, handle or `clientId`.
        #[schema(pattern = "^(connection:)?[A-Za-z0-9_-]{1,180}$")]
        connection_id: String,
    },
    /// Renames the canvas.
    #[serde(rename = "canvas.update", rename_all = "camelCase")]
    CanvasUpdate {
        /// The new title.
        #[schema(max_length = 160)]
        title: String,
    },
}

/// Tells a field that is `null` from one that is absent.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A node to make. Sizes default by type (decisions 3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewNode {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: NodeType,
    /// The type's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 160, nullable = false)]
    pub title: Option<String>,
    /// Its top left corner.
    pub position: Position,
    /// In canvas units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000, nullable = false)]
    pub width: Option<f64>,
    /// In canvas units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000, nullable = false)]
    pub height: Option<f64>,
    /// The writable keys of decisions 3.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    pub metadata: Option<Map<String, Value>>,
}

/// What changes about a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1)]
pub struct NodePatch {
    /// The new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 160, nullable = false)]
    pub title: Option<String>,
    /// In canvas units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000, nullable = false)]
    pub width: Option<f64>,
    /// In canvas units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000, nullable = false)]
    pub height: Option<f64>,
    /// Merged key by key; `null` removes a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    pub metadata: Option<Map<String, Value>>,
    /// Only between `text` and `sticky`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub kind: Option<NodeType>,
}
