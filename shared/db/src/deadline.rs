//! Deadlines for the case in which the server is silent, so that it can neither answer nor enforce a timeout: its machine is gone, or
//! a firewall has forgotten the connection.

use std::time::Duration;

use tokio::time::timeout;

use crate::{Error, Result, outage};

/// Longest time of a short statement, connecting included.
pub(crate) const SHORT: Duration = Duration::from_secs(5);
/// Longest time of a round of background work.
const LONG: Duration = Duration::from_secs(3600);

/// Limits a short statement, including the wait for a connection.
///
/// # Errors
/// [`Error::Timeout`]; the statement may have taken effect.
pub async fn with_deadline<T>(statement: impl Future<Output = Result<T>>) -> Result<T> {
    // Dropped after the outage is noted, so that the release of its connection checks it and soon frees its place in the pool.
    let mut statement = std::pin::pin!(statement);
    timeout(SHORT, statement.as_mut()).await.unwrap_or_else(|_| {
        outage::note();
        Err(Error::Timeout)
    })
}

/// Limits a round of background work that takes some minutes and that the next round continues.
///
/// # Errors
/// [`Error::Timeout`]; a part of the work may have been done.
pub async fn with_long_deadline<T, E: From<Error>>(
    work: impl Future<Output = std::result::Result<T, E>>,
) -> std::result::Result<T, E> {
    timeout(LONG, work).await.unwrap_or_else(|_| Err(Error::Timeout.into()))
}
