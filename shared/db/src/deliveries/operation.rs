//! Deliveries as operators and their accounts list and replay them, and the removal of old ones.

use domain::Timestamp;
use domain::id::{AccountUid, JobId};
use domain::recipe::run::RunId;
use domain::webhook::{Delivery, DeliveryState, DeliveryStatus};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::error::known;

/// Days that a delivery is kept after its last attempt. Equal to the retention of idempotency keys, so that a replayed start
/// can show the delivery state.
const KEPT_DAYS: i32 = 30;

/// A delivery as a list shows it, without endpoint and secret.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedDelivery {
    /// Id of the delivery, without `webhook:`.
    pub id: Uuid,
    /// The account whose run it is.
    pub account: AccountUid,
    /// The run or video job whose end is announced.
    pub job_id: JobId,
    /// The form of its handle.
    form: HandleForm,
    /// State of the delivery.
    pub state: DeliveryState,
    /// When the run was started.
    pub created_at: Timestamp,
}

/// The forms of the handles of what a delivery announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandleForm {
    Run,
    Recipe,
    Video,
}

impl ListedDelivery {
    /// The handle under which that is read whose end is announced: of a run, or of a video job.
    pub fn handle(&self) -> String {
        match self.form {
            HandleForm::Run => self.job_id.run_handle(),
            HandleForm::Recipe => RunId(self.job_id.0).handle(),
            HandleForm::Video => self.job_id.job_handle(),
        }
    }

    /// As its account sees it.
    pub fn served(self) -> Delivery {
        Delivery { run: self.handle(), webhook: self.state, created_at: self.created_at }
    }
}

/// Position of a page of deliveries: after the delivery that was created at this time, with this id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct After {
    /// When the last delivery was created.
    pub created_at: Timestamp,
    /// Id of the last delivery.
    pub id: Uuid,
}

impl After {
    /// The position after a delivery.
    pub fn of(delivery: &ListedDelivery) -> Self {
        Self { created_at: delivery.created_at, id: delivery.id }
    }
}

/// Lists at most `limit` deliveries, newest first, of one account or all, in one state or any.
#[tracing::instrument(skip_all, name = "db.delivery.list")]
pub async fn list(
    conn: &mut PgConnection,
    account: Option<&AccountUid>,
    status: Option<DeliveryStatus>,
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<ListedDelivery>> {
    let rows = sqlx::query!(
        r#"SELECT d.id, d.account_uid, d.job_id, r.id IS NOT NULL AS "is_recipe!",
                  coalesce(d.event_type LIKE 'video_job.%', j.kind = 'video', false) AS "is_video!", d.status, d.attempts, d.next_attempt_at,
                  d.last_attempt_at, d.delivered_at, d.last_status, d.error_code, d.created_at
           FROM webhook_deliveries d LEFT JOIN recipe_runs r ON r.id = d.job_id LEFT JOIN jobs j ON j.id = d.job_id
           WHERE ($1::text IS NULL OR d.account_uid = $1) AND ($2::text IS NULL OR d.status = $2)
             AND ($3::timestamptz IS NULL OR (d.created_at, d.id) < ($3, $4))
           ORDER BY d.created_at DESC, d.id DESC LIMIT $5"#,
        account.map(AccountUid::as_str),
        status.map(DeliveryStatus::as_str),
        after.map(|after| after.created_at.get()),
        after.map(|after| after.id),
        limit,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(ListedDelivery {
                id: row.id,
                account: AccountUid::from_stored(row.account_uid),
                job_id: JobId(row.job_id),
                form: match (row.is_recipe, row.is_video) {
                    (true, _) => HandleForm::Recipe,
                    (_, true) => HandleForm::Video,
                    _ => HandleForm::Run,
                },
                state: DeliveryState {
                    id: super::handle(row.id),
                    status: known("webhook_deliveries.status", &row.status)?,
                    attempts: row.attempts,
                    next_attempt_at: row.next_attempt_at.map(Timestamp::from),
                    last_attempt_at: row.last_attempt_at.map(Timestamp::from),
                    delivered_at: row.delivered_at.map(Timestamp::from),
                    last_status: row.last_status,
                    error_code: row.error_code.map(|code| known("webhook_deliveries.error_code", &code)).transpose()?,
                },
                created_at: row.created_at.into(),
            })
        })
        .collect()
}

