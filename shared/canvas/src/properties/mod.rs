//! Random batches on a small crowded canvas, compared with a model that has no index, journal or roll-back.

mod findings;
mod inverse;
mod layout;
mod lenient;
mod model;
mod placement;
mod refs;
mod repair;
mod restore;

use std::collections::BTreeMap;

use domain::graph::{Connection, DeletedConnection, DeletedNode, Node, NodeType, Position, Purpose, Role};
use domain::id::NodeId;
use domain::metadata::{Provenance, ProvenanceKind};
use domain::operation::{NewNode, NodePatch, Operation};
use domain::refs::{ConnectionRef, NodeRef};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::fixture::{
    asset, cid, connection, id, image, made, member, section, seen, text, video, with_job, working, written,
};
use crate::graph::Sources;
use crate::size::serialized_size;
use crate::{Applied, Batch, Graph, Options, Refused, apply};

const STEPS_MAX: usize = 24;

fn start() -> (Vec<Node>, Vec<Connection>) {
    let nodes = vec![
        Node { asset: Some(asset("x")), ..image("n0") },
        member(working(image("n1")), "n4"),
        video("n2"),
        member(text("n3"), "n4"),
        section("n4"),
        section("n5"),
        working(text("n6")),
        Node { metadata: written(json!({"content": "c", "zIndex": 1})), ..text("n7") },
    ];
    let nodes = nodes.into_iter().zip(101..).map(|(node, number)| with_ref(node, number)).collect();
    let connections = vec![
        connection("k0", "n0", "n2", Purpose::FirstFrame),
        Connection { role: Some(Role::Fit), ..connection("k1", "n0", "n1", Purpose::Reference) },
        connection("k2", "n3", "n6", Purpose::Flow),
        connection("k3", "n3", "n6", Purpose::List),
        connection("k4", "n2", "n7", Purpose::Flow),
    ];
    let connections =
        connections.into_iter().zip(101..).map(|(link, number)| with_connection_ref(link, number)).collect();
    (nodes, connections)
}

fn with_ref(node: Node, number: i32) -> Node {
    Node { short: Some(NodeRef::new(number)), ..node }
}

fn with_connection_ref(connection: Connection, number: i32) -> Connection {
    Connection { short: Some(ConnectionRef::new(number)), ..connection }
}

/// The graph with what was deleted before, each in its place.
fn deleted() -> (Vec<DeletedNode>, Vec<DeletedConnection>) {
    let node = |node: Node, members: &[&str], preceding| DeletedNode {
        node: with_ref(node, 201 + preceding as i32),
        members: members.iter().copied().map(id).collect(),
        preceding,
    };
    let shown = Node { asset: Some(asset("y")), ..member(image("d0"), "n4") };
    let mut working = working(text("d2"));
    working = with_job(working, "running");
    working.server.provenance = Some(Box::new(Provenance::new(ProvenanceKind::Generated)));
    let nodes = vec![
        node(made(shown, "action", json!([])), &[], 0),
        node(section("d1"), &["n0", "n3", "n7", "gone"], 4),
        node(working, &[], 8),
    ];
    let link = |text, from, to, purpose, preceding| DeletedConnection {
        connection: with_connection_ref(connection(text, from, to, purpose), 201 + preceding as i32),
        preceding,
    };
    let connections = vec![
        link("e0", "d0", "n3", Purpose::Reference, 0),
        link("e1", "n0", "n2", Purpose::FirstFrame, 2),
        link("e2", "n3", "n7", Purpose::Flow, 5),
    ];
    (nodes, connections)
}

fn graph() -> Graph {
    let (nodes, connections) = start();
    let bytes = crate::fixture::graph(nodes.clone(), connections.clone()).bytes();
    let (deleted_nodes, deleted_connections) = deleted();
    let sources = Sources { nodes: deleted_nodes, connections: deleted_connections, ..Sources::default() };
    Graph::with_sources("Board".into(), bytes, nodes, connections, sources)
}

/// Mostly stored nodes, often nodes created earlier in the batch, sometimes a node that does not exist.
fn node_ref() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => (0..8usize, any::<bool>()).prop_map(|(at, handle)| format!("{}n{at}", if handle { "node:" } else { "" })),
        6 => (0..STEPS_MAX / 2).prop_map(|at| format!("c{at}")),
        2 => (0..3usize).prop_map(|at| format!("d{at}")),
        1 => Just("gone".to_owned()),
    ]
}

