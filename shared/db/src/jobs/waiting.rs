//! Videos that a provider is working on, many in one statement, which limits the load of ten thousand of them on the database.
//!
//! **Guarantee.** As for a single output ([`super::outputs`]): nothing is read or changed without the lease of the job's task.
//!
//! **Mechanism.** A worker that holds many such jobs reads in one statement what a poll of all of them needs, and in another
//! reschedules those for which the provider has no news. A job that ends leaves this path and is handled like any other.

use std::time::Duration;

use domain::id::{AccountUid, JobId};
use domain::job::ChosenModel;
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::Result;
use crate::connections::Credentials;
use crate::error::known;
use crate::tasks::seconds;

/// A video job that a provider is working on, with the fields that a poll needs.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Id of the job.
    pub id: JobId,
    /// The account that owns it.
    pub account: AccountUid,
    /// The model that makes the video.
    pub model: ChosenModel,
    /// The saved connection's credentials; `None` for a managed model, and when the connection was deleted.
    pub credentials: Option<Credentials>,
    /// The provider's run, as it was recorded.
    pub run: Value,
    /// Time until the next poll is due.
    pub due_in: Duration,
    /// Time since the provider's run was recorded.
    pub running_for: Duration,
}

/// Returns those of the jobs `(id, lease token)` that only wait for a provider: running, submitted, not to be canceled and not
/// overdue, under a current lease.
#[tracing::instrument(skip_all, name = "db.job.waiting.look")]
pub async fn look(conn: &mut PgConnection, held: &[(Uuid, Uuid)]) -> Result<Vec<Waiting>> {
    let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = held.iter().copied().unzip();
    let rows = sqlx::query!(
        r#"SELECT j.id, j.account_uid, j.request -> 'model' AS "model!: Json<ChosenModel>", o.run AS "run!",
                  extract(epoch FROM o.due_at - now())::float8 AS "due_in!",
                  coalesce(extract(epoch FROM now() - o.submitted_at), 0)::float8 AS "running_for!",
                  c.provider AS "provider?", c.base_url AS "base_url?", c.sealed_key AS "sealed_key?"
           FROM unnest($1::uuid[], $2::uuid[]) AS held(id, token)
           JOIN task_queue t ON t.id = held.id AND t.lease_token = held.token AND NOT t.cancel_requested
           JOIN jobs j ON j.id = t.id AND j.kind = 'video' AND j.status = 'running'
           JOIN job_outputs o ON o.job_id = j.id AND o.position = 0 AND o.state = 'submitted' AND o.run IS NOT NULL
                             AND o.deadline_at > now()
           LEFT JOIN provider_connections c ON c.account_uid = j.account_uid
                                           AND c.id::text = j.request #>> '{model,connection}'"#,
        &ids,
        &tokens,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let credentials = match (row.provider, row.sealed_key) {
                (Some(provider), Some(sealed_key)) => Some(Credentials {
                    provider: known("provider_connections.provider", &provider)?,
                    base_url: row.base_url,
                    sealed_key,
                }),
                _ => None,
            };
            Ok(Waiting {
                id: JobId(row.id),
                account: AccountUid::from_stored(row.account_uid),
                model: row.model.0,
                credentials,
                run: row.run,
                due_in: seconds(row.due_in).unwrap_or_default(),
                running_for: seconds(row.running_for).unwrap_or_default(),
            })
        })
        .collect()
}

/// A job whose provider has not finished.
#[derive(Clone, Copy, Debug)]
pub struct Unfinished {
    /// Id of the job.
    pub id: JobId,
    /// Fencing token of its task.
    pub lease_token: Uuid,
    /// Time until the next poll.
    pub due_in: Duration,
    /// Progress in percent, if the provider reports it.
    pub percent: Option<f64>,
}

/// Reschedules the next poll of each and records its progress, which never decreases. Returns the jobs whose progress
/// increased, with their accounts. The caller reschedules their tasks ([`crate::tasks::reschedule_all`]).
#[tracing::instrument(skip_all, name = "db.job.waiting.put_off")]
pub async fn put_off(conn: &mut PgConnection, unfinished: &[Unfinished]) -> Result<Vec<(AccountUid, JobId)>> {
    let ids: Vec<Uuid> = unfinished.iter().map(|it| it.id.0).collect();
    let tokens: Vec<Uuid> = unfinished.iter().map(|it| it.lease_token).collect();
    let due_in: Vec<f64> = unfinished.iter().map(|it| it.due_in.as_secs_f64()).collect();
    let percents: Vec<Option<f64>> =
        unfinished.iter().map(|it| it.percent.and_then(super::work::unfinished_percent)).collect();
    let further = sqlx::query!(
        "WITH held AS (
             SELECT told.id, told.due_in, told.percent
             FROM unnest($1::uuid[], $2::uuid[], $3::float8[], $4::float8[]) AS told(id, token, due_in, percent)
             JOIN task_queue t ON t.id = told.id AND t.lease_token = told.token
         ), put_off AS (
             UPDATE job_outputs o SET due_at = now() + make_interval(secs => held.due_in)
             FROM held WHERE o.job_id = held.id AND o.position = 0 AND o.state = 'submitted'
         )
         UPDATE jobs j SET progress = held.percent, version = version + 1, updated_at = now()
         FROM held WHERE j.id = held.id AND j.kind = 'video' AND j.status = 'running' AND j.progress < held.percent
         RETURNING j.account_uid, j.id",
        &ids,
        &tokens,
        &due_in,
        &percents as &[Option<f64>],
    )
    .fetch_all(conn)
    .await?;
    Ok(further.into_iter().map(|row| (AccountUid::from_stored(row.account_uid), JobId(row.id))).collect())
}
