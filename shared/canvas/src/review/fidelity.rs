//! Product fidelity: a conservative signal that outputs show the product that they were made from. Rules:
//! `docs/reference/findings.md#product-fidelity`.
//!
//! A generated image with a reference in a product role needs review. An image that Actions alone made of an
//! uploaded or imported image which this canvas uses in a product role contains the product's own pixels. An image
//! that Actions made of any other image inherits the state of its source.

use std::collections::{HashMap, HashSet};

use domain::graph::{Named, Node, Purpose, Role};
use domain::id::AssetHandle;
use domain::metadata::ProvenanceKind;
use domain::review::{FidelityReason, FidelityStatus, Origin, ProductFidelity, StoredAssets};

use super::outputs::is_output;
use crate::graph::Graph;

/// Relation of an image to a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tie {
    /// No relation.
    None,
    /// It contains the product's own pixels.
    Pixels,
    /// It was generated from the product.
    Generated,
    /// The relation is unknown.
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
    // Without a product, no image can fail to show it.
    if products.is_empty() && !graph.nodes().flat_map(Node::sources).any(|source| is_product(source.role)) {
        return fidelity;
    }
    let mut ties = Ties { graph, assets, products, producers: producers(graph), known: HashMap::new() };
    for (slot, node) in graph.nodes.entries() {
        if !is_output(node) || node.asset.is_none() || !node.is_made() {
            continue;
        }
        let handle = node.id.handle();
        let reason = match ties.tie_of(slot) {
            Tie::None => continue,
            Tie::Pixels => {
                fidelity.reviewed_output_count += 1;
                "made by Actions alone from an image of the product"
            }
            Tie::Generated => {
                fidelity.needs_review_output_handles.push(handle.clone());
                "generated with references to the product: compare it with them"
            }
            Tie::Unknown => {
                fidelity.needs_review_output_handles.push(handle.clone());
                fidelity.evidence_missing_output_handles.push(handle.clone());
                "the sources of this image are unknown"
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

/// The assets that a reference or a generation on the canvas uses in a product role.
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

/// Slot of the output that made each asset.
fn producers(graph: &Graph) -> HashMap<AssetHandle, usize> {
    let made = graph.nodes.entries().filter(|(_, node)| node.is_made());
    made.filter_map(|(slot, node)| Some((node.asset.clone()?, slot))).collect()
}

struct Ties<'a> {
    graph: &'a Graph,
    assets: &'a StoredAssets,
    products: HashSet<AssetHandle>,
    producers: HashMap<AssetHandle, usize>,
    /// By slot; `None` while it is being computed.
    known: HashMap<usize, Option<Tie>>,
}

/// Origin of an image.
enum ImageOrigin {
    /// The output in this slot.
    Output(usize),
    /// No output made it.
    Itself(Tie),
}

impl Ties<'_> {
    /// The tie of the output in `slot`. Its sources are resolved first, with an explicit stack, because a chain of
    /// Actions can be as long as the canvas has nodes. A chain that forms a cycle, through nodes that were filled
    /// again, is unknown.
    fn tie_of(&mut self, slot: usize) -> Tie {
        let mut path = vec![slot];
        while let Some(slot) = path.last().copied() {
            let sources = self.sources_of(slot);
            let unknown = sources.iter().find_map(|source| match source {
                ImageOrigin::Output(producer) if !self.known.contains_key(producer) => Some(*producer),
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

    /// The sources of the image in `slot`; empty for a generation, which does not depend on them.
    fn sources_of(&self, slot: usize) -> Vec<ImageOrigin> {
        let Some(node) = self.graph.nodes.get(slot).filter(|node| is_action(node)) else { return Vec::new() };
        node.sources()
            .map(|source| match source.named {
                Named::Asset(asset) => self.maker_of(&asset),
                Named::Node(id) => {
                    match self.graph.nodes.find(&id).and_then(|slot| Some((slot, self.graph.nodes.get(slot)?))) {
                        Some((slot, node)) if node.is_made() => ImageOrigin::Output(slot),
                        Some((_, node)) => {
                            node.asset.as_ref().map_or(ImageOrigin::Itself(Tie::Unknown), |asset| self.maker_of(asset))
                        }
                        None => ImageOrigin::Itself(Tie::Unknown),
                    }
                }
            })
            .collect()
    }

    fn maker_of(&self, asset: &AssetHandle) -> ImageOrigin {
        match (self.assets.get(asset).map(|stored| stored.origin), self.producers.get(asset)) {
            (_, Some(slot)) => ImageOrigin::Output(*slot),
            (Some(Origin::Brought), None) if self.products.contains(asset) => ImageOrigin::Itself(Tie::Pixels),
            (Some(Origin::Brought), None) => ImageOrigin::Itself(Tie::None),
            (Some(Origin::Job) | None, None) => ImageOrigin::Itself(Tie::Unknown),
        }
    }

    /// The tie of an image whose sources are resolved: the most doubtful of theirs.
    fn tie(&self, slot: usize, sources: &[ImageOrigin]) -> Tie {
        let Some(node) = self.graph.nodes.get(slot) else { return Tie::Unknown };
        if !is_action(node) {
            let after_product = node.sources().any(|source| is_product(source.role));
            return if after_product { Tie::Generated } else { Tie::None };
        }
        let ties = || {
            sources.iter().map(|source| match source {
                ImageOrigin::Output(slot) => self.known.get(slot).copied().flatten().unwrap_or(Tie::Unknown),
                ImageOrigin::Itself(tie) => *tie,
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
    node.provenance().is_some_and(|provenance| provenance.kind == ProvenanceKind::Action)
}
