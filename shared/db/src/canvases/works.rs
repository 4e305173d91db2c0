//! What jobs that start or end together write to their canvases.

use domain::graph::Node;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use super::{CHANGES_KEPT, NewActivity, NoteOfActivity, TRIM_EVERY};
use crate::Result;

/// What the start or the end of a job writes to its canvas.
pub struct WorkChange<'a> {
    /// Key of the canvas, which the transaction has locked.
    pub canvas_key: i64,
    /// The canvas's next revision.
    pub revision: &'a str,
    /// The node that the job changed, if it still has one.
    pub node: Option<&'a Node>,
    /// Growth of the serialized graph in bytes.
    pub bytes_delta: i64,
    /// The activity entry.
    pub activity: NewActivity<'a>,
}

/// [`commit_work`](super::commit_work) for several canvases, each of which has one change.
#[instrument(skip_all, name = "db.canvas.commit_works")]
pub async fn commit_works(conn: &mut PgConnection, changes: &[WorkChange<'_>]) -> Result<()> {
    fn column<'a, T>(changes: &[WorkChange<'a>], of: impl Fn(&WorkChange<'a>) -> T) -> Vec<T> {
        changes.iter().map(of).collect()
    }
    fn of_node<'a, T>(changes: &[WorkChange<'a>], of: impl Fn(&Node) -> T) -> Vec<Option<T>> {
        column(changes, |change| change.node.map(&of))
    }
    // Rows are found by one look-up for each, whatever the planner knows about the tables. They stay where they are, because
    // whoever writes them locks the canvas first.
    sqlx::query!(
        r#"WITH asked AS (
               SELECT * FROM unnest((SELECT $1::bigint[]), (SELECT $2::text[]), (SELECT $3::bigint[]), (SELECT $4::jsonb[]),
                                    (SELECT $5::text[]), (SELECT $6::text[]), (SELECT $7::text[]), (SELECT $8::text[]),
                                    (SELECT $9::uuid[]), (SELECT $10::float8[]), (SELECT $11::float8[]))
                   AS a (key, revision, bytes, activity, node, server, asset_owner, asset_id, active_job, width, height)
           ), written AS (
               UPDATE nodes SET server = a.server::json, asset_owner = a.asset_owner, asset_id = a.asset_id,
                      active_job = a.active_job, width = a.width, height = a.height
               FROM asked a
               WHERE nodes.ctid = ANY(ARRAY(
                         SELECT n.ctid FROM asked w
                         CROSS JOIN LATERAL (SELECT ctid FROM nodes WHERE canvas_key = w.key AND id = w.node LIMIT 1) n))
                 AND nodes.canvas_key = a.key AND nodes.id = a.node
           ), bumped AS (
               UPDATE canvases c SET revision = a.revision, sequence = sequence + 1, updated_at = clock_timestamp(),
                      graph_bytes = greatest(graph_bytes + a.bytes, 0)
               FROM asked a WHERE c.key = ANY((SELECT $1::bigint[])::bigint[]) AND c.key = a.key
               RETURNING c.key, c.sequence, c.revision, c.updated_at, a.node, a.activity
           ), noted AS (
               INSERT INTO canvas_changes (canvas_key, sequence, revision, changed_nodes, activity, at, regrouped, renamed)
               SELECT key, sequence, revision, CASE WHEN node IS NULL THEN '{}' ELSE ARRAY[node] END, activity, updated_at,
                      '{}', false
               FROM bumped
           )
           DELETE FROM canvas_changes WHERE ctid = ANY(ARRAY(
               SELECT c.ctid FROM bumped b
               CROSS JOIN LATERAL (
                   SELECT ctid FROM canvas_changes
                   WHERE b.sequence % $13 = 0 AND canvas_key = b.key AND sequence <= b.sequence - $12
                   ORDER BY sequence LIMIT 100
               ) c))"#,
        &column(changes, |change| change.canvas_key),
        &column(changes, |change| change.revision.to_owned()),
        &column(changes, |change| change.bytes_delta),
        &column(changes, |change| Json(NoteOfActivity::of(&change.activity))) as _,
        &of_node(changes, |node| node.id.to_string()) as &[Option<String>],
        &of_node(changes, |node| node.server.text().into_owned()) as &[Option<String>],
        &column(changes, |change| change.node?.asset.as_ref().map(|asset| asset.owner.to_string())) as &[Option<String>],
        &column(changes, |change| change.node?.asset.as_ref().map(|asset| asset.id.to_string())) as &[Option<String>],
        &column(changes, |change| change.node?.active_job) as &[Option<Uuid>],
        &of_node(changes, |node| node.width) as &[Option<f64>],
        &of_node(changes, |node| node.height) as &[Option<f64>],
        CHANGES_KEPT,
        TRIM_EVERY,
    )
    .execute(conn)
    .await?;
    Ok(())
}
