//! The list of an account's jobs and Recipe runs (docs/reference/jobs.md#list-runs).

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::Timestamp;
use domain::id::{AccountUid, AssetHandle, CanvasHandle, CanvasId, JobId};
use domain::job::{JobStatus, OutputCounts, RunKind, RunSummary, WorkOperation};
use domain::limits::{RUN_RESULTS_MAX, RUN_TITLE_MAX};
use domain::model::STAND_INS;
use domain::recipe::run::RunId;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::error::known;
use crate::{Error, Result};

/// Between the slugs of the Actions of a job.
pub const ACTIONS_APART: &str = ", ";

/// The filter of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    pub kind: Option<RunKind>,
    /// The status that a read shows.
    pub status: Option<JobStatus>,
    /// Key of the canvas that the work writes to or names.
    pub canvas_key: Option<i64>,
}

/// Position in the list: after the record that was accepted at this time and has this id.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct After {
    pub created_at: Timestamp,
    pub id: Uuid,
}

struct Row {
    id: Uuid,
    kind: String,
    operation: String,
    status: String,
    canvas_owner: Option<String>,
    canvas_id: Option<String>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    credit_cost: i64,
    total: i64,
    done: i64,
    failed: i64,
    stand_in: bool,
    title: Option<String>,
    model: Option<String>,
    results: Vec<String>,
}

impl Row {
    fn summary(self) -> Result<(After, RunSummary)> {
        let kind = known("jobs.kind", &self.kind)?;
        let (id, handle) = match kind {
            RunKind::Recipe => (RunId(self.id).to_string(), RunId(self.id).handle()),
            RunKind::Video => (self.id.to_string(), JobId(self.id).job_handle()),
            RunKind::Image | RunKind::Action => (self.id.to_string(), JobId(self.id).run_handle()),
        };
        let canvas = self.canvas_owner.zip(self.canvas_id);
        let operation: WorkOperation = known("jobs.operation", &self.operation)?;
        let title = self.title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
        let count = |count: i64| u32::try_from(count).unwrap_or_default();
        let summary = RunSummary {
            id,
            handle,
            kind,
            operation,
            title: title.filter(|title| !title.is_empty()).unwrap_or_else(|| operation.to_string()),
            model: self.model,
            status: known("jobs.status", &self.status)?,
            canvas_id: canvas.map(|(owner, id)| CanvasHandle {
                owner: AccountUid::from_stored(owner),
                id: CanvasId::from_stored(id),
            }),
            created_at: self.created_at.into(),
            updated_at: self.updated_at.into(),
            credit_cost: self.credit_cost,
            outputs: OutputCounts { total: count(self.total), done: count(self.done), failed: count(self.failed) },
            results: self.results.into_iter().map(asset).collect::<Result<_>>()?,
            stand_in: self.stand_in,
            waiting_for: None,
        };
        Ok((After { created_at: summary.created_at, id: self.id }, summary))
    }
}

fn asset(handle: String) -> Result<AssetHandle> {
    AssetHandle::try_from(handle.clone()).map_err(|_| Error::Unreadable { column: "jobs.outcome", value: handle })
}

