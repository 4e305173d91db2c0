//! Findings on a canvas, and the reviews that summarize them. Rules: `docs/reference/findings.md`.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::canvas::{CanvasSummary, Changes};
use crate::constant::True;
use crate::graph::named;
use crate::id::{AssetHandle, ConnectionHandle, NodeHandle, NodeId, OutputHandle};
use crate::known::Name;
use crate::operation::Operation;
use crate::refs::{ConnectionRef, NodeRef};

named! {
    /// Code of a finding; stable.
    FindingCode {
        /// Two frames overlap, and at least one is owned by an agent.
        AgentOverlap = "agent_overlap",
        /// Two frames owned by the user overlap.
        UserOverlap = "user_overlap",
        /// Two frames that do not overlap are nearer to each other than 16 units, or a node is that near to an edge of its
        /// Section, lies over the title of its Section or crosses the edge of another Section.
        FramesTouch = "frames_touch",
        /// A Section stands beside others and shares an edge or middle line with none of them.
        SectionsStaggered = "sections_staggered",
        /// The frame of a node extends beyond the frame of its Section.
        SectionOverflow = "section_overflow",
        /// A card is too small for its text.
        TextTruncated = "text_truncated",
        /// The source of a reference or frame is an image node that shows nothing.
        ReferenceSourceEmpty = "reference_source_empty",
        /// A node or asset that an output was made from no longer exists.
        ReferenceSourceMissing = "reference_source_missing",
        /// Connections of the batch form a cycle.
        ReferenceCycle = "reference_cycle",
        /// Outputs were made by the embedded runtime and stand in for those of a model.
        StandInOutput = "stand_in_output",
        /// An image or video node shows nothing, waits for no work and is no placeholder.
        EmptySlot = "empty_slot",
        /// A connection passes behind the card of another node, or over the title of a Section.
        LineCrossesNode = "line_crosses_node",
        /// A card cuts off the edges of its image.
        PictureCropped = "picture_cropped",
        /// An Action enlarged its source more than 1.5 times a side.
        UpscaledOutput = "upscaled_output",
        /// A mask could not be applied to what the model made.
        MaskNotApplied = "mask_not_applied",
    }
}

/// The three questions that findings answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Findings about frames that cover each other, are too near to each other or are out of line.
    Overlap,
    /// Findings about members that do not lie within their Sections, and texts that do not lie within their nodes.
    Containment,
    /// Findings about sources of references that do not exist.
    ReferenceLineage,
}

impl FindingCode {
    /// The group of the code. A finding without one is advice, which does not prevent a claim that the work is done; only
    /// `empty_slot` does.
    pub const fn group(self) -> Option<Group> {
        match self {
            FindingCode::AgentOverlap
            | FindingCode::UserOverlap
            | FindingCode::FramesTouch
            | FindingCode::SectionsStaggered => Some(Group::Overlap),
            FindingCode::SectionOverflow | FindingCode::TextTruncated => Some(Group::Containment),
            FindingCode::ReferenceSourceEmpty | FindingCode::ReferenceSourceMissing | FindingCode::ReferenceCycle => {
                Some(Group::ReferenceLineage)
            }
            FindingCode::StandInOutput
            | FindingCode::EmptySlot
            | FindingCode::LineCrossesNode
            | FindingCode::PictureCropped
            | FindingCode::UpscaledOutput
            | FindingCode::MaskNotApplied => None,
        }
    }

    /// Returns `true` if a finding of this code keeps `doneClaimAllowed` false.
    pub fn holds_claim(self, severity: Severity, ownership: Ownership) -> bool {
        let may_hold = self.group().is_some() || self == FindingCode::EmptySlot;
        may_hold && severity != Severity::Info && ownership == Ownership::Agent
    }
}

named! {
    /// Severity of a finding, most severe first.
    Severity {
        /// Blocks a write without `force`.
        Error = "error",
        /// Needs attention.
        Warning = "warning",
        /// Information only.
        Info = "info",
    }
}

