//! Edits whose mask was not applied (`docs/reference/findings.md#mask_not_applied`).

use domain::graph::Node;
use domain::review::{FindingCode, Severity};

use super::{Draft, ownership};
use crate::apply::Touched;
use crate::graph::Graph;

/// A finding on each node that shows what a model made of the whole image, although only a part was to change.
pub(super) fn not_applied<'a>(graph: &'a Graph, touched: &'a Touched) -> impl Iterator<Item = Draft> + 'a {
    graph.nodes().filter(|node| is_unmasked(node)).map(|node| Draft {
        code: FindingCode::MaskNotApplied,
        severity: Severity::Info,
        ownership: ownership(node.agent_owned),
        touched: touched.placed.contains(&node.id),
        message: "the mask was not applied: the model's image has another shape than the source".to_owned(),
        nodes: vec![node.id.handle()],
        connections: Vec::new(),
    })
}

fn is_unmasked(node: &Node) -> bool {
    node.asset.is_some()
        && node.provenance().is_some_and(|provenance| provenance.is_made() && provenance.mask_not_applied == Some(true))
}

#[cfg(test)]
mod tests {
    use domain::review::StoredAssets;
    use serde_json::json;

    use super::*;
    use crate::findings::find;
    use crate::fixture::{asset, graph, image, made};

    #[test]
    fn an_edit_whose_mask_was_not_applied_is_advice_until_it_shows_another_image() {
        let mut node = made(Node { asset: Some(asset("a")), ..image("a") }, "generated", json!([]));
        let codes = |node: &Node| -> Vec<(FindingCode, Severity)> {
            let found = find(&graph(vec![node.clone()], vec![]), &Touched::default(), &StoredAssets::default());
            let known = |code: &domain::known::Name<FindingCode>| match code {
                domain::known::Name::Known(code) => *code,
                domain::known::Name::Later(_) => panic!("{code:?}"),
            };
            found.findings.iter().map(|it| (known(&it.code), it.severity)).collect()
        };
        assert!(codes(&node).is_empty());
        node.server.provenance.as_mut().expect("is made").mask_not_applied = Some(true);
        assert_eq!(codes(&node), [(FindingCode::MaskNotApplied, Severity::Info)]);
        assert_eq!(FindingCode::MaskNotApplied.group(), None, "it is advice");
        node.asset = None;
        assert_eq!(codes(&node), [(FindingCode::EmptySlot, Severity::Info)]);
    }
}
