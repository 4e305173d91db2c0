//! Helpers to state graphs and batches in tests.

use domain::Violation;
use domain::graph::{Connection, Node, NodeType, Position, Purpose};
use domain::id::{AccountUid, AssetHandle, AssetId, ConnectionId, NodeId};
use domain::metadata::{ServerMetadata, WritableMetadata};
use domain::operation::Operation;
use domain::stored::Stored;
use serde_json::{Map, Value, json};

use crate::size::serialized_size;
use crate::{Applied, Batch, Graph, Options, Refused, apply};

pub(crate) const AGENT: Options = Options { agent: true, force: false };

pub(crate) fn id(text: &str) -> NodeId {
    NodeId::parse(text).expect("a node id")
}

pub(crate) fn cid(text: &str) -> ConnectionId {
    ConnectionId::parse(text).expect("a connection id")
}

pub(crate) fn asset(id: &str) -> AssetHandle {
    AssetHandle { owner: AccountUid::parse("me").expect("an account id"), id: AssetId::parse(id).expect("an asset id") }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

/// Metadata of a client as it is stored.
pub(crate) fn written(value: Value) -> Stored<WritableMetadata> {
    Stored::from_stored(value.to_string()).expect("an object")
}

/// The members of what a client wrote.
pub(crate) fn members(metadata: &Stored<WritableMetadata>) -> Map<String, Value> {
    serde_json::from_str(&metadata.text()).expect("an object")
}

/// Server metadata as it is stored.
pub(crate) fn server(value: Value) -> Stored<ServerMetadata> {
    Stored::from_stored(value.to_string()).expect("an object")
}

/// The node, for which work with this status was started.
pub(crate) fn with_job(mut node: Node, status: &str) -> Node {
    node.server = server(json!({"job": {"id": "job:1", "run": "run:1", "operation": "generate", "status": status}}));
    node
}

pub(crate) fn node(text: &str, kind: NodeType) -> Node {
    let (width, height) = kind.default_size();
    Node {
        id: id(text),
        short: None,
        kind,
        title: text.to_owned(),
        position: Position { x: 0.0, y: 0.0 },
        width,
        height,
        agent_owned: false,
        metadata: Stored::default(),
        server: Default::default(),
        asset: None,
        active_job: None,
    }
}

pub(crate) fn image(text: &str) -> Node {
    node(text, NodeType::Image)
}

pub(crate) fn video(text: &str) -> Node {
    node(text, NodeType::Video)
}

pub(crate) fn text(text: &str) -> Node {
    node(text, NodeType::Text)
}

pub(crate) fn sticky(text: &str) -> Node {
    node(text, NodeType::Sticky)
}

pub(crate) fn section(text: &str) -> Node {
    Node { metadata: written(json!({"section": true})), ..sticky(text) }
}

pub(crate) fn member(mut node: Node, section: &str) -> Node {
    node.metadata.section_id = Some(id(section));
    node
}

pub(crate) fn working(mut node: Node) -> Node {
    node.active_job = Some(uuid::Uuid::from_u128(1));
    node
}

/// The node at its own position.
pub(crate) fn at(node: Node, x: f64, y: f64) -> Node {
    Node { position: Position { x, y }, ..node }
}

/// The node, owned by an agent.
pub(crate) fn agents(node: Node) -> Node {
    Node { agent_owned: true, ..node }
}

/// The node with a provenance of this kind and these references.
pub(crate) fn made(mut node: Node, kind: &str, references: Value) -> Node {
    node.server = server(json!({"provenance": {"kind": kind, "references": references, "elements": []}}));
    node
}

pub(crate) fn connection(text: &str, from: &str, to: &str, purpose: Purpose) -> Connection {
    Connection { id: cid(text), short: None, from: id(from), to: id(to), purpose, role: None }
}

pub(crate) fn graph(nodes: Vec<Node>, connections: Vec<Connection>) -> Graph {
    let bytes = nodes.iter().map(serialized_size).sum::<i64>() + connections.iter().map(serialized_size).sum::<i64>();
    Graph::new("Board".into(), bytes, nodes, connections)
}

/// Operations as a request writes them. A node without a position is placed at the origin.
pub(crate) fn operations(mut list: Value) -> Vec<Operation> {
    for operation in list.as_array_mut().into_iter().flatten() {
        if let Some(Value::Object(node)) = operation.get_mut("node") {
            node.entry("position").or_insert_with(|| json!({"x": 0, "y": 0}));
        }
    }
    serde_json::from_value(list).expect("operations")
}

pub(crate) fn batch(list: Value) -> Batch {
    Batch::new(operations(list)).expect("a batch without violations")
}

/// Applies operations as an agent without force.
pub(crate) fn run(graph: &mut Graph, list: Value) -> Result<Applied, Refused> {
    apply(graph, &batch(list), AGENT)
}

pub(crate) fn fields(violations: &[Violation]) -> Vec<&str> {
    violations.iter().map(|violation| violation.field.as_str()).collect()
}

/// Everything that is observable in a graph.
pub(crate) fn seen(graph: &Graph) -> (String, i64, Vec<Node>, Vec<Connection>) {
    (graph.title().into(), graph.bytes(), graph.nodes().cloned().collect(), graph.connections().cloned().collect())
}

/// The fields rejected with 422; the graph must be unchanged.
pub(crate) fn unprocessable(graph: &mut Graph, list: Value) -> Vec<String> {
    let before = seen(graph);
    let refused = run(graph, list).expect_err("a refusal");
    assert_eq!(seen(graph), before);
    match refused {
        Refused::Unprocessable(violations) => violations.into_iter().map(|violation| violation.field).collect(),
        Refused::Invalid(violations) => panic!("400 for {violations:?}"),
    }
}

/// The fields rejected with 400 although the batch alone is well formed; the graph must be unchanged.
pub(crate) fn invalid(graph: &mut Graph, list: Value) -> Vec<String> {
    let before = seen(graph);
    let refused = run(graph, list).expect_err("a refusal");
    assert_eq!(seen(graph), before);
    match refused {
        Refused::Invalid(violations) => violations.into_iter().map(|violation| violation.field).collect(),
        Refused::Unprocessable(violations) => panic!("422 for {violations:?}"),
    }
}
