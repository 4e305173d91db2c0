//! A batch that only puts nodes and connections, with all that its request writes, in one statement.

use domain::canvas::CanvasRecord;
use domain::graph::{Connection, Node};
use domain::limits::CHANGES_KEPT;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use super::super::{CanvasRow, Change, NoteOfActivity, TRIM_EVERY, ids};
use super::{ConnectionColumns, NodeColumns};
use crate::idempotency::NewKey;
use crate::{Error, Result};

/// What a batch writes that neither deletes nor restores anything.
pub struct WholeWrite<'a> {
    /// The key of the request, with its outcome. Its account owns the canvas.
    pub key: NewKey<'a>,
    /// Key of the canvas.
    pub canvas_key: i64,
    /// The revision that `nodes`, `connections` and `change` were computed from.
    pub base_revision: &'a str,
    /// Nodes to insert or update.
    pub nodes: Vec<&'a Node>,
    /// Connections to insert or update.
    pub connections: Vec<&'a Connection>,
    /// The change to record.
    pub change: Change<'a>,
}

/// Writes and commits what [`idempotency::take_and_lock`](crate::idempotency::take_and_lock),
/// [`write_graph`](super::write_graph) and [`commit_change`](super::super::commit_change) do one after the other, in one statement
/// outside of a transaction. Returns the canvas after it.
///
/// `None`: nothing was written, because the key exists, the canvas has another revision or owner, or the statement and another
/// transaction waited for each other.
///
/// The locks are taken in the order key, canvas, as elsewhere. The statement waits for a transaction that holds either. If that
/// changed the revision, the key was taken for nothing. The statement then fails and leaves nothing: it casts the reason to a
/// number, so PostgreSQL's log has it.
#[instrument(skip_all, name = "db.canvas.write_whole")]
pub async fn write_whole(conn: &mut PgConnection, write: &WholeWrite<'_>) -> Result<Option<CanvasRecord>> {
    let WholeWrite { key, change, .. } = write;
    let (nodes, connections) = (NodeColumns::of(&write.nodes), ConnectionColumns::of(&write.connections));
    // A row that exists keeps `made`, the change that created it. Sub-selects let the plan be reused (see `accounts::authenticate`).
    let written = sqlx::query_as!(
        CanvasRow,
        r#"WITH taken AS (
               INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id)
               SELECT $1, $2, $3, $4, NULL FROM canvases WHERE key = $5 AND revision = $6 AND owner_uid = $1
               ON CONFLICT DO NOTHING RETURNING account_uid
           ), held AS MATERIALIZED (
               SELECT key, sequence FROM canvases
               WHERE key = $5 AND revision = $6 AND owner_uid = $1 AND (SELECT count(*) FROM taken) = 1 FOR UPDATE
           ), put_nodes AS (
               INSERT INTO nodes (canvas_key, made, ordinal, id, type, title, x, y, width, height, agent_owned, metadata, server,
                                  asset_owner, asset_id, active_job)
               OVERRIDING SYSTEM VALUE
               SELECT held.key, held.sequence + 1, nextval('nodes_ordinal_seq'), n.id, type, title, x, y, width, height,
                      agent_owned, metadata::json, server::json, asset_owner, asset_id, active_job
               FROM held CROSS JOIN unnest(
                        (SELECT $7::text[]), (SELECT $8::text[]), (SELECT $9::text[]), (SELECT $10::float8[]),
                        (SELECT $11::float8[]), (SELECT $12::float8[]), (SELECT $13::float8[]), (SELECT $14::bool[]),
                        (SELECT $15::text[]), (SELECT $16::text[]), (SELECT $17::text[]), (SELECT $18::text[]),
                        (SELECT $19::uuid[]))
                    AS n (id, type, title, x, y, width, height, agent_owned, metadata, server, asset_owner, asset_id, active_job)
               ON CONFLICT (canvas_key, id) DO UPDATE SET
                   type = excluded.type, title = excluded.title, x = excluded.x, y = excluded.y, width = excluded.width,
                   height = excluded.height, metadata = excluded.metadata, server = excluded.server,
                   asset_owner = excluded.asset_owner, asset_id = excluded.asset_id, active_job = excluded.active_job
               RETURNING id, made
           ), put_connections AS (
               INSERT INTO connections (canvas_key, made, ordinal, id, from_node_id, to_node_id, purpose, role)
               OVERRIDING SYSTEM VALUE
               SELECT held.key, held.sequence + 1, nextval('connections_ordinal_seq'), c.id, from_node_id, to_node_id, purpose, role
               FROM held CROSS JOIN unnest((SELECT $20::text[]), (SELECT $21::text[]), (SELECT $22::text[]), (SELECT $23::text[]),
                                           (SELECT $24::text[]))
                    AS c (id, from_node_id, to_node_id, purpose, role)
               ON CONFLICT (canvas_key, id) DO UPDATE SET purpose = excluded.purpose, role = excluded.role
               RETURNING id, made
           ), bumped AS (
               UPDATE canvases SET revision = $25, sequence = sequence + 1, updated_at = clock_timestamp(),
                      title = coalesce($26, title), node_count = node_count + $27, connection_count = connection_count + $28,
                      graph_bytes = greatest(graph_bytes + $29, 0)
               WHERE key = (SELECT key FROM held) RETURNING *
           ), noted AS (
               INSERT INTO canvas_changes (canvas_key, sequence, revision, changed_nodes, changed_connections, activity, at,
                                           regrouped, renamed, made_nodes, made_connections)
               SELECT key, sequence, revision, $30, $31, $32, updated_at, $33, $26::text IS NOT NULL,
                      ARRAY(SELECT id FROM put_nodes WHERE made = sequence),
                      ARRAY(SELECT id FROM put_connections WHERE made = sequence)
               FROM bumped
           ), trimmed AS (
               DELETE FROM canvas_changes USING bumped
               WHERE bumped.sequence % $35 = 0 AND canvas_key = bumped.key
                 AND canvas_changes.sequence <= bumped.sequence - $34
           )
           SELECT coalesce(key, (SELECT 'the canvas is no longer at revision ' || $6)::bigint) AS "key!", owner_uid AS "owner_uid!", id AS "id!", canvas_type,
                  title AS "title!", revision AS "revision!", sequence AS "sequence!", node_count AS "node_count!",
                  connection_count AS "connection_count!", graph_bytes AS "graph_bytes!", created_at AS "created_at!",
                  updated_at AS "updated_at!", NULL AS role
           FROM taken LEFT JOIN bumped ON true"#,
        key.account.as_str(),
        key.text,
        &key.fingerprint.canonical,
        key.outcome.map(Json) as _,
        write.canvas_key,
        write.base_revision,
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
        change.revision,
        change.title,
        change.nodes_delta,
        change.connections_delta,
        change.bytes_delta,
        &ids(&change.changes.changed_node_ids),
        &ids(&change.changes.changed_connection_ids),
        change.activity.as_ref().map(NoteOfActivity::of).map(Json) as _,
        &ids(change.regrouped),
        CHANGES_KEPT,
        TRIM_EVERY,
    )
    .fetch_optional(conn)
    .await;
    match written.map_err(Error::from) {
        Ok(row) => row.map(CanvasRow::record).transpose().map(|found| found.map(|(record, _)| record)),
        Err(error) if error.is_failed_cast() || error.is_transient() => Ok(None),
        Err(error) => Err(error),
    }
}
