//! Attempts, which are counted before they are sent and recorded together with the task's end.
//!
//! Both functions take many deliveries at once, because a commit costs more than a row: a busy dispatcher begins and records in
//! one statement what has accumulated since its previous one. The deliveries of a batch are independent: one whose lease was
//! lost does not affect the others.

use std::collections::HashMap;
use std::time::Duration;

use domain::id::JobId;
use domain::limits::WEBHOOK_ATTEMPTS_MAX;
use domain::webhook::{DeliveryError, DeliveryStatus};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// A delivery under a worker's lease: the task's id and fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeasedDelivery {
    /// Id of the delivery and of its task.
    pub id: Uuid,
    /// Fencing token of the claim.
    pub lease_token: Uuid,
}

/// An attempt that has been counted and may be sent.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Number of the attempt, from 1. Scheduled attempts and replays are numbered separately.
    pub number: i32,
    /// `true` if an operator requested the attempt.
    pub replay: bool,
    /// The run that ended.
    pub job_id: JobId,
    /// URL of the endpoint.
    pub url: String,
    /// The signing secret, encrypted.
    pub sealed_secret: String,
    /// Id of the event, `event:<uuid>`.
    pub event_id: String,
    /// Body of the request.
    pub body: Vec<u8>,
    /// How long after its due time the attempt began.
    pub lag: Duration,
}

/// Result of beginning an attempt.
#[derive(Clone, Debug)]
pub enum BeginResult {
    /// The attempt is counted and must be sent.
    Attempt(Box<Attempt>),
    /// The last permitted attempt was counted by a process that died before it recorded the result.
    Spent,
    /// The delivery was removed. The task must be settled.
    Gone,
    /// The lease on the task was lost.
    LeaseLost,
}

/// State of a delivery after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The receiver acknowledged the event.
    Delivered,
    /// The delivery failed for good.
    Failed(DeliveryError),
    /// The next attempt is due after this time.
    RetryAfter(Duration),
}

/// The result of an attempt.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// The delivery, under the lease that the attempt was begun with.
    pub leased: LeasedDelivery,
    /// The attempt's number and whether it is a replay; `None` when no attempt could begin.
    pub attempt: Option<(i32, bool)>,
    /// Status code of the response, 100 to 599.
    pub status: Option<u16>,
    /// Short name of the error, for operators.
    pub error: Option<&'static str>,
    /// New state of the delivery.
    pub next: Next,
}

