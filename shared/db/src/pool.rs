//! Connections and migrations.
//!
//! **Liveness checks.** A connection that was used a moment ago is used again without a check: a check costs a round trip, and
//! most statements take no longer than one. A connection is checked when it was idle, and every connection is checked for a
//! while after this process has seen an error of the database. A restart thus costs the statements that were running and no
//! more.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sqlx::migrate::Migrate as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, PgPool};
use tokio::time::timeout;

use crate::detach::DetachOnDrop;
use crate::{Error, Result, outage};

/// Migrations that this build does not know belong to a later version, whose schema it can use
/// (shared/db/migrations/README.md).
pub(crate) static MIGRATIONS: LazyLock<sqlx::migrate::Migrator> = LazyLock::new(|| {
    let mut migrations = sqlx::migrate!();
    migrations.set_ignore_missing(true);
    migrations
});

/// Timeouts that the server enforces. Whatever happens to a client that is stopped, disconnected or stuck, its locks and its
/// connection are released well before a lease expires.
const STATEMENT_LIMITS: [(&str, &str); 3] =
    [("idle_in_transaction_session_timeout", "5s"), ("lock_timeout", "5s"), ("statement_timeout", "30s")];
/// Every statement has an index to use. Without this setting, a plan that was made while a queue was empty reads the whole
/// table, and stays in use while the queue fills: a claim then costs as much as the whole queue instead of the rows that it takes.
/// The setting makes the few statements that count a whole small table look so expensive that the server would compile them each
/// time, half a second for an execution of a tenth of a millisecond; hence no JIT.
const PLANS: [(&str, &str); 2] = [("enable_seqscan", "off"), ("jit", "off")];
/// How soon the server notices that a client is gone, even during a statement.
const CONNECTION_LIMITS: [(&str, &str); 5] = [
    ("client_connection_check_interval", "2s"),
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "10000"),
];
/// Prepared statements that a connection keeps: more than the service has. Otherwise a mixture of requests would have the server
/// parse and plan the same statements again and again.
const STATEMENTS_KEPT: usize = 512;
/// Longest wait for a connection.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(5);
/// Longest wait for the answer of a liveness check.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// A connection that was idle for this long is checked before use.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// Longest time that a migration queues for a lock. Other readers of the table queue behind it meanwhile.
const MIGRATION_LOCK_LIMIT: &str = "2s";
/// Pause between two tries of a migration, in which everything that queued behind it is served.
const MIGRATION_PAUSE: Duration = Duration::from_secs(5);
/// Total time that a migration keeps trying. Most dumps finish within it.
const MIGRATION_PATIENCE: Duration = Duration::from_secs(600);

/// A pool of at most `connections`, opened on demand, so that a process starts without Postgres and reports it in its readiness
/// instead of exiting. `storage_max` is the operator's storage quota of accounts without one of their own, in bytes; 0: no limit;
/// `None`: that of each account's creation.
pub fn connect(url: &str, process: &str, connections: u32, storage_max: Option<i64>) -> Result<PgPool> {
    let options = connect_options(url, process, storage_max)?.options(STATEMENT_LIMITS).options(PLANS);
    Ok(pool_options(connections).connect_lazy_with(options))
}

/// Checks the form of a URL, options included, without connecting.
pub fn check_url(url: &str) -> Result<()> {
    connect_options(url, "", None).map(drop)
}

/// A pool of one connection without a statement timeout: for migrations and admin commands.
pub fn connect_for_maintenance(url: &str, process: &str, storage_max: Option<i64>) -> Result<PgPool> {
    Ok(pool_options(1).connect_lazy_with(connect_options(url, process, storage_max)?))
}

/// A second pool of `connections` to the same database as `pool`, for the bookkeeping of the task queue, which must not wait
/// behind the pool's other users and may be lost when the server itself crashes. It commits asynchronously: a commit is visible
/// at once and on disk within a second, and the answer does not wait for the disk. A claim, renewal or confirmation that was
/// lost is made again, and the fencing token rejects work based on it.
pub fn dedicated_pool(pool: &PgPool, connections: u32) -> PgPool {
    let options = pool.connect_options().as_ref().clone().options([("synchronous_commit", "off")]);
    pool_options(connections).connect_lazy_with(options)
}

/// A second pool to the same database as `pool`, for statements that one caller repeats all the time, as a batch does. A connection
/// plans each once, whatever its parameters; those of a larger pool, which take turns, would plan it several times each. There are
/// two connections, because the pool checks one at its release, and waits for it as long as the network is silent.
pub fn batch_pool(pool: &PgPool) -> PgPool {
    let options = pool.connect_options().as_ref().clone().options([("plan_cache_mode", "force_generic_plan")]);
    pool_options(2).connect_lazy_with(options)
}

