//! Assets whose files are from before private metadata was removed (docs/reference/command-line.md#admin-asset-clean).

use domain::Timestamp;
use domain::asset::{MetadataClass, OriginalFile};
use domain::id::{AccountUid, AssetHandle, AssetId};
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use super::names;
use crate::Result;

/// An asset whose file may hold private metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncleaned {
    pub handle: AssetHandle,
    /// Key of the blob of the file.
    pub blob_key: Uuid,
    /// Media type of the file.
    pub mime_type: String,
    /// Size of the file in bytes.
    pub bytes: i64,
    /// Width and height in pixels.
    pub size: (i32, i32),
    /// The service made it, or a provider did for it.
    pub is_made: bool,
}

/// When this database learned to keep originals.
#[tracing::instrument(skip_all, name = "db.asset.rule_since")]
pub async fn rule_since(conn: &mut PgConnection) -> Result<Timestamp> {
    // Not checked at compile time: the table is that of the migrator.
    let since = sqlx::query_scalar::<_, DateTime<Utc>>("SELECT installed_on FROM _sqlx_migrations WHERE version = 37");
    Ok(since.fetch_one(conn).await?.into())
}

/// A page of images stored before a time, of one account or of all, in the order of their handles. Those whose files were rewritten
/// are left out.
#[tracing::instrument(skip_all, name = "db.asset.uncleaned")]
pub async fn uncleaned(
    conn: &mut PgConnection,
    owner: Option<&AccountUid>,
    before: Timestamp,
    after: Option<&AssetHandle>,
    limit: i64,
) -> Result<Vec<Uncleaned>> {
    let rows = sqlx::query!(
        "SELECT owner_uid, id, blob_key, mime_type, bytes, width, height, origin_from
         FROM assets
         WHERE ($1::text IS NULL OR owner_uid = $1) AND (owner_uid, id) > ($2, $3) AND created_at < $4
           AND mime_type IN ('image/jpeg', 'image/png', 'image/webp', 'image/gif')
           AND original_blob IS NULL AND metadata_removed = '{}'
         ORDER BY owner_uid, id LIMIT $5",
        owner.map(AccountUid::as_str),
        after.map_or("", |after| after.owner.as_str()),
        after.map_or("", |after| after.id.as_str()),
        before.get(),
        limit,
    )
    .fetch_all(conn)
    .await?;
    let page = rows.into_iter().map(|row| Uncleaned {
        handle: AssetHandle { owner: AccountUid::from_stored(row.owner_uid), id: AssetId::from_stored(row.id) },
        blob_key: row.blob_key,
        mime_type: row.mime_type,
        bytes: row.bytes,
        size: (row.width, row.height),
        is_made: row.origin_from.as_deref() == Some("service"),
    });
    Ok(page.collect())
}

/// Lets an asset serve another file, whose blob this transaction adopted, and keeps the present one as its original. `false` if it
/// has another file by now, or is gone.
#[tracing::instrument(skip_all, name = "db.asset.replace_file")]
pub async fn replace_file(
    conn: &mut PgConnection,
    handle: &AssetHandle,
    (blob_key, bytes): (Uuid, i64),
    removed: &[MetadataClass],
    original: &OriginalFile,
) -> Result<bool> {
    let replaced = sqlx::query!(
        "UPDATE assets SET blob_key = $3, bytes = $4, metadata_removed = $5, original_blob = $6, original_mime_type = $7,
                           original_bytes = $8, original_reason = $9
         WHERE owner_uid = $1 AND id = $2 AND blob_key = $6 AND original_blob IS NULL",
        handle.owner.as_str(),
        handle.id.as_str(),
        blob_key,
        bytes,
        &names(removed),
        original.blob_key,
        original.mime_type,
        original.bytes,
        original.reason.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(replaced.rows_affected() > 0)
}
