//! A batch of operations that breaks no rule which depends on the request alone; such violations are answered with 400.
//!
//! Constructing a [`Batch`] is the check: ids are parsed, sizes and texts are within their limits, metadata is in its
//! stored form. The engine accepts nothing else, so that every rule is checked exactly once.

mod layout;

use std::collections::HashSet;
use std::str::FromStr;

use domain::Violation;
use domain::graph::{NodeType, Position, Purpose, Role};
use domain::id::{AssetHandle, AssetRef, ConnectionId, MalformedId, NodeId, is_plain_id};
use domain::limits::{COORDINATE_MAX, NODE_SIDE_MAX, OPERATIONS_MAX, TITLE_MAX, VIOLATIONS_COUNTED_MAX};
use domain::metadata::ServerMetadata;
use domain::operation::{Arrangement, NewNode, NodePatch, Operation};
use serde_json::{Map, Value};

use crate::graph::Graph;
use crate::metadata::{Home, MetadataPatch, SECTION_IN_SECTION, is_text};
use crate::placement::Style;
use crate::reference::Ref;

/// Operations that can be applied to a graph, in order.
#[derive(Clone, Debug)]
pub struct Batch {
    pub(crate) steps: Vec<Step>,
    /// Where the new nodes without a place go, if they are the targets of work.
    pub(crate) aim: Option<Aim>,
}

/// Where the targets of work go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aim {
    /// Where the first one is wanted.
    pub(crate) at: Option<Position>,
    /// What the work reads, or otherwise the node that they are to be near.
    pub(crate) sources: Vec<NodeId>,
}

impl Batch {
    /// Checks operations without a graph: 1 to 200 of them, well-formed ids, unique `clientId`s, positions, sizes,
    /// titles and metadata within their limits. The error lists every violation, each under a path such as
    /// `operations[3].node.width`. Once there are [`VIOLATIONS_COUNTED_MAX`] violations, further operations are not checked.
    pub fn new(operations: Vec<Operation>) -> Result<Self, Vec<Violation>> {
        let mut check = Check::default();
        if !(1..=OPERATIONS_MAX).contains(&operations.len()) {
            check.violations.push(Violation::new("operations", format!("must hold 1 to {OPERATIONS_MAX} operations")));
        }
        let mut steps = Vec::with_capacity(operations.len());
        for (at, operation) in operations.into_iter().enumerate() {
            if check.violations.len() >= VIOLATIONS_COUNTED_MAX {
                break;
            }
            check.at = at;
            steps.extend(check.step(operation));
        }
        if check.violations.is_empty() { Ok(Self::of(steps)) } else { Err(check.violations) }
    }

    pub(crate) fn of(steps: Vec<Step>) -> Self {
        Self { steps, aim: None }
    }

    pub fn operation_count(&self) -> usize {
        self.steps.len()
    }

    /// The ids of the nodes and connections that it restores.
    pub fn restored(&self) -> (Vec<NodeId>, Vec<ConnectionId>) {
        let (mut nodes, mut connections) = (Vec::new(), Vec::new());
        for step in &self.steps {
            match step {
                Step::RestoreNode { node } => nodes.push(node.id.clone()),
                Step::RestoreConnection { connection } => connections.push(connection.id.clone()),
                _ => {}
            }
        }
        (nodes, connections)
    }

    /// Returns `true` if `graph` holds all that its effect depends on: it restores nothing, and needs no image.
    pub fn depends_on_graph_alone(&self, graph: &Graph) -> bool {
        let restores = |step: &Step| matches!(step, Step::RestoreNode { .. } | Step::RestoreConnection { .. });
        !self.steps.iter().any(restores) && self.assets().next().is_none() && self.sizing_images(graph).is_empty()
    }

