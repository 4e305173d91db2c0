use std::collections::BTreeSet;

use sqlx::AssertSqlSafe;
use testkit::{TestDatabase, role_url};

use super::*;

const PROCESSES: [&str; 4] = ["gateway", "image_worker", "video_worker", "webhook_dispatcher"];

/// A database of an owner who is no superuser, as in a managed server, on the server of `host`.
struct Owned<'a> {
    host: &'a TestDatabase,
    name: String,
}

impl<'a> Owned<'a> {
    async fn new(host: &'a TestDatabase) -> Self {
        let name = format!("o{}", uuid::Uuid::new_v4().simple());
        let owned = Self { host, name };
        owned.run("CREATE ROLE <> LOGIN").await;
        let password = "SELECT rolpassword FROM pg_authid WHERE rolname = current_user";
        let password: String = sqlx::query_scalar(password).fetch_one(host.pool()).await.expect("reads the password");
        owned.run(&format!("ALTER ROLE <> PASSWORD '{password}'")).await;
        owned.run("CREATE DATABASE <> OWNER <>").await;
        owned
    }

    /// Runs statements on the server as a superuser; `<>` is the name.
    async fn run(&self, sql: &str) {
        let sql = sql.replace("<>", &self.name);
        sqlx::raw_sql(AssertSqlSafe(sql.as_str()))
            .execute(self.host.pool())
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The URL of the owner.
    fn url(&self) -> String {
        let mut url: url::Url = self.host.url().parse().expect("a URL");
        url.set_username(&self.name).expect("has a user");
        url.set_path(&self.name);
        url.into()
    }

    fn pool(&self) -> PgPool {
        pool::connect_for_maintenance(&self.url(), "test", None).expect("a URL")
    }

    fn passwords(&self) -> String {
        let url: url::Url = self.url().parse().expect("a URL");
        let passwords = PROCESSES.map(|process| (process, url.password().unwrap_or_default()));
        serde_json::json!(std::collections::BTreeMap::from(passwords)).to_string()
    }

    async fn delete(self) {
        self.run("DROP DATABASE <> WITH (FORCE)").await;
        for process in PROCESSES {
            self.run(&format!("DROP ROLE IF EXISTS <>_{process}")).await;
        }
        self.run("DROP ROLE <>").await;
    }
}

async fn migrated(pool: &PgPool) {
    pool::migrate(pool, |error| panic!("{error}")).await.expect("migrates");
}

async fn run(pool: &PgPool, sql: &'static str) -> Result<()> {
    Ok(sqlx::raw_sql(sql).execute(pool).await.map(drop)?)
}

#[tokio::test]
async fn an_installation_with_one_role_gets_one_for_each_process_when_it_has_passwords_for_them() {
    let host = TestDatabase::new().await;
    let owned = Owned::new(&host).await;
    let pool = owned.pool();
    migrated(&pool).await;
    assert_eq!(grant(&pool, None).await.expect("has nothing to do"), [""; 0]);
    assert!(owns_schema(&pool).await.expect("looks"));
    run(&pool, "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com')").await.expect("inserts");

    // Without the right to make roles the migration says so, and one role works as before.
    assert!(grant(&pool, Some(&owned.passwords())).await.expect_err("may make no role").is_forbidden());
    let missing = pool::connect(&role_url(&owned.url(), "gateway"), "test", 1, None).expect("a URL");
    assert!(pool::is_migrated(&missing).await.expect_err("there is no such role").is_forbidden());

    // PostgreSQL before 16 lets the superuser's roles be changed by everybody with CREATEROLE; later ones those that one has made.
    owned.run("ALTER ROLE <> CREATEROLE").await;
    let mut names = PROCESSES.map(|process| format!("{}_{process}", owned.name));
    names.sort();
    for _ in 0..2 {
        assert_eq!(grant(&pool, Some(&owned.passwords())).await.expect("makes and grants"), names);
    }
    assert_eq!(grant(&pool, None).await.expect("grants"), names);
    let gateway = pool::connect(&role_url(&owned.url(), "gateway"), "test", 1, None).expect("a URL");
    assert!(pool::is_migrated(&gateway).await.expect("looks"));
    assert!(!owns_schema(&gateway).await.expect("looks"));
    run(&gateway, "UPDATE accounts SET email = 'us@example.com'").await.expect("updates");
    let dispatcher = pool::connect(&role_url(&owned.url(), "webhook_dispatcher"), "test", 1, None).expect("a URL");
    assert!(run(&dispatcher, "UPDATE accounts SET email = ''").await.expect_err("is refused").is_forbidden());

    for pool in [pool, missing, gateway, dispatcher] {
        pool.close().await;
    }
    owned.delete().await;
}

#[tokio::test]
async fn what_a_role_was_granted_beyond_the_list_is_taken_away_unless_the_schema_is_ahead() {
    let database = TestDatabase::new().await;
    let image_worker = pool::connect(&database.url_of("image_worker"), "test", 1, None).expect("a URL");
    let maintenance = pool::connect_for_maintenance(&database.url(), "test", None).expect("a URL");
    let beyond =
        "GRANT SELECT ON signin_links TO canvas_image_worker; GRANT UPDATE (email) ON accounts TO canvas_image_worker;
                  GRANT UPDATE ON task_floor_webhook TO canvas_image_worker";
    let uses = ["SELECT FROM signin_links", "UPDATE accounts SET email = ''", "SELECT setval('task_floor_webhook', 1)"];
    let ahead = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (9999, 'of a later version', true, '', 0)";
    run(&maintenance, ahead).await.expect("inserts");
    run(&maintenance, beyond).await.expect("grants");
    grant(&maintenance, None).await.expect("leaves them");
    for sql in uses {
        run(&image_worker, sql).await.expect("was granted");
    }
    run(&maintenance, "DELETE FROM _sqlx_migrations WHERE version = 9999").await.expect("deletes");
    grant(&maintenance, None).await.expect("grants");
    for sql in uses {
        assert!(run(&image_worker, sql).await.expect_err(sql).is_forbidden());
    }
}

#[tokio::test]
async fn a_role_is_refused_what_is_not_the_work_of_its_process() {
    let database = TestDatabase::new().await;
    let workers: &[&'static str] = &[
        "SELECT secret_hash FROM tokens",
        "SELECT scopes FROM tokens",
        "SELECT account_uid FROM account_sessions",
        "SELECT FROM signin_links",
        "SELECT FROM installation",
        "SELECT email FROM accounts",
        "INSERT INTO accounts (uid, email) VALUES ('x', 'x')",
        "UPDATE accounts SET enabled = true",
        "UPDATE accounts SET storage_max = 0",
        "DELETE FROM accounts",
        "INSERT INTO tokens (id) VALUES (gen_random_uuid())",
        "UPDATE tokens SET revoked_at = NULL",
        "UPDATE provider_connections SET base_url = ''",
        "UPDATE canvas_shares SET account_uid = 'x'",
        "INSERT INTO canvas_shares VALUES (1, 'x', 'editor')",
        "UPDATE ledger SET amount = 1",
        "UPDATE budgets SET max = 1",
        "DELETE FROM budgets",
        "SELECT FROM account_storage",
        "SELECT add_storage('x', 1)",
    ];
    let dispatcher: &[&'static str] = &[
        "SELECT FROM accounts",
        "UPDATE accounts SET credit_balance = 1",
        "SELECT FROM tokens",
        "SELECT FROM canvases",
        "SELECT FROM assets",
        "SELECT FROM provider_connections",
        "SELECT FROM ledger",
        "SELECT request FROM jobs",
        "UPDATE jobs SET status = 'succeeded'",
        "SELECT admit_storage('x', 1, false)",
    ];
    let everybody: &[&'static str] = &[
        "DROP TABLE workers",
        "CREATE TABLE mine (x int)",
        "ALTER TABLE workers ADD COLUMN x int",
        "CREATE INDEX mine ON workers (version)",
        "ALTER TABLE assets DISABLE TRIGGER USER",
        "CREATE TRIGGER mine AFTER INSERT ON workers FOR EACH ROW EXECUTE FUNCTION count_asset()",
        "CREATE TEMPORARY TABLE mine (owner_uid text, bytes bigint, original_bytes bigint);
         CREATE TRIGGER mine AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION count_asset()",
        "TRUNCATE workers",
        "CREATE ROLE mine",
        "GRANT canvas TO CURRENT_USER",
        "SET ROLE canvas",
        "COPY workers TO PROGRAM 'true'",
        "DELETE FROM _sqlx_migrations",
        "INSERT INTO webhook_attempts SELECT FROM outbox",
        "SELECT FROM pg_authid",
    ];
    for (process, refused) in
        [("gateway", &[][..]), ("image_worker", workers), ("video_worker", workers), ("webhook_dispatcher", dispatcher)]
    {
        let pool = pool::connect(&database.url_of(process), "test", 1, None).expect("a URL");
        assert!(pool::is_migrated(&pool).await.expect("looks"));
        assert!(!owns_schema(&pool).await.expect("looks"));
        for sql in refused.iter().chain(everybody) {
            let error = run(&pool, sql).await.expect_err(sql);
            assert!(error.is_forbidden(), "{process}: {sql}: {error:?}");
        }
    }
}

#[tokio::test]
async fn every_table_sequence_and_guarded_function_has_its_row() {
    let database = TestDatabase::new().await;
    let listed: BTreeSet<&str> =
        ROLES.lines().filter_map(|line| line.trim_start().strip_prefix("['")?.split([' ', '\'']).next()).collect();
    let there = "SELECT relname::text FROM pg_class
                 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
                 UNION SELECT proname::text FROM pg_proc p
                 WHERE pronamespace = 'public'::regnamespace AND prorettype <> 'trigger'::regtype
                   AND NOT has_function_privilege('public', p.oid, 'EXECUTE')";
    let there: Vec<String> = sqlx::query_scalar(there).fetch_all(database.pool()).await.expect("reads the catalog");
    assert!(there.len() > 50, "{there:?}");
    assert_eq!(there.iter().map(String::as_str).collect::<BTreeSet<_>>(), listed);

    // A trigger that writes other tables does it for whoever caused it, and no caller can direct it elsewhere.
    let loose = "SELECT proname::text FROM pg_proc
                 WHERE pronamespace = 'public'::regnamespace AND prosecdef
                   AND (proconfig IS DISTINCT FROM '{\"search_path=public, pg_temp\"}'
                        OR has_function_privilege('public', oid, 'EXECUTE'))";
    let loose: Vec<String> = sqlx::query_scalar(loose).fetch_all(database.pool()).await.expect("reads the catalog");
    assert_eq!(loose, [""; 0]);
}
