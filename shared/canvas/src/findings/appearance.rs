//! What a render shows badly: cut texts, and advice (`docs/reference/findings.md#advice`).
//!
//! The code that draws a canvas answers whether a line crosses a card, an image is cropped or a text is cut. Each node
//! and each connection is looked at once, and only as long as the list has room.

use std::ops::ControlFlow;

use domain::graph::{Connection, Named, Node};
use domain::review::{Finding, FindingCode, Severity, StoredAssets};

use super::{Draft, Found, Level, ownership, standing_severity};
use crate::apply::Touched;
use crate::graph::Graph;
use crate::svg::{Router, crops_image, cuts_text};

/// How far an Action may enlarge a side of its source without a finding.
const ENLARGED_MAX: f64 = 1.5;

/// Lists the cut texts of a level.
pub(super) fn cut_texts(graph: &Graph, touched: &Touched, level: Level, found: &mut Found) -> ControlFlow<()> {
    for node in graph.nodes() {
        let severity = standing_severity(node.agent_owned);
        if Level::new(severity, touched.placed.contains(&node.id)) == level && cuts_text(node) {
            let message = || "the node is too small for its text".to_owned();
            let code = FindingCode::TextTruncated;
            found.push(|| finding(code, severity, message(), node.agent_owned, &[node], None))?;
        }
    }
    ControlFlow::Continue(())
}

/// Lists the advice: that on what the batch placed or connected first.
pub(super) fn search(graph: &Graph, touched: &Touched, assets: &StoredAssets, found: &mut Found) -> ControlFlow<()> {
    let router = Router::new(graph.nodes());
    for is_touched in [true, false] {
        for connection in graph.connections() {
            let ends = [&connection.from, &connection.to];
            let touches =
                touched.connections.contains(&connection.id) || ends.iter().any(|id| touched.placed.contains(*id));
            if touches == is_touched
                && let Some(finding) = crossing(graph, &router, connection)
            {
                found.push(|| finding)?;
            }
        }
        for node in graph.nodes().filter(|node| touched.placed.contains(&node.id) == is_touched) {
            for (code, message) in [cropped(node, assets), upscaled(graph, node, assets)].into_iter().flatten() {
                found.push(|| finding(code, Severity::Warning, message, node.agent_owned, &[node], None))?;
            }
        }
    }
    ControlFlow::Continue(())
}

fn finding(
    code: FindingCode,
    severity: Severity,
    message: String,
    is_agent_owned: bool,
    nodes: &[&Node],
    connection: Option<&Connection>,
) -> Finding {
    let draft = Draft {
        code,
        severity,
        ownership: ownership(is_agent_owned),
        touched: false,
        message,
        nodes: nodes.iter().map(|node| node.id.handle()).collect(),
        connections: connection.iter().map(|connection| connection.id.handle()).collect(),
    };
    draft.finding()
}

/// A connection that no way around the cards was found for.
fn crossing(graph: &Graph, router: &Router<'_>, connection: &Connection) -> Option<Finding> {
    let crossed = router.crossed(connection);
    if crossed.is_empty() {
        return None;
    }
    let ends = [&connection.from, &connection.to];
    let is_agent_owned = ends.iter().filter_map(|id| graph.node(id)).any(|node| node.agent_owned);
    let what =
        if crossed.iter().all(|node| node.is_section()) { "over the title of a Section" } else { "behind other nodes" };
    let message = format!("the line of a connection passes {what}");
    Some(finding(FindingCode::LineCrossesNode, Severity::Warning, message, is_agent_owned, &crossed, Some(connection)))
}

type Advice = Option<(FindingCode, String)>;

fn cropped(node: &Node, assets: &StoredAssets) -> Advice {
    let (width, height) = assets.get(node.asset.as_ref()?)?.size;
    let message = || "the card cuts off edges of its image".to_owned();
    crops_image(node, width / height).then(|| (FindingCode::PictureCropped, message()))
}

fn upscaled(graph: &Graph, node: &Node, assets: &StoredAssets) -> Advice {
    let provenance = node.provenance()?;
    if provenance.action_id.as_deref() != Some("action:resize") {
        return None;
    }
    let (width, height) = assets.get(node.asset.as_ref()?)?.size;
    let source = match node.sources().next()?.named {
        Named::Asset(asset) => asset,
        Named::Node(id) => graph.node(&id)?.asset.clone()?,
    };
    let source = assets.get(&source)?.size;
    let (across, down) = (width / source.0, height / source.1);
    let param = |name: &str| provenance.params.as_ref()?.get(name)?.as_str();
    let enlarged = match (param("fit"), param("enlarge")) {
        // The result may be larger than the image in it.
        (Some("contain"), Some("no")) => return None,
        (Some("contain"), _) => across.min(down),
        _ => across.max(down),
    };
    let message = || format!("an Action enlarged its source {enlarged:.1} times");
    (enlarged > ENLARGED_MAX).then(|| (FindingCode::UpscaledOutput, message()))
}

#[cfg(test)]
mod tests {
    use domain::graph::Purpose;
    use domain::review::{Origin, Ownership, StoredAsset};
    use serde_json::{Value, json};

