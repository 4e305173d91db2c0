//! The rules of nodes, metadata and operations over plain lists: every lookup is a scan, every report a comparison of
//! whole states. Rules: `docs/reference/operations.md`.

use std::collections::HashSet;

use domain::graph::{Connection, Node, NodeType, Purpose};
use domain::id::NodeId;
use domain::metadata::ServerMetadata;
use domain::operation::Operation;
use serde_json::{Map, Value};

use crate::Options;
use crate::fixture::{cid, id, members, written};
use crate::geometry::SECTION_SIZE;

#[derive(Debug)]
pub(super) struct Expected {
    pub(super) title: String,
    pub(super) nodes: Vec<Node>,
    pub(super) connections: Vec<Connection>,
    pub(super) changed_nodes: Vec<String>,
    pub(super) deleted_nodes: Vec<String>,
    pub(super) changed_connections: Vec<String>,
    pub(super) deleted_connections: Vec<String>,
    pub(super) client_ids: Vec<String>,
}

#[derive(Debug)]
pub(super) struct ModelError {
    pub(super) is_invalid: bool,
    pub(super) fields: Vec<String>,
}

#[derive(Clone)]
struct State {
    title: String,
    nodes: Vec<Node>,
    connections: Vec<Connection>,
}

/// A violated rule: its status and the end of its field path.
type Broken = (u16, &'static str);

struct Model {
    state: State,
    options: Options,
    failed: HashSet<String>,
    client_ids: Vec<String>,
}

/// The expected result of the batch. The operation at index `i` creates the id `c<i>`, which is also its `clientId`.
pub(super) fn run(operations: &[Operation], options: Options) -> Result<Expected, ModelError> {
    let (nodes, connections) = super::start();
    let start = State { title: "Board".into(), nodes, connections };
    let mut model = Model { state: start.clone(), options, failed: HashSet::new(), client_ids: Vec::new() };
    let mut broken: Vec<(u16, String)> = Vec::new();
    let mut touched_nodes: Vec<String> = Vec::new();
    let mut touched_connections: Vec<String> = Vec::new();
    for (at, operation) in operations.iter().enumerate() {
        let before = model.state.clone();
        let name = format!("c{at}");
        match model.step(operation, &name) {
            Ok(true) => model.client_ids.push(name),
            Ok(false) => {}
            Err(rules) => {
                model.state = before;
                if makes(operation) {
                    model.failed.insert(name);
                }
                broken.extend(rules.into_iter().map(|(status, field)| (status, format!("operations[{at}].{field}"))));
                continue;
            }
        }
        touch(&mut touched_nodes, differing(&before.nodes, &model.state.nodes, |node| node.id.to_string()));
        touch(
            &mut touched_connections,
            differing(&before.connections, &model.state.connections, |link| link.id.to_string()),
        );
    }
    if !broken.is_empty() {
        let mut fields: Vec<String> = broken.iter().map(|(_, field)| field.clone()).collect();
        fields.sort();
        return Err(ModelError { is_invalid: broken.iter().any(|(status, _)| *status == 400), fields });
    }
    let net_nodes = differing(&start.nodes, &model.state.nodes, |node| node.id.to_string());
    let net_links = differing(&start.connections, &model.state.connections, |link| link.id.to_string());
    touched_nodes.retain(|id| net_nodes.contains(id));
    touched_connections.retain(|id| net_links.contains(id));
    let (changed_nodes, deleted_nodes) =
        touched_nodes.into_iter().partition(|touched| model.state.nodes.iter().any(|node| node.id.as_str() == touched));
    let (changed_connections, deleted_connections) = touched_connections
        .into_iter()
        .partition(|touched| model.state.connections.iter().any(|link| link.id.as_str() == touched));
    model.client_ids.sort();
    Ok(Expected {
        title: model.state.title,
        nodes: model.state.nodes,
        connections: model.state.connections,
        changed_nodes,
        deleted_nodes,
        changed_connections,
        deleted_connections,
        client_ids: model.client_ids,
    })
}

fn makes(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::NodeCreate { .. } | Operation::NodeDuplicate { .. } | Operation::ConnectionCreate { .. }
    )
}

fn touch(touched: &mut Vec<String>, ids: Vec<String>) {
    for id in ids {
        if !touched.contains(&id) {
            touched.push(id);
        }
    }
}

