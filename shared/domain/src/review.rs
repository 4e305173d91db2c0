//! What is left to fix on a canvas: findings and what they come to (decisions 4.5, 4.6, 5; specification,
//! CompletionReview).

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::canvas::{CanvasSummary, Changes};
use crate::graph::named;
use crate::id::AssetHandle;

named! {
    /// What a finding is about; stable, to branch on (decisions 5.1).
    FindingCode {
        /// Two frames overlap, at least one of them an agent's.
        AgentOverlap = "agent_overlap",
        /// Two frames of the user's overlap.
        UserOverlap = "user_overlap",
        /// A node's frame leaves the frame of its Section.
        SectionOverflow = "section_overflow",
        /// A reference or frame starts at an image node that shows nothing.
        ReferenceSourceEmpty = "reference_source_empty",
        /// An output was made from a node or an asset that is gone.
        ReferenceSourceMissing = "reference_source_missing",
        /// The batch's connections close a circle.
        ReferenceCycle = "reference_cycle",
    }
}

/// The three questions that findings answer (specification, CompletionReview).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Whether frames cover each other.
    Overlap,
    /// Whether members lie within their Sections.
    Containment,
    /// Whether references lead to what they name.
    ReferenceLineage,
}

impl FindingCode {
    /// The group that it belongs to (decisions 5.1).
    pub const fn group(self) -> Group {
        match self {
            FindingCode::AgentOverlap | FindingCode::UserOverlap => Group::Overlap,
            FindingCode::SectionOverflow => Group::Containment,
            FindingCode::ReferenceSourceEmpty | FindingCode::ReferenceSourceMissing | FindingCode::ReferenceCycle => {
                Group::ReferenceLineage
            }
        }
    }
}

named! {
    /// How much a finding weighs, heaviest first.
    Severity {
        /// Blocks a write without `force`.
        Error = "error",
        /// Asks for a look.
        Warning = "warning",
        /// Is just said.
        Info = "info",
    }
}

named! {
    /// Whose work a finding is about (decisions 3.3).
    Ownership {
        /// An agent's.
        Agent = "agent",
        /// The user's.
        User = "user",
    }
}

/// One thing that is not as it should be (decisions 4.6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// To branch on.
    pub code: FindingCode,
    /// How much it weighs.
    pub severity: Severity,
    /// For people; holds no user-authored text.
    pub message: String,
    /// Whose work it is about.
    pub ownership: Ownership,
    /// Node handles.
    pub node_handles: Vec<String>,
    /// Connection handles.
    pub connection_handles: Vec<String>,
}

named! {
    /// What a validation came to.
    ValidationStatus {
        /// There are no findings.
        Ok = "ok",
        /// No finding is an error.
        Advisory = "advisory",
        /// An error keeps a write without `force` from being applied.
        Blocked = "blocked",
    }
}

/// The findings on a canvas and what they come to (decisions 4.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// What it came to.
    pub status: ValidationStatus,
    /// Errors first, then warnings; of each what the batch touched first.
    #[schema(max_items = 200)]
    pub findings: Vec<Finding>,
    /// Whether there are more findings than are listed.
    pub truncated: bool,
    /// Whether the work can be called done.
    pub completion_review: CompletionReview,
}

impl Validation {
    /// Whether a write without `force` is refused.
    pub fn is_blocked(&self) -> bool {
        self.status == ValidationStatus::Blocked
    }
}

named! {
    /// What a review came to.
    ReviewStatus {
        /// Nothing is left to do.
        Ready = "ready",
        /// Somebody should look.
        NeedsReview = "needs-review",
        /// Something is broken or unfinished.
        Blocked = "blocked",
    }
}

named! {
    /// What a group of findings came to.
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
    /// Whether pictures show the product that they were made from.
    FidelityStatus {
        /// No output claims to show a product.
        NotApplicable = "not-applicable",
        /// Somebody should compare.
        NeedsReview = "needs-review",
        /// Every such output shows the product's own pixels.
        Passed = "passed",
    }
}

named! {
    /// Whether every output is there.
    DeliveryClearance {
        /// Every output is stored and shown.
        Clear = "clear",
        /// Some are pending, failed or not stored.
        Blocked = "blocked",
    }
}

