//! Assets: durable images and videos, and who may read them.
//!
//! An asset belongs to an account. One that is stored in a canvas also belongs to that canvas, whose members may read it under
//! its owner's handle (docs/reference/assets.md#ownership-and-access). Its bytes are a blob, shared by all assets of the same
//! content.

mod clean;
pub mod lineage;
mod list;
mod shown;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use domain::asset::{AssetKind, AssetRecord, MetadataClass, OriginalFile, Poster, VideoDetails};
use domain::canvas::AccessRole;
use domain::id::{AccountUid, AssetHandle, AssetId, NodeId};
use domain::lineage::{Made, Parent};
use domain::origin::{DigitalSourceType, Origin};
use domain::review::{self, StoredAsset, StoredAssets};
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

pub use clean::{Uncleaned, replace_file, rule_since, uncleaned};
pub use list::{AssetAfter, Wanted, images, list};
pub use shown::{NodeImage, Placeable, hold, of_node, of_nodes, placeable, shown_in};

use crate::Result;
use crate::error::known;

/// An asset to store. Its timestamps are those of the transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAsset {
    /// Handle of the asset: owner and id.
    pub handle: AssetHandle,
    /// Key of the canvas that the asset is stored in; `None`: it is stored in no canvas.
    pub canvas_key: Option<i64>,
    /// The node that an upload was placed in.
    pub node: Option<NodeId>,
    /// Kind of the asset.
    pub kind: AssetKind,
    /// File name.
    pub name: String,
    /// `image/png`, `image/jpeg`, `image/webp` or `image/gif`; `video/mp4` of a video.
    pub mime_type: String,
    /// Width in pixels, as displayed; 0 for a video of unknown size.
    pub width: i32,
    /// Height in pixels, as displayed; 0 for a video of unknown size.
    pub height: i32,
    /// Size of the stored file in bytes.
    pub bytes: i64,
    /// Key of a blob that this transaction adopted, so that the sweeper cannot remove it.
    pub blob_key: Uuid,
    /// Where the image comes from, if that is known.
    pub origin: Option<Origin>,
    /// What was removed from the file.
    pub metadata_removed: Vec<MetadataClass>,
    /// The file as it came, if it is kept; its blob was adopted, too.
    pub original: Option<OriginalFile>,
    /// Of an asset of kind `video`; the blob of its poster was adopted, too.
    pub video: Option<VideoDetails>,
    /// How it came to be.
    pub made: Made,
    /// What it was made from. Only of outputs of jobs.
    pub parents: Vec<Parent>,
}

impl NewAsset {
    fn poster(&self) -> Option<&Poster> {
        self.video.as_ref()?.poster.as_ref()
    }
}

/// An image or a video that a request names, with what the checks of a start need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputImage {
    /// Handle of the asset.
    pub handle: AssetHandle,
    /// As in [`NewAsset::mime_type`].
    pub mime_type: String,
    /// Width in pixels, as displayed.
    pub width: i32,
    /// Height in pixels, as displayed.
    pub height: i32,
    /// Duration of a video in milliseconds, if it is known.
    pub duration_ms: Option<i64>,
}