named! {
    /// Owner of the work that a finding is about.
    Ownership {
        /// An agent.
        Agent = "agent",
        /// The user.
        User = "user",
    }
}

/// A problem on a canvas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Stable code.
    #[schema(value_type = FindingCode)]
    pub code: Name<FindingCode>,
    /// Severity of the finding.
    pub severity: Severity,
    /// Message for people. It contains no user-authored text.
    pub message: String,
    /// Owner of the work that the finding is about.
    pub ownership: Ownership,
    /// `true` if it keeps `doneClaimAllowed` false.
    #[serde(default)]
    #[schema(required)]
    pub holds_claim: bool,
    /// Handles of the nodes concerned.
    #[schema(value_type = Vec<NodeHandle>)]
    pub node_handles: Vec<String>,
    /// Refs of these nodes, in the same order.
    #[serde(default)]
    #[schema(required)]
    pub node_refs: Vec<NodeRef>,
    /// Handles of the connections concerned.
    #[schema(value_type = Vec<ConnectionHandle>)]
    pub connection_handles: Vec<String>,
    /// Refs of these connections, in the same order.
    #[serde(default)]
    #[schema(required)]
    pub connection_refs: Vec<ConnectionRef>,
}

impl Finding {
    /// The group of its code.
    pub fn group(&self) -> Option<Group> {
        match &self.code {
            Name::Known(code) => code.group(),
            Name::Later(_) => None,
        }
    }
}

named! {
    /// Status of a validation.
    ValidationStatus {
        /// There are no findings.
        Ok = "ok",
        /// There are findings; none is an error.
        Advisory = "advisory",
        /// At least one error. A write without `force` is rejected.
        Blocked = "blocked",
    }
}

/// The findings on a canvas and their summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// Status of the validation.
    pub status: ValidationStatus,
    /// Findings: errors first, then warnings; within a severity, findings on what the batch touched come first.
    #[schema(max_items = 200)]
    pub findings: Vec<Finding>,
    /// `true` if there are more findings than are listed.
    pub truncated: bool,
    /// Review of the canvas.
    pub completion_review: CompletionReview,
}

impl Validation {
    /// Returns `true` if a write without `force` is rejected.
    pub fn is_blocked(&self) -> bool {
        self.status == ValidationStatus::Blocked
    }
}

named! {
    /// Status of a review.
    ReviewStatus {
        /// Nothing is left to do.
        Ready = "ready",
        /// A person should check the result.
        NeedsReview = "needs-review",
        /// Something is broken or unfinished.
        Blocked = "blocked",
    }
}

named! {
    /// Status of a group of findings.
    GroupStatus {
        /// No errors, no warnings.
        Clear = "clear",
        /// Warnings, no errors.
        NeedsReview = "needs-review",
        /// Errors.
        Blocked = "blocked",
    }
}

named! {
    /// Product fidelity: outputs that refer to a product, and whether a person should compare them with it.
    FidelityStatus {
        /// No output refers to a product.
        NotApplicable = "not-applicable",
        /// A person should compare outputs with the product.
        NeedsReview = "needs-review",
        /// Every output that refers to a product contains the product's own pixels.
        Passed = "passed",
    }
}

named! {
    /// Storage and display of all outputs.
    DeliveryClearance {
        /// Every output is stored and shown.
        Clear = "clear",
        /// Some outputs are pending, failed or not stored.
        Blocked = "blocked",
    }
}

