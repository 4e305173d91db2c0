//! Refs of nodes and connections, and slugs of canvases (docs/reference/canvases.md#refs).
//!
//! **Guarantee.** A ref is given once in its canvas and never changes: not by a deletion, a restore or a write of the previous release.
//!
//! **Mechanism.** A write stores the refs of its new rows, which it took from the counters of the canvas that it has locked, and
//! moves the counters in the update of the canvas that every write makes. The previous release stores rows without refs and leaves
//! `referenced` behind `sequence`; whoever loads the canvas next gives them refs.

use std::collections::{BTreeMap, HashMap};

use domain::canvas::CanvasRecord;
use domain::graph::Node;
use domain::id::{AccountUid, CanvasHandle, CanvasId};
use domain::refs::{ConnectionRef, NodeRef, RefCounters};
use sqlx::PgConnection;
use tracing::instrument;

use crate::Result;

/// Gives a canvas that [lacks](CanvasRecord::lacks_refs) them its slug and refs, and makes no revision. Locks the canvas.
#[instrument(skip_all, name = "db.canvas.ensure_refs")]
pub async fn ensure_refs(conn: &mut PgConnection, record: &mut CanvasRecord) -> Result<()> {
    if !record.lacks_refs() {
        return Ok(());
    }
    let row =
        sqlx::query!("SELECT slug, node_ref, connection_ref FROM ensure_refs($1)", record.key).fetch_one(conn).await?;
    record.slug = row.slug;
    record.refs =
        RefCounters { node: row.node_ref.unwrap_or_default(), connection: row.connection_ref.unwrap_or_default() };
    record.referenced = record.sequence;
    Ok(())
}

/// Gives refs to nodes that a write adds to a canvas without its graph. The transaction has locked the canvas.
#[instrument(skip_all, name = "db.canvas.give_node_refs")]
pub async fn give_node_refs(conn: &mut PgConnection, canvas_key: i64, nodes: &mut [Node]) -> Result<()> {
    let count = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
    let numbers = sqlx::query_scalar!(r#"SELECT next_node_refs($1, $2) AS "number!""#, canvas_key, count);
    for (node, number) in nodes.iter_mut().zip(numbers.fetch_all(conn).await?) {
        node.short = Some(NodeRef::new(number));
    }
    Ok(())
}

/// The ids of what refs name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedByRef {
    pub nodes: HashMap<NodeRef, String>,
    pub connections: HashMap<ConnectionRef, String>,
}

/// Looks up what refs of a canvas name: nodes and connections that it has, or had and can restore. A ref that equals an id of the
/// canvas names nothing.
#[instrument(skip_all, name = "db.canvas.ids_of_refs")]
pub async fn ids_of_refs(
    conn: &mut PgConnection,
    canvas_key: i64,
    nodes: &[NodeRef],
    connections: &[ConnectionRef],
) -> Result<NamedByRef> {
    let node_numbers: Vec<i32> = nodes.iter().map(|name| name.number()).collect();
    let connection_numbers: Vec<i32> = connections.iter().map(|name| name.number()).collect();
    let found = sqlx::query!(
        r#"WITH named_nodes AS MATERIALIZED (
               SELECT ref, id FROM nodes WHERE canvas_key = $1 AND ref = ANY($2::int[])
           ), named_connections AS MATERIALIZED (
               SELECT ref, id FROM connections WHERE canvas_key = $1 AND ref = ANY($3::int[])
           ), deleted AS (
               SELECT true AS is_node, ref, id FROM deleted_nodes
               WHERE canvas_key = $1 AND ref = ANY($2::int[]) AND (SELECT count(*) FROM named_nodes) < cardinality($2::int[])
               UNION ALL
               SELECT false, ref, id FROM deleted_connections
               WHERE canvas_key = $1 AND ref = ANY($3::int[])
                 AND (SELECT count(*) FROM named_connections) < cardinality($3::int[])
           ), named AS (
               SELECT true AS is_node, ref, id FROM named_nodes
               UNION ALL SELECT false, ref, id FROM named_connections
               UNION ALL SELECT * FROM deleted
           )
           SELECT is_node AS "is_node!", ref AS "number!", id AS "id!" FROM named
           WHERE NOT EXISTS (SELECT FROM nodes n WHERE is_node AND n.canvas_key = $1 AND n.id = 'n' || named.ref)
             AND NOT EXISTS (SELECT FROM connections c WHERE NOT is_node AND c.canvas_key = $1 AND c.id = 'c' || named.ref)"#,
        canvas_key,
        &node_numbers,
        &connection_numbers,
    )
    .fetch_all(conn)
    .await?;
    let mut named = NamedByRef::default();
    for row in found {
        match row.is_node {
            true => drop(named.nodes.insert(NodeRef::new(row.number), row.id)),
            false => drop(named.connections.insert(ConnectionRef::new(row.number), row.id)),
        }
    }
    Ok(named)
}

/// The refs of nodes and connections that a canvas has, or had and can restore, by their ids.
#[instrument(skip_all, name = "db.canvas.refs_of_ids")]
pub async fn refs_of_ids(
    conn: &mut PgConnection,
    canvas_key: i64,
    nodes: &[String],
    connections: &[String],
) -> Result<BTreeMap<String, String>> {
    let rows = sqlx::query!(
        r#"SELECT id AS "id!", name AS "name!" FROM (
               SELECT id, 'n' || ref AS name FROM nodes WHERE canvas_key = $1 AND id = ANY($2::text[])
               UNION ALL SELECT id, 'n' || ref FROM deleted_nodes WHERE canvas_key = $1 AND id = ANY($2::text[])
               UNION ALL SELECT id, 'c' || ref FROM connections WHERE canvas_key = $1 AND id = ANY($3::text[])
               UNION ALL SELECT id, 'c' || ref FROM deleted_connections WHERE canvas_key = $1 AND id = ANY($3::text[])
           ) named WHERE name IS NOT NULL"#,
        canvas_key,
        nodes,
        connections,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
}

/// The handle of the canvas that a slug names, if `caller` owns it or has a role on it.
#[instrument(skip_all, name = "db.canvas.handle_of_slug")]
pub async fn handle_of_slug(conn: &mut PgConnection, caller: &AccountUid, slug: &str) -> Result<Option<CanvasHandle>> {
    let row = sqlx::query!(
        "SELECT owner_uid, id FROM canvases c
         WHERE slug = $2
           AND (owner_uid = $1 OR EXISTS (SELECT FROM canvas_shares s WHERE s.canvas_key = c.key AND s.account_uid = $1))",
        caller.as_str(),
        slug,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| CanvasHandle { owner: AccountUid::from_stored(row.owner_uid), id: CanvasId::from_stored(row.id) }))
}
