//! Connections and migrations.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::Result;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!();

/// A pool of at most `connections`, opened on demand, so that a process starts without Postgres and says so in its
/// readiness instead of dying.
pub fn connect(url: &str, process: &str, connections: u32) -> Result<PgPool> {
    let options: PgConnectOptions = url.parse::<PgConnectOptions>()?.application_name(process);
    Ok(PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(5))
        .idle_timeout(Duration::from_secs(600))
        .max_lifetime(Duration::from_secs(3600))
        .connect_lazy_with(options))
}

/// A pool of `connections` to the same database beside `pool`, for what must not wait behind its other users.
pub fn beside(pool: &PgPool, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(5))
        .connect_lazy_with(pool.connect_options().as_ref().clone())
}

/// Brings the schema to this build's version. Safe to run from several places at once.
pub async fn migrate(pool: &PgPool) -> Result<()> {
    Ok(MIGRATIONS.run(pool).await?)
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

/// Begins a transaction.
pub async fn begin(pool: &PgPool) -> Result<Transaction> {
    Ok(pool.begin().await?)
}

/// Commits a transaction.
pub async fn commit(transaction: sqlx::Transaction<'_, sqlx::Postgres>) -> Result<()> {
    Ok(transaction.commit().await?)
}

/// Begins a read-only transaction in which every statement sees the same state.
pub async fn snapshot(pool: &PgPool) -> Result<Transaction> {
    Ok(pool.begin_with("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
}

/// Begins a transaction on a connection that the caller holds.
pub async fn begin_on(connection: &mut sqlx::PgConnection) -> Result<sqlx::Transaction<'_, sqlx::Postgres>> {
    use sqlx::Connection as _;
    Ok(connection.begin().await?)
}
