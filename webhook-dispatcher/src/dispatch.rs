//! Delivers one event: counts an attempt, sends it, records its result.
//!
//! **Guarantee.** An event is sent at least once and at most four times. The attempt is durable
//! before a byte is sent. Its result settles or reschedules the task in the same statement, under
//! the lease's fencing token (docs/reference/webhooks.md#delivery-semantics).
//!
//! **Reason.** A crash of this process leaves an attempt in one of three states. If it was not
//! begun, the lease expires and the attempt is made. If it was begun, it stays counted and the next
//! one is made; after the fourth, the delivery has failed. If its result was recorded, the crash
//! has no effect.

use std::time::{Duration, Instant};

use bytes::Bytes;
use db::deliveries::attempts::{Attempt, AttemptRecord, BeginResult, LeasedDelivery, Next};
use db::{PgPool, deliveries, tasks};
use domain::webhook::DeliveryError;
use egress::{Client, Outbound};
use http::Method;
use service::clock;
use service::keys::KeyRing;
use taskqueue::{Decision, Handler, Lease, Task};
use tracing::Instrument;
use tracing::field::Empty;
use url::Url;

use crate::attempt_outcome::{AttemptOutcome, AttemptResult, evaluate};
use crate::destinations::{AttemptPermit, ClaimedDelivery, Destinations, FAST};
use crate::journal::Journal;
use crate::schedule::Backoff;
use crate::signature;

/// Maximum number of bytes that are read of a response.
const RESPONSE_LIMIT: usize = 64 * 1024;

/// Maximum time for reading a response's body after its status has decided the result. Reading the
/// body only keeps the connection reusable. If it takes longer than opening a new connection would,
/// the connection is closed, so that it does not occupy a slot that others wait for.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// The time limit of an attempt and the delays between attempts.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The total time of an attempt, from name resolution to the end of the response's headers.
    /// Reading the body is included.
    pub deadline: Duration,
    /// Delays between attempts.
    pub backoff: Backoff,
}

impl Default for Settings {
    /// A deadline of 10 s and the default backoff.
    fn default() -> Self {
        Self { deadline: Duration::from_secs(10), backoff: Backoff::default() }
    }
}

/// The task handler that delivers webhooks.
pub struct Dispatcher {
    pool: PgPool,
    journal: Journal,
    keys: KeyRing,
    client: Client,
    settings: Settings,
    destinations: Destinations,
}

impl Dispatcher {
    /// Creates a dispatcher that records attempts in `journal`, opens secrets with `keys` and sends
    /// requests through `client`.
    pub fn new(pool: PgPool, journal: Journal, keys: KeyRing, client: Client, settings: Settings) -> Self {
        Self { pool, journal, keys, client, settings, destinations: Destinations::default() }
    }

    /// Sends one attempt and evaluates the status of the response, which acknowledges, redirects or
    /// rejects the event. An error while reading the body changes nothing.
    async fn send(&self, delivery: &str, traceparent: &str, attempt: Attempt) -> AttemptResult {
        let secret = match self.keys.decrypt(delivery, &attempt.sealed_secret) {
            Ok(secret) => secret,
            Err(error) => {
                tracing::warn!(delivery.id = delivery, error = %error, "cannot open the secret of delivery {delivery}");
                return AttemptResult::hopeless(DeliveryError::SecretUnavailable);
            }
        };
        let Ok(url) = Url::parse(&attempt.url) else {
            return AttemptResult::hopeless(DeliveryError::InvalidDestination);
        };
        let timestamp = clock::now().timestamp();
        let headers = signature::headers(&secret, delivery, timestamp, &attempt.body, traceparent);
        let call = Outbound {
            method: Method::POST,
            url,
            headers,
            body: Bytes::from(attempt.body),
            deadline: self.settings.deadline,
            response_limit: RESPONSE_LIMIT,
        };
        let answer = self.client.open_for(None, call).await;
        let result = evaluate(answer.as_ref().map(|answer| answer.status));
        if let Ok(answer) = answer {
            // The result of the drain does not matter.
            let _ = tokio::time::timeout(DRAIN_TIME, answer.body.drain(RESPONSE_LIMIT)).await;
        }
        result
    }

    /// The state of the delivery after an attempt. A replay is a single attempt, whatever its
    /// result.
    fn next(&self, outcome: AttemptOutcome, number: i32, replay: bool) -> Next {
        match outcome {
            AttemptOutcome::Delivered => Next::Delivered,
            AttemptOutcome::Hopeless(code) => Next::Failed(code),
            AttemptOutcome::Retryable => Some(number)
                .filter(|_| !replay)
                .and_then(|number| self.settings.backoff.after(number, service::random::fraction()))
                .map_or(Next::Failed(DeliveryError::DeliveryFailed), Next::RetryAfter),
        }
    }

