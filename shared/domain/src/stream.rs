//! The messages of `GET /events`. Rules: `docs/reference/events.md`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::account::Surface;
use crate::canvas::AccessRole;
use crate::id::{CanvasHandle, NodeId};
use crate::job::{JobStatus, RunKind};

/// Data of the event `role`: what the caller may do on a canvas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleStreamEvent {
    /// Handle of the canvas.
    pub canvas: CanvasHandle,
    /// Role of the caller's account.
    pub access_role: AccessRole,
}

/// Data of the event `canvas`: a canvas and its present revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CanvasStreamEvent {
    /// Handle of the canvas.
    pub canvas: CanvasHandle,
    /// The current revision.
    pub revision: String,
}

/// Data of the event `gone`: a canvas that can no longer be followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GoneStreamEvent {
    /// Handle of the canvas.
    pub canvas: CanvasHandle,
}

/// Data of the event `presence`: who follows a canvas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PresenceStreamEvent {
    /// Handle of the canvas.
    pub canvas: CanvasHandle,
    /// One entry for each token with an open stream of the canvas, in the order of labels.
    #[schema(max_items = 100)]
    pub who: Vec<Participant>,
}

/// A token that follows a canvas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Participant {
    /// The same for this token on this canvas, and for nothing else.
    pub id: String,
    /// Label of the token.
    pub label: String,
    /// Surface of the token.
    pub surface: Surface,
}

/// Data of the event `pointers`: those on a canvas that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PointersStreamEvent {
    /// Handle of the canvas.
    pub canvas: CanvasHandle,
    /// One entry for each session whose pointer changed. One without any further member: it is not shown any more.
    pub who: Vec<Pointer>,
}

/// Where a person is on a canvas, and what the person is doing there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pointer {
    /// The session.
    #[serde(flatten)]
    pub who: Participant,
    /// Its pointer.
    #[serde(flatten)]
    pub state: PointerState,
}

/// What a pointer shows, in canvas units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PointerState {
    /// Position `[x, y]` of the pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 2, max_items = 2)]
    pub at: Option<[Coordinate; 2]>,
    /// Ids of selected nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 32)]
    pub selection: Option<Vec<NodeId>>,
    /// Distance `[dx, dy]` by which the selection is being dragged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 2, max_items = 2)]
    pub moving: Option<[Coordinate; 2]>,
    /// The visible part `[x, y, width, height]` of the canvas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 4, max_items = 4)]
    pub view: Option<[Coordinate; 4]>,
    /// Id of the node whose text is being written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editing: Option<NodeId>,
}

/// A coordinate or distance, in canvas units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(minimum = -10_000_000, maximum = 10_000_000)]
pub struct Coordinate(pub f64);

/// Data of the event `run`: the present state of a run or job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunStreamEvent {
    /// Handle of the run, `run:<id>`; of a video, which has no run, handle of the job, `job:<uuid>`.
    pub run: String,
    /// Kind of the run.
    pub kind: RunKind,
    /// Status of the run.
    pub status: JobStatus,
    /// Progress in percent: of a video as its provider reports it, otherwise the share of outputs that are made.
    #[schema(minimum = 0, maximum = 100)]
    pub progress: f64,
    /// Number of outputs that are made.
    #[schema(minimum = 0)]
    pub done: i64,
    /// Number of outputs.
    #[schema(minimum = 1)]
    pub total: i64,
    /// Handle of the canvas that receives the outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canvas: Option<CanvasHandle>,
}
