//! Problems on a canvas. Rules: `docs/reference/findings.md`.
//!
//! **Order.** Errors, then warnings, then advice ([`appearance`]), then the rest; within each, findings on what the batch
//! touched come first. The search runs in this order and stops once [`FINDINGS_MAX`] are found, so that no omitted finding is more
//! severe than a listed one, and a review computed from the list is correct about errors and warnings.
//!
//! **Cost.** O((n + m) log n) for n nodes and m connections, whatever their layout ([`sweep`]).

mod appearance;
mod lineage;
mod masks;
mod stand_in;
mod sweep;

use std::ops::ControlFlow;

use domain::graph::Node;
use domain::id::NodeId;
use domain::limits::FINDINGS_MAX;
use domain::review::{Finding, FindingCode, Ownership, Severity, StoredAssets};

use crate::apply::Touched;
use crate::graph::Graph;
use crate::placement::Frame;
use sweep::{Field, Standing};

/// First level of the search, see [`level`].
const ERRORS: usize = 0;
/// First level after the warnings.
const ADVICE_BEFORE: usize = 3;
/// The distance by which a member may lie outside of its Section, in canvas units. More than the rounding error of a sum of two
/// coordinates, because a Section that was sized to its members or moved with them has edges that are such sums.
const ROUNDING: f64 = 1e-6;
/// Comparisons of frames that are made before the sweep is used instead, beside one for each node.
const NEAR_MIN: usize = 256;

/// Overlaps of each level of the search. Every overlap belongs to exactly one level.
const LEVELS: [fn(Standing, Standing) -> bool; 5] = [
    |a, _| a == Standing::PlacedAgent,
    |a, b| a == Standing::Agent && b == Standing::PlacedUser,
    |a, b| a == Standing::Agent && matches!(b, Standing::Agent | Standing::User),
    |a, b| a == Standing::PlacedUser && matches!(b, Standing::PlacedUser | Standing::User),
    |a, b| a == Standing::User && b == Standing::User,
];

/// Result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Found {
    pub(crate) findings: Vec<Finding>,
    /// `true` if there are more findings.
    pub(crate) truncated: bool,
}

/// A finding that may be listed.
struct Draft {
    code: FindingCode,
    severity: Severity,
    ownership: Ownership,
    touched: bool,
    message: String,
    nodes: Vec<String>,
    connections: Vec<String>,
}

/// The findings on a graph after a batch that touched `touched`, which is empty when there was no batch.
pub(crate) fn find(graph: &Graph, touched: &Touched, assets: &StoredAssets) -> Found {
    let mut drafts = Vec::new();
    lineage::cycles(graph, touched, &mut drafts);
    overflows(graph, touched, graph.nodes(), &mut drafts);
    lineage::empty_sources(graph, touched, &mut drafts);
    lineage::missing_sources(graph, assets, touched, &mut drafts);
    drafts.extend(stand_in::outputs(graph));
    drafts.extend(masks::not_applied(graph, touched));
    let fields = [false, true].map(|sections| field(graph, touched, sections));
    let mut found = Found::default();
    // A full list is not an error: the findings so far are valid.
    let _ = collect(graph, &fields, drafts, &mut found, |found| appearance::search(graph, touched, assets, found));
    found
}

/// Returns `true` if there is an error: the check of a write without `force`. Every error lies in something that the batch touched, so
/// that the cost is that of the batch, once the places of the graph are indexed.
pub(crate) fn has_error(graph: &mut Graph, touched: &Touched) -> bool {
    let mut drafts = Vec::new();
    lineage::cycles(graph, touched, &mut drafts);
    let moved = touched.placed.iter().chain(&touched.rehomed).filter_map(|id| graph.node(id));
    overflows(graph, touched, moved.chain(touched.sections.iter().flat_map(|id| graph.members(id))), &mut drafts);
    drafts.iter().any(|draft| draft.severity == Severity::Error) || has_placed_overlap(graph, touched)
}

/// Returns `true` if the batch placed a node of an agent where it overlaps another.
fn has_placed_overlap(graph: &mut Graph, touched: &Touched) -> bool {
    let slots = touched.placed.iter().filter_map(|id| graph.nodes.find(id));
    let is_agents = |slot: &usize| graph.nodes.get(*slot).is_some_and(|node| node.agent_owned);
    let placed: Vec<usize> = slots.filter(is_agents).collect();
    if placed.is_empty() {
        return false;
    }
    graph.index();
    overlaps_near(graph, &placed).unwrap_or_else(|| {
        let overlaps = |sections| field(graph, touched, sections).pairs(LEVELS[ERRORS], |_, _| ControlFlow::Break(()));
        [false, true].into_iter().any(|sections| overlaps(sections).is_break())
    })
}

/// Returns `true` if a node in one of these slots overlaps another; `None` when so many are near them that the sweep is faster.
fn overlaps_near(graph: &Graph, placed: &[usize]) -> Option<bool> {
    let mut left = graph.node_count() + NEAR_MIN;
    for slot in placed {
        let (Some(node), Some(index)) = (graph.nodes.get(*slot), &graph.index) else { continue };
        let frame = Frame::from_node(node);
        for (other, other_frame) in index.near(frame) {
            left = left.checked_sub(1)?;
            let is_alike = || graph.nodes.get(other).is_some_and(|other| other.is_section() == node.is_section());
            if other != *slot && sweep::overlap(frame, other_frame) && is_alike() {
                return Some(true);
            }
        }
    }
    Some(false)
}

