//! Operations on the graph as requests write them. Rules: `docs/reference/operations.md#operation-types`.
//!
//! Ids are unresolved texts: each may be a plain id, a handle, or a `clientId` from earlier in the same batch. The
//! graph engine resolves them.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, RefBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::Timestamp;
use crate::canvas::MutationResult;
use crate::graph::{NodeType, Position, Purpose, Role, named};
use crate::id::{AssetReference, ClientId, ConnectionReference, NodeReference};
use crate::metadata::WritableMetadata;
use crate::review::DryRun;

/// Distance between arranged nodes, and between a Section's edge and its members, in canvas units.
pub const GAP: f64 = 40.0;

named! {
    /// How nodes are arranged.
    Arrangement {
        /// Side by side, from left to right.
        Row = "row",
        /// One below the other.
        Column = "column",
        /// In rows of equally many nodes.
        Grid = "grid",
        /// Images whole in columns that end level; it resizes what it arranges.
        Masonry = "masonry",
        /// In layers along the connections between them.
        Flow = "flow",
    }
}

named! {
    /// Where nodes lie in their part of a row, a column or a grid.
    Alignment {
        /// At the top or left edge.
        Start = "start",
        /// In the middle.
        Center = "center",
        /// At the bottom or right edge.
        End = "end",
    }
}

named! {
    /// Where connections lead in a flow.
    Direction {
        /// From left to right.
        Right = "right",
        /// Downward.
        Down = "down",
    }
}

