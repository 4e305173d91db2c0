//! The review of the work on a canvas: may it be called done. Rules: `docs/reference/findings.md#review-status`.

mod fidelity;
mod outputs;

use domain::graph::{Connection, Node};
use domain::review::{
    CompletionReview, DeliveryClearance, DestructiveImpact, DetachedOutput, FidelityStatus, Finding, Group,
    GroupReview, GroupStatus, Ownership, Proposal, ReviewStatus, Severity, StoredAssets, Validation, ValidationStatus,
};

pub(crate) use outputs::unfilled;

use crate::apply::{Applied, Touched};
use crate::batch::Batch;
use crate::findings::{self, Found};
use crate::graph::Graph;

/// The findings on a graph and their summary. `touched` is what the preceding batch touched, or empty; `assets` are the
/// stored ones among [`named_assets`]. A dry run and a write make the same call with equal graphs.
pub fn validate(graph: &Graph, touched: &Touched, assets: &StoredAssets) -> Validation {
    let Found { findings, truncated } = findings::find(graph, touched, assets);
    let completion_review = conclude(graph, &findings, assets, &[]);
    let status = match findings.iter().any(|finding| finding.severity == Severity::Error) {
        true => ValidationStatus::Blocked,
        false if findings.is_empty() => ValidationStatus::Ok,
        false => ValidationStatus::Advisory,
    };
    Validation { status, findings, truncated, completion_review }
}

/// Returns `true` if [`validate`] would report `blocked`: the check of a write without `force`. It needs no assets and stops at
/// the first error.
pub fn is_blocked(graph: &mut Graph, touched: &Touched) -> bool {
    findings::has_error(graph, touched)
}

/// The review that is stored with a job or Recipe run, of the canvas after its last write. `detached` are outputs of the
/// job or run whose nodes were deleted.
pub fn review_of_end(
    nodes: Vec<Node>,
    connections: Vec<Connection>,
    assets: &StoredAssets,
    detached: &[DetachedOutput],
) -> CompletionReview {
    review(&Graph::new(String::new(), 0, nodes, connections), assets, detached)
}

/// [`review_of_end`] of a graph as it is.
pub fn review(graph: &Graph, assets: &StoredAssets, detached: &[DetachedOutput]) -> CompletionReview {
    let found = findings::find(graph, &Touched::default(), assets);
    conclude(graph, &found.findings, assets, detached)
}

/// The assets that findings and reviews depend on: those that nodes show and those that outputs were made from.
pub fn named_assets(graph: &Graph) -> impl Iterator<Item = domain::id::AssetHandle> {
    graph.nodes().flat_map(Node::named_assets)
}

impl Applied {
    /// The changes that the batch would make, for a dry run.
    pub fn proposal(&self, batch: &Batch) -> Proposal {
        Proposal {
            operation_count: batch.operation_count(),
            provisional: true,
            resolved_ids: self.resolved_ids.clone(),
            changes: self.changes.clone(),
        }
    }

    /// The records that the batch deletes. A batch is destructive if it deletes anything.
    pub fn destructive_impact(&self) -> DestructiveImpact {
        let (nodes, connections) = (&self.changes.deleted_node_ids, &self.changes.deleted_connection_ids);
        DestructiveImpact {
            destructive: !nodes.is_empty() || !connections.is_empty(),
            deleted_node_ids: nodes.clone(),
            deleted_connection_ids: connections.clone(),
            detached_assets: self.detached_assets.clone(),
        }
    }
}

fn conclude(
    graph: &Graph,
    findings: &[Finding],
    assets: &StoredAssets,
    detached: &[DetachedOutput],
) -> CompletionReview {
    let (outputs, delivery) = outputs::assess(graph, assets, detached);
    let product_fidelity = fidelity::judge(graph, assets);
    let weighs = |severity| findings.iter().any(|finding| finding.severity == severity);
    let is_delivered = delivery.status == DeliveryClearance::Clear;
    let status = if weighs(Severity::Error) || !is_delivered {
        ReviewStatus::Blocked
    } else if weighs(Severity::Warning) || product_fidelity.status == FidelityStatus::NeedsReview {
        ReviewStatus::NeedsReview
    } else {
        ReviewStatus::Ready
    };
    let has_agents_work_left = findings.iter().any(|finding| {
        finding.ownership == Ownership::Agent && finding.severity != Severity::Info && finding.group().is_some()
    });
    let done_claim_allowed = is_delivered && !has_agents_work_left;
    let codes = |is_blocking: bool| {
        let codes = findings.iter().filter(|finding| (finding.severity == Severity::Error) == is_blocking);
        once(codes.map(|finding| finding.code.clone()))
    };
    CompletionReview {
        status,
        done_claim_allowed,
        instruction: instruction(status, done_claim_allowed, is_delivered).to_owned(),
        outputs,
        overlap: group(findings, Group::Overlap),
        containment: group(findings, Group::Containment),
        reference_lineage: group(findings, Group::ReferenceLineage),
        product_fidelity,
        delivery,
        blocking_finding_codes: codes(true),
        advisory_finding_codes: codes(false),
    }
}

fn instruction(status: ReviewStatus, done_claim_allowed: bool, is_delivered: bool) -> &'static str {
    match (status, done_claim_allowed) {
        (ReviewStatus::Ready, _) => "Nothing is left to do.",
        (ReviewStatus::NeedsReview, true) => "The work may be called done; ask the user to look at what needs review.",
        (ReviewStatus::NeedsReview, false) => "Do not call the work done: resolve the findings, then validate again.",
        (ReviewStatus::Blocked, _) if !is_delivered => {
            "Do not call the work done: wait for pending outputs, and replace those that failed or are not stored."
        }
        (ReviewStatus::Blocked, _) => {
            "Do not call the work done: resolve the findings of severity error, then validate again."
        }
    }
}

fn group(findings: &[Finding], group: Group) -> GroupReview {
    let of_group = || findings.iter().filter(|finding| finding.group() == Some(group));
    let weighs = |severity| of_group().any(|finding| finding.severity == severity);
    GroupReview {
        status: match (weighs(Severity::Error), weighs(Severity::Warning)) {
            (true, _) => GroupStatus::Blocked,
            (false, true) => GroupStatus::NeedsReview,
            (false, false) => GroupStatus::Clear,
        },
        finding_codes: once(of_group().map(|finding| finding.code.clone())),
        node_handles: once(of_group().flat_map(|finding| finding.node_handles.iter().cloned())),
        connection_handles: once(of_group().flat_map(|finding| finding.connection_handles.iter().cloned())),
    }
}

/// Each item once, at its first position.
fn once<T: Clone + Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    items.filter(|item| seen.insert(item.clone())).collect()
}

#[cfg(test)]
mod tests;