fn connect_options(url: &str, process: &str, storage_max: Option<i64>) -> Result<PgConnectOptions> {
    let options = url.parse::<PgConnectOptions>()?.application_name(process).options(CONNECTION_LIMITS);
    let options = options.options(storage_max.map(|bytes| ("canvas.storage_max", bytes)));
    Ok(options.statement_cache_capacity(STATEMENTS_KEPT))
}

fn pool_options(connections: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_LIMIT)
        .idle_timeout(Duration::from_secs(600))
        .max_lifetime(Duration::from_secs(3600))
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for >= TRUSTED_FOR || outage::is_recent() {
                    answers(connection).await?;
                }
                Ok(true)
            })
        })
        // The pool checks the connection as well. It would wait forever for an unresponsive one, which would occupy its place in
        // the pool.
        .after_release(|connection, _| {
            Box::pin(async move {
                if outage::is_recent() {
                    answers(connection).await?;
                }
                Ok(true)
            })
        })
}

async fn answers(connection: &mut sqlx::PgConnection) -> Result<(), sqlx::Error> {
    timeout(ANSWER_LIMIT, connection.ping()).await.unwrap_or_else(|elapsed| Err(sqlx::Error::Io(elapsed.into())))
}

/// Migrates the schema to this build's version. A newer schema is left as it is. Safe to run from several places at once, and
/// while all processes run.
///
/// **Waits.** A long transaction (a dump) may hold a table that a migration alters. The migration queues for the table for two
/// seconds at most, gives way to everything that queues behind it, and tries again five seconds later. It also retries while
/// Postgres is unavailable. Each time it calls `on_wait` with the reason. Migrations that were applied before stay applied.
///
/// # Errors
/// The reason for the wait, after ten minutes; any other error at once.
pub async fn migrate(pool: &PgPool, on_wait: impl FnMut(&Error)) -> Result<()> {
    migrate_within(pool, MIGRATION_LOCK_LIMIT, MIGRATION_PAUSE, on_wait).await
}

async fn migrate_within(
    pool: &PgPool,
    lock_limit: &str,
    pause: Duration,
    mut on_wait: impl FnMut(&Error),
) -> Result<()> {
    let options = pool.connect_options().as_ref().clone().options([("lock_timeout", lock_limit)]);
    let began = Instant::now();
    loop {
        match migrate_once(options.clone()).await {
            Err(error) if (error.is_outage() || error.is_transient()) && began.elapsed() < MIGRATION_PATIENCE => {
                on_wait(&error);
                tokio::time::sleep(pause).await;
            }
            done => return done,
        }
    }
}

/// Runs on its own connection: a failed run leaves its advisory lock on the connection, and the server releases it when the
/// connection closes.
async fn migrate_once(options: PgConnectOptions) -> Result<()> {
    let pool = pool_options(1).connect_lazy_with(options);
    let run = MIGRATIONS.run(&pool).await;
    pool.close().await;
    Ok(run?)
}

/// The version of this build's schema: that of its newest migration.
pub fn schema_version() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Returns `true` if every migration of this build has been applied. Until then its statements cannot work, and the process waits.
pub async fn is_migrated(pool: &PgPool) -> Result<bool> {
    let applied = pool.acquire().await?.list_applied_migrations(&MIGRATIONS.table_name).await;
    let applied = match applied.map_err(Error::from) {
        Err(error) if error.is_undefined_table() => return Ok(false),
        applied => applied?,
    };
    Ok(MIGRATIONS.iter().all(|migration| applied.iter().any(|applied| applied.version == migration.version)))
}

/// Whether Postgres answers.
pub async fn ping(pool: &PgPool) -> Result<()> {
    sqlx::query!("SELECT 1 AS one").fetch_one(pool).await?;
    Ok(())
}

/// A pooled connection, returned to the pool on drop.
pub type Connection = sqlx::pool::PoolConnection<sqlx::Postgres>;

/// A transaction, rolled back on drop unless committed.
pub type Transaction = sqlx::Transaction<'static, sqlx::Postgres>;

/// Takes a connection from the pool. Waits at most five seconds for one.
pub async fn acquire(pool: &PgPool) -> Result<Connection> {
    Ok(pool.acquire().await?)
}

/// Begins a transaction. A caller that is dropped before it has begun leaves no open transaction on the connection.
pub async fn begin(pool: &PgPool) -> Result<Transaction> {
    let pool = pool.clone();
    Ok(DetachOnDrop::new(async move { pool.begin().await }).await?)
}

