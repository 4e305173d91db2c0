//! A batch of operations that breaks no rule which depends on the request alone; such violations are answered with 400.
//!
//! Constructing a [`Batch`] is the check: ids are parsed, sizes and texts are within their limits, metadata is in its
//! stored form. The engine accepts nothing else, so that every rule is checked exactly once.

use std::collections::HashSet;
use std::str::FromStr;

use domain::Violation;
use domain::graph::{NodeType, Position, Purpose, Role};
use domain::id::{AssetHandle, ConnectionId, MalformedId, NodeId, is_plain_id};
use domain::limits::{COORDINATE_MAX, NODE_SIDE_MAX, OPERATIONS_MAX, TITLE_MAX, VIOLATIONS_MAX};
use domain::operation::{NewNode, NodePatch, Operation};
use serde_json::{Map, Value};

use crate::metadata::{MetadataPatch, is_text};
use crate::reference::Ref;

/// Operations that can be applied to a graph, in order.
#[derive(Clone, Debug)]
pub struct Batch {
    pub(crate) steps: Vec<Step>,
}

impl Batch {
    /// Checks operations without a graph: 1 to 200 of them, well-formed ids, unique `clientId`s, positions, sizes,
    /// titles and metadata within their limits. The error lists every violation, each under a path such as
    /// `operations[3].node.width`. Once there are [`VIOLATIONS_MAX`] violations, further operations are not checked.
    pub fn new(operations: Vec<Operation>) -> Result<Self, Vec<Violation>> {
        let mut check = Check::default();
        if !(1..=OPERATIONS_MAX).contains(&operations.len()) {
            check.violations.push(Violation::new("operations", format!("must hold 1 to {OPERATIONS_MAX} operations")));
        }
        let mut steps = Vec::with_capacity(operations.len());
        for (at, operation) in operations.into_iter().enumerate() {
            if check.violations.len() >= VIOLATIONS_MAX {
                break;
            }
            check.at = at;
            steps.extend(check.step(operation));
        }
        if check.violations.is_empty() { Ok(Self { steps }) } else { Err(check.violations) }
    }

    pub fn operation_count(&self) -> usize {
        self.steps.len()
    }
}

/// An operation whose parts are parsed.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    CreateNode {
        client_id: Option<String>,
        draft: Draft,
    },
    UpdateNode {
        node: Ref<NodeId>,
        patch: Patch,
    },
    MoveNode {
        node: Ref<NodeId>,
        position: Position,
    },
    DuplicateNode {
        node: Ref<NodeId>,
        client_id: Option<String>,
        position: Position,
    },
    DeleteNode {
        node: Ref<NodeId>,
    },
    CreateConnection {
        client_id: Option<String>,
        from: Ref<NodeId>,
        to: Ref<NodeId>,
        purpose: Purpose,
        role: Option<Role>,
    },
    UpdateConnection {
        connection: Ref<ConnectionId>,
        purpose: Option<Purpose>,
        role: Option<Option<Role>>,
    },
    DeleteConnection {
        connection: Ref<ConnectionId>,
    },
    RenameCanvas {
        title: String,
    },
}

/// A node to create, with its defaults.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) kind: NodeType,
    pub(crate) title: String,
    pub(crate) position: Position,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) metadata: MetadataPatch,
    pub(crate) given: Given,
}

/// Values that the service itself sets on a node that it creates. None of them comes from a request's operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// Its id, if others must name it before it is created.
    pub(crate) id: Option<NodeId>,
    pub(crate) server: Map<String, Value>,
    pub(crate) asset: Option<AssetHandle>,
}

/// Changes to a node.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) title: Option<String>,
    pub(crate) width: Option<f64>,
    pub(crate) height: Option<f64>,
    pub(crate) metadata: MetadataPatch,
    pub(crate) kind: Option<NodeType>,
}

#[derive(Default)]
struct Check {
    at: usize,
    violations: Vec<Violation>,
    client_ids: HashSet<String>,
}

