//! Nodes and connections, one row each, so that placing an output writes O(1) rows.

use domain::graph::{Connection, Node, Position};
use domain::id::{AccountUid, AssetHandle, AssetId, ConnectionId, NodeId};
use domain::object::Object;
use serde_json::Value;
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use super::unreadable;
use crate::Result;
use crate::error::known;

pub(crate) struct NodeRow {
    id: String,
    kind: String,
    title: String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    agent_owned: bool,
    metadata: String,
    server: String,
    asset_owner: Option<String>,
    asset_id: Option<String>,
    active_job: Option<Uuid>,
}

impl NodeRow {
    fn node(self) -> Result<Node> {
        let asset = match (self.asset_owner, self.asset_id) {
            (Some(owner), Some(id)) => {
                Some(AssetHandle { owner: AccountUid::from_stored(owner), id: AssetId::from_stored(id) })
            }
            _ => None,
        };
        Ok(Node {
            id: NodeId::from_stored(self.id),
            kind: known("nodes.type", &self.kind)?,
            title: self.title,
            position: Position { x: self.x, y: self.y },
            width: self.width,
            height: self.height,
            agent_owned: self.agent_owned,
            metadata: object("nodes.metadata", self.metadata)?,
            server: object("nodes.server", self.server)?,
            asset,
            active_job: self.active_job,
        })
    }
}

fn object(column: &'static str, text: String) -> Result<Object> {
    // The error does not contain the value: it belongs to the client, and errors are logged.
    Object::from_stored(text).map_err(|_| unreadable(column, "not an object"))
}

pub(crate) struct ConnectionRow {
    id: String,
    from_node_id: String,
    to_node_id: String,
    purpose: String,
    role: Option<String>,
}

impl ConnectionRow {
    fn connection(self) -> Result<Connection> {
        Ok(Connection {
            id: ConnectionId::from_stored(self.id),
            from: NodeId::from_stored(self.from_node_id),
            to: NodeId::from_stored(self.to_node_id),
            purpose: known("connections.purpose", &self.purpose)?,
            role: self.role.as_deref().map(|role| known("connections.role", role)).transpose()?,
        })
    }
}

/// Reads every node and connection of a canvas, in the order of creation.
#[instrument(skip_all, name = "db.graph.read")]
pub async fn graph(conn: &mut PgConnection, canvas_key: i64) -> Result<(Vec<Node>, Vec<Connection>)> {
    let nodes = sqlx::query_as!(
        NodeRow,
        r#"SELECT id, type AS kind, title, x, y, width, height, agent_owned, metadata::text AS "metadata!",
                  server::text AS "server!", asset_owner, asset_id, active_job
           FROM nodes WHERE canvas_key = $1 ORDER BY ordinal"#,
        canvas_key
    )
    .fetch_all(&mut *conn)
    .await?;
    Ok((nodes.into_iter().map(NodeRow::node).collect::<Result<_>>()?, connections(conn, canvas_key).await?))
}

/// Reads every node and connection of a canvas with only the fields that a review needs, in the order of creation. Titles are
/// empty. Client-written metadata is included only where it names a Section or may be the text output of a job. The cost
/// depends on the number of frames and not on the length of their text.
#[instrument(skip_all, name = "db.graph.skeleton")]
pub async fn skeleton(conn: &mut PgConnection, canvas_key: i64) -> Result<(Vec<Node>, Vec<Connection>)> {
    let nodes = sqlx::query_as!(
        NodeRow,
        r#"SELECT id, type AS kind, '' AS "title!", x, y, width, height, agent_owned,
                  CASE WHEN metadata::text LIKE '%"section%' OR (type = 'text' AND server::text <> '{}')
                       THEN metadata::text ELSE '{}' END AS "metadata!",
                  server::text AS "server!", asset_owner, asset_id, active_job
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
        "SELECT id, from_node_id, to_node_id, purpose, role FROM connections WHERE canvas_key = $1 ORDER BY ordinal",
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
                  server::text AS "server!", asset_owner, asset_id, active_job
           FROM nodes WHERE canvas_key = $1 AND id = $2"#,
        canvas_key,
        id.as_str()
    )
    .fetch_optional(conn)
    .await?
    .map(NodeRow::node)
    .transpose()
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
                  server::text AS "server!", asset_owner, asset_id, active_job
           FROM nodes WHERE canvas_key = $1 AND id = ANY($2) ORDER BY ordinal"#,
        canvas_key,
        &nodes as &[&str]
    )
    .fetch_all(&mut *conn)
    .await?;
    let connections: Vec<&str> = connections.iter().map(ConnectionId::as_str).collect();
    let connections = sqlx::query_as!(
        ConnectionRow,
        "SELECT id, from_node_id, to_node_id, purpose, role FROM connections
         WHERE canvas_key = $1 AND id = ANY($2) ORDER BY ordinal",
        canvas_key,
        &connections as &[&str]
    )
    .fetch_all(conn)
    .await?;
    let nodes = nodes.into_iter().map(NodeRow::node).collect::<Result<_>>()?;
    Ok((nodes, connections.into_iter().map(ConnectionRow::connection).collect::<Result<_>>()?))
}

