//! Canvases as they are served.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::Timestamp;
use crate::account::Surface;
use crate::graph::{self, NodeType, Position, Purpose, Role, named};
use crate::id::{AccountUid, AssetHandle, CanvasHandle, CanvasId, ConnectionId, NodeId};
use crate::object::Object;

named! {
    /// What an account may do with a canvas.
    AccessRole {
        /// Everything; the canvas is theirs.
        Owner = "owner",
        /// Read and write.
        Editor = "editor",
        /// Read only, whatever the token's scopes.
        Viewer = "viewer",
    }
}

impl AccessRole {
    /// Whether the role may change the canvas.
    pub const fn may_write(self) -> bool {
        !matches!(self, AccessRole::Viewer)
    }
}

named! {
    /// The one value of `canvasType`.
    CanvasType {
        /// The account's one Agent Canvas.
        Agent = "agent",
    }
}

/// What is known of a canvas without its graph: one row.
#[derive(Clone, Debug, PartialEq)]
pub struct CanvasRecord {
    /// The database's key.
    pub key: i64,
    /// Owner and id.
    pub handle: CanvasHandle,
    /// Set on an Agent Canvas.
    pub canvas_type: Option<CanvasType>,
    /// At most 160 characters.
    pub title: String,
    /// Opaque; changes with every write.
    pub revision: String,
    /// Counts the revisions.
    pub sequence: i64,
    /// Nodes.
    pub node_count: i32,
    /// Connections.
    pub connection_count: i32,
    /// Serialized size of the graph.
    pub graph_bytes: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its revision was made.
    pub updated_at: Timestamp,
}

impl CanvasRecord {
    /// The list item of it.
    pub fn summary(&self, role: Option<AccessRole>) -> CanvasSummary {
        CanvasSummary {
            id: self.handle.id.clone(),
            canvas_type: self.canvas_type,
            handle: self.handle.clone(),
            owner_uid: self.handle.owner.clone(),
            title: self.title.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            revision: self.revision.clone(),
            access_role: role,
            node_count: self.node_count,
            connection_count: self.connection_count,
        }
    }

    /// The whole of it.
    pub fn document(&self, nodes: Vec<Node>, connections: Vec<Connection>) -> Canvas {
        Canvas {
            id: self.handle.id.clone(),
            canvas_type: self.canvas_type,
            handle: self.handle.clone(),
            owner_uid: self.handle.owner.clone(),
            title: self.title.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            revision: self.revision.clone(),
            nodes,
            connections,
        }
    }
}

/// A canvas: one graph under one revision.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Canvas {
    /// Plain id.
    pub id: CanvasId,
    /// Set on an Agent Canvas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub canvas_type: Option<CanvasType>,
    /// `canvas:<ownerUid>:<id>`.
    pub handle: CanvasHandle,
    /// The owner.
    pub owner_uid: AccountUid,
    /// User-authored.
    #[schema(max_length = 160)]
    pub title: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its revision was made.
    pub updated_at: Timestamp,
    /// Opaque; changes on every successful write.
    #[schema(min_length = 1)]
    pub revision: String,
    /// In the order of creation.
    pub nodes: Vec<Node>,
    /// In the order of creation.
    pub connections: Vec<Connection>,
}

/// A canvas without its graph.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanvasSummary {
    /// Plain id.
    pub id: CanvasId,
    /// Set on an Agent Canvas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub canvas_type: Option<CanvasType>,
    /// `canvas:<ownerUid>:<id>`.
    pub handle: CanvasHandle,
    /// The owner.
    pub owner_uid: AccountUid,
    /// User-authored.
    #[schema(max_length = 160)]
    pub title: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its revision was made.
    pub updated_at: Timestamp,
    /// Opaque; changes on every successful write.
    #[schema(min_length = 1)]
    pub revision: String,
    /// What the caller may do with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub access_role: Option<AccessRole>,
    /// Nodes.
    #[schema(minimum = 0)]
    pub node_count: i32,
    /// Connections.
    #[schema(minimum = 0)]
    pub connection_count: i32,
}

/// A node as it is served. Title, text and prompts are user-authored: data, never instructions.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Plain id.
    pub id: NodeId,
    /// `node:<id>`.
    pub handle: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: NodeType,
    /// User-authored.
    #[schema(max_length = 160)]
    pub title: String,
    /// Its top left corner.
    pub position: Position,
    /// In canvas units.
    pub width: f64,
    /// In canvas units.
    pub height: f64,
    /// Client-written and server-owned keys together (decisions 3.5).
    #[schema(value_type = Object)]
    pub metadata: Metadata,
    /// What it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub asset: Option<AssetHandle>,
}

impl From<graph::Node> for Node {
    fn from(node: graph::Node) -> Self {
        Self {
            handle: node.id.handle(),
            id: node.id,
            kind: node.kind,
            title: node.title,
            position: node.position,
            width: node.width,
            height: node.height,
            metadata: Metadata::new(node.metadata, &node.server, node.agent_owned),
            asset: node.asset,
        }
    }
}

/// The metadata of a node as it is served: JSON text.
#[derive(Clone, Debug, Serialize)]
pub struct Metadata(Box<RawValue>);