/// Review of the work on a canvas: the conditions for calling it done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletionReview {
    /// Status of the review.
    pub status: ReviewStatus,
    /// `true` if a client may claim that the work is done.
    pub done_claim_allowed: bool,
    /// Next step, for agents and people.
    pub instruction: String,
    /// Outputs of the canvas.
    pub outputs: Outputs,
    /// Findings about frames that cover each other, are too near to each other or are out of line.
    pub overlap: GroupReview,
    /// Findings about members that do not lie within their Sections, and texts that do not lie within their nodes.
    pub containment: GroupReview,
    /// Findings about sources of references that do not exist.
    pub reference_lineage: GroupReview,
    /// Product fidelity: outputs that refer to a product, and whether a person should compare them with it.
    pub product_fidelity: ProductFidelity,
    /// Storage and display of all outputs.
    pub delivery: DeliveryReview,
    /// Codes of the errors, each once.
    #[schema(value_type = Vec<FindingCode>)]
    pub blocking_finding_codes: Vec<Name<FindingCode>>,
    /// Codes of all other findings, each once.
    #[schema(value_type = Vec<FindingCode>)]
    pub advisory_finding_codes: Vec<Name<FindingCode>>,
}

/// Outputs of a canvas: the nodes that work writes to, empty slots of agents, and work of the caller that owes outputs without a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outputs {
    /// Number of outputs.
    #[schema(minimum = 0)]
    pub count: usize,
    /// Number of outputs that show a stored asset.
    #[schema(minimum = 0)]
    pub durable_count: usize,
    /// Number of outputs with an active job.
    #[schema(minimum = 0)]
    pub pending_count: usize,
    /// Number of outputs that show nothing and whose last job failed or was canceled.
    #[schema(minimum = 0)]
    pub failed_count: usize,
    /// Node handles of the outputs; of works without a node, `run:` or `job:` handles.
    #[schema(value_type = Vec<OutputHandle>)]
    pub handles: Vec<String>,
}

/// Summary of one group of findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupReview {
    /// Status of the group.
    pub status: GroupStatus,
    /// Codes of the findings, each once.
    #[schema(value_type = Vec<FindingCode>)]
    pub finding_codes: Vec<Name<FindingCode>>,
    /// Handles of the nodes concerned, each once.
    #[schema(value_type = Vec<NodeHandle>)]
    pub node_handles: Vec<String>,
    /// Handles of the connections concerned, each once.
    #[schema(value_type = Vec<ConnectionHandle>)]
    pub connection_handles: Vec<String>,
}

/// A conservative signal derived from provenance. The images themselves are not compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProductFidelity {
    /// Status of the signal.
    pub status: FidelityStatus,
    /// Number of outputs that contain the product's own pixels.
    #[schema(minimum = 0)]
    pub reviewed_output_count: usize,
    /// Node handles of outputs that a person should compare with the product.
    #[schema(value_type = Vec<NodeHandle>)]
    pub needs_review_output_handles: Vec<String>,
    /// Node handles of the outputs to compare whose sources are unknown.
    #[schema(value_type = Vec<NodeHandle>)]
    pub evidence_missing_output_handles: Vec<String>,
    /// Reason for each output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<FidelityReason>,
}

/// Why an output needs review, or does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FidelityReason {
    /// Handle of the output's node.
    #[schema(value_type = NodeHandle)]
    pub node_handle: String,
    /// Reason for people.
    pub reason: String,
}

/// Storage and display of all outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryReview {
    /// Status of the delivery.
    pub status: DeliveryClearance,
    /// Reasons for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Handles of pending outputs.
    #[schema(value_type = Vec<OutputHandle>)]
    pub pending_output_handles: Vec<String>,
    /// Handles of failed outputs.
    #[schema(value_type = Vec<OutputHandle>)]
    pub failed_output_handles: Vec<String>,
    /// Node handles of outputs that are not stored.
    #[schema(value_type = Vec<NodeHandle>)]
    pub non_durable_output_handles: Vec<String>,
}

/// The changes that a batch would make. Ids of created records are provisional.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// Number of operations.
    #[schema(minimum = 1, maximum = 200)]
    pub operation_count: usize,
    /// Always `true`: the write makes other ids.
    #[schema(value_type = True, inline)]
    pub provisional: bool,
    /// Provisional id for each `clientId`.
    pub resolved_ids: BTreeMap<String, String>,
    /// The changes.
    #[serde(flatten)]
    pub changes: Changes,
}

