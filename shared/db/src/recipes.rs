//! Recipes: the catalog, which every account sees, and private workflows, which only their account sees.
//!
//! **Guarantee.** The versions of a Recipe are 0, 1, 2, … without gap or repeat, and none ever changes. **Mechanism.** A writer
//! that appends a version locks the Recipe's row, whose `version` is the newest. A trigger rejects updates of versions.

use domain::id::{AccountUid, RecipeId};
use domain::recipe::{Definition, RecipeRecord, Version, Visibility};
use sqlx::PgConnection;
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;

use crate::Result;
use crate::canvases::After;

struct RecipeRow {
    id: String,
    owner_uid: Option<String>,
    version: i32,
    definition: Json<Definition>,
    updated_at: DateTime<Utc>,
}

impl From<RecipeRow> for RecipeRecord {
    fn from(row: RecipeRow) -> Self {
        Self {
            id: RecipeId::from_stored(row.id),
            owner: row.owner_uid.map(AccountUid::from_stored),
            version: Version(row.version),
            definition: row.definition.0,
            updated_at: row.updated_at.into(),
        }
    }
}

/// Result of publishing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// The Recipe has this version now.
    Version(Version),
    /// Its newest version, which this is, was equal already.
    Unchanged(Version),
    /// The id belongs to a private workflow.
    Taken,
}

/// Publishes a definition in the catalog under `id`: as its first version, as the next one or, when the newest version is
/// equal, not at all. Concurrent publishers of one id run one after the other.
#[instrument(skip_all, name = "db.recipe.publish")]
pub async fn publish(conn: &mut PgConnection, id: &RecipeId, definition: &Definition) -> Result<Published> {
    let made = sqlx::query!(
        "INSERT INTO recipes (id, search) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        id.as_str(),
        definition.search_text()
    )
    .execute(&mut *conn)
    .await?;
    if made.rows_affected() == 1 {
        insert_version(conn, id, 0, definition).await?;
        return Ok(Published::Version(Version(0)));
    }
    // A separate statement. A single one that waited for the row would join the new row with the version that it saw before.
    let newest = sqlx::query!("SELECT owner_uid, version FROM recipes WHERE id = $1 FOR UPDATE", id.as_str())
        .fetch_one(&mut *conn)
        .await?;
    if newest.owner_uid.is_some() {
        return Ok(Published::Taken);
    }
    let is_same = sqlx::query_scalar!(
        r#"SELECT definition = $3 AS "is_same!" FROM recipe_versions WHERE recipe_id = $1 AND version = $2"#,
        id.as_str(),
        newest.version,
        Json(definition) as _
    )
    .fetch_one(&mut *conn)
    .await?;
    if is_same {
        return Ok(Published::Unchanged(Version(newest.version)));
    }
    let next = newest.version + 1;
    sqlx::query!(
        "UPDATE recipes SET version = $2, search = $3, updated_at = clock_timestamp() WHERE id = $1",
        id.as_str(),
        next,
        definition.search_text()
    )
    .execute(&mut *conn)
    .await?;
    insert_version(conn, id, next, definition).await?;
    Ok(Published::Version(Version(next)))
}

/// Creates an account's private workflow in its first version.
#[instrument(skip_all, name = "db.recipe.create_private")]
pub async fn create_private(
    conn: &mut PgConnection,
    owner: &AccountUid,
    id: &RecipeId,
    definition: &Definition,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO recipes (id, owner_uid, search) VALUES ($1, $2, $3)",
        id.as_str(),
        owner.as_str(),
        definition.search_text()
    )
    .execute(&mut *conn)
    .await?;
    insert_version(conn, id, 0, definition).await
}

