//! Where the results of a job go: into nodes of the canvas, or into nodes that the start adds (docs/reference/jobs.md#new-targets).
//!
//! **Guarantee.** New targets and connections are written in the transaction that accepts the job, under its revision. A start that
//! is refused for whatever reason adds nothing.
//!
//! **Mechanism.** The checks of a start apply the additions to a graph in memory, as a batch of operations is applied; its writes
//! store them. A start that adds nothing reads no graph.

use ::canvas::geometry::fitted_as;
use ::canvas::targets::{self, Link, Place, Work};
use ::canvas::{Applied, Footprint, Graph, Options};
use db::PgConnection;
use db::accounts::Credential;
use domain::Violation;
use domain::canvas::CanvasRecord;
use domain::graph::{Named, Node, Purpose, Role};
use domain::id::NodeId;

use crate::Result;
use crate::canvas::addition_refused;
use crate::graphs::load;

/// The targets that a request names.
#[derive(Clone, Debug)]
pub enum Targets {
    /// Nodes of the canvas.
    Nodes(Vec<NodeId>),
    /// Nodes that the start adds.
    Place(Place),
}

/// Where the results of a job go.
#[derive(Clone, Debug)]
pub struct Destination {
    pub targets: Targets,
    /// `true` if the nodes that the job reads are connected to its targets.
    pub connect: bool,
    /// `true` if a target takes the largest size within its present one that shows its result whole.
    pub fit: bool,
}

/// What is known of the result of a target before it is made.
#[derive(Clone, Debug, Default)]
pub struct ExpectedResult {
    /// Width and height in pixels, or in any unit.
    pub size: Option<(f64, f64)>,
    /// What it is made of, as connections from there.
    pub read: Vec<Link>,
}

/// The targets of a checked start.
pub struct JobTargets {
    /// The nodes in the order of the outputs; none has an active job.
    pub nodes: Vec<Node>,
    /// `true` if the start adds them.
    pub are_new: bool,
    /// The graph with what the start adds to it.
    pub(super) addition: Option<(Graph, Applied)>,
}

impl Destination {
    /// Ids of the targets that exist.
    pub fn existing(&self) -> &[NodeId] {
        match &self.targets {
            Targets::Nodes(targets) => targets,
            Targets::Place(_) => &[],
        }
    }

    /// Adds what the targets depend on to the footprint of a start: they themselves, or what determines the place of new ones; and
    /// the connections into them, if the start connects.
    pub fn add_to(&self, footprint: Footprint) -> Footprint {
        match &self.targets {
            Targets::Nodes(targets) => {
                let connected = targets.iter().filter(|_| self.connect);
                footprint.with_nodes(targets).with_links_into(connected)
            }
            Targets::Place(place) => footprint.with_nodes(place.location.nodes()),
        }
    }

    /// Number of targets.
    pub fn count(&self) -> usize {
        match &self.targets {
            Targets::Nodes(targets) => targets.len(),
            Targets::Place(place) => place.count,
        }
    }

    /// Returns `true` if the checks of the start load the graph of the canvas.
    pub fn reads_graph(&self) -> bool {
        self.connect || matches!(self.targets, Targets::Place(_))
    }

    /// The graph, if the start needs it. Nodes that the place names and the canvas does not have are added to `refused`.
    pub async fn load(
        &self,
        conn: &mut PgConnection,
        canvas: &CanvasRecord,
        refused: &mut Vec<Violation>,
    ) -> Result<Option<Graph>> {
        if !self.reads_graph() {
            return Ok(None);
        }
        let graph = load(conn, canvas).await?;
        if let Targets::Place(place) = &self.targets {
            refused.extend(place.location.violations(&graph).into_iter().map(of_place));
        }
        Ok(Some(graph))
    }

    /// The targets of the start, with what it adds. `existing` are the nodes that exist. `results` are those of each target, or one for
    /// all. New targets show them whole. What the job reads decides where they are, and is connected where the request wants it; it or
    /// the prompt is what they are called after.
    pub fn prepare(
        &self,
        caller: &Credential,
        graph: Option<Graph>,
        existing: Vec<Node>,
        results: Vec<ExpectedResult>,
        prompt: Option<&str>,
    ) -> Result<JobTargets> {
        let Some(mut graph) = graph else {
            return Ok(JobTargets { nodes: existing, are_new: false, addition: None });
        };
        let (sizes, read): (Vec<_>, Vec<_>) = results.into_iter().map(|result| (result.size, result.read)).unzip();
        let options = Options { agent: caller.surface.is_agent(), force: false };
        let added = match &self.targets {
            Targets::Nodes(targets) => {
                let links = if self.connect { read } else { Vec::new() };
                targets::connect(&mut graph, targets, &links, options).map(|applied| (existing, applied))
            }
            Targets::Place(place) => {
                // A title takes room, whatever it is.
                let title = place.title.as_deref().unwrap_or(place.kind.as_str());
                let fitted = |size| fitted_as(place.kind, size, title);
                let sizes: Vec<_> =
                    sizes.into_iter().map(|size| size.map_or(place.kind.default_size(), fitted)).collect();
                let work = Work { read, connect: self.connect, prompt };
                targets::add(&mut graph, place, &sizes, work, options).map(|(ids, applied)| {
                    let nodes = ids.iter().filter_map(|id| graph.node(id).cloned()).collect();
                    (nodes, applied)
                })
            }
        };
        let (nodes, applied) = added.map_err(|refused| addition_refused(refused, "place."))?;
        let are_new = matches!(self.targets, Targets::Place(_));
        Ok(JobTargets { nodes, are_new, addition: Some((graph, applied)) })
    }
}

impl JobTargets {
    pub fn ids(&self) -> Vec<NodeId> {
        self.nodes.iter().map(|node| node.id.clone()).collect()
    }
}

/// A violation of a place, under its field in the request.
fn of_place(violation: Violation) -> Violation {
    Violation::new(format!("place.{}", violation.field), violation.message)
}

/// The connection that shows what a job reads under this name; none for an asset.
pub fn link(named: &Named, purpose: Purpose, role: Option<Role>) -> Option<Link> {
    match named {
        Named::Node(node) => Some(Link { from: node.clone(), purpose, role }),
        Named::Asset(_) => None,
    }
}