    /// The images whose ratio it may need, because it sets the width of a node and not its height.
    pub fn sizing_images<'a>(&self, graph: &'a Graph) -> HashSet<&'a AssetHandle> {
        let sets_width = |step: &Step| match step {
            Step::UpdateNode { patch, .. } => patch.follows_image(),
            Step::Arrange { style, .. } => style.layout == Arrangement::Masonry,
            _ => false,
        };
        if !self.steps.iter().any(sets_width) {
            return HashSet::new();
        }
        // Nodes of a new Section may be arranged by its `clientId`.
        let may_arrange = |step: &Step| sets_width(step) || matches!(step, Step::CreateSection { .. });
        let arranged = self.steps.iter().filter(|step| may_arrange(step)).flat_map(|step| match step {
            Step::Arrange { what: Arranged::Nodes(nodes), .. } | Step::CreateSection { nodes, .. } => {
                nodes.iter().filter_map(|node| graph.node(&node.id)).collect::<Vec<_>>()
            }
            Step::Arrange { what: Arranged::Section(section), .. } => graph.members(&section.id).collect(),
            _ => Vec::new(),
        });
        let arranged = arranged.filter_map(|node| node.asset.as_ref());
        // A `clientId` may name a copy.
        let named = self.steps.iter().filter_map(|step| match step {
            Step::UpdateNode { node, .. } | Step::DuplicateNode { node, .. } | Step::RestoreNode { node } => {
                Some(&node.id)
            }
            _ => None,
        });
        named.filter_map(|id| graph.present_or_deleted(id)?.asset.as_ref()).chain(arranged).collect()
    }

    /// The assets that it makes nodes show, as the request names them.
    pub fn assets(&self) -> impl Iterator<Item = &AssetRef> {
        self.steps.iter().filter_map(|step| match step {
            Step::CreateNode { draft, .. } => draft.asset.as_ref(),
            Step::UpdateNode { patch, .. } => patch.asset.as_ref(),
            _ => None,
        })
    }
}

/// An operation whose parts are parsed.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    CreateNode {
        client_id: Option<String>,
        draft: Box<Draft>,
    },
    UpdateNode {
        node: Ref<NodeId>,
        patch: Patch,
    },
    MoveNode {
        node: Ref<NodeId>,
        position: Position,
        with_members: bool,
    },
    DuplicateNode {
        node: Ref<NodeId>,
        client_id: Option<String>,
        position: Position,
    },
    DeleteNode {
        node: Ref<NodeId>,
    },
    RestoreNode {
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
    RestoreConnection {
        connection: Ref<ConnectionId>,
    },
    Arrange {
        what: Arranged,
        style: Style,
        goal: Goal,
    },
    FitNode {
        node: Ref<NodeId>,
    },
    FitSection {
        section: Ref<NodeId>,
        padding: f64,
    },
    CreateSection {
        client_id: Option<String>,
        title: String,
        nodes: Vec<Ref<NodeId>>,
        goal: Goal,
    },
    RenameCanvas {
        title: String,
    },
}

/// The nodes to arrange.
#[derive(Clone, Debug)]
pub(crate) enum Arranged {
    Nodes(Vec<Ref<NodeId>>),
    /// The members of this Section.
    Section(Ref<NodeId>),
}

/// Where a layout operation puts its nodes.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// Where they are, or where new nodes are placed.
    Unset,
    Near(Ref<NodeId>),
    At(Position),
}

/// A node to create, with its defaults.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) kind: NodeType,
    pub(crate) title: String,
    /// `None`: the engine places it.
    pub(crate) position: Option<Position>,
    pub(crate) near: Option<Ref<NodeId>>,
    /// Width and height; `None` for a side that has its default.
    pub(crate) width: Option<f64>,
    pub(crate) height: Option<f64>,
    pub(crate) metadata: MetadataPatch,
    /// The field that names its Section.
    pub(crate) section_field: &'static str,
    /// The asset that it shows, as the request names it.
    pub(crate) asset: Option<AssetRef>,
    pub(crate) given: Given,
}

impl Draft {
    /// Returns `true` if nothing says where it is but its Section.
    pub(crate) fn is_bare(&self) -> bool {
        self.position.is_none() && self.near.is_none()
    }
}

/// Values that the service itself sets on a node that it creates. None of them comes from a request's operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// Its id, if others must name it before it is created.
    pub(crate) id: Option<NodeId>,
    /// `true` if it must lie within its Section.
    pub(crate) contained: bool,
    pub(crate) server: ServerMetadata,
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
    /// The asset that a video node shows from now on, as the request names it.
    pub(crate) asset: Option<AssetRef>,
}

impl Patch {
    /// Returns `true` if the height of a node follows its new width, if it shows an image.
    pub(crate) fn follows_image(&self) -> bool {
        self.width.is_some() && self.height.is_none()
    }

