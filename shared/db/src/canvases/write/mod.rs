//! Writes of nodes and connections. What is deleted is kept with the change that deletes it, as long as that change is kept and
//! is among the last 64 MiB of deletions, and can be restored until then.

mod whole;

use std::collections::HashMap;

use domain::graph::{Connection, DeletedConnection, DeletedNode, Node};
use domain::id::{ConnectionId, NodeId};
use domain::limits::{CHANGES_KEPT, DELETED_BYTES_MAX};
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use super::graph::{ConnectionRow, NodeRow};
use super::{ids, unreadable};
use crate::Result;

pub use whole::{WholeWrite, write_whole};

/// Rows to write and delete. Other rows are not changed.
#[derive(Default)]
pub struct GraphWrites<'a> {
    /// Nodes to insert or update.
    pub nodes: Vec<&'a Node>,
    pub deleted_nodes: Vec<&'a NodeId>,
    /// Connections to insert or update.
    pub connections: Vec<&'a Connection>,
    pub deleted_connections: Vec<&'a ConnectionId>,
    /// Those of the nodes to insert that were deleted before.
    pub restored_nodes: Vec<&'a NodeId>,
    /// Those of the connections to insert that were deleted before.
    pub restored_connections: Vec<&'a ConnectionId>,
    /// Members of the Sections among the deleted nodes: Section and member.
    pub freed: Vec<(&'a NodeId, &'a NodeId)>,
}

/// Writes nodes and connections of a canvas whose row the transaction has locked, with at most seven statements. New and restored
/// rows are marked as created, and deleted ones are kept, by the change that [`super::commit_change`] records next in the same
/// transaction.
#[instrument(skip_all, name = "db.graph.write")]
pub async fn write_graph(conn: &mut PgConnection, canvas_key: i64, writes: &GraphWrites<'_>) -> Result<()> {
    let mut deleted_bytes = 0;
    if !writes.deleted_connections.is_empty() {
        deleted_bytes += delete_connections(conn, canvas_key, &texts(&writes.deleted_connections)).await?;
    }
    if !writes.deleted_nodes.is_empty() {
        deleted_bytes += delete_nodes(conn, canvas_key, &texts(&writes.deleted_nodes), &writes.freed).await?;
    }
    if !writes.nodes.is_empty() {
        let places = take_nodes(conn, canvas_key, &writes.restored_nodes).await?;
        write_nodes(conn, canvas_key, &writes.nodes, &places).await?;
    }
    if !writes.connections.is_empty() {
        let places = take_connections(conn, canvas_key, &writes.restored_connections).await?;
        write_connections(conn, canvas_key, &writes.connections, &places).await?;
    }
    // Last, because what this change restores may be among the oldest.
    if deleted_bytes > 0 {
        forget_oldest(conn, canvas_key, deleted_bytes).await?;
    }
    Ok(())
}

fn texts<T: ToString>(ids: &[&T]) -> Vec<String> {
    ids.iter().map(|id| id.to_string()).collect()
}

/// Returns the bytes of what was deleted.
async fn delete_connections(conn: &mut PgConnection, canvas_key: i64, ids: &[String]) -> Result<i64> {
    let bytes = sqlx::query_scalar!(
        r#"WITH deleted AS (
               DELETE FROM connections WHERE canvas_key = $1 AND id = ANY($2) RETURNING *
           ), kept AS (
               INSERT INTO deleted_connections (canvas_key, id, sequence, deleted_before, ordinal, from_node_id, to_node_id,
                                                purpose, role)
               SELECT canvas_key, d.id, c.sequence + 1, c.deleted_bytes, ordinal, from_node_id, to_node_id, purpose, role
               FROM deleted d JOIN canvases c ON c.key = d.canvas_key
               RETURNING octet_length(id) + octet_length(from_node_id) + octet_length(to_node_id) AS bytes
           )
           SELECT coalesce(sum(bytes), 0)::bigint AS "bytes!" FROM kept"#,
        canvas_key,
        ids
    );
    Ok(bytes.fetch_one(conn).await?)
}

