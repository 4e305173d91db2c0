//! Lists of assets.

use std::collections::HashMap;

use domain::asset::{AssetKind, AssetRecord};
use domain::id::{AccountUid, AssetId};
use domain::origin::{AiGenerated, Origin};
use sqlx::PgConnection;
use uuid::Uuid;

use super::AssetRow;
use crate::Result;
use crate::canvases::After;

/// The assets of a list.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Their kinds.
    pub kinds: &'a [AssetKind],
    /// What their origin says, if that matters.
    pub ai_generated: Option<AiGenerated>,
}

impl Wanted<'_> {
    fn kinds(&self) -> Vec<String> {
        self.kinds.iter().map(ToString::to_string).collect()
    }
}

/// The origins of assets that say this, in the form of the condition of a list.
fn saying(answer: Option<AiGenerated>) -> Option<Vec<String>> {
    let text = |origin: Option<Origin>| origin.map_or_else(String::new, |it| format!("{} {}", it.term, it.from));
    Some(answer?.origins().map(text).collect())
}

/// Lists at most `limit` of the account's assets that are stored in no canvas, last changed first.
#[tracing::instrument(skip_all, name = "db.asset.list_own")]
pub async fn list_own(
    conn: &mut PgConnection,
    owner: &AccountUid,
    wanted: Wanted<'_>,
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<AssetRecord>> {
    let origins = saying(wanted.ai_generated);
    let rows = sqlx::query_as!(
        AssetRow,
        r#"SELECT owner_uid, id, canvas_key, node_id, kind, name, mime_type, width, height, bytes, blob_key,
                  preview_epoch(assets) AS "preview_epoch!", origin, origin_from, metadata_removed, original_blob, original_mime_type, original_bytes, original_reason,
                  duration_ms, has_audio, poster_key, poster_mime_type, is_animated(assets) AS "is_animated!", created_at, updated_at
           FROM assets
           WHERE owner_uid = $1 AND canvas_key IS NULL
             AND ($2::timestamptz IS NULL OR (updated_at, id) < ($2, $3))
             AND ($5::text[] IS NULL OR coalesce(origin || ' ' || origin_from, '') = ANY($5))
             AND kind = ANY($6)
           ORDER BY updated_at DESC, id DESC LIMIT $4"#,
        owner.as_str(),
        after.map(|after| after.updated_at.get()),
        after.map(After::last_id),
        limit,
        origins.as_deref(),
        &wanted.kinds(),
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// Lists at most `limit` of the assets stored in a canvas, last changed first. The caller of this function has checked access to the canvas.
#[tracing::instrument(skip_all, name = "db.asset.list_canvas")]
pub async fn list_canvas(
    conn: &mut PgConnection,
    canvas_key: i64,
    wanted: Wanted<'_>,
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<AssetRecord>> {
    let origins = saying(wanted.ai_generated);
    let rows = sqlx::query_as!(
        AssetRow,
        r#"SELECT owner_uid, id, canvas_key,
                  (SELECT n.id FROM nodes n WHERE n.canvas_key = assets.canvas_key AND n.id = node_id) AS node_id,
                  kind, name, mime_type, width, height, bytes, blob_key, preview_epoch(assets) AS "preview_epoch!",
                  origin, origin_from, metadata_removed, original_blob, original_mime_type, original_bytes, original_reason,
                  duration_ms, has_audio, poster_key, poster_mime_type, is_animated(assets) AS "is_animated!", created_at, updated_at
           FROM assets
           WHERE canvas_key = $1 AND ($2::timestamptz IS NULL OR (updated_at, id) < ($2, $3))
             AND ($5::text[] IS NULL OR coalesce(origin || ' ' || origin_from, '') = ANY($5))
             AND kind = ANY($6)
           ORDER BY updated_at DESC, id DESC LIMIT $4"#,
        canvas_key,
        after.map(|after| after.updated_at.get()),
        after.map(After::last_id),
        limit,
        origins.as_deref(),
        &wanted.kinds(),
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// Returns those of `ids` that are images of the account, in a canvas or not, with the keys of their blobs.
#[tracing::instrument(skip_all, name = "db.asset.images")]
pub async fn images(conn: &mut PgConnection, owner: &AccountUid, ids: &[AssetId]) -> Result<HashMap<AssetId, Uuid>> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let rows = sqlx::query!(
        "SELECT id, blob_key FROM assets WHERE owner_uid = $1 AND id = ANY($2) AND kind = 'image'",
        owner.as_str(),
        &ids
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (AssetId::from_stored(row.id), row.blob_key)).collect())
}
