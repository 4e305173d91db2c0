//! Deletes finished deliveries after their retention period.

use std::time::Duration;

use db::deadline::with_long_deadline;
use db::{PgPool, deliveries};
use tokio_util::sync::CancellationToken;

/// Maximum number of deliveries per statement, which keeps locks short however many have
/// accumulated.
const BATCH: i64 = 500;

/// Deletes old deliveries every `interval` until `stop` is canceled. Several processes may do this
/// at once. A failure is logged, and the next run continues.
pub async fn run(pool: PgPool, interval: Duration, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(interval)).await.is_some() {
        match stop.run_until_cancelled(with_long_deadline(sweep(&pool))).await {
            Some(Ok(0)) | None => {}
            Some(Ok(removed)) => tracing::info!(removed, "old deliveries removed"),
            Some(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot remove old deliveries");
            }
        }
    }
}

async fn sweep(pool: &PgPool) -> db::Result<u64> {
    let mut removed = 0;
    loop {
        let batch = deliveries::operation::sweep(&mut *pool.acquire().await?, BATCH).await?;
        removed += batch;
        if batch < BATCH.unsigned_abs() {
            return Ok(removed);
        }
    }
}
