//! What the placement yields for some boards, for whoever reviews a change of its rules: `golden.txt`, which
//! `UPDATE_GOLDEN=1 cargo test -p canvas-canvas golden` rewrites. It is the same on every machine.

use std::fmt::Write;
use std::path::Path;

use domain::graph::{Node, NodeType, Position, Purpose};
use domain::metadata::ServerMetadata;
use serde_json::{Value, json};

use super::{Frame, Location};
use crate::fixture::{AGENT, agents, asset, at, connection, graph, id, image, member, section, sticky, text};
use crate::graph::Sources;
use crate::targets::{self, Link, Place, Shown, Work};
use crate::{Batch, Graph, apply};

/// Units that a character of a drawing stands for, across and down.
const CHARACTER: (f64, f64) = (40.0, 80.0);

fn sized(node: Node, width: f64, height: f64) -> Node {
    Node { width, height, ..node }
}

fn board(nodes: Vec<Node>) -> Graph {
    graph(nodes, Vec::new())
}

/// The graph after these operations of an agent.
fn after(mut graph: Graph, operations: Value) -> Graph {
    let batch = Batch::new(serde_json::from_value(operations).expect("operations")).expect("a batch");
    apply(&mut graph, &batch, AGENT).expect("applied");
    graph
}

/// Operations that create nodes of this type without a position, with the titles 1, 2, 3 and so on.
fn creates(kind: &str, count: usize, more: Value) -> Vec<Value> {
    let create = |number: usize| {
        let node = json!({"type": kind, "title": number.to_string()});
        let mut operation = json!({"type": "node.create", "clientId": format!("new-{number}"), "node": node});
        operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        operation
    };
    (1..=count).map(create).collect()
}

fn connect(from: usize, to: usize) -> Value {
    json!({"type": "connection.create", "fromNodeId": format!("new-{from}"), "toNodeId": format!("new-{to}"), "purpose": "flow"})
}

/// The graph with `count` targets of work that reads these nodes, all of them for all targets or one for each.
fn targeted(mut graph: Graph, sources: &[&str], count: usize) -> Graph {
    let link = |from: &&str| vec![Link { from: id(from), purpose: Purpose::Flow, role: None }];
    let work = Work { read: sources.iter().map(link).collect(), ..Work::default() };
    let place = Place { count, ..Place::default() };
    targets::add(&mut graph, &place, &[(320.0, 320.0)], work, AGENT).expect("added");
    graph
}

/// The graph with uploads, each in its cell.
fn uploaded(mut graph: Graph, count: usize) -> Graph {
    let size = NodeType::Image.default_size();
    let cells = targets::block(&mut graph, &Place { count, ..Place::default() }, size);
    for (number, cell) in (1..).zip(cells) {
        let shown = Shown {
            id: id(&format!("upload-{number}")),
            kind: NodeType::Image,
            title: number.to_string(),
            size,
            asset: asset("x"),
            server: ServerMetadata::default(),
        };
        targets::show(&mut graph, shown, (Some(cell), Location::default()), AGENT).expect("added");
    }
    graph
}

