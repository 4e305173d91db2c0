//! A database for each test, cloned from a migrated template.
//!
//! The template is created once for each set of migrations by the first test process, while an
//! advisory lock makes the others wait. Its name contains a hash of the migrations, so a changed
//! migration creates another template. A clone takes tens of milliseconds; running the migrations
//! takes ten times as long. Each test drops its own database. Databases of killed processes are
//! dropped by the first test that starts more than an hour later.

use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use url::Url;

use crate::environment::{unique, variable};

/// Advisory lock that serializes the creation of templates among all test processes ("canvas" in
/// ASCII).
const TEMPLATE_LOCK: i64 = 0x63_61_6e_76_61_73;
/// Advisory lock for dropping leftover databases. A process that does not get it skips the cleanup.
const SWEEP_LOCK: i64 = TEMPLATE_LOCK + 1;

/// Enough for a test with a dozen concurrent workers. Connections are opened on demand.
const POOL_CONNECTIONS: u32 = 16;

/// The maximum time that dropping a database may delay the end of a test.
const DROP_LIMIT: Duration = Duration::from_secs(10);

/// An empty, migrated database that is used by one test only. It is dropped with this value. If the
/// test panics, the database is kept for one hour for inspection.
pub struct TestDatabase {
    name: String,
    server: Url,
    pool: PgPool,
}

impl TestDatabase {
    /// Creates a database on the server that `TEST_DATABASE_URL` names.
    pub async fn new() -> Self {
        let url = variable("TEST_DATABASE_URL");
        let server: Url = url.parse().unwrap_or_else(|error| panic!("TEST_DATABASE_URL is not a URL: {error}"));
        let mut admin = connect(&server).await;
        let template = ensure_template(&server, &mut admin).await;
        sweep(&mut admin, &template).await;
        let name = format!("canvas_test_{}", unique());
        // Takes half the time of the default strategy, which also writes every page to the WAL.
        execute(&mut admin, &format!(r#"CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy"#)).await;
        close(admin).await;
        let pool = PgPoolOptions::new()
            .max_connections(POOL_CONNECTIONS)
            .connect_lazy(with_database(&server, &name).as_str())
            .unwrap_or_else(|error| panic!("TEST_DATABASE_URL is not a database URL: {error}"));
        Self { name, server, pool }
    }

    /// Creates a database with an earlier schema: migrations up to and including `version`.
    pub async fn migrated_to(version: i64) -> Self {
        let server: Url = variable("TEST_DATABASE_URL").parse().expect("TEST_DATABASE_URL is a URL");
        let mut admin = connect(&server).await;
        let name = format!("canvas_test_{}", unique());
        execute(&mut admin, &format!(r#"CREATE DATABASE "{name}""#)).await;
        close(admin).await;
        let url = with_database(&server, &name);
        let mut empty = connect(&url).await;
        for migration in migrator().await.iter().filter(|migration| migration.version <= version) {
            sqlx::raw_sql(migration.sql.clone()).execute(&mut empty).await.expect("migrates");
        }
        close(empty).await;
        let pool = PgPoolOptions::new().max_connections(POOL_CONNECTIONS).connect_lazy(url.as_str());
        Self { name, server, pool: pool.expect("TEST_DATABASE_URL is a database URL") }
    }

    /// A connection pool for the database.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The URL of the database, for other processes and separate pools.
    pub fn url(&self) -> String {
        with_database(&self.server, &self.name).into()
    }

    /// The URL for the role of a process, such as `image_worker`, which has the privileges of that process and no others.
    pub fn url_of(&self, process: &str) -> String {
        role_url(&self.url(), process)
    }
}

/// The URL of a database with the role of a process, such as `image_worker`, in place of the owner of the schema. Their passwords are
/// equal in tests.
pub fn role_url(owner: &str, process: &str) -> String {
    let mut url: Url = owner.parse().expect("a URL");
    let role = format!("{}_{process}", url.username());
    url.set_username(&role).expect("a URL with a user");
    url.into()
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the test's database is kept for one hour: {}", self.name);
            return;
        }
        let (server, name) = (self.server.clone(), std::mem::take(&mut self.name));
        // The drop runs on its own thread and runtime, because the test's runtime may be shutting
        // down. The thread is joined, because the process may be exiting too.
        let drop = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let drop = async {
                    let mut admin = PgConnection::connect(server.as_str()).await?;
                    let sql = format!(r#"DROP DATABASE IF EXISTS "{name}" WITH (FORCE)"#);
                    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await?;
                    admin.close().await
                };
                match tokio::time::timeout(DROP_LIMIT, drop).await {
                    Ok(result) => result.map_err(std::io::Error::other),
                    Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
                }
            })
        });
        // Best effort: a test may have stopped Postgres, and leftovers are cleaned up later.
        let _ = drop.join();
    }
}

/// The migrations, read at run time, so that a build never contains outdated ones.
async fn migrator() -> Migrator {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../db/migrations"));
    Migrator::new(path).await.unwrap_or_else(|error| panic!("cannot read the migrations: {error}"))
}

/// The privileges of the roles, read at run time like the migrations.
fn roles() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../db/roles.sql");
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}

