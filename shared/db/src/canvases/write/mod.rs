//! The one statement that writes to a canvas: rows of its graph, its next revision, and the record of what changed.
//!
//! **Guarantee.** Rows, revision, `/changes` and activity always agree. New and restored rows are marked as created, and deleted
//! ones are kept, by the change that is recorded with them.
//!
//! **Mechanism.** All parts of the statement see the rows as they were before it. A part that must follow another reads its result:
//! key, lock, room, deleted and restored rows, written rows, trimming with the canvas, record. No row is named twice
//! ([`GraphWrites`]). Trimming sees what was deleted before it. The unique key of connections is checked at the end, so that a new
//! connection can replace a deleted one.
//!
//! **Size.** Each record has its size, and `history_bytes` is their sum. A trigger counts it and the graph for the owner
//! (docs/reference/assets.md#storage-quota), and only where a step of 64 KiB begins is the owner's storage locked.

use domain::canvas::{ActivityType, Actor, CanvasRecord};
use domain::graph::{Connection, GraphWrites, Node};
use domain::id::NodeId;
use domain::limits::{CHANGES_KEPT, DELETED_BYTES_MAX};
use domain::refs::{ConnectionRef, NodeRef};
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use super::{CanvasRow, StoredActivity, TRIM_EVERY, ids};
use crate::Result;
use crate::idempotency::NewKey;

/// A change of a canvas.
pub struct Change<'a> {
    pub revision: &'a str,
    /// The new title, if it changes.
    pub title: Option<&'a str>,
    /// The rows that it writes and deletes.
    pub graph: GraphWrites<'a>,
    /// Nodes that changed although their rows are not written: what they show was deleted, or the transaction has written them.
    pub changed_otherwise: &'a [NodeId],
    /// Growth of the serialized graph in bytes.
    pub bytes_delta: i64,
    /// Sections that existed before and gained or lost members.
    pub regrouped: &'a [NodeId],
    /// The activity entry of the change.
    pub activity: Option<NewActivity<'a>>,
}

impl<'a> Change<'a> {
    /// A change that writes nothing but the revision.
    #[must_use]
    pub fn new(revision: &'a str) -> Self {
        Self {
            revision,
            title: None,
            graph: GraphWrites::default(),
            changed_otherwise: &[],
            bytes_delta: 0,
            regrouped: &[],
            activity: None,
        }
    }
}

/// An activity entry to record. Time and revision are those of the change.
pub struct NewActivity<'a> {
    /// Type of the activity.
    pub kind: ActivityType,
    pub actor: &'a Actor,
    /// Summary in words, without prompt text.
    pub summary: String,
    /// Ids of the nodes concerned. The first 200 are stored.
    pub nodes: &'a [NodeId],
}

/// What a change requires that is written without a lock on its canvas.
pub struct Guard<'a> {
    /// The key of the request, with its outcome: it must be new, and its account must own the canvas.
    pub key: NewKey<'a>,
    /// The revision that the change was computed from: it must be the present one.
    pub base_revision: &'a str,
}

/// Writes a change of a canvas whose row the transaction has locked. Returns the canvas after it.
#[instrument(skip_all, name = "db.canvas.write")]
pub async fn write(conn: &mut PgConnection, canvas_key: i64, change: &Change<'_>) -> Result<CanvasRecord> {
    Ok(execute(conn, canvas_key, None, false, change).await?.ok_or(sqlx::Error::RowNotFound)?)
}

/// [`write()`], unless the canvas would count more than before and its owner's storage has no room for that: then `None`, and nothing
/// is written. `grows` is `false` for a change that is always admitted.
#[instrument(skip_all, name = "db.canvas.write_within_quota")]
pub async fn write_within_quota(
    conn: &mut PgConnection,
    canvas_key: i64,
    grows: bool,
    change: &Change<'_>,
) -> Result<Option<CanvasRecord>> {
    execute(conn, canvas_key, None, grows, change).await
}

