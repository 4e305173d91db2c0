//! Repairs of boards of an agent and a person: the batch is accepted, leaves what is the person's alone, and ends what holds the claim.

use domain::review::StoredAssets;

use super::*;
use crate::fixture::{at, sticky};
use crate::repair::{Repaired, repair};
use crate::review::is_blocked;

/// Texts that their cards hold, and one that they cut.
const CONTENTS: [&str; 3] = ["A quiet harbor", "", LONG];
const LONG: &str = "A quiet harbor at dawn, and the lamp is still on. A quiet harbor at dawn, and the lamp is still on. A quiet \
    harbor at dawn, and the lamp is still on. A quiet harbor at dawn, and the lamp is still on. A quiet harbor at dawn, and the \
    lamp is still on. A quiet harbor at dawn, and the lamp is still on. A quiet harbor at dawn, and the lamp is still on. ";

fn is_agents() -> impl Strategy<Value = bool> {
    prop::bool::weighted(2.0 / 3.0)
}

/// Most frames are in a raster, and some a little off it.
fn jitter() -> impl Strategy<Value = f64> {
    select(vec![0.0, 0.0, 0.0, 1.0, 7.0, 12.0, 16.0, 24.0, 60.0, 100.5, -9.0])
}

fn sections() -> impl Strategy<Value = Vec<Node>> {
    let size = select(vec![(640.0, 480.0), (660.0, 500.0), (400.0, 380.0)]);
    let one = (is_agents(), jitter(), select(vec![0.0, 0.0, 520.0]), jitter(), size);
    prop::collection::vec(one, 0..4).prop_map(|sections| {
        let sections = sections.into_iter().enumerate().map(|(index, (is_agents, x, row, y, (width, height)))| {
            let node = Node { width, height, ..section(&format!("s{index}")) };
            Node { agent_owned: is_agents, ..at(node, 700.0 * index as f64 + x, row + y) }
        });
        sections.collect()
    })
}

fn node() -> impl Strategy<Value = Node> {
    let kind = prop_oneof![
        select(&CONTENTS[..]).prop_map(|content| {
            let metadata = written(json!({"content": content}));
            Node { metadata, ..text("node") }
        }),
        select(&CONTENTS[..])
            .prop_map(|content| Node { metadata: written(json!({"content": content})), ..sticky("node") }),
        Just(Node { asset: Some(asset("a")), ..image("node") }),
        Just(image("node")),
        Just(video("node")),
    ];
    let size = select(vec![(220.0, 180.0), (220.0, 180.0), (230.0, 190.0), (200.0, 120.0), (120.0, 120.0)]);
    (kind, is_agents(), 0..6u8, jitter(), 0..5u8, jitter(), size).prop_map(
        |(node, is_agents, column, x, row, y, (width, height))| {
            let node = Node { width, height, agent_owned: is_agents, ..node };
            at(node, 240.0 * f64::from(column) + x, 200.0 * f64::from(row) + y)
        },
    )
}

/// Sections of an agent and of a person, and nodes in and beside them; a member has the owner of its Section.
fn board() -> impl Strategy<Value = Vec<Node>> {
    let nodes = prop::collection::vec((node(), prop::option::of(0..4usize)), 1..9);
    (sections(), nodes).prop_flat_map(|(sections, nodes)| {
        let free = nodes.into_iter().enumerate().map(|(index, (node, home))| {
            let node = Node { id: id(&format!("n{index}")), title: format!("n{index}"), ..node };
            match home.and_then(|home| sections.get(home)) {
                Some(section) => Node { agent_owned: section.agent_owned, ..member(node, section.id.as_str()) },
                None => node,
            }
        });
        let nodes: Vec<Node> = sections.iter().cloned().chain(free).collect();
        Just(nodes).prop_shuffle()
    })
}

fn frame(node: &Node) -> (Position, f64, f64) {
    (node.position, node.width, node.height)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn repairs_end_what_holds_the_claim_and_change_nothing_of_a_person(nodes in board()) {
        let mut graph = crate::fixture::graph(nodes.clone(), Vec::new());
        let Repaired { operations, leaves, .. } = repair(graph.clone(), &StoredAssets::new());
        prop_assert_eq!(leaves, []);
        if operations.is_empty() {
            return Ok(());
        }
        let batch = Batch::new(operations).expect("a batch without violations");
        let applied = apply(&mut graph, &batch, Options { agent: true, force: false }).expect("applied");
        prop_assert!(!is_blocked(&mut graph, &applied.touched));
        for before in nodes.iter().filter(|node| !node.agent_owned) {
            prop_assert_eq!(graph.node(&before.id).map(frame), Some(frame(before)));
        }
    }
}
