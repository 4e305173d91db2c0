//! Layout operations, and sizes that follow an image.

use std::collections::HashMap;

use domain::id::AssetRef;
use domain::limits::{BATCH_MOVES_MAX, COORDINATE_MAX, NODE_SIDE_MAX};

use super::*;
use crate::fixture::at;
use crate::graph::{AssetImage, Sources};
use crate::placement::Frame;

fn sized(node: Node, width: f64, height: f64) -> Node {
    Node { width, height, ..node }
}

/// Left, top, width and height of a node.
fn frame(graph: &Graph, node: &str) -> [f64; 4] {
    let node = graph.node(&id(node)).expect("the node");
    [node.position.x, node.position.y, node.width, node.height]
}

fn corner(graph: &Graph, node: &str) -> [f64; 2] {
    let [x, y, ..] = frame(graph, node);
    [x, y]
}

fn arrange(nodes: &[&str], layout: &str) -> Value {
    json!({"type": "layout.arrange", "nodeIds": nodes, "layout": layout})
}

fn with(mut operation: Value, more: Value) -> Value {
    let more = more.as_object().expect("an object").clone();
    operation.as_object_mut().expect("an object").extend(more);
    operation
}

fn members(layout: &str) -> Value {
    json!({"type": "layout.arrange", "sectionId": "s", "layout": layout})
}

/// Three nodes apart from each other, and a fourth further down.
fn scattered() -> Graph {
    let nodes = vec![
        at(image("a"), 100.0, 50.0),
        at(text("b"), 900.0, 700.0),
        at(video("c"), -200.0, 900.0),
        at(text("d"), 0.0, 3000.0),
    ];
    graph(nodes, vec![])
}

#[test]
fn equally_good_places_are_chosen_in_the_same_order_when_an_arrangement_is_repeated() {
    // The frame of the Section and its member outside is a sum of fractions, which differs by a rounding error once they have moved.
    let mut graph = graph(
        vec![
            sized(at(section("s"), 0.0, 0.0), 1.0, 1.0),
            sized(at(text("n"), -547.984_086_735_961_9, 0.0), 1.0, 460.044_672_593_805_6),
            sized(
                at(member(text("m"), "s"), 496.550_757_241_624_35, -656.113_503_586_236_6),
                141.813_361_847_328_25,
                1.0,
            ),
            sized(at(text("a"), 0.0, 0.0), 1.0, 1.0),
        ],
        vec![],
    );
    let operation = with(arrange(&["s", "a"], "grid"), json!({"near": "n", "gap": 12.3}));
    run(&mut graph, json!([operation])).expect("applied");
    let again = run(&mut graph, json!([operation])).expect("applied");
    assert_eq!(ids(&again.changes.changed_node_ids), [""; 0]);
}

#[test]
fn nodes_are_arranged_in_their_order_where_they_are() {
    let mut graph = scattered();
    let applied = run(&mut graph, json!([arrange(&["b", "node:a", "c"], "row")])).expect("applied");
    let corners = ["b", "a", "c"].map(|node| corner(&graph, node));
    assert_eq!(corners, [[-200.0, 50.0], [160.0, 50.0], [520.0, 50.0]]);
    assert_eq!(ids(&applied.changes.changed_node_ids), ["b", "a", "c"]);
    assert_eq!(corner(&graph, "d"), [0.0, 3000.0]);
    run(&mut graph, json!([with(arrange(&["a", "b", "c"], "column"), json!({"gap": 0, "x": 5000, "y": 1}))]))
        .expect("applied");
    let corners = ["a", "b", "c"].map(|node| corner(&graph, node));
    assert_eq!(corners, [[5000.0, 1.0], [5000.0, 321.0], [5000.0, 481.0]]);
    let grid = with(arrange(&["a", "b", "c"], "grid"), json!({"columns": 2, "near": "d"}));
    run(&mut graph, json!([grid])).expect("applied");
    let corners = ["a", "b", "c"].map(|node| corner(&graph, node));
    assert_eq!(corners, [[360.0, 3000.0], [880.0, 3000.0], [360.0, 3360.0]]);
}