    /// Makes an attempt that was already counted. `permit` allows its request.
    async fn attempt(
        &self,
        task: &Task,
        leased: LeasedDelivery,
        attempt: Attempt,
        claimed: &ClaimedDelivery,
        permit: AttemptPermit,
    ) -> taskqueue::HandlerResult {
        let delivery = deliveries::handle(task.id);
        let (number, replay) = (attempt.number, attempt.replay);
        metrics::histogram!("canvas_webhook_delivery_lag_seconds").record(attempt.lag);
        let start = Instant::now();
        let trace = task.trace.child();
        let span = service::trace_span!(
            trace,
            Client,
            "deliver",
            method = "POST",
            delivery.id = delivery,
            destination = task.fairness_key,
            attempt = number,
            status = Empty,
            error_type = Empty
        );
        let traceparent = trace.to_string();
        let mut sending = std::pin::pin!(self.send(&delivery, &traceparent, attempt).instrument(span.clone()));
        let (result, is_fast) = match tokio::time::timeout(FAST, &mut sending).await {
            Ok(result) => (result, true),
            Err(_) => {
                claimed.note_slow();
                (sending.await, false)
            }
        };
        let duration = start.elapsed();
        span.record("status", result.status);
        span.record("error_type", result.error);
        drop(span);
        taskqueue::failpoint!("delivery.sent");
        match result.outcome {
            AttemptOutcome::Delivered if is_fast => claimed.note_fast(),
            AttemptOutcome::Delivered => {}
            AttemptOutcome::Retryable | AttemptOutcome::Hopeless(_) => claimed.note_slow(),
        }
        // The next request is sent while this attempt is recorded.
        drop(permit);

        let next = self.next(result.outcome, number, replay);
        let (status, error) = (result.status, result.error);
        let recorded =
            self.journal.record(AttemptRecord { leased, attempt: Some((number, replay)), status, error, next }).await?;
        let outcome = match next {
            Next::Delivered => "delivered",
            Next::Failed(code) => code.as_str(),
            Next::RetryAfter(_) => "retry",
        };
        metrics::counter!("canvas_webhook_attempts_total", "outcome" => outcome).increment(1);
        metrics::histogram!("canvas_webhook_attempt_duration_seconds").record(duration);
        tracing::info!(
            delivery.id = delivery,
            destination = task.fairness_key,
            attempt = number,
            replay,
            status,
            outcome,
            error,
            recorded,
            duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            "attempt {number} of delivery {delivery}: {outcome}"
        );
        Ok(match next {
            _ if !recorded => Decision::Stale,
            Next::Failed(code) => Decision::Fail { code: code.as_str() },
            Next::Delivered => Decision::Done,
            Next::RetryAfter(after) => Decision::Rescheduled { after },
        })
    }
}

impl Dispatcher {
    /// Ends a delivery as failed without another attempt.
    async fn give_up(&self, leased: LeasedDelivery, why: &str) -> taskqueue::HandlerResult {
        let code = DeliveryError::DeliveryFailed;
        let outcome = AttemptRecord { leased, attempt: None, status: None, error: None, next: Next::Failed(code) };
        let recorded = self.journal.record(outcome).await?;
        let id = leased.id;
        tracing::info!(delivery.id = %id, "delivery {id} failed: {why}");
        Ok(if recorded { Decision::Fail { code: code.as_str() } } else { Decision::Stale })
    }
}

impl Handler for Dispatcher {
    async fn run(&self, task: &Task, lease: &Lease) -> taskqueue::HandlerResult {
        let leased = LeasedDelivery { id: task.id, lease_token: lease.token() };
        let mut claimed = self.destinations.add(&task.fairness_key);
        let Some(mut permit) = claimed.permit().await else { return Ok(Decision::Release) };
        match self.journal.begin(leased).await? {
            BeginResult::Attempt(attempt) => {
                taskqueue::failpoint!("delivery.begun");
                claimed.wait_to_send(&mut permit).await;
                if !lease.check() {
                    return Ok(Decision::Stale);
                }
                self.attempt(task, leased, *attempt, &claimed, permit).await
            }
            BeginResult::Spent => self.give_up(leased, "the result of its last attempt is unknown").await,
            BeginResult::Gone => {
                let settled = tasks::settle(&mut *self.pool.acquire().await?, task.id, leased.lease_token).await?;
                Ok(if settled { Decision::Done } else { Decision::Stale })
            }
            BeginResult::LeaseLost => Ok(Decision::Stale),
        }
    }

    fn fairness_key_cap(&self, fairness_key: &str) -> Option<usize> {
        self.destinations.claim_limit(fairness_key)
    }

    /// The number of attempts limits a delivery, not the number of claims: a delivery that was
    /// claimed often without an attempt still has all its attempts. One that may kill its workers
    /// ends here: an operator can replay it.
    async fn exhausted(&self, task: &Task, lease: &Lease) -> taskqueue::HandlerResult {
        if !task.is_quarantined {
            return self.run(task, lease).await;
        }
        let leased = LeasedDelivery { id: task.id, lease_token: lease.token() };
        self.give_up(leased, "its workers died again and again").await
    }
}
