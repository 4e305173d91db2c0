//! Connections and migrations.
//!
//! **Trust.** A connection that was used a moment ago is used again without asking whether it still answers: a question is
//! a round trip, and most statements take no longer than one. Asked is who lay idle, and everybody for a while after this
//! process has seen any trouble with the database, so that a restart costs the statements that were under way and no more.

use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sqlx::migrate::Migrate as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, PgPool};
use tokio::time::timeout;

use crate::{Error, Result};

/// Migrations that this build does not know are of a later version, on whose schema it works (migrations/README.md).
static MIGRATIONS: LazyLock<sqlx::migrate::Migrator> = LazyLock::new(|| {
    let mut migrations = sqlx::migrate!();
    migrations.set_ignore_missing(true);
    migrations
});

/// What the server ends by itself: whatever a client does that is stopped, cut off or stuck, its locks and its connection are
/// free again well before a lease runs out.
const STATEMENT_LIMITS: [(&str, &str); 3] =
    [("idle_in_transaction_session_timeout", "5s"), ("lock_timeout", "5s"), ("statement_timeout", "30s")];
/// Every statement has an index to go by. Without this a plan that was made while a queue stood empty reads the whole table, and is
/// kept while the queue fills: a claim then costs what waits instead of what it takes. The few that count a whole small table are
/// thought to cost the earth by this, so that the server would compile them each time, for half a second, to run for a tenth of a
/// millisecond.
const PLANS: [(&str, &str); 2] = [("enable_seqscan", "off"), ("jit", "off")];
/// How soon the server notices that a client is gone, in the midst of a statement too.
const CONNECTION_LIMITS: [(&str, &str); 5] = [
    ("client_connection_check_interval", "2s"),
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "10000"),
];
/// How long to wait for a connection.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(5);
/// How long a connection may take to say that it still answers.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// After lying idle for so long a connection is asked before it is used.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// For so long after trouble every connection is asked.
const DISTRUST: Duration = Duration::from_secs(30);
/// How long a migration may queue for a lock: whoever reads the table queues behind it meanwhile.
const MIGRATION_LOCK_LIMIT: &str = "2s";
/// Between two tries of a migration: what had queued behind it is served by then.
const MIGRATION_PAUSE: Duration = Duration::from_secs(5);
/// For so long a migration waits: a database is made in less, and most dumps are.
const MIGRATION_PATIENCE: Duration = Duration::from_secs(600);
/// How long a short statement may take, connecting included; see [`limited`].
const SHORT_LIMIT: Duration = Duration::from_secs(5);

/// A pool of at most `connections`, opened on demand, so that a process starts without Postgres and says so in its
/// readiness instead of dying.
pub fn connect(url: &str, process: &str, connections: u32) -> Result<PgPool> {
    let options = connect_options(url, process)?.options(STATEMENT_LIMITS).options(PLANS);
    Ok(pool_options(connections).connect_lazy_with(options))
}

/// A pool of one connection whose statements may take their time: for migrations and for people at work.
pub fn connect_for_maintenance(url: &str, process: &str) -> Result<PgPool> {
    Ok(pool_options(1).connect_lazy_with(connect_options(url, process)?))
}

/// A pool of `connections` to the same database beside `pool`, for the spine's own bookkeeping: what must not wait behind
/// the pool's other users, and what may be forgotten when the server itself crashes. A commit is seen by everybody at once and
/// on disk within a second; the answer does not wait for that. A claim, a renewal or a confirmation that was forgotten is
/// made again, and the fencing token refuses who still builds on it.
pub fn beside(pool: &PgPool, connections: u32) -> PgPool {
    let options = pool.connect_options().as_ref().clone().options([("synchronous_commit", "off")]);
    pool_options(connections).connect_lazy_with(options)
}