#[test]
fn an_occupied_place_leads_to_the_nearest_free_one() {
    let mut graph = scattered();
    let row = with(arrange(&["a", "b"], "row"), json!({"x": -100, "y": 2900}));
    run(&mut graph, json!([row])).expect("applied");
    // 680 by 320 above or below the text at (0, 3000), at a distance of 40.
    assert_eq!(corner(&graph, "a"), [-100.0, 2640.0]);
    // A place that touches nothing is taken as it is, however near others are.
    let row = with(arrange(&["a", "b"], "row"), json!({"x": 321, "y": 3000}));
    run(&mut graph, json!([row])).expect("applied");
    assert_eq!(corner(&graph, "a"), [321.0, 3000.0]);
}

#[test]
fn a_section_takes_its_members_with_it() {
    let nodes = vec![
        sized(at(section("s"), 0.0, 0.0), 500.0, 500.0),
        member(at(image("a"), 40.0, 96.0), "s"),
        member(at(text("out"), 450.0, 600.0), "s"),
        at(text("b"), 0.0, 2000.0),
    ];
    let mut graph = graph(nodes, vec![]);
    run(&mut graph, json!([arrange(&["b", "s"], "row")])).expect("applied");
    assert_eq!(
        ["b", "s", "a", "out"].map(|node| corner(&graph, node)),
        [[0.0, 0.0], [360.0, 0.0], [400.0, 96.0], [810.0, 600.0]]
    );
    let row = json!([arrange(&["s", "b", "a"], "row")]);
    assert_eq!(unprocessable(&mut graph, row), ["operations[0].nodeIds[2]"]);
}

#[test]
fn the_members_of_a_section_are_arranged_in_reading_order_and_it_grows() {
    let nodes = vec![
        sized(at(section("s"), 0.0, 0.0), 500.0, 500.0),
        member(at(image("third"), 50.0, 500.0), "s"),
        member(at(image("second"), 400.0, 110.0), "s"),
        member(at(image("first"), 30.0, 120.0), "s"),
        at(text("beside"), 3000.0, 0.0),
    ];
    let mut graph = graph(nodes, vec![]);
    let row = json!([members("row")]);
    let applied = run(&mut graph, row.clone()).expect("applied");
    let corners = ["first", "second", "third"].map(|node| corner(&graph, node));
    assert_eq!(corners, [[40.0, 96.0], [400.0, 96.0], [760.0, 96.0]]);
    assert_eq!(frame(&graph, "s"), [0.0, 0.0, 1120.0, 500.0]);
    assert_eq!(ids(&applied.changes.changed_node_ids), ["s", "first", "second", "third"]);
    assert_eq!(run(&mut graph, row).expect("applied").changes.changed_node_ids, []);
    // Elsewhere: the Section moves with them.
    let column = json!([with(members("column"), json!({"near": "beside", "gap": 10}))]);
    run(&mut graph, column).expect("applied");
    assert_eq!(frame(&graph, "s"), [3360.0, 0.0, 1120.0, 1116.0]);
    assert_eq!(corner(&graph, "third"), [3400.0, 756.0]);
}

#[test]
fn a_section_never_grows_over_another_node() {
    let nodes = vec![
        sized(at(section("s"), 0.0, 0.0), 400.0, 456.0),
        member(at(image("a"), 40.0, 96.0), "s"),
        member(at(image("b"), 40.0, 96.0), "s"),
        at(text("beside"), 500.0, 0.0),
        at(text("below"), 0.0, 600.0),
    ];
    let around = vec![at(text("before"), -360.0, 0.0), at(text("above"), 0.0, -200.0)];
    let mut enclosed = crate::fixture::graph([nodes.clone(), around].concat(), vec![]);
    let there = with(arrange(&["a", "b"], "column"), json!({"x": 40, "y": 96}));
    assert_eq!(unprocessable(&mut enclosed, json!([there])), ["operations[0].nodeIds"]);
    for operation in [members("row"), arrange(&["a", "b"], "column")] {
        let mut moved = enclosed.clone();
        run(&mut moved, json!([operation])).expect("applied");
        let places: Vec<Frame> =
            moved.nodes().filter(|node| node.section_id().is_none()).map(Frame::from_node).collect();
        assert_ne!(frame(&moved, "s")[..2], [0.0, 0.0], "it moves");
        assert!(places[1..].iter().all(|place| !place.widened(39.9).overlaps(places[0])), "{places:?}");
        assert!(
            ["a", "b"]
                .iter()
                .all(|node| places[0].contains(Frame::from_node(moved.node(&id(node)).expect("is there"))))
        );
        assert_eq!(run(&mut moved, json!([operation])).expect("applied").changes.changed_node_ids, []);
    }
    let mut open = crate::fixture::graph(nodes.clone(), vec![]);
    run(&mut open, json!([members("row")])).expect("applied");
    assert_eq!(frame(&open, "s"), [-360.0, 0.0, 760.0, 456.0], "to the left");
    let mut graph = graph(nodes, vec![]);
    let away = with(members("row"), json!({"x": 0, "y": 0}));
    run(&mut graph, json!([away])).expect("applied");
    assert_eq!(frame(&graph, "s"), [-300.0, 0.0, 760.0, 456.0], "the nearest free place for the Section");
}

