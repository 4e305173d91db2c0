//! Waiting for work.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::Client;
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Result;

/// Seconds that a read waits for a change at the service (docs/reference/conventions.md#long-polls).
const WAIT_SECONDS: u64 = 20;

/// Whether work with this status has ended (docs/reference/jobs.md#states).
pub fn is_over(status: &str) -> bool {
    matches!(status, "succeeded" | "failed" | "canceled" | "expired")
}

impl Client {
    /// A run or job by its handle: a video has no run. Its record is a `RunDocument` or a `JobDocument`, by the handle.
    pub fn read_work(&self, handle: &str) -> Call<Value> {
        match handle.starts_with("job:") {
            true => self.get_job(handle).cast(),
            false => self.get_run(handle).cast(),
        }
    }

    /// Cancels a run or job by its handle.
    pub fn cancel_work(&self, handle: &str) -> Call<Value> {
        match handle.starts_with("job:") {
            true => self.cancel_job(handle).cast(),
            false => self.cancel_run(handle).cast(),
        }
    }

    /// Waits until a run or job has ended, at most `patience`, and returns its last record. `seen` is called with each record.
    ///
    /// A read waits at the service for a change (`Prefer: wait`, `If-None-Match`), so little is sent. After one without a change,
    /// the record is read again: what the work waits for may have changed, which is no change of the record.
    pub async fn wait(
        &self,
        handle: &str,
        patience: Option<Duration>,
        mut seen: impl FnMut(&Answer<Value>),
    ) -> Result<Answer<Value>> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        let mut last: Option<Answer<Value>> = None;
        let mut is_known = false;
        loop {
            let left = deadline.map_or(WAIT_SECONDS, |deadline| {
                deadline.saturating_duration_since(Instant::now()).as_secs().min(WAIT_SECONDS)
            });
            let mut read = self.read_work(handle);
            if is_known && left > 0 {
                read = read.prefer(&format!("wait={left}"));
            }
            if is_known && let Some(etag) = last.as_ref().and_then(|last| last.header("etag")) {
                read = read.if_none_match(etag);
            }
            let answer = read.await?;
            is_known = answer.status != http::StatusCode::NOT_MODIFIED;
            if is_known {
                seen(&answer);
                if answer.json()["status"].as_str().is_some_and(is_over) {
                    return Ok(answer);
                }
                last = Some(answer);
            }
            if deadline.is_some_and(|deadline| Instant::now() + Duration::from_secs(1) > deadline)
                && let Some(last) = last.take()
            {
                return Ok(last);
            }
        }
    }
}
