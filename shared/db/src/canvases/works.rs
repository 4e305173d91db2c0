//! Writes of the ends of jobs to their canvases.

use domain::graph::Node;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use super::{CHANGES_KEPT, NewActivity, StoredActivity, TRIM_EVERY};
use crate::Result;

/// Changes of a canvas by work.
pub struct WorkChange<'a> {
    /// Key of the canvas, which the transaction has locked.
    pub canvas_key: i64,
    /// The canvas's next revision.
    pub revision: &'a str,
    /// Existing nodes. Asset, size, job and server-owned metadata are written, and what a client wrote where the node was marked as a
    /// placeholder, which a result ends.
    pub nodes: &'a [Node],
    /// Growth of the serialized graph in bytes.
    pub bytes_delta: i64,
    /// The activity entry.
    pub activity: Option<NewActivity<'a>>,
}

/// Writes what work changes of canvases, each of which has one change and gets its next revision.
#[instrument(skip_all, name = "db.canvas.commit_works")]
pub async fn commit_works(conn: &mut PgConnection, changes: &[WorkChange<'_>]) -> Result<()> {
    fn column<'a, T>(changes: &[WorkChange<'a>], of: impl Fn(&WorkChange<'a>) -> T) -> Vec<T> {
        changes.iter().map(of).collect()
    }
    fn of_node<T>(changes: &[WorkChange<'_>], of: impl Fn(&Node) -> T) -> Vec<T> {
        changes.iter().flat_map(|change| change.nodes).map(of).collect()
    }
    let canvases: Vec<i64> = changes.iter().flat_map(|change| change.nodes.iter().map(|_| change.canvas_key)).collect();
    // Rows are found by one look-up for each, whatever the planner knows about the tables. They stay where they are, because
    // whoever writes them locks the canvas first.
    sqlx::query!(
        r#"WITH asked AS (
               SELECT * FROM unnest((SELECT $1::bigint[]), (SELECT $2::text[]), (SELECT $3::bigint[]), (SELECT $4::jsonb[]))
                   AS a (key, revision, bytes, activity)
           ), changed AS MATERIALIZED (
               SELECT * FROM unnest((SELECT $5::bigint[]), (SELECT $6::text[]), (SELECT $7::text[]), (SELECT $8::text[]),
                                    (SELECT $9::text[]), (SELECT $10::uuid[]), (SELECT $11::float8[]), (SELECT $12::float8[]),
                                    (SELECT $15::text[]))
                   WITH ORDINALITY AS n (key, node, server, asset_owner, asset_id, active_job, width, height, metadata, place)
           ), written AS (
               UPDATE nodes SET server = n.server::json, asset_owner = n.asset_owner, asset_id = n.asset_id,
                      active_job = n.active_job, width = n.width, height = n.height,
                      metadata = CASE WHEN nodes.metadata::text LIKE '%"placeholder"%' THEN n.metadata::json
                                      ELSE nodes.metadata END
               FROM changed n
               WHERE nodes.ctid = ANY(ARRAY(
                         SELECT found.ctid FROM changed w
                         CROSS JOIN LATERAL (SELECT ctid FROM nodes WHERE canvas_key = w.key AND id = w.node LIMIT 1) found))
                 AND nodes.canvas_key = n.key AND nodes.id = n.node
           ), recorded AS MATERIALIZED (
               SELECT key, nodes, 100 + pg_column_size(nodes) + coalesce(pg_column_size(activity), 0) AS bytes
               FROM (SELECT a.key, a.activity,
                            ARRAY(SELECT n.node FROM changed n WHERE n.key = a.key ORDER BY n.place) AS nodes
                     FROM asked a) AS a
           ), bumped AS (
               UPDATE canvases c SET revision = a.revision, sequence = sequence + 1,
                      referenced = CASE WHEN referenced = sequence THEN sequence + 1 ELSE referenced END, updated_at = clock_timestamp(),
                      graph_bytes = greatest(graph_bytes + a.bytes, 0),
                      history_bytes = greatest(history_bytes + (SELECT bytes FROM recorded r WHERE r.key = a.key)
                          - CASE WHEN (sequence + 1) % $14 = 0 THEN trim_history(c.key, sequence + 1 - $13, 0) ELSE 0 END, 0)
               FROM asked a WHERE c.key = ANY((SELECT $1::bigint[])::bigint[]) AND c.key = a.key
               RETURNING c.key, c.sequence, c.revision, c.updated_at, a.activity
           )
           INSERT INTO canvas_changes (canvas_key, sequence, revision, changed_nodes, activity, at, regrouped, renamed, bytes)
           SELECT key, sequence, revision, nodes, activity, updated_at, '{}', false, bytes FROM bumped JOIN recorded USING (key)"#,
        &column(changes, |change| change.canvas_key),
        &column(changes, |change| change.revision.to_owned()),
        &column(changes, |change| change.bytes_delta),
        &column(changes, |change| change.activity.as_ref().map(StoredActivity::new).map(Json)) as _,
        &canvases,
        &of_node(changes, |node| node.id.to_string()),
        &of_node(changes, |node| node.server.text().into_owned()),
        &of_node(changes, |node| node.asset.as_ref().map(|asset| asset.owner.to_string())) as &[Option<String>],
        &of_node(changes, |node| node.asset.as_ref().map(|asset| asset.id.to_string())) as &[Option<String>],
        &of_node(changes, |node| node.active_job) as &[Option<Uuid>],
        &of_node(changes, |node| node.width),
        &of_node(changes, |node| node.height),
        CHANGES_KEPT,
        TRIM_EVERY,
        &of_node(changes, |node| node.metadata.text().into_owned()),
    )
    .execute(conn)
    .await?;
    Ok(())
}