#[test]
fn nodes_of_a_section_stay_in_it_unless_they_are_sent_elsewhere() {
    let nodes = vec![
        sized(at(section("s"), 0.0, 0.0), 1200.0, 900.0),
        member(at(image("a"), 500.0, 300.0), "s"),
        member(at(image("b"), 600.0, 400.0), "s"),
        member(at(image("c"), 40.0, 96.0), "s"),
    ];
    let mut graph = graph(nodes, vec![]);
    run(&mut graph, json!([arrange(&["a", "b"], "row")])).expect("applied");
    assert_eq!(["a", "b"].map(|node| corner(&graph, node)), [[480.0, 300.0], [840.0, 300.0]], "moved inside");
    let at_c = with(arrange(&["a", "b"], "row"), json!({"x": 40, "y": 96}));
    run(&mut graph, json!([at_c])).expect("applied");
    assert_eq!(corner(&graph, "a"), [400.0, 96.0], "beside the one that is there");
    let outside = with(arrange(&["a", "b"], "row"), json!({"x": 2000, "y": 0}));
    run(&mut graph, json!([outside])).expect("applied");
    assert_eq!(corner(&graph, "a"), [2000.0, 0.0]);
    assert_eq!(frame(&graph, "s"), [0.0, 0.0, 1200.0, 900.0]);
}

#[test]
fn what_cannot_be_arranged_is_refused_by_name() {
    let mut graph = scattered();
    for (operation, field) in [
        (arrange(&["a", "gone"], "row"), "nodeIds[1]"),
        (with(arrange(&["a", "b"], "row"), json!({"near": "b"})), "near"),
        (with(arrange(&["a", "b"], "row"), json!({"near": "gone"})), "near"),
        (with(members("row"), json!({"sectionId": "a"})), "sectionId"),
    ] {
        assert_eq!(unprocessable(&mut graph, json!([operation])), [format!("operations[0].{field}")]);
    }
    // A `clientId` and a handle may be the same word, and a `clientId` is one node.
    let named = json!([create("a", "text"), arrange(&["a", "node:a"], "row")]);
    run(&mut graph, named).expect("applied");
    let beyond = sized(image("w"), 1.0, 1.0);
    let mut graph = crate::fixture::graph(vec![at(beyond, COORDINATE_MAX, 0.0), image("v")], vec![]);
    run(&mut graph, json!([arrange(&["w", "v"], "row")])).expect("applied");
    run(&mut graph, json!([with(arrange(&["w", "v"], "row"), json!({"x": 1e7, "y": 1e7}))])).expect("applied");
    assert_eq!(["w", "v"].map(|node| corner(&graph, node)), [[COORDINATE_MAX - 41.0, 1e7], [COORDINATE_MAX, 1e7]]);
}