struct AssetRow {
    owner_uid: String,
    id: String,
    canvas_key: Option<i64>,
    node_id: Option<String>,
    kind: String,
    name: String,
    mime_type: String,
    width: i32,
    height: i32,
    bytes: i64,
    blob_key: Uuid,
    preview_epoch: i64,
    origin: Option<String>,
    origin_from: Option<String>,
    metadata_removed: Vec<String>,
    original_blob: Option<Uuid>,
    original_mime_type: Option<String>,
    original_bytes: Option<i64>,
    original_reason: Option<String>,
    duration_ms: Option<i64>,
    has_audio: Option<bool>,
    poster_key: Option<Uuid>,
    poster_mime_type: Option<String>,
    is_animated: bool,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl TryFrom<AssetRow> for AssetRecord {
    type Error = crate::Error;

    fn try_from(row: AssetRow) -> Result<Self> {
        let original = match (row.original_blob, row.original_mime_type, row.original_bytes, row.original_reason) {
            (Some(blob_key), Some(mime_type), Some(bytes), Some(reason)) => {
                let reason = known("assets.original_reason", &reason)?;
                Some(OriginalFile { blob_key, mime_type, bytes, reason })
            }
            _ => None,
        };
        let kind = known("assets.kind", &row.kind)?;
        let poster = row.poster_key.zip(row.poster_mime_type);
        let video = (kind == AssetKind::Video).then(|| VideoDetails {
            duration_ms: row.duration_ms,
            has_audio: row.has_audio,
            poster: poster.map(|(blob_key, mime_type)| Poster { blob_key, mime_type }),
        });
        let removed = row.metadata_removed.iter().map(|class| known("assets.metadata_removed", class));
        Ok(Self {
            handle: AssetHandle { owner: AccountUid::from_stored(row.owner_uid), id: AssetId::from_stored(row.id) },
            canvas_key: row.canvas_key,
            node: row.node_id.map(NodeId::from_stored),
            kind,
            name: row.name,
            mime_type: row.mime_type,
            width: row.width,
            height: row.height,
            bytes: row.bytes,
            blob_key: row.blob_key,
            preview_epoch: row.preview_epoch,
            origin: match (&row.origin, &row.origin_from) {
                (Some(term), Some(from)) => {
                    Some(Origin { term: known("assets.origin", term)?, from: known("assets.origin_from", from)? })
                }
                _ => None,
            },
            metadata_removed: removed.collect::<Result<_>>()?,
            is_animated: row.is_animated,
            original,
            video,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        })
    }
}

/// Stores an asset that was brought in. If its bytes are those of an output of the service that belongs to the same account, it has
/// the origin of that output (docs/reference/assets.md#origin).
#[tracing::instrument(skip_all, name = "db.asset.insert")]
pub async fn insert(conn: &mut PgConnection, asset: &NewAsset) -> Result<AssetRecord> {
    let row = sqlx::query_as!(
        AssetRow,
        r#"WITH made AS (
               SELECT origin, origin_from FROM assets WHERE blob_key = $11 AND owner_uid = $1 AND origin_from = 'service'
               ORDER BY origin ILIKE '%trainedAlgorithmicMedia' DESC, id LIMIT 1
           )
           INSERT INTO assets (owner_uid, id, canvas_key, node_id, kind, name, mime_type, width, height, bytes, blob_key,
                               origin, origin_from,
                               metadata_removed, original_blob, original_mime_type, original_bytes, original_reason,
                               duration_ms, has_audio, poster_key, poster_mime_type, origin_kind, made)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
                   coalesce((SELECT origin FROM made), $12), coalesce((SELECT origin_from FROM made), $13),
                   $14, $15, $16, $17, $18, $19, $20, $21, $22, 'brought', $23)
           RETURNING owner_uid, id, canvas_key, node_id, kind, name, mime_type, width, height, bytes, blob_key,
                     preview_epoch(assets) AS "preview_epoch!", origin, origin_from,
                     metadata_removed, original_blob, original_mime_type, original_bytes, original_reason,
                     duration_ms, has_audio, poster_key, poster_mime_type, is_animated(assets) AS "is_animated!", created_at, updated_at"#,
        asset.handle.owner.as_str(),
        asset.handle.id.as_str(),
        asset.canvas_key,
        asset.node.as_ref().map(NodeId::as_str),
        asset.kind.as_str(),
        asset.name,
        asset.mime_type,
        asset.width,
        asset.height,
        asset.bytes,
        asset.blob_key,
        asset.origin.map(|origin| origin.term.as_str()),
        asset.origin.map(|origin| origin.from.as_str()),
        &names(&asset.metadata_removed),
        asset.original.as_ref().map(|original| original.blob_key),
        asset.original.as_ref().map(|original| &*original.mime_type),
        asset.original.as_ref().map(|original| original.bytes),
        asset.original.as_ref().map(|original| original.reason.as_str()),
        asset.video.as_ref().and_then(|video| video.duration_ms),
        asset.video.as_ref().and_then(|video| video.has_audio),
        asset.poster().map(|poster| poster.blob_key),
        asset.poster().map(|poster| &*poster.mime_type),
        Json(&asset.made) as _,
    )
    .fetch_one(conn)
    .await?;
    row.try_into()
}

fn names(classes: &[MetadataClass]) -> Vec<String> {
    classes.iter().map(ToString::to_string).collect()
}

/// The columns of these handles.
fn columns<'a>(handles: impl IntoIterator<Item = &'a AssetHandle>) -> (Vec<String>, Vec<String>) {
    handles.into_iter().map(|handle| (handle.owner.to_string(), handle.id.to_string())).unzip()
}

