//! Removal of deliveries that have long been over.

use std::time::Duration;

use db::{PgPool, deliveries};
use tokio_util::sync::CancellationToken;

/// The most that one statement removes: short locks, whatever has piled up.
const BATCH: i64 = 500;

/// Sweeps every `interval` until `stop`. Safe in many processes at once; a failure is logged and the next sweep goes on.
pub async fn run(pool: PgPool, interval: Duration, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(interval)).await.is_some() {
        match stop.run_until_cancelled(sweep(&pool)).await {
            Some(Ok(0)) | None => {}
            Some(Ok(removed)) => tracing::info!(removed, "old deliveries removed"),
            Some(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "old deliveries could not be removed");
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