#[test]
fn a_section_is_fitted_to_its_members() {
    let titled = |size: f64| Node { metadata: written(json!({"section": true, "fontSize": size})), ..section("s") };
    for (section, padding, expected) in [
        (section("s"), json!({}), [-40.0, -96.0, 760.0, 836.0]),
        (section("s"), json!({"padding": 0}), [0.0, -96.0, 680.0, 796.0]),
        (section("s"), json!({"padding": 100}), [-100.0, -100.0, 880.0, 900.0]),
        (titled(200.0), json!({}), [-40.0, -289.0, 760.0, 1029.0]),
    ] {
        let nodes = vec![section, member(at(image("a"), 0.0, 0.0), "s"), member(at(text("b"), 360.0, 540.0), "s")];
        let mut graph = graph(nodes, vec![]);
        let fit = with(json!({"type": "section.fit", "nodeId": "s"}), padding);
        let applied = run(&mut graph, json!([fit])).expect("applied");
        assert_eq!(frame(&graph, "s"), expected);
        assert_eq!(ids(&applied.changes.changed_node_ids), ["s"]);
        assert_eq!(run(&mut graph, json!([fit])).expect("applied").changes.changed_node_ids, []);
    }
    let far = member(at(sized(image("far"), 1.0, 1.0), NODE_SIDE_MAX - 81.0, 0.0), "s");
    let fit = json!([{"type": "section.fit", "nodeId": "s"}]);
    let mut graph =
        crate::fixture::graph(vec![section("s"), text("n"), member(at(text("a"), 0.0, 0.0), "s"), far], vec![]);
    run(&mut graph, fit.clone()).expect("as wide as a node may be");
    assert_eq!(frame(&graph, "s")[2], NODE_SIDE_MAX);
    let wider = json!([{"type": "node.move", "nodeId": "far", "position": {"x": NODE_SIDE_MAX - 80.0, "y": 0}}]);
    run(&mut graph, wider).expect("applied");
    assert_eq!(unprocessable(&mut graph, fit.clone()), ["operations[0].nodeId"]);
    let not_a_section = json!([{"type": "section.fit", "nodeId": "n"}]);
    assert_eq!(unprocessable(&mut graph, not_a_section), ["operations[0].nodeId"]);
    assert_eq!(
        unprocessable(&mut crate::fixture::graph(vec![section("s")], vec![]), fit),
        ["operations[0].nodeId"],
        "empty"
    );
}

