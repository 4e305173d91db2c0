//! Graphs of the canvases that a process wrote last, so that the next write costs what it changes and not what the canvas holds, and
//! a read that follows is made of what is in memory.
//!
//! **Guarantee.** A graph that is taken from here equals the stored one of the revision that the caller's transaction sees.
//!
//! **Mechanism.** A graph is kept under the revision that a write gave to its canvas. Revisions are never used twice
//! (docs/reference/canvases.md#revision), so a graph whose revision is the present one is current. A graph of an earlier revision
//! is brought up to date from the rows that changed since, which the canvas's changes name. A graph of a revision that was never
//! committed has no such changes and is read anew. Nothing has to be invalidated, whichever process writes.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use ::canvas::Graph;
use ::canvas::graph::Later;
use db::PgConnection;
use db::canvases::Ends;
use domain::canvas::{CanvasRecord, Changes};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::Result;

/// Memory that the kept graphs of a process take at most, in bytes.
pub const CAPACITY_BYTES: u64 = 64 * 1024 * 1024;
/// Number of graphs that the cache is laid out for. Only their sizes limit it.
const CANVASES: usize = 64;
/// Memory that a graph takes, as a multiple of its serialized size: its texts, the indexes, and the served form.
const SIZE_FACTOR: u64 = 5;
/// Memory that the smallest graph takes, in bytes.
const SIZE_MIN: u64 = 4096;
/// Serialized size of the largest graph that is kept, in bytes. The cache refuses what takes more than 97 % of it.
const LARGEST_BYTES: i64 = 12 * 1024 * 1024;
/// A graph that differs in more nodes and connections is read anew.
const DIFFERENCE_MAX: usize = 500;

/// The graphs that a process keeps, by the key of their canvas.
pub struct Graphs(Cache<i64, Kept, ByBytes>);

#[derive(Clone)]
struct Kept {
    revision: Arc<str>,
    graph: Arc<Graph>,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<i64, Kept> for ByBytes {
    fn weight(&self, _: &i64, kept: &Kept) -> u64 {
        memory_bytes(kept.graph.bytes())
    }
}

/// Returns `true` if a graph of this serialized size is kept.
pub fn is_kept(graph_bytes: i64) -> bool {
    graph_bytes <= LARGEST_BYTES
}

/// The memory that a graph of this serialized size takes, in bytes.
pub fn memory_bytes(graph_bytes: i64) -> u64 {
    u64::try_from(graph_bytes).unwrap_or_default().saturating_mul(SIZE_FACTOR).saturating_add(SIZE_MIN)
}

impl Default for Graphs {
    fn default() -> Self {
        // One part, because each part holds only as large a graph as its share of the capacity.
        let options = OptionsBuilder::new()
            .estimated_items_capacity(CANVASES)
            .weight_capacity(CAPACITY_BYTES)
            .shards(1)
            .build()
            .expect("capacities are set");
        Self(Cache::with_options(options, ByBytes, DefaultHashBuilder::default(), DefaultLifecycle::default()))
    }
}

impl Graphs {
    /// The graph of a canvas as `conn` sees it, in a transaction that has locked the canvas. The caller keeps what it makes of it.
    pub async fn take(&self, conn: &mut PgConnection, record: &CanvasRecord) -> Result<Graph> {
        current(conn, record, self.0.remove(&record.key).map(|(_, kept)| kept)).await
    }

    /// The graph of a canvas at this revision, if it is kept and `is_wanted`. The caller keeps what it makes of it.
    pub fn take_at(&self, canvas_key: i64, revision: &str, is_wanted: impl Fn(&Graph) -> bool) -> Option<Graph> {
        let kept = self.0.remove_if(&canvas_key, |kept| *kept.revision == *revision && is_wanted(&kept.graph));
        kept.map(|(_, kept)| Arc::unwrap_or_clone(kept.graph))
    }

    /// The graph of a canvas at the revision of `record`, if it is kept. What is parsed of it stays in memory, so whoever looks into
    /// what the service wrote to nodes copies it first.
    pub fn present(&self, record: &CanvasRecord) -> Option<Arc<Graph>> {
        self.0.get(&record.key).filter(|kept| *kept.revision == *record.revision).map(|kept| kept.graph)
    }