fn boards() -> Vec<(&'static str, Graph)> {
    let scattered = |count: usize| -> Vec<Node> {
        let node = |number: usize| {
            let place = ((number * 997 % 1500) as f64 * 8.0, number as f64 * 400.0);
            at(image(&number.to_string()), place.0, place.1)
        };
        (1..=count).map(node).collect()
    };
    let arrange = |layout: &str, count: usize| {
        let nodes: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
        json!([{"type": "layout.arrange", "layout": layout, "nodeIds": nodes, "x": 0, "y": 0}])
    };
    let pictures = || {
        let sizes = [(320.0, 240.0), (320.0, 480.0), (320.0, 200.0), (320.0, 320.0), (320.0, 560.0), (320.0, 180.0)];
        let picture = |(number, (width, height)): (usize, (f64, f64))| {
            let node = Node { asset: Some(asset(&number.to_string())), ..image(&number.to_string()) };
            at(sized(node, width, height), number as f64 * 400.0, 0.0)
        };
        let mut graph = board((1..).zip(sizes).map(picture).collect());
        let sizes = (1..).zip(sizes).map(|(number, size)| (asset(&i32::to_string(&number)), size)).collect();
        graph.sources = Sources { sizes, ..Sources::default() };
        graph
    };
    let in_section = || {
        let frame = agents(sized(section("S"), 440.0, 440.0));
        board(vec![frame, agents(member(at(image("a"), 60.0, 80.0), "S")), at(text("b"), 480.0, 0.0)])
    };
    let row = || board(vec![image("a"), at(image("b"), 360.0, 0.0), at(image("c"), 720.0, 0.0)]);
    let steps = vec![connect(1, 2), connect(1, 3), connect(2, 4), connect(3, 4), connect(4, 5)];
    vec![
        ("nine images in one batch", after(board(vec![]), creates("image", 9, json!({})).into())),
        ("three notes in one batch, right of what is there", after(row(), creates("sticky", 3, json!({})).into())),
        ("three notes near b, which has neighbors", after(row(), creates("sticky", 3, json!({"near": "b"})).into())),
        (
            "five connected texts and one without connection in one batch",
            after(board(vec![]), creates("text", 6, json!({})).into_iter().chain(steps).collect()),
        ),
        ("three images in a Section, which grows", {
            let alone = agents(sized(section("S"), 440.0, 440.0));
            after(board(vec![alone]), creates("image", 3, json!({"sectionId": "S"})).into())
        }),
        (
            "three images in a Section between a member and b, which grows to the left",
            after(in_section(), creates("image", 3, json!({"sectionId": "S"})).into()),
        ),
        ("six results of a", targeted(board(vec![image("a")]), &["a"], 6)),
        (
            "two results of a, right of which lies b",
            targeted(board(vec![image("a"), at(image("b"), 360.0, 0.0)]), &["a"], 2),
        ),
        ("a result of each of a, b and c", targeted(row(), &["a", "b", "c"], 3)),
        ("seven uploads", uploaded(board(vec![image("a")]), 7)),
        ("nine images arranged as a grid", after(board(scattered(9)), arrange("grid", 9))),
        ("ten images arranged as a grid where a is in the way", {
            let way = sized(at(sticky("a"), 100.0, 100.0), 200.0, 200.0);
            after(board([scattered(10), vec![way]].concat()), arrange("grid", 10))
        }),
        ("six images arranged as a masonry", after(pictures(), arrange("masonry", 6))),
        ("five images arranged as a flow", {
            let links = [("1", "2"), ("1", "3"), ("2", "4"), ("3", "4")];
            let links = links.iter().map(|(from, to)| connection(&format!("{from}-{to}"), from, to, Purpose::Flow));
            after(graph(scattered(5), links.collect()), arrange("flow", 5))
        }),
    ]
}

/// The nodes with their frames, and a drawing of them.
fn shown(graph: &Graph) -> String {
    let nodes: Vec<(char, Frame, bool)> = graph
        .nodes()
        .map(|node| (node.title.chars().last().expect("a title"), Frame::from_node(node), node.is_section()))
        .collect();
    let mut text = String::new();
    for node in graph.nodes() {
        let (Position { x, y }, name) = (node.position, &node.title);
        let kind = if node.is_section() { "section" } else { node.kind.as_str() };
        writeln!(text, "{name}: {kind} {x},{y} {}x{}", node.width, node.height).expect("is written");
    }
    let whole = nodes.iter().map(|(_, frame, _)| *frame).reduce(Frame::union).expect("nodes");
    let steps = |from: f64, to: f64, step: f64| {
        let count = ((to - from) / step).round().max(1.0) as usize;
        (0..count).map(move |index| from + (index as f64 + 0.5) * step)
    };
    for y in steps(whole.top, whole.bottom, CHARACTER.1) {
        let character = |x: f64| {
            let point = Frame { left: x, top: y, right: x, bottom: y };
            let mut there = nodes.iter().filter(|(_, frame, _)| frame.contains(point));
            let node = there.clone().find(|(_, _, is_section)| !is_section);
            node.or_else(|| there.next()).map_or(' ', |(name, _, is_section)| if *is_section { '.' } else { *name })
        };
        let line: String = steps(whole.left, whole.right, CHARACTER.0).map(character).collect();
        writeln!(text, "    {}", line.trim_end()).expect("is written");
    }
    text
}

#[test]
fn boards_are_placed_as_in_the_golden_file() {
    let placed: String = boards().iter().map(|(name, graph)| format!("## {name}\n\n{}\n", shown(graph))).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/placement/golden.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &placed).expect("is written");
    }
    let golden = std::fs::read_to_string(&path).expect("is there");
    assert!(
        placed == golden,
        "{} differs: UPDATE_GOLDEN=1 cargo test -p canvas-canvas golden\n{placed}",
        path.display()
    );
}
