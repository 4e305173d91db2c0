//! What every write of a graph has in common: rows, revision, and the answer.

use canvas::{Applied, Graph, Refused};
use db::canvases::{Change, GraphWrites, NewActivity};
use domain::canvas::{AccessRole, CanvasAfter, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle};

use crate::extract::canvas::require_writer;
use crate::problem::{Problem, Result};

/// The canvas that is written to and the role of who writes, its row held until the transaction ends: 404 for who cannot see it,
/// 403 for a viewer.
pub async fn lock(
    conn: &mut db::PgConnection,
    account: &AccountUid,
    canvas: &CanvasHandle,
) -> Result<(CanvasRecord, AccessRole)> {
    let (record, role) = db::canvases::lock(conn, account, canvas).await?.ok_or(Problem::NotFound("canvas"))?;
    require_writer(role)?;
    Ok((record, role))
}

/// The graph of a canvas whose row the transaction holds.
pub async fn graph(conn: &mut db::PgConnection, record: &CanvasRecord) -> Result<Graph> {
    let (nodes, connections) = db::canvases::graph(conn, record.key).await?;
    Ok(Graph::new(record.title.clone(), record.graph_bytes, nodes, connections))
}

/// What the engine refuses, as it is answered.
pub fn refusal(refused: Refused) -> Problem {
    match refused {
        Refused::Invalid(violations) => Problem::Invalid(violations),
        Refused::Unprocessable(violations) => Problem::Unprocessable(violations),
    }
}

/// Writes the rows of what was applied to the graph of a canvas whose row the transaction holds; its next revision is the
/// caller's.
pub async fn rows(conn: &mut db::PgConnection, record: &CanvasRecord, graph: &Graph, applied: &Applied) -> Result<()> {
    let writes = applied.writes(graph);
    let writes = GraphWrites {
        nodes: writes.nodes,
        deleted_nodes: writes.deleted_nodes,
        connections: writes.connections,
        deleted_connections: writes.deleted_connections,
    };
    Ok(db::canvases::write_graph(conn, record.key, &writes).await?)
}

/// Writes what was applied to the graph of a canvas whose row the transaction holds, and gives it its next revision.
pub async fn commit(
    transaction: &mut db::Transaction,
    record: &CanvasRecord,
    graph: &Graph,
    applied: &Applied,
    activity: NewActivity<'_>,
) -> Result<CanvasRecord> {
    rows(transaction, record, graph, applied).await?;
    let change = Change {
        revision: &service::random::revision(),
        title: applied.title.as_deref(),
        nodes_delta: applied.nodes_delta,
        connections_delta: applied.connections_delta,
        bytes_delta: applied.bytes_delta,
        changes: &applied.changes,
        activity: Some(activity),
    };
    Ok(db::canvases::commit_change(transaction, record.key, &change).await?)
}

/// The canvas as far as the client wants it.
pub fn after(minimal: bool, record: &CanvasRecord, role: AccessRole, graph: Graph) -> CanvasAfter {
    if minimal {
        return CanvasAfter::Minimal(record.summary(Some(role)));
    }
    let (nodes, connections) = graph.into_parts();
    let nodes = nodes.into_iter().map(Into::into).collect();
    let connections = connections.into_iter().map(Into::into).collect();
    CanvasAfter::Whole(record.document(nodes, connections))
}
