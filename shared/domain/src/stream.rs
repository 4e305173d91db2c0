//! The messages of `GET /events`. Rules: `docs/reference/events.md`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::account::Surface;
use crate::canvas::AccessRole;
use crate::id::CanvasHandle;
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Participant {
    /// Label of the token.
    pub label: String,
    /// Surface of the token.
    pub surface: Surface,
}

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