#[test]
fn a_section_is_created_around_nodes_which_become_its_members() {
    let nodes =
        vec![at(image("a"), 0.0, 0.0), member(at(text("b"), 400.0, 400.0), "old"), at(section("old"), 9000.0, 0.0)];
    let mut graph = graph(nodes, vec![]);
    let create = json!({"type": "section.create", "clientId": "new", "title": "Spring", "nodeIds": ["a", "b"]});
    let applied = run(&mut graph, json!([create])).expect("applied");
    let made = applied.resolved_ids["new"].clone();
    assert_eq!(frame(&graph, &made), [-40.0, -96.0, 800.0, 696.0]);
    assert_eq!(ids(&applied.changes.changed_node_ids), [made.as_str(), "a", "b"]);
    let new = graph.node(&id(&made)).expect("the Section");
    assert!(new.is_section() && new.agent_owned && new.title == "Spring");
    assert_eq!(graph.members(&new.id).map(|node| node.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((corner(&graph, "a"), graph.members(&id("old")).count()), ([0.0, 0.0], 0));
    assert_eq!(applied.touched.rehomed, [id("a"), id("b")].into());
    let around_section = json!([{"type": "section.create", "title": "", "nodeIds": ["a", "old"]}]);
    assert_eq!(unprocessable(&mut graph, around_section), ["operations[0].nodeIds[1]"]);
}

#[test]
fn a_new_section_takes_its_nodes_to_a_free_place_rather_than_cover_another_node() {
    let nodes = vec![
        at(image("a"), 0.0, 0.0),
        at(image("b"), 720.0, 0.0),
        at(sized(text("between"), 100.0, 100.0), 500.0, 0.0),
    ];
    let mut graph = graph(nodes, vec![]);
    run(&mut graph, json!([{"type": "section.create", "title": "S", "nodeIds": ["a", "b"]}])).expect("applied");
    assert_eq!(["a", "b"].map(|node| corner(&graph, node)), [[0.0, 236.0], [720.0, 236.0]]);
    let placed =
        json!([{"type": "section.create", "clientId": "s", "title": "S", "nodeIds": ["between"], "x": 5000, "y": 0}]);
    let applied = run(&mut graph, placed).expect("applied");
    assert_eq!(frame(&graph, &applied.resolved_ids["s"]), [5000.0, 0.0, 180.0, 236.0]);
    assert_eq!(corner(&graph, "between"), [5040.0, 96.0]);
}

#[test]
fn what_does_not_fit_where_it_is_goes_on_in_reading_order_rather_than_back() {
    let nodes = vec![at(sized(text("a"), 100.0, 100.0), 0.0, 0.0), at(sized(text("below"), 100.0, 50.0), 0.0, 110.0)];
    let mut graph = graph(nodes, vec![]);
    run(&mut graph, json!([{"type": "section.create", "title": "S", "nodeIds": ["a"]}])).expect("applied");
    assert_eq!(corner(&graph, "a"), [180.0, 0.0], "the nearest place is above");
}

#[test]
fn a_section_that_the_batch_makes_fits_what_is_arranged_in_it_unless_the_batch_sizes_it() {
    let note = |name: &str| {
        json!({"type": "node.create", "clientId": name, "sectionId": "s",
            "node": {"type": "text", "width": 100, "height": 100}})
    };
    let make = |resize: Value, arrange: Value| {
        let mut graph = graph(vec![], vec![]);
        let mut operations = vec![json!({"type": "section.create", "clientId": "s", "title": "S"})];
        operations.extend(["a", "b", "c"].map(note));
        if resize.is_object() {
            operations.push(json!({"type": "node.update", "nodeId": "s", "patch": resize}));
        }
        operations.push(with(json!({"type": "layout.arrange", "layout": "column"}), arrange));
        let batch = Batch::new(serde_json::from_value(operations.into()).expect("operations")).expect("a batch");
        let made = apply(&mut graph, &batch, AGENT).expect("applied").resolved_ids;
        frame(&graph, &made["s"])
    };
    let whole = || json!({"sectionId": "s"});
    assert_eq!(make(Value::Null, whole()), [0.0, 0.0, 180.0, 516.0]);
    assert_eq!(make(Value::Null, json!({"nodeIds": ["c", "b", "a"]})), [0.0, 0.0, 180.0, 516.0]);
    assert_eq!(make(Value::Null, json!({"sectionId": "s", "x": 900, "y": 0})), [900.0, 0.0, 180.0, 516.0]);
    assert_eq!(make(json!({"width": 900}), whole()), [0.0, 0.0, 900.0, 516.0]);
    let mut graph = graph(vec![section("s"), member(at(sized(text("a"), 100.0, 100.0), 40.0, 96.0), "s")], vec![]);
    let before = frame(&graph, "s");
    run(&mut graph, json!([{"type": "layout.arrange", "sectionId": "s", "layout": "row"}])).expect("applied");
    assert_eq!(frame(&graph, "s"), before, "one that was there keeps its size");
}

#[test]
fn a_section_without_nodes_has_the_default_size_and_a_free_place() {
    let mut graph = graph(vec![at(image("a"), 0.0, 0.0)], vec![]);
    let create = |more: Value| with(json!({"type": "section.create", "title": "S"}), more);
    let operations = json!([
        with(create(json!({})), json!({"clientId": "right"})),
        with(create(json!({"near": "a"})), json!({"clientId": "near"})),
        with(create(json!({"x": 10, "y": 10})), json!({"clientId": "at"})),
    ]);
    let made = run(&mut graph, operations).expect("applied").resolved_ids;
    assert_eq!(frame(&graph, &made["right"]), [360.0, 0.0, 640.0, 480.0]);
    assert_eq!(frame(&graph, &made["near"]), [-680.0, 0.0, 640.0, 480.0]);
    assert_eq!(frame(&graph, &made["at"]), [10.0, 520.0, 640.0, 480.0]);
    let long = "x".repeat(METADATA_BYTES_MAX - 20);
    let full = Node { metadata: written(json!({"custom": {"a": long}})), ..text("full") };
    let mut graph = crate::fixture::graph(vec![full], vec![]);
    assert_eq!(invalid(&mut graph, json!([create(json!({"nodeIds": ["full"]}))])), ["operations[0].nodeIds[0]"]);
}

#[test]
fn a_section_moves_with_its_members() {
    let nodes = vec![at(section("s"), 0.0, 0.0), member(at(text("a"), 40.5, 96.0), "s"), at(text("b"), 40.0, 96.0)];
    let mut graph = graph(nodes, vec![]);
    let to =
        |x: f64| json!([{"type": "node.move", "nodeId": "s", "position": {"x": x, "y": -10}, "withMembers": true}]);
    let applied = run(&mut graph, to(100.0)).expect("applied");
    assert_eq!(["s", "a", "b"].map(|node| corner(&graph, node)), [[100.0, -10.0], [140.5, 86.0], [40.0, 96.0]]);
    assert_eq!(ids(&applied.changes.changed_node_ids), ["s", "a"]);
    run(&mut graph, to(COORDINATE_MAX - 40.5)).expect("to the edge");
    assert_eq!(unprocessable(&mut graph, to(COORDINATE_MAX - 40.0)), ["operations[0].position"]);
    let no_section = json!([{"type": "node.move", "nodeId": "b", "position": {"x": 0, "y": 0}, "withMembers": true}]);
    assert_eq!(unprocessable(&mut graph, no_section), ["operations[0].withMembers"]);
}

#[test]
fn the_operations_of_a_batch_move_as_many_nodes_as_a_canvas_holds() {
    let mut nodes = vec![section("s")];
    nodes.extend((1..BATCH_MOVES_MAX / 2).map(|at| member(sized(text(&format!("n{at}")), 1.0, 1.0), "s")));
    nodes.push(at(text("one"), 900_000.0, 0.0));
    let mut graph = graph(nodes, vec![]);
    let to = |x: f64| json!({"type": "node.move", "nodeId": "s", "position": {"x": x, "y": 0}, "withMembers": true});
    let one = arrange(&["one"], "row");
    run(&mut graph, json!([to(1.0), to(2.0)])).expect("at the limit");
    assert_eq!(unprocessable(&mut graph, json!([to(3.0), one, to(4.0)])), ["operations[2].nodeId"]);
    assert_eq!(unprocessable(&mut graph, json!([to(3.0), to(4.0), one])), ["operations[2].nodeIds"]);
    assert_eq!(unprocessable(&mut graph, json!([one, to(3.0), members("grid")])), ["operations[2].sectionId"]);
}

fn showing() -> Graph {
    let mut graph = graph(vec![Node { asset: Some(asset("x")), ..image("n") }, image("empty")], vec![]);
    let wide = AssetImage { asset: asset("y"), shown_by: NodeType::Image, size: Some((1600.0, 900.0)), at: moment() };
    graph.sources = Sources {
        sizes: HashMap::from([(asset("x"), (1000.0, 500.0)), (asset("y"), (1600.0, 900.0))]),
        assets: HashMap::from([(AssetRef::parse("asset:y").expect("a handle"), wide)]),
        ..Sources::default()
    };
    graph
}

#[test]
fn the_height_of_an_image_follows_its_width() {
    let mut graph = showing();
    let made = json!({"type": "node.create", "clientId": "c",
        "node": {"type": "image", "asset": "asset:y", "width": 640, "position": {"x": 900, "y": 900}}});
    let copy = json!({"type": "node.duplicate", "clientId": "copy", "nodeId": "n", "position": {"x": 0, "y": 5000}});
    let operations = json!([
        update("n", json!({"width": 600})),
        update("empty", json!({"width": 600})),
        made,
        copy,
        update("copy", json!({"width": 100, "title": ""})),
    ]);
    let made = run(&mut graph, operations).expect("applied").resolved_ids;
    let size = |graph: &Graph, node: &str| frame(graph, node)[2..].to_vec();
    assert_eq!(size(&graph, "n"), [600.0, 328.0]);
    assert_eq!(size(&graph, "empty"), [600.0, 320.0], "nothing to follow");
    assert_eq!(size(&graph, &made["c"]), [640.0, 388.0]);
    assert_eq!(size(&graph, &made["copy"]), [100.0, 50.0]);
    let again = json!([
        update(&made["c"], json!({"width": 320})),
        update("n", json!({"width": 10, "height": 20})),
        update("empty", json!({"height": 7}))
    ]);
    run(&mut graph, again).expect("applied");
    assert_eq!([&made["c"], "n", "empty"].map(|node| size(&graph, node)), [[320.0, 208.0], [10.0, 20.0], [600.0, 7.0]]);
}

#[test]
fn a_height_beyond_the_largest_is_refused() {
    let mut graph = showing();
    graph.sources.sizes.insert(asset("x"), (1.0, 2.0));
    run(&mut graph, json!([update("n", json!({"width": 49_986}))])).expect("applied");
    assert_eq!(frame(&graph, "n")[3], NODE_SIDE_MAX);
    assert_eq!(
        unprocessable(&mut graph, json!([update("n", json!({"width": 49_987}))])),
        ["operations[0].patch.width"]
    );
    let high = AssetImage { asset: asset("y"), shown_by: NodeType::Image, size: Some((1.0, 2.0)), at: moment() };
    graph.sources.assets.insert(AssetRef::parse("asset:y").expect("a handle"), high);
    let create =
        |width: u32| json!([{"type": "node.create", "node": {"type": "image", "asset": "asset:y", "width": width}}]);
    run(&mut graph, create(49_986)).expect("applied");
    assert_eq!(unprocessable(&mut graph, create(49_987)), ["operations[0].node.width"]);
}