    /// A copy of the graph of a canvas as `conn` sees it, in a transaction that reads a snapshot.
    pub async fn copy(&self, conn: &mut PgConnection, record: &CanvasRecord) -> Result<Graph> {
        current(conn, record, self.0.get(&record.key)).await
    }

    /// Keeps the graph of a canvas at the revision of `record`: one that a write made, before or after its commit, or that a refused
    /// one left as it was. One without refs is not kept: they are given to it at the same revision.
    pub fn keep(&self, record: &CanvasRecord, graph: &Arc<Graph>) {
        if !record.lacks_refs() {
            self.keep_at(record.key, &record.revision, graph);
        }
    }

    /// [`keep`](Self::keep), by the key of the canvas.
    pub fn keep_at(&self, canvas_key: i64, revision: &str, graph: &Arc<Graph>) {
        if graph.is_dense() && is_kept(graph.bytes()) {
            let kept = Kept { revision: Arc::from(revision), graph: Arc::clone(graph) };
            self.0.insert(canvas_key, kept);
        }
    }
}

/// The graph of a canvas as it is stored, in a transaction that has locked the canvas or reads a snapshot.
pub async fn load(conn: &mut PgConnection, record: &CanvasRecord) -> Result<Graph> {
    let (nodes, connections) = db::canvases::graph(conn, record.key).await?;
    Ok(Graph::new(record.title.clone(), record.graph_bytes, nodes, connections).after_refs(record.refs))
}

async fn current(conn: &mut PgConnection, record: &CanvasRecord, kept: Option<Kept>) -> Result<Graph> {
    let Some(Kept { revision, graph }) = kept else { return load(conn, record).await };
    if *revision == *record.revision {
        return Ok(Arc::unwrap_or_clone(graph));
    }
    match later(conn, record, &revision, &graph).await? {
        Some(later) => {
            let mut graph = Arc::unwrap_or_clone(graph);
            graph.advance(later);
            Ok(graph)
        }
        None => load(conn, record).await,
    }
}

/// How the present graph differs from one of an earlier revision. `None`: that is not known, or it differs in more than
/// [`DIFFERENCE_MAX`] items, or one of them was put back between older ones.
async fn later(conn: &mut PgConnection, record: &CanvasRecord, revision: &str, graph: &Graph) -> Result<Option<Later>> {
    let Some(since) = db::canvases::changes_since(conn, record.key, revision).await? else { return Ok(None) };
    let Changes { changed_node_ids, deleted_node_ids, changed_connection_ids, deleted_connection_ids } = since.changes;
    if changed_node_ids.len() + changed_connection_ids.len() > DIFFERENCE_MAX {
        return Ok(None);
    }
    let (nodes, connections) = db::canvases::part(conn, record.key, &changed_node_ids, &changed_connection_ids).await?;
    let node_ids = graph.nodes().rev().map(|node| &node.id);
    let connection_ids = graph.connections().rev().map(|connection| &connection.id);
    let ends = Ends {
        last_node: last_of(node_ids, &deleted_node_ids),
        made_node: nodes.iter().map(|node| &node.id).find(|id| graph.node(id).is_none()),
        last_connection: last_of(connection_ids, &deleted_connection_ids),
        made_connection: connections.iter().map(|made| &made.id).find(|id| graph.connection(id).is_none()),
    };
    if !db::canvases::are_appended(conn, record.key, &ends).await? {
        return Ok(None);
    }
    Ok(Some(Later {
        title: record.title.clone(),
        bytes: record.graph_bytes,
        refs: record.refs,
        nodes,
        deleted_nodes: deleted_node_ids,
        connections,
        deleted_connections: deleted_connection_ids,
    }))
}

/// The first of `ids` that is not deleted.
fn last_of<'a, T: Eq + Hash>(mut ids: impl Iterator<Item = &'a T>, deleted: &[T]) -> Option<&'a T> {
    let deleted: HashSet<&T> = deleted.iter().collect();
    ids.find(|id| !deleted.contains(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_of_up_to_12_mib_are_kept() {
        for (bytes, is_kept) in [(LARGEST_BYTES - 1, true), (LARGEST_BYTES, true), (LARGEST_BYTES + 1, false)] {
            let graphs = Graphs::default();
            graphs.keep_at(1, "r", &Arc::new(Graph::new(String::new(), bytes, Vec::new(), Vec::new())));
            assert_eq!(graphs.take_at(1, "r", |_| true).is_some(), is_kept, "{bytes}");
        }
    }
}
