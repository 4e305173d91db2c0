//! Reads of the checks of a start.

use domain::asset::AssetKind;
use domain::graph::{Named, Node};
use domain::id::{AccountUid, AssetHandle, AssetId, NodeId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::assets::InputImage;
use crate::canvases::NodeRow;
use crate::storage::Storage;

/// The lookups of a start.
#[derive(Clone, Debug)]
pub struct StartQuestion<'a> {
    /// The account that starts work.
    pub account: &'a AccountUid,
    /// Key of the canvas of all nodes. The caller has checked access to it.
    pub canvas_key: Option<i64>,
    /// Nodes to read whole.
    pub nodes: Vec<&'a NodeId>,
    /// Images that the request names: by the node that shows it, or by the asset.
    pub images: Vec<&'a Named>,
    /// What the assets of `images` must be.
    pub kind: AssetKind,
    /// The account that will own the outputs, and what these count at least, in bytes.
    pub outputs: (&'a AccountUid, i64),
}

impl StartQuestion<'_> {
    /// The names to look up; one without a name, if there are none.
    fn asked(&self) -> Vec<Asked<'_>> {
        let nodes = self.nodes.iter().map(|node| Asked { node: Some(node.as_str()), ..Asked::default() });
        let images = self.images.iter().map(|named| match named {
            Named::Node(node) => Asked { shown: Some(node.as_str()), ..Asked::default() },
            Named::Asset(asset) => Asked { asset: Some(asset), ..Asked::default() },
        });
        let asked: Vec<_> = nodes.chain(images).collect();
        if asked.is_empty() { vec![Asked::default()] } else { asked }
    }
}

/// The answer to a [`StartQuestion`].
#[derive(Clone, Debug)]
pub struct StartFacts {
    /// Number of the account's unfinished jobs and Recipe runs. The jobs of a Recipe run count as part of the run.
    pub active: i64,
    /// The nodes, in the order of the question; `None`: the canvas has no such node.
    pub nodes: Vec<Option<Node>>,
    /// The images, in the order of the question; `None`: there is none that the account may read.
    pub images: Vec<Option<InputImage>>,
    /// The storage of the owner of the outputs, if it has no room for them.
    pub full: Option<Storage>,
}

