//! The review of the work on a canvas: may it be called done. Rules: `docs/reference/findings.md#review-status`.

mod fidelity;
mod outputs;

use domain::graph::{Connection, Node};
use domain::known::Name;
use domain::review::{
    CompletionReview, DeliveryClearance, DestructiveImpact, DetachedOutput, FidelityStatus, Finding, FindingCode,
    Group, GroupReview, GroupStatus, OwingWork, Proposal, ReviewStatus, Severity, StoredAssets, Validation,
    ValidationStatus,
};

pub(crate) use outputs::unfilled;

use crate::apply::{Applied, Touched};
use crate::batch::Batch;
use crate::findings::{self, Found};
use crate::graph::Graph;

/// Codes that an instruction names.
const CODES_NAMED: usize = 3;

/// The findings on a graph and their summary. `touched` is what the preceding batch touched, or empty; `assets` are the
/// stored ones among those that its nodes [name](Node::named_assets), `works` the caller's work that owes outputs of the canvas. A
/// dry run and a write make the same call with equal graphs.
pub fn validate(graph: &Graph, touched: &Touched, assets: &StoredAssets, works: &[OwingWork]) -> Validation {
    let Found { findings, truncated } = findings::find(graph, touched, assets);
    let completion_review = conclude(graph, &findings, assets, &[], works);
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
    conclude(graph, &found.findings, assets, detached, &[])
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
    works: &[OwingWork],
) -> CompletionReview {
    let (outputs, delivery) = outputs::assess(graph, assets, detached, works);
    let has_given_up = works.iter().any(|work| work.given_up > 0);
    let product_fidelity = fidelity::judge(graph, assets);
    let weighs = |severity| findings.iter().any(|finding| finding.severity == severity);
    let is_delivered = delivery.status == DeliveryClearance::Clear;
    let status = if weighs(Severity::Error) || !is_delivered {
        ReviewStatus::Blocked
    } else if weighs(Severity::Warning) || has_given_up || product_fidelity.status == FidelityStatus::NeedsReview {
        ReviewStatus::NeedsReview
    } else {
        ReviewStatus::Ready
    };
    let held = tally(findings.iter().filter(|finding| finding.holds_claim).map(|finding| &finding.code));
    let done_claim_allowed = is_delivered && held.is_empty();
    let codes = |is_blocking: bool| {
        let codes = findings.iter().filter(|finding| (finding.severity == Severity::Error) == is_blocking);
        once(codes.map(|finding| finding.code.clone()))
    };
    CompletionReview {
        status,
        done_claim_allowed,
        instruction: instruction(status, is_delivered, has_given_up, &held),
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

/// Each code with the number of its findings, in the order of the first of each.
fn tally<'a>(codes: impl Iterator<Item = &'a Name<FindingCode>>) -> Vec<(&'a Name<FindingCode>, usize)> {
    let mut counts: Vec<(&Name<FindingCode>, usize)> = Vec::new();
    for code in codes {
        match counts.iter_mut().find(|(other, _)| *other == code) {
            Some((_, count)) => *count += 1,
            None => counts.push((code, 1)),
        }
    }
    counts
}

/// What to do next. `held` are the findings that hold the claim.
fn instruction(
    status: ReviewStatus,
    is_delivered: bool,
    has_given_up: bool,
    held: &[(&Name<FindingCode>, usize)],
) -> String {
    let named: Vec<String> = held.iter().take(CODES_NAMED).map(|(code, count)| format!("{code} ({count})")).collect();
    let more = if held.len() > CODES_NAMED { " and others" } else { "" };
    match status {
        ReviewStatus::Ready => "Nothing is left to do.".to_owned(),
        ReviewStatus::NeedsReview if held.is_empty() && has_given_up => {
            "The work may be called done; tell the user which outputs were given up (delivery.reasons).".to_owned()
        }
        ReviewStatus::NeedsReview if held.is_empty() => {
            "The work may be called done; ask the user to look at what needs review.".to_owned()
        }
        ReviewStatus::NeedsReview => {
            format!("Do not call the work done: resolve {}{more}, then validate again.", named.join(", "))
        }
        ReviewStatus::Blocked if !is_delivered => {
            "Do not call the work done: wait for pending outputs; start those that failed or are missing again, with retryOf, or give \
             them up by a cancel with removeTargets; fill or delete nodes that show nothing stored."
                .to_owned()
        }
        ReviewStatus::Blocked => {
            "Do not call the work done: resolve the findings of severity error, then validate again.".to_owned()
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
