//! Problems on a canvas. Rules: `docs/reference/findings.md`.
//!
//! **Order.** Errors, then warnings, then advice, then the rest; within each, findings on what the batch touched come first.
//! The search runs in this order and stops once [`FINDINGS_MAX`] are found, so that no omitted finding is more severe than a
//! listed one, none that holds a claim is omitted for advice, and a review computed from the list is correct about errors and
//! warnings.
//!
//! **Cost.** O((n + m) log n) for n nodes and m connections, whatever their layout ([`sweep`]).

mod appearance;
mod lineage;
mod masks;
mod slots;
mod stagger;
mod stand_in;
mod sweep;
mod touch;

use std::ops::ControlFlow;

use domain::graph::Node;
use domain::id::{ConnectionId, NodeId};
use domain::limits::FINDINGS_MAX;
use domain::review::{Finding, FindingCode, Ownership, Severity, StoredAssets};

use crate::apply::Touched;
use crate::graph::Graph;
use crate::placement::Frame;
pub(crate) use slots::is_empty_slot;
pub(crate) use stagger::out_of_line;
pub(crate) use sweep::share;
use sweep::{Field, OVERLAP, Standing};
pub(crate) use touch::DISTANCE as TOUCH;
use touch::Touches;

/// The distance by which a member may lie outside of its Section, in canvas units. More than the rounding error of a sum of two
/// coordinates, because a Section that was sized to its members or moved with them has edges that are such sums.
const ROUNDING: f64 = 1e-6;
/// Comparisons of frames that are made before the sweep is used instead, beside one for each node.
const NEAR_MIN: usize = 256;

/// The levels of the search, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Errors,
    TouchedWarnings,
    Warnings,
    /// Warnings that hold no claim.
    Advice,
    TouchedInfos,
    Infos,
}

impl Level {
    const ALL: [Self; 6] =
        [Self::Errors, Self::TouchedWarnings, Self::Warnings, Self::Advice, Self::TouchedInfos, Self::Infos];

    /// The level of findings that may hold a claim.
    fn new(severity: Severity, is_touched: bool) -> Self {
        match (severity, is_touched) {
            (Severity::Error, _) => Self::Errors,
            (Severity::Warning, true) => Self::TouchedWarnings,
            (Severity::Warning, false) => Self::Warnings,
            (Severity::Info, true) => Self::TouchedInfos,
            (Severity::Info, false) => Self::Infos,
        }
    }

    fn severity(self) -> Severity {
        match self {
            Self::Errors => Severity::Error,
            Self::TouchedWarnings | Self::Warnings | Self::Advice => Severity::Warning,
            Self::TouchedInfos | Self::Infos => Severity::Info,
        }
    }
}

/// The level of an overlap: an error if the batch placed an agent's node there.
fn overlap_level(a: Standing, b: Standing) -> Level {
    let is_error = [a, b].iter().any(|of| of.is_agents && of.is_placed);
    if is_error { Level::Errors } else { touch_level(a, b) }
}

/// The level of two frames that touch.
fn touch_level(a: Standing, b: Standing) -> Level {
    Level::new(standing_severity(a.is_agents || b.is_agents), a.is_placed || b.is_placed)
}

/// Severity of what is a warning on agents' nodes and never an error.
fn standing_severity(is_agents: bool) -> Severity {
    if is_agents { Severity::Warning } else { Severity::Info }
}

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
    drafts.extend(slots::empty(graph, touched));
    drafts.extend(stand_in::outputs(graph));
    drafts.extend(masks::not_applied(graph, touched));
    drafts.extend(touch::members(graph, touched));
    let fields = [false, true].map(|sections| field(graph, touched, sections));
    stagger::sections(graph, &fields[1], touched, &mut drafts);
    let search = Search { graph, touched, assets, fields: &fields, touches: Touches::new(graph, touched, &fields) };
    let mut found = Found::default();
    // A full list is not an error: the findings so far are valid.
    let _ = search.run(drafts, &mut found);
    for finding in &mut found.findings {
        add_refs(graph, finding);
    }
    found
}