fn connection_ref() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0..5usize).prop_map(|at| format!("k{at}")),
        4 => (0..STEPS_MAX / 2).prop_map(|at| format!("c{at}")),
        2 => (0..3usize).prop_map(|at| format!("e{at}")),
        1 => Just("connection:gone".to_owned()),
    ]
}

fn kind() -> impl Strategy<Value = NodeType> {
    select(NodeType::ALL)
}

/// Few positions, near and far, so that moves without a change and overlaps of all kinds are common.
fn position() -> impl Strategy<Value = Position> {
    (select(vec![0.0, 1.0, 400.0, 5000.0]), 0..2u8).prop_map(|(x, y)| Position { x, y: y.into() })
}

fn purpose() -> impl Strategy<Value = Purpose> {
    select(Purpose::ALL)
}

fn role() -> impl Strategy<Value = Role> {
    select(&[Role::Fit, Role::Style][..])
}

fn metadata() -> impl Strategy<Value = Map<String, Value>> {
    let entry = prop_oneof![
        Just(("content".to_owned(), json!("c"))),
        Just(("content".to_owned(), json!(""))),
        Just(("content".to_owned(), json!(null))),
        Just(("zIndex".to_owned(), json!(1))),
        Just(("zIndex".to_owned(), json!(null))),
        Just(("custom".to_owned(), json!({"a": [1]}))),
        select(vec![json!(true), json!(false), json!(null)]).prop_map(|value| ("section".to_owned(), value)),
        Just(("sectionId".to_owned(), json!(null))),
        select(vec!["n4", "node:n4", "n5"]).prop_map(|section| ("sectionId".to_owned(), json!(section))),
        node_ref().prop_map(|section| ("sectionId".to_owned(), json!(section))),
    ];
    prop::collection::vec(entry, 0..3).prop_map(|entries| entries.into_iter().collect())
}

/// An operation without its `clientId`, which is its index in the batch.
fn operation() -> impl Strategy<Value = Operation> {
    let new_node = (kind(), position(), prop::option::of(metadata())).prop_map(|(kind, position, metadata)| NewNode {
        kind,
        title: None,
        position: Some(position),
        width: None,
        height: None,
        asset: None,
        metadata,
    });
    let patch = (
        prop::option::of(select(vec!["n7", "T"])),
        prop::option::of(select(vec![320.0, 9.0])),
        prop::option::of(metadata()),
        prop::option::weighted(0.2, select(vec![NodeType::Text, NodeType::Sticky])),
    )
        .prop_map(|(title, width, metadata, kind)| NodePatch {
            title: title.map(str::to_owned),
            width,
            height: None,
            metadata,
            kind,
            asset: None,
        });
    prop_oneof![
        3 => (new_node, prop::option::weighted(0.1, node_ref())).prop_map(|(node, section_id)| Operation::NodeCreate {
            client_id: None, node, near: None, section_id
        }),
        4 => (node_ref(), patch).prop_map(|(node_id, patch)| Operation::NodeUpdate { node_id, patch }),
        3 => (node_ref(), position(), prop::bool::weighted(0.3))
            .prop_map(|(node_id, position, with_members)| Operation::NodeMove { node_id, position, with_members }),
        1 => (node_ref(), position())
            .prop_map(|(node_id, position)| Operation::NodeDuplicate { node_id, client_id: None, position }),
        2 => node_ref().prop_map(|node_id| Operation::NodeDelete { node_id }),
        2 => node_ref().prop_map(|node_id| Operation::NodeRestore { node_id }),
        3 => (node_ref(), node_ref(), prop::option::of(purpose()), prop::option::weighted(0.2, role())).prop_map(
            |(from_node_id, to_node_id, purpose, role)| Operation::ConnectionCreate {
                client_id: None, from_node_id, to_node_id, purpose, role
            }
        ),
        2 => (connection_ref(), prop::option::of(purpose()), prop::option::of(prop::option::of(role()))).prop_map(
            |(connection_id, purpose, role)| Operation::ConnectionUpdate { connection_id, purpose, role }
        ),
        1 => connection_ref().prop_map(|connection_id| Operation::ConnectionDelete { connection_id }),
        1 => connection_ref().prop_map(|connection_id| Operation::ConnectionRestore { connection_id }),
        1 => select(vec!["Board", "Other"]).prop_map(|title| Operation::CanvasUpdate { title: title.into() }),
    ]
}