fn connect_options(url: &str, process: &str) -> Result<PgConnectOptions> {
    Ok(url.parse::<PgConnectOptions>()?.application_name(process).options(CONNECTION_LIMITS))
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
                if meta.idle_for >= TRUSTED_FOR || is_distrusted() {
                    answers(connection).await?;
                }
                Ok(true)
            })
        })
        // The pool asks, too, and would wait for ever for one whose other end is silent, and with it for a place.
        .after_release(|connection, _| {
            Box::pin(async move {
                if is_distrusted() {
                    answers(connection).await?;
                }
                Ok(true)
            })
        })
}

async fn answers(connection: &mut sqlx::PgConnection) -> Result<(), sqlx::Error> {
    timeout(ANSWER_LIMIT, connection.ping()).await.unwrap_or_else(|elapsed| Err(sqlx::Error::Io(elapsed.into())))
}

/// When this process last saw trouble with a database, in milliseconds since [`BEGINNING`]; 0: never. One for all pools: they
/// lead to the same server, and a needless question costs a round trip.
static TROUBLE: AtomicU64 = AtomicU64::new(0);
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Trusts no connection for a while.
pub(crate) fn note_trouble() {
    TROUBLE.store(milliseconds().max(1), Ordering::Relaxed);
}

fn is_distrusted() -> bool {
    match TROUBLE.load(Ordering::Relaxed) {
        0 => false,
        at => u128::from(milliseconds().saturating_sub(at)) < DISTRUST.as_millis(),
    }
}