/// Returns the bytes of what was deleted.
async fn delete_nodes(
    conn: &mut PgConnection,
    canvas_key: i64,
    ids: &[String],
    freed: &[(&NodeId, &NodeId)],
) -> Result<i64> {
    let (sections, members): (Vec<String>, Vec<String>) =
        freed.iter().map(|(section, member)| (section.to_string(), member.to_string())).unzip();
    let bytes = sqlx::query_scalar!(
        r#"WITH deleted AS (
               DELETE FROM nodes WHERE canvas_key = $1 AND id = ANY($2) RETURNING *
           ), freed AS (
               SELECT section, array_agg(member) AS members FROM UNNEST($3::text[], $4::text[]) AS f (section, member)
               GROUP BY section
           ), kept AS (
               INSERT INTO deleted_nodes (canvas_key, id, sequence, deleted_before, ordinal, type, title, x, y, width, height,
                                          agent_owned, metadata, server, asset_owner, asset_id, active_job, members)
               SELECT canvas_key, d.id, c.sequence + 1, c.deleted_bytes, ordinal, type, d.title, x, y, width, height,
                      agent_owned, metadata, server, asset_owner, asset_id, active_job, coalesce(members, '{}')
               FROM deleted d JOIN canvases c ON c.key = d.canvas_key LEFT JOIN freed ON freed.section = d.id
               RETURNING octet_length(id) + octet_length(title) + octet_length(metadata::text) + octet_length(server::text)
                         + octet_length(array_to_string(members, '')) AS bytes
           )
           SELECT coalesce(sum(bytes), 0)::bigint AS "bytes!" FROM kept"#,
        canvas_key,
        ids,
        &sections,
        &members,
    );
    Ok(bytes.fetch_one(conn).await?)
}

/// Counts the bytes that a change deleted, and deletes the oldest deletions beyond the limit. A deletion is kept as long as what
/// its change and all later ones deleted is within the limit, so it costs only what it deletes.
async fn forget_oldest(conn: &mut PgConnection, canvas_key: i64, deleted_bytes: i64) -> Result<()> {
    sqlx::query!(
        "WITH counted AS (
             UPDATE canvases SET deleted_bytes = deleted_bytes + $2 WHERE key = $1 RETURNING key, deleted_bytes - $3 AS forgotten
         ), nodes AS (
             DELETE FROM deleted_nodes USING counted WHERE canvas_key = key AND deleted_before < forgotten
         )
         DELETE FROM deleted_connections USING counted WHERE canvas_key = key AND deleted_before < forgotten",
        canvas_key,
        deleted_bytes,
        DELETED_BYTES_MAX,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes deleted nodes that are restored from the deleted ones. Returns their places in the order of creation.
async fn take_nodes(conn: &mut PgConnection, canvas_key: i64, ids: &[&NodeId]) -> Result<HashMap<String, i64>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let ids = texts(ids);
    let rows = sqlx::query!(
        "DELETE FROM deleted_nodes WHERE canvas_key = $1 AND id = ANY($2) RETURNING id, ordinal",
        canvas_key,
        &ids
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.id, row.ordinal)).collect())
}

/// [`take_nodes`] for connections.
async fn take_connections(
    conn: &mut PgConnection,
    canvas_key: i64,
    ids: &[&ConnectionId],
) -> Result<HashMap<String, i64>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let ids = texts(ids);
    let rows = sqlx::query!(
        "DELETE FROM deleted_connections WHERE canvas_key = $1 AND id = ANY($2) RETURNING id, ordinal",
        canvas_key,
        &ids
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (row.id, row.ordinal)).collect())
}

/// Nodes as columns of the table `nodes`.
struct NodeColumns {
    ids: Vec<String>,
    kinds: Vec<String>,
    titles: Vec<String>,
    xs: Vec<f64>,
    ys: Vec<f64>,
    widths: Vec<f64>,
    heights: Vec<f64>,
    agent_owned: Vec<bool>,
    metadata: Vec<String>,
    server: Vec<String>,
    asset_owners: Vec<Option<String>>,
    asset_ids: Vec<Option<String>>,
    active_jobs: Vec<Option<Uuid>>,
}

impl NodeColumns {
    fn of(nodes: &[&Node]) -> Self {
        fn column<T>(nodes: &[&Node], of: impl Fn(&Node) -> T) -> Vec<T> {
            nodes.iter().map(|node| of(node)).collect()
        }
        Self {
            ids: column(nodes, |node| node.id.to_string()),
            kinds: column(nodes, |node| node.kind.to_string()),
            titles: column(nodes, |node| node.title.clone()),
            xs: column(nodes, |node| node.position.x),
            ys: column(nodes, |node| node.position.y),
            widths: column(nodes, |node| node.width),
            heights: column(nodes, |node| node.height),
            agent_owned: column(nodes, |node| node.agent_owned),
            metadata: column(nodes, |node| node.metadata.text().into_owned()),
            server: column(nodes, |node| node.server.text().into_owned()),
            asset_owners: column(nodes, |node| node.asset.as_ref().map(|asset| asset.owner.to_string())),
            asset_ids: column(nodes, |node| node.asset.as_ref().map(|asset| asset.id.to_string())),
            active_jobs: column(nodes, |node| node.active_job),
        }
    }
}