/// Stores the outputs of jobs, which have no originals, with what they were made from.
#[tracing::instrument(skip_all, name = "db.asset.insert_all")]
pub async fn insert_all(conn: &mut PgConnection, assets: &[NewAsset]) -> Result<()> {
    fn column<'a, T>(assets: &'a [NewAsset], of: impl Fn(&'a NewAsset) -> T) -> Vec<T> {
        assets.iter().map(of).collect()
    }
    let parents: Vec<(&NewAsset, i16, &Parent)> = assets
        .iter()
        .flat_map(|asset| (0..).zip(&asset.parents).map(move |(at, parent)| (asset, at, parent)))
        .collect();
    let (child_owners, child_ids) = columns(parents.iter().map(|(asset, ..)| &asset.handle));
    let (parent_owners, parent_ids) = columns(parents.iter().map(|(.., parent)| &parent.asset));
    // In the order of their owners, whose storage is counted in the same order at the commit.
    sqlx::query!(
        "WITH stored AS (
         INSERT INTO assets (owner_uid, id, canvas_key, node_id, kind, name, mime_type, width, height, bytes, blob_key,
                              origin, origin_from, metadata_removed, duration_ms, has_audio, poster_key, poster_mime_type,
                              origin_kind, made)
         SELECT owner_uid, id, canvas_key, node_id, kind, name, mime_type, width, height, bytes, blob_key, origin, origin_from,
                string_to_array(metadata_removed, ','), duration_ms, has_audio, poster_key, poster_mime_type, 'made', made
         FROM unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::bigint[]), (SELECT $4::text[]),
                     (SELECT $5::text[]), (SELECT $6::text[]), (SELECT $7::text[]), (SELECT $8::int4[]),
                     (SELECT $9::int4[]), (SELECT $10::bigint[]), (SELECT $11::uuid[]), (SELECT $12::text[]),
                     (SELECT $13::text[]), (SELECT $14::text[]), (SELECT $15::bigint[]), (SELECT $16::bool[]),
                     (SELECT $17::uuid[]), (SELECT $18::text[]), (SELECT $19::jsonb[]))
              AS a (owner_uid, id, canvas_key, node_id, kind, name, mime_type, width, height, bytes, blob_key, origin,
                    origin_from, metadata_removed, duration_ms, has_audio, poster_key, poster_mime_type, made)
         ORDER BY owner_uid, id
         )
         INSERT INTO asset_parents (child_owner, child_id, position, parent_owner, parent_id, role)
         SELECT * FROM unnest((SELECT $20::text[]), (SELECT $21::text[]), (SELECT $22::int2[]), (SELECT $23::text[]),
                              (SELECT $24::text[]), (SELECT $25::text[]))",
        &column(assets, |asset| asset.handle.owner.to_string()),
        &column(assets, |asset| asset.handle.id.to_string()),
        &column(assets, |asset| asset.canvas_key) as &[Option<i64>],
        &column(assets, |asset| asset.node.as_ref().map(ToString::to_string)) as &[Option<String>],
        &column(assets, |asset| asset.kind.as_str().to_owned()),
        &column(assets, |asset| asset.name.clone()),
        &column(assets, |asset| asset.mime_type.clone()),
        &column(assets, |asset| asset.width),
        &column(assets, |asset| asset.height),
        &column(assets, |asset| asset.bytes),
        &column(assets, |asset| asset.blob_key),
        &column(assets, |asset| asset.origin.map(|origin| origin.term.to_string())) as &[Option<String>],
        &column(assets, |asset| asset.origin.map(|origin| origin.from.to_string())) as &[Option<String>],
        // An array of arrays would need one length for all.
        &column(assets, |asset| names(&asset.metadata_removed).join(",")),
        &column(assets, |asset| asset.video.as_ref()?.duration_ms) as &[Option<i64>],
        &column(assets, |asset| asset.video.as_ref()?.has_audio) as &[Option<bool>],
        &column(assets, |asset| Some(asset.poster()?.blob_key)) as &[Option<Uuid>],
        &column(assets, |asset| Some(asset.poster()?.mime_type.clone())) as &[Option<String>],
        &column(assets, |asset| Json(&asset.made)) as _,
        &child_owners,
        &child_ids,
        &parents.iter().map(|(_, at, _)| *at).collect::<Vec<_>>(),
        &parent_owners,
        &parent_ids,
        &parents.iter().map(|(.., parent)| parent.role.map(|role| role.to_string())).collect::<Vec<_>>()
            as &[Option<String>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Reads the asset of `handle` without a permission check: for work that was permitted when it was accepted, and for previews,
/// whose token is the permission.
pub async fn get(conn: &mut PgConnection, handle: &AssetHandle) -> Result<Option<AssetRecord>> {
    Ok(get_all(conn, std::slice::from_ref(handle)).await?.remove(handle))
}

/// [`get`] for several handles. Those without an asset are left out.
#[tracing::instrument(skip_all, name = "db.asset.get")]
pub async fn get_all(conn: &mut PgConnection, handles: &[AssetHandle]) -> Result<HashMap<AssetHandle, AssetRecord>> {
    // Sub-selects for the arrays let the plan be reused (see `accounts::authenticate`). One with a limit is run once for each name.
    let rows = sqlx::query_as!(
        AssetRow,
        r#"SELECT a.owner_uid AS "owner_uid!", a.id AS "id!", a.canvas_key, a.node_id, a.kind AS "kind!", a.name AS "name!",
                  a.mime_type AS "mime_type!", a.width AS "width!", a.height AS "height!", a.bytes AS "bytes!",
                  a.blob_key AS "blob_key!", a.epoch AS "preview_epoch!", a.origin, a.origin_from,
                  a.metadata_removed AS "metadata_removed!", a.original_blob, a.original_mime_type, a.original_bytes,
                  a.original_reason, a.duration_ms, a.has_audio, a.poster_key, a.poster_mime_type, a.animated AS "is_animated!",
                  a.created_at AS "created_at!", a.updated_at AS "updated_at!"
           FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) AS named (owner_uid, id)
           CROSS JOIN LATERAL (
               SELECT *, preview_epoch(assets) AS epoch, is_animated(assets) AS animated FROM assets
               WHERE owner_uid = named.owner_uid AND id = named.id LIMIT 1
           ) AS a"#,
        &handles.iter().map(|handle| handle.owner.to_string()).collect::<Vec<_>>(),
        &handles.iter().map(|handle| handle.id.to_string()).collect::<Vec<_>>(),
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| AssetRecord::try_from(row).map(|asset| (asset.handle.clone(), asset))).collect()
}

