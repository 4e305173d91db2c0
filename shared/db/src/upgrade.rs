//! Test that processes of the previous release can work on the new schema, as they do during a rolling upgrade
//! (shared/db/migrations/README.md).
//!
//! Compares the catalog before and after: what existed must be unchanged, and what is new must require nothing of a statement
//! that does not know it.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgPool;
use testkit::TestDatabase;

/// The last migration of the previous release. Raised with each release.
const RELEASED: i64 = 16;

/// Constraints that were replaced by wider ones, `table.name`, each with its reason.
const WIDENED: [&str; 3] = [
    // Narrower widths, which the previous release never requests, and makes like any other (0021). And 0, the conversion of an
    // upload, which a worker of the previous release refuses like a damaged image (0048).
    "renditions.renditions_width_check",
    // Kinds of providers that the previous release does not know, and so does not save (0040).
    "provider_connections.provider_connections_provider_check",
    // Videos as assets, which the previous release does not store. The changelog says when the first one may be (0045).
    "assets.assets_kind_check",
];

/// A view, the table that had its name, and the renamed columns as `(old, new)`.
type Renamed = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Tables renamed since then, each with a view under its old name for the previous release.
const RENAMED: [Renamed; 1] = [(
    "tasks",
    "task_queue",
    &[
        ("lane", "fairness_key"),
        ("turn", "fair_seq"),
        ("expired", "expired_leases"),
        ("suspect", "quarantined"),
        ("woken", "ready_requested"),
    ],
)];

/// The first migration whose indexes operators may create beforehand (shared/db/migrations/README.md). Earlier ones must not
/// change.
const PREPARABLE: i64 = 23;

/// A table's column.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct Column {
    table: String,
    column: String,
    kind: String,
    /// `true` if a row without it is rejected.
    is_asked_for: bool,
    is_not_null: bool,
}

/// A constraint, a unique index or a trigger: something that may reject or change a write.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct Rule {
    table: String,
    name: String,
    definition: String,
    columns: Vec<String>,
}

#[derive(Debug)]
struct Schema {
    columns: BTreeMap<(String, String), Column>,
    /// Constraints and unique indexes, by table and name.
    rules: BTreeMap<(String, String), Rule>,
    triggers: BTreeMap<(String, String), Rule>,
}