/// One operation of a batch.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", deny_unknown_fields)]
pub enum Operation {
    /// Creates a node.
    #[serde(rename = "node.create", rename_all = "camelCase")]
    #[schema(title = "NodeCreate")]
    NodeCreate {
        /// Name of the node within this batch.
        #[schema(value_type = Option<ClientId>)]
        client_id: Option<String>,
        /// The node to create.
        node: NewNode,
        /// A node next to which the service places the new one: id, handle or `clientId`. Only without `node.position`.
        #[schema(value_type = Option<NodeReference>)]
        near: Option<String>,
        /// The Section that the new node belongs to: id, handle or `clientId`. The same as `node.metadata.sectionId`.
        #[schema(value_type = Option<NodeReference>)]
        section_id: Option<String>,
    },
    /// Changes title, size or metadata of a node, or its type between `text` and `sticky`.
    #[serde(rename = "node.update", rename_all = "camelCase")]
    #[schema(title = "NodeUpdate")]
    NodeUpdate {
        /// Node: id, handle or `clientId`.
        #[schema(value_type = NodeReference)]
        node_id: String,
        /// Changes; at least one field.
        patch: NodePatch,
    },
    /// Moves a node.
    #[serde(rename = "node.move", rename_all = "camelCase")]
    #[schema(title = "NodeMove")]
    NodeMove {
        /// Node: id, handle or `clientId`.
        #[schema(value_type = NodeReference)]
        node_id: String,
        /// New position.
        position: Position,
        /// `true` if the members of a Section move with it. Default: `false`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        with_members: bool,
    },
    /// Copies a node: title, size, writable metadata and shown asset.
    #[serde(rename = "node.duplicate", rename_all = "camelCase")]
    #[schema(title = "NodeDuplicate")]
    NodeDuplicate {
        /// Node to copy: id, handle or `clientId`.
        #[schema(value_type = NodeReference)]
        node_id: String,
        /// Name of the copy within this batch.
        #[schema(value_type = Option<ClientId>)]
        client_id: Option<String>,
        /// Position of the copy.
        position: Position,
    },
    /// Deletes a node and its connections.
    #[serde(rename = "node.delete", rename_all = "camelCase")]
    #[schema(title = "NodeDelete")]
    NodeDelete {
        /// Node: id, handle or `clientId`.
        #[schema(value_type = NodeReference)]
        node_id: String,
    },
    /// Restores a node that was deleted within the last 1000 revisions, under the same id.
    #[serde(rename = "node.restore", rename_all = "camelCase")]
    #[schema(title = "NodeRestore")]
    NodeRestore {
        /// Deleted node: id or handle.
        #[schema(value_type = NodeReference)]
        node_id: String,
    },
    /// Connects two nodes.
    #[serde(rename = "connection.create", rename_all = "camelCase")]
    #[schema(title = "ConnectionCreate")]
    ConnectionCreate {
        /// Name of the connection within this batch.
        #[schema(value_type = Option<ClientId>)]
        client_id: Option<String>,
        /// Source node: id, handle or `clientId`.
        #[schema(value_type = NodeReference)]
        from_node_id: String,
        /// Target node: id, handle or `clientId`.
        #[schema(value_type = NodeReference)]
        to_node_id: String,
        /// Purpose. Default: `flow`.
        purpose: Option<Purpose>,
        /// Role of the reference; only with purpose `reference`.
        role: Option<Role>,
    },
    /// Changes purpose or role of a connection.
    #[serde(rename = "connection.update", rename_all = "camelCase")]
    #[schema(title = "ConnectionUpdate")]
    ConnectionUpdate {
        /// Connection: id, handle or `clientId`.
        #[schema(value_type = ConnectionReference)]
        connection_id: String,
        /// New purpose. Any purpose other than `reference` removes the role.
        purpose: Option<Purpose>,
        /// New role; only with purpose `reference`. `null` removes it.
        #[serde(default, deserialize_with = "present")]
        #[schema(schema_with = role_or_null, required = false)]
        role: Option<Option<Role>>,
    },
    /// Deletes a connection.
    #[serde(rename = "connection.delete", rename_all = "camelCase")]
    #[schema(title = "ConnectionDelete")]
    ConnectionDelete {
        /// Connection: id, handle or `clientId`.
        #[schema(value_type = ConnectionReference)]
        connection_id: String,
    },
    /// Restores a connection that was deleted within the last 1000 revisions, under the same id.
    #[serde(rename = "connection.restore", rename_all = "camelCase")]
    #[schema(title = "ConnectionRestore")]
    ConnectionRestore {
        /// Deleted connection: id or handle.
        #[schema(value_type = ConnectionReference)]
        connection_id: String,
    },
    /// Arranges nodes, or the members of a Section, where they cover nothing else.
    #[serde(rename = "layout.arrange", rename_all = "camelCase")]
    #[schema(title = "LayoutArrange")]
    LayoutArrange {
        /// Nodes in their order: ids, handles or `clientId`s. None is named twice. A Section takes its members with it.
        #[schema(value_type = Option<Vec<NodeReference>>, min_items = 1, max_items = 200)]
        node_ids: Option<Vec<String>>,
        /// Section whose members are arranged in reading order: id, handle or `clientId`. Instead of `nodeIds`.
        #[schema(value_type = Option<NodeReference>)]
        section_id: Option<String>,
        /// How they are arranged.
        layout: Arrangement,
        /// Distance between neighbors, in canvas units. Default: 40.
        #[serde(default = "gap")]
        #[schema(minimum = 0, maximum = 1000)]
        gap: f64,
        /// Number of columns of a `grid` or `masonry`. Default: the number that makes it nearest to 3:2 and at most 2:1.
        #[schema(minimum = 1, maximum = 200)]
        columns: Option<u32>,
        /// Alignment across a `row` or `column`, or in the cells of a `grid`. Default: `start`.
        align: Option<Alignment>,
        /// Direction of a `flow`. Default: `right`.
        direction: Option<Direction>,
        /// A node next to which the whole is placed: id, handle or `clientId`. Default: where the nodes are.
        #[schema(value_type = Option<NodeReference>)]
        near: Option<String>,
        /// Left edge of the whole; only with `y` and without `near`.
        #[schema(minimum = -10_000_000, maximum = 10_000_000)]
        x: Option<f64>,
        /// Top edge of the whole; only with `x` and without `near`.
        #[schema(minimum = -10_000_000, maximum = 10_000_000)]
        y: Option<f64>,
    },
    /// Gives a text or sticky the height at which it shows all its text.
    #[serde(rename = "node.fit", rename_all = "camelCase")]
    #[schema(title = "NodeFit")]
    NodeFit {
        /// Node: id, handle or `clientId`.
        #[schema(value_type = NodeReference)]
        node_id: String,
    },
    /// Sizes a Section to its members and its title.
    #[serde(rename = "section.fit", rename_all = "camelCase")]
    #[schema(title = "SectionFit")]
    SectionFit {
        /// Section: id, handle or `clientId`.
        #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$")]
        node_id: String,
        /// Distance of the members from the edges, in canvas units; above them there is always room for the title. Default: 40.
        #[serde(default = "gap")]
        #[schema(minimum = 0, maximum = 1000)]
        padding: f64,
    },
    /// Creates a Section, around nodes if some are named.
    #[serde(rename = "section.create", rename_all = "camelCase")]
    #[schema(title = "SectionCreate")]
    SectionCreate {
        /// Name of the Section within this batch.
        #[schema(value_type = Option<ClientId>)]
        client_id: Option<String>,
        /// Title.
        #[schema(max_length = 160)]
        title: String,
        /// Nodes that become its members: ids, handles or `clientId`s. None is named twice.
        #[schema(value_type = Option<Vec<NodeReference>>, min_items = 1, max_items = 200)]
        node_ids: Option<Vec<String>>,
        /// A node next to which the Section is placed: id, handle or `clientId`. Default: around the nodes.
        #[schema(value_type = Option<NodeReference>)]
        near: Option<String>,
        /// Left edge; only with `y` and without `near`.
        #[schema(minimum = -10_000_000, maximum = 10_000_000)]
        x: Option<f64>,
        /// Top edge; only with `x` and without `near`.
        #[schema(minimum = -10_000_000, maximum = 10_000_000)]
        y: Option<f64>,
    },
    /// Renames the canvas.
    #[serde(rename = "canvas.update", rename_all = "camelCase")]
    #[schema(title = "CanvasUpdate")]
    CanvasUpdate {
        /// New title.
        #[schema(max_length = 160)]
        title: String,
    },
}