/// The bytes of an asset, as a download serves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Owner of the asset.
    pub owner: AccountUid,
    /// Key of the asset's blob.
    pub blob_key: Uuid,
    /// SHA-256 of the bytes.
    pub sha256: Vec<u8>,
    /// As in [`NewAsset::mime_type`].
    pub mime_type: String,
    /// As in [`AssetRecord::preview_epoch`].
    pub preview_epoch: i64,
    /// Kind of the asset.
    pub kind: AssetKind,
    /// The poster of a video with the SHA-256 of its bytes, if there is one.
    pub poster: Option<(Poster, Vec<u8>)>,
}

impl Content {
    /// The image that stands for the asset: itself, or the poster of a video.
    pub fn into_image(self) -> Option<Self> {
        if self.kind != AssetKind::Video {
            return Some(self);
        }
        let (Poster { blob_key, mime_type }, sha256) = self.poster?;
        Some(Self { blob_key, sha256, mime_type, poster: None, ..self })
    }
}

/// Reads what is served of the asset of `handle`, if `reader` may read it. Without a reader, a preview token is the permission.
#[tracing::instrument(skip_all, name = "db.asset.content")]
pub async fn content(
    conn: &mut PgConnection,
    handle: &AssetHandle,
    reader: Option<&AccountUid>,
) -> Result<Option<Content>> {
    let row = sqlx::query!(
        r#"SELECT a.owner_uid, a.blob_key, b.sha256 AS "sha256!", a.mime_type, preview_epoch(a) AS "preview_epoch!",
                  a.kind, a.poster_key, a.poster_mime_type, p.sha256 AS "poster_sha256?"
           FROM assets a JOIN blobs b ON b.key = a.blob_key LEFT JOIN blobs p ON p.key = a.poster_key
           WHERE a.owner_uid = $1 AND a.id = $2 AND ($3::text IS NULL OR a.owner_uid = $3 OR EXISTS (
               SELECT FROM canvas_shares s WHERE s.canvas_key = a.canvas_key AND s.account_uid = $3
           ))"#,
        handle.owner.as_str(),
        handle.id.as_str(),
        reader.map(AccountUid::as_str),
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let poster = row.poster_key.zip(row.poster_mime_type).map(|(blob_key, mime_type)| Poster { blob_key, mime_type });
    Ok(Some(Content {
        owner: AccountUid::from_stored(row.owner_uid),
        blob_key: row.blob_key,
        sha256: row.sha256,
        mime_type: row.mime_type,
        preview_epoch: row.preview_epoch,
        kind: known("assets.kind", &row.kind)?,
        poster: poster.zip(row.poster_sha256),
    }))
}

/// The file of an asset, as a download link names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssetFile {
    /// File name.
    pub name: String,
    /// As in [`NewAsset::mime_type`].
    pub mime_type: String,
    /// Width in pixels, as displayed; 0 for a video of unknown size.
    pub width: i32,
    /// Height in pixels, as displayed; 0 for a video of unknown size.
    pub height: i32,
    /// Size in bytes.
    pub bytes: i64,
    /// SHA-256 of the bytes.
    pub sha256: Vec<u8>,
}

