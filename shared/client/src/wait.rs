//! Waiting for work.

use std::time::Duration;

use domain::Timestamp;
use tokio::time::Instant;

use crate::Client;
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Result;
use crate::work::WorkRecord;

/// Seconds that a read waits for a change at the service (docs/reference/conventions.md#long-polls).
const WAIT_SECONDS: u128 = 20;
/// Pause after a read that the service answers at once, unless an answer names another pause.
const PAUSE: Duration = Duration::from_secs(1);

impl Client {
    /// A run or job by its handle: a video has no run.
    pub fn read_work(&self, handle: &str) -> Call<WorkRecord> {
        match handle.starts_with("job:") {
            true => self.get_job(handle).cast(),
            false => self.get_run(handle).cast(),
        }
    }

    /// Cancels a run or job by its handle.
    pub fn cancel_work(&self, handle: &str) -> Call<WorkRecord> {
        match handle.starts_with("job:") {
            true => self.cancel_job(handle).cast(),
            false => self.cancel_run(handle).cast(),
        }
    }

    /// Waits until a run or job has ended, at most `patience`, and returns its last record. `seen` is called with each record and
    /// the time at which it was read.
    ///
    /// A read waits at the service for a change (`Prefer: wait`, `If-None-Match`), so little is sent. After one without a change,
    /// the record is read again: what the work waits for may have changed, which is no change of the record. A service that does
    /// not apply the preference, such as one behind a proxy that drops it, is asked as seldom as its `Retry-After` says. When the
    /// time is over, the record is read once more.
    pub async fn wait(
        &self,
        handle: &str,
        patience: Option<Duration>,
        mut seen: impl FnMut(&WorkRecord, Timestamp),
    ) -> Result<Answer<WorkRecord>> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let mut last: Option<Answer<WorkRecord>> = None;
        let (mut is_known, mut is_waited_for, mut pause) = (false, true, PAUSE);
        loop {
            let left_now = left();
            let is_last = left_now.is_some_and(|left| left.is_zero());
            let mut read = self.read_work(handle);
            if is_known && let Some(etag) = last.as_ref().and_then(|last| last.header("etag")) {
                read = read.if_none_match(etag);
            }
            let answer = if is_known && !is_last {
                let seconds = left_now.map_or(WAIT_SECONDS, |left| left.as_millis().div_ceil(1000).min(WAIT_SECONDS));
                let read = read.prefer(&format!("wait={seconds}")).into_future();
                let answered = match deadline {
                    Some(deadline) => tokio::time::timeout_at(deadline, read).await.ok(),
                    None => Some(read.await),
                };
                let Some(answer) = answered.transpose()? else { continue };
                is_waited_for = answer.header("preference-applied").is_some_and(|applied| applied.contains("wait="));
                answer
            } else {
                read.await?
            };
            if let Some(seconds) = answer.header("retry-after").and_then(|seconds| seconds.parse().ok()) {
                pause = Duration::from_secs(seconds);
            }
            is_known = answer.status != http::StatusCode::NOT_MODIFIED;
            if is_known {
                let record = answer.value()?;
                seen(&record, answer.time());
                if record.is_over() {
                    return Ok(answer);
                }
                last = Some(answer);
            }
            if is_last && let Some(last) = last.take() {
                return Ok(last);
            }
            if !is_waited_for {
                tokio::time::sleep(left().map_or(pause, |left| left.min(pause))).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;
    use futures_util::future::BoxFuture;
    use futures_util::stream;
    use http::{Request, Response};
    use serde_json::json;

    use super::*;
    use crate::transport::{BodyStream, Payload, Transport, Unreachable};

    /// A service whose work ends after some seconds. A read that waits at it does so until then, unless the preference is dropped.
    #[derive(Clone)]
    struct Service {
        ends: Instant,
        drops_preference: bool,
        retry_after: Option<u64>,
        reads: Arc<Mutex<usize>>,
    }

    impl Transport for Service {
        fn send(&self, request: Request<Payload>) -> BoxFuture<'_, Result<Response<BodyStream>, Unreachable>> {
            Box::pin(async move {
                let began = Instant::now();
                let wait = request.headers().get("prefer").and_then(|value| value.to_str().ok()?.strip_prefix("wait="));
                let wait = wait.map(|seconds| Duration::from_secs(seconds.parse().expect("seconds")));
                assert!(wait.is_none_or(|wait| (1..=20).contains(&wait.as_secs())));
                let wait = wait.filter(|_| !self.drops_preference);
                *self.reads.lock().expect("no panic") += 1;
                if let Some(wait) = wait {
                    tokio::time::sleep_until(self.ends.min(began + wait)).await;
                }
                let is_over = Instant::now() >= self.ends;
                let mut answer = Response::builder().header("etag", if is_over { "\"2\"" } else { "\"1\"" });
                if wait.is_some() {
                    answer = answer.header("preference-applied", "wait=20");
                }
                let known = request.headers().get("if-none-match");
                let (status, body) = match is_over {
                    true => (200, json!({"status": "succeeded"}).to_string()),
                    false if known.is_some_and(|tag| tag == "\"1\"") => (304, String::new()),
                    false => (202, json!({"status": "running"}).to_string()),
                };
                if let (202, Some(seconds)) = (status, self.retry_after) {
                    answer = answer.header("retry-after", seconds);
                }
                let body: BodyStream = Box::pin(stream::iter([Ok(Bytes::from(body))]));
                Ok(answer.status(status).body(body).expect("a response"))
            })
        }
    }

    /// Waits for work that ends after some seconds. Returns its last status, how long that took, and the number of reads.
    async fn waited(
        ends: f64,
        patience: Option<f64>,
        drops_preference: bool,
        retry_after: Option<u64>,
    ) -> (String, f64, usize) {
        let began = Instant::now();
        let service = Service {
            ends: began + Duration::from_secs_f64(ends),
            drops_preference,
            retry_after,
            reads: Arc::default(),
        };
        let client = Client::new(service.clone());
        let record = client.wait("job:1", patience.map(Duration::from_secs_f64), |_, _| {}).await.expect("a record");
        let status = record.value().expect("a record").status;
        (status, began.elapsed().as_secs_f64(), *service.reads.lock().expect("no panic"))
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_waited_for_to_the_end_of_the_time() {
        for drops_preference in [false, true] {
            for seconds in [1.0, 2.0, 21.0, 45.5] {
                let (status, took, _) = waited(1000.0, Some(seconds), drops_preference, Some(1)).await;
                assert_eq!(status, "running");
                assert!((seconds..seconds + 0.01).contains(&took), "{took} of {seconds}");
                // An end in the last moment is seen.
                let (status, ..) = waited(seconds - 0.01, Some(seconds), drops_preference, Some(1)).await;
                assert_eq!(status, "succeeded", "{seconds}");
            }
            let (status, took, reads) = waited(1000.0, Some(0.0), drops_preference, Some(1)).await;
            assert_eq!((status.as_str(), took, reads), ("running", 0.0, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_waits_is_asked_seldom_and_tells_the_end_at_once() {
        let (_, took, reads) = waited(0.5, None, false, Some(1)).await;
        assert!(took < 0.51 && reads == 2, "{took} s, {reads} reads");
        let (_, took, reads) = waited(65.0, None, false, Some(1)).await;
        assert!(took < 65.01 && reads <= 2 * 4, "{took} s, {reads} reads");
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_does_not_wait_is_asked_as_its_retry_after_says() {
        for (retry_after, least) in [(Some(1), 1.0), (Some(5), 5.0), (None, 1.0)] {
            let (status, took, reads) = waited(20.5, None, true, retry_after).await;
            assert_eq!(status, "succeeded");
            assert!((20.5..20.5 + least + 1.0).contains(&took), "{took}");
            assert!(reads <= (20.5 / least) as usize + 3, "{reads} reads");
        }
        // A pause is not longer than the time that is left.
        let (status, took, reads) = waited(1000.0, Some(3.0), true, Some(60)).await;
        assert!(status == "running" && took < 3.01 && reads <= 3, "{took} s, {reads} reads");
    }
}