    use super::*;
    use crate::findings::find;
    use crate::fixture::{agents, asset, at, connection, graph, image, made, section, sticky, text};

    fn sized(node: Node, width: f64, height: f64) -> Node {
        Node { width, height, ..node }
    }

    fn holding(mut node: Node, content: &str) -> Node {
        node.metadata.content = Some(content.to_owned());
        node
    }

    fn showing(node: Node) -> Node {
        Node { asset: Some(asset(node.id.as_str())), ..node }
    }

    fn stored(sizes: &[(&str, (f64, f64))]) -> StoredAssets {
        sizes
            .iter()
            .map(|(name, size)| (asset(name), StoredAsset { origin: Origin::Job, size: *size, has_sources: None }))
            .collect()
    }

    /// The findings without those on places and empty slots.
    fn found(nodes: Vec<Node>, connections: Vec<Connection>, assets: &StoredAssets) -> Vec<Finding> {
        let others = [FindingCode::EmptySlot, FindingCode::FramesTouch, FindingCode::SectionsStaggered];
        let findings = find(&graph(nodes, connections), &Touched::default(), assets).findings;
        findings.into_iter().filter(|finding| others.iter().all(|code| finding.code != *code)).collect()
    }

    fn codes(nodes: Vec<Node>, assets: &StoredAssets) -> Vec<String> {
        found(nodes, vec![], assets).iter().map(|finding| finding.code.to_string()).collect()
    }

    /// A node between walls, connected to one outside of them.
    fn walled() -> (Vec<Node>, Vec<Connection>) {
        let wall = |name: &str, x, y, width, height| sized(at(image(name), x, y), width, height);
        let nodes = vec![
            sized(at(image("a"), 20.0, 20.0), 100.0, 100.0),
            wall("left", -120.0, -100.0, 130.0, 340.0),
            wall("right", 130.0, -100.0, 130.0, 340.0),
            wall("above", 12.0, -100.0, 116.0, 110.0),
            wall("below", 12.0, 130.0, 116.0, 110.0),
            agents(sized(at(image("b"), 600.0, 20.0), 100.0, 100.0)),
        ];
        (nodes, vec![connection("c", "a", "b", Purpose::Flow)])
    }

    #[test]
    fn a_line_that_finds_no_way_around_a_card_crosses_it() {
        let (nodes, connections) = walled();
        let [finding] = &found(nodes, connections, &StoredAssets::new())[..] else { panic!("one finding") };
        assert!(finding.code == FindingCode::LineCrossesNode && finding.severity == Severity::Warning);
        assert_eq!(finding.ownership, Ownership::Agent, "one end is an agent's");
        assert_eq!(
            (&finding.node_handles[..], &finding.connection_handles[..]),
            (&["node:right".to_owned()][..], &["connection:c".to_owned()][..])
        );
    }

    #[test]
    fn a_line_around_cards_or_through_sections_crosses_nothing() {
        let (mut nodes, connections) = walled();
        nodes.retain(|node| node.id.as_str() != "above");
        assert_eq!(found(nodes, connections.clone(), &StoredAssets::new()), []);
        let frames = ["left", "right", "above", "below"];
        let (mut nodes, _) = walled();
        for node in nodes.iter_mut().filter(|node| frames.contains(&node.id.as_str())) {
            *node = sized(at(section(node.id.as_str()), node.position.x, node.position.y), node.width, node.height);
            node.title = String::new();
        }
        assert_eq!(found(nodes, connections, &StoredAssets::new()), []);
    }

    #[test]
    fn a_line_that_finds_no_way_around_the_title_of_a_section_crosses_it() {
        let title = Node { title: "word ".repeat(30), ..sized(at(section("s"), 96.0, 10.0), 450.0, 3000.0) };
        let of = |font: f64| {
            let mut title = title.clone();
            title.metadata.font_size = serde_json::Number::from_f64(font);
            let mut nodes = walled().0;
            nodes.retain(|node| ["a", "b", "left", "above", "below"].contains(&node.id.as_str()));
            nodes.push(title);
            found(nodes, walled().1, &StoredAssets::new())
        };
        let crossing = |found: Vec<Finding>| {
            found.into_iter().filter(|it| it.code == FindingCode::LineCrossesNode).collect::<Vec<_>>()
        };
        assert_eq!(crossing(of(20.0)), [], "it passes below the title");
        // The title is 20 units right of the node, as high as it, and leaves no room for a bend.
        let [finding] = &crossing(of(60.0))[..] else { panic!("one finding") };
        assert_eq!(finding.node_handles, ["node:s"]);
        assert_eq!(finding.message, "the line of a connection passes over the title of a Section");
    }