/// The ids that are in one list only or differ: deleted and new ones first, because one operation deletes or restores the
/// node that it names and changes others with it.
fn differing<T: PartialEq>(before: &[T], after: &[T], id: impl Fn(&T) -> String) -> Vec<String> {
    let is_gone = |old: &&T| !after.iter().any(|new| id(new) == id(old));
    let mut ids: Vec<String> = before.iter().filter(is_gone).map(&id).collect();
    let is_new = |new: &&T| !before.iter().any(|old| id(old) == id(new));
    touch(&mut ids, after.iter().filter(is_new).map(&id).collect());
    touch(&mut ids, after.iter().filter(|new| !before.contains(new)).map(&id).collect());
    ids
}

/// The nodes and connections that were there before the batch or had been deleted, in the order of creation.
const NODES: &[&str] = &["d0", "n0", "n1", "n2", "n3", "d1", "n4", "n5", "n6", "n7", "d2"];
const CONNECTIONS: &[&str] = &["e0", "k0", "k1", "e1", "k2", "k3", "k4", "e2"];

/// The place of an id in the order of creation. What the batch creates comes last, and a stable sort keeps its order.
fn place(known: &[&str], id: &str) -> usize {
    known.iter().position(|other| *other == id).unwrap_or(known.len())
}

impl Model {
    /// Returns `true` if the operation created something; or the rules that it breaks, none when it depends on a failed
    /// operation.
    fn step(&mut self, operation: &Operation, name: &str) -> Result<bool, Vec<Broken>> {
        match operation {
            Operation::NodeCreate { node, section_id, .. } => {
                let mut metadata = Map::new();
                if let Some(given) = &node.metadata {
                    self.merge(&mut metadata, given, "node.metadata.sectionId")?;
                }
                if let Some(section) = section_id {
                    let given = Map::from_iter([("sectionId".to_owned(), section.clone().into())]);
                    self.merge(&mut metadata, &given, "sectionId")?;
                }
                let is_section = metadata.get("section") == Some(&Value::Bool(true));
                let (width, height) = if is_section { SECTION_SIZE } else { node.kind.default_size() };
                self.state.nodes.push(Node {
                    id: id(name),
                    short: None,
                    kind: node.kind,
                    title: node.kind.to_string(),
                    position: node.position.expect("a position"),
                    width,
                    height,
                    agent_owned: self.options.agent,
                    metadata: written(metadata.into()),
                    server: Default::default(),
                    asset: None,
                    active_job: None,
                });
                Ok(true)
            }
            Operation::NodeUpdate { node_id, patch } => {
                let at = self.node(node_id, "nodeId")?;
                let old = self.state.nodes[at].clone();
                let mut new = old.clone();
                let mut broken = Vec::new();
                let mut dependent = false;
                if let Some(title) = &patch.title {
                    new.title.clone_from(title);
                }
                new.width = patch.width.unwrap_or(new.width);
                if let Some(kind) = patch.kind
                    && kind != old.kind
                {
                    if matches!(old.kind, NodeType::Image | NodeType::Video) {
                        broken.push((422, "patch.type"));
                    } else {
                        new.kind = kind;
                        if old.active_job.is_some() {
                            broken.push((422, "patch.type"));
                        }
                    }
                }
                if let Some(given) = &patch.metadata {
                    let mut metadata = members(&new.metadata);
                    if let Err(rules) = self.merge(&mut metadata, given, "patch.metadata.sectionId") {
                        dependent = true;
                        broken.extend(rules);
                    }
                    new.metadata = written(metadata.into());
                    let joins = given.get("sectionId").is_some_and(|section| !section.is_null());
                    if matches!(new.kind, NodeType::Image | NodeType::Video)
                        && given.get("content").is_some_and(|content| content == "c")
                    {
                        broken.push((400, "patch.metadata.content"));
                    }
                    if given.get("section") == Some(&Value::Bool(true)) && new.kind != NodeType::Sticky {
                        broken.push((400, "patch.metadata.section"));
                    }
                    if new.is_section() && joins {
                        broken.push((400, "patch.metadata.sectionId"));
                    } else if new.is_section() && new.section_id().is_some() {
                        broken.push((400, "patch.metadata.section"));
                    }
                }
                if old.is_section() && !new.is_section() {
                    let has_members = self.state.nodes.iter().any(|node| node.section_id() == Some(old.id.as_str()));
                    if new.metadata.section.is_some() {
                        broken.push((422, "patch.type"));
                    } else if has_members {
                        broken.push((422, "patch.metadata.section"));
                    }
                    if new.section_id() == Some(old.id.as_str()) {
                        broken.push((422, "patch.metadata.sectionId"));
                    }
                }
                if dependent || !broken.is_empty() {
                    return Err(broken);
                }
                self.state.nodes[at] = new;
                Ok(false)
            }
            Operation::NodeMove { node_id, position, with_members } => {
                let at = self.node(node_id, "nodeId")?;
                let Node { id, position: from, .. } = self.state.nodes[at].clone();
                if *with_members && !self.state.nodes[at].is_section() {
                    return Err(vec![(422, "withMembers")]);
                }
                self.state.nodes[at].position = *position;
                let is_member = |node: &&mut Node| *with_members && node.section_id() == Some(id.as_str());
                for member in self.state.nodes.iter_mut().filter(is_member) {
                    member.position.x += position.x - from.x;
                    member.position.y += position.y - from.y;
                }
                Ok(false)
            }
            Operation::LayoutArrange { .. }
            | Operation::NodeFit { .. }
            | Operation::SectionFit { .. }
            | Operation::SectionCreate { .. } => {
                unreachable!("layouts have properties of their own")
            }
            Operation::NodeDuplicate { node_id, position, .. } => {
                let at = self.node(node_id, "nodeId")?;
                let mut copy = self.state.nodes[at].clone();
                copy.id = id(name);
                copy.short = None;
                copy.position = *position;
                copy.agent_owned = self.options.agent;
                copy.active_job = None;
                copy.server = ServerMetadata { content: copy.server.content.clone(), ..Default::default() }.into();
                self.state.nodes.push(copy);
                Ok(true)
            }
            Operation::NodeDelete { node_id } => {
                let at = self.node(node_id, "nodeId")?;
                if self.state.nodes[at].active_job.is_some() && !self.options.force {
                    return Err(vec![(422, "nodeId")]);
                }
                let gone = self.state.nodes.remove(at);
                self.state.connections.retain(|link| link.from != gone.id && link.to != gone.id);
                for node in &mut self.state.nodes {
                    if node.section_id() == Some(gone.id.as_str()) {
                        node.metadata.section_id = None;
                    }
                }
                Ok(false)
            }
            Operation::NodeRestore { node_id } => {
                let (mut node, members) = self.deleted_node(node_id)?;
                if node.active_job.take().is_some() {
                    node.server.job = None;
                }
                let is_section = |section: &str| {
                    self.state.nodes.iter().any(|node| node.id.as_str() == section && node.is_section())
                };
                if node.section_id().is_some_and(|section| !is_section(section)) {
                    node.metadata.section_id = None;
                }
                for member in &mut self.state.nodes {
                    if members.contains(&member.id) && !member.is_section() && member.section_id().is_none() {
                        member.metadata.section_id = Some(node.id.clone());
                    }
                }
                self.state.nodes.push(node);
                self.state.nodes.sort_by_key(|node| place(NODES, node.id.as_str()));
                Ok(false)
            }
            Operation::ConnectionRestore { connection_id } => {
                let link = self.deleted_connection(connection_id)?;
                let is_there = |id: &NodeId| self.state.nodes.iter().any(|node| node.id == *id);
                if !is_there(&link.from) || !is_there(&link.to) {
                    return Err(vec![(422, "connectionId")]);
                }
                self.may_stand(&link, "connectionId", "connectionId")?;
                self.state.connections.push(link);
                self.state.connections.sort_by_key(|link| place(CONNECTIONS, link.id.as_str()));
                Ok(false)
            }
            Operation::ConnectionCreate { from_node_id, to_node_id, purpose, role, .. } => {
                let (from, to) = (self.node(from_node_id, "fromNodeId"), self.node(to_node_id, "toNodeId"));
                let (from, to) = match (from, to) {
                    (Ok(from), Ok(to)) => (from, to),
                    (from, to) => return Err([from.err(), to.err()].into_iter().flatten().flatten().collect()),
                };
                if from == to {
                    return Err(vec![(422, "toNodeId")]);
                }
                let link = Connection {
                    id: cid(name),
                    short: None,
                    from: self.state.nodes[from].id.clone(),
                    to: self.state.nodes[to].id.clone(),
                    purpose: purpose.unwrap_or(Purpose::Flow),
                    role: *role,
                };
                self.may_stand(&link, "fromNodeId", "toNodeId")?;
                self.state.connections.push(link);
                Ok(true)
            }
            Operation::ConnectionUpdate { connection_id, purpose, role } => {
                let at = self.connection(connection_id)?;
                let mut link = self.state.connections[at].clone();
                let old = link.purpose;
                link.purpose = purpose.unwrap_or(old);
                if let Some(role) = role {
                    link.role = *role;
                    if role.is_some() && link.purpose != Purpose::Reference {
                        return Err(vec![(400, "role")]);
                    }
                }
                if link.purpose != Purpose::Reference {
                    link.role = None;
                }
                if link.purpose != old {
                    self.may_stand(&link, "purpose", "purpose")?;
                }
                self.state.connections[at] = link;
                Ok(false)
            }
            Operation::ConnectionDelete { connection_id } => {
                let at = self.connection(connection_id)?;
                self.state.connections.remove(at);
                Ok(false)
            }
            Operation::CanvasUpdate { title } => {
                self.state.title.clone_from(title);
                Ok(false)
            }
        }
    }

