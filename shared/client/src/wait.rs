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
    /// Each read waits at the service for a change (`Prefer: wait`, `If-None-Match`), so little is sent.
    pub async fn wait(
        &self,
        handle: &str,
        patience: Option<Duration>,
        mut seen: impl FnMut(&Value),
    ) -> Result<Answer<Value>> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        let mut last: Option<Answer<Value>> = None;
        loop {
            let left = deadline.map_or(WAIT_SECONDS, |deadline| {
                deadline.saturating_duration_since(Instant::now()).as_secs().min(WAIT_SECONDS)
            });
            let mut read = self.read_work(handle);
            if last.is_some() && left > 0 {
                read = read.prefer(&format!("wait={left}"));
            }
            if let Some(etag) = last.as_ref().and_then(|last| last.header("etag")) {
                read = read.if_none_match(etag);
            }
            let answer = read.await?;
            if answer.status != http::StatusCode::NOT_MODIFIED {
                let record = answer.json();
                seen(&record);
                if record["status"].as_str().is_some_and(is_over) {
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
