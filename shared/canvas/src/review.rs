//! Whether work on a canvas can be called done (decisions 5.2 to 5.4; specification, CompletionReview).

mod fidelity;
mod outputs;

use domain::graph::{Connection, Node};
use domain::job::Output;
use domain::review::{
    CompletionReview, DeliveryClearance, DestructiveImpact, FidelityStatus, Finding, Group, GroupReview, GroupStatus,
    Ownership, Proposal, ReviewStatus, Severity, StoredAssets, Validation, ValidationStatus,
};

use crate::apply::{Applied, Touched};
use crate::batch::Batch;
use crate::findings::{self, Found};
use crate::graph::Graph;

/// The findings on a graph and what they come to. `touched` is what the batch touched that led to it, or nothing;
/// `assets` are the stored ones among [`named_assets`]. A dry run and a write call this alike, with graphs that are alike.
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

/// Whether [`validate`] would block: what a write without `force` asks. It needs no assets and stops at the first error.
pub fn is_blocked(graph: &Graph, touched: &Touched) -> bool {
    findings::has_error(graph, touched)
}

/// The review that a job leaves behind, of the canvas as the job's end leaves it (decisions 5.4, 9.6). `homeless` are
/// the job's outputs whose nodes are gone: stored, and shown by nobody.
pub fn review_of_job(
    nodes: Vec<Node>,
    connections: Vec<Connection>,
    assets: &StoredAssets,
    homeless: &[Output],
) -> CompletionReview {
    let graph = Graph::new(String::new(), 0, nodes, connections);
    let found = findings::find(&graph, &Touched::default(), assets);
    conclude(&graph, &found.findings, assets, homeless)
}

/// The assets that findings and review ask about: those that nodes show and those that outputs were made from.
pub fn named_assets(graph: &Graph) -> impl Iterator<Item = domain::id::AssetHandle> {
    graph.nodes().flat_map(Node::named_assets)
}

impl Applied {
    /// What the batch would do, for a dry run.
    pub fn proposal(&self, batch: &Batch) -> Proposal {
        Proposal {
            operation_count: batch.operation_count(),
            resolved_ids: self.resolved_ids.clone(),
            changes: self.changes.clone(),
        }
    }

    /// What the batch takes away (decisions 4.5). Deleting is what makes a batch destructive.
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

fn conclude(graph: &Graph, findings: &[Finding], assets: &StoredAssets, homeless: &[Output]) -> CompletionReview {
    let (outputs, delivery) = outputs::survey(graph, assets, homeless);
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
    let has_agents_work_left =
        findings.iter().any(|finding| finding.ownership == Ownership::Agent && finding.severity != Severity::Info);
    let done_claim_allowed = is_delivered && !has_agents_work_left;
    let codes = |is_blocking: bool| {
        let codes = findings.iter().filter(|finding| (finding.severity == Severity::Error) == is_blocking);
        once(codes.map(|finding| finding.code))
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
        (ReviewStatus::NeedsReview, false) => {
            "Do not call the work done: mend what the findings name, then validate again."
        }
        (ReviewStatus::Blocked, _) if !is_delivered => {
            "Do not call the work done: wait for pending outputs, and mend or replace those that failed or are not stored."
        }
        (ReviewStatus::Blocked, _) => {
            "Do not call the work done: mend the findings of severity error, then validate again."
        }
    }
}

fn group(findings: &[Finding], group: Group) -> GroupReview {
    let of_group = || findings.iter().filter(|finding| finding.code.group() == group);
    let weighs = |severity| of_group().any(|finding| finding.severity == severity);
    GroupReview {
        status: match (weighs(Severity::Error), weighs(Severity::Warning)) {
            (true, _) => GroupStatus::Blocked,
            (false, true) => GroupStatus::NeedsReview,
            (false, false) => GroupStatus::Clear,
        },
        finding_codes: once(of_group().map(|finding| finding.code)),
        node_handles: once(of_group().flat_map(|finding| finding.node_handles.iter().cloned())),
        connection_handles: once(of_group().flat_map(|finding| finding.connection_handles.iter().cloned())),
    }
}

/// Each item at its first place.
fn once<T: Clone + Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    items.filter(|item| seen.insert(item.clone())).collect()
}

#[cfg(test)]
mod tests;