impl Check {
    fn step(&mut self, operation: Operation) -> Option<Step> {
        match operation {
            Operation::NodeCreate { client_id, node } => {
                self.client_id(client_id.as_deref());
                Some(Step::CreateNode { client_id, draft: self.draft(node) })
            }
            Operation::NodeUpdate { node_id, patch } => {
                let node = self.reference("nodeId", &node_id);
                let patch = self.patch(patch);
                Some(Step::UpdateNode { node: node?, patch })
            }
            Operation::NodeMove { node_id, position } => {
                let node = self.reference("nodeId", &node_id);
                self.position("position", position);
                Some(Step::MoveNode { node: node?, position })
            }
            Operation::NodeDuplicate { node_id, client_id, position } => {
                let node = self.reference("nodeId", &node_id);
                self.client_id(client_id.as_deref());
                self.position("position", position);
                Some(Step::DuplicateNode { node: node?, client_id, position })
            }
            Operation::NodeDelete { node_id } => Some(Step::DeleteNode { node: self.reference("nodeId", &node_id)? }),
            Operation::ConnectionCreate { client_id, from_node_id, to_node_id, purpose, role } => {
                let from = self.reference("fromNodeId", &from_node_id);
                let to = self.reference("toNodeId", &to_node_id);
                self.client_id(client_id.as_deref());
                let purpose = purpose.unwrap_or(Purpose::Flow);
                self.role(Some(purpose), role);
                Some(Step::CreateConnection { client_id, from: from?, to: to?, purpose, role })
            }
            Operation::ConnectionUpdate { connection_id, purpose, role } => {
                let connection = self.reference("connectionId", &connection_id);
                self.role(purpose, role.flatten());
                Some(Step::UpdateConnection { connection: connection?, purpose, role })
            }
            Operation::ConnectionDelete { connection_id } => {
                Some(Step::DeleteConnection { connection: self.reference("connectionId", &connection_id)? })
            }
            Operation::CanvasUpdate { title } => {
                self.title("title", &title);
                Some(Step::RenameCanvas { title })
            }
        }
    }

    fn refuse(&mut self, field: &str, message: impl Into<String>) {
        self.violations.push(Violation::new(format!("operations[{}].{field}", self.at), message));
    }

    fn reference<Id: FromStr<Err = MalformedId>>(&mut self, field: &str, text: &str) -> Option<Ref<Id>> {
        Ref::parse(text).map_err(|malformed| self.refuse(field, format!("{malformed} or a clientId"))).ok()
    }

    fn client_id(&mut self, client_id: Option<&str>) {
        let Some(client_id) = client_id else { return };
        if !is_plain_id(client_id) {
            self.refuse("clientId", "must be 1 to 180 letters, digits, `_` or `-`");
        } else if !self.client_ids.insert(client_id.to_owned()) {
            self.refuse("clientId", "must be unique in the batch");
        }
    }

    fn title(&mut self, field: &str, title: &str) {
        if !is_text(title, TITLE_MAX) {
            self.refuse(field, format!("must be a text of at most {TITLE_MAX} characters, none of them U+0000"));
        }
    }

    fn position(&mut self, field: &str, position: Position) {
        for (axis, value) in [("x", position.x), ("y", position.y)] {
            if !(-COORDINATE_MAX..=COORDINATE_MAX).contains(&value) {
                let message = format!("must be a number from -{COORDINATE_MAX} to {COORDINATE_MAX}");
                self.refuse(&format!("{field}.{axis}"), message);
            }
        }
    }

    fn side(&mut self, field: &str, side: Option<f64>) {
        if side.is_some_and(|side| !(1.0..=NODE_SIDE_MAX).contains(&side)) {
            self.refuse(field, format!("must be a number from 1 to {NODE_SIDE_MAX}"));
        }
    }

    fn role(&mut self, purpose: Option<Purpose>, role: Option<Role>) {
        if role.is_some() && purpose.is_some_and(|purpose| purpose != Purpose::Reference) {
            self.refuse("role", "must be omitted unless the purpose is `reference`");
        }
    }

    fn metadata(&mut self, field: &str, metadata: Option<Map<String, Value>>) -> MetadataPatch {
        let field = format!("operations[{}].{field}", self.at);
        MetadataPatch::parse(metadata.unwrap_or_default(), &field, &mut self.violations)
    }

    fn draft(&mut self, node: NewNode) -> Draft {
        if let Some(title) = &node.title {
            self.title("node.title", title);
        }
        self.position("node.position", node.position);
        self.side("node.width", node.width);
        self.side("node.height", node.height);
        let metadata = self.metadata("node.metadata", node.metadata);
        for (key, message) in metadata.unfit_for(node.kind) {
            self.refuse(&format!("node.metadata.{key}"), message);
        }
        let (width, height) = node.kind.default_size();
        Draft {
            kind: node.kind,
            title: node.title.unwrap_or_else(|| node.kind.to_string()),
            position: node.position,
            width: node.width.unwrap_or(width),
            height: node.height.unwrap_or(height),
            metadata,
            given: Given::default(),
        }
    }