/// Takes a key, locks the canvas, writes a change and commits it, outside of a transaction. Returns the canvas after it.
///
/// `None`: nothing was written, because the key exists, the canvas has another revision or owner, a change that `grows` found no room
/// in the owner's storage, or the statement and another transaction waited for each other.
///
/// The statement waits for a transaction that holds the key or the canvas. If that changed the revision, or there is no room, the key
/// was taken for nothing. The statement then fails and leaves nothing: it casts the reason to a number, so PostgreSQL's log has it.
#[instrument(skip_all, name = "db.canvas.write_guarded")]
pub async fn write_guarded(
    conn: &mut PgConnection,
    canvas_key: i64,
    guard: &Guard<'_>,
    grows: bool,
    change: &Change<'_>,
) -> Result<Option<CanvasRecord>> {
    match execute(conn, canvas_key, Some(guard), grows, change).await {
        Err(error) if error.is_failed_cast() || error.is_transient() => Ok(None),
        written => written,
    }
}

/// Without a guard, its parameters are null, no key is taken, and the canvas is locked already.
async fn execute(
    conn: &mut PgConnection,
    canvas_key: i64,
    guard: Option<&Guard<'_>>,
    needs_room: bool,
    change: &Change<'_>,
) -> Result<Option<CanvasRecord>> {
    let key = guard.map(|guard| &guard.key);
    let writes = &change.graph;
    let nodes = NodeColumns::new(&writes.nodes);
    let connections = ConnectionColumns::new(&writes.connections);
    let (sections, members): (Vec<String>, Vec<String>) =
        writes.freed.iter().map(|(section, member)| (section.to_string(), member.to_string())).unzip();
    // A row that exists keeps `made`, the change that created it, and its ref. The counters follow the refs of new rows, which are
    // higher than all before them. `referenced` follows a write of a canvas whose rows all have refs, and stays behind otherwise. Sub-selects let the plan be reused (see `accounts::authenticate`).
    // Where nothing is deleted or restored, its rows are not looked for, whatever index the plan has for that.
    // A deletion is kept as long as what its change and all later ones deleted is within the limit, so it costs only what it
    // deletes.
    let row = sqlx::query_as!(
        CanvasRow,
        r#"WITH taken AS (
               INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id)
               SELECT $1, $2, $3, $4, NULL FROM canvases WHERE key = $5 AND revision = $6 AND owner_uid = $1
               ON CONFLICT DO NOTHING RETURNING account_uid
           ), held AS MATERIALIZED (
               SELECT key, owner_uid, sequence, deleted_bytes, counted,
                      canvas_counted(graph_bytes + history_bytes + $33) AS will_count
               FROM canvases
               WHERE key = $5
                 AND ($6::text IS NULL OR revision = $6 AND owner_uid = $1 AND (SELECT count(*) FROM taken) = 1)
               FOR UPDATE
           ), locked AS MATERIALIZED (
               SELECT key, sequence, deleted_bytes FROM held
               WHERE CASE WHEN $40 AND will_count > counted
                          THEN (SELECT is_admitted FROM admit_storage(owner_uid, will_count - counted, true)) ELSE true END
           ), moved AS MATERIALIZED (
               SELECT locked.key, locked.sequence, moved.*
               FROM locked LEFT JOIN LATERAL (
                   SELECT *
                   FROM move_rows(locked.key, locked.sequence + 1, locked.deleted_bytes, $39, $25, $26, $27, $28, $30, $29)
                   WHERE cardinality($25::text[]) + cardinality($26::text[]) + cardinality($29::text[]) + cardinality($30::text[]) > 0
               ) AS moved ON true
           ), put_nodes AS (
               INSERT INTO nodes (canvas_key, made, ordinal, id, type, title, x, y, width, height, agent_owned, metadata, server,
                                  asset_owner, asset_id, active_job, ref)
               OVERRIDING SYSTEM VALUE
               SELECT key, sequence + 1, coalesce(place, nextval('nodes_ordinal_seq')), id, type, title, x, y, width, height,
                      agent_owned, metadata::json, server::json, asset_owner, asset_id, active_job, ref
               FROM (
                   SELECT moved.key, moved.sequence, n.*, place
                   FROM moved CROSS JOIN unnest((SELECT $7::text[]), (SELECT $8::text[]), (SELECT $9::text[]), (SELECT $10::float8[]),
                               (SELECT $11::float8[]), (SELECT $12::float8[]), (SELECT $13::float8[]), (SELECT $14::bool[]),
                               (SELECT $15::text[]), (SELECT $16::text[]), (SELECT $17::text[]), (SELECT $18::text[]),
                               (SELECT $19::uuid[]), (SELECT $41::int[])) WITH ORDINALITY
                        AS n (id, type, title, x, y, width, height, agent_owned, metadata, server, asset_owner, asset_id,
                              active_job, ref, position)
                   LEFT JOIN unnest(moved.node_ids, moved.node_ordinals) AS restored (id, place) USING (id)
                   ORDER BY position
               ) AS n
               ON CONFLICT (canvas_key, id) DO UPDATE SET
                   type = excluded.type, title = excluded.title, x = excluded.x, y = excluded.y, width = excluded.width,
                   height = excluded.height, metadata = excluded.metadata, server = excluded.server,
                   asset_owner = excluded.asset_owner, asset_id = excluded.asset_id, active_job = excluded.active_job
               RETURNING id, made
           ), put_connections AS (
               INSERT INTO connections (canvas_key, made, ordinal, id, from_node_id, to_node_id, purpose, role, ref)
               OVERRIDING SYSTEM VALUE
               SELECT key, sequence + 1, coalesce(place, nextval('connections_ordinal_seq')), id, from_node_id, to_node_id, purpose,
                      role, ref
               FROM (
                   SELECT moved.key, moved.sequence, c.*, place
                   FROM moved CROSS JOIN unnest((SELECT $20::text[]), (SELECT $21::text[]), (SELECT $22::text[]), (SELECT $23::text[]),
                               (SELECT $24::text[]), (SELECT $42::int[])) WITH ORDINALITY
                        AS c (id, from_node_id, to_node_id, purpose, role, ref, position)
                   LEFT JOIN unnest(moved.connection_ids, moved.connection_ordinals) AS restored (id, place) USING (id)
                   ORDER BY position
               ) AS c
               ON CONFLICT (canvas_key, id) DO UPDATE SET purpose = excluded.purpose, role = excluded.role
               RETURNING id, made
           ), recorded AS (
               SELECT 100 + pg_column_size($7::text[]) + pg_column_size($20::text[]) + pg_column_size($25::text[])
                      + pg_column_size($26::text[]) + pg_column_size($34::text[]) + pg_column_size($36::text[])
                      + coalesce(pg_column_size($35::jsonb), 0) AS bytes
           ), bumped AS (
               UPDATE canvases
               SET revision = $31, sequence = canvases.sequence + 1,
                   referenced = CASE WHEN referenced = canvases.sequence THEN canvases.sequence + 1 ELSE referenced END,
                   node_ref = greatest(node_ref, $43), connection_ref = greatest(connection_ref, $44), updated_at = clock_timestamp(), title = coalesce($32, title),
                   node_count = canvases.node_count - coalesce(moved.node_count, 0)
                                + (SELECT count(*) FROM put_nodes WHERE made = canvases.sequence + 1)::int,
                   connection_count = canvases.connection_count - coalesce(moved.connection_count, 0)
                                      + (SELECT count(*) FROM put_connections WHERE made = canvases.sequence + 1)::int,
                   graph_bytes = greatest(graph_bytes + $33, 0), deleted_bytes = deleted_bytes + coalesce(moved.bytes, 0),
                   history_bytes = greatest(
                       history_bytes + (SELECT bytes FROM recorded) + coalesce(moved.bytes, 0)
                       - CASE WHEN (canvases.sequence + 1) % $38 = 0
                              THEN trim_history(canvases.key, canvases.sequence + 1 - $37, coalesce(moved.gone, 0))
                              ELSE coalesce(moved.gone, 0) END, 0)
               FROM moved
               WHERE canvases.key = moved.key
               RETURNING canvases.*
           ), noted AS (
               INSERT INTO canvas_changes (canvas_key, sequence, revision, changed_nodes, deleted_nodes, changed_connections,
                                           deleted_connections, activity, at, regrouped, renamed, made_nodes, made_connections, bytes)
               SELECT key, sequence, revision, $7::text[] || $34::text[], $26, $20, $25, $35, updated_at, $36, $32::text IS NOT NULL,
                      ARRAY(SELECT id FROM put_nodes WHERE made = sequence),
                      ARRAY(SELECT id FROM put_connections WHERE made = sequence), (SELECT bytes FROM recorded)
               FROM bumped
           )
           SELECT coalesce(key, (SELECT 'the canvas is no longer at revision ' || $6)::bigint) AS "key!",
                  owner_uid AS "owner_uid!", id AS "id!", canvas_type, title AS "title!", revision AS "revision!",
                  sequence AS "sequence!", slug, node_ref AS "node_ref!", connection_ref AS "connection_ref!",
                  referenced AS "referenced!", node_count AS "node_count!", connection_count AS "connection_count!",
                  graph_bytes AS "graph_bytes!", created_at AS "created_at!", updated_at AS "updated_at!", NULL AS role
           FROM taken FULL JOIN bumped ON true"#,
        key.map(|key| key.account.as_str()),
        key.map(|key| key.text),
        key.map(|key| &key.fingerprint.canonical[..]),
        key.and_then(|key| key.outcome).map(Json) as _,
        canvas_key,
        guard.map(|guard| guard.base_revision),
        &nodes.ids,
        &nodes.kinds,
        &nodes.titles,
        &nodes.xs,
        &nodes.ys,
        &nodes.widths,
        &nodes.heights,
        &nodes.agent_owned,
        &nodes.metadata,
        &nodes.server,
        &nodes.asset_owners as &[Option<String>],
        &nodes.asset_ids as &[Option<String>],
        &nodes.active_jobs as &[Option<Uuid>],
        &connections.ids,
        &connections.from,
        &connections.to,
        &connections.purposes,
        &connections.roles as &[Option<String>],
        &texts(&writes.deleted_connections),
        &texts(&writes.deleted_nodes),
        &sections,
        &members,
        &texts(&writes.restored_nodes),
        &texts(&writes.restored_connections),
        change.revision,
        change.title,
        change.bytes_delta,
        &ids(change.changed_otherwise),
        change.activity.as_ref().map(StoredActivity::new).map(Json) as _,
        &ids(change.regrouped),
        CHANGES_KEPT,
        TRIM_EVERY,
        DELETED_BYTES_MAX,
        needs_room,
        &nodes.shorts as &[Option<i32>],
        &connections.shorts as &[Option<i32>],
        nodes.shorts.iter().flatten().max(),
        connections.shorts.iter().flatten().max(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(CanvasRow::record).transpose()?.map(|(record, _)| record))
}