fn ownership(is_agent_owned: bool) -> Ownership {
    if is_agent_owned { Ownership::Agent } else { Ownership::User }
}

/// Lists findings in their order, up to the limit. `advice` lists those that come after all warnings.
fn collect(
    graph: &Graph,
    fields: &[Field; 2],
    drafts: Vec<Draft>,
    found: &mut Found,
    advice: impl Fn(&mut Found) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut drafts: [Vec<Draft>; 5] = drafts.into_iter().fold(Default::default(), |mut levels, draft| {
        let level: &mut Vec<Draft> = &mut levels[level(draft.severity, draft.touched)];
        level.push(draft);
        levels
    });
    for (level, (wanted, drafts)) in LEVELS.into_iter().zip(&mut drafts).enumerate() {
        if level == ADVICE_BEFORE {
            advice(found)?;
        }
        for field in fields {
            field.pairs(wanted, |a, b| found.push(|| overlap_of(graph, a, b, level == ERRORS)))?;
        }
        for draft in drafts.drain(..) {
            found.push(|| draft.finding())?;
        }
    }
    ControlFlow::Continue(())
}

/// Position of a finding in the order of the search.
fn level(severity: Severity, touched: bool) -> usize {
    match (severity, touched) {
        (Severity::Error, _) => ERRORS,
        (Severity::Warning, true) => 1,
        (Severity::Warning, false) => 2,
        (Severity::Info, true) => 3,
        (Severity::Info, false) => 4,
    }
}

impl Found {
    fn push(&mut self, finding: impl FnOnce() -> Finding) -> ControlFlow<()> {
        if self.findings.len() == FINDINGS_MAX {
            self.truncated = true;
            return ControlFlow::Break(());
        }
        self.findings.push(finding());
        ControlFlow::Continue(())
    }
}

impl Draft {
    fn finding(self) -> Finding {
        Finding {
            code: self.code.into(),
            severity: self.severity,
            message: self.message,
            ownership: self.ownership,
            node_handles: self.nodes,
            connection_handles: self.connections,
        }
    }
}

/// The frames of all Sections, or of all other nodes: a node over a Section is not an overlap.
fn field(graph: &Graph, touched: &Touched, sections: bool) -> Field {
    let frames = graph.nodes.entries().filter(|(_, node)| node.is_section() == sections);
    Field::new(frames.map(|(slot, node)| {
        let standing = match (node.agent_owned, touched.placed.contains(&node.id)) {
            (true, true) => Standing::PlacedAgent,
            (true, false) => Standing::Agent,
            (false, true) => Standing::PlacedUser,
            (false, false) => Standing::User,
        };
        (slot, Frame::from_node(node), standing)
    }))
}

/// The finding of an overlapping pair; an error when the batch placed an agent's node there.
fn overlap_of(graph: &Graph, a: usize, b: usize, is_error: bool) -> Finding {
    let nodes: Vec<&Node> = [a, b].into_iter().filter_map(|slot| graph.nodes.get(slot)).collect();
    let is_agent_owned = nodes.iter().any(|node| node.agent_owned);
    let what = if nodes.iter().all(|node| node.is_section()) { "Sections" } else { "nodes" };
    Finding {
        code: if is_agent_owned { FindingCode::AgentOverlap } else { FindingCode::UserOverlap }.into(),
        severity: match (is_error, is_agent_owned) {
            (true, _) => Severity::Error,
            (false, true) => Severity::Warning,
            (false, false) => Severity::Info,
        },
        message: format!("two {what} cover the same place"),
        ownership: ownership(is_agent_owned),
        node_handles: nodes.iter().map(|node| node.id.handle()).collect(),
        connection_handles: Vec::new(),
    }
}

/// Those of the nodes that lie partly outside of their Sections.
fn overflows<'a>(graph: &Graph, touched: &Touched, nodes: impl Iterator<Item = &'a Node>, drafts: &mut Vec<Draft>) {
    for node in nodes {
        let Some(section) = node.section_id() else { continue };
        let Some(section) = graph.node(&NodeId::from_stored(section.to_owned())) else { continue };
        if Frame::from_node(section).widened(ROUNDING).contains(Frame::from_node(node)) {
            continue;
        }
        let is_touched = touched.placed.contains(&node.id)
            || touched.rehomed.contains(&node.id)
            || touched.sections.contains(&section.id);
        drafts.push(Draft {
            code: FindingCode::SectionOverflow,
            severity: match (node.agent_owned, is_touched) {
                (true, true) => Severity::Error,
                (true, false) => Severity::Warning,
                (false, _) => Severity::Info,
            },
            ownership: ownership(node.agent_owned),
            touched: is_touched,
            message: "the node lies partly outside of its Section".to_owned(),
            nodes: vec![node.id.handle(), section.id.handle()],
            connections: Vec::new(),
        });
    }
}

#[cfg(test)]
mod tests;