impl Operation {
    /// The forms of the operations as JSON Schemas without references, in the order of the contract. Metadata has the keys
    /// that clients write.
    pub fn forms() -> Vec<Value> {
        let mut named = Vec::new();
        <Self as ToSchema>::schemas(&mut named);
        <WritableMetadata as ToSchema>::schemas(&mut named);
        let mut named: HashMap<String, Value> = named.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
        for changed in ["NewNode", "NodePatch"] {
            if let Some(metadata) = named.get_mut(changed).and_then(|schema| schema.pointer_mut("/properties/metadata"))
            {
                *metadata = json!(WritableMetadata::schema());
            }
        }
        let Value::Array(mut forms) = json!(Self::schema())["oneOf"].take() else {
            unreachable!("an enumeration of several forms")
        };
        for form in &mut forms {
            inline(form, &named);
            // The derive forgets that the variants deny unknown fields.
            form["additionalProperties"] = false.into();
        }
        forms
    }
}

/// Replaces references within a schema by what they mean.
fn inline(schema: &mut Value, named: &HashMap<String, Value>) {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    if let Some(meant) = name.and_then(|name| named.get(name)) {
        *schema = meant.clone();
    }
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(|part| inline(part, named)),
        Value::Object(members) => members.values_mut().for_each(|member| inline(member, named)),
        _ => {}
    }
}

fn gap() -> f64 {
    GAP
}

/// The schema of a role that `null` removes.
fn role_or_null() -> impl Into<RefOr<Schema>> {
    let description = "New role; only with purpose `reference`. `null` removes it.";
    let role = RefBuilder::new().ref_location_from_schema_name("Role").description(Some(description));
    let removes = Extensions::builder().add("x-null-removes", true).build();
    OneOfBuilder::new().item(role).item(ObjectBuilder::new().schema_type(Type::Null)).extensions(Some(removes))
}

