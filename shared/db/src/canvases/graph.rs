//! Nodes and connections, one row each, so that placing an output writes O(1) rows.

use domain::graph::{Connection, Node, Position, Role};
use domain::id::{AccountUid, AssetHandle, AssetId, ConnectionId, JobId, NodeId};
use domain::refs::{ConnectionRef, NodeRef};
use domain::stored::Stored;
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use super::unreadable;
use crate::Result;
use crate::error::known;

pub(crate) struct NodeRow {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) title: String,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) agent_owned: bool,
    pub(crate) metadata: String,
    pub(crate) server: String,
    pub(crate) asset_owner: Option<String>,
    pub(crate) asset_id: Option<String>,
    pub(crate) active_job: Option<Uuid>,
    pub(crate) short: Option<i32>,
}

impl NodeRow {
    pub(crate) fn node(self) -> Result<Node> {
        let asset = match (self.asset_owner, self.asset_id) {
            (Some(owner), Some(id)) => {
                Some(AssetHandle { owner: AccountUid::from_stored(owner), id: AssetId::from_stored(id) })
            }
            _ => None,
        };
        Ok(Node {
            id: NodeId::from_stored(self.id),
            short: self.short.map(NodeRef::new),
            kind: known("nodes.type", &self.kind)?,
            title: self.title,
            position: Position { x: self.x, y: self.y },
            width: self.width,
            height: self.height,
            agent_owned: self.agent_owned,
            // The errors do not contain the values: they belong to the client, and errors are logged.
            metadata: Stored::from_stored(self.metadata).map_err(|_| unreadable("nodes.metadata", "not an object"))?,
            server: Stored::from_stored(self.server).map_err(|_| unreadable("nodes.server", "not an object"))?,
            asset,
            active_job: self.active_job,
        })
    }
}

pub(crate) struct ConnectionRow {
    pub(super) id: String,
    pub(super) from_node_id: String,
    pub(super) to_node_id: String,
    pub(super) purpose: String,
    pub(super) role: Option<String>,
    pub(super) short: Option<i32>,
}

impl ConnectionRow {
    pub(super) fn connection(self) -> Result<Connection> {
        Ok(Connection {
            id: ConnectionId::from_stored(self.id),
            short: self.short.map(ConnectionRef::new),
            from: NodeId::from_stored(self.from_node_id),
            to: NodeId::from_stored(self.to_node_id),
            purpose: known("connections.purpose", &self.purpose)?,
            role: role(self.role.as_deref())?,
        })
    }
}

fn role(role: Option<&str>) -> Result<Option<Role>> {
    role.map(|role| known("connections.role", role)).transpose()
}

/// Reads every node and connection of a canvas, in the order of creation.
#[instrument(skip_all, name = "db.graph.read")]
pub async fn graph(conn: &mut PgConnection, canvas_key: i64) -> Result<(Vec<Node>, Vec<Connection>)> {
    let nodes = sqlx::query_as!(
        NodeRow,
        r#"SELECT id, type AS kind, title, x, y, width, height, agent_owned, metadata::text AS "metadata!",
                  server::text AS "server!", asset_owner, asset_id, active_job, ref AS short
           FROM nodes WHERE canvas_key = $1 ORDER BY ordinal"#,
        canvas_key
    )
    .fetch_all(&mut *conn)
    .await?;
    Ok((nodes.into_iter().map(NodeRow::node).collect::<Result<_>>()?, connections(conn, canvas_key).await?))
}

async fn connections(conn: &mut PgConnection, canvas_key: i64) -> Result<Vec<Connection>> {
    let rows = sqlx::query_as!(
        ConnectionRow,
        "SELECT id, from_node_id, to_node_id, purpose, role, ref AS short FROM connections WHERE canvas_key = $1 ORDER BY ordinal",
        canvas_key
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(ConnectionRow::connection).collect()
}

/// Reads one node.
#[instrument(skip_all, name = "db.graph.node")]
pub async fn node(conn: &mut PgConnection, canvas_key: i64, id: &NodeId) -> Result<Option<Node>> {
    sqlx::query_as!(
        NodeRow,
        r#"SELECT id, type AS kind, title, x, y, width, height, agent_owned, metadata::text AS "metadata!",
                  server::text AS "server!", asset_owner, asset_id, active_job, ref AS short
           FROM nodes WHERE canvas_key = $1 AND id = $2"#,
        canvas_key,
        id.as_str()
    )
    .fetch_optional(conn)
    .await?
    .map(NodeRow::node)
    .transpose()
}

/// Reads those nodes of these ids that the canvas's change with this sequence created, in the order of creation.
#[instrument(skip_all, name = "db.graph.made_in")]
pub async fn made_in(conn: &mut PgConnection, canvas_key: i64, sequence: i64, ids: &[NodeId]) -> Result<Vec<Node>> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let nodes = sqlx::query_as!(
        NodeRow,
        r#"SELECT id, type AS kind, title, x, y, width, height, agent_owned, metadata::text AS "metadata!",
                  server::text AS "server!", asset_owner, asset_id, active_job, ref AS short
           FROM nodes WHERE canvas_key = $1 AND id = ANY($2) AND made = $3 ORDER BY ordinal"#,
        canvas_key,
        &ids,
        sequence
    )
    .fetch_all(conn)
    .await?;
    nodes.into_iter().map(NodeRow::node).collect()
}

