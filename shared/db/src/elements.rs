//! Elements and their versions (docs/reference/elements.md).
//!
//! **Guarantee.** The versions of an Element are 1, 2, 3, … without gap or repeat, and none ever changes. **Mechanism.** A
//! writer that appends a version locks the Element's row ([`lock`]), whose `version` is the newest. A trigger rejects updates
//! of versions.

use domain::element::{Content, ElementRecord, Lifecycle, VersionRecord};
use domain::id::{AccountUid, AssetId, ElementCollectionId, ElementId};
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;

use crate::Result;
use crate::canvases::After;
use crate::error::known;

struct ElementRow {
    owner_uid: String,
    id: String,
    lifecycle: String,
    version: i32,
    name: String,
    kind: String,
    source_asset_ids: Vec<String>,
    guidelines: Option<String>,
    collection_ids: Vec<String>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    archived_at: Option<DateTime<Utc>>,
}

impl TryFrom<ElementRow> for ElementRecord {
    type Error = crate::Error;

    fn try_from(row: ElementRow) -> Result<Self> {
        Ok(Self {
            id: ElementId::from_stored(row.id),
            owner: AccountUid::from_stored(row.owner_uid),
            lifecycle: known("elements.lifecycle", &row.lifecycle)?,
            version: row.version,
            content: content(row.name, &row.kind, row.source_asset_ids, row.guidelines)?,
            collections: row.collection_ids.into_iter().map(ElementCollectionId::from_stored).collect(),
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
            archived_at: row.archived_at.map(Into::into),
        })
    }
}

struct VersionRow {
    owner_uid: String,
    element_id: String,
    version: i32,
    name: String,
    kind: String,
    source_asset_ids: Vec<String>,
    guidelines: Option<String>,
    created_at: DateTime<Utc>,
}

impl TryFrom<VersionRow> for VersionRecord {
    type Error = crate::Error;

    fn try_from(row: VersionRow) -> Result<Self> {
        Ok(Self {
            element: ElementId::from_stored(row.element_id),
            owner: AccountUid::from_stored(row.owner_uid),
            version: row.version,
            content: content(row.name, &row.kind, row.source_asset_ids, row.guidelines)?,
            created_at: row.created_at.into(),
        })
    }
}

fn content(name: String, kind: &str, sources: Vec<String>, guidelines: Option<String>) -> Result<Content> {
    let sources = sources.into_iter().map(AssetId::from_stored).collect();
    Ok(Content { name, kind: known("element_versions.type", kind)?, sources, guidelines })
}

/// Creates an Element in its first version, without collections.
#[instrument(skip_all, name = "db.element.create")]
pub async fn create(conn: &mut PgConnection, owner: &AccountUid, content: &Content) -> Result<ElementId> {
    let id = ElementId::generate();
    sqlx::query!(
        "INSERT INTO elements (owner_uid, id, search_name, search_guidelines) VALUES ($1, $2, $3, $4)",
        owner.as_str(),
        id.as_str(),
        content.name.to_lowercase(),
        search_guidelines(content)
    )
    .execute(&mut *conn)
    .await?;
    insert_version(conn, owner, &id, 1, content).await?;
    Ok(id)
}

/// Appends a version to an Element whose row the transaction has locked, and restores the Element if it was archived.
#[instrument(skip_all, name = "db.element.append")]
pub async fn append(conn: &mut PgConnection, owner: &AccountUid, id: &ElementId, content: &Content) -> Result<()> {
    let version = sqlx::query_scalar!(
        "UPDATE elements SET version = version + 1, lifecycle = 'active', archived_at = NULL, search_name = $3,
                search_guidelines = $4, updated_at = clock_timestamp()
         WHERE owner_uid = $1 AND id = $2 RETURNING version",
        owner.as_str(),
        id.as_str(),
        content.name.to_lowercase(),
        search_guidelines(content)
    )
    .fetch_one(&mut *conn)
    .await?;
    insert_version(conn, owner, id, version, content).await
}

fn search_guidelines(content: &Content) -> String {
    content.guidelines.as_deref().unwrap_or_default().to_lowercase()
}

