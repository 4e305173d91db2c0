//! Layout operations: they cover nothing, change nothing when repeated, and are undone by moves and resizes.

use super::*;
use crate::fixture::at;
use crate::placement::Frame;

const COUNT: usize = 14;

/// Nodes of which some overlap; the first two are Sections, and others may belong to one of them. Every third shows an image.
fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let side = || prop_oneof![1.0..500.0, select(vec![1.0, 240.0, 320.5])];
    let frame = (-900.0..900.0, -900.0..900.0, side(), side());
    prop::collection::vec((frame, prop::option::weighted(0.4, 0..2usize)), 3..COUNT).prop_map(|frames| {
        let placed = |place: usize, home: Option<usize>| {
            let name = format!("n{place}");
            match (place < 2, home) {
                (true, _) => section(&name),
                (false, Some(home)) => member(card(&name, place), &format!("n{home}")),
                (false, None) => card(&name, place),
            }
        };
        let nodes = frames.into_iter().enumerate();
        nodes
            .map(|(place, ((x, y, width, height), home))| Node { width, height, ..at(placed(place, home), x, y) })
            .collect()
    })
}

fn card(name: &str, place: usize) -> Node {
    match place % 3 {
        0 => Node { asset: Some(asset(name)), ..image(name) },
        _ => text(name),
    }
}

/// The graph, with images of different shapes.
fn graph(nodes: &[Node], connections: Vec<Connection>) -> Graph {
    let mut graph = crate::fixture::graph(nodes.to_vec(), connections);
    let shown = nodes.iter().enumerate().filter_map(|(place, node)| Some((node.asset.clone()?, place as f64)));
    graph.sources.sizes = shown.map(|(asset, place)| (asset, (400.0 + 150.0 * place, 1300.0 - 60.0 * place))).collect();
    graph
}

/// Connections between nodes, some of them in cycles.
fn links() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((0..COUNT, 0..COUNT), 0..12)
}

/// Where an operation is to place its nodes.
fn goal() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        (0..COUNT).prop_map(|near| json!({"near": format!("n{near}")})),
        (-1000.0..1000.0, -1000.0..1000.0).prop_map(|(x, y)| json!({"x": x, "y": y})),
        Just(json!({"x": 1e7, "y": -1e7})),
    ]
}

fn arrangement() -> impl Strategy<Value = Value> {
    let layout = prop_oneof![
        Just(json!({"layout": "row"})),
        Just(json!({"layout": "column", "gap": 0})),
        Just(json!({"layout": "grid", "gap": 12.3})),
        (1..5_u32).prop_map(|columns| json!({"layout": "grid", "columns": columns})),
        Just(json!({"layout": "masonry"})),
        (1..5_u32).prop_map(|columns| json!({"layout": "masonry", "columns": columns, "gap": 7})),
        select(vec!["right", "down"]).prop_map(|direction| json!({"layout": "flow", "direction": direction})),
        (select(vec!["row", "column", "grid"]), select(vec!["center", "end"]))
            .prop_map(|(layout, align)| json!({"layout": layout, "align": align})),
    ];
    let what = prop_oneof![
        3 => prop::sample::subsequence((0..COUNT).collect::<Vec<_>>(), 1..8).prop_shuffle().prop_map(|nodes| {
            json!({"nodeIds": nodes.into_iter().map(|node| format!("n{node}")).collect::<Vec<_>>()})
        }),
        2 => (0..2usize).prop_map(|section| json!({"sectionId": format!("n{section}")})),
    ];
    (what, layout, goal())
        .prop_map(|(what, layout, goal)| merged(&[json!({"type": "layout.arrange"}), what, layout, goal]))
}

fn merged(parts: &[Value]) -> Value {
    let members = parts.iter().flat_map(|part| part.as_object().expect("an object").clone());
    Value::Object(members.collect())
}

fn overlap(one: &Node, other: &Node) -> bool {
    Frame::from_node(one).widened(-1e-3).overlaps(Frame::from_node(other))
}