/// [`begin`] for a transaction that waits for a lock no longer than a moment, because what waits for it is many.
pub async fn begin_briefly(pool: &PgPool) -> Result<Transaction> {
    let pool = pool.clone();
    let beginning = async move { pool.begin_with("BEGIN; SET LOCAL lock_timeout = '200ms'").await };
    Ok(DetachOnDrop::new(beginning).await?)
}

pub async fn commit(transaction: sqlx::Transaction<'_, sqlx::Postgres>) -> Result<()> {
    Ok(transaction.commit().await?)
}

const SNAPSHOT: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Begins a read-only transaction in which every statement sees the same snapshot.
pub async fn snapshot(pool: &PgPool) -> Result<Transaction> {
    let pool = pool.clone();
    let beginning = async move { pool.begin_with(SNAPSHOT).await };
    Ok(DetachOnDrop::new(beginning).await?)
}

/// Begins a transaction on a connection that the caller holds until the transaction ends: for work that is not canceled midway.
pub async fn begin_on(connection: &mut sqlx::PgConnection) -> Result<sqlx::Transaction<'_, sqlx::Postgres>> {
    Ok(connection.begin().await?)
}

/// [`snapshot`] on a connection that the caller holds.
pub async fn snapshot_on(connection: &mut sqlx::PgConnection) -> Result<sqlx::Transaction<'_, sqlx::Postgres>> {
    Ok(connection.begin_with(SNAPSHOT).await?)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::Poll;

    use testkit::{Proxy, TestDatabase};
    use tokio::sync::mpsc;

    use super::*;
    use crate::deadline;

    /// The error of a statement.
    async fn failure(connection: &mut sqlx::PgConnection, sql: &'static str) -> Error {
        sqlx::query(sql).execute(connection).await.expect_err("is ended").into()
    }

    #[tokio::test]
    async fn a_connection_keeps_every_statement_of_the_service() {
        let statements = std::fs::read_dir("../../.sqlx").expect("has the statements").count();
        assert!(statements > 100 && statements < STATEMENTS_KEPT, "{statements}");
        let database = TestDatabase::new().await;
        let pool = connect(&database.url(), "test", 1, None).expect("a URL");
        let mut connection = pool.acquire().await.expect("connects");
        for number in 0..statements {
            let statement = sqlx::AssertSqlSafe(format!("SELECT {number}"));
            sqlx::query(statement).execute(&mut *connection).await.expect("runs");
        }
        let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_prepared_statements")
            .fetch_one(&mut *connection)
            .await
            .expect("counts");
        assert!(kept >= statements as i64, "{kept} of {statements}");
    }

    #[tokio::test]
    async fn a_connection_of_batches_plans_a_statement_once_for_all_values() {
        let database = TestDatabase::new().await;
        let mut connection = batch_pool(database.pool()).acquire().await.expect("connects");
        for number in 0_i64..3 {
            let repeated = sqlx::query_scalar("SELECT $1::bigint").bind(number);
            assert_eq!(repeated.fetch_one(&mut *connection).await.ok(), Some(number));
        }
        let plans: (i64, i64) = sqlx::query_as(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = 'SELECT $1::bigint'",
        )
        .fetch_one(&mut *connection)
        .await
        .expect("counts");
        assert_eq!(plans, (3, 0));
    }

    #[tokio::test]
    async fn a_schema_that_is_ahead_of_this_build_is_left_as_it_is() {
        let database = TestDatabase::new().await;
        let ahead = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                     VALUES (9999, 'of a later version', true, '', 0)";
        sqlx::raw_sql(ahead).execute(database.pool()).await.expect("inserts");
        migrate(database.pool(), |error| panic!("{error}")).await.expect("has nothing to do");
        assert!(is_migrated(database.pool()).await.expect("looks"));
    }

    /// Migrates, with a short pause between tries, and sends a message whenever it has to wait.
    async fn migrate_often(pool: &PgPool, waits: mpsc::UnboundedSender<()>) -> Result<()> {
        let on_wait = move |_: &Error| waits.send(()).expect("is heard");
        migrate_within(pool, "100ms", Duration::from_millis(10), on_wait).await
    }

    #[tokio::test]
    async fn a_migration_gives_way_to_readers_while_a_dump_holds_what_it_alters() {
        let database = TestDatabase::new().await;
        // This migration alters `renditions`, and can be applied again.
        sqlx::query("DELETE FROM _sqlx_migrations WHERE version = 21").execute(database.pool()).await.expect("forgets");
        let mut dump = begin(database.pool()).await.expect("begins");
        sqlx::query("LOCK TABLE renditions IN ACCESS SHARE MODE").execute(&mut *dump).await.expect("locks");
        let (waits, mut waited) = mpsc::unbounded_channel();
        let maintenance = connect_for_maintenance(&database.url(), "test", None).expect("a URL");
        let migrating = tokio::spawn(async move { migrate_often(&maintenance, waits).await });
        let readers = connect(&database.url(), "test", 1, None).expect("a URL");
        for _ in 0..3 {
            waited.recv().await.expect("waits for the dump");
            sqlx::query("SELECT FROM renditions").execute(&readers).await.expect("reads");
        }
        assert!(!is_migrated(database.pool()).await.expect("looks"));
        dump.rollback().await.expect("ends");
        // It may have waited more than once.
        migrating.await.expect("no panic").expect("migrates");
        assert!(is_migrated(database.pool()).await.expect("looks"));
    }

    #[tokio::test]
    async fn a_migration_waits_for_another_one() {
        let database = TestDatabase::new().await;
        sqlx::query("DELETE FROM _sqlx_migrations WHERE version = 21").execute(database.pool()).await.expect("forgets");
        let mut other = sqlx::PgConnection::connect(&database.url()).await.expect("connects");
        other.lock().await.expect("locks");
        let (waits, mut waited) = mpsc::unbounded_channel();
        let pool = database.pool().clone();
        let migrating = tokio::spawn(async move { migrate_often(&pool, waits).await });
        waited.recv().await.expect("waits for the other");
        other.unlock().await.expect("unlocks");
        migrating.await.expect("no panic").expect("migrates");
        assert!(is_migrated(database.pool()).await.expect("looks"));
    }

    #[tokio::test]
    async fn a_migration_waits_for_a_database_that_is_not_there_yet_and_for_no_other_failure() {
        let database = TestDatabase::new().await;
        sqlx::query("DELETE FROM _sqlx_migrations WHERE version = 21").execute(database.pool()).await.expect("forgets");
        let proxy = Proxy::in_front_of(&database.url()).await;
        proxy.cut();
        let (waits, mut waited) = mpsc::unbounded_channel();
        let pool = connect_for_maintenance(&proxy.url(), "test", None).expect("a URL");
        let migrating = tokio::spawn(async move { migrate_often(&pool, waits).await });
        waited.recv().await.expect("waits for it");
        proxy.resume();
        migrating.await.expect("no panic").expect("migrates");
        assert!(is_migrated(database.pool()).await.expect("looks"));

        sqlx::query("UPDATE _sqlx_migrations SET checksum = '' WHERE version = 21")
            .execute(database.pool())
            .await
            .expect("overwrites the checksum");
        migrate(database.pool(), |error| panic!("{error}")).await.expect_err("is another migration");
    }

    #[tokio::test]
    async fn a_client_that_stops_in_a_transaction_loses_its_locks_in_time() {
        let database = TestDatabase::new().await;
        let pool = connect(&database.url(), "test", 2, None).expect("a URL");
        let mut stopped = begin(&pool).await.expect("begins");
        sqlx::query("LOCK TABLE accounts").execute(&mut *stopped).await.expect("locks");
        let mut other =
            connect_for_maintenance(&database.url(), "test", None).expect("a URL").acquire().await.expect("connects");
        // The test sets no timeout: the statement waits until the server has ended the other transaction.
        timeout(Duration::from_secs(9), sqlx::query("SELECT FROM accounts").execute(&mut *other))
            .await
            .expect("in time")
            .expect("reads");
        assert!(failure(&mut stopped, "SELECT FROM accounts").await.is_outage());
    }

    #[tokio::test]
    async fn who_goes_away_while_a_transaction_begins_leaves_none_behind() {
        let database = TestDatabase::new().await;
        let pool = connect(&database.url(), "test", 1, None).expect("a URL");
        let snapshots = [false, true];
        for (polls, is_snapshot) in (1..6).flat_map(|polls| snapshots.map(|is_snapshot| (polls, is_snapshot))) {
            let mut begun: Pin<Box<dyn Future<Output = Result<Transaction>>>> =
                if is_snapshot { Box::pin(snapshot(&pool)) } else { Box::pin(begin(&pool)) };
            for _ in 0..polls {
                if std::future::poll_fn(|cx| Poll::Ready(begun.as_mut().poll(cx).is_ready())).await {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            drop(begun);
            // The pool's only connection. Outside of a transaction there are no savepoints.
            let savepoint = sqlx::query("SAVEPOINT within").execute(&pool).await;
            assert!(savepoint.is_err(), "dropped after {polls} polls, the next caller is within a transaction");
        }
    }

    #[tokio::test]
    async fn a_schema_is_current_once_every_migration_is_applied() {
        let database = TestDatabase::new().await;
        assert!(is_migrated(database.pool()).await.expect("looks"));
        let run = |sql: &'static str| sqlx::query(sql).execute(database.pool());
        run("DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
            .await
            .expect("forgets the last one");
        assert!(!is_migrated(database.pool()).await.expect("looks"));
        run("DROP TABLE _sqlx_migrations").await.expect("drops");
        assert!(!is_migrated(database.pool()).await.expect("looks"));
    }

    #[tokio::test]
    async fn nothing_is_compiled_whatever_the_server_has_set() {
        let database = TestDatabase::new().await;
        let pool = connect(&database.url(), "test", 1, None).expect("a URL");
        for pool in [&pool, &dedicated_pool(&pool, 1)] {
            let plan: Vec<String> = sqlx::query_scalar("EXPLAIN (ANALYZE) SELECT count(kind) FROM task_queue")
                .fetch_all(pool)
                .await
                .expect("explains");
            assert!(!plan.iter().any(|line| line.contains("JIT")), "{plan:#?}");
        }
    }

    #[tokio::test]
    async fn what_took_too_long_is_an_outage_and_not_a_defect() {
        let database = TestDatabase::new().await;
        let pool = connect(&database.url(), "test", 2, None).expect("a URL");
        let (mut holder, mut waiter) = (begin(&pool).await.expect("begins"), begin(&pool).await.expect("begins"));
        sqlx::query("LOCK TABLE accounts").execute(&mut *holder).await.expect("locks");
        sqlx::query("SET LOCAL lock_timeout = 1").execute(&mut *waiter).await.expect("sets");
        assert!(failure(&mut waiter, "SELECT FROM accounts").await.is_outage());
        let mut slow = begin(&connect(&database.url(), "test", 1, None).expect("a URL")).await.expect("begins");
        sqlx::query("SET LOCAL statement_timeout = 1").execute(&mut *slow).await.expect("sets");
        assert!(failure(&mut slow, "SELECT pg_sleep(5)").await.is_outage());
    }

    #[tokio::test]
    async fn a_silent_server_costs_neither_the_caller_nor_the_pool_more_than_their_limits() {
        let database = TestDatabase::new().await;
        let proxy = Proxy::in_front_of(&database.url()).await;
        let pool = connect(&proxy.url(), "test", 1, None).expect("a URL");
        ping(&pool).await.expect("answers");
        proxy.pause();
        let started = tokio::time::Instant::now();
        assert!(matches!(
            deadline::with_deadline(ping(&pool)).await,
            Err(Error::Timeout | Error::Sql(sqlx::Error::PoolTimedOut))
        ));
        assert!(started.elapsed() < deadline::SHORT + ANSWER_LIMIT, "{:?}", started.elapsed());
        proxy.reset();
        proxy.resume();
        // The pool's only place is free again.
        ping(&pool).await.expect("answers");
    }

    #[tokio::test]
    async fn a_server_that_hangs_up_on_every_greeting_is_away() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        // Whichever the driver tries first.
        for ssl in ["prefer", "disable"] {
            let url = format!("postgres://canvas@127.0.0.1:{port}/canvas?sslmode={ssl}");
            let error = ping(&connect(&url, "test", 1, None).expect("a URL")).await.expect_err("is unavailable");
            assert!(error.is_outage(), "{error:?}");
        }
    }

    #[tokio::test]
    async fn after_an_outage_the_connections_that_were_lost_are_found_before_they_are_used() {
        let database = TestDatabase::new().await;
        let pool = connect(&database.url(), "lost", 3, None).expect("a URL");
        let (mut one, two, three) = tokio::join!(pool.acquire(), pool.acquire(), pool.acquire());
        let _ = (two.expect("connects"), three.expect("connects"));
        // The server terminates all of them, as at a restart, and the first statement to notice reports it.
        let mut admin =
            connect_for_maintenance(&database.url(), "admin", None).expect("a URL").acquire().await.expect("connects");
        sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lost'")
            .execute(&mut *admin)
            .await
            .expect("ends them");
        let one = one.as_mut().expect("connects");
        assert!(failure(one, "SELECT 1").await.is_outage());
        for _ in 0..3 {
            ping(&pool).await.expect("is checked first, and replaced");
        }
    }
}
