//! Answers of operations on canvases.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Activity, Canvas, CanvasSummary, Changes, Connection, Node};
use crate::Timestamp;
use crate::account::Surface;
use crate::id::{CanvasHandle, CanvasSlug};
use crate::origin::AiGenerated;
use crate::page::Page;

/// A canvas and its recent activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CanvasRead {
    /// The canvas with its whole graph.
    pub canvas: Canvas,
    /// The newest 50 activity entries, newest first.
    pub activity: Vec<Activity>,
}

/// A page of canvases, most recently updated first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CanvasList {
    /// Owned and shared canvases in one list.
    pub canvases: Vec<CanvasSummary>,
    /// Position in the list.
    pub page: Page,
}

/// Changes between two revisions.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanvasChanges {
    /// The revision that the request named.
    pub since: String,
    /// The current revision.
    pub revision: String,
    /// Short name of the canvas.
    #[schema(value_type = Option<CanvasSlug>)]
    pub slug: Option<String>,
    /// `true` if the lists are complete. `false`: `since` is not one of the last 1000 revisions, or `include=graph` would return
    /// more than 1000 nodes and connections; the lists are empty, and the canvas must be read again.
    pub complete: bool,
    /// Changed nodes and connections. What was both created and deleted since `since` is in no list.
    #[serde(flatten)]
    pub changes: Changes,
    /// The nodes in `changedNodeIds`, in the order of creation. Present with `include=graph`.
    #[schema(max_items = 1000)]
    pub nodes: Option<Vec<Node>>,
    /// The connections in `changedConnectionIds`, in the order of creation. Present with `include=graph`.
    #[schema(max_items = 1000)]
    pub connections: Option<Vec<Connection>>,
    /// Activity entries since `since`, at most 50, newest first.
    pub activity: Vec<Activity>,
    /// Who changed the nodes that are named, by plain id, newest first; with `include=authors`.
    pub authors: Option<BTreeMap<String, Vec<Author>>>,
    /// Refs of the nodes and connections that are named, by plain id; with `include`.
    pub refs: Option<BTreeMap<String, String>>,
}

/// A client that changed a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Author {
    /// Label of the token, or the name of the person in the console.
    pub label: String,
    /// Surface of the client.
    pub surface: Surface,
    /// The newest revision in which it changed the node.
    pub revision: String,
    /// When that was.
    pub at: Timestamp,
}

/// A node with its connections.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeRead {
    /// The node.
    pub node: Node,
    /// Connections that end at the node.
    pub incoming: Vec<Connection>,
    /// Connections that start at the node.
    pub outgoing: Vec<Connection>,
    /// Summary of the canvas.
    pub canvas: CanvasSummary,
    /// Preview URL of the image that the node shows, or of the poster of its video.
    #[schema(format = Uri)]
    pub preview_url: Option<String>,
    /// Remaining lifetime of the preview URL, in seconds.
    #[schema(minimum = 1)]
    pub preview_expires_in_seconds: Option<u64>,
    /// URL of the video that the node shows, for players.
    #[schema(format = Uri)]
    pub video_url: Option<String>,
    /// Remaining lifetime of the video URL, in seconds.
    #[schema(minimum = 1)]
    pub video_expires_in_seconds: Option<u64>,
    /// Use of AI in the image or video that the node shows.
    pub ai_generated: Option<AiGenerated>,
}

/// The canvas after a write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum CanvasAfter {
    /// The canvas with its graph.
    Whole(Canvas),
    /// The canvas without nodes and connections, in answer to `Prefer: return=minimal`.
    Minimal(CanvasSummary),
}

impl CanvasAfter {
    /// Handle of the canvas.
    pub fn handle(&self) -> &CanvasHandle {
        match self {
            CanvasAfter::Whole(canvas) => &canvas.handle,
            CanvasAfter::Minimal(canvas) => &canvas.handle,
        }
    }

    /// Short name of the canvas.
    pub fn slug(&self) -> Option<&str> {
        match self {
            CanvasAfter::Whole(canvas) => canvas.slug.as_deref(),
            CanvasAfter::Minimal(canvas) => canvas.slug.as_deref(),
        }
    }

    /// Revision of the canvas.
    pub fn revision(&self) -> &str {
        match self {
            CanvasAfter::Whole(canvas) => &canvas.revision,
            CanvasAfter::Minimal(canvas) => &canvas.revision,
        }
    }
}

/// Response to an applied batch: the canvas after it, and what the batch changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MutationResult {
    /// The canvas after the batch; without its graph in answer to `Prefer: return=minimal`.
    pub canvas: CanvasAfter,
    /// `true` if the response is that of an earlier equal request.
    pub replayed: bool,
    /// Created id for each `clientId`.
    pub resolved_ids: BTreeMap<String, String>,
    /// Ref of each node and connection that was created or changed and is on the canvas, by its plain id.
    #[serde(default)]
    pub refs: BTreeMap<String, String>,
    /// The changes of the batch.
    #[serde(flatten)]
    pub changes: Changes,
}