/// Returns `true` if one of the two is the other's Section.
fn belong_together(one: &Node, other: &Node) -> bool {
    [(one, other), (other, one)].into_iter().any(|(member, section)| member.section_id() == Some(section.id.as_str()))
}

/// The Section of a node, or itself.
fn group(node: &Node) -> &str {
    node.section_id().unwrap_or(node.id.as_str())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn an_arrangement_covers_nothing_and_is_stable_and_undone(
        nodes in nodes(),
        links in links(),
        operation in arrangement(),
    ) {
        let mut known = std::collections::HashSet::new();
        let links = links.into_iter().filter(|(from, to)| from != to && *from.max(to) < nodes.len() && known.insert((*from, *to)));
        let link = |(from, to): (usize, usize)| {
            connection(&format!("c{from}-{to}"), &format!("n{from}"), &format!("n{to}"), Purpose::Flow)
        };
        let mut graph = graph(&nodes, links.map(link).collect());
        let before = seen(&graph);
        let batch = crate::fixture::batch(json!([operation]));
        let Ok(applied) = apply(&mut graph, &batch, Options::default()) else {
            prop_assert_eq!(seen(&graph), before);
            return Ok(());
        };
        let arranged: Vec<&str> = operation["nodeIds"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let section = operation["sectionId"].as_str();
        for (old, node) in nodes.iter().zip(graph.nodes()) {
            prop_assert_eq!((node.id.as_str(), &node.metadata), (old.id.as_str(), &old.metadata));
            let is_section = node.is_section() && node.id.as_str() == section.unwrap_or(group(node));
            let is_arranged = arranged.contains(&node.id.as_str()) || node.section_id().is_some_and(|id| Some(id) == section);
            let is_sized = is_section || (is_arranged && operation["layout"] == "masonry");
            prop_assert!((node.width, node.height) == (old.width, old.height) || is_sized);
            for other in graph.nodes().filter(|other| is_arranged && other.id != node.id && overlap(node, other)) {
                // What a Section carries keeps its place in it.
                let carried = node.is_section() && other.section_id() == Some(node.id.as_str());
                let inside = belong_together(node, other) && Frame::from_node(other).widened(1e-3).contains(Frame::from_node(node));
                prop_assert!(carried || inside, "{node:?} covers {other:?}");
            }
        }
        if let Some(section) = graph.nodes().find(|node| Some(node.id.as_str()) == section) {
            for member in graph.members(&section.id) {
                prop_assert!(Frame::from_node(section).widened(1e-3).contains(Frame::from_node(member)), "{member:?}");
            }
        }
        // A Section that grew covers nothing new.
        for (old, new) in nodes.iter().zip(graph.nodes()).filter(|(old, new)| old.is_section() && old != new) {
            for other in graph.nodes().filter(|other| other.id != new.id && !belong_together(other, new)) {
                let grew = Frame::from_node(new).widened(1e-6).contains(Frame::from_node(old));
                let moved = old.position != new.position && !grew;
                prop_assert!(!overlap(new, other) || (!moved && overlap(old, other)) || arranged.contains(&new.id.as_str()), "{new:?} covers {other:?}");
            }
        }
        let after = seen(&graph);
        let again = apply(&mut graph, &batch, Options::default()).expect("applied");
        prop_assert_eq!(again.changes.changed_node_ids, []);
        prop_assert_eq!(&seen(&graph), &after);
        undo(&mut graph, &nodes, &applied);
        prop_assert_eq!(seen(&graph), before);
    }

    #[test]
    fn a_fitted_section_contains_its_members(nodes in nodes(), padding in 0.0..1000.0) {
        let mut graph = crate::fixture::graph(nodes.clone(), Vec::new());
        let before = seen(&graph);
        let batch = crate::fixture::batch(json!([{"type": "section.fit", "nodeId": "n0", "padding": padding}]));
        let applied = apply(&mut graph, &batch, Options::default());
        let section = Frame::from_node(graph.node(&id("n0")).expect("a Section"));
        prop_assert_eq!(applied.is_err(), graph.members(&id("n0")).next().is_none());
        let Ok(applied) = applied else { return Ok(()) };
        for member in graph.members(&id("n0")) {
            prop_assert!(section.contains(Frame::from_node(member).widened(padding - 1e-6)));
        }
        undo(&mut graph, &nodes, &applied);
        prop_assert_eq!(seen(&graph), before);
    }

    #[test]
    fn a_section_and_its_members_move_by_the_same_vector(nodes in nodes(), x in -1e6..1e6, y in -1e6..1e6) {
        let mut graph = crate::fixture::graph(nodes.clone(), Vec::new());
        let operation = json!({"type": "node.move", "nodeId": "n0", "position": {"x": x, "y": y}, "withMembers": true});
        let applied = crate::fixture::run(&mut graph, json!([operation])).expect("applied");
        let by = (x - nodes[0].position.x, y - nodes[0].position.y);
        for (old, new) in nodes.iter().zip(graph.nodes()) {
            let (x, y) = (new.position.x - old.position.x, new.position.y - old.position.y);
            let moves = old.id == nodes[0].id || old.section_id() == Some("n0");
            let (dx, dy) = if moves { by } else { (0.0, 0.0) };
            prop_assert!((x - dx).abs() < 1e-6 && (y - dy).abs() < 1e-6);
        }
        undo(&mut graph, &nodes, &applied);
        prop_assert_eq!(graph.nodes().cloned().collect::<Vec<_>>(), nodes);
    }

    #[test]
    fn a_new_section_contains_its_nodes_and_covers_no_other(
        nodes in nodes(),
        chosen in prop::sample::subsequence((2..COUNT).collect::<Vec<_>>(), 0..6),
        goal in goal(),
    ) {
        let mut graph = crate::fixture::graph(nodes.clone(), Vec::new());
        let before = seen(&graph);
        let mut operation = merged(&[json!({"type": "section.create", "clientId": "new", "title": "S"}), goal]);
        if !chosen.is_empty() {
            operation["nodeIds"] = chosen.iter().map(|node| format!("n{node}")).collect();
        }
        let batch = crate::fixture::batch(json!([operation]));
        let Ok(applied) = apply(&mut graph, &batch, Options::default()) else {
            prop_assert_eq!(seen(&graph), before);
            return Ok(());
        };
        let section = graph.nodes().last().expect("the Section").clone();
        prop_assert_eq!(graph.members(&section.id).count(), chosen.len());
        for node in graph.nodes().filter(|node| node.id != section.id) {
            let is_member = node.section_id() == Some(section.id.as_str());
            prop_assert!(!is_member || Frame::from_node(&section).widened(1e-3).contains(Frame::from_node(node)));
            prop_assert!(is_member || !overlap(&section, node), "{section:?} covers {node:?}");
        }
        prop_assert_eq!(&applied.resolved_ids["new"], section.id.as_str());
        undo(&mut graph, &nodes, &applied);
        prop_assert_eq!(seen(&graph), before);
    }
}

/// Moves, resizes and homes as a client that remembers the nodes sends them.
fn undo(graph: &mut Graph, nodes: &[Node], applied: &Applied) {
    let mut operations = Vec::new();
    for changed in &applied.changes.changed_node_ids {
        let Some(old) = nodes.iter().find(|node| node.id == *changed) else {
            operations.push(json!({"type": "node.delete", "nodeId": changed}));
            continue;
        };
        let patch = json!({"width": old.width, "height": old.height, "metadata": {"sectionId": old.section_id()}});
        operations.push(json!({"type": "node.update", "nodeId": changed, "patch": patch}));
        operations.push(json!({"type": "node.move", "nodeId": changed, "position": old.position}));
    }
    if !operations.is_empty() {
        apply(graph, &crate::fixture::batch(operations.into()), Options::default()).expect("undone");
    }
}