/// Lists at most `limit` of the account's jobs and Recipe runs, newest first, with the position of each. Jobs of Recipe runs are
/// part of their run. Retention is applied as of this moment, as in [`jobs::get`](crate::jobs::get); `tombstone` is how long an
/// expired record is kept. The title of an Action job is the slugs of its Actions, joined by [`ACTIONS_APART`].
///
/// Each branch reads one index in order and stops at the limit, so that the cost does not depend on the number of records, unless
/// a filter matches few of them.
#[instrument(skip_all, name = "db.run.list")]
pub async fn list(
    conn: &mut PgConnection,
    account: &AccountUid,
    filter: Filter,
    after: Option<&After>,
    limit: i64,
    tombstone: Duration,
) -> Result<Vec<(After, RunSummary)>> {
    let stand_ins = STAND_INS.map(str::to_owned);
    let rows = sqlx::query_as!(
        Row,
        r#"WITH of_jobs AS (
               SELECT j.id, j.kind, j.operation, shown.status, coalesce(j.canvas_owner, about.owner_uid) AS canvas_owner,
                      coalesce(j.canvas_id, about.id) AS canvas_id, j.created_at,
                      CASE WHEN j.status = 'succeeded' AND shown.status = 'expired' THEN j.retain_until ELSE j.updated_at END AS updated_at,
                      j.credit_cost, counted.total, counted.done,
                      CASE WHEN j.status = 'failed' THEN counted.total - counted.done
                           ELSE (SELECT count(*) FROM job_outputs o WHERE o.job_id = j.id AND o.state = 'failed')
                           END AS failed,
                      j.request #>> '{model,provider}' = 'managed'
                          AND j.request #>> '{model,id}' = ANY ($8) AS stand_in,
                      CASE WHEN j.kind <> 'action' THEN left(j.request ->> 'prompt', $10)
                           ELSE coalesce((SELECT string_agg(step ->> 'slug', $11 ORDER BY place)
                                          FROM jsonb_array_elements(j.request -> 'steps') WITH ORDINALITY AS s (step, place)),
                                         j.request ->> 'slug') END AS title,
                      j.request #>> '{model,id}' AS model,
                      ARRAY(SELECT made.handle
                            FROM (SELECT image ->> 'asset', place
                                  FROM jsonb_array_elements(j.outcome -> 'images') WITH ORDINALITY AS i (image, place)
                                  UNION ALL SELECT j.outcome #>> '{video,asset}', 1) AS made (handle, place)
                            JOIN assets a ON a.owner_uid = split_part(made.handle, ':', 2) AND a.id = split_part(made.handle, ':', 3)
                            WHERE a.owner_uid = $1
                               OR EXISTS (SELECT FROM canvas_shares s WHERE s.canvas_key = a.canvas_key AND s.account_uid = $1)
                            ORDER BY made.place LIMIT $12) AS results
               FROM jobs j
               -- The canvas that a video without a target named.
               LEFT JOIN canvases about ON about.key = j.about_canvas AND j.canvas_owner IS NULL
               CROSS JOIN LATERAL (
                   SELECT CASE WHEN j.kind = 'video' AND j.status IN ('finalizing', 'canceling') THEN 'running'
                               WHEN j.kind <> 'video' AND j.status = 'succeeded' AND j.retain_until <= now() THEN 'expired'
                               ELSE j.status END AS status
               ) AS shown
               CROSS JOIN LATERAL (
                   SELECT CASE WHEN j.request ? 'targets' THEN jsonb_array_length(j.request -> 'targets') ELSE 1 END AS total,
                          CASE WHEN j.completed_at IS NULL
                               THEN (SELECT count(*) FROM job_outputs o WHERE o.job_id = j.id AND o.state = 'stored')
                               WHEN j.outcome ? 'images' THEN jsonb_array_length(j.outcome -> 'images')
                               WHEN j.outcome ? 'video' THEN 1 ELSE 0 END AS done
               ) AS counted
               WHERE j.account_uid = $1 AND j.recipe_run IS NULL
                 AND ((SELECT $2::text) IS NULL OR j.kind = $2)
                 AND ((SELECT $3::text) IS NULL OR shown.status = $3)
                 AND ((SELECT $4::bigint) IS NULL OR j.canvas_key = $4 OR j.about_canvas = $4)
                 AND (j.created_at, j.id) < ((SELECT coalesce($5::timestamptz, 'infinity')), (SELECT coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')))
                 AND (j.retain_until IS NULL
                      OR j.retain_until > now() - CASE WHEN j.kind <> 'video' AND j.status = 'succeeded'
                                                       THEN make_interval(secs => $9) ELSE interval '0' END)
               ORDER BY j.created_at DESC, j.id DESC LIMIT $7
           ), of_runs AS (
               SELECT r.id, 'recipe' AS kind, 'recipe' AS operation, r.status, r.canvas_owner, r.canvas_id, r.created_at,
                      r.updated_at,
                      -- As in `recipe_runs::get`.
                      (SELECT coalesce(-sum(l.amount), 0)::bigint FROM ledger l
                       WHERE l.job_id = ANY (r.id || ARRAY(SELECT o.job_id FROM recipe_run_outputs o
                                                           WHERE o.run_id = r.id))) AS credit_cost,
                      (SELECT count(*) FROM recipe_run_outputs o WHERE o.run_id = r.id) AS total,
                      (SELECT count(*) FROM recipe_run_outputs o WHERE o.run_id = r.id AND o.status = 'succeeded') AS done,
                      (SELECT count(*) FROM recipe_run_outputs o WHERE o.run_id = r.id AND o.status = 'failed') AS failed,
                      EXISTS (SELECT FROM jsonb_path_query(r.plan, '$.steps[*].model') AS m
                              WHERE m ->> 'provider' = 'managed' AND m ->> 'id' = ANY ($8)) AS stand_in,
                      (SELECT left(v.definition ->> 'name', $10) FROM recipe_versions v
                       WHERE v.recipe_id = r.recipe_id AND v.version = r.recipe_version) AS title,
                      NULL AS model,
                      ARRAY(SELECT 'asset:' || a.owner_uid || ':' || a.id
                            FROM recipe_run_outputs o JOIN assets a ON a.owner_uid = o.asset_owner AND a.id = o.asset_id
                            WHERE o.run_id = r.id AND (a.owner_uid = $1
                               OR EXISTS (SELECT FROM canvas_shares s WHERE s.canvas_key = a.canvas_key AND s.account_uid = $1))
                            ORDER BY o.position LIMIT $12) AS results
               FROM recipe_runs r
               WHERE r.account_uid = $1
                 AND ((SELECT $2::text) IS NULL OR $2 = 'recipe')
                 AND ((SELECT $3::text) IS NULL OR r.status = $3)
                 AND ((SELECT $4::bigint) IS NULL OR r.canvas_key = $4)
                 AND (r.created_at, r.id) < ((SELECT coalesce($5::timestamptz, 'infinity')), (SELECT coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')))
               ORDER BY r.created_at DESC, r.id DESC LIMIT $7
           )
           SELECT id AS "id!", kind AS "kind!", operation AS "operation!", status AS "status!", canvas_owner, canvas_id,
                  created_at AS "created_at!", updated_at AS "updated_at!", credit_cost AS "credit_cost!", total AS "total!",
                  done AS "done!", failed AS "failed!", coalesce(stand_in, false) AS "stand_in!",
                  title, model, results AS "results!"
           FROM (SELECT * FROM of_jobs UNION ALL SELECT * FROM of_runs) AS listed
           ORDER BY created_at DESC, id DESC LIMIT $7"#,
        account.as_str(),
        filter.kind.map(RunKind::as_str),
        filter.status.map(JobStatus::as_str),
        filter.canvas_key,
        after.map(|after| after.created_at.get()),
        after.map(|after| after.id),
        limit,
        &stand_ins,
        tombstone.as_secs_f64(),
        RUN_TITLE_MAX,
        ACTIONS_APART,
        RUN_RESULTS_MAX,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Row::summary).collect()
}
