//! A job's row, joined with the state of its webhook.

use std::collections::HashMap;

use domain::id::{AccountUid, CanvasHandle, CanvasId, JobId};
use domain::job::{JobOutcome, Record, Request};
use domain::webhook::{DeliveryState, DeliveryStatus};
use sqlx::PgConnection;
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::error::known;
use crate::{Result, deliveries};

/// Conditions on the job that [`read`] returns.
#[derive(Default)]
pub(super) struct JobFilter<'a> {
    /// It belongs to this account.
    pub account: Option<&'a AccountUid>,
    /// This lease on its task is current.
    pub lease_token: Option<Uuid>,
    /// It has ended, and no worker has its task.
    pub is_ended: bool,
}

/// Reads the row of a job.
///
/// What is wanted is tested in sub-selects, so that the plan is reused (see `accounts::authenticate`).
pub(super) async fn read(conn: &mut PgConnection, id: JobId, wanted: JobFilter<'_>) -> Result<Option<JobRow>> {
    let row = sqlx::query_as!(
        JobRow,
        r#"SELECT j.id, j.account_uid, j.kind, j.operation, j.status, j.version, j.canvas_owner, j.canvas_id, j.canvas_revision,
                  j.request AS "request: _", j.outcome AS "outcome: _", j.estimated_seconds, j.credit_cost, j.progress,
                  j.cancel_reason, j.created_at, j.updated_at, j.queued_at, j.started_at, j.completed_at, j.finalized_at,
                  j.retain_until, extract(epoch FROM now() - j.retain_until)::float8 AS overdue_seconds,
                  CASE WHEN j.kind = 'video' THEN (SELECT o.run ->> 'id' FROM job_outputs o
                                                   WHERE o.job_id = j.id AND o.position = 0) END AS provider_run,
                  d.id AS "delivery_id?", d.status AS "delivery_status?", d.attempts AS "attempts?", d.next_attempt_at,
                  d.last_attempt_at, d.delivered_at, d.last_status, d.error_code
           FROM jobs j LEFT JOIN webhook_deliveries d ON d.job_id = j.id
           WHERE j.id = $1 AND ((SELECT $2::text) IS NULL OR j.account_uid = $2)
             AND ((SELECT $3::uuid) IS NULL OR EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $3))
             AND (NOT (SELECT $4::boolean) OR j.completed_at IS NOT NULL AND NOT EXISTS (SELECT FROM task_queue t WHERE t.id = $1))"#,
        id.0,
        wanted.account.map(AccountUid::as_str),
        wanted.lease_token,
        wanted.is_ended,
    );
    Ok(row.fetch_optional(conn).await?)
}

pub(super) struct JobRow {
    pub id: Uuid,
    pub account_uid: String,
    pub kind: String,
    pub operation: String,
    pub status: String,
    pub version: i32,
    pub canvas_owner: Option<String>,
    pub canvas_id: Option<String>,
    pub canvas_revision: Option<String>,
    pub request: Json<Request>,
    pub outcome: Option<Json<JobOutcome>>,
    pub estimated_seconds: i32,
    pub credit_cost: i64,
    pub progress: f64,
    pub provider_run: Option<String>,
    pub cancel_reason: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub queued_at: Option<DateTime<Utc>>,
    pub started_at: Option<DateTime<Utc>>,
    pub completed_at: Option<DateTime<Utc>>,
    pub finalized_at: Option<DateTime<Utc>>,
    pub retain_until: Option<DateTime<Utc>>,
    /// Seconds since `retain_until` passed; negative before.
    pub overdue_seconds: Option<f64>,
    pub delivery_id: Option<Uuid>,
    pub delivery_status: Option<String>,
    pub attempts: Option<i32>,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub last_attempt_at: Option<DateTime<Utc>>,
    pub delivered_at: Option<DateTime<Utc>>,
    pub last_status: Option<i32>,
    pub error_code: Option<String>,
}

impl JobRow {
    /// Converts the row into a record.
    pub fn record(self) -> Result<Record> {
        let webhook = match (self.delivery_id, self.delivery_status, self.attempts) {
            (Some(id), Some(status), Some(attempts)) => {
                let status = known("webhook_deliveries.status", &status)?;
                Some(DeliveryState {
                    id: deliveries::handle(id),
                    status,
                    attempts,
                    next_attempt_at: self.next_attempt_at.filter(|_| status == DeliveryStatus::Pending).map(Into::into),
                    last_attempt_at: self.last_attempt_at.map(Into::into),
                    delivered_at: self.delivered_at.map(Into::into),
                    last_status: self.last_status,
                    error_code: self
                        .error_code
                        .as_deref()
                        .map(|code| known("webhook_deliveries.error_code", code))
                        .transpose()?,
                })
            }
            _ => None,
        };
        let canvas = self
            .canvas_owner
            .zip(self.canvas_id)
            .map(|(owner, id)| CanvasHandle { owner: AccountUid::from_stored(owner), id: CanvasId::from_stored(id) });
        Ok(Record {
            id: JobId(self.id),
            account: AccountUid::from_stored(self.account_uid),
            kind: known("jobs.kind", &self.kind)?,
            operation: known("jobs.operation", &self.operation)?,
            status: known("jobs.status", &self.status)?,
            version: self.version,
            canvas,
            canvas_revision: self.canvas_revision,
            request: self.request.0,
            outcome: self.outcome.map(|outcome| outcome.0).unwrap_or_default(),
            estimated_seconds: self.estimated_seconds,
            credit_cost: self.credit_cost,
            progress: self.progress,
            provider_run: self.provider_run,
            cancel_reason: self
                .cancel_reason
                .as_deref()
                .map(|reason| known("jobs.cancel_reason", reason))
                .transpose()?,
            created_at: self.created_at.into(),
            updated_at: self.updated_at.into(),
            queued_at: self.queued_at.map(Into::into),
            started_at: self.started_at.map(Into::into),
            completed_at: self.completed_at.map(Into::into),
            finalized_at: self.finalized_at.map(Into::into),
            webhook,
            waiting_for: None,
            preview_epochs: HashMap::new(),
        })
    }
}