/// Counts one attempt of each delivery and marks it `delivering`. The first attempt of an event also starts the window,
/// `finalized` long, in which the run's result stays readable, like [`mark_finalized`](crate::jobs::mark_finalized), unless the
/// record is overdue. It is done here to save a round trip. Returns the results in the order of `leased`.
///
/// One lease counts one attempt. When the caller does not know whether the statement took effect and repeats it under the same
/// lease, it gets the attempt that was counted. A unique index separates two concurrent statements; the second fails.
#[tracing::instrument(skip_all, name = "db.delivery.begin")]
pub async fn begin(
    conn: &mut PgConnection,
    leased: &[LeasedDelivery],
    finalized: Duration,
) -> Result<Vec<BeginResult>> {
    let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = leased.iter().map(|leased| (leased.id, leased.lease_token)).unzip();
    let rows = sqlx::query!(
        r#"WITH held AS (
               SELECT t.id, t.lease_token, d.next_attempt_at AS due_at, a.number, a.replay
               FROM unnest($1::uuid[], $2::uuid[]) h (id, lease_token)
               JOIN task_queue t ON t.id = h.id AND t.lease_token = h.lease_token AND t.id = ANY($1)
               JOIN webhook_deliveries d ON d.id = t.id
               LEFT JOIN webhook_attempts a ON a.delivery_id = d.id AND a.lease_token = t.lease_token
           ), begun AS (
               UPDATE webhook_deliveries d
               SET status = 'delivering',
                   attempts = d.attempts + CASE WHEN d.replay_attempts IS NULL THEN 1 ELSE 0 END,
                   replay_attempts = d.replay_attempts + 1,
                   next_attempt_at = NULL, last_attempt_at = now()
               FROM held
               WHERE d.id = held.id AND held.number IS NULL
                 AND d.status IN ('pending', 'delivering') AND d.body IS NOT NULL
                 AND coalesce(d.replay_attempts, d.attempts) < $3
               RETURNING d.*, held.due_at, held.lease_token
           ), noted AS (
               INSERT INTO webhook_attempts (delivery_id, number, replay, lease_token)
               SELECT id,
                      CASE WHEN replay_attempts IS NULL THEN attempts
                           ELSE 1 + coalesce((SELECT max(a.number) FROM webhook_attempts a
                                              WHERE a.delivery_id = begun.id AND a.replay), 0) END,
                      replay_attempts IS NOT NULL, lease_token
               FROM begun
               RETURNING delivery_id, number, replay
           ), finalized AS (
               UPDATE jobs j
               SET finalized_at = now(),
                   retain_until = CASE WHEN j.status = 'succeeded' THEN now() + make_interval(secs => $4)
                                       ELSE j.retain_until END
               FROM begun
               WHERE j.id = begun.job_id AND j.status IN ('succeeded', 'failed', 'canceled') AND j.finalized_at IS NULL
                 AND j.retain_until > now()
           )
           SELECT begun.id AS "id!", begun.job_id AS "job_id!", begun.url AS "url!",
                  begun.sealed_secret AS "sealed_secret!", begun.event_id AS "event_id!", begun.body AS "body!",
                  noted.number AS "number!", noted.replay AS "replay!",
                  extract(epoch FROM now() - coalesce(begun.due_at, now()))::float8 AS "lag!"
           FROM begun JOIN noted ON noted.delivery_id = begun.id
           UNION ALL
           SELECT d.id, d.job_id, d.url, d.sealed_secret, d.event_id, d.body, held.number, held.replay, 0::float8
           FROM held JOIN webhook_deliveries d ON d.id = held.id
           WHERE held.number IS NOT NULL AND d.body IS NOT NULL"#,
        &ids,
        &tokens,
        WEBHOOK_ATTEMPTS_MAX,
        finalized.as_secs_f64(),
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut begun: HashMap<Uuid, BeginResult> = rows
        .into_iter()
        .map(|row| {
            let attempt = Attempt {
                number: row.number,
                replay: row.replay,
                job_id: JobId(row.job_id),
                url: row.url,
                sealed_secret: row.sealed_secret,
                event_id: row.event_id,
                body: row.body,
                lag: crate::tasks::seconds(row.lag).unwrap_or_default(),
            };
            (row.id, BeginResult::Attempt(Box::new(attempt)))
        })
        .collect();
    if begun.len() < leased.len() {
        begun.extend(refusals(conn, &ids, &tokens).await?);
    }
    Ok(leased.iter().map(|leased| begun.remove(&leased.id).unwrap_or(BeginResult::LeaseLost)).collect())
}

/// Why attempts of deliveries that are still leased did not begin. Rarely called.
async fn refusals(conn: &mut PgConnection, ids: &[Uuid], tokens: &[Uuid]) -> Result<Vec<(Uuid, BeginResult)>> {
    let rows = sqlx::query!(
        r#"SELECT t.id, d.status IN ('pending', 'delivering') AND d.body IS NOT NULL AS "open"
           FROM unnest($1::uuid[], $2::uuid[]) h (id, lease_token)
           JOIN task_queue t ON t.id = h.id AND t.lease_token = h.lease_token
           LEFT JOIN webhook_deliveries d ON d.id = t.id
           WHERE d.id IS NULL OR d.status NOT IN ('pending', 'delivering') OR d.body IS NULL
              OR coalesce(d.replay_attempts, d.attempts) >= $3"#,
        ids,
        tokens,
        WEBHOOK_ATTEMPTS_MAX,
    )
    .fetch_all(conn)
    .await?;
    let refusal = |open: Option<bool>| if open == Some(true) { BeginResult::Spent } else { BeginResult::Gone };
    Ok(rows.into_iter().map(|row| (row.id, refusal(row.open))).collect())
}

