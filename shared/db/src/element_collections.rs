//! Collections of Elements (docs/reference/elements.md#collection-object).

use domain::element::CollectionRecord;
use domain::id::{AccountUid, ElementCollectionId};
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;

use crate::Result;
use crate::canvases::After;

struct CollectionRow {
    owner_uid: String,
    id: String,
    name: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<CollectionRow> for CollectionRecord {
    fn from(row: CollectionRow) -> Self {
        Self {
            id: ElementCollectionId::from_stored(row.id),
            owner: AccountUid::from_stored(row.owner_uid),
            name: row.name,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Creates a collection.
#[instrument(skip_all, name = "db.element_collection.create")]
pub async fn create(conn: &mut PgConnection, owner: &AccountUid, name: &str) -> Result<CollectionRecord> {
    let id = ElementCollectionId::generate();
    let row = sqlx::query_as!(
        CollectionRow,
        "INSERT INTO element_collections (owner_uid, id, name) VALUES ($1, $2, $3)
         RETURNING owner_uid, id, name, created_at, updated_at",
        owner.as_str(),
        id.as_str(),
        name
    )
    .fetch_one(conn)
    .await?;
    Ok(row.into())
}

/// Renames a collection; `None` when the account has no collection of this id.
#[instrument(skip_all, name = "db.element_collection.rename")]
pub async fn rename(
    conn: &mut PgConnection,
    owner: &AccountUid,
    id: &ElementCollectionId,
    name: &str,
) -> Result<Option<CollectionRecord>> {
    let row = sqlx::query_as!(
        CollectionRow,
        "UPDATE element_collections SET name = $3, updated_at = now() WHERE owner_uid = $1 AND id = $2
         RETURNING owner_uid, id, name, created_at, updated_at",
        owner.as_str(),
        id.as_str(),
        name
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Into::into))
}

/// Deletes a collection. Its members keep their versions and lose the membership. Returns the deleted collection; `None` when
/// the account has no collection of this id.
#[instrument(skip_all, name = "db.element_collection.delete")]
pub async fn delete(
    conn: &mut PgConnection,
    owner: &AccountUid,
    id: &ElementCollectionId,
) -> Result<Option<CollectionRecord>> {
    let row = sqlx::query_as!(
        CollectionRow,
        "DELETE FROM element_collections WHERE owner_uid = $1 AND id = $2
         RETURNING owner_uid, id, name, created_at, updated_at",
        owner.as_str(),
        id.as_str()
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Into::into))
}

/// Lists at most `limit` of an account's collections, last changed first.
#[instrument(skip_all, name = "db.element_collection.list")]
pub async fn list(
    conn: &mut PgConnection,
    owner: &AccountUid,
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<CollectionRecord>> {
    let rows = sqlx::query_as!(
        CollectionRow,
        "SELECT owner_uid, id, name, created_at, updated_at FROM element_collections
         WHERE owner_uid = $1 AND ($2::timestamptz IS NULL OR (updated_at, id) < ($2, $3))
         ORDER BY updated_at DESC, id DESC LIMIT $4",
        owner.as_str(),
        after.map(|after| after.updated_at.get()),
        after.map(After::last_id),
        limit
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Returns those of `ids` that are collections of the account, and locks them against deletion until the transaction ends, so
/// that it can add memberships.
#[instrument(skip_all, name = "db.element_collection.hold")]
pub async fn hold(
    conn: &mut PgConnection,
    owner: &AccountUid,
    ids: &[ElementCollectionId],
) -> Result<Vec<ElementCollectionId>> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    // In a fixed order, to avoid deadlocks between two transactions.
    let held = sqlx::query_scalar!(
        "SELECT id FROM element_collections WHERE owner_uid = $1 AND id = ANY($2) ORDER BY id FOR KEY SHARE",
        owner.as_str(),
        &ids
    )
    .fetch_all(conn)
    .await?;
    Ok(held.into_iter().map(ElementCollectionId::from_stored).collect())
}