/// Whether work on a canvas can be called done (specification, CompletionReview; decisions 5.2 to 5.4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletionReview {
    /// What it came to.
    pub status: ReviewStatus,
    /// Whether a client may claim to be done.
    pub done_claim_allowed: bool,
    /// What to do next, for agents and people.
    pub instruction: String,
    /// The canvas's outputs.
    pub outputs: Outputs,
    /// Whether frames cover each other.
    pub overlap: GroupReview,
    /// Whether members lie within their Sections.
    pub containment: GroupReview,
    /// Whether references lead to what they name.
    pub reference_lineage: GroupReview,
    /// Whether pictures show the product that they were made from.
    pub product_fidelity: ProductFidelity,
    /// Whether every output is there.
    pub delivery: DeliveryReview,
    /// Codes of the errors, once each.
    pub blocking_finding_codes: Vec<FindingCode>,
    /// Codes of all other findings, once each.
    pub advisory_finding_codes: Vec<FindingCode>,
}

/// The nodes that work fills (decisions 5.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outputs {
    /// All of them.
    #[schema(minimum = 0)]
    pub count: usize,
    /// Those that show something stored.
    #[schema(minimum = 0)]
    pub durable_count: usize,
    /// Those with an active job.
    #[schema(minimum = 0)]
    pub pending_count: usize,
    /// Those whose last job failed or was canceled and that show nothing.
    #[schema(minimum = 0)]
    pub failed_count: usize,
    /// Node handles.
    pub handles: Vec<String>,
}

/// What one group of findings came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupReview {
    /// What it came to.
    pub status: GroupStatus,
    /// Once each.
    pub finding_codes: Vec<FindingCode>,
    /// Once each.
    pub node_handles: Vec<String>,
    /// Once each.
    pub connection_handles: Vec<String>,
}

/// A conservative signal; nobody has looked at the pictures (decisions 5.4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProductFidelity {
    /// What it came to.
    pub status: FidelityStatus,
    /// Outputs made of the product's own pixels.
    #[schema(minimum = 0)]
    pub reviewed_output_count: usize,
    /// Node handles of outputs that somebody should compare with the product.
    pub needs_review_output_handles: Vec<String>,
    /// Those of them of which it cannot be told what they were made from.
    pub evidence_missing_output_handles: Vec<String>,
    /// Why, output by output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<FidelityReason>,
}

/// Why an output needs review, or does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FidelityReason {
    /// `node:<id>`.
    pub node_handle: String,
    /// For people.
    pub reason: String,
}

/// Whether every output is there (decisions 5.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryReview {
    /// What it came to.
    pub status: DeliveryClearance,
    /// For people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Node handles.
    pub pending_output_handles: Vec<String>,
    /// Node handles.
    pub failed_output_handles: Vec<String>,
    /// Node handles.
    pub non_durable_output_handles: Vec<String>,
}

/// What a batch would do (decisions 4.5); the ids of what it makes are provisional.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// How many operations it has.
    #[schema(minimum = 1, maximum = 200)]
    pub operation_count: usize,
    /// From `clientId` to a provisional id.
    pub resolved_ids: BTreeMap<String, String>,
    /// What would change.
    #[serde(flatten)]
    pub changes: Changes,
}

/// What a batch would take away (decisions 4.5).
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestructiveImpact {
    /// Whether it takes anything away.
    pub destructive: bool,
    /// Plain ids.
    pub deleted_node_ids: Vec<crate::id::NodeId>,
    /// Plain ids.
    pub deleted_connection_ids: Vec<crate::id::ConnectionId>,
    /// Assets that no node would show any more.
    pub detached_assets: Vec<AssetHandle>,
}

/// The answer to a dry run.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// The canvas as it is: nothing was written.
    pub canvas: CanvasSummary,
    /// What the batch would do.
    pub proposal: Proposal,
    /// What it would take away.
    pub destructive_impact: DestructiveImpact,
    /// What would be left to fix.
    pub validation: Validation,
}

/// How an asset came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Somebody uploaded or imported it.
    Brought,
    /// A job made it.
    Made,
}

/// The stored ones among the assets that a graph names: what a review knows beyond the graph.
pub type StoredAssets = HashMap<AssetHandle, Origin>;
