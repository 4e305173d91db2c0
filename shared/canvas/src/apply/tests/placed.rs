//! Nodes whose place or size the service chooses.

use std::collections::HashMap;

use domain::graph::Node;
use domain::limits::NODE_SIDE_MAX;

use super::*;
use crate::fixture::{agents, at};
use crate::graph::Sources;
use crate::placement::Frame;

/// Applies operations as they are, without positions for new nodes.
fn placed(graph: &mut Graph, list: Value) -> Applied {
    let batch = Batch::new(serde_json::from_value(list).expect("operations")).expect("a batch");
    apply(graph, &batch, AGENT).expect("applied")
}

fn new(name: &str, kind: &str) -> Value {
    json!({"type": "node.create", "clientId": name, "node": {"type": kind}})
}

fn into(section: &str, mut operation: Value) -> Value {
    operation["sectionId"] = section.into();
    operation
}

fn connect(from: &str, to: &str) -> Value {
    json!({"type": "connection.create", "fromNodeId": from, "toNodeId": to})
}

fn many(count: usize) -> Vec<Value> {
    (0..count).map(|at| new(&format!("n{at}"), "sticky")).collect()
}

/// The corners of what a batch made, by name.
fn corners(graph: &Graph, applied: &Applied, names: &[&str]) -> Vec<(f64, f64)> {
    let node = |name: &&str| graph.node(&id(&applied.resolved_ids[*name])).expect("the node").position;
    names.iter().map(node).map(|position| (position.x, position.y)).collect()
}

fn size(graph: &Graph, node: &str) -> (f64, f64) {
    let node = graph.node(&id(node)).expect("the node");
    (node.width, node.height)
}

fn with_text(node: Node, content: &str) -> Node {
    Node { metadata: written(json!({"content": content})), ..node }
}

#[test]
fn up_to_four_nodes_of_a_batch_are_a_row_and_more_a_grid() {
    let mut graph = graph(vec![at(image("a"), 0.0, 0.0)], vec![]);
    let applied = placed(&mut graph, many(4).into());
    let names = ["n0", "n1", "n2", "n3", "n4", "n5"];
    assert_eq!(corners(&graph, &applied, &names[..4]), [(360.0, 0.0), (640.0, 0.0), (920.0, 0.0), (1200.0, 0.0)]);
    let applied = placed(&mut graph, many(6).into());
    let expected = [(1480.0, 0.0), (1760.0, 0.0), (2040.0, 0.0), (1480.0, 280.0), (1760.0, 280.0), (2040.0, 280.0)];
    assert_eq!(corners(&graph, &applied, &names), expected);
}

#[test]
fn nodes_of_a_batch_that_are_connected_are_a_flow() {
    let mut graph = graph(vec![], vec![]);
    let operations =
        json!([new("a", "text"), new("b", "image"), new("c", "text"), connect("a", "b"), connect("c", "b")]);
    let applied = placed(&mut graph, operations);
    assert_eq!(corners(&graph, &applied, &["a", "c", "b"]), [(0.0, 0.0), (0.0, 200.0), (440.0, 20.0)]);
}

#[test]
fn what_says_where_it_is_belongs_to_no_block() {
    let mut graph = graph(vec![at(image("a"), 0.0, 0.0)], vec![]);
    let mut near = new("near", "image");
    near["near"] = "a".into();
    let mut fixed = new("fixed", "image");
    fixed["node"]["position"] = json!({"x": 720, "y": 0});
    let applied = placed(&mut graph, json!([new("one", "image"), near, fixed, new("two", "image")]));
    // The second cell of the row is taken meanwhile.
    let corners = corners(&graph, &applied, &["one", "near", "fixed", "two"]);
    assert_eq!(corners, [(360.0, 0.0), (0.0, 360.0), (720.0, 0.0), (1080.0, 0.0)]);
}

#[test]
fn each_section_has_a_block_of_its_own_and_is_made_large_enough() {
    let mut graph = graph(vec![], vec![]);
    let section = |name: &str| json!({"type": "section.create", "clientId": name, "title": name});
    let operations = json!([
        section("s"),
        section("t"),
        into("s", new("a", "image")),
        into("t", new("c", "sticky")),
        into("s", new("b", "image")),
        into("t", new("d", "sticky")),
    ]);
    let applied = placed(&mut graph, operations);
    assert_eq!(corners(&graph, &applied, &["s", "a", "b"]), [(0.0, 0.0), (40.0, 96.0), (400.0, 96.0)]);
    assert_eq!(size(&graph, &applied.resolved_ids["s"]), (760.0, 480.0));
    assert_eq!(corners(&graph, &applied, &["t", "c", "d"]), [(800.0, 0.0), (840.0, 96.0), (1120.0, 96.0)]);
    assert_eq!(size(&graph, &applied.resolved_ids["t"]), (640.0, 480.0));
}