    fn node(&self, text: &str, field: &'static str) -> Result<usize, Vec<Broken>> {
        if self.failed.contains(text) {
            return Err(Vec::new());
        }
        let plain = text.trim_start_matches("node:");
        self.state.nodes.iter().position(|node| node.id.as_str() == plain).ok_or_else(|| vec![(422, field)])
    }

    fn connection(&self, text: &str) -> Result<usize, Vec<Broken>> {
        if self.failed.contains(text) {
            return Err(Vec::new());
        }
        let plain = text.trim_start_matches("connection:");
        let found = self.state.connections.iter().position(|link| link.id.as_str() == plain);
        found.ok_or_else(|| vec![(422, "connectionId")])
    }

    /// A deleted node and its members, before the batch or in it.
    fn deleted_node(&self, text: &str) -> Result<(Node, Vec<NodeId>), Vec<Broken>> {
        if self.failed.contains(text) {
            return Err(Vec::new());
        }
        let plain = text.trim_start_matches("node:");
        if self.state.nodes.iter().any(|node| node.id.as_str() == plain) {
            return Err(vec![(422, "nodeId")]);
        }
        let (nodes, _) = super::start();
        if let Some(node) = nodes.iter().find(|node| node.id.as_str() == plain) {
            let members = nodes.iter().filter(|other| other.section_id() == Some(plain));
            return Ok((node.clone(), members.map(|member| member.id.clone()).collect()));
        }
        let deleted = super::deleted().0.into_iter().find(|deleted| deleted.node.id.as_str() == plain);
        deleted.map(|deleted| (deleted.node, deleted.members)).ok_or_else(|| vec![(422, "nodeId")])
    }

