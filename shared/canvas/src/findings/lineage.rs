//! The existence of the sources of references: the findings of the group `referenceLineage`
//! (`docs/reference/findings.md#groups`).

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::graph::{Named, Node, NodeType, Purpose};
use domain::id::ConnectionId;
use domain::review::{FindingCode, Severity, StoredAssets};

use super::{Draft, Touched, ownership};
use crate::graph::Graph;

/// References and frames whose source is an image node that shows nothing.
pub(super) fn empty_sources(graph: &Graph, touched: &Touched, drafts: &mut Vec<Draft>) {
    for connection in graph.connections() {
        if connection.purpose != Purpose::Reference && !connection.purpose.is_frame() {
            continue;
        }
        let (Some(from), Some(to)) = (graph.node(&connection.from), graph.node(&connection.to)) else { continue };
        if from.kind != NodeType::Image || from.asset.is_some() {
            continue;
        }
        drafts.push(Draft {
            code: FindingCode::ReferenceSourceEmpty,
            severity: if to.agent_owned { Severity::Warning } else { Severity::Info },
            ownership: ownership(to.agent_owned),
            touched: touched.connections.contains(&connection.id),
            message: format!("a {} comes from an image node that shows nothing", connection.purpose),
            nodes: vec![from.id.handle(), to.id.handle()],
            connections: vec![connection.id.handle()],
        });
    }
}

/// Outputs that were made from an asset that is no longer stored; one finding for each output. Where the assets are not recorded, the
/// provenance says from what: a node or an asset that no longer exists.
pub(super) fn missing_sources(graph: &Graph, assets: &StoredAssets, touched: &Touched, drafts: &mut Vec<Draft>) {
    for node in graph.nodes().filter(|node| node.is_made()) {
        let gone = |named: &Named| match named {
            Named::Node(id) => graph.node(id).is_none(),
            Named::Asset(asset) => !assets.contains_key(asset),
        };
        let recorded = || assets.get(node.asset.as_ref()?)?.has_sources;
        let mut sources = node.sources().peekable();
        if sources.peek().is_none() || recorded().unwrap_or_else(|| !sources.any(|source| gone(&source.named))) {
            continue;
        }
        drafts.push(Draft {
            code: FindingCode::ReferenceSourceMissing,
            severity: if node.agent_owned { Severity::Warning } else { Severity::Info },
            ownership: ownership(node.agent_owned),
            touched: touched.placed.contains(&node.id),
            message: "the output was made from a node or an asset that no longer exists".to_owned(),
            nodes: vec![node.id.handle()],
            connections: Vec::new(),
        });
    }
}

/// Cycles of references and flows that the batch's connections close: one finding for each strongly connected
/// component.
pub(super) fn cycles(graph: &Graph, touched: &Touched, drafts: &mut Vec<Draft>) {
    let closing = ends_of(graph, &touched.connections);
    if closing.is_empty() {
        return;
    }
    let component_of = components(graph, closing.iter().map(|(_, to)| *to));
    let closed: HashSet<usize> = closing
        .iter()
        .filter_map(|(from, to)| component_of.get(from).filter(|component| component_of.get(to) == Some(component)))
        .copied()
        .collect();
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (slot, component) in component_of.iter().filter(|(_, component)| closed.contains(component)) {
        members.entry(*component).or_default().push(*slot);
    }
    let mut circles: Vec<Vec<usize>> = members.into_values().collect();
    circles.iter_mut().for_each(|circle| circle.sort_unstable());
    circles.sort_unstable();
    for circle in circles {
        let inside: HashSet<usize> = circle.iter().copied().collect();
        let nodes: Vec<&Node> = circle.iter().filter_map(|slot| graph.nodes.get(*slot)).collect();
        let is_agent_owned = nodes.iter().any(|node| node.agent_owned);
        let within = circle.iter().flat_map(|slot| graph.outgoing_at(*slot)).filter(|connection| {
            counts(connection.purpose) && graph.nodes.find(&connection.to).is_some_and(|to| inside.contains(&to))
        });
        drafts.push(Draft {
            code: FindingCode::ReferenceCycle,
            severity: if is_agent_owned { Severity::Error } else { Severity::Info },
            ownership: ownership(is_agent_owned),
            touched: true,
            message: format!("{} nodes depend on each other in a cycle", nodes.len()),
            nodes: nodes.iter().map(|node| node.id.handle()).collect(),
            connections: within.map(|connection| connection.id.handle()).collect(),
        });
    }
}

/// Returns `true` if a connection of this purpose makes one node depend on another.
fn counts(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::Reference | Purpose::Flow)
}

/// The slots that the dependencies among `connections` connect.
fn ends_of(graph: &Graph, connections: &HashSet<ConnectionId>) -> Vec<(usize, usize)> {
    let ends = connections.iter().filter_map(|id| graph.connection(id)).filter(|connection| counts(connection.purpose));
    ends.filter_map(|connection| graph.ends_of(connection)).map(|ends| (ends.from, ends.to)).collect()
}

/// The strongly connected components of everything reachable from `roots`: the number of the component by node slot.
/// Tarjan's algorithm with an explicit stack, because a path can be as long as the canvas has nodes.
fn components(graph: &Graph, roots: impl Iterator<Item = usize>) -> HashMap<usize, usize> {
    let mut tarjan = Tarjan { graph, seen: HashMap::new(), open: Vec::new(), component_of: HashMap::new(), count: 0 };
    for root in roots {
        if !tarjan.seen.contains_key(&root) {
            tarjan.visit(root);
        }
    }
    tarjan.component_of
}

struct Tarjan<'a> {
    graph: &'a Graph,
    /// By slot: the order in which it was visited, and the earliest open slot that it leads to.
    seen: HashMap<usize, (usize, usize)>,
    /// Visited slots that are not yet in a component.
    open: Vec<usize>,
    component_of: HashMap<usize, usize>,
    count: usize,
}

impl Tarjan<'_> {
    fn visit(&mut self, root: usize) {
        let mut path = vec![self.enter(root)];
        while let Some((slot, next)) = path.last_mut() {
            let slot = *slot;
            match next.pop() {
                Some(to) if !self.seen.contains_key(&to) => {
                    let entered = self.enter(to);
                    path.push(entered);
                }
                Some(to) if !self.component_of.contains_key(&to) => self.leads_to(slot, self.seen[&to].0),
                Some(_) => {}
                None => {
                    path.pop();
                    let (order, earliest) = self.seen[&slot];
                    if let Some((before, _)) = path.last() {
                        self.leads_to(*before, earliest);
                    }
                    if order == earliest {
                        self.close(slot);
                    }
                }
            }
        }
    }

    /// Opens a node and pushes what it leads to.
    fn enter(&mut self, slot: usize) -> (usize, Vec<usize>) {
        let order = self.seen.len();
        self.seen.insert(slot, (order, order));
        self.open.push(slot);
        let next = self.graph.outgoing_at(slot).filter(|connection| counts(connection.purpose));
        (slot, next.filter_map(|connection| self.graph.nodes.find(&connection.to)).collect())
    }

    fn leads_to(&mut self, slot: usize, order: usize) {
        if let Some((_, earliest)) = self.seen.get_mut(&slot) {
            *earliest = (*earliest).min(order);
        }
    }

    /// Makes a component of `first` and everything that was opened after it.
    fn close(&mut self, first: usize) {
        while let Some(slot) = self.open.pop() {
            self.component_of.insert(slot, self.count);
            if slot == first {
                break;
            }
        }
        self.count += 1;
    }
}
