//! Nodes that the engine places: free of overlap, in their Section, and the same in a dry run.

use super::*;
use crate::fixture::at;
use crate::placement::{Frame, GAP, Location};
use crate::targets::{self, Place};

/// Left, top, width and height.
type Sides = (f64, f64, f64, f64);

#[derive(Clone, Debug)]
struct New {
    width: f64,
    height: f64,
    near: bool,
    section: Option<usize>,
}

fn new() -> impl Strategy<Value = New> {
    let side = || select(vec![1.0, 160.0, 320.5, 700.0]);
    (side(), side(), any::<bool>(), prop::option::of(0..2usize)).prop_map(|(width, height, near, section)| New {
        width,
        height,
        near,
        section,
    })
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let frame = (-900.0..900.0, -900.0..900.0, 1.0..500.0, 1.0..500.0);
    prop::collection::vec((frame, any::<bool>()), 1..12).prop_map(|frames| {
        let node = |(place, ((x, y, width, height), is_section)): (usize, (Sides, bool))| {
            let name = format!("n{place}");
            let node = if is_section && place < 2 { section(&name) } else { text(&name) };
            Node { width, height, ..at(node, x, y) }
        };
        frames.into_iter().enumerate().map(node).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_the_engine_places_covers_nothing(nodes in nodes(), new in prop::collection::vec(new(), 1..12)) {
        let mut graph = crate::fixture::graph(nodes.clone(), Vec::new());
        let create = new.iter().enumerate().map(|(at, new)| {
            let mut operation = json!({
                "type": "node.create", "clientId": format!("c{at}"),
                "node": {"type": "text", "width": new.width, "height": new.height},
            });
            if new.near {
                operation["near"] = json!(if at > 2 { format!("c{}", at - 2) } else { "n0".to_owned() });
            }
            if let Some(section) = new.section.filter(|section| nodes.get(*section).is_some_and(Node::is_section)) {
                operation["sectionId"] = json!(format!("n{section}"));
            }
            operation
        });
        let batch = Batch::new(serde_json::from_value(create.collect()).expect("operations")).expect("a batch");
        let mut tried = graph.clone();
        let applied = apply(&mut graph, &batch, Options::default()).expect("applied");
        let dry = apply(&mut tried, &batch, Options::default()).expect("applied");
        let frames = |graph: &Graph| graph.nodes().map(Frame::from_node).collect::<Vec<_>>();
        prop_assert_eq!(frames(&graph), frames(&tried));
        prop_assert_eq!(applied.nodes_delta, dry.nodes_delta);
        let placed: Vec<&Node> = graph.nodes().skip(nodes.len()).collect();
        for (at, node) in placed.iter().enumerate() {
            let frame = Frame::from_node(node);
            for other in graph.nodes().filter(|other| other.id != node.id) {
                let holds = node.section_id() == Some(other.id.as_str());
                prop_assert!(holds || !frame.overlaps(Frame::from_node(other)), "{at}: {node:?} covers {other:?}");
                let spaced = frame.widened(GAP - 0.01);
                prop_assert!(holds || !spaced.overlaps(Frame::from_node(other)), "{at}: {node:?} is too near to {other:?}");
            }
        }
        for (old, new) in nodes.iter().zip(graph.nodes()) {
            // A side that stays is a sum of rounded numbers.
            let holds = Frame::from_node(new).widened(1e-6).contains(Frame::from_node(old));
            prop_assert!(holds && (old.is_section() || old == new));
            let covers = |frame: Frame, other: &Node| frame.overlaps(Frame::from_node(other));
            for other in nodes.iter().filter(|other| other.id != old.id) {
                prop_assert_eq!(covers(Frame::from_node(new), other), covers(Frame::from_node(old), other), "a Section that grew covers more");
            }
        }
    }
    #[test]
    fn new_targets_cover_nothing_and_lie_in_their_section(
        nodes in nodes(),
        near in prop::option::of(any::<prop::sample::Index>()),
        section in any::<bool>(),
        at in prop::option::of((-900.0..900.0, -900.0..900.0)),
        count in 1..=4usize,
    ) {
        let mut graph = crate::fixture::graph(nodes.clone(), Vec::new());
        let near = near.map(|near| near.get(&nodes).id.clone());
        let section = nodes.iter().find(|node| section && node.is_section()).map(|node| node.id.clone());
        let location = Location { near, section: section.clone() };
        let at = at.map(|(x, y)| Position { x, y });
        let place = Place { location, at, count, ..Place::default() };
        match targets::add(&mut graph, &place, &[(320.0, 213.0)], targets::Work::default(), Options::default()) {
            Ok((ids, applied)) => {
                prop_assert_eq!((ids.len(), applied.nodes_delta as usize), (count, count));
                for node in ids.iter().filter_map(|id| graph.node(id)) {
                    let frame = Frame::from_node(node);
                    for other in graph.nodes().filter(|other| other.id != node.id) {
                        let holds = section.as_ref() == Some(&other.id);
                        prop_assert!(holds || !frame.widened(GAP - 0.01).overlaps(Frame::from_node(other)), "{node:?} {other:?}");
                        prop_assert!(!holds || Frame::from_node(other).contains(frame), "{node:?} is not in {other:?}");
                    }
                }
            }
            Err(Refused::Unprocessable(refused)) => {
                prop_assert!(section.is_some() && refused.iter().all(|one| one.field.ends_with("sectionId")), "{refused:?}");
            }
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }
}