/// Records results: the attempt's, the delivery's, and the task's end or pause, all or nothing for each delivery. Returns, in
/// the order of `outcomes`, `false` where the lease was lost and nothing was changed.
#[tracing::instrument(skip_all, name = "db.delivery.record")]
pub async fn record(conn: &mut PgConnection, outcomes: &[AttemptRecord]) -> Result<Vec<bool>> {
    let column = Columns::from_outcomes(outcomes);
    // Tasks are locked in the order of their ids, to avoid deadlocks between two such statements.
    let rows = sqlx::query!(
        r#"WITH result AS (
               SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::bool[], $5::int[], $6::text[], $7::text[],
                                    $8::text[], $9::float8[])
               r (id, lease_token, number, replay, http_status, error, status, error_code, after)
           ), held AS (
               SELECT t.id FROM task_queue t JOIN result r ON r.id = t.id AND r.lease_token = t.lease_token
               WHERE t.id = ANY($1) ORDER BY t.id FOR UPDATE OF t
           ), settled AS (
               DELETE FROM task_queue t USING held, result r WHERE t.id = held.id AND r.id = t.id AND r.after IS NULL
                 AND t.id = ANY($1)
           ), parked AS (
               UPDATE task_queue t
               SET state = 'parked', due_at = now() + make_interval(secs => r.after),
                   claims = 0, expired_leases = 0, lease_token = NULL, lease_until = NULL, lease_owner = NULL
               FROM held, result r
               WHERE t.id = held.id AND r.id = t.id AND r.after IS NOT NULL AND t.id = ANY($1)
           ), attempt AS (
               UPDATE webhook_attempts a SET finished_at = now(), status = r.http_status, error = r.error
               FROM held JOIN result r ON r.id = held.id
               WHERE a.delivery_id = r.id AND a.number = r.number AND a.replay = r.replay
           ), delivery AS (
               UPDATE webhook_deliveries d
               SET status = r.status,
                   replay_attempts = CASE WHEN r.after IS NULL THEN NULL ELSE d.replay_attempts END,
                   next_attempt_at = now() + make_interval(secs => r.after),
                   delivered_at = CASE WHEN r.status = 'delivered' THEN now() ELSE d.delivered_at END,
                   last_status = CASE WHEN r.number IS NULL THEN d.last_status ELSE r.http_status END,
                   error_code = r.error_code
               FROM held JOIN result r ON r.id = held.id
               WHERE d.id = held.id
           )
           SELECT id AS "id!" FROM held"#,
        &column.ids,
        &column.lease_tokens,
        &column.numbers as &[Option<i32>],
        &column.replays as &[Option<bool>],
        &column.http_statuses as &[Option<i32>],
        &column.errors as &[Option<&str>],
        &column.statuses as &[&str],
        &column.error_codes as &[Option<&str>],
        &column.afters as &[Option<f64>],
    )
    .fetch_all(conn)
    .await?;
    Ok(outcomes.iter().map(|outcome| rows.iter().any(|row| row.id == outcome.leased.id)).collect())
}

/// Outcomes as the columns that one statement takes.
#[derive(Default)]
struct Columns<'a> {
    ids: Vec<Uuid>,
    lease_tokens: Vec<Uuid>,
    numbers: Vec<Option<i32>>,
    replays: Vec<Option<bool>>,
    http_statuses: Vec<Option<i32>>,
    errors: Vec<Option<&'a str>>,
    statuses: Vec<&'static str>,
    error_codes: Vec<Option<&'static str>>,
    afters: Vec<Option<f64>>,
}

impl Columns<'_> {
    fn from_outcomes(outcomes: &[AttemptRecord]) -> Self {
        let mut columns = Self::default();
        for outcome in outcomes {
            let (status, error_code, after) = match outcome.next {
                Next::Delivered => (DeliveryStatus::Delivered, None, None),
                Next::Failed(code) => (DeliveryStatus::Failed, Some(code.as_str()), None),
                Next::RetryAfter(after) => (DeliveryStatus::Pending, None, Some(after.as_secs_f64())),
            };
            columns.ids.push(outcome.leased.id);
            columns.lease_tokens.push(outcome.leased.lease_token);
            columns.numbers.push(outcome.attempt.map(|(number, _)| number));
            columns.replays.push(outcome.attempt.map(|(_, replay)| replay));
            columns.http_statuses.push(outcome.status.map(i32::from));
            columns.errors.push(outcome.error);
            columns.statuses.push(status.as_str());
            columns.error_codes.push(error_code);
            columns.afters.push(after);
        }
        columns
    }
}