/// Id of the delivery of a run.
#[tracing::instrument(skip_all, name = "db.delivery.of_run")]
pub async fn of_run(conn: &mut PgConnection, run: JobId) -> Result<Option<Uuid>> {
    let id = sqlx::query_scalar!("SELECT id FROM webhook_deliveries WHERE job_id = $1", run.0);
    Ok(id.fetch_optional(conn).await?)
}

/// Ids of at most `limit` of an account's failed deliveries that have an event to send, oldest first; with `since` only those of runs that were started then
/// or later.
#[tracing::instrument(skip_all, name = "db.delivery.failed")]
pub async fn failed(
    conn: &mut PgConnection,
    account: &AccountUid,
    since: Option<Timestamp>,
    limit: i64,
) -> Result<Vec<Uuid>> {
    let ids = sqlx::query_scalar!(
        "SELECT id FROM webhook_deliveries WHERE account_uid = $1 AND status = 'failed' AND event_id IS NOT NULL
           AND ($2::timestamptz IS NULL OR created_at >= $2)
         ORDER BY created_at, id LIMIT $3",
        account.as_str(),
        since.map(Timestamp::get),
        limit
    );
    Ok(ids.fetch_all(conn).await?)
}

/// Result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// One more attempt of the same event is enqueued; the delivery now has this state. The caller announces it after the commit.
    Enqueued(DeliveryStatus),
    /// The delivery is not finished; this is its state.
    Unfinished(DeliveryStatus),
    /// The run was abandoned without an event, so there is nothing to send.
    WithoutEvent,
}

/// Enqueues one more attempt of a delivery that is delivered or failed, with the same event id and body and a new signature.
/// The attempt is recorded separately and not counted. Returns the account of the delivery; `None` when there is no such delivery, or not
/// of `account` if one is named.
#[tracing::instrument(skip_all, name = "db.delivery.replay")]
pub async fn replay(
    conn: &mut PgConnection,
    id: Uuid,
    account: Option<&AccountUid>,
) -> Result<Option<(AccountUid, Replay)>> {
    let row = sqlx::query!(
        "SELECT account_uid, url, status, event_id FROM webhook_deliveries
         WHERE id = $1 AND ($2::text IS NULL OR account_uid = $2) FOR UPDATE",
        id,
        account.map(AccountUid::as_str),
    );
    let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(None) };
    let status: DeliveryStatus = known("webhook_deliveries.status", &row.status)?;
    let account = AccountUid::from_stored(row.account_uid);
    if !matches!(status, DeliveryStatus::Delivered | DeliveryStatus::Failed) {
        return Ok(Some((account, Replay::Unfinished(status))));
    }
    if row.event_id.is_none() {
        return Ok(Some((account, Replay::WithoutEvent)));
    }
    sqlx::query!(
        "UPDATE webhook_deliveries
         SET status = 'pending', replay_attempts = 0, next_attempt_at = now(), error_code = NULL
         WHERE id = $1",
        id,
    )
    .execute(&mut *conn)
    .await?;
    super::enqueue(conn, id, &row.url, account.as_str(), None).await?;
    Ok(Some((account, Replay::Enqueued(DeliveryStatus::Pending))))
}

/// Removes at most `limit` deliveries that finished 30 days ago or earlier. Returns the number removed.
#[tracing::instrument(skip_all, name = "db.delivery.sweep")]
pub async fn sweep(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let removed = sqlx::query!(
        "DELETE FROM webhook_deliveries WHERE id IN (
             SELECT id FROM webhook_deliveries
             WHERE created_at < now() - make_interval(days => $1) AND status IN ('delivered', 'failed')
               AND coalesce(last_attempt_at, created_at) < now() - make_interval(days => $1)
             ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        KEPT_DAYS,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(removed.rows_affected())
}