async fn write_nodes(
    conn: &mut PgConnection,
    canvas_key: i64,
    nodes: &[&Node],
    places: &HashMap<String, i64>,
) -> Result<()> {
    let columns = NodeColumns::of(nodes);
    let places: Vec<Option<i64>> = columns.ids.iter().map(|id| places.get(id).copied()).collect();
    sqlx::query!(
        r#"INSERT INTO nodes (canvas_key, made, ordinal, id, type, title, x, y, width, height, agent_owned, metadata, server,
                              asset_owner, asset_id, active_job)
           OVERRIDING SYSTEM VALUE
           SELECT $1, (SELECT sequence + 1 FROM canvases WHERE key = $1), coalesce(place, nextval('nodes_ordinal_seq')), id, type,
                  title, x, y, width, height, agent_owned, metadata::json, server::json, asset_owner, asset_id, active_job
           FROM UNNEST($2::text[], $3::text[], $4::text[], $5::float8[], $6::float8[], $7::float8[], $8::float8[], $9::bool[],
                       $10::text[], $11::text[], $12::text[], $13::text[], $14::uuid[], $15::int8[])
                AS n (id, type, title, x, y, width, height, agent_owned, metadata, server, asset_owner, asset_id, active_job, place)
           ON CONFLICT (canvas_key, id) DO UPDATE SET
               type = excluded.type, title = excluded.title, x = excluded.x, y = excluded.y, width = excluded.width,
               height = excluded.height, metadata = excluded.metadata, server = excluded.server,
               asset_owner = excluded.asset_owner, asset_id = excluded.asset_id, active_job = excluded.active_job"#,
        canvas_key,
        &columns.ids,
        &columns.kinds,
        &columns.titles,
        &columns.xs,
        &columns.ys,
        &columns.widths,
        &columns.heights,
        &columns.agent_owned,
        &columns.metadata,
        &columns.server,
        &columns.asset_owners as &[Option<String>],
        &columns.asset_ids as &[Option<String>],
        &columns.active_jobs as &[Option<Uuid>],
        &places as &[Option<i64>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Connections as columns of the table `connections`.
struct ConnectionColumns {
    ids: Vec<String>,
    from: Vec<String>,
    to: Vec<String>,
    purposes: Vec<String>,
    roles: Vec<Option<String>>,
}

impl ConnectionColumns {
    fn of(connections: &[&Connection]) -> Self {
        fn column<T>(connections: &[&Connection], of: impl Fn(&Connection) -> T) -> Vec<T> {
            connections.iter().map(|connection| of(connection)).collect()
        }
        Self {
            ids: column(connections, |connection| connection.id.to_string()),
            from: column(connections, |connection| connection.from.to_string()),
            to: column(connections, |connection| connection.to.to_string()),
            purposes: column(connections, |connection| connection.purpose.to_string()),
            roles: column(connections, |connection| connection.role.map(|role| role.to_string())),
        }
    }
}

async fn write_connections(
    conn: &mut PgConnection,
    canvas_key: i64,
    connections: &[&Connection],
    places: &HashMap<String, i64>,
) -> Result<()> {
    let columns = ConnectionColumns::of(connections);
    let places: Vec<Option<i64>> = columns.ids.iter().map(|id| places.get(id).copied()).collect();
    sqlx::query!(
        r#"INSERT INTO connections (canvas_key, made, ordinal, id, from_node_id, to_node_id, purpose, role)
           OVERRIDING SYSTEM VALUE
           SELECT $1, (SELECT sequence + 1 FROM canvases WHERE key = $1), coalesce(place, nextval('connections_ordinal_seq')), id,
                  from_node_id, to_node_id, purpose, role
           FROM UNNEST($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int8[])
                AS c (id, from_node_id, to_node_id, purpose, role, place)
           ON CONFLICT (canvas_key, id) DO UPDATE SET purpose = excluded.purpose, role = excluded.role"#,
        canvas_key,
        &columns.ids,
        &columns.from,
        &columns.to,
        &columns.purposes,
        &columns.roles as &[Option<String>],
        &places as &[Option<i64>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

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
                  active_job, members AS "members!", preceding AS "preceding!"
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
           SELECT id AS "id!", from_node_id AS "from_node_id!", to_node_id AS "to_node_id!", purpose AS "purpose!", role,
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
        };
        Ok(DeletedConnection { connection: connection.connection()?, preceding: count(row.preceding)? })
    });
    deleted.collect()
}

fn count(number: i64) -> Result<usize> {
    usize::try_from(number).map_err(|_| unreadable("preceding", number))
}

#[cfg(test)]
mod tests;