    fn patch(&mut self, patch: NodePatch) -> Patch {
        if patch == NodePatch::default() {
            self.refuse("patch", "must change at least one of title, width, height, metadata and type");
        }
        if let Some(title) = &patch.title {
            self.title("patch.title", title);
        }
        self.side("patch.width", patch.width);
        self.side("patch.height", patch.height);
        let metadata = self.metadata("patch.metadata", patch.metadata);
        match patch.kind {
            Some(kind) if !kind.holds_text() => self.refuse("patch.type", "must be `text` or `sticky`"),
            Some(kind) => {
                for (key, message) in metadata.unfit_for(kind) {
                    self.refuse(&format!("patch.metadata.{key}"), message);
                }
            }
            None => {}
        }
        Patch { title: patch.title, width: patch.width, height: patch.height, metadata, kind: patch.kind }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::{batch, fields, operations};

    fn refused(list: Value) -> Vec<String> {
        let violations = Batch::new(operations(list)).expect_err("violations");
        fields(&violations).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_batch_has_1_to_200_operations() {
        let of = |count| Value::from(vec![json!({"type": "canvas.update", "title": "a"}); count]);
        assert_eq!(batch(of(1)).operation_count(), 1);
        assert_eq!(batch(of(200)).operation_count(), 200);
        assert_eq!(refused(of(0)), ["operations"]);
        assert_eq!(refused(of(201)), ["operations"]);
        let mut many = vec![json!({"type": "canvas.update", "title": "a"}); 200];
        many.push(json!({"type": "node.delete", "nodeId": "a b"}));
        assert_eq!(refused(many.into()), ["operations", "operations[200].nodeId"]);
    }

    #[test]
    fn a_client_id_is_a_plain_id_and_unique_among_nodes_and_connections() {
        let create = |client_id: &str| json!({"type": "node.create", "clientId": client_id, "node": {"type": "text"}});
        let connect = |client_id: &str| json!({"type": "connection.create", "clientId": client_id, "fromNodeId": "a", "toNodeId": "b"});
        let copy = |client_id: &str| json!({"type": "node.duplicate", "clientId": client_id, "nodeId": "n", "position": {"x": 0, "y": 0}});
        batch(json!([create("a"), connect("b"), copy(&"c".repeat(180))]));
        assert_eq!(
            refused(json!([
                create("a"),
                connect("a"),
                copy("a"),
                create(""),
                create("node:b"),
                copy(&"c".repeat(181))
            ])),
            [1, 2, 3, 4, 5].map(|at| format!("operations[{at}].clientId"))
        );
    }

    #[test]
    fn ids_are_plain_ids_or_handles_of_their_kind() {
        batch(json!([
            {"type": "node.delete", "nodeId": "n"},
            {"type": "node.delete", "nodeId": "node:n"},
            {"type": "connection.delete", "connectionId": "connection:c"},
        ]));
        assert_eq!(
            refused(json!([
                {"type": "node.delete", "nodeId": "connection:n"},
                {"type": "node.update", "nodeId": "", "patch": {"title": "a"}},
                {"type": "node.move", "nodeId": "a b", "position": {"x": 0, "y": 0}},
                {"type": "node.duplicate", "nodeId": "node:", "position": {"x": 0, "y": 0}},
                {"type": "connection.create", "fromNodeId": "ä", "toNodeId": "node:node:a"},
                {"type": "connection.update", "connectionId": "node:c"},
                {"type": "connection.delete", "connectionId": "x".repeat(181)},
            ])),
            [
                "operations[0].nodeId",
                "operations[1].nodeId",
                "operations[2].nodeId",
                "operations[3].nodeId",
                "operations[4].fromNodeId",
                "operations[4].toNodeId",
                "operations[5].connectionId",
                "operations[6].connectionId",
            ]
        );
    }

    #[test]
    fn positions_and_sizes_keep_to_their_ranges() {
        let create = |x: f64, y: f64, width: f64, height: f64| {
            json!([{"type": "node.create", "node":
                {"type": "image", "position": {"x": x, "y": y}, "width": width, "height": height}}])
        };
        batch(create(1e7, -1e7, 1.0, 100_000.0));
        assert_eq!(
            refused(create(10_000_000.1, -10_000_000.1, 0.9, 100_000.1)),
            ["position.x", "position.y", "width", "height"].map(|field| format!("operations[0].node.{field}"))
        );
        assert_eq!(
            refused(json!([
                {"type": "node.move", "nodeId": "n", "position": {"x": 1e8, "y": 0}},
                {"type": "node.duplicate", "nodeId": "n", "position": {"x": 0, "y": -1e8}},
                {"type": "node.update", "nodeId": "n", "patch": {"width": 0, "height": 1e6}},
            ])),
            [
                "operations[0].position.x",
                "operations[1].position.y",
                "operations[2].patch.width",
                "operations[2].patch.height",
            ]
        );
    }

    #[test]
    fn a_number_that_is_none_is_out_of_range() {
        let position = Position { x: f64::NAN, y: f64::INFINITY };
        let violations =
            Batch::new(vec![Operation::NodeMove { node_id: "n".into(), position }]).expect_err("violations");
        assert_eq!(fields(&violations), ["operations[0].position.x", "operations[0].position.y"]);
    }

    #[test]
    fn a_title_has_at_most_160_characters() {
        let titles = |title: &str| {
            json!([
                {"type": "node.create", "node": {"type": "text", "title": title}},
                {"type": "node.update", "nodeId": "n", "patch": {"title": title}},
                {"type": "canvas.update", "title": title},
            ])
        };
        batch(titles(""));
        batch(titles(&"ä".repeat(160)));
        for wrong in ["a".repeat(161), "a\0".into()] {
            assert_eq!(
                refused(titles(&wrong)),
                ["operations[0].node.title", "operations[1].patch.title", "operations[2].title"]
            );
        }
    }

    #[test]
    fn an_empty_patch_is_refused() {
        assert_eq!(refused(json!([{"type": "node.update", "nodeId": "n", "patch": {}}])), ["operations[0].patch"]);
        batch(json!([{"type": "node.update", "nodeId": "n", "patch": {"metadata": {}}}]));
    }

    #[test]
    fn a_type_is_patched_to_text_or_sticky_only() {
        let patch = |kind: &str| json!([{"type": "node.update", "nodeId": "n", "patch": {"type": kind}}]);
        batch(patch("text"));
        batch(patch("sticky"));
        assert_eq!(refused(patch("image")), ["operations[0].patch.type"]);
        assert_eq!(refused(patch("video")), ["operations[0].patch.type"]);
    }

    #[test]
    fn content_and_section_are_judged_by_the_type_that_the_request_names() {
        let create = |kind: &str, metadata: Value| json!([{"type": "node.create", "node": {"type": kind, "metadata": metadata}}]);
        for kind in ["image", "video"] {
            batch(create(kind, json!({"content": "", "section": false})));
            assert_eq!(refused(create(kind, json!({"content": "a"}))), ["operations[0].node.metadata.content"]);
        }
        for kind in ["text", "sticky"] {
            batch(create(kind, json!({"content": "a"})));
        }
        batch(create("sticky", json!({"section": true})));
        for kind in ["image", "video", "text"] {
            assert_eq!(refused(create(kind, json!({"section": true}))), ["operations[0].node.metadata.section"]);
        }
        let patch =
            json!([{"type": "node.update", "nodeId": "n", "patch": {"type": "text", "metadata": {"section": true}}}]);
        assert_eq!(refused(patch), ["operations[0].patch.metadata.section"]);
    }

    #[test]
    fn a_role_needs_the_purpose_reference() {
        let connect = |more: Value| {
            let mut operation =
                json!({"type": "connection.create", "fromNodeId": "a", "toNodeId": "b", "role": "style"});
            operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            json!([operation])
        };
        batch(connect(json!({"purpose": "reference"})));
        assert_eq!(refused(connect(json!({}))), ["operations[0].role"]);
        assert_eq!(refused(connect(json!({"purpose": "list"}))), ["operations[0].role"]);
        let update = |purpose: Value, role: Value| json!([{"type": "connection.update", "connectionId": "c", "purpose": purpose, "role": role}]);
        batch(update(json!("reference"), json!("fit")));
        batch(update(json!("flow"), Value::Null));
        batch(json!([{"type": "connection.update", "connectionId": "c", "role": "fit"}]));
        assert_eq!(refused(update(json!("flow"), json!("fit"))), ["operations[0].role"]);
    }

    #[test]
    fn metadata_violations_carry_their_path() {
        assert_eq!(
            refused(json!([
                {"type": "canvas.update", "title": "a"},
                {"type": "node.create", "node": {"type": "text", "metadata": {"job": {}, "mood": "x"}}},
                {"type": "node.update", "nodeId": "n", "patch": {"metadata": {"count": 5}}},
            ])),
            [
                "operations[1].node.metadata.job",
                "operations[1].node.metadata.mood",
                "operations[2].patch.metadata.count",
            ]
        );
    }
}
