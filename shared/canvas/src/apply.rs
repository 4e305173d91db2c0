//! Applying a batch to a graph: atomic, in order, reporting exactly what changed (decisions 4.1 to 4.4).
//!
//! Operations run one after the other on the graph itself. One that breaks a rule is noted and left out, and the rest
//! still runs, so that one answer lists every violation; what depends on a node that could not be made is passed over
//! in silence, because its mistake is not its own. At the first violation the batch is lost: at the end the journal
//! takes everything back and the graph is as it was.

mod connections;
mod nodes;
mod report;

use std::collections::{BTreeMap, HashMap};

use domain::Violation;
use domain::graph::Node;
use domain::id::{ConnectionId, NodeId};
use thiserror::Error;

use crate::batch::{Batch, Ref, Step};
use crate::graph::Graph;
use crate::journal::Journal;

pub use report::{Applied, Touched, Writes};

/// How a batch is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether an agent, not the user, applies it: whose the new nodes are (decisions 3.3).
    pub agent: bool,
    /// Whether nodes with an active job may be deleted (decisions 4.3).
    pub force: bool,
}

/// Why a batch was not applied; the graph is as it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// Rules that are answered with 400 although they look at stored state (decisions 1.3), and with them every other
    /// violation that was found.
    #[error("the batch breaks {} rules of its form", .0.len())]
    Invalid(Vec<Violation>),
    /// Rules of the graph, answered with 422.
    #[error("the batch breaks {} rules of the graph", .0.len())]
    Unprocessable(Vec<Violation>),
}

/// Applies a batch. On refusal the graph is untouched.
pub fn apply(graph: &mut Graph, batch: &Batch, options: Options) -> Result<Applied, Refused> {
    let mut run = Run::new(graph, options);
    for (at, step) in batch.steps.iter().enumerate() {
        run.at = at;
        // The violation, if it is one, is noted where it is found.
        let _ = run.step(step);
    }
    run.finish()
}

/// An operation that did not run: it broke a rule, which is noted, or depends on one that did.
struct Skipped;

type Outcome = Result<(), Skipped>;

/// What a `clientId` stands for.
#[derive(Clone, Copy)]
enum Made {
    Node(usize),
    Connection(usize),
    /// Its operation did not run.
    Nothing,
}

struct Run<'a> {
    graph: &'a mut Graph,
    journal: Journal,
    options: Options,
    at: usize,
    made: HashMap<&'a str, Made>,
    resolved_ids: BTreeMap<String, String>,
    invalid: Vec<Violation>,
    unprocessable: Vec<Violation>,
}

impl<'a> Run<'a> {
    fn new(graph: &'a mut Graph, options: Options) -> Self {
        Self {
            journal: Journal::default(),
            graph,
            options,
            at: 0,
            made: HashMap::new(),
            resolved_ids: BTreeMap::new(),
            invalid: Vec::new(),
            unprocessable: Vec::new(),
        }
    }

    fn step(&mut self, step: &'a Step) -> Outcome {
        match step {
            Step::CreateNode { client_id, draft } => {
                let made = self.create_node(draft);
                self.name(client_id.as_deref(), made)
            }
            Step::DuplicateNode { node, client_id, position } => {
                let made = self.duplicate_node(node, *position);
                self.name(client_id.as_deref(), made)
            }
            Step::UpdateNode { node, patch } => self.update_node(node, patch),
            Step::MoveNode { node, position } => self.move_node(node, *position),
            Step::DeleteNode { node } => self.delete_node(node),
            Step::CreateConnection { client_id, from, to, purpose, role } => {
                let made = self.create_connection(from, to, *purpose, *role);
                self.name(client_id.as_deref(), made)
            }
            Step::UpdateConnection { connection, purpose, role } => self.update_connection(connection, *purpose, *role),
            Step::DeleteConnection { connection } => self.delete_connection(connection),
            Step::RenameCanvas { title } => {
                if self.graph.title != *title {
                    self.journal.set_title(self.graph, title.clone());
                }
                Ok(())
            }
        }
    }

    /// Notes what a `clientId` stands for from here on.
    fn name(&mut self, client_id: Option<&'a str>, made: Result<(Made, String), Skipped>) -> Outcome {
        let (made, id) = match made {
            Ok((made, id)) => (made, Some(id)),
            Err(Skipped) => (Made::Nothing, None),
        };
        if let Some(client_id) = client_id {
            self.made.insert(client_id, made);
            self.resolved_ids.extend(id.map(|id| (client_id.to_owned(), id)));
        }
        Ok(())
    }

    /// The slot of the node that a field names. Within the batch a `clientId` goes before an equal id in the canvas,
    /// which the handle still names.
    fn node(&mut self, field: &str, node: &Ref<NodeId>) -> Result<usize, Skipped> {
        let slot = match self.made_as(node.id.as_str(), node.is_handle) {
            Some(Made::Nothing) => return Err(Skipped),
            Some(Made::Node(slot)) => Some(slot).filter(|slot| self.graph.nodes.get(*slot).is_some()),
            Some(Made::Connection(_)) | None => self.graph.nodes.find(&node.id),
        };
        slot.ok_or_else(|| self.unprocessable(field, "names no node of the canvas, and none made earlier in the batch"))
    }

    /// The slot of the connection that a field names.
    fn connection(&mut self, field: &str, connection: &Ref<ConnectionId>) -> Result<usize, Skipped> {
        let slot = match self.made_as(connection.id.as_str(), connection.is_handle) {
            Some(Made::Nothing) => return Err(Skipped),
            Some(Made::Connection(slot)) => Some(slot).filter(|slot| self.graph.connections.get(*slot).is_some()),
            Some(Made::Node(_)) | None => self.graph.connections.find(&connection.id),
        };
        slot.ok_or_else(|| {
            self.unprocessable(field, "names no connection of the canvas, and none made earlier in the batch")
        })
    }

    fn made_as(&self, client_id: &str, is_handle: bool) -> Option<Made> {
        if is_handle { None } else { self.made.get(client_id).copied() }
    }

    fn node_at(&self, slot: usize) -> &Node {
        self.graph.nodes.get(slot).expect("slots of nodes are looked up in the operation that uses them")
    }

    /// Notes a violation that is answered with 422.
    fn unprocessable(&mut self, field: &str, message: impl Into<String>) -> Skipped {
        self.unprocessable.push(Violation::new(format!("operations[{}].{field}", self.at), message));
        Skipped
    }

    /// Notes a violation that is answered with 400.
    fn invalid(&mut self, field: &str, message: impl Into<String>) -> Skipped {
        self.invalid.push(Violation::new(format!("operations[{}].{field}", self.at), message));
        Skipped
    }

    /// How many violations there are so far.
    fn violations(&self) -> usize {
        self.invalid.len() + self.unprocessable.len()
    }
}

#[cfg(test)]
mod tests;