/// Reads the nodes and connections of these ids that a canvas has, in the order of creation.
#[instrument(skip_all, name = "db.graph.part")]
pub async fn part(
    conn: &mut PgConnection,
    canvas_key: i64,
    nodes: &[NodeId],
    connections: &[ConnectionId],
) -> Result<(Vec<Node>, Vec<Connection>)> {
    let nodes: Vec<&str> = nodes.iter().map(NodeId::as_str).collect();
    let nodes = sqlx::query_as!(
        NodeRow,
        r#"SELECT id, type AS kind, title, x, y, width, height, agent_owned, metadata::text AS "metadata!",
                  server::text AS "server!", asset_owner, asset_id, active_job, ref AS short
           FROM nodes WHERE canvas_key = $1 AND id = ANY($2) ORDER BY ordinal"#,
        canvas_key,
        &nodes as &[&str]
    )
    .fetch_all(&mut *conn)
    .await?;
    let connections: Vec<&str> = connections.iter().map(ConnectionId::as_str).collect();
    let connections = sqlx::query_as!(
        ConnectionRow,
        "SELECT id, from_node_id, to_node_id, purpose, role, ref AS short FROM connections
         WHERE canvas_key = $1 AND id = ANY($2) ORDER BY ordinal",
        canvas_key,
        &connections as &[&str]
    )
    .fetch_all(conn)
    .await?;
    let nodes = nodes.into_iter().map(NodeRow::node).collect::<Result<_>>()?;
    Ok((nodes, connections.into_iter().map(ConnectionRow::connection).collect::<Result<_>>()?))
}

/// The last of the nodes and connections that a reader knows, and the first of those that were made since.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends<'a> {
    pub last_node: Option<&'a NodeId>,
    pub made_node: Option<&'a NodeId>,
    pub last_connection: Option<&'a ConnectionId>,
    pub made_connection: Option<&'a ConnectionId>,
}

/// Returns `true` if what was made comes after what is known, in the order of creation. What was restored may come before.
#[instrument(skip_all, name = "db.graph.are_appended")]
pub async fn are_appended(conn: &mut PgConnection, canvas_key: i64, ends: &Ends<'_>) -> Result<bool> {
    let nodes = ends.last_node.zip(ends.made_node).unzip();
    let connections = ends.last_connection.zip(ends.made_connection).unzip();
    if nodes.0.is_none() && connections.0.is_none() {
        return Ok(true);
    }
    let appended = sqlx::query_scalar!(
        r#"SELECT coalesce((SELECT ordinal FROM nodes WHERE canvas_key = $1 AND id = $2)
                           < (SELECT ordinal FROM nodes WHERE canvas_key = $1 AND id = $3), $2 IS NULL)
                  AND coalesce((SELECT ordinal FROM connections WHERE canvas_key = $1 AND id = $4)
                               < (SELECT ordinal FROM connections WHERE canvas_key = $1 AND id = $5), $4 IS NULL)
                  AS "appended!""#,
        canvas_key,
        nodes.0.map(NodeId::as_str),
        nodes.1.map(NodeId::as_str),
        connections.0.map(ConnectionId::as_str),
        connections.1.map(ConnectionId::as_str),
    );
    Ok(appended.fetch_one(conn).await?)
}

/// Reads the nodes that wait for a job or run.
#[instrument(skip_all, name = "db.graph.nodes_of_job")]
pub async fn nodes_of_job(conn: &mut PgConnection, canvas_key: i64, job: Uuid) -> Result<Vec<Node>> {
    let nodes = sqlx::query_as!(
        NodeRow,
        r#"SELECT id, type AS kind, title, x, y, width, height, agent_owned, metadata::text AS "metadata!",
                  server::text AS "server!", asset_owner, asset_id, active_job, ref AS short
           FROM nodes WHERE canvas_key = $1 AND active_job = $2 ORDER BY ordinal"#,
        canvas_key,
        job
    )
    .fetch_all(conn)
    .await?;
    nodes.into_iter().map(NodeRow::node).collect()
}