/// Names what a finding is about by refs as well.
fn add_refs(graph: &Graph, finding: &mut Finding) {
    let node = |handle: &String| graph.node(&NodeId::parse(handle).ok()?)?.short;
    finding.node_refs = finding.node_handles.iter().filter_map(node).collect();
    let connection = |handle: &String| graph.connection(&ConnectionId::parse(handle).ok()?)?.short;
    finding.connection_refs = finding.connection_handles.iter().filter_map(connection).collect();
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
        let overlaps = |sections| {
            let wanted = |a, b| overlap_level(a, b) == Level::Errors;
            field(graph, touched, sections).pairs(OVERLAP, wanted, |_, _| ControlFlow::Break(()))
        };
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

struct Search<'a> {
    graph: &'a Graph,
    touched: &'a Touched,
    assets: &'a StoredAssets,
    /// The frames of nodes, and those of Sections.
    fields: &'a [Field; 2],
    touches: Touches<'a>,
}

impl Search<'_> {
    /// Lists findings in their order, up to the limit.
    fn run(&self, mut drafts: Vec<Draft>, found: &mut Found) -> ControlFlow<()> {
        let Self { graph, touched, assets, fields, touches } = self;
        for level in Level::ALL {
            for field in *fields {
                let wanted = |a, b| overlap_level(a, b) == level;
                field.pairs(OVERLAP, wanted, |a, b| found.push(|| overlap_of(graph, a, b, level.severity())))?;
            }
            touches.search(level, found)?;
            let of_level = drafts.extract_if(.., |draft| draft.level() == level);
            for draft in of_level.collect::<Vec<_>>() {
                found.push(|| draft.finding())?;
            }
            match level {
                Level::Errors => {}
                Level::Advice => appearance::search(graph, touched, assets, found)?,
                _ => appearance::cut_texts(graph, touched, level, found)?,
            }
        }
        ControlFlow::Continue(())
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
    fn level(&self) -> Level {
        let is_advice = self.severity == Severity::Warning && !self.holds_claim();
        if is_advice { Level::Advice } else { Level::new(self.severity, self.touched) }
    }

    fn holds_claim(&self) -> bool {
        self.code.holds_claim(self.severity, self.ownership)
    }

    fn finding(self) -> Finding {
        Finding {
            code: self.code.into(),
            severity: self.severity,
            holds_claim: self.holds_claim(),
            message: self.message,
            ownership: self.ownership,
            node_handles: self.nodes,
            node_refs: Vec::new(),
            connection_handles: self.connections,
            connection_refs: Vec::new(),
        }
    }
}

/// The frames of all Sections, or of all other nodes: a node over a Section is not an overlap.
fn field(graph: &Graph, touched: &Touched, sections: bool) -> Field {
    let frames = graph.nodes.entries().filter(|(_, node)| node.is_section() == sections);
    Field::new(frames.map(|(slot, node)| (slot, Frame::from_node(node), standing(node, touched))))
}

fn standing(node: &Node, touched: &Touched) -> Standing {
    Standing { is_agents: node.agent_owned, is_placed: touched.placed.contains(&node.id), is_border: false }
}

/// The finding of an overlapping pair.
fn overlap_of(graph: &Graph, a: usize, b: usize, severity: Severity) -> Finding {
    let nodes: Vec<&Node> = [a, b].into_iter().filter_map(|slot| graph.nodes.get(slot)).collect();
    let is_agent_owned = nodes.iter().any(|node| node.agent_owned);
    let what = if nodes.iter().all(|node| node.is_section()) { "Sections" } else { "nodes" };
    let draft = Draft {
        code: if is_agent_owned { FindingCode::AgentOverlap } else { FindingCode::UserOverlap },
        severity,
        ownership: ownership(is_agent_owned),
        touched: false,
        message: format!("two {what} cover the same place"),
        nodes: nodes.iter().map(|node| node.id.handle()).collect(),
        connections: Vec::new(),
    };
    draft.finding()
}

/// Those of the nodes that lie partly outside of their Sections.
fn overflows<'a>(graph: &Graph, touched: &Touched, nodes: impl Iterator<Item = &'a Node>, drafts: &mut Vec<Draft>) {
    for node in nodes {
        let Some(section) = graph.section_of(node) else { continue };
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
