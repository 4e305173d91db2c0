//! Applies a batch to a graph: atomically, in order, with an exact report of changes. Rules:
//! `docs/reference/operations.md#atomicity-and-order`.
//!
//! Operations run one after the other on the graph itself. An operation that breaks a rule is recorded and skipped, and
//! the rest still runs, so that one response lists every violation. An operation that depends on a skipped one is
//! skipped without a violation of its own. If there is a violation, the journal rolls every change back at the end.

mod blocks;
mod connections;
mod layout;
mod nodes;
mod report;
mod restore;

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::Violation;
use domain::graph::Node;
use domain::id::{ConnectionId, NodeId};
use thiserror::Error;

use crate::batch::{Batch, Step};
use crate::graph::Graph;
use crate::journal::Journal;
use crate::reference::Ref;
use blocks::Blocks;

pub use report::{Applied, Touched};

/// Options of applying a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `true` if an agent applies it. The new nodes are then owned by the agent, otherwise by the user.
    pub agent: bool,
    /// `true` if nodes with an active job may be deleted.
    pub force: bool,
}

/// Why a batch was not applied; the graph is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// Violations of rules that are answered with 400 although they depend on stored state
    /// (`docs/reference/conventions.md#choosing-400-404-or-422`), and all other violations that were found.
    #[error("the batch breaks {} rules of its form", .0.len())]
    Invalid(Vec<Violation>),
    /// Violations of rules of the graph, answered with 422.
    #[error("the batch breaks {} rules of the graph", .0.len())]
    Unprocessable(Vec<Violation>),
}

/// Applies a batch. If it is rejected, the graph is unchanged.
pub fn apply(graph: &mut Graph, batch: &Batch, options: Options) -> Result<Applied, Refused> {
    let mut run = Run::new(graph, batch, options);
    for (at, step) in batch.steps.iter().enumerate() {
        run.at = at;
        // A violation is recorded where it is found.
        let _ = run.step(step);
    }
    run.finish()
}

/// An operation that did not run: it broke a rule, which is recorded, or depends on an operation that did not run.
struct Skipped;

type OperationResult = Result<(), Skipped>;

/// The object that a `clientId` names.
#[derive(Clone, Copy)]
enum NamedItem {
    Node(usize),
    Connection(usize),
    /// The result of an operation that did not run.
    Nothing,
}

struct Run<'a> {
    graph: &'a mut Graph,
    journal: Journal,
    options: Options,
    at: usize,
    /// Nodes that are placed as one.
    blocks: Blocks<'a>,
    made: HashMap<&'a str, NamedItem>,
    /// Slots of what the batch deleted.
    deleted_nodes: HashMap<NodeId, usize>,
    deleted_connections: HashMap<ConnectionId, usize>,
    /// Deleted nodes as they were restored, by id.
    restored: HashMap<String, Node>,
    resolved_ids: BTreeMap<String, String>,
    /// Members that a restored Section got back, with the Section.
    returned: HashMap<NodeId, NodeId>,
    /// Nodes that layout operations have moved so far, each as often as it was.
    moves: usize,
    /// Sections that the batch makes and gives no size.
    fitted: HashSet<usize>,
    /// Members that deleted Sections have lost and restored ones got back so far.
    regrouped: usize,
    invalid: Vec<Violation>,
    unprocessable: Vec<Violation>,
}

impl<'a> Run<'a> {
    fn new(graph: &'a mut Graph, batch: &'a Batch, options: Options) -> Self {
        Self {
            journal: Journal::new(graph),
            graph,
            options,
            at: 0,
            blocks: Blocks::new(batch),
            made: HashMap::new(),
            deleted_nodes: HashMap::new(),
            deleted_connections: HashMap::new(),
            restored: HashMap::new(),
            returned: HashMap::new(),
            resolved_ids: BTreeMap::new(),
            moves: 0,
            fitted: HashSet::new(),
            regrouped: 0,
            invalid: Vec::new(),
            unprocessable: Vec::new(),
        }
    }