/// The records that a batch would delete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestructiveImpact {
    /// `true` if the batch deletes anything.
    pub destructive: bool,
    /// Plain ids of nodes that the batch would delete.
    pub deleted_node_ids: Vec<crate::id::NodeId>,
    /// Plain ids of connections that the batch would delete.
    pub deleted_connection_ids: Vec<crate::id::ConnectionId>,
    /// Handles of assets that no node would show any more.
    pub detached_assets: Vec<AssetHandle>,
}

/// Response to a dry run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// The canvas as it is; nothing was written.
    pub canvas: CanvasSummary,
    /// The changes that the batch would make.
    pub proposal: Proposal,
    /// The records that the batch would delete.
    pub destructive_impact: DestructiveImpact,
    /// Findings that the batch would leave.
    pub validation: Validation,
}

named! {
    /// What can be done about work that owes outputs.
    RemedyKind {
        /// Wait until it has ended.
        Wait = "wait",
        /// Start what it owes again.
        Retry = "retry",
        /// Give up what it owes, and tell the user.
        GiveUp = "giveUp",
    }
}

/// What can be done about work that owes outputs, as a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Remedy {
    /// What it does.
    #[schema(value_type = RemedyKind)]
    pub kind: Name<RemedyKind>,
    /// Path of the request with its query, without the base URL: a GET to wait, a POST to start again, a DELETE to give up.
    pub path: String,
    /// Body of the start, without an idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub body: Option<Map<String, Value>>,
}

/// Remedies of work that owes outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkRepair {
    /// Handle of the run or job.
    #[schema(value_type = OutputHandle)]
    pub handle: String,
    /// What can be done.
    pub remedies: Vec<Remedy>,
}

/// What would end the findings and debts that hold the claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Repairs {
    /// A batch that a dry run on this revision accepts. It deletes nothing, and moves and resizes nothing of a person.
    #[schema(max_items = 200)]
    pub operations: Vec<Operation>,
    /// Plain ids of empty slots of agents. Deleting them ends their findings.
    pub deletions: Vec<NodeId>,
    /// Work of the caller that owes outputs.
    pub works: Vec<WorkRepair>,
    /// The findings that hold the claim after operations and deletions.
    pub leaves: Vec<Finding>,
}

/// A canvas and its review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CanvasReview {
    /// Summary of the canvas.
    pub canvas: CanvasSummary,
    /// Findings and completion review.
    pub validation: Validation,
    /// With `repairs=true`: what would end the findings and debts that hold the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<Repairs>,
}

/// Origin of an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was uploaded or imported.
    Brought,
    /// A job made it.
    Job,
}

/// An output of a job or Recipe run whose node was deleted before its end.
#[derive(Clone, Debug, PartialEq)]
pub struct DetachedOutput {
    /// The deleted node.
    pub node: NodeId,
    /// The image, if it was made. No node shows it.
    pub asset: Option<AssetHandle>,
}

/// Work that owes outputs which no node stands for, or has owed some that were given up (`docs/reference/findings.md#works-without-a-node`).
#[derive(Clone, Debug, PartialEq)]
pub struct OwingWork {
    /// `run:<id>`, of a video `job:<uuid>`.
    pub handle: String,
    /// `true` if it has not ended.
    pub is_active: bool,
    /// Number of its outputs that it does not owe.
    pub made: u32,
    /// Number of outputs that it owes.
    pub owed: u32,
    /// Number of outputs that were given up.
    pub given_up: u32,
}

/// The fields of a stored asset that a review needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredAsset {
    /// Where it comes from.
    pub origin: Origin,
    /// Width and height in pixels.
    pub size: (f64, f64),
}

/// The stored assets among those that a graph names. A review needs this in addition to the graph.
pub type StoredAssets = HashMap<AssetHandle, StoredAsset>;