#[test]
fn two_hundred_nodes_in_a_small_section_are_one_block() {
    let mut graph = graph(vec![agents(at(section("s"), 0.0, 0.0)), at(image("beside"), 280.0, 0.0)], vec![]);
    let operations = (0..200).map(|at| into("s", new(&format!("n{at}"), "sticky"))).collect();
    placed(&mut graph, operations);
    let whole = Frame::from_node(graph.node(&id("s")).expect("the Section"));
    let members: Vec<Frame> = graph.members(&id("s")).map(Frame::from_node).collect();
    assert!(members.len() == 200 && members.iter().all(|member| whole.contains(*member)));
    let mut lefts: Vec<f64> = members.iter().map(|member| member.left).collect();
    lefts.sort_by(f64::total_cmp);
    lefts.dedup();
    assert_eq!(lefts.len(), 18, "nearest to 3:2");
}

#[test]
fn an_agents_section_without_room_moves_with_its_members_and_a_users_stays() {
    let around = [
        at(text("right"), 280.0, 0.0),
        at(text("below"), 0.0, 280.0),
        at(text("left"), -360.0, 0.0),
        at(text("above"), 0.0, -200.0),
    ];
    for is_agents in [true, false] {
        let section = at(section("s"), 0.0, 0.0);
        let section = if is_agents { agents(section) } else { section };
        let mut graph =
            graph([vec![section, member(at(image("m"), 40.0, 96.0), "s")], around.to_vec()].concat(), vec![]);
        let applied = placed(&mut graph, json!([into("s", new("a", "image"))]));
        let [s, m, a] = ["s", "m", &applied.resolved_ids["a"]]
            .map(|node| Frame::from_node(graph.node(&id(node)).expect("is there")));
        assert_eq!(s.contains(a), is_agents);
        assert_eq!((m.left - s.left, m.top - s.top), (40.0, 96.0), "members keep their places");
        assert_eq!((s.left, s.top) != (0.0, 0.0), is_agents);
    }
}

#[test]
fn a_new_text_is_as_high_as_it_needs_within_bounds() {
    let create = |kind: &str, words: usize, more: Value| {
        let mut operation = new("n", kind);
        operation["node"]["metadata"] = json!({"content": "A word or two. ".repeat(words)});
        operation["node"].as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let mut graph = graph(vec![], vec![]);
        let applied = placed(&mut graph, json!([operation]));
        graph.node(&id(&applied.resolved_ids["n"])).expect("the node").clone()
    };
    let height = |kind: &str, words: usize| create(kind, words, json!({})).height;
    assert_eq!((height("text", 1), height("sticky", 1)), (160.0, 240.0), "the default at least");
    assert!((161.0..800.0).contains(&height("text", 30)) && (241.0..480.0).contains(&height("sticky", 40)));
    assert!(
        !crate::svg::cuts_text(&create("text", 30, json!({})))
            && !crate::svg::cuts_text(&create("sticky", 40, json!({})))
    );
    assert_eq!((height("text", 400), height("sticky", 400)), (800.0, 480.0));
    assert_eq!(create("text", 30, json!({"height": 50})).height, 50.0);
}

#[test]
fn a_text_is_fitted_to_all_of_its_text() {
    let fit = |node: &str| json!([{"type": "node.fit", "nodeId": node}]);
    let nodes = vec![
        with_text(at(text("t"), 0.0, 0.0), &"A word or two. ".repeat(40)),
        at(image("below"), 0.0, 200.0),
        with_text(Node { height: 900.0, ..at(text("high"), 1000.0, 0.0) }, "A word"),
    ];
    let mut graph = graph(nodes, vec![]);
    run(&mut graph, fit("t")).expect("applied");
    let fitted = graph.node(&id("t")).expect("is there").clone();
    assert!(fitted.height > 160.0 && !crate::svg::cuts_text(&fitted));
    assert!(crate::svg::cuts_text(&Node { height: fitted.height - 2.0, ..fitted.clone() }), "no higher than it needs");
    assert!(
        !Frame::from_node(&fitted)
            .widened(39.9)
            .overlaps(Frame::from_node(graph.node(&id("below")).expect("is there")))
    );
    assert_eq!(run(&mut graph, fit("t")).expect("applied").changes.changed_node_ids, []);
    run(&mut graph, fit("high")).expect("applied");
    assert!(size(&graph, "high").1 < 100.0 && !crate::svg::cuts_text(graph.node(&id("high")).expect("is there")));
}

#[test]
fn a_text_that_would_be_more_than_four_times_as_high_as_wide_gets_a_smaller_font() {
    let words = "A word or two. ".repeat(60);
    let mut graph = graph(vec![with_text(Node { width: 120.0, ..text("t") }, &words)], vec![]);
    let fit = json!([{"type": "node.fit", "nodeId": "t"}]);
    run(&mut graph, fit.clone()).expect("applied");
    let fitted = graph.node(&id("t")).expect("is there").clone();
    let font = fitted.metadata.font_size.as_ref().and_then(|size| size.as_f64()).expect("a font size");
    assert!((8.0..15.0).contains(&font) && fitted.height <= 480.0);
    assert_eq!(run(&mut graph, fit).expect("applied").changes.changed_node_ids, []);
    let narrow = with_text(Node { width: 20.0, ..text("t") }, &"word ".repeat(4800));
    let mut graph = crate::fixture::graph(vec![narrow], vec![]);
    run(&mut graph, json!([{"type": "node.fit", "nodeId": "t"}])).expect("applied");
    assert_eq!(size(&graph, "t"), (20.0, 80.0));
    assert_eq!(graph.node(&id("t")).expect("is there").metadata.font_size, Some(8.into()));
}