async fn insert_version(
    conn: &mut PgConnection,
    owner: &AccountUid,
    id: &ElementId,
    version: i32,
    content: &Content,
) -> Result<()> {
    let sources: Vec<String> = content.sources.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "INSERT INTO element_versions
             (owner_uid, element_id, version, name, type, source_asset_ids, guidelines, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp())",
        owner.as_str(),
        id.as_str(),
        version,
        content.name,
        content.kind.as_str(),
        &sources,
        content.guidelines
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Reads an Element of an account.
#[instrument(skip_all, name = "db.element.find")]
pub async fn find(conn: &mut PgConnection, owner: &AccountUid, id: &ElementId) -> Result<Option<ElementRecord>> {
    let row = sqlx::query_as!(
        ElementRow,
        r#"SELECT e.owner_uid, e.id, e.lifecycle, e.version, v.name, v.type AS kind, v.source_asset_ids, v.guidelines,
                  ARRAY(SELECT collection_id FROM element_memberships m
                        WHERE m.owner_uid = e.owner_uid AND m.element_id = e.id ORDER BY place) AS "collection_ids!",
                  e.created_at, e.updated_at, e.archived_at
           FROM elements e
           JOIN element_versions v ON v.owner_uid = e.owner_uid AND v.element_id = e.id AND v.version = e.version
           WHERE e.owner_uid = $1 AND e.id = $2"#,
        owner.as_str(),
        id.as_str()
    )
    .fetch_optional(conn)
    .await?;
    row.map(TryInto::try_into).transpose()
}

/// [`find`], with the Element's row locked until the transaction ends. Every writer calls this.
#[instrument(skip_all, name = "db.element.lock")]
pub async fn lock(conn: &mut PgConnection, owner: &AccountUid, id: &ElementId) -> Result<Option<ElementRecord>> {
    // A separate statement. A single one that waited for the row would join the new row with the version that it saw before.
    let held = sqlx::query_scalar!(
        "SELECT version FROM elements WHERE owner_uid = $1 AND id = $2 FOR UPDATE",
        owner.as_str(),
        id.as_str()
    )
    .fetch_optional(&mut *conn)
    .await?;
    match held {
        Some(_) => find(conn, owner, id).await,
        None => Ok(None),
    }
}

/// Archives an Element whose row the transaction has locked.
#[instrument(skip_all, name = "db.element.archive")]
pub async fn archive(conn: &mut PgConnection, owner: &AccountUid, id: &ElementId) -> Result<()> {
    sqlx::query!(
        "UPDATE elements SET lifecycle = 'archived', archived_at = now.at, updated_at = now.at
         FROM (SELECT clock_timestamp() AS at) AS now WHERE owner_uid = $1 AND id = $2",
        owner.as_str(),
        id.as_str()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Sets the collections of an Element. The transaction has locked the Element's row and the collections
/// ([`crate::element_collections::hold`]).
#[instrument(skip_all, name = "db.element.organize")]
pub async fn organize(
    conn: &mut PgConnection,
    owner: &AccountUid,
    id: &ElementId,
    collections: &[ElementCollectionId],
) -> Result<()> {
    let collections: Vec<String> = collections.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "DELETE FROM element_memberships WHERE owner_uid = $1 AND element_id = $2",
        owner.as_str(),
        id.as_str()
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "INSERT INTO element_memberships (owner_uid, element_id, collection_id, place)
         SELECT $1, $2, given.id, given.place FROM UNNEST($3::text[]) WITH ORDINALITY AS given (id, place)",
        owner.as_str(),
        id.as_str(),
        &collections
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "UPDATE elements SET updated_at = clock_timestamp() WHERE owner_uid = $1 AND id = $2",
        owner.as_str(),
        id.as_str()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Lists at most `limit` of an account's Elements, last changed first; with `search`, those whose name or guidelines contain
/// it, ignoring case.
#[instrument(skip_all, name = "db.element.list")]
pub async fn list(
    conn: &mut PgConnection,
    owner: &AccountUid,
    lifecycle: Lifecycle,
    search: &str,
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<ElementRecord>> {
    let rows = sqlx::query_as!(
        ElementRow,
        r#"SELECT e.owner_uid, e.id, e.lifecycle, e.version, v.name, v.type AS kind, v.source_asset_ids, v.guidelines,
                  ARRAY(SELECT collection_id FROM element_memberships m
                        WHERE m.owner_uid = e.owner_uid AND m.element_id = e.id ORDER BY place) AS "collection_ids!",
                  e.created_at, e.updated_at, e.archived_at
           FROM elements e
           JOIN element_versions v ON v.owner_uid = e.owner_uid AND v.element_id = e.id AND v.version = e.version
           WHERE e.owner_uid = $1 AND e.lifecycle = $2
             AND ($3 = '' OR strpos(e.search_name, $3) > 0 OR strpos(e.search_guidelines, $3) > 0)
             AND ($4::timestamptz IS NULL OR (e.updated_at, e.id) < ($4, $5))
           ORDER BY e.updated_at DESC, e.id DESC LIMIT $6"#,
        owner.as_str(),
        lifecycle.as_str(),
        search.to_lowercase(),
        after.map(|after| after.updated_at.get()),
        after.map(After::last_id),
        limit
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// Reads one version of an Element of an account.
#[instrument(skip_all, name = "db.element.version")]
pub async fn version(
    conn: &mut PgConnection,
    owner: &AccountUid,
    id: &ElementId,
    version: i32,
) -> Result<Option<VersionRecord>> {
    let row = sqlx::query_as!(
        VersionRow,
        "SELECT owner_uid, element_id, version, name, type AS kind, source_asset_ids, guidelines, created_at
         FROM element_versions WHERE owner_uid = $1 AND element_id = $2 AND version = $3",
        owner.as_str(),
        id.as_str(),
        version
    )
    .fetch_optional(conn)
    .await?;
    row.map(TryInto::try_into).transpose()
}

/// Lists at most `limit` versions of an Element of an account, newest first, below version `before`. An Element has at least
/// one version, so an empty list without `before` means that the Element does not exist.
#[instrument(skip_all, name = "db.element.versions")]
pub async fn versions(
    conn: &mut PgConnection,
    owner: &AccountUid,
    id: &ElementId,
    before: Option<i32>,
    limit: i64,
) -> Result<Vec<VersionRecord>> {
    let rows = sqlx::query_as!(
        VersionRow,
        "SELECT owner_uid, element_id, version, name, type AS kind, source_asset_ids, guidelines, created_at
         FROM element_versions
         WHERE owner_uid = $1 AND element_id = $2 AND ($3::integer IS NULL OR version < $3)
         ORDER BY version DESC LIMIT $4",
        owner.as_str(),
        id.as_str(),
        before,
        limit
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

#[cfg(test)]
mod tests {
    use domain::element::ElementType;
    use testkit::TestDatabase;

    use super::*;
    use crate::element_collections;

    fn me() -> AccountUid {
        AccountUid::from_stored("me".into())
    }

    fn named(name: &str) -> Content {
        Content {
            name: name.into(),
            kind: ElementType::Style,
            sources: vec![AssetId::from_stored("a".into())],
            guidelines: Some(format!("How {name} looks")),
        }
    }

    async fn database() -> TestDatabase {
        let database = TestDatabase::new().await;
        sqlx::query("INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com'), ('you', 'you@example.com')")
            .execute(database.pool())
            .await
            .expect("inserts");
        database
    }

    #[tokio::test]
    async fn concurrent_appends_share_and_skip_no_version() {
        let database = database().await;
        let id = create(&mut database.pool().acquire().await.expect("connects"), &me(), &named("one")).await;
        let id = id.expect("creates");
        let writers = (0..8).map(|writer| {
            let (pool, id) = (database.pool().clone(), id.clone());
            tokio::spawn(async move {
                let mut tx = pool.begin().await.expect("begins");
                let seen = lock(&mut tx, &me(), &id).await.expect("locks").expect("is there");
                let newest = version(&mut tx, &me(), &id, seen.version).await.expect("reads").expect("is there");
                assert_eq!(newest.content, seen.content, "the row and the version it names are of one moment");
                append(&mut tx, &me(), &id, &named(&format!("writer {writer}"))).await.expect("appends");
                tx.commit().await.expect("commits");
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.expect("ends well");
        }
        let mut conn = database.pool().acquire().await.expect("connects");
        let all = versions(&mut conn, &me(), &id, None, 100).await.expect("lists");
        assert_eq!(all.iter().map(|version| version.version).collect::<Vec<_>>(), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(all[8].content, named("one"));
        let now = find(&mut conn, &me(), &id).await.expect("reads").expect("is there");
        assert_eq!((now.version, now.content), (9, all[0].content.clone()));
    }

    #[tokio::test]
    async fn a_version_cannot_be_changed() {
        let database = database().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        create(&mut conn, &me(), &named("one")).await.expect("creates");
        let changed = sqlx::query("UPDATE element_versions SET name = 'other'").execute(&mut *conn).await;
        assert!(changed.expect_err("is refused").to_string().contains("append-only"));
    }

    #[tokio::test]
    async fn search_looks_into_name_and_guidelines_by_unicode_case() {
        let database = database().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        let plain = Content { guidelines: None, ..named("100% ÄHRE_x") };
        for content in [named("Straße"), plain, named("nothing")] {
            create(&mut conn, &me(), &content).await.expect("creates");
        }
        for (search, found) in
            [("ähre", 1), ("100%", 1), ("%", 1), ("_X", 1), ("how STRA", 1), ("HOW", 2), ("", 3), ("\\", 0)]
        {
            let listed = list(&mut conn, &me(), Lifecycle::Active, search, None, 10).await.expect("lists");
            assert_eq!(listed.len(), found, "{search}");
        }
        let you = AccountUid::from_stored("you".into());
        assert_eq!(list(&mut conn, &you, Lifecycle::Active, "", None, 10).await.expect("lists"), []);
    }

    #[tokio::test]
    async fn a_held_collection_is_deleted_after_the_membership_and_takes_it_along() {
        let database = database().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        let id = create(&mut conn, &me(), &named("one")).await.expect("creates");
        let collection = element_collections::create(&mut conn, &me(), "c").await.expect("creates").id;
        let mut tx = database.pool().begin().await.expect("begins");
        let held = element_collections::hold(&mut tx, &me(), std::slice::from_ref(&collection)).await.expect("holds");
        assert_eq!(held, std::slice::from_ref(&collection));
        let (pool, gone) = (database.pool().clone(), collection.clone());
        let deletion = tokio::spawn(async move {
            let mut conn = pool.acquire().await.expect("connects");
            element_collections::delete(&mut conn, &me(), &gone).await.expect("deletes").expect("was there")
        });
        organize(&mut tx, &me(), &id, &held).await.expect("organizes");
        assert_eq!(find(&mut tx, &me(), &id).await.expect("reads").expect("is there").collections, held);
        tx.commit().await.expect("commits");
        deletion.await.expect("ends well");
        assert_eq!(find(&mut conn, &me(), &id).await.expect("reads").expect("is there").collections, []);
    }
}