    #[test]
    fn an_image_is_cropped_from_one_percent_to_where_it_is_shown_whole_instead() {
        // A title takes 28 units.
        let mut card = showing(sized(image("a"), 320.0, 268.0));
        let of = |width: f64| codes(vec![card.clone()], &stored(&[("a", (width, 240.0))]));
        for (width, expected) in [
            (320.0, false),
            (323.0, false),
            (324.0, true),
            (383.0, true),
            (385.0, false),
            (317.0, false),
            (316.0, true),
        ] {
            assert_eq!(of(width), if expected { vec!["picture_cropped"] } else { vec![] }, "{width}");
        }
        card.title = String::new();
        assert_eq!(
            codes(vec![card], &stored(&[("a", (320.0, 240.0))])),
            [""; 0],
            "a card without a title crops nothing"
        );
    }

    #[test]
    fn a_text_is_truncated_where_its_render_ends_in_an_ellipsis() {
        let line = |lines: usize| "word\n".repeat(lines);
        let of = |node: Node| codes(vec![node], &StoredAssets::new());
        // 160 units: a pad of 16 on each side, the title's 24 and lines of 21.3.
        let most_of =
            |node: &dyn Fn() -> Node| (1..40).take_while(|lines| of(holding(node(), &line(*lines))).is_empty()).count();
        let most = most_of(&|| text("t"));
        assert_eq!(most, 5);
        assert_eq!(of(holding(text("t"), &line(most + 1))), ["text_truncated"]);
        let noted = most_of(&|| sticky("s"));
        assert!(noted > most, "a note takes a smaller font");
        assert_eq!(of(holding(sticky("s"), &line(noted + 1))), ["text_truncated"]);
        let mut collapsed = holding(text("t"), &line(most + 1));
        collapsed.metadata.collapsed = Some(true);
        assert_eq!(of(collapsed), [""; 0], "is hidden on purpose");
        assert_eq!(of(sized(holding(text("t"), "word"), 27.0, 200.0)), ["text_truncated"], "no text is drawn");
        let mut titled = sized(section("s"), 400.0, 400.0);
        titled.title = "A title".into();
        assert_eq!(of(titled.clone()), [""; 0]);
        titled.title = "A title that is much too long for its frame, ".repeat(2);
        assert_eq!(of(titled), ["text_truncated"]);
    }

    #[test]
    fn a_result_that_is_enlarged_more_than_one_and_a_half_times_on_a_side_is_upscaled() {
        let sizes = |width: f64, height: f64| stored(&[("a", (100.0, 200.0)), ("b", (width, height))]);
        let resized = |params: Value| {
            let mut node = made(showing(sized(image("b"), 100.0, 200.0)), "action", json!([{"handle": "asset:me:a"}]));
            let provenance = node.server.provenance.as_mut().expect("is made");
            provenance.action_id = Some("action:resize".into());
            provenance.params = params.as_object().cloned();
            node.title = String::new();
            node
        };
        let of = |params: Value, width, height| {
            let found = found(vec![resized(params)], vec![], &sizes(width, height));
            let upscaled = found.into_iter().filter(|finding| finding.code == FindingCode::UpscaledOutput);
            upscaled.map(|finding| finding.message).collect::<Vec<_>>()
        };
        let inside = || json!({"fit": "inside", "enlarge": "yes"});
        assert_eq!(of(inside(), 150.0, 300.0), [""; 0]);
        assert_eq!(of(inside(), 151.0, 302.0), ["an Action enlarged its source 1.5 times"]);
        assert_eq!(
            of(json!({"fit": "fill", "enlarge": "yes"}), 250.0, 200.0),
            ["an Action enlarged its source 2.5 times"]
        );
        assert_eq!(of(json!({"fit": "contain", "enlarge": "yes"}), 1000.0, 300.0), [""; 0], "the rest is background");
        assert_eq!(of(json!({"fit": "contain", "enlarge": "yes"}), 1000.0, 400.0).len(), 1);
        assert_eq!(of(json!({"fit": "contain", "enlarge": "no"}), 1000.0, 400.0), [""; 0]);
        let mut composite = resized(json!({}));
        composite.server.provenance.as_mut().expect("is made").action_id = Some("action:side-by-side-composite".into());
        assert_eq!(codes(vec![composite], &sizes(250.0, 500.0)), [""; 0], "only resize scales");
        let gone = stored(&[("b", (1000.0, 2000.0))]);
        assert!(!codes(vec![resized(inside())], &gone).contains(&"upscaled_output".to_owned()));
    }

    #[test]
    fn what_the_batch_touched_comes_first_and_the_users_texts_follow_all_warnings() {
        let cut = |name: &str, y: f64| holding(at(text(name), 0.0, y), &"word\n".repeat(9));
        let nodes =
            vec![cut("a", 0.0), cut("b", 500.0), agents(at(image("c"), 900.0, 0.0)), at(image("d"), 900.0, 0.0)];
        let touched = Touched { placed: [crate::fixture::id("b")].into(), ..Touched::default() };
        let found = find(&graph(nodes, vec![]), &touched, &StoredAssets::new()).findings;
        let found = found.iter().filter(|finding| finding.code != FindingCode::EmptySlot);
        let seen: Vec<_> =
            found.map(|finding| format!("{} {} {}", finding.severity, finding.code, finding.node_handles[0])).collect();
        let expected = ["warning agent_overlap node:c", "info text_truncated node:b", "info text_truncated node:a"];
        assert_eq!(seen, expected);
    }
}
