//! What was deleted of a canvas and can be restored: it is kept with the change that deletes it, as long as that change is kept and
//! is among the last 64 MiB of deletions.

use domain::graph::{DeletedConnection, DeletedNode};
use domain::id::{ConnectionId, NodeId};
use domain::limits::CHANGES_KEPT;
use sqlx::PgConnection;
use tracing::instrument;

use super::graph::{ConnectionRow, NodeRow};
use super::{ids, unreadable};
use crate::Result;

/// Reads those of these nodes that the last 1000 changes of the canvas deleted and that are kept, in the order of creation.
#[instrument(skip_all, name = "db.graph.deleted_nodes")]
pub async fn deleted_nodes(conn: &mut PgConnection, canvas_key: i64, nodes: &[NodeId]) -> Result<Vec<DeletedNode>> {
    let rows = sqlx::query!(
        r#"WITH deleted AS MATERIALIZED (
               SELECT d.* FROM deleted_nodes d JOIN canvases c ON c.key = d.canvas_key
               WHERE d.canvas_key = $1 AND d.id = ANY($2) AND d.sequence > c.sequence - $3
           ), place AS (
               SELECT id, count(*) FILTER (WHERE id IS NULL) OVER (ORDER BY ordinal) AS preceding
               FROM (SELECT NULL AS id, ordinal FROM nodes WHERE canvas_key = $1
                     UNION ALL SELECT id, ordinal FROM deleted) AS every
           )
           SELECT id AS "id!", type AS "kind!", title AS "title!", x AS "x!", y AS "y!", width AS "width!", height AS "height!",
                  agent_owned AS "agent_owned!", metadata::text AS "metadata!", server::text AS "server!", asset_owner, asset_id,
                  active_job, ref AS short, members AS "members!", preceding AS "preceding!"
           FROM deleted JOIN place USING (id) ORDER BY ordinal"#,
        canvas_key,
        &ids(nodes),
        CHANGES_KEPT,
    )
    .fetch_all(conn)
    .await?;
    let deleted = rows.into_iter().map(|row| {
        let node = NodeRow {
            id: row.id,
            kind: row.kind,
            title: row.title,
            x: row.x,
            y: row.y,
            width: row.width,
            height: row.height,
            agent_owned: row.agent_owned,
            metadata: row.metadata,
            server: row.server,
            asset_owner: row.asset_owner,
            asset_id: row.asset_id,
            active_job: row.active_job,
            short: row.short,
        };
        let members = row.members.into_iter().map(NodeId::from_stored).collect();
        Ok(DeletedNode { node: node.node()?, members, preceding: count(row.preceding)? })
    });
    deleted.collect()
}

/// [`deleted_nodes`] for connections.
#[instrument(skip_all, name = "db.graph.deleted_connections")]
pub async fn deleted_connections(
    conn: &mut PgConnection,
    canvas_key: i64,
    connections: &[ConnectionId],
) -> Result<Vec<DeletedConnection>> {
    let rows = sqlx::query!(
        r#"WITH deleted AS MATERIALIZED (
               SELECT d.* FROM deleted_connections d JOIN canvases c ON c.key = d.canvas_key
               WHERE d.canvas_key = $1 AND d.id = ANY($2) AND d.sequence > c.sequence - $3
           ), place AS (
               SELECT id, count(*) FILTER (WHERE id IS NULL) OVER (ORDER BY ordinal) AS preceding
               FROM (SELECT NULL AS id, ordinal FROM connections WHERE canvas_key = $1
                     UNION ALL SELECT id, ordinal FROM deleted) AS every
           )
           SELECT id AS "id!", from_node_id AS "from_node_id!", to_node_id AS "to_node_id!", purpose AS "purpose!", role, ref AS short,
                  preceding AS "preceding!"
           FROM deleted JOIN place USING (id) ORDER BY ordinal"#,
        canvas_key,
        &ids(connections),
        CHANGES_KEPT,
    )
    .fetch_all(conn)
    .await?;
    let deleted = rows.into_iter().map(|row| {
        let connection = ConnectionRow {
            id: row.id,
            from_node_id: row.from_node_id,
            to_node_id: row.to_node_id,
            purpose: row.purpose,
            role: row.role,
            short: row.short,
        };
        Ok(DeletedConnection { connection: connection.connection()?, preceding: count(row.preceding)? })
    });
    deleted.collect()
}

fn count(number: i64) -> Result<usize> {
    usize::try_from(number).map_err(|_| unreadable("preceding", number))
}
