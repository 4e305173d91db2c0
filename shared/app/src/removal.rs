//! Targets that a start made for its work and that are still empty: deleted on request
//! (docs/reference/jobs.md#remove-targets).

use std::collections::{BTreeSet, HashMap};

use ::canvas::size::serialized_size;
use db::canvases::{Change, NewActivity};
use db::{PgConnection, Result};
use domain::graph::{Connection, GraphWrites, Node, NodeType};
use domain::id::{ConnectionId, NodeId};

/// Nodes of a locked canvas to delete, with their connections.
#[derive(Debug, Default)]
pub struct Removal {
    nodes: Vec<Node>,
    connections: HashMap<ConnectionId, Connection>,
}

impl Removal {
    /// Those of `targets` that the change with this sequence created, that show nothing, and that are `idle`.
    pub async fn find(
        conn: &mut PgConnection,
        canvas_key: i64,
        sequence: Option<i64>,
        targets: &[NodeId],
        idle: impl Fn(&Node) -> bool,
    ) -> Result<Self> {
        let mut removal = Self::default();
        let Some(sequence) = sequence else { return Ok(removal) };
        let made = db::canvases::made_in(conn, canvas_key, sequence, targets).await?;
        for node in made.into_iter().filter(|node| is_empty(node) && idle(node)) {
            let (incoming, outgoing) = db::canvases::connections_of(conn, canvas_key, &node.id).await?;
            let connections = incoming.into_iter().chain(outgoing);
            removal.connections.extend(connections.map(|connection| (connection.id.clone(), connection)));
            removal.nodes.push(node);
        }
        Ok(removal)
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn contains(&self, id: &NodeId) -> bool {
        self.nodes.iter().any(|node| node.id == *id)
    }

    /// Deletes the nodes, writes what work changes of others ([`write_nodes`](crate::canvas::write_nodes)), and gives the
    /// canvas its next revision.
    pub async fn write(
        &self,
        conn: &mut PgConnection,
        canvas_key: i64,
        revision: &str,
        (nodes, bytes_delta): (&[Node], i64),
        activity: Option<NewActivity<'_>>,
    ) -> Result<()> {
        let graph = GraphWrites {
            nodes: nodes.iter().collect(),
            deleted_nodes: self.nodes.iter().map(|node| &node.id).collect(),
            deleted_connections: self.connections.keys().collect(),
            ..GraphWrites::default()
        };
        let sections =
            self.nodes.iter().filter_map(Node::section_id).map(|section| NodeId::from_stored(section.to_owned()));
        let left: Vec<NodeId> = sections.collect::<BTreeSet<_>>().into_iter().collect();
        let freed: i64 = self.nodes.iter().map(serialized_size).sum::<i64>()
            + self.connections.values().map(serialized_size).sum::<i64>();
        let bytes_delta = bytes_delta - freed;
        let change = Change { graph, bytes_delta, regrouped: &left, activity, ..Change::new(revision) };
        db::canvases::write(conn, canvas_key, &change).await?;
        Ok(())
    }

    /// The summary of the activity entry of a removal on its own.
    pub fn summary(&self) -> String {
        let count = self.nodes.len();
        format!("removed {count} empty target{}", if count == 1 { "" } else { "s" })
    }
}

/// Returns `true` if the node shows neither an image, a video nor a text.
fn is_empty(node: &Node) -> bool {
    match node.kind {
        NodeType::Image | NodeType::Video => node.asset.is_none(),
        NodeType::Text => node.content().is_none_or(str::is_empty),
        NodeType::Sticky => false,
    }
}