/// Distinguishes a field that is `null` from one that is absent.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A node to create.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewNode {
    /// Type of the node.
    #[serde(rename = "type")]
    pub kind: NodeType,
    /// Title. Default: the name of the type.
    #[schema(max_length = 160)]
    pub title: Option<String>,
    /// Position of the top left corner, in canvas units. Default: a free place next to `near`, in the Section, or to the right of
    /// the content. Nodes of a batch without position and `near` are placed together.
    pub position: Option<Position>,
    /// Width in canvas units. Default: 320 (image, text), 480 (video) or 240 (sticky); with `asset` and neither side, the
    /// longer side of the image is 320, that of the video 480.
    #[schema(minimum = 1, maximum = 100_000)]
    pub width: Option<f64>,
    /// Height in canvas units. Default: 320 (image), 270 (video), 160 (text) or 240 (sticky), or more if the text needs it; with
    /// `asset`, the height at which the whole image is shown.
    #[schema(minimum = 1, maximum = 100_000)]
    pub height: Option<f64>,
    /// Image that an image node shows, or video that a video node shows: handle of an asset that is stored in this canvas. The
    /// canvas's owner may also name any other of the owner's assets.
    #[schema(value_type = Option<AssetReference>)]
    pub asset: Option<String>,
    /// Metadata: writable keys only.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
}

/// Changes to a node.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1)]
pub struct NodePatch {
    /// New title.
    #[schema(max_length = 160)]
    pub title: Option<String>,
    /// New width in canvas units. Without `height`, the height of a node that shows an image follows, so that
    /// the whole image is shown.
    #[schema(minimum = 1, maximum = 100_000)]
    pub width: Option<f64>,
    /// New height in canvas units.
    #[schema(minimum = 1, maximum = 100_000)]
    pub height: Option<f64>,
    /// Metadata to merge key by key; `null` removes a key.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// New type; only between `text` and `sticky`.
    #[serde(rename = "type")]
    pub kind: Option<NodeType>,
    /// Another video that a video node shows, as in `node.create`. The one that it showed moves to its history.
    #[schema(value_type = Option<AssetReference>)]
    pub asset: Option<String>,
}

/// 6 letters that name a batch.
#[derive(ToSchema)]
#[schema(pattern = "^[a-z]{6}$")]
pub struct BatchId(pub String);

impl BatchId {
    /// Number of letters.
    pub const LETTERS: usize = 6;

    /// Returns `true` if a text has the form of one.
    pub fn fits(text: &str) -> bool {
        text.len() == Self::LETTERS && text.bytes().all(|byte| byte.is_ascii_lowercase())
    }
}

/// A batch that is named instead of sent again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchSetAside {
    /// Id of the batch.
    #[schema(value_type = BatchId)]
    pub id: String,
    /// The operations, with ids in place of refs.
    #[schema(value_type = Vec<Object>)]
    pub operations: Vec<Map<String, Value>>,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// Result of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum OperationsAnswer {
    /// Result of an applied batch.
    Applied(Box<MutationResult>),
    /// Result of a validated batch.
    Tried(Box<DryRun>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_have_no_references_and_the_keys_of_metadata() {
        let forms = Operation::forms();
        let kinds: Vec<&str> = forms.iter().filter_map(|form| form["properties"]["type"]["enum"][0].as_str()).collect();
        assert_eq!((kinds.len(), kinds[0], kinds[14]), (15, "node.create", "canvas.update"));
        for form in &forms {
            assert!(!form.to_string().contains("$ref") && form["additionalProperties"] == false, "{form}");
        }
        for (form, member) in [(&forms[0], "node"), (&forms[1], "patch")] {
            let keys = &form["properties"][member]["properties"]["metadata"]["properties"];
            assert!(keys["content"].is_object() && keys["textAlign"].to_string().contains("center"), "{form}");
        }
    }
}