/// A batch in which the operation at index `i` creates `c<i>`. Operations that the request alone makes invalid are left
/// out. Two batches of three also omit those that the model rejects, because a long random batch is hardly ever valid.
fn operations() -> impl Strategy<Value = Vec<Operation>> {
    operations_up_to(STEPS_MAX)
}

/// Batches of at most this many operations.
fn operations_up_to(max: usize) -> impl Strategy<Value = Vec<Operation>> {
    let careful = prop::bool::weighted(2.0 / 3.0);
    (prop::collection::vec(operation(), 1..=max), careful).prop_map(|(operations, careful)| {
        let mut kept: Vec<Operation> = Vec::new();
        for mut operation in operations {
            let name = format!("c{}", kept.len());
            if let Operation::NodeCreate { client_id, .. }
            | Operation::NodeDuplicate { client_id, .. }
            | Operation::ConnectionCreate { client_id, .. } = &mut operation
            {
                *client_id = Some(name);
            }
            kept.push(operation);
            if Batch::new(kept.clone()).is_err() || (careful && model::run(&kept, Options::default()).is_err()) {
                kept.pop();
            }
        }
        if kept.is_empty() {
            kept.push(Operation::CanvasUpdate { title: "Board".into() });
        }
        kept
    })
}

fn options() -> impl Strategy<Value = Options> {
    (any::<bool>(), any::<bool>()).prop_map(|(agent, force)| Options { agent, force })
}

/// Created ids are random: renames them to their `clientId`, as the model names them.
struct Rename(BTreeMap<String, String>);

impl Rename {
    fn from_applied(applied: &Applied) -> Self {
        Self(applied.resolved_ids.iter().map(|(client_id, made)| (made.clone(), client_id.clone())).collect())
    }

    fn name<'a>(&'a self, made: &'a str) -> &'a str {
        self.0.get(made).map_or(made, String::as_str)
    }

    fn names<T: ToString>(&self, ids: &[T]) -> Vec<String> {
        ids.iter().map(|id| self.name(&id.to_string()).to_owned()).collect()
    }

    fn node(&self, node: &Node) -> Node {
        let mut node = node.clone();
        // The model gives no refs.
        node.short = node.short.filter(|_| !self.0.contains_key(node.id.as_str()));
        node.id = id(self.name(node.id.as_str()));
        if let Some(section) = node.section_id().map(|section| self.name(section).to_owned()) {
            node.metadata.section_id = Some(id(&section));
        }
        node
    }

    fn connection(&self, connection: &Connection) -> Connection {
        Connection {
            id: cid(self.name(connection.id.as_str())),
            short: connection.short.filter(|_| !self.0.contains_key(connection.id.as_str())),
            from: id(self.name(connection.from.as_str())),
            to: id(self.name(connection.to.as_str())),
            ..connection.clone()
        }
    }
}