    /// A patch of both sides.
    pub(crate) fn of_size((width, height): (f64, f64)) -> Self {
        let metadata = MetadataPatch::default();
        Self { title: None, width: Some(width), height: Some(height), metadata, kind: None, asset: None }
    }
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
            Operation::NodeCreate { client_id, node, near, section_id } => {
                self.client_id(client_id.as_deref());
                Some(Step::CreateNode { client_id, draft: Box::new(self.draft(node, near, section_id)) })
            }
            Operation::NodeUpdate { node_id, patch } => {
                let node = self.reference("nodeId", &node_id);
                let patch = self.patch(patch);
                Some(Step::UpdateNode { node: node?, patch })
            }
            Operation::NodeMove { node_id, position, with_members } => {
                let node = self.reference("nodeId", &node_id);
                self.position("position", position);
                Some(Step::MoveNode { node: node?, position, with_members })
            }
            Operation::NodeDuplicate { node_id, client_id, position } => {
                let node = self.reference("nodeId", &node_id);
                self.client_id(client_id.as_deref());
                self.position("position", position);
                Some(Step::DuplicateNode { node: node?, client_id, position })
            }
            Operation::NodeDelete { node_id } => Some(Step::DeleteNode { node: self.reference("nodeId", &node_id)? }),
            Operation::NodeRestore { node_id } => Some(Step::RestoreNode { node: self.reference("nodeId", &node_id)? }),
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
            Operation::ConnectionRestore { connection_id } => {
                Some(Step::RestoreConnection { connection: self.reference("connectionId", &connection_id)? })
            }
            Operation::LayoutArrange { node_ids, section_id, layout, gap, columns, align, direction, near, x, y } => {
                let what = self.arranged(node_ids, section_id);
                let style = self.style(layout, gap, columns, align, direction);
                let goal = self.goal(near, x, y);
                Some(Step::Arrange { what: what?, style, goal: goal? })
            }
            Operation::NodeFit { node_id } => Some(Step::FitNode { node: self.reference("nodeId", &node_id)? }),
            Operation::SectionFit { node_id, padding } => {
                let section = self.reference("nodeId", &node_id);
                self.distance("padding", padding);
                Some(Step::FitSection { section: section?, padding })
            }
            Operation::SectionCreate { client_id, title, node_ids, near, x, y } => {
                let nodes = node_ids.map_or(Some(Vec::new()), |ids| self.nodes(&ids));
                let goal = self.goal(near, x, y);
                self.client_id(client_id.as_deref());
                self.title("title", &title);
                Some(Step::CreateSection { client_id, title, nodes: nodes?, goal: goal? })
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
        self.coordinates(&format!("{field}."), position);
    }

    /// The coordinates of a position whose fields begin with `prefix`.
    fn coordinates(&mut self, prefix: &str, position: Position) {
        for (axis, value) in [("x", position.x), ("y", position.y)] {
            if !(-COORDINATE_MAX..=COORDINATE_MAX).contains(&value) {
                let message = format!("must be a number from -{COORDINATE_MAX} to {COORDINATE_MAX}");
                self.refuse(&format!("{prefix}{axis}"), message);
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

    fn draft(&mut self, node: NewNode, near: Option<String>, section_id: Option<String>) -> Draft {
        if let Some(title) = &node.title {
            self.title("node.title", title);
        }
        if let Some(position) = node.position {
            self.position("node.position", position);
        }
        self.side("node.width", node.width);
        self.side("node.height", node.height);
        let mut metadata = self.metadata("node.metadata", node.metadata);
        for (key, message) in metadata.unfit_for(node.kind) {
            self.refuse(&format!("node.metadata.{key}"), message);
        }
        let near = near.and_then(|near| self.reference("near", &near));
        if near.is_some() && node.position.is_some() {
            self.refuse("near", "must be omitted when `node.position` is given");
        }
        let mut section_field = "node.metadata.sectionId";
        if let Some(section) = section_id.and_then(|section| self.reference("sectionId", &section)) {
            if metadata.home != Home::Keep {
                self.refuse("sectionId", "must be omitted when `node.metadata.sectionId` is given");
            } else if metadata.makes_section() {
                self.refuse("sectionId", SECTION_IN_SECTION);
            }
            metadata.home = Home::Join(section);
            section_field = "sectionId";
        }
        if node.asset.is_some() && node.kind.holds_text() {
            self.refuse("node.asset", "must be omitted unless the type is `image` or `video`");
        }
        let asset = node.asset.and_then(|asset| self.asset("node.asset", &asset));
        Draft {
            kind: node.kind,
            title: node.title.unwrap_or_else(|| node.kind.to_string()),
            position: node.position,
            near,
            width: node.width,
            height: node.height,
            metadata,
            section_field,
            asset,
            given: Given::default(),
        }
    }

    fn asset(&mut self, field: &str, text: &str) -> Option<AssetRef> {
        let asset = AssetRef::parse(text).ok().filter(|_| text.contains(':'));
        if asset.is_none() {
            self.refuse(field, "must be `asset:<id>` or `asset:<ownerUid>:<id>`");
        }
        asset
    }

    fn patch(&mut self, patch: NodePatch) -> Patch {
        if patch == NodePatch::default() {
            self.refuse("patch", "must change at least one of title, width, height, metadata, type and asset");
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
        let asset = patch.asset.and_then(|asset| self.asset("patch.asset", &asset));
        Patch { title: patch.title, width: patch.width, height: patch.height, metadata, kind: patch.kind, asset }
    }
}

#[cfg(test)]
mod tests;