    fn step(&mut self, step: &'a Step) -> OperationResult {
        match step {
            Step::CreateNode { client_id, draft } => {
                let made = self.create_node(draft, client_id.as_deref());
                self.name(client_id.as_deref(), made)
            }
            Step::DuplicateNode { node, client_id, position } => {
                let made = self.duplicate_node(node, *position);
                self.name(client_id.as_deref(), made)
            }
            Step::UpdateNode { node, patch } => self.update_node(node, patch),
            Step::MoveNode { node, position, with_members } => self.move_node(node, *position, *with_members),
            Step::DeleteNode { node } => self.delete_node(node),
            Step::RestoreNode { node } => self.restore_node(node),
            Step::CreateConnection { client_id, from, to, purpose, role } => {
                let made = self.create_connection(from, to, *purpose, *role);
                self.name(client_id.as_deref(), made)
            }
            Step::UpdateConnection { connection, purpose, role } => self.update_connection(connection, *purpose, *role),
            Step::DeleteConnection { connection } => self.delete_connection(connection),
            Step::RestoreConnection { connection } => self.restore_connection(connection),
            Step::Arrange { what, style, goal } => self.arrange(what, *style, goal),
            Step::FitNode { node } => self.fit_node(node),
            Step::FitSection { section, padding } => self.fit_section(section, *padding),
            Step::CreateSection { client_id, title, nodes, goal } => {
                let made = self.create_section(client_id.as_deref(), title, nodes, goal);
                self.name(client_id.as_deref(), made)
            }
            Step::RenameCanvas { title } => {
                if self.graph.title != *title {
                    self.journal.set_title(self.graph, title.clone());
                }
                Ok(())
            }
        }
    }

    /// Records what a `clientId` names from here on.
    fn name(&mut self, client_id: Option<&'a str>, made: Result<(NamedItem, String), Skipped>) -> OperationResult {
        let (made, id) = match made {
            Ok((made, id)) => (made, Some(id)),
            Err(Skipped) => (NamedItem::Nothing, None),
        };
        if let Some(client_id) = client_id {
            self.made.insert(client_id, made);
            self.resolved_ids.extend(id.map(|id| (client_id.to_owned(), id)));
        }
        Ok(())
    }

    /// The slot of the node that a field names. Within the batch a `clientId` takes precedence over an equal id on the
    /// canvas, which its handle still names.
    fn node(&mut self, field: &str, node: &Ref<NodeId>) -> Result<usize, Skipped> {
        let slot = match self.made_as(node.id.as_str(), node.is_handle) {
            Some(NamedItem::Nothing) => return Err(Skipped),
            Some(NamedItem::Node(slot)) => Some(slot).filter(|slot| self.graph.nodes.get(*slot).is_some()),
            Some(NamedItem::Connection(_)) | None => self.graph.nodes.find(&node.id),
        };
        slot.ok_or_else(|| self.unprocessable(field, "names no node of the canvas, and none made earlier in the batch"))
    }

    /// The slot of the connection that a field names.
    fn connection(&mut self, field: &str, connection: &Ref<ConnectionId>) -> Result<usize, Skipped> {
        let slot = match self.made_as(connection.id.as_str(), connection.is_handle) {
            Some(NamedItem::Nothing) => return Err(Skipped),
            Some(NamedItem::Connection(slot)) => Some(slot).filter(|slot| self.graph.connections.get(*slot).is_some()),
            Some(NamedItem::Node(_)) | None => self.graph.connections.find(&connection.id),
        };
        slot.ok_or_else(|| {
            self.unprocessable(field, "names no connection of the canvas, and none made earlier in the batch")
        })
    }

    fn made_as(&self, client_id: &str, is_handle: bool) -> Option<NamedItem> {
        if is_handle { None } else { self.made.get(client_id).copied() }
    }

    fn node_at(&self, slot: usize) -> &Node {
        self.graph.nodes.get(slot).expect("slots of nodes are looked up in the operation that uses them")
    }

    /// Records a violation that is answered with 422.
    fn unprocessable(&mut self, field: &str, message: impl Into<String>) -> Skipped {
        self.unprocessable.push(Violation::new(format!("operations[{}].{field}", self.at), message));
        Skipped
    }

    /// Records a violation that is answered with 400.
    fn invalid(&mut self, field: &str, message: impl Into<String>) -> Skipped {
        self.invalid.push(Violation::new(format!("operations[{}].{field}", self.at), message));
        Skipped
    }

    /// Number of violations so far.
    fn violations(&self) -> usize {
        self.invalid.len() + self.unprocessable.len()
    }
}

#[cfg(test)]
mod tests;
