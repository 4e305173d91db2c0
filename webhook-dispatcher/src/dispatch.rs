//! One delivery in hand: count an attempt, send it, record what came of it.
//!
//! **Guarantee.** At least once, at most four times: the attempt is durable before a byte is sent and its result ends or
//! parks the task in the same statement, under the lease's fencing token.
//!
//! **Reason.** Whatever kills this process leaves one of three states behind: nothing begun (the lease expires, the attempt is made), begun
//! (it stays counted, the next one is made; after the fourth the delivery has failed), or recorded.

use std::time::{Duration, Instant};

use bytes::Bytes;
use db::deliveries::attempts::{Attempt, Begun, Held, Next, Outcome};
use db::{PgPool, deliveries, tasks};
use domain::webhook::DeliveryError;
use egress::{Client, Outbound};
use http::Method;
use service::clock;
use service::keys::KeyRing;
use spine::{Decision, Handler, Lease, Task};
use tracing::Instrument;
use tracing::field::Empty;
use url::Url;

use crate::DESTINATION_CAP;
use crate::gate::{Gate, Place};
use crate::journal::Journal;
use crate::schedule::Backoff;
use crate::signature;
use crate::verdict::{Judged, Verdict, judge};

/// The most of a response that is read (decisions 15.4).
const RESPONSE_LIMIT: usize = 64 * 1024;

/// The longest that a response's body is read, after its head has told the verdict. All that it is good for is the connection,
/// which a receiver that takes longer than a new one costs does not get to keep, nor the place that others wait for.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// What an attempt may take and when the next one is made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Total time of an attempt, from the lookup of the name to the end of the response's head; what is read of its body is within
    /// it, too.
    pub deadline: Duration,
    /// Delays between attempts.
    pub backoff: Backoff,
}

impl Default for Settings {
    /// 10 s, as the specification sets, and the default backoff.
    fn default() -> Self {
        Self { deadline: Duration::from_secs(10), backoff: Backoff::default() }
    }
}

/// Delivers webhooks.
pub struct Dispatcher {
    pool: PgPool,
    journal: Journal,
    keys: KeyRing,
    client: Client,
    settings: Settings,
    gate: Gate,
}

impl Dispatcher {
    /// A dispatcher that writes to `journal`, opens secrets with `keys` and sends through `client`.
    pub fn new(pool: PgPool, journal: Journal, keys: KeyRing, client: Client, settings: Settings) -> Self {
        Self { pool, journal, keys, client, settings, gate: Gate::new(DESTINATION_CAP) }
    }

    /// Sends one attempt and judges the answer by its head: a receiver acknowledges, redirects or refuses with a status
    /// (specification, Events), and whatever becomes of the body takes nothing of that back.
    async fn send(&self, delivery: &str, traceparent: &str, attempt: Attempt) -> Judged {
        let secret = match self.keys.open(delivery, &attempt.sealed_secret) {
            Ok(secret) => secret,
            Err(error) => {
                tracing::warn!(delivery.id = delivery, error = %error, "the secret of {delivery} cannot be opened");
                return Judged::hopeless(DeliveryError::SecretUnavailable);
            }
        };
        let Ok(url) = Url::parse(&attempt.url) else {
            return Judged::hopeless(DeliveryError::InvalidDestination);
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
        let judged = judge(answer.as_ref().map(|answer| answer.status));
        if let Ok(answer) = answer {
            // Late or in time is all the same.
            let _ = tokio::time::timeout(DRAIN_TIME, answer.body.drain(RESPONSE_LIMIT)).await;
        }
        judged
    }

    /// What the delivery is after an attempt. A replay is one attempt, whatever comes of it.
    fn next(&self, verdict: Verdict, number: i32, replay: bool) -> Next {
        match verdict {
            Verdict::Delivered => Next::Delivered,
            Verdict::Hopeless(code) => Next::Failed(code),
            Verdict::Retryable => Some(number)
                .filter(|_| !replay)
                .and_then(|number| self.settings.backoff.after(number, service::random::fraction()))
                .map_or(Next::Failed(DeliveryError::DeliveryFailed), Next::RetryAfter),
        }
    }

    /// Makes an attempt that has been counted, at its place.
    async fn attempt(&self, task: &Task, held: Held, attempt: Attempt, place: Place<'_>) -> spine::Outcome {
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
            destination = task.lane,
            attempt = number,
            status = Empty,
            error_type = Empty
        );
        let judged = self.send(&delivery, &trace.to_string(), attempt).instrument(span.clone()).await;
        let duration = start.elapsed();
        span.record("status", judged.status);
        span.record("error_type", judged.error);
        drop(span);
        spine::failpoint!("delivery.sent");
        // The next one is sent while this one is recorded.
        drop(place);

        let next = self.next(judged.verdict, number, replay);
        let (status, error) = (judged.status, judged.error);
        let recorded =
            self.journal.record(Outcome { held, attempt: Some((number, replay)), status, error, next }).await?;
        let outcome = match next {
            Next::Delivered => "delivered",
            Next::Failed(code) => code.as_str(),
            Next::RetryAfter(_) => "retry",
        };
        metrics::counter!("canvas_webhook_attempts_total", "outcome" => outcome).increment(1);
        metrics::histogram!("canvas_webhook_attempt_duration_seconds").record(duration);
        tracing::info!(
            delivery.id = delivery,
            destination = task.lane,
            attempt = number,
            replay,
            status,
            outcome,
            error,
            recorded,
            duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            "attempt {number} of {delivery} ended: {outcome}"
        );
        Ok(match next {
            _ if !recorded => Decision::Stale,
            Next::Failed(code) => Decision::Fail { code: code.as_str() },
            Next::Delivered => Decision::Done,
            Next::RetryAfter(after) => Decision::Parked { after },
        })
    }
}

impl Handler for Dispatcher {
    async fn run(&self, task: &Task, lease: &Lease) -> spine::Outcome {
        let held = Held { id: task.id, lease_token: lease.token() };
        // Before the attempt is counted: who waits for a place and dies there has made none.
        let place = self.gate.enter(&task.lane).await;
        match self.journal.begin(held).await? {
            Begun::Attempt(attempt) => {
                spine::failpoint!("delivery.begun");
                if !lease.check() {
                    return Ok(Decision::Stale);
                }
                self.attempt(task, held, *attempt, place).await
            }
            Begun::Spent => {
                let code = DeliveryError::DeliveryFailed;
                let outcome = Outcome { held, attempt: None, status: None, error: None, next: Next::Failed(code) };
                let recorded = self.journal.record(outcome).await?;
                tracing::info!(delivery.id = %task.id, "the last attempt of {} was not recorded: failed", task.id);
                Ok(if recorded { Decision::Fail { code: code.as_str() } } else { Decision::Stale })
            }
            Begun::Gone => {
                let settled = tasks::settle(&mut *self.pool.acquire().await?, task.id, held.lease_token).await?;
                Ok(if settled { Decision::Done } else { Decision::Stale })
            }
            Begun::LeaseLost => Ok(Decision::Stale),
        }
    }

    /// Attempts bound a delivery, not claims: one that was claimed often without an attempt still has all of them.
    async fn exhausted(&self, task: &Task, lease: &Lease) -> spine::Outcome {
        self.run(task, lease).await
    }
}