impl Schema {
    async fn load(pool: &PgPool) -> Self {
        let columns: Vec<Column> = sqlx::query_as(
            r#"SELECT c.relname AS "table", a.attname AS "column", format_type(a.atttypid, a.atttypmod) AS kind,
                      a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS is_asked_for, a.attnotnull AS is_not_null
               FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
               WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
                 AND c.relname <> '_sqlx_migrations'"#,
        )
        .fetch_all(pool)
        .await
        .expect("reads the columns");
        let rules = read_rules(
            pool,
            r#"SELECT c.relname AS "table", k.conname AS name, pg_get_constraintdef(k.oid) AS definition,
                      ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = k.conrelid AND attnum = ANY(k.conkey))
                          AS columns
               FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
               WHERE c.relnamespace = 'public'::regnamespace AND k.contype <> 't' AND c.relname <> '_sqlx_migrations'
               UNION ALL
               SELECT c.relname, i.relname, pg_get_indexdef(x.indexrelid),
                      ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = x.indrelid AND attnum = ANY(x.indkey))
               FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
               WHERE c.relnamespace = 'public'::regnamespace AND x.indisunique AND c.relname <> '_sqlx_migrations'
                 AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = x.indexrelid)"#,
        )
        .await;
        let triggers = read_rules(
            pool,
            r#"SELECT c.relname AS "table", t.tgname AS name, pg_get_triggerdef(t.oid) AS definition, '{}'::text[] AS columns
               FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
               WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal"#,
        )
        .await;
        let columns =
            columns.into_iter().map(|column| ((column.table.clone(), column.column.clone()), column)).collect();
        Self { columns, rules, triggers }
    }

    /// The schema with the tables of [`RENAMED`] under their old names, as the previous release sees it through the views.
    fn under_old_names(self) -> Self {
        let table =
            |name: &str| RENAMED.iter().find(|(_, new, _)| *new == name).map_or(name, |(old, _, _)| *old).to_owned();
        let word = |table: &str, word: &str| {
            let renamed = RENAMED.iter().find(|(_, new, _)| *new == table);
            renamed
                .and_then(|(_, _, columns)| columns.iter().find(|(_, new)| *new == word))
                .map_or(word, |(old, _)| old)
                .to_owned()
        };
        let rules = |rules: BTreeMap<(String, String), Rule>| {
            let renamed = rules.into_values().map(|rule| Rule {
                columns: rule.columns.iter().map(|column| word(&rule.table, column)).collect(),
                definition: words(&rule.definition).map(|part| word(&rule.table, part)).collect(),
                table: table(&rule.table),
                name: rule.name,
            });
            renamed.map(|rule| ((rule.table.clone(), rule.name.clone()), rule)).collect()
        };
        let columns = self.columns.into_values().map(|column| Column {
            column: word(&column.table, &column.column),
            table: table(&column.table),
            ..column
        });
        Self {
            columns: columns.map(|column| ((column.table.clone(), column.column.clone()), column)).collect(),
            rules: rules(self.rules),
            triggers: rules(self.triggers),
        }
    }

    /// Everything for which a statement that knows only this schema would fail, or behave differently, on `next`.
    fn broken_by(&self, next: &Self) -> Vec<String> {
        let tables: BTreeSet<&str> = self.columns.values().map(|column| column.table.as_str()).collect();
        let mut broken = Vec::new();
        for ((table, name), column) in &self.columns {
            match next.columns.get(&(table.clone(), name.clone())) {
                None => broken.push(format!("{table}.{name} was removed")),
                Some(now) if now.kind != column.kind => broken.push(format!("{table}.{name} is now {}", now.kind)),
                Some(now) if now.is_asked_for && !column.is_asked_for => {
                    broken.push(format!("{table}.{name} is now required"));
                }
                Some(now) if now.is_not_null && !column.is_not_null => {
                    broken.push(format!("{table}.{name} may no longer be null"));
                }
                Some(_) => {}
            }
        }
        let added = |column: &&Column| {
            let key = (column.table.clone(), column.column.clone());
            tables.contains(column.table.as_str()) && !self.columns.contains_key(&key)
        };
        for column in next.columns.values().filter(added).filter(|column| column.is_asked_for) {
            broken.push(format!("{}.{} is new and required", column.table, column.column));
        }
        for (key @ (table, name), rule) in &self.rules {
            let now = next.rules.get(key);
            if now != Some(rule) && !WIDENED.contains(&format!("{table}.{name}").as_str()) {
                // A statement names it in ON CONFLICT, or relies on it.
                broken.push(format!("{table}: {name} is now {}", now.map_or("removed", |now| now.definition.as_str())));
            }
        }
        for ((table, name), rule) in next.rules.iter().filter(|(key, _)| !self.rules.contains_key(*key)) {
            let knows = |column: &String| self.columns.contains_key(&(table.clone(), column.clone()));
            if tables.contains(table.as_str()) && rule.columns.iter().all(knows) {
                broken.push(format!("{table}: {name} is new: {}", rule.definition));
            }
        }
        for ((table, name), trigger) in &self.triggers {
            if next.triggers.get(&(table.clone(), name.clone())) != Some(trigger) {
                broken.push(format!("{table}: trigger {name} was removed or replaced"));
            }
        }
        broken
    }
}

async fn read_rules(pool: &PgPool, sql: &'static str) -> BTreeMap<(String, String), Rule> {
    let rules: Vec<Rule> = sqlx::query_as(sql).fetch_all(pool).await.expect("reads the catalog");
    rules.into_iter().map(|rule| ((rule.table.clone(), rule.name.clone()), rule)).collect()
}

/// Splits a definition into names and what is between them.
fn words(definition: &str) -> impl Iterator<Item = &str> {
    definition.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').flat_map(|part| {
        let end = part.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_').len();
        <[&str; 2]>::from(part.split_at(end))
    })
}

/// The indexes of a migration that fail where an operator created them beforehand: those on tables that existed before it,
/// without IF NOT EXISTS.
fn unprepared(sql: &str) -> Vec<&str> {
    let words: Vec<&str> = sql
        .lines()
        .filter_map(|line| line.split("--").next())
        .flat_map(|line| line.split([' ', '(', ';']))
        .filter(|word| !word.is_empty())
        .collect();
    let mut made = BTreeSet::new();
    let mut unprepared = Vec::new();
    for at in 0..words.len() {
        let (is_table, rest) = match &words[at..] {
            ["CREATE", "TABLE", rest @ ..] => (true, rest),
            ["CREATE", "INDEX", rest @ ..] | ["CREATE", "UNIQUE", "INDEX", rest @ ..] => (false, rest),
            _ => continue,
        };
        match rest {
            ["IF", "NOT", "EXISTS", name, ..] | [name, ..] if is_table => _ = made.insert(*name),
            [name, "ON", table, ..] if !made.contains(table) => unprepared.push(*name),
            _ => {}
        }
    }
    unprepared
}