fn milliseconds() -> u64 {
    u64::try_from(BEGINNING.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Bounds a short statement, the wait for a connection included, where the server cannot: when it is the one that is silent.
///
/// # Errors
/// [`Error::Timeout`]; the statement may have taken place.
pub async fn limited<T>(statement: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(SHORT_LIMIT, statement).await.unwrap_or_else(|_| {
        note_trouble();
        Err(Error::Timeout)
    })
}

/// Brings the schema to this build's version; one that is ahead of it stays as it is. Safe to run from several places at once, and
/// while everything runs.
///
/// **Waits.** A table that it alters may be in the hands of a transaction that takes its time (a dump). It queues for the table for two
/// seconds at most, gives way to whoever queues behind it, and tries again five seconds later; so it does while Postgres is away. Each
/// time `on_wait` is told why. What was applied before stays applied.
///
/// # Errors
/// What it waited for, after ten minutes; anything else at once.
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

/// On a connection of its own: a run that fails leaves its advisory lock to it, and the server frees that when it goes.
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

/// Whether every migration of this build has been applied. Until then no statement of it can work, and a process waits.
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

/// A connection out of a pool; returned on drop.
pub type Connection = sqlx::pool::PoolConnection<sqlx::Postgres>;

/// A transaction; rolled back on drop unless committed.
pub type Transaction = sqlx::Transaction<'static, sqlx::Postgres>;

/// Takes a connection, waiting at most five seconds for one.
pub async fn acquire(pool: &PgPool) -> Result<Connection> {
    Ok(pool.acquire().await?)
}

/// Begins a transaction. Whoever goes away before it has begun leaves nothing begun behind.
pub async fn begin(pool: &PgPool) -> Result<Transaction> {
    let pool = pool.clone();
    Ok(ToItsEnd::of(async move { pool.begin().await }).await?)
}

/// Commits a transaction.
pub async fn commit(transaction: sqlx::Transaction<'_, sqlx::Postgres>) -> Result<()> {
    Ok(transaction.commit().await?)
}

/// Begins a read-only transaction in which every statement sees the same state.
pub async fn snapshot(pool: &PgPool) -> Result<Transaction> {
    let pool = pool.clone();
    let beginning = async move { pool.begin_with("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY").await };
    Ok(ToItsEnd::of(beginning).await?)
}

/// A future that is gone on with by a task of its own when nobody waits for it any more.
///
/// **Reason.** sqlx forgets a `BEGIN` whose caller goes away before the answer: the connection returns to the pool within a
/// transaction, and what the next caller writes on it is rolled back some seconds after it was told to be done. A client that
/// hangs up is enough.
struct ToItsEnd<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> ToItsEnd<F> {
    fn of(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for ToItsEnd<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = future.as_mut().poll(cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for ToItsEnd<F> {
    fn drop(&mut self) {
        if let (Some(future), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(future);
        }
    }
}

/// Begins a transaction on a connection that the caller holds, and lets go of only afterwards: for work that nobody cuts short.
pub async fn begin_on(connection: &mut sqlx::PgConnection) -> Result<sqlx::Transaction<'_, sqlx::Postgres>> {
    Ok(connection.begin().await?)
}

#[cfg(test)]
mod tests {
    use testkit::{Proxy, TestDatabase};
    use tokio::sync::mpsc;

    use super::*;

    /// The failure of a statement.
    async fn failure(connection: &mut sqlx::PgConnection, sql: &'static str) -> Error {
        sqlx::query(sql).execute(connection).await.expect_err("is ended").into()
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

    /// Migrates soon again after it had to wait; whenever it had to, that is sent.
    async fn migrate_often(pool: &PgPool, waits: mpsc::UnboundedSender<()>) -> Result<()> {
        let on_wait = move |_: &Error| waits.send(()).expect("is heard");
        migrate_within(pool, "100ms", Duration::from_millis(10), on_wait).await
    }

    #[tokio::test]
    async fn a_migration_gives_way_to_readers_while_a_dump_holds_what_it_alters() {
        let database = TestDatabase::new().await;
        // It alters `renditions`, and may be applied again.
        sqlx::query("DELETE FROM _sqlx_migrations WHERE version = 21").execute(database.pool()).await.expect("forgets");
        let mut dump = begin(database.pool()).await.expect("begins");
        sqlx::query("LOCK TABLE renditions IN ACCESS SHARE MODE").execute(&mut *dump).await.expect("locks");
        let (waits, mut waited) = mpsc::unbounded_channel();
        let maintenance = connect_for_maintenance(&database.url(), "test").expect("a URL");
        let migrating = tokio::spawn(async move { migrate_often(&maintenance, waits).await });
        let readers = connect(&database.url(), "test", 1).expect("a URL");
        for _ in 0..3 {
            waited.recv().await.expect("waits for the dump");
            sqlx::query("SELECT FROM renditions").execute(&readers).await.expect("reads");
        }
        assert!(!is_migrated(database.pool()).await.expect("looks"));
        dump.rollback().await.expect("ends");
        // It may have waited more than once meanwhile.
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
        let pool = connect_for_maintenance(&proxy.url(), "test").expect("a URL");
        let migrating = tokio::spawn(async move { migrate_often(&pool, waits).await });
        waited.recv().await.expect("waits for it");
        proxy.resume();
        migrating.await.expect("no panic").expect("migrates");
        assert!(is_migrated(database.pool()).await.expect("looks"));

        sqlx::query("UPDATE _sqlx_migrations SET checksum = '' WHERE version = 21")
            .execute(database.pool())
            .await
            .expect("spoils it");
        migrate(database.pool(), |error| panic!("{error}")).await.expect_err("is another migration");
    }

    #[tokio::test]
    async fn a_client_that_stops_in_a_transaction_loses_its_locks_in_time() {
        let database = TestDatabase::new().await;
        let pool = connect(&database.url(), "test", 2).expect("a URL");
        let mut stopped = begin(&pool).await.expect("begins");
        sqlx::query("LOCK TABLE accounts").execute(&mut *stopped).await.expect("locks");
        let mut other =
            connect_for_maintenance(&database.url(), "test").expect("a URL").acquire().await.expect("connects");
        // No limit of its own: it waits until the server has ended the other.
        timeout(Duration::from_secs(9), sqlx::query("SELECT FROM accounts").execute(&mut *other))
            .await
            .expect("in time")
            .expect("reads");
        assert!(failure(&mut stopped, "SELECT FROM accounts").await.is_outage());
    }

    #[tokio::test]
    async fn who_goes_away_while_a_transaction_begins_leaves_none_behind() {
        let database = TestDatabase::new().await;
        let pool = connect(&database.url(), "test", 1).expect("a URL");
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
            // The one connection there is. Outside of a transaction there are no savepoints.
            let savepoint = sqlx::query("SAVEPOINT within").execute(&pool).await;
            assert!(savepoint.is_err(), "gone after {polls} polls, the next caller is within a transaction");
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
        let pool = connect(&database.url(), "test", 1).expect("a URL");
        for pool in [&pool, &beside(&pool, 1)] {
            let plan: Vec<String> = sqlx::query_scalar("EXPLAIN (ANALYZE) SELECT count(kind) FROM tasks")
                .fetch_all(pool)
                .await
                .expect("explains");
            assert!(!plan.iter().any(|line| line.contains("JIT")), "{plan:#?}");
        }
    }

    #[tokio::test]
    async fn what_took_too_long_is_an_outage_and_not_a_defect() {
        let database = TestDatabase::new().await;
        let pool = connect(&database.url(), "test", 2).expect("a URL");
        let (mut holder, mut waiter) = (begin(&pool).await.expect("begins"), begin(&pool).await.expect("begins"));
        sqlx::query("LOCK TABLE accounts").execute(&mut *holder).await.expect("locks");
        sqlx::query("SET LOCAL lock_timeout = 1").execute(&mut *waiter).await.expect("sets");
        assert!(failure(&mut waiter, "SELECT FROM accounts").await.is_outage());
        let mut slow = begin(&connect(&database.url(), "test", 1).expect("a URL")).await.expect("begins");
        sqlx::query("SET LOCAL statement_timeout = 1").execute(&mut *slow).await.expect("sets");
        assert!(failure(&mut slow, "SELECT pg_sleep(5)").await.is_outage());
    }

    #[tokio::test]
    async fn a_silent_server_costs_neither_the_caller_nor_the_pool_more_than_their_limits() {
        let database = TestDatabase::new().await;
        let proxy = Proxy::in_front_of(&database.url()).await;
        let pool = connect(&proxy.url(), "test", 1).expect("a URL");
        ping(&pool).await.expect("answers");
        proxy.pause();
        let started = tokio::time::Instant::now();
        assert!(matches!(limited(ping(&pool)).await, Err(Error::Timeout | Error::Sql(sqlx::Error::PoolTimedOut))));
        assert!(started.elapsed() < SHORT_LIMIT + ANSWER_LIMIT, "{:?}", started.elapsed());
        proxy.reset();
        proxy.resume();
        // The only place in the pool is free again.
        ping(&pool).await.expect("answers");
    }

    #[tokio::test]
    async fn a_server_that_hangs_up_on_every_greeting_is_away() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        // Whichever its driver begins with.
        for ssl in ["prefer", "disable"] {
            let url = format!("postgres://canvas@127.0.0.1:{port}/canvas?sslmode={ssl}");
            let error = ping(&connect(&url, "test", 1).expect("a URL")).await.expect_err("is away");
            assert!(error.is_outage(), "{error:?}");
        }
    }

    #[tokio::test]
    async fn after_trouble_the_connections_that_were_lost_are_found_before_they_are_used() {
        let database = TestDatabase::new().await;
        let pool = connect(&database.url(), "lost", 3).expect("a URL");
        let (mut one, two, three) = tokio::join!(pool.acquire(), pool.acquire(), pool.acquire());
        let _ = (two.expect("connects"), three.expect("connects"));
        // The server ends all of them, as at a restart, and the first statement to meet that tells.
        let mut admin =
            connect_for_maintenance(&database.url(), "admin").expect("a URL").acquire().await.expect("connects");
        sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lost'")
            .execute(&mut *admin)
            .await
            .expect("ends them");
        let one = one.as_mut().expect("connects");
        assert!(failure(one, "SELECT 1").await.is_outage());
        for _ in 0..3 {
            ping(&pool).await.expect("is asked first, and made anew");
        }
    }
}