    fn deleted_connection(&self, text: &str) -> Result<Connection, Vec<Broken>> {
        if self.failed.contains(text) {
            return Err(Vec::new());
        }
        let plain = text.trim_start_matches("connection:");
        if self.state.connections.iter().any(|link| link.id.as_str() == plain) {
            return Err(vec![(422, "connectionId")]);
        }
        let earlier = super::deleted().1.into_iter().map(|deleted| deleted.connection);
        let mut known = super::start().1.into_iter().chain(earlier);
        known.find(|link| link.id.as_str() == plain).ok_or_else(|| vec![(422, "connectionId")])
    }

    fn may_stand(&self, link: &Connection, from: &'static str, to: &'static str) -> Result<(), Vec<Broken>> {
        let kind = |id: &NodeId| self.state.nodes.iter().find(|node| node.id == *id).expect("an end").kind;
        let is_frame = matches!(link.purpose, Purpose::FirstFrame | Purpose::LastFrame);
        let mut broken = Vec::new();
        if link.purpose == Purpose::Reference && kind(&link.from) == NodeType::Video {
            broken.push((422, from));
        }
        if is_frame && kind(&link.from) != NodeType::Image {
            broken.push((422, from));
        }
        if is_frame && kind(&link.to) != NodeType::Video {
            broken.push((422, to));
        }
        let taken = |other: &&Connection| {
            other.to == link.to && other.purpose == link.purpose && (is_frame || other.from == link.from)
        };
        if self.state.connections.iter().any(|other| taken(&other)) {
            broken.push((422, to));
        }
        if broken.is_empty() { Ok(()) } else { Err(broken) }
    }

    fn merge(
        &self,
        metadata: &mut Map<String, Value>,
        written: &Map<String, Value>,
        field: &'static str,
    ) -> Result<(), Vec<Broken>> {
        let mut outcome = Ok(());
        for (key, value) in written {
            match (key.as_str(), value) {
                (_, Value::Null) | ("section", Value::Bool(false)) => {
                    metadata.remove(key);
                }
                ("sectionId", Value::String(text)) => match self.node(text, field) {
                    Ok(at) if self.state.nodes[at].is_section() => {
                        metadata.insert(key.clone(), self.state.nodes[at].id.as_str().into());
                    }
                    Ok(_) => outcome = Err(vec![(422, field)]),
                    Err(broken) => outcome = Err(broken),
                },
                _ => {
                    metadata.insert(key.clone(), value.clone());
                }
            }
        }
        outcome
    }
}