#[test]
fn an_index_on_a_table_that_was_there_may_be_made_beforehand() {
    for migration in sqlx::migrate!().iter().filter(|migration| migration.version >= PREPARABLE) {
        assert_eq!(unprepared(migration.sql.as_str()), [""; 0], "{}", migration.version);
    }
    for (sql, found) in [
        ("CREATE INDEX a ON t (x);", &["a"][..]),
        ("CREATE UNIQUE INDEX a\n    ON t(x) WHERE y;\nCREATE INDEX b ON u (x);", &["a", "b"]),
        ("CREATE INDEX IF NOT EXISTS a ON t (x);", &[]),
        ("CREATE TABLE t (x int);\nCREATE INDEX a ON t (x);", &[]),
        ("CREATE TABLE IF NOT EXISTS t(x int); CREATE INDEX a ON t (x);", &[]),
        ("-- CREATE INDEX a ON t (x);\nDROP INDEX a;", &[]),
    ] {
        assert_eq!(unprepared(sql), found, "{sql}");
    }
}

#[tokio::test]
async fn the_release_before_works_on_the_new_schema() {
    let (released, new) = tokio::join!(TestDatabase::migrated_to(RELEASED), TestDatabase::new());
    let (released, new) = (Schema::load(released.pool()).await, Schema::load(new.pool()).await.under_old_names());
    assert!(released.columns.len() > 100 && released.rules.len() > 50 && !released.triggers.is_empty());
    assert_eq!(released.broken_by(&new), [""; 0]);
}

/// A view that selects columns and nothing else is automatically updatable: PostgreSQL turns every statement on it into one on its
/// table, with the table's rules, indexes and row locks (CREATE VIEW, "Updatable Views").
#[tokio::test]
async fn a_view_shows_each_column_of_its_renamed_table_under_the_old_name() {
    let database = TestDatabase::new().await;
    for (view, table, columns) in RENAMED {
        let of_table = "SELECT attname::text FROM pg_attribute
                        WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
        let names: Vec<String> =
            sqlx::query_scalar(of_table).bind(table).fetch_all(database.pool()).await.expect("reads the columns");
        let shown: Vec<String> = names
            .into_iter()
            .map(|name| match columns.iter().find(|(_, new)| *new == name) {
                Some((old, new)) => format!("{new} AS {old}"),
                None => name,
            })
            .collect();
        let definition: String =
            sqlx::query_scalar("SELECT regexp_replace(pg_get_viewdef($1::regclass), '\\s+', ' ', 'g')")
                .bind(view)
                .fetch_one(database.pool())
                .await
                .expect("reads the view");
        // PostgreSQL before 16 qualifies the columns.
        let definition = definition.replace(&format!("{table}."), "");
        assert_eq!(definition.trim(), format!("SELECT {} FROM {table};", shown.join(", ")));
    }
}

#[tokio::test]
async fn what_would_break_a_running_process_is_found() {
    let database = TestDatabase::new().await;
    for (change, harmless) in [
        ("ALTER TABLE accounts DROP COLUMN display_name", false),
        ("ALTER TABLE accounts RENAME COLUMN email TO address", false),
        ("ALTER TABLE accounts ALTER COLUMN credit_balance TYPE numeric", false),
        ("ALTER TABLE accounts ALTER COLUMN enabled DROP DEFAULT", false),
        ("ALTER TABLE tokens ALTER COLUMN expires_at SET NOT NULL", false),
        ("ALTER TABLE accounts ADD COLUMN zone text NOT NULL", false),
        ("ALTER TABLE accounts ADD CONSTRAINT named CHECK (uid <> '')", false),
        ("CREATE UNIQUE INDEX once ON tokens (account_uid, label)", false),
        ("ALTER TABLE canvases DROP CONSTRAINT canvases_owner_id CASCADE", false),
        ("DROP INDEX canvases_agent", false),
        ("DROP TRIGGER ledger_append_only ON ledger", false),
        ("DROP TABLE campaign_shots", false),
        ("ALTER TABLE accounts ADD COLUMN region text", true),
        ("ALTER TABLE accounts ADD COLUMN planet text NOT NULL DEFAULT '' CHECK (planet <> 'x')", true),
        ("CREATE TABLE regions (name text PRIMARY KEY, capital text NOT NULL)", true),
        ("CREATE INDEX tokens_label ON tokens (label)", true),
        ("ALTER TABLE tokens ALTER COLUMN label DROP NOT NULL", true),
    ] {
        let before = Schema::load(database.pool()).await;
        sqlx::raw_sql(change).execute(database.pool()).await.unwrap_or_else(|error| panic!("{change}: {error}"));
        let broken = before.broken_by(&Schema::load(database.pool()).await);
        assert_eq!(broken.is_empty(), harmless, "{change}: {broken:?}");
    }
}