#[test]
fn only_a_text_with_words_is_fitted() {
    let collapsed = Node { metadata: written(json!({"content": "A word", "collapsed": true})), ..text("collapsed") };
    let nodes = vec![image("i"), section("s"), text("empty"), with_text(text("blank"), "  "), collapsed];
    let mut graph = graph(nodes, vec![]);
    for node in ["i", "s", "empty", "blank", "gone"] {
        let fit = json!([{"type": "node.fit", "nodeId": node}]);
        assert_eq!(unprocessable(&mut graph, fit), ["operations[0].nodeId"], "{node}");
    }
    run(&mut graph, json!([{"type": "node.fit", "nodeId": "collapsed"}])).expect("as if it were not");
}

#[test]
fn a_fitted_section_is_as_wide_as_its_title_up_to_1200() {
    let fitted = |title: &str| {
        let section = Node { title: title.to_owned(), ..section("s") };
        let mut graph = graph(vec![section, member(at(image("a"), 40.0, 96.0), "s")], vec![]);
        run(&mut graph, json!([{"type": "section.fit", "nodeId": "s"}])).expect("applied");
        graph.node(&id("s")).expect("is there").clone()
    };
    assert_eq!(fitted("Short").width, 400.0);
    let long = fitted("A title that is longer than its members");
    assert!(long.width > 400.0 && long.width < 1200.0 && !crate::svg::cuts_text(&long));
    assert_eq!(fitted(&"A very long title ".repeat(8)).width, 1200.0);
}

#[test]
fn masonry_sizes_images_and_keeps_the_heights_of_texts() {
    let shown = |name: &str| Node { asset: Some(asset(name)), ..at(image(name), 0.0, 0.0) };
    let nodes = vec![shown("a"), shown("b"), shown("c"), at(text("t"), 0.0, 0.0), at(section("s"), 5000.0, 0.0)];
    let mut graph = graph(nodes, vec![]);
    graph.sources = Sources {
        sizes: HashMap::from([
            (asset("a"), (800.0, 400.0)),
            (asset("b"), (400.0, 800.0)),
            (asset("c"), (600.0, 600.0)),
        ]),
        ..Sources::default()
    };
    let arrange =
        |nodes: &[&str]| json!([{"type": "layout.arrange", "layout": "masonry", "nodeIds": nodes, "columns": 2}]);
    run(&mut graph, arrange(&["a", "b", "c", "t"])).expect("applied");
    assert_eq!(size(&graph, "t").1, 160.0);
    let bottoms = ["c", "t", "b"].map(|node| Frame::from_node(graph.node(&id(node)).expect("is there")).bottom);
    assert!((bottoms[0].max(bottoms[1]) - bottoms[2]).abs() <= 1.0, "{bottoms:?}");
    assert_eq!(run(&mut graph, arrange(&["a", "b", "c", "t"])).expect("applied").changes.changed_node_ids, []);
    assert_eq!(unprocessable(&mut graph, arrange(&["a", "s"])), ["operations[0].nodeIds[1]"]);
    let before = size(&graph, "a");
    run(&mut graph, json!([{"type": "layout.arrange", "layout": "masonry", "nodeIds": ["a"]}])).expect("applied");
    assert_eq!(size(&graph, "a"), before, "one is as it was");
}

#[test]
fn an_arrangement_stays_with_sixteen_units_to_everything_else() {
    let arranged = |distance: f64| {
        let nodes = vec![at(image("a"), 0.0, 0.0), at(image("other"), 320.0 + distance, 0.0)];
        let mut graph = graph(nodes, vec![]);
        run(&mut graph, json!([{"type": "layout.arrange", "layout": "row", "nodeIds": ["a"]}])).expect("applied");
        graph.node(&id("a")).expect("is there").position.x
    };
    assert_eq!([16.0, 17.0].map(arranged), [0.0, 0.0]);
    assert_ne!(arranged(15.9), 0.0);
}

#[test]
fn an_arrangement_whose_section_would_be_too_large_is_refused() {
    let wide = |name: &str, width: f64| member(Node { width, ..at(image(name), 40.0, 96.0) }, "s");
    let row = json!([{"type": "layout.arrange", "layout": "row", "sectionId": "s"}]);
    let nodes = |width: f64| vec![section("s"), wide("a", 60_000.0), wide("b", width)];
    let mut graph = graph(nodes(NODE_SIDE_MAX - 60_120.0), vec![]);
    run(&mut graph, row.clone()).expect("at the limit");
    let mut graph = crate::fixture::graph(nodes(NODE_SIDE_MAX - 60_119.0), vec![]);
    assert_eq!(unprocessable(&mut graph, row), ["operations[0].sectionId"]);
}