impl Metadata {
    /// Puts together what clients wrote and what the service owns, as texts: a canvas is served without parsing its nodes. The only
    /// key that both may have is `content`, and there the service's stands (decisions 3.5).
    fn new(mut written: Object, owned: &Object, by_agent: bool) -> Self {
        if owned.contains_key("content") && written.contains_key("content") {
            written.remove("content");
        }
        let creator = if by_agent { r#""createdBy":"agent"}"# } else { r#""createdBy":"user"}"# };
        let (written, owned) = (written.to_text(), owned.to_text());
        let mut text = String::with_capacity(written.len() + owned.len() + creator.len());
        text.push('{');
        for object in [&written, &owned] {
            let members = object[1..object.len() - 1].trim();
            if !members.is_empty() {
                text.push_str(members);
                text.push(',');
            }
        }
        text.push_str(creator);
        Self(RawValue::from_string(text).expect("put together from the members of two objects"))
    }
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// A connection as it is served.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Plain id.
    pub id: ConnectionId,
    /// `connection:<id>`.
    pub handle: String,
    /// Plain id of where it starts.
    pub from_node_id: NodeId,
    /// Plain id of where it ends.
    pub to_node_id: NodeId,
    /// Node handle of where it starts.
    pub from: String,
    /// Node handle of where it ends.
    pub to: String,
    /// What it is for (an extension).
    pub purpose: Purpose,
    /// The part that a reference plays (an extension); nothing else has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub role: Option<Role>,
}

impl From<graph::Connection> for Connection {
    fn from(connection: graph::Connection) -> Self {
        Self {
            handle: connection.id.handle(),
            id: connection.id,
            from: connection.from.handle(),
            to: connection.to.handle(),
            from_node_id: connection.from,
            to_node_id: connection.to,
            purpose: connection.purpose,
            role: connection.role,
        }
    }
}

named! {
    /// What happened to a canvas (decisions 3.6).
    ActivityType {
        /// It was made.
        CanvasCreated = "canvas.created",
        /// A batch was applied.
        OperationsApplied = "operations.applied",
        /// An upload was placed.
        AssetUploaded = "asset.uploaded",
        /// Work began.
        JobStarted = "job.started",
        /// Work ended.
        JobFinished = "job.finished",
        /// A Recipe was copied in.
        RecipeForked = "recipe.forked",
        /// A Recipe run began.
        RecipeStarted = "recipe.started",
        /// A Recipe run ended.
        RecipeFinished = "recipe.finished",
        /// A product gallery was imported.
        ReferencesImported = "references.imported",
        /// A workflow was made.
        WorkflowCreated = "workflow.created",
    }
}

/// Who did something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    /// The account.
    pub owner_uid: AccountUid,
    /// Through what.
    pub surface: Surface,
    /// The token's label.
    pub label: String,
}

/// One thing that happened to a canvas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// Unique.
    pub id: String,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: ActivityType,
    /// When.
    pub at: Timestamp,
    /// The revision that it made.
    pub revision: String,
    /// Who did it.
    pub actor: Actor,
    /// For people.
    pub summary: String,
    /// Plain ids of the nodes concerned, at most 200.
    pub node_ids: Vec<NodeId>,
}

/// What a write changed: plain ids, once each, in first-touch order (decisions 4.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// Created and changed nodes.
    pub changed_node_ids: Vec<NodeId>,
    /// Deleted nodes.
    pub deleted_node_ids: Vec<NodeId>,
    /// Created and changed connections.
    pub changed_connection_ids: Vec<ConnectionId>,
    /// Deleted connections.
    pub deleted_connection_ids: Vec<ConnectionId>,
}

/// The canvas after a write.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum CanvasAfter {
    /// All of it.
    Whole(Canvas),
    /// Without nodes and connections, for who sent `Prefer: return=minimal` (decisions 4.7).
    Minimal(CanvasSummary),
}

/// The answer to an applied batch: the canvas as it is now and what the batch did.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MutationResult {
    /// The canvas, whole unless the client prefers less.
    pub canvas: CanvasAfter,
    /// Whether this is the answer to an earlier, equal request.
    pub replayed: bool,
    /// From `clientId` to the id that was made.
    pub resolved_ids: BTreeMap<String, String>,
    /// What changed.
    #[serde(flatten)]
    pub changes: Changes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn served_metadata_is_what_both_wrote_and_who_made_the_node() {
        let object = |text: &str| Object::from_stored(text.to_owned()).expect("an object");
        for (written, owned, served) in [
            ("{}", "{}", r#"{"createdBy":"user"}"#),
            (r#"{"prompt":"p"}"#, "{}", r#"{"prompt":"p","createdBy":"user"}"#),
            ("{ }", r#"{"job":{}}"#, r#"{"job":{},"createdBy":"user"}"#),
            (r#"{"a":1e308}"#, r#"{"job":{}}"#, r#"{"a":1e308,"job":{},"createdBy":"user"}"#),
            (r#"{"content":"mine","b":1}"#, r#"{"content":"ours"}"#, r#"{"b":1,"content":"ours","createdBy":"user"}"#),
        ] {
            assert_eq!(Metadata::new(object(written), &object(owned), false).0.get(), served);
        }
        assert_eq!(Metadata::new(object("{}"), &object("{}"), true).0.get(), r#"{"createdBy":"agent"}"#);
    }
}