/// Reads the nodes that wait for a job or run.
#[instrument(skip_all, name = "db.graph.nodes_of_job")]
pub async fn nodes_of_job(conn: &mut PgConnection, canvas_key: i64, job: Uuid) -> Result<Vec<Node>> {
    let nodes = sqlx::query_as!(
        NodeRow,
        r#"SELECT id, type AS kind, title, x, y, width, height, agent_owned, metadata::text AS "metadata!",
                  server::text AS "server!", asset_owner, asset_id, active_job
           FROM nodes WHERE canvas_key = $1 AND active_job = $2 ORDER BY ordinal"#,
        canvas_key,
        job
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
        "SELECT id, from_node_id, to_node_id, purpose, role FROM connections
         WHERE canvas_key = $1 AND (from_node_id = $2 OR to_node_id = $2) ORDER BY ordinal",
        canvas_key,
        id.as_str()
    )
    .fetch_all(conn)
    .await?;
    let connections = rows.into_iter().map(ConnectionRow::connection).collect::<Result<Vec<_>>>()?;
    Ok(connections.into_iter().partition(|connection| &connection.to == id))
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

/// Rows to write and delete. Other rows are not changed.
#[derive(Default)]
pub struct GraphWrites<'a> {
    /// Nodes to insert or update.
    pub nodes: Vec<&'a Node>,
    pub deleted_nodes: Vec<&'a NodeId>,
    /// Connections to insert or update.
    pub connections: Vec<&'a Connection>,
    pub deleted_connections: Vec<&'a ConnectionId>,
}

/// Writes nodes and connections of a canvas whose row the transaction has locked, with at most four statements. New rows are
/// marked as created by the change that [`super::commit_change`] records next.
#[instrument(skip_all, name = "db.graph.write")]
pub async fn write_graph(conn: &mut PgConnection, canvas_key: i64, writes: &GraphWrites<'_>) -> Result<()> {
    if !writes.deleted_connections.is_empty() {
        let ids: Vec<String> = writes.deleted_connections.iter().map(ToString::to_string).collect();
        sqlx::query!("DELETE FROM connections WHERE canvas_key = $1 AND id = ANY($2)", canvas_key, &ids)
            .execute(&mut *conn)
            .await?;
    }
    if !writes.deleted_nodes.is_empty() {
        let ids: Vec<String> = writes.deleted_nodes.iter().map(ToString::to_string).collect();
        sqlx::query!("DELETE FROM nodes WHERE canvas_key = $1 AND id = ANY($2)", canvas_key, &ids)
            .execute(&mut *conn)
            .await?;
    }
    if !writes.nodes.is_empty() {
        write_nodes(conn, canvas_key, &writes.nodes).await?;
    }
    if !writes.connections.is_empty() {
        write_connections(conn, canvas_key, &writes.connections).await?;
    }
    Ok(())
}

async fn write_nodes(conn: &mut PgConnection, canvas_key: i64, nodes: &[&Node]) -> Result<()> {
    fn column<T>(nodes: &[&Node], of: impl Fn(&Node) -> T) -> Vec<T> {
        nodes.iter().map(|node| of(node)).collect()
    }
    sqlx::query!(
        r#"INSERT INTO nodes (canvas_key, made, id, type, title, x, y, width, height, agent_owned, metadata, server,
                              asset_owner, asset_id, active_job)
           SELECT $1, (SELECT sequence + 1 FROM canvases WHERE key = $1), n.* FROM UNNEST($2::text[], $3::text[], $4::text[], $5::float8[], $6::float8[], $7::float8[],
                                      $8::float8[], $9::bool[], $10::json[], $11::json[], $12::text[], $13::text[],
                                      $14::uuid[]) AS n
           ON CONFLICT (canvas_key, id) DO UPDATE SET
               type = excluded.type, title = excluded.title, x = excluded.x, y = excluded.y, width = excluded.width,
               height = excluded.height, metadata = excluded.metadata, server = excluded.server,
               asset_owner = excluded.asset_owner, asset_id = excluded.asset_id, active_job = excluded.active_job"#,
        canvas_key,
        &column(nodes, |node| node.id.to_string()),
        &column(nodes, |node| node.kind.to_string()),
        &column(nodes, |node| node.title.clone()),
        &column(nodes, |node| node.position.x),
        &column(nodes, |node| node.position.y),
        &column(nodes, |node| node.width),
        &column(nodes, |node| node.height),
        &column(nodes, |node| node.agent_owned),
        &column(nodes, |node| Value::from(node.metadata.clone())),
        &column(nodes, |node| Value::from(node.server.clone())),
        &column(nodes, |node| node.asset.as_ref().map(|asset| asset.owner.to_string())) as &[Option<String>],
        &column(nodes, |node| node.asset.as_ref().map(|asset| asset.id.to_string())) as &[Option<String>],
        &column(nodes, |node| node.active_job) as &[Option<Uuid>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

async fn write_connections(conn: &mut PgConnection, canvas_key: i64, connections: &[&Connection]) -> Result<()> {
    fn column<T>(connections: &[&Connection], of: impl Fn(&Connection) -> T) -> Vec<T> {
        connections.iter().map(|connection| of(connection)).collect()
    }
    sqlx::query!(
        r#"INSERT INTO connections (canvas_key, made, id, from_node_id, to_node_id, purpose, role)
           SELECT $1, (SELECT sequence + 1 FROM canvases WHERE key = $1), c.* FROM UNNEST($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) AS c
           ON CONFLICT (canvas_key, id) DO UPDATE SET purpose = excluded.purpose, role = excluded.role"#,
        canvas_key,
        &column(connections, |connection| connection.id.to_string()),
        &column(connections, |connection| connection.from.to_string()),
        &column(connections, |connection| connection.to.to_string()),
        &column(connections, |connection| connection.purpose.to_string()),
        &column(connections, |connection| connection.role.map(|role| role.to_string())) as &[Option<String>],
    )
    .execute(conn)
    .await?;
    Ok(())
}