/// The files of those of these assets that `reader` may read.
#[tracing::instrument(skip_all, name = "db.asset.files")]
pub async fn files(
    conn: &mut PgConnection,
    reader: &AccountUid,
    handles: &[AssetHandle],
) -> Result<HashMap<AssetHandle, AssetFile>> {
    let (owners, ids): (Vec<String>, Vec<String>) =
        handles.iter().map(|handle| (handle.owner.to_string(), handle.id.to_string())).unzip();
    let rows = sqlx::query!(
        r#"SELECT a.owner_uid, a.id, a.name, a.mime_type, a.width, a.height, a.bytes, b.sha256 AS "sha256!"
           FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) AS named (owner_uid, id)
           JOIN assets a USING (owner_uid, id) JOIN blobs b ON b.key = a.blob_key
           WHERE a.owner_uid = $3 OR EXISTS (
               SELECT FROM canvas_shares s WHERE s.canvas_key = a.canvas_key AND s.account_uid = $3
           )"#,
        &owners,
        &ids,
        reader.as_str(),
    )
    .fetch_all(conn)
    .await?;
    let files = rows.into_iter().map(|row| {
        let handle = AssetHandle { owner: AccountUid::from_stored(row.owner_uid), id: AssetId::from_stored(row.id) };
        let file = AssetFile {
            name: row.name,
            mime_type: row.mime_type,
            width: row.width,
            height: row.height,
            bytes: row.bytes,
            sha256: row.sha256,
        };
        (handle, file)
    });
    Ok(files.collect())
}

/// Reads the file of an asset as it came, for its owner; `None` for others, and if there is none.
#[tracing::instrument(skip_all, name = "db.asset.original")]
pub async fn original(conn: &mut PgConnection, handle: &AssetHandle, reader: &AccountUid) -> Result<Option<Content>> {
    let row = sqlx::query!(
        r#"SELECT a.owner_uid, b.key AS blob_key, b.sha256 AS "sha256!", a.original_mime_type AS "mime_type!",
                  preview_epoch(a) AS "preview_epoch!", a.kind
           FROM assets a JOIN blobs b ON b.key = a.original_blob
           WHERE a.owner_uid = $1 AND a.id = $2 AND a.owner_uid = $3"#,
        handle.owner.as_str(),
        handle.id.as_str(),
        reader.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Content {
        owner: AccountUid::from_stored(row.owner_uid),
        blob_key: row.blob_key,
        sha256: row.sha256,
        mime_type: row.mime_type,
        preview_epoch: row.preview_epoch,
        kind: known("assets.kind", &row.kind)?,
        poster: None,
    }))
}

/// The preview epochs of the stored assets among `handles`.
pub async fn preview_epochs(
    conn: &mut PgConnection,
    handles: impl Iterator<Item = &AssetHandle>,
) -> Result<HashMap<AssetHandle, i64>> {
    let handles: Vec<AssetHandle> = handles.cloned().collect();
    if handles.is_empty() {
        return Ok(HashMap::new());
    }
    let assets = get_all(conn, &handles).await?;
    Ok(assets.into_iter().map(|(handle, asset)| (handle, asset.preview_epoch)).collect())
}

