//! Skeletons: the nodes and connections of a canvas with only the fields that a review needs.

use std::collections::HashMap;

use domain::graph::{Connection, Node};
use sqlx::PgConnection;
use tracing::instrument;

use super::graph::{ConnectionRow, NodeRow};
use crate::Result;

/// Nodes and connections in the order of creation. Client-written metadata is included only where it names a Section, marks a
/// placeholder or holds a text.
pub type Skeleton = (Vec<Node>, Vec<Connection>);

/// Reads the skeleton of a canvas.
pub async fn skeleton(conn: &mut PgConnection, canvas_key: i64) -> Result<Skeleton> {
    Ok(skeletons(conn, &[canvas_key]).await?.remove(&canvas_key).unwrap_or_default())
}

/// Reads the skeletons of several canvases, by their keys.
#[instrument(skip_all, name = "db.graph.skeleton")]
pub async fn skeletons(conn: &mut PgConnection, canvas_keys: &[i64]) -> Result<HashMap<i64, Skeleton>> {
    let nodes = sqlx::query!(
        r#"SELECT canvas_key, id, type AS kind, title, x, y, width, height, agent_owned,
                  CASE WHEN type IN ('text', 'sticky') OR metadata::text LIKE ANY (ARRAY['%"section%', '%"placeholder"%'])
                       THEN metadata::text ELSE '{}' END AS "metadata!",
                  server::text AS "server!", asset_owner, asset_id, active_job, ref AS short
           FROM nodes WHERE canvas_key = ANY((SELECT $1::bigint[])::bigint[]) ORDER BY canvas_key, ordinal"#,
        canvas_keys
    );
    let mut skeletons: HashMap<i64, Skeleton> = HashMap::with_capacity(canvas_keys.len());
    for row in nodes.fetch_all(&mut *conn).await? {
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
        skeletons.entry(row.canvas_key).or_default().0.push(node.node()?);
    }
    let connections = sqlx::query!(
        "SELECT canvas_key, id, from_node_id, to_node_id, purpose, role, ref AS short FROM connections
         WHERE canvas_key = ANY((SELECT $1::bigint[])::bigint[]) ORDER BY canvas_key, ordinal",
        canvas_keys
    );
    for row in connections.fetch_all(conn).await? {
        let connection = ConnectionRow {
            id: row.id,
            from_node_id: row.from_node_id,
            to_node_id: row.to_node_id,
            purpose: row.purpose,
            role: row.role,
            short: row.short,
        };
        skeletons.entry(row.canvas_key).or_default().1.push(connection.connection()?);
    }
    Ok(skeletons)
}