fn texts<T: ToString>(ids: &[&T]) -> Vec<String> {
    ids.iter().map(|id| id.to_string()).collect()
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
    shorts: Vec<Option<i32>>,
}

impl NodeColumns {
    fn new(nodes: &[&Node]) -> Self {
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
            shorts: column(nodes, |node| node.short.map(NodeRef::number)),
        }
    }
}

/// Connections as columns of the table `connections`.
struct ConnectionColumns {
    ids: Vec<String>,
    from: Vec<String>,
    to: Vec<String>,
    purposes: Vec<String>,
    roles: Vec<Option<String>>,
    shorts: Vec<Option<i32>>,
}

impl ConnectionColumns {
    fn new(connections: &[&Connection]) -> Self {
        fn column<T>(connections: &[&Connection], of: impl Fn(&Connection) -> T) -> Vec<T> {
            connections.iter().map(|connection| of(connection)).collect()
        }
        Self {
            ids: column(connections, |connection| connection.id.to_string()),
            from: column(connections, |connection| connection.from.to_string()),
            to: column(connections, |connection| connection.to.to_string()),
            purposes: column(connections, |connection| connection.purpose.to_string()),
            roles: column(connections, |connection| connection.role.map(|role| role.to_string())),
            shorts: column(connections, |connection| connection.short.map(ConnectionRef::number)),
        }
    }
}

#[cfg(test)]
mod tests;
