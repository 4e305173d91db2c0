//! Image and video nodes that show nothing (`docs/reference/findings.md#empty_slot`).

use domain::graph::{Node, NodeType};
use domain::review::FindingCode;

use super::{Draft, ownership, standing_severity};
use crate::apply::Touched;
use crate::graph::Graph;
use crate::review::unfilled;

/// A finding on each empty slot.
pub(super) fn empty<'a>(graph: &'a Graph, touched: &'a Touched) -> impl Iterator<Item = Draft> + 'a {
    graph.nodes().filter(|node| is_empty_slot(node)).map(|node| Draft {
        code: FindingCode::EmptySlot,
        severity: standing_severity(node.agent_owned),
        ownership: ownership(node.agent_owned),
        touched: touched.placed.contains(&node.id),
        message: format!("the {} node shows nothing: fill it, delete it, or mark it as a placeholder", node.kind),
        nodes: vec![node.id.handle()],
        connections: Vec::new(),
    })
}

/// Returns `true` if the node shows no image or video, no work is to fill it or has failed to, and nothing says that it is to be
/// empty: no mark, and no Recipe whose part it is.
pub(crate) fn is_empty_slot(node: &Node) -> bool {
    matches!(node.kind, NodeType::Image | NodeType::Video)
        && node.asset.is_none()
        && node.active_job.is_none()
        && unfilled(node).is_none()
        && !node.is_placeholder()
        && node.recipe().is_none()
}