/// Makes the roles of the processes, with the privileges of the list. Their password is that of the owner: the hash of a password does
/// not depend on the role.
async fn make_roles(template: &mut PgConnection) {
    let set = "SELECT set_config('canvas.role_passwords', json_object_agg(process, rolpassword)::text, false)
               FROM pg_authid, unnest('{gateway,image_worker,video_worker,webhook_dispatcher}'::text[]) process
               WHERE rolname = current_user";
    sqlx::query(set).execute(&mut *template).await.expect("reads the password");
    execute(template, &roles()).await;
}

/// Creates the template for the current migrations and roles if it does not exist, and returns its name.
async fn ensure_template(server: &Url, admin: &mut PgConnection) -> String {
    let migrator = migrator().await;
    let mut hash = Sha256::new();
    hash.update(roles());
    for migration in migrator.iter() {
        hash.update(migration.version.to_be_bytes());
        hash.update(&migration.checksum);
    }
    let digits: String = hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    let template = format!("canvas_template_{digits}");
    if is_complete(admin, &template).await {
        return template;
    }

    sqlx::query("SELECT pg_advisory_lock($1)").bind(TEMPLATE_LOCK).execute(&mut *admin).await.expect("advisory lock");
    if !is_complete(admin, &template).await {
        execute(admin, &format!(r#"DROP DATABASE IF EXISTS "{template}" WITH (FORCE)"#)).await;
        execute(admin, &format!(r#"CREATE DATABASE "{template}""#)).await;
        let mut empty = connect(&with_database(server, &template)).await;
        migrator.run(&mut empty).await.unwrap_or_else(|error| panic!("migration failed: {error}"));
        make_roles(&mut empty).await;
        close(empty).await;
        // Marks the template as complete. A database that accepts no connections can always be
        // cloned.
        execute(admin, &format!(r#"ALTER DATABASE "{template}" IS_TEMPLATE true ALLOW_CONNECTIONS false"#)).await;
    }
    sqlx::query("SELECT pg_advisory_unlock($1)")
        .bind(TEMPLATE_LOCK)
        .execute(&mut *admin)
        .await
        .expect("advisory unlock");
    template
}

async fn is_complete(admin: &mut PgConnection, template: &str) -> bool {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)")
        .bind(template)
        .fetch_one(admin)
        .await
        .expect("reads pg_database")
}

/// Drops test databases of killed processes after one hour, and templates of other migrations after
/// one day. The age of a database is that of the oldest file in its directory.
async fn sweep(admin: &mut PgConnection, template: &str) {
    let leftovers: Vec<(String, bool)> = sqlx::query_as(
        r"SELECT datname::text, datistemplate FROM pg_database
          WHERE (datname LIKE 'canvas\_test\_%' OR datname LIKE 'canvas\_template\_%' AND datname <> $1)
            AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE datid = pg_database.oid)
            AND (pg_stat_file('base/' || oid || '/PG_VERSION', true)).modification
                < now() - CASE WHEN datistemplate THEN interval '1 day' ELSE interval '1 hour' END
            AND pg_try_advisory_lock($2)",
    )
    .bind(template)
    .bind(SWEEP_LOCK)
    .fetch_all(&mut *admin)
    .await
    .expect("lists leftover databases");
    for (name, is_template) in leftovers {
        if is_template {
            execute(admin, &format!(r#"ALTER DATABASE "{name}" IS_TEMPLATE false"#)).await;
        }
        execute(admin, &format!(r#"DROP DATABASE IF EXISTS "{name}""#)).await;
    }
}

async fn connect(url: &Url) -> PgConnection {
    PgConnection::connect(url.as_str()).await.unwrap_or_else(|error| {
        panic!("no connection to the test database server (is it up? tests/run --services-only): {error}")
    })
}

async fn close(connection: PgConnection) {
    connection.close().await.expect("closes a connection");
}

async fn execute(admin: &mut PgConnection, sql: &str) {
    if let Err(error) = sqlx::raw_sql(AssertSqlSafe(sql)).execute(admin).await {
        panic!("{sql}: {error}");
    }
}

fn with_database(server: &Url, name: &str) -> Url {
    let mut url = server.clone();
    url.set_path(name);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn accounts(database: &TestDatabase) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM accounts").fetch_one(database.pool()).await.expect("counts")
    }

    async fn exists(name: &str) -> bool {
        let server: Url = variable("TEST_DATABASE_URL").parse().expect("a URL");
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
            .bind(name)
            .fetch_one(&mut connect(&server).await)
            .await
            .expect("reads pg_database")
    }

    #[tokio::test]
    async fn each_test_has_an_empty_migrated_database_of_its_own() {
        let (mine, yours) = tokio::join!(TestDatabase::new(), TestDatabase::new());
        sqlx::query("INSERT INTO accounts (uid, email) VALUES ('a', 'a@example.com')")
            .execute(mine.pool())
            .await
            .expect("inserts");
        assert_eq!((accounts(&mine).await, accounts(&yours).await), (1, 0));
    }

    #[tokio::test]
    async fn a_database_goes_with_its_test_even_with_open_connections() {
        let database = TestDatabase::new().await;
        let name = database.name.clone();
        let _held = database.pool().acquire().await.expect("connects");
        assert!(exists(&name).await);
        drop(database);
        assert!(!exists(&name).await);
    }

    #[tokio::test]
    async fn its_url_leads_to_it() {
        let database = TestDatabase::new().await;
        let mut connection = PgConnection::connect(&database.url()).await.expect("connects");
        let name: String =
            sqlx::query_scalar("SELECT current_database()").fetch_one(&mut connection).await.expect("answers");
        assert_eq!(name, database.name);
    }
}