async fn insert_version(conn: &mut PgConnection, id: &RecipeId, version: i32, definition: &Definition) -> Result<()> {
    sqlx::query!(
        "INSERT INTO recipe_versions (recipe_id, version, definition) VALUES ($1, $2, $3)",
        id.as_str(),
        version,
        Json(definition) as _
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Reads a Recipe that `caller` may see, in its newest version or in exactly `version`.
#[instrument(skip_all, name = "db.recipe.find")]
pub async fn find(
    conn: &mut PgConnection,
    caller: &AccountUid,
    id: &RecipeId,
    version: Option<Version>,
) -> Result<Option<RecipeRecord>> {
    let row = sqlx::query_as!(
        RecipeRow,
        r#"SELECT r.id, r.owner_uid, v.version, v.definition AS "definition: _", r.updated_at
           FROM recipes r JOIN recipe_versions v ON v.recipe_id = r.id AND v.version = coalesce($3, r.version)
           WHERE r.id = $1 AND (r.owner_uid IS NULL OR r.owner_uid = $2)"#,
        id.as_str(),
        caller.as_str(),
        version.map(|version| version.0)
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Into::into))
}

/// Lists at most `limit` Recipes that `caller` may see, last changed first: those of the catalog, their own, or both. With
/// `words`, those that contain every word somewhere in name, texts, tags, category or outputs, ignoring case. Prompts and the texts of
/// defaults are left empty: they may take megabytes, and a list does not show them.
#[instrument(skip_all, name = "db.recipe.list")]
pub async fn list(
    conn: &mut PgConnection,
    caller: &AccountUid,
    visibility: Option<Visibility>,
    words: &[String],
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<RecipeRecord>> {
    let rows = sqlx::query_as!(
        RecipeRow,
        r#"SELECT r.id, r.owner_uid, v.version, r.updated_at,
                  v.definition || jsonb_build_object(
                      'inputs', (
                          SELECT jsonb_agg(CASE WHEN port #> '{default,text}' IS NULL THEN port
                                                ELSE jsonb_set(port, '{default,text}', '""') END ORDER BY n)
                          FROM jsonb_array_elements(v.definition -> 'inputs') WITH ORDINALITY AS ports (port, n)
                      ),
                      'outputs', (
                          SELECT jsonb_agg(jsonb_set(port, '{prompt}', '""') ORDER BY n)
                          FROM jsonb_array_elements(v.definition -> 'outputs') WITH ORDINALITY AS ports (port, n)
                      )
                  ) AS "definition!: _"
           FROM recipes r JOIN recipe_versions v ON v.recipe_id = r.id AND v.version = r.version
           WHERE ((r.owner_uid IS NULL AND $2) OR (r.owner_uid = $1 AND $3))
             AND NOT EXISTS (SELECT FROM unnest($4::text[]) AS word WHERE strpos(r.search, word) = 0)
             AND ($5::timestamptz IS NULL OR (r.updated_at, r.id) < ($5, $6))
           ORDER BY r.updated_at DESC, r.id DESC LIMIT $7"#,
        caller.as_str(),
        visibility != Some(Visibility::Private),
        visibility != Some(Visibility::Approved),
        words,
        after.map(|after| after.updated_at.get()),
        after.map(After::last_id),
        limit
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

#[cfg(test)]
mod tests {
    use domain::recipe::{Category, Input, InputKind, Output, OutputKind};
    use testkit::TestDatabase;

    use super::*;

    fn uid(name: &str) -> AccountUid {
        AccountUid::from_stored(name.into())
    }

    fn recipe(id: &str) -> RecipeId {
        RecipeId::from_stored(id.into())
    }

    fn named(name: &str) -> Definition {
        let input = Input {
            key: "a".into(),
            label: "A".into(),
            description: String::new(),
            kind: InputKind::Text,
            node_id: "input-a".into(),
            default: None,
            written_reference: false,
        };
        let output = Output {
            key: "b".into(),
            label: "Poster".into(),
            description: String::new(),
            kind: OutputKind::Text,
            node_id: "output-b".into(),
            prompt: "{{a}}".into(),
            input_keys: vec!["a".into()],
            model: None,
            size: None,
            quality: None,
        };
        Definition {
            name: name.into(),
            summary: Some("100% ÄHRE_x".into()),
            description: None,
            category: Category::Marketing,
            tags: vec!["winter".into()],
            inputs: vec![input],
            outputs: vec![output],
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
    async fn a_published_version_stays_and_an_unchanged_file_makes_none() {
        let database = database().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        let id = recipe("hero");
        let (new, unchanged) = (|it| Published::Version(Version(it)), |it| Published::Unchanged(Version(it)));
        for (name, expected) in
            [("one", new(0)), ("one", unchanged(0)), ("two", new(1)), ("two", unchanged(1)), ("one", new(2))]
        {
            let published = publish(&mut conn, &id, &named(name)).await.expect("publishes");
            assert_eq!(published, expected, "{name}");
        }
        for (version, name) in [(Some(0), "one"), (Some(1), "two"), (Some(2), "one"), (None, "one")] {
            let found = find(&mut conn, &uid("me"), &id, version.map(Version)).await.expect("reads").expect("is there");
            assert_eq!((found.definition, found.version), (named(name), Version(version.unwrap_or(2))));
        }
        assert_eq!(find(&mut conn, &uid("me"), &id, Some(Version(3))).await.expect("reads"), None);
        let changed = sqlx::query("UPDATE recipe_versions SET version = 9").execute(&mut *conn).await;
        assert!(changed.expect_err("is refused").to_string().contains("append-only"));
    }

    #[tokio::test]
    async fn concurrent_publishers_share_and_skip_no_version() {
        let database = database().await;
        let writers = (0..8).map(|writer| {
            let pool = database.pool().clone();
            tokio::spawn(async move {
                let mut tx = pool.begin().await.expect("begins");
                let published = publish(&mut tx, &recipe("r"), &named(&format!("writer {writer}"))).await;
                tx.commit().await.expect("commits");
                match published.expect("publishes") {
                    Published::Version(version) => version.0,
                    other => panic!("{other:?}"),
                }
            })
        });
        let mut versions = Vec::new();
        for writer in writers.collect::<Vec<_>>() {
            versions.push(writer.await.expect("ends well"));
        }
        versions.sort_unstable();
        assert_eq!(versions, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[tokio::test]
    async fn a_private_workflow_is_its_owners_alone() {
        let database = database().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        publish(&mut conn, &recipe("open"), &named("open")).await.expect("publishes");
        create_private(&mut conn, &uid("me"), &recipe("mine"), &named("mine")).await.expect("creates");
        let publishes = publish(&mut conn, &recipe("mine"), &named("mine")).await.expect("answers");
        assert_eq!(publishes, Published::Taken);
        assert!(find(&mut conn, &uid("me"), &recipe("mine"), None).await.expect("reads").is_some());
        assert!(find(&mut conn, &uid("you"), &recipe("mine"), None).await.expect("reads").is_none());
        for (who, visibility, seen) in [
            ("me", Some(Visibility::Approved), vec!["open"]),
            ("me", Some(Visibility::Private), vec!["mine"]),
            ("me", None, vec!["mine", "open"]),
            ("you", Some(Visibility::Private), vec![]),
            ("you", None, vec!["open"]),
        ] {
            let listed = list(&mut conn, &uid(who), visibility, &[], None, 10).await.expect("lists");
            assert_eq!(listed.iter().map(|recipe| recipe.id.as_str()).collect::<Vec<_>>(), seen, "{who}");
        }
    }

    #[tokio::test]
    async fn a_search_finds_every_word_in_any_text_and_a_walk_meets_each_once() {
        let database = database().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        for name in ["Alpha", "Beta", "Gamma"] {
            publish(&mut conn, &recipe(name), &named(name)).await.expect("publishes");
        }
        for (words, found) in [
            (vec![], 3),
            (vec!["alpha"], 1),
            (vec!["ähre_x", "100%"], 3),
            (vec!["winter", "gam"], 1),
            (vec!["poster"], 3),
            (vec!["marketing & ads"], 3),
            (vec!["alpha", "beta"], 0),
            (vec!["%"], 3),
            (vec!["\\"], 0),
        ] {
            let words: Vec<String> = words.into_iter().map(Into::into).collect();
            let listed = list(&mut conn, &uid("me"), None, &words, None, 10).await.expect("lists");
            assert_eq!(listed.len(), found, "{words:?}");
        }
        let listed = list(&mut conn, &uid("me"), None, &[], None, 1).await.expect("lists").remove(0);
        assert_eq!((listed.definition.name.as_str(), listed.definition.outputs[0].prompt.as_str()), ("Gamma", ""));
        let found = find(&mut conn, &uid("me"), &listed.id, None).await.expect("reads").expect("is there");
        assert_eq!(found.definition.outputs[0].prompt, "{{a}}", "a list alone leaves it out");
        let (mut after, mut met) = (None, Vec::new());
        while let Some(next) = list(&mut conn, &uid("me"), None, &[], after.as_ref(), 1).await.expect("lists").pop() {
            after = Some(After { updated_at: next.updated_at, handle: next.id.handle() });
            met.push(next.id.to_string());
        }
        assert_eq!(met, ["Gamma", "Beta", "Alpha"]);
    }
}