/// Returns the stored assets among `handles` with the origin and size of each.
#[tracing::instrument(skip_all, name = "db.asset.origins")]
pub async fn origins(conn: &mut PgConnection, handles: &HashSet<AssetHandle>) -> Result<StoredAssets> {
    if handles.is_empty() {
        return Ok(StoredAssets::new());
    }
    let (owners, ids): (Vec<String>, Vec<String>) =
        handles.iter().map(|handle| (handle.owner.to_string(), handle.id.to_string())).unzip();
    // As in `get_all`.
    let rows = sqlx::query!(
        r#"SELECT a.owner_uid AS "owner_uid!", a.id AS "id!", a.width AS "width!", a.height AS "height!",
                  coalesce(a.origin_kind = 'made', a.canvas_key IS NOT NULL AND a.node_id IS NULL) AS "is_made!"
           FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) AS named (owner_uid, id)
           CROSS JOIN LATERAL (
               SELECT * FROM assets WHERE owner_uid = named.owner_uid AND id = named.id LIMIT 1
           ) AS a"#,
        &owners,
        &ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let handle =
                AssetHandle { owner: AccountUid::from_stored(row.owner_uid), id: AssetId::from_stored(row.id) };
            let origin = if row.is_made { review::Origin::Job } else { review::Origin::Brought };
            (handle, StoredAsset { origin, size: (row.width.into(), row.height.into()), has_sources: None })
        })
        .collect())
}

/// The origin that counts of the images with these bytes: one with AI, or else one that the service knows.
#[tracing::instrument(skip_all, name = "db.asset.believed_origin")]
pub async fn believed_origin(conn: &mut PgConnection, blob_key: Uuid) -> Result<Option<DigitalSourceType>> {
    let origin = sqlx::query_scalar!(
        r#"SELECT origin AS "origin!" FROM assets
           WHERE blob_key = $1 AND (origin_from = 'service' OR origin ILIKE '%trainedAlgorithmicMedia')
           ORDER BY origin ILIKE '%trainedAlgorithmicMedia' DESC, owner_uid, id LIMIT 1"#,
        blob_key,
    );
    origin.fetch_optional(conn).await?.map(|term| known("assets.origin", &term)).transpose()
}

/// Reads the asset of `handle` if `caller` may read it, and the caller's role: owner, or member of the canvas that stores it.
#[tracing::instrument(skip_all, name = "db.asset.get_readable")]
pub async fn get_readable(
    conn: &mut PgConnection,
    caller: &AccountUid,
    handle: &AssetHandle,
) -> Result<Option<(AssetRecord, AccessRole)>> {
    let row = sqlx::query!(
        r#"SELECT a.owner_uid, a.id, a.canvas_key,
                  (SELECT n.id FROM nodes n WHERE n.canvas_key = a.canvas_key AND n.id = a.node_id) AS node_id, a.kind, a.name, a.mime_type, a.width, a.height, a.bytes,
                  a.blob_key, preview_epoch(a) AS "preview_epoch!", a.origin, a.origin_from,
                  a.metadata_removed, a.original_blob, a.original_mime_type, a.original_bytes, a.original_reason,
                  a.duration_ms, a.has_audio, a.poster_key, a.poster_mime_type, is_animated(a) AS "is_animated!", a.created_at, a.updated_at,
                  CASE WHEN a.owner_uid = $1 THEN 'owner' ELSE s.role END AS "role!"
           FROM assets a LEFT JOIN canvas_shares s ON s.canvas_key = a.canvas_key AND s.account_uid = $1
           WHERE a.owner_uid = $2 AND a.id = $3 AND (a.owner_uid = $1 OR s.role IS NOT NULL)"#,
        caller.as_str(),
        handle.owner.as_str(),
        handle.id.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let role = known("canvas_shares.role", &row.role)?;
    let record = AssetRow {
        owner_uid: row.owner_uid,
        id: row.id,
        canvas_key: row.canvas_key,
        node_id: row.node_id,
        kind: row.kind,
        name: row.name,
        mime_type: row.mime_type,
        width: row.width,
        height: row.height,
        bytes: row.bytes,
        blob_key: row.blob_key,
        preview_epoch: row.preview_epoch,
        origin: row.origin,
        origin_from: row.origin_from,
        metadata_removed: row.metadata_removed,
        original_blob: row.original_blob,
        original_mime_type: row.original_mime_type,
        original_bytes: row.original_bytes,
        original_reason: row.original_reason,
        duration_ms: row.duration_ms,
        has_audio: row.has_audio,
        poster_key: row.poster_key,
        poster_mime_type: row.poster_mime_type,
        is_animated: row.is_animated,
        created_at: row.created_at,
        updated_at: row.updated_at,
    };
    Ok(Some((record.try_into()?, role)))
}

#[cfg(test)]
mod tests;
