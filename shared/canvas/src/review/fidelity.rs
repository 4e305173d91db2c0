//! Whether pictures show the product that they were made from: a conservative signal (decisions 5.4, 18.17).
//!
//! A generated picture with a reference in a product role needs a look. A picture made by Actions alone out of what
//! somebody brought, where that is used in a product role on this canvas, shows the product's own pixels. What Actions
//! made of anything needs what that needed.

use std::collections::{HashMap, HashSet};

use domain::graph::{Named, Node, Purpose, Role};
use domain::id::AssetHandle;
use domain::review::{FidelityReason, FidelityStatus, Origin, ProductFidelity, StoredAssets};
use serde_json::Value;

use super::outputs::is_output;
use crate::findings::is_made;
use crate::graph::Graph;

/// What a picture is to a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tie {
    /// Nothing.
    None,
    /// It shows the product's own pixels.
    Pixels,
    /// It was generated after the product.
    Generated,
    /// It cannot be told.
    Unknown,
}

/// Judges the outputs of a canvas.
pub(super) fn judge(graph: &Graph, assets: &StoredAssets) -> ProductFidelity {
    let mut fidelity = ProductFidelity {
        status: FidelityStatus::NotApplicable,
        reviewed_output_count: 0,
        needs_review_output_handles: Vec::new(),
        evidence_missing_output_handles: Vec::new(),
        reasons: Vec::new(),
    };
    let products = products(graph);
    // Where nothing is a product, no picture can fail to show it, whatever it was made from.
    if products.is_empty() && !graph.nodes().flat_map(Node::sources).any(|source| is_product(source.role)) {
        return fidelity;
    }
    let mut ties = Ties { graph, assets, products, makers: makers(graph), known: HashMap::new() };
    for (slot, node) in graph.nodes.entries() {
        if !is_output(node) || node.asset.is_none() || !is_made(node) {
            continue;
        }
        let handle = node.id.handle();
        let reason = match ties.of(slot) {
            Tie::None => continue,
            Tie::Pixels => {
                fidelity.reviewed_output_count += 1;
                "made by Actions alone from a picture of the product"
            }
            Tie::Generated => {
                fidelity.needs_review_output_handles.push(handle.clone());
                "generated with references to the product: compare it with them"
            }
            Tie::Unknown => {
                fidelity.needs_review_output_handles.push(handle.clone());
                fidelity.evidence_missing_output_handles.push(handle.clone());
                "it cannot be told from what it was made"
            }
        };
        fidelity.reasons.push(FidelityReason { node_handle: handle, reason: reason.to_owned() });
    }
    fidelity.status = if !fidelity.needs_review_output_handles.is_empty() {
        FidelityStatus::NeedsReview
    } else if fidelity.reviewed_output_count > 0 {
        FidelityStatus::Passed
    } else {
        FidelityStatus::NotApplicable
    };
    fidelity
}

/// The assets that some reference, or some generation, of the canvas uses in a product role.
fn products(graph: &Graph) -> HashSet<AssetHandle> {
    let references = graph
        .connections()
        .filter(|connection| connection.purpose == Purpose::Reference && is_product(connection.role))
        .filter_map(|connection| graph.node(&connection.from)?.asset.clone());
    let sources = graph.nodes().flat_map(Node::sources).filter(|source| is_product(source.role));
    let generations = sources.filter_map(|source| match source.named {
        Named::Asset(asset) => Some(asset),
        Named::Node(node) => graph.node(&node)?.asset.clone(),
    });
    references.chain(generations).collect()
}

/// From an asset to the slot of the output that was made as it.
fn makers(graph: &Graph) -> HashMap<AssetHandle, usize> {
    let made = graph.nodes.entries().filter(|(_, node)| is_made(node));
    made.filter_map(|(slot, node)| Some((node.asset.clone()?, slot))).collect()
}

struct Ties<'a> {
    graph: &'a Graph,
    assets: &'a StoredAssets,
    products: HashSet<AssetHandle>,
    makers: HashMap<AssetHandle, usize>,
    /// By slot; `None` while it is being found out.
    known: HashMap<usize, Option<Tie>>,
}

/// Where a picture comes from.
enum Maker {
    /// The output in this slot.
    Output(usize),
    /// Nowhere else.
    Itself(Tie),
}

impl Ties<'_> {
    /// The tie of the output in `slot`. Its sources are found out first, with a stack of its own, because a chain of Actions
    /// may be as long as the canvas has nodes; one that closes a circle, through nodes that were filled again, is unknown.
    fn of(&mut self, slot: usize) -> Tie {
        let mut path = vec![slot];
        while let Some(slot) = path.last().copied() {
            let sources = self.sources_of(slot);
            let unknown = sources.iter().find_map(|source| match source {
                Maker::Output(maker) if !self.known.contains_key(maker) => Some(*maker),
                _ => None,
            });
            self.known.entry(slot).or_insert(None);
            match unknown {
                Some(source) => path.push(source),
                None => {
                    let tie = self.tie(slot, &sources);
                    self.known.insert(slot, Some(tie));
                    path.pop();
                }
            }
        }
        self.known.get(&slot).copied().flatten().unwrap_or(Tie::Unknown)
    }

    /// What the picture in `slot` was made from; of a generation nothing is asked.
    fn sources_of(&self, slot: usize) -> Vec<Maker> {
        let Some(node) = self.graph.nodes.get(slot).filter(|node| is_action(node)) else { return Vec::new() };
        node.sources()
            .map(|source| match source.named {
                Named::Asset(asset) => self.maker_of(&asset),
                Named::Node(id) => {
                    match self.graph.nodes.find(&id).and_then(|slot| Some((slot, self.graph.nodes.get(slot)?))) {
                        Some((slot, node)) if is_made(node) => Maker::Output(slot),
                        Some((_, node)) => {
                            node.asset.as_ref().map_or(Maker::Itself(Tie::Unknown), |asset| self.maker_of(asset))
                        }
                        None => Maker::Itself(Tie::Unknown),
                    }
                }
            })
            .collect()
    }

    fn maker_of(&self, asset: &AssetHandle) -> Maker {
        match (self.assets.get(asset), self.makers.get(asset)) {
            (_, Some(slot)) => Maker::Output(*slot),
            (Some(Origin::Brought), None) if self.products.contains(asset) => Maker::Itself(Tie::Pixels),
            (Some(Origin::Brought), None) => Maker::Itself(Tie::None),
            (Some(Origin::Made) | None, None) => Maker::Itself(Tie::Unknown),
        }
    }

    /// The tie of a picture whose sources are known: the most doubtful of theirs.
    fn tie(&self, slot: usize, sources: &[Maker]) -> Tie {
        let Some(node) = self.graph.nodes.get(slot) else { return Tie::Unknown };
        if !is_action(node) {
            let after_product = node.sources().any(|source| is_product(source.role));
            return if after_product { Tie::Generated } else { Tie::None };
        }
        let ties = || {
            sources.iter().map(|source| match source {
                Maker::Output(slot) => self.known.get(slot).copied().flatten().unwrap_or(Tie::Unknown),
                Maker::Itself(tie) => *tie,
            })
        };
        [Tie::Generated, Tie::Unknown, Tie::Pixels]
            .into_iter()
            .find(|tie| ties().any(|other| other == *tie))
            .unwrap_or(Tie::None)
    }
}

fn is_product(role: Option<Role>) -> bool {
    role.is_some_and(Role::is_product)
}

fn is_action(node: &Node) -> bool {
    let provenance = node.server.get("provenance");
    provenance.and_then(|provenance| provenance.get("kind")).and_then(Value::as_str) == Some("action")
}