/// Reads the nodes that wait for jobs: of these canvases, ids and jobs, those that a canvas has and that still wait for the job, in
/// this order.
#[instrument(skip_all, name = "db.graph.waiting")]
pub async fn waiting(conn: &mut PgConnection, targets: &[(i64, &NodeId, JobId)]) -> Result<Vec<Node>> {
    let canvases: Vec<i64> = targets.iter().map(|(canvas_key, ..)| *canvas_key).collect();
    let ids: Vec<&str> = targets.iter().map(|(_, id, _)| id.as_str()).collect();
    let jobs: Vec<Uuid> = targets.iter().map(|(.., job)| job.0).collect();
    let nodes = sqlx::query_as!(
        NodeRow,
        r#"SELECT n.id, n.type AS kind, n.title, n.x, n.y, n.width, n.height, n.agent_owned, n.metadata::text AS "metadata!",
                  n.server::text AS "server!", n.asset_owner, n.asset_id, n.active_job, n.ref AS short
           FROM unnest((SELECT $1::bigint[]), (SELECT $2::text[]), (SELECT $3::uuid[]))
               WITH ORDINALITY AS asked (canvas_key, id, job, place)
           CROSS JOIN LATERAL (SELECT * FROM nodes WHERE canvas_key = asked.canvas_key AND id = asked.id LIMIT 1) AS n
           WHERE n.active_job = asked.job ORDER BY asked.place"#,
        &canvases,
        &ids as &[&str],
        &jobs,
    )
    .fetch_all(conn)
    .await?;
    nodes.into_iter().map(NodeRow::node).collect()
}

/// Frees the nodes that wait for a job or run, without reading them and without changing what is served of them. Returns their ids.
#[instrument(skip_all, name = "db.graph.release_unread")]
pub async fn release_unread(conn: &mut PgConnection, canvas_key: i64, job: Uuid) -> Result<Vec<NodeId>> {
    let ids = sqlx::query_scalar!(
        "UPDATE nodes SET active_job = NULL WHERE canvas_key = $1 AND active_job = $2 RETURNING id",
        canvas_key,
        job
    )
    .fetch_all(conn)
    .await?;
    Ok(ids.into_iter().map(NodeId::from_stored).collect())
}

/// Reads the connections into and out of a node, in the order of creation.
#[instrument(skip_all, name = "db.graph.connections_of")]
pub async fn connections_of(
    conn: &mut PgConnection,
    canvas_key: i64,
    id: &NodeId,
) -> Result<(Vec<Connection>, Vec<Connection>)> {
    let rows = sqlx::query_as!(
        ConnectionRow,
        "SELECT id, from_node_id, to_node_id, purpose, role, ref AS short FROM connections
         WHERE canvas_key = $1 AND (from_node_id = $2 OR to_node_id = $2) ORDER BY ordinal",
        canvas_key,
        id.as_str()
    )
    .fetch_all(conn)
    .await?;
    let connections = rows.into_iter().map(ConnectionRow::connection).collect::<Result<Vec<_>>>()?;
    Ok(connections.into_iter().partition(|connection| &connection.to == id))
}

/// A `reference` connection into a node.
#[derive(Clone, Debug, PartialEq)]
pub struct IncomingReference {
    /// The node that it comes from.
    pub from: NodeId,
    /// Use of the image.
    pub role: Option<Role>,
    /// The image that the node shows, if it is an image node and shows one.
    pub image: Option<AssetHandle>,
}

/// Reads the `reference` connections into a node with the images that they bring, in the order of creation.
#[instrument(skip_all, name = "db.graph.references_into")]
pub async fn references_into(conn: &mut PgConnection, canvas_key: i64, id: &NodeId) -> Result<Vec<IncomingReference>> {
    // A sub-select with a limit is run once for each connection, by its index (see `accounts::authenticate`).
    let rows = sqlx::query!(
        r#"SELECT c.from_node_id, c.role, p.owner_uid AS "owner_uid?", p.id AS "id?"
           FROM connections c
           LEFT JOIN LATERAL (
               SELECT type, asset_owner, asset_id FROM nodes WHERE canvas_key = $1 AND id = c.from_node_id LIMIT 1
           ) AS n ON true
           LEFT JOIN LATERAL (
               SELECT owner_uid, id FROM assets
               WHERE owner_uid = n.asset_owner AND id = n.asset_id AND kind = 'image' LIMIT 1
           ) AS p ON n.type = 'image'
           WHERE c.canvas_key = $1 AND c.to_node_id = $2 AND c.purpose = 'reference' ORDER BY c.ordinal"#,
        canvas_key,
        id.as_str()
    )
    .fetch_all(conn)
    .await?;
    let references = rows.into_iter().map(|row| {
        let handle = |(owner, id)| AssetHandle { owner: AccountUid::from_stored(owner), id: AssetId::from_stored(id) };
        let image = row.owner_uid.zip(row.id).map(handle);
        Ok(IncomingReference { from: NodeId::from_stored(row.from_node_id), role: role(row.role.as_deref())?, image })
    });
    references.collect()
}

/// Position and size of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeFrame {
    /// Top left corner, in canvas units.
    pub position: Position,
    /// Width in canvas units.
    pub width: f64,
    /// Height in canvas units.
    pub height: f64,
}

/// Reads the position and size of every node of a canvas: only what the placement of a new node needs.
#[instrument(skip_all, name = "db.graph.frames")]
pub async fn frames(conn: &mut PgConnection, canvas_key: i64) -> Result<Vec<NodeFrame>> {
    let rows =
        sqlx::query!("SELECT x, y, width, height FROM nodes WHERE canvas_key = $1", canvas_key).fetch_all(conn).await?;
    Ok(rows
        .into_iter()
        .map(|row| NodeFrame { position: Position { x: row.x, y: row.y }, width: row.width, height: row.height })
        .collect())
}
