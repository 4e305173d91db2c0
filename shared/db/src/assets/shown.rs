//! What nodes of canvases show, and may be made to show.

use std::collections::HashMap;

use domain::asset::{AssetKind, AssetRecord};
use domain::id::{AccountUid, AssetHandle, AssetId, NodeId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::AssetRow;
use crate::Result;
use crate::error::known;

/// An asset that a node may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placeable {
    /// Kind of the asset: `image` or `video`.
    pub kind: AssetKind,
    /// Width and height in pixels; 0 for a video of unknown size.
    pub size: (i32, i32),
}

/// Those of these assets that a node of a canvas may show: images and videos that are stored in the canvas, or belong to `owner`.
#[tracing::instrument(skip_all, name = "db.asset.placeable")]
pub async fn placeable(
    conn: &mut PgConnection,
    canvas_key: i64,
    owner: Option<&AccountUid>,
    handles: impl Iterator<Item = &AssetHandle>,
) -> Result<HashMap<AssetHandle, Placeable>> {
    let (owners, ids): (Vec<String>, Vec<String>) =
        handles.map(|handle| (handle.owner.to_string(), handle.id.to_string())).unzip();
    let rows = sqlx::query!(
        "SELECT a.owner_uid, a.id, a.kind, a.width, a.height
         FROM UNNEST((SELECT $1::text[]), (SELECT $2::text[])) AS named (owner_uid, id)
         JOIN assets a USING (owner_uid, id)
         WHERE a.kind IN ('image', 'video') AND (a.canvas_key = $3 OR a.owner_uid = $4)",
        &owners,
        &ids,
        canvas_key,
        owner.map(AccountUid::as_str),
    )
    .fetch_all(conn)
    .await?;
    let placeable = rows.into_iter().map(|row| {
        let handle = AssetHandle { owner: AccountUid::from_stored(row.owner_uid), id: AssetId::from_stored(row.id) };
        let kind = known("assets.kind", &row.kind)?;
        Ok((handle, Placeable { kind, size: (row.width, row.height) }))
    });
    placeable.collect()
}

/// Keeps these assets from being deleted until the transaction ends, so that a node can be made to show them. Returns how many there
/// are.
#[tracing::instrument(skip_all, name = "db.asset.hold")]
pub async fn hold(conn: &mut PgConnection, handles: impl Iterator<Item = &AssetHandle>) -> Result<u64> {
    let (owners, ids): (Vec<String>, Vec<String>) =
        handles.map(|handle| (handle.owner.to_string(), handle.id.to_string())).unzip();
    let held = sqlx::query!(
        "SELECT FROM assets WHERE (owner_uid, id) IN (SELECT * FROM UNNEST($1::text[], $2::text[]))
         ORDER BY owner_uid, id FOR KEY SHARE",
        &owners,
        &ids,
    );
    Ok(held.execute(conn).await?.rows_affected())
}

/// The asset that a node shows.
#[tracing::instrument(skip_all, name = "db.asset.of_node")]
pub async fn of_node(conn: &mut PgConnection, canvas_key: i64, node: &NodeId) -> Result<Option<AssetRecord>> {
    let row = sqlx::query_as!(
        AssetRow,
        r#"SELECT a.owner_uid, a.id, a.canvas_key, a.node_id, a.kind, a.name, a.mime_type, a.width, a.height, a.bytes,
                  a.blob_key, preview_epoch(a) AS "preview_epoch!", a.origin, a.origin_from,
                  a.metadata_removed, a.original_blob, a.original_mime_type, a.original_bytes, a.original_reason,
                  a.duration_ms, a.has_audio, a.poster_key, a.poster_mime_type, is_animated(a) AS "is_animated!", a.created_at, a.updated_at
           FROM nodes n JOIN assets a ON a.owner_uid = n.asset_owner AND a.id = n.asset_id
           WHERE n.canvas_key = $1 AND n.id = $2"#,
        canvas_key,
        node.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(TryInto::try_into).transpose()
}

/// The assets that these nodes of a canvas show. Nodes without one are left out.
#[tracing::instrument(skip_all, name = "db.asset.of_nodes")]
pub async fn of_nodes(
    conn: &mut PgConnection,
    canvas_key: i64,
    nodes: &[NodeId],
) -> Result<HashMap<NodeId, AssetHandle>> {
    let ids: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    let rows = sqlx::query!(
        r#"SELECT id, asset_owner AS "owner!", asset_id AS "asset!" FROM nodes
           WHERE canvas_key = $1 AND id = ANY($2) AND asset_id IS NOT NULL"#,
        canvas_key,
        &ids,
    )
    .fetch_all(conn)
    .await?;
    let shown = rows.into_iter().map(|row| {
        let asset = AssetHandle { owner: AccountUid::from_stored(row.owner), id: AssetId::from_stored(row.asset) };
        (NodeId::from_stored(row.id), asset)
    });
    Ok(shown.collect())
}

/// The image or video that a node of a canvas shows, with the fields that a render needs.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeImage {
    /// Id of the node.
    pub node: NodeId,
    /// Owner of the asset.
    pub owner: AccountUid,
    /// Key of the blob of the image, or of the poster of the video; `None`: it has no poster.
    pub blob_key: Option<Uuid>,
    /// Width in pixels, as displayed.
    pub width: i32,
    /// Height in pixels, as displayed.
    pub height: i32,
    /// `true` if its origin says that it was made with AI, in whole or in part.
    pub has_ai: bool,
}

/// Lists the images and videos that the nodes of a canvas show. Nodes without an asset are left out.
#[tracing::instrument(skip_all, name = "db.asset.shown_in")]
pub async fn shown_in(conn: &mut PgConnection, canvas_key: i64) -> Result<Vec<NodeImage>> {
    let rows = sqlx::query!(
        r#"SELECT n.id, a.owner_uid, CASE WHEN a.kind = 'video' THEN a.poster_key ELSE a.blob_key END AS blob_key, a.width, a.height,
                  coalesce(a.origin ILIKE '%trainedAlgorithmicMedia', false) AS "has_ai!"
         FROM nodes n JOIN assets a ON a.owner_uid = n.asset_owner AND a.id = n.asset_id
         WHERE n.canvas_key = $1"#,
        canvas_key,
    )
    .fetch_all(conn)
    .await?;
    let shown = rows.into_iter().map(|row| NodeImage {
        node: NodeId::from_stored(row.id),
        owner: AccountUid::from_stored(row.owner_uid),
        blob_key: row.blob_key,
        width: row.width,
        height: row.height,
        has_ai: row.has_ai,
    });
    Ok(shown.collect())
}