/// The indexes give the same answers as a scan of every node and connection, and the size is the sum over them.
fn consistent(graph: &Graph) -> Result<(), TestCaseError> {
    let ids = |list: Vec<&Connection>| list.iter().map(|connection| connection.id.clone()).collect::<Vec<_>>();
    for node in graph.nodes() {
        prop_assert_eq!(graph.node(&node.id), Some(node));
        let outgoing = graph.connections().filter(|connection| connection.from == node.id).collect();
        prop_assert_eq!(ids(graph.outgoing(&node.id).collect()), ids(outgoing));
        let incoming = graph.connections().filter(|connection| connection.to == node.id).collect();
        prop_assert_eq!(ids(graph.incoming(&node.id).collect()), ids(incoming));
        let members: Vec<&NodeId> = graph.members(&node.id).map(|member| &member.id).collect();
        let expected: Vec<&NodeId> =
            graph.nodes().filter(|other| other.section_id() == Some(node.id.as_str())).map(|other| &other.id).collect();
        prop_assert_eq!(members, expected);
    }
    let weight =
        graph.nodes().map(serialized_size).sum::<i64>() + graph.connections().map(serialized_size).sum::<i64>();
    prop_assert_eq!(graph.bytes(), weight);
    prop_assert_eq!(graph.node_count(), graph.nodes().count());
    prop_assert_eq!(graph.connection_count(), graph.connections().count());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_batch_does_what_the_model_does(operations in operations(), options in options()) {
        let expected = model::run(&operations, options);
        let batch = Batch::new(operations).expect("only batches without violations are generated");
        let mut graph = graph();
        let before = seen(&graph);
        match (apply(&mut graph, &batch, options), expected) {
            (Ok(applied), Ok(expected)) => {
                let rename = Rename::from_applied(&applied);
                prop_assert_eq!(graph.nodes().map(|node| rename.node(node)).collect::<Vec<_>>(), expected.nodes);
                let connections: Vec<Connection> = graph.connections().map(|link| rename.connection(link)).collect();
                prop_assert_eq!(connections, expected.connections);
                prop_assert_eq!(graph.title(), &expected.title);
                prop_assert_eq!(rename.names(&applied.changes.changed_node_ids), expected.changed_nodes);
                prop_assert_eq!(rename.names(&applied.changes.deleted_node_ids), expected.deleted_nodes);
                prop_assert_eq!(rename.names(&applied.changes.changed_connection_ids), expected.changed_connections);
                prop_assert_eq!(rename.names(&applied.changes.deleted_connection_ids), expected.deleted_connections);
                prop_assert_eq!(applied.resolved_ids.keys().cloned().collect::<Vec<_>>(), expected.client_ids);
                prop_assert_eq!(graph.bytes(), before.1 + applied.bytes_delta);
            }
            (Err(refused), Err(expected)) => {
                let (is_invalid, violations) = match refused {
                    Refused::Invalid(violations) => (true, violations),
                    Refused::Unprocessable(violations) => (false, violations),
                };
                let mut fields: Vec<String> = violations.into_iter().map(|violation| violation.field).collect();
                fields.sort();
                prop_assert_eq!((is_invalid, fields), (expected.is_invalid, expected.fields));
                prop_assert_eq!(seen(&graph), before);
            }
            (applied, expected) => prop_assert!(false, "engine {applied:?}, model {expected:?}"),
        }
        consistent(&graph)?;
    }

    #[test]
    fn a_refused_batch_leaves_no_trace_in_what_follows(first in operations(), second in operations()) {
        let mut fresh = graph();
        let mut used = graph();
        let refused = Batch::new([first, vec![Operation::NodeDelete { node_id: "nowhere".into() }]].concat());
        let refused = refused.expect("only batches without violations are generated");
        prop_assert!(apply(&mut used, &refused, Options::default()).is_err());
        let second = Batch::new(second).expect("only batches without violations are generated");
        let outcomes = [&mut fresh, &mut used].map(|graph| apply(graph, &second, Options::default()));
        let [on_fresh, on_used] = outcomes.map(|outcome| outcome.map(|applied| applied.changes.changed_node_ids.len()));
        prop_assert_eq!(on_fresh, on_used);
        consistent(&used)?;
    }

    #[test]
    fn what_is_created_and_then_deleted_leaves_the_graph_as_it_was(
        kinds in prop::collection::vec(kind(), 1..6),
        links in prop::collection::vec((0..6usize, 0..8usize), 0..6),
    ) {
        let mut graph = graph();
        let before = seen(&graph);
        let create = kinds.iter().enumerate().map(|(at, kind)| {
            json!({"type": "node.create", "clientId": format!("c{at}"), "node": {"type": kind}})
        });
        let mut joined: Vec<(usize, usize)> = links.into_iter().filter(|(new, _)| *new < kinds.len()).collect();
        joined.sort_unstable();
        joined.dedup();
        let connect = joined.iter().map(|(new, old)| {
            json!({"type": "connection.create", "fromNodeId": format!("c{new}"), "toNodeId": format!("n{old}")})
        });
        let made = crate::fixture::run(&mut graph, create.chain(connect).collect()).expect("applied");
        prop_assert_eq!(made.nodes_delta, kinds.len() as i32);
        let delete = made.resolved_ids.values().map(|id| json!({"type": "node.delete", "nodeId": id})).collect();
        let deleted = crate::fixture::run(&mut graph, delete).expect("applied");
        prop_assert_eq!(deleted.connections_delta, -(joined.len() as i32));
        prop_assert_eq!(made.bytes_delta + deleted.bytes_delta, 0);
        prop_assert_eq!(seen(&graph), before);
        consistent(&graph)?;
    }

    #[test]
    fn what_is_moved_there_and_back_is_as_it_was(node in 0..8usize, x in -1e7..1e7, y in -1e7..1e7) {
        let mut graph = graph();
        let before = seen(&graph);
        for (x, y) in [(x, y), (0.0, 0.0)] {
            let operation = json!({"type": "node.move", "nodeId": format!("n{node}"), "position": {"x": x, "y": y}});
            crate::fixture::run(&mut graph, json!([operation])).expect("applied");
        }
        prop_assert_eq!(seen(&graph), before);
    }
}
