//! Outputs of the embedded runtime (`docs/reference/findings.md#stand_in_output`).

use domain::graph::{Node, NodeType};
use domain::review::{FindingCode, Severity};

use super::{Draft, ownership};
use crate::graph::Graph;

/// One finding on all nodes that show a stand-in.
pub(super) fn outputs(graph: &Graph) -> Option<Draft> {
    let nodes: Vec<&Node> = graph.nodes().filter(|node| shows_stand_in(node)).collect();
    (!nodes.is_empty()).then(|| Draft {
        code: FindingCode::StandInOutput,
        severity: Severity::Warning,
        ownership: ownership(nodes.iter().any(|node| node.agent_owned)),
        touched: false,
        message: "outputs stand in for those of a model: the embedded runtime made them by fixed rules".to_owned(),
        nodes: nodes.iter().map(|node| node.id.handle()).collect(),
        connections: Vec::new(),
    })
}

/// Returns `true` if the node shows what a model of the embedded runtime made. A text that a client replaced is not an output
/// any more.
fn shows_stand_in(node: &Node) -> bool {
    let is_shown = match node.kind {
        NodeType::Text | NodeType::Sticky => node.written_content().is_some(),
        _ => node.asset.is_some(),
    };
    is_shown && node.provenance().is_some_and(|provenance| provenance.is_made() && provenance.is_stand_in())
}

#[cfg(test)]
mod tests {
    use domain::review::{Origin, StoredAsset, StoredAssets};
    use serde_json::json;

    use super::*;
    use crate::apply::Touched;
    use crate::findings::find;
    use crate::fixture::{agents, asset, at, graph, image, made, text};

    /// The node, made by this model.
    fn made_by(node: Node, kind: &str, provider: &str, model: &str) -> Node {
        let content = node.written_content().map(str::to_owned);
        let mut node = made(node, kind, json!([]));
        node.server.content = content;
        let provenance = node.server.provenance.as_mut().expect("is made");
        provenance.provider = provider.parse().ok();
        provenance.model = Some(model.to_owned());
        node
    }

    fn stored_image(name: &str) -> Node {
        Node { asset: Some(asset(name)), ..image(name) }
    }

    fn written(name: &str) -> Node {
        let mut node = text(name);
        node.server.content = Some("Headline: Kites".into());
        node
    }

    fn handles(nodes: Vec<Node>) -> Vec<String> {
        outputs(&graph(nodes, vec![])).map(|draft| draft.nodes).unwrap_or_default()
    }

    fn stored(name: &str) -> StoredAssets {
        let stored = StoredAsset { origin: Origin::Job, size: (320.0, 292.0), has_sources: None };
        [(asset(name), stored)].into()
    }

    #[test]
    fn images_and_texts_of_the_embedded_runtime_are_one_finding() {
        let nodes = vec![
            made_by(stored_image("a"), "generated", "managed", "sketch"),
            at(agents(made_by(written("b"), "recipe", "managed", "outline")), 900.0, 0.0),
        ];
        let graph = graph(nodes, vec![]);
        let found = find(&graph, &Touched::default(), &stored("a"));
        let [finding] = &found.findings[..] else { panic!("{found:?}") };
        assert!(finding.code == FindingCode::StandInOutput && finding.severity == Severity::Warning);
        assert_eq!(
            (finding.ownership, &finding.node_handles[..]),
            (ownership(true), &["node:a", "node:b"].map(str::to_owned)[..])
        );
    }

    #[test]
    fn what_a_model_a_client_or_an_action_made_is_no_stand_in() {
        for node in [
            made_by(stored_image("a"), "generated", "openai", "sketch"),
            made_by(stored_image("a"), "generated", "managed", "sdxl"),
            made(stored_image("a"), "action", json!([])),
            made(stored_image("a"), "upload", json!([])),
            stored_image("a"),
        ] {
            assert_eq!(handles(vec![node]), [""; 0]);
        }
    }

    #[test]
    fn a_marked_stand_in_stays_one_when_nobody_knows_its_model_any_more() {
        let mut node = made_by(stored_image("p"), "generated", "managed", "retired");
        assert_eq!(outputs(&graph(vec![node.clone()], vec![])).map(|draft| draft.nodes.len()), None);
        node.server.provenance.as_mut().expect("is made").stand_in = Some(true);
        assert_eq!(outputs(&graph(vec![node], vec![])).map(|draft| draft.nodes.len()), Some(1));
    }

    #[test]
    fn a_node_that_does_not_show_its_output_is_no_stand_in() {
        assert_eq!(handles(vec![made_by(image("a"), "generated", "managed", "sketch")]), [""; 0]);
        let mut replaced = made_by(written("a"), "recipe", "managed", "outline");
        assert_eq!(handles(vec![replaced.clone()]), ["node:a"]);
        assert_eq!(handles(vec![Node { kind: NodeType::Sticky, ..replaced.clone() }]), ["node:a"]);
        replaced.server.content = None;
        replaced.metadata.content = Some("mine".into());
        assert_eq!(handles(vec![replaced]), [""; 0]);
    }
}