/// Reads what the checks of a start need. Work is counted up to `cap`. One statement, since it is a round trip under the locks of the
/// start. Call it after these were obtained, so that it sees what earlier holders of the locks did.
#[tracing::instrument(skip_all, name = "db.job.read_for_start")]
pub async fn read_for_start(conn: &mut PgConnection, cap: i64, question: &StartQuestion<'_>) -> Result<StartFacts> {
    let asked = question.asked();
    // A sub-select with a limit is run once for each name, by its index, and sub-selects for the arrays let the plan be reused (see
    // `accounts::authenticate`). A row has at most one of `node`, `shown`, and `owner` with `asset`.
    let rows = sqlx::query_as!(
        FactRow,
        r#"WITH active AS MATERIALIZED (
               SELECT count(*) FROM (
                   SELECT FROM jobs WHERE account_uid = $1 AND completed_at IS NULL AND recipe_run IS NULL
                   UNION ALL
                   SELECT FROM recipe_runs WHERE account_uid = $1 AND status IN ('queued', 'running')
                   LIMIT $2
               ) AS unfinished
           )
           SELECT active.count AS "active!", room.bytes AS "stored!", room.max AS "stored_max!", room.is_admitted AS "has_room!", n.id AS "id?", n.type AS "kind?", n.title AS "title?", n.x AS "x?", n.y AS "y?",
                  n.width AS "width?", n.height AS "height?", n.agent_owned AS "agent_owned?",
                  n.metadata::text AS "metadata?", n.server::text AS "server?", n.asset_owner, n.asset_id, n.active_job, n.ref AS short,
                  p.owner_uid AS "picture_owner?", p.id AS "picture_id?", p.mime_type AS "mime_type?",
                  p.width AS "picture_width?", p.height AS "picture_height?", p.duration_ms AS "duration_ms?"
           FROM active
           CROSS JOIN admit_storage($8, $9, false) AS room
           CROSS JOIN unnest((SELECT $4::text[]), (SELECT $5::text[]), (SELECT $6::text[]), (SELECT $7::text[]))
               WITH ORDINALITY AS asked (node, shown, owner, asset, place)
           LEFT JOIN LATERAL (
               SELECT * FROM nodes WHERE canvas_key = $3 AND id = asked.node LIMIT 1
           ) AS n ON true
           LEFT JOIN LATERAL (
               SELECT asset_owner, asset_id FROM nodes WHERE canvas_key = $3 AND id = asked.shown LIMIT 1
           ) AS s ON true
           LEFT JOIN LATERAL (
               SELECT * FROM assets a
               WHERE a.owner_uid = coalesce(s.asset_owner, asked.owner) AND a.id = coalesce(s.asset_id, asked.asset)
                 AND (asked.shown IS NOT NULL OR a.owner_uid = $1
                      OR (SELECT true FROM canvas_shares h
                          WHERE h.account_uid = $1 AND h.canvas_key = a.canvas_key))
               LIMIT 1
           ) AS p ON p.kind = $10
           ORDER BY asked.place"#,
        question.account.as_str(),
        cap,
        question.canvas_key,
        &column(&asked, |asked| asked.node) as &[Option<&str>],
        &column(&asked, |asked| asked.shown) as &[Option<&str>],
        &column(&asked, |asked| Some(asked.asset?.owner.as_str())) as &[Option<&str>],
        &column(&asked, |asked| Some(asked.asset?.id.as_str())) as &[Option<&str>],
        question.outputs.0.as_str(),
        question.outputs.1,
        question.kind.as_str(),
    )
    .fetch_all(conn)
    .await?;
    let active = rows.first().map_or(0, |row| row.active);
    let full = rows.first().filter(|row| !row.has_room);
    let full = full.map(|row| Storage { bytes: row.stored, max: row.stored_max });
    let (nodes, images) = (question.nodes.len(), question.images.len());
    let mut rows = rows.into_iter();
    let nodes =
        rows.by_ref().take(nodes).map(|row| row.node().map(NodeRow::node).transpose()).collect::<Result<_>>()?;
    let images = rows.take(images).map(FactRow::image).collect();
    Ok(StartFacts { active, nodes, images, full })
}

/// A name that a start looks up.
#[derive(Clone, Copy, Default)]
struct Asked<'a> {
    /// A node to read whole.
    node: Option<&'a str>,
    /// A node whose image is meant.
    shown: Option<&'a str>,
    /// An asset.
    asset: Option<&'a AssetHandle>,
}

fn column<'a, T>(asked: &[Asked<'a>], of: impl Fn(&Asked<'a>) -> T) -> Vec<T> {
    asked.iter().map(of).collect()
}

/// The number of the account's active work, beside a node or an image.
struct FactRow {
    active: i64,
    stored: i64,
    stored_max: i64,
    has_room: bool,
    id: Option<String>,
    kind: Option<String>,
    title: Option<String>,
    x: Option<f64>,
    y: Option<f64>,
    width: Option<f64>,
    height: Option<f64>,
    agent_owned: Option<bool>,
    metadata: Option<String>,
    server: Option<String>,
    asset_owner: Option<String>,
    asset_id: Option<String>,
    active_job: Option<Uuid>,
    short: Option<i32>,
    picture_owner: Option<String>,
    picture_id: Option<String>,
    mime_type: Option<String>,
    picture_width: Option<i32>,
    picture_height: Option<i32>,
    duration_ms: Option<i64>,
}

impl FactRow {
    fn node(self) -> Option<NodeRow> {
        Some(NodeRow {
            id: self.id?,
            kind: self.kind?,
            title: self.title?,
            x: self.x?,
            y: self.y?,
            width: self.width?,
            height: self.height?,
            agent_owned: self.agent_owned?,
            metadata: self.metadata?,
            server: self.server?,
            asset_owner: self.asset_owner,
            asset_id: self.asset_id,
            active_job: self.active_job,
            short: self.short,
        })
    }

    fn image(self) -> Option<InputImage> {
        let owner = AccountUid::from_stored(self.picture_owner?);
        Some(InputImage {
            handle: AssetHandle { owner, id: AssetId::from_stored(self.picture_id?) },
            mime_type: self.mime_type?,
            width: self.picture_width?,
            height: self.picture_height?,
            duration_ms: self.duration_ms,
        })
    }
}
