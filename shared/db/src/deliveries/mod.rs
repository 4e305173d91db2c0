//! Webhook deliveries: at most one per run (docs/reference/webhooks.md#delivery).
//!
//! **Guarantee.** The event's bytes are fixed in the transaction that ends the run. The event is delivered at least once, or
//! the delivery is marked failed. At most four attempts are counted; replays by an operator are not counted.
//!
//! **Mechanism.** The row is inserted with the run, without an event. [`complete`] fixes the event and enqueues a task of the
//! same id, with the fairness key of the destination. [`attempts::begin`] counts an attempt before anything is sent.
//! [`attempts::record`] settles or reschedules the task together with the result, in one statement. Both are conditional on
//! the task's lease token.
//!
//! **Reason.** A process that dies between the two leaves a `delivering` row under a lease that expires. The next worker cannot
//! know whether the receiver got the event, so the attempt stays counted and the next one is made.

pub mod attempts;
pub mod operation;
mod sealed;

#[cfg(test)]
mod tests;

use domain::Timestamp;
use domain::event::EventType;
use domain::id::{AccountUid, JobId};
use domain::message::{Queue, TaskKind};
use domain::webhook::{DeliveryError, DeliveryState};
use sqlx::PgConnection;
use url::Url;
use uuid::Uuid;

pub use sealed::{SealedSecret, next_to_rewrap, sealed_counts, store_reencrypted};

use crate::Result;
use crate::error::known;
use crate::tasks::{self, NewTask};

/// The delivery that a start request asks for.
#[derive(Debug)]
pub struct NewDelivery<'a> {
    /// A new id. `webhook:<id>` is the context that the secret is encrypted under.
    pub id: Uuid,
    /// The account that owns the run.
    pub account: &'a AccountUid,
    /// The run whose end is announced. A run has at most one delivery.
    pub job_id: JobId,
    /// The endpoint, in the normal form that the egress guard returned.
    pub url: &'a str,
    /// The caller's secret, encrypted under the key ring.
    pub sealed_secret: &'a str,
}

/// The event of a run's end.
#[derive(Debug)]
pub struct NewEvent<'a> {
    /// Id of the event. The envelope's id is `event:<id>`.
    pub id: Uuid,
    /// Type of the event.
    pub kind: EventType,
    /// The envelope, serialized once.
    pub body: &'a [u8],
    /// W3C trace context of the work that ended the run.
    pub traceparent: Option<&'a str>,
}

/// Inserts the delivery of a run that starts: pending and without an event.
#[tracing::instrument(skip_all, name = "db.delivery.insert")]
pub async fn insert(conn: &mut PgConnection, new: &NewDelivery<'_>) -> Result<()> {
    sqlx::query!(
        "INSERT INTO webhook_deliveries (id, account_uid, job_id, url, sealed_secret) VALUES ($1, $2, $3, $4, $5)",
        new.id,
        new.account.as_str(),
        new.job_id.0,
        new.url,
        new.sealed_secret,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Fixes the event of a run's end and enqueues its delivery, in the transaction that ends the run. Returns the id of the delivery,
/// which the caller announces after the commit. `None`: the run has no delivery, or its event is fixed already.
#[tracing::instrument(skip_all, name = "db.delivery.complete")]
pub async fn complete(conn: &mut PgConnection, job_id: JobId, event: &NewEvent<'_>) -> Result<Option<Uuid>> {
    let fixed = sqlx::query!(
        "UPDATE webhook_deliveries
         SET event_id = $2, event_type = $3, body = $4, next_attempt_at = now()
         WHERE job_id = $1 AND body IS NULL AND status = 'pending'
         RETURNING id, url, account_uid",
        job_id.0,
        format!("event:{}", event.id),
        event.kind.as_str(),
        event.body,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(delivery) = fixed else { return Ok(None) };
    enqueue(conn, delivery.id, &delivery.url, &delivery.account_uid, event.traceparent).await?;
    Ok(Some(delivery.id))
}

/// Fails the delivery of a run that ends without an event, because its record cannot be read.
#[tracing::instrument(skip_all, name = "db.delivery.give_up")]
pub async fn give_up(conn: &mut PgConnection, job_id: JobId) -> Result<()> {
    sqlx::query!(
        "UPDATE webhook_deliveries SET status = 'failed', error_code = $2
         WHERE job_id = $1 AND body IS NULL AND status = 'pending'",
        job_id.0,
        DeliveryError::FinalizationFailed.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Reads the state of a run's delivery, if it has one.
#[tracing::instrument(skip_all, name = "db.delivery.state")]
pub async fn state(conn: &mut PgConnection, job_id: JobId) -> Result<Option<DeliveryState>> {
    let row = sqlx::query!(
        "SELECT id, status, attempts, next_attempt_at, last_attempt_at, delivered_at, last_status, error_code
         FROM webhook_deliveries WHERE job_id = $1",
        job_id.0,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(DeliveryState {
            id: handle(row.id),
            status: known("webhook_deliveries.status", &row.status)?,
            attempts: row.attempts,
            next_attempt_at: row.next_attempt_at.map(Timestamp::from),
            last_attempt_at: row.last_attempt_at.map(Timestamp::from),
            delivered_at: row.delivered_at.map(Timestamp::from),
            last_status: row.last_status,
            error_code: row.error_code.map(|code| known("webhook_deliveries.error_code", &code)).transpose()?,
        })
    })
    .transpose()
}

/// The handle of a delivery, `webhook:<id>`: its id in records, the id header of its attempts and the context that its secret
/// is encrypted under.
pub fn handle(id: Uuid) -> String {
    format!("webhook:{id}")
}

/// Enqueues the delivery with the fairness key of its destination, with its account as the tenant.
async fn enqueue(conn: &mut PgConnection, id: Uuid, url: &str, account: &str, traceparent: Option<&str>) -> Result<()> {
    let fairness_key = destination(url);
    let task = NewTask {
        id,
        queue: Queue::Webhook,
        kind: TaskKind::Delivery,
        fairness_key: &fairness_key,
        due_in: None,
        traceparent,
    };
    tasks::enqueue_for(conn, &task, account).await
}

/// The fairness key of a delivery: `host:port`. All text that is not such a URL shares one fairness key; its attempt ends as
/// an invalid destination.
fn destination(url: &str) -> String {
    let parts = Url::parse(url).ok().and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?)));
    parts.map_or_else(|| "none".to_owned(), |(host, port)| format!("{host}:{port}"))
}
