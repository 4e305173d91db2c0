//! The present state of what event streams follow, for any number of followers in one statement.

use domain::canvas::AccessRole;
use domain::id::{AccountUid, CanvasHandle, CanvasId, JobId};
use domain::job::{JobStatus, RunKind};
use domain::recipe::run::RunId;
use domain::stream::RunStreamEvent;
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::error::known;

/// A canvas as one account follows it.
pub type FollowedCanvas = (CanvasHandle, AccountUid);

/// State of a canvas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanvasState {
    /// Key of the row: another canvas under the same handle has another key.
    pub key: i64,
    /// Number of the revision: it grows with each one.
    pub sequence: i64,
    pub revision: String,
    /// Role of the account that follows it.
    pub role: AccessRole,
}

/// Reads the state of each canvas, in the given order; `None` when its account has no role on it or it does not exist.
#[instrument(skip_all, name = "db.streams.canvases")]
pub async fn canvases(conn: &mut PgConnection, followed: &[FollowedCanvas]) -> Result<Vec<Option<CanvasState>>> {
    let owners: Vec<&str> = followed.iter().map(|(canvas, _)| canvas.owner.as_str()).collect();
    let ids: Vec<&str> = followed.iter().map(|(canvas, _)| canvas.id.as_str()).collect();
    let accounts: Vec<&str> = followed.iter().map(|(_, account)| account.as_str()).collect();
    let rows = sqlx::query!(
        r#"SELECT f.place AS "place!", c.key, c.sequence, c.revision,
                  CASE WHEN f.account_uid = c.owner_uid THEN 'owner' ELSE s.role END AS "role!"
           FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS f (owner_uid, id, account_uid, place)
           JOIN canvases c ON c.owner_uid = f.owner_uid AND c.id = f.id
           LEFT JOIN canvas_shares s ON s.canvas_key = c.key AND s.account_uid = f.account_uid
           WHERE f.account_uid = c.owner_uid OR s.role IS NOT NULL"#,
        &owners as &[&str],
        &ids as &[&str],
        &accounts as &[&str],
    )
    .fetch_all(conn)
    .await?;
    let mut states = vec![None; followed.len()];
    for row in rows {
        let place = usize::try_from(row.place - 1).unwrap_or(usize::MAX);
        if let Some(state) = states.get_mut(place) {
            let role = known("canvas_shares.role", &row.role)?;
            *state = Some(CanvasState { key: row.key, sequence: row.sequence, revision: row.revision, role });
        }
    }
    Ok(states)
}

/// State of a run or job.
#[derive(Clone, Debug, PartialEq)]
pub struct RunState {
    /// The account that started it.
    pub account: AccountUid,
    pub id: Uuid,
    /// Version of its record, which grows with each visible change.
    pub version: i32,
    pub event: RunStreamEvent,
}

impl RunState {
    /// Returns `true` if the work is over.
    pub fn is_over(&self) -> bool {
        self.event.status.is_terminal()
    }
}

/// Reads the runs and jobs of accounts that are not over, those whose id is not below `since`, and those of `more`. Steps of
/// Recipe runs and expired records are left out.
#[instrument(skip_all, name = "db.streams.runs")]
pub async fn runs(
    conn: &mut PgConnection,
    accounts: &[AccountUid],
    since: Uuid,
    more: &[Uuid],
) -> Result<Vec<RunState>> {
    let accounts: Vec<&str> = accounts.iter().map(AccountUid::as_str).collect();
    // The ids come first, each by an index of its own: a condition with OR reads every record of an account.
    let rows = sqlx::query!(
        r#"WITH job_ids AS (
               SELECT id FROM jobs WHERE account_uid = ANY($1) AND completed_at IS NULL
               UNION SELECT id FROM jobs WHERE account_uid = ANY($1) AND id >= $2
               UNION SELECT unnest($3::uuid[])
           ), run_ids AS (
               SELECT id FROM recipe_runs WHERE account_uid = ANY($1) AND status IN ('queued', 'running')
               UNION SELECT id FROM recipe_runs WHERE account_uid = ANY($1) AND id >= $2
               UNION SELECT unnest($3::uuid[])
           )
           SELECT j.account_uid AS "account_uid!", j.id AS "id!", j.kind AS "kind!", j.status AS "status!",
                  j.version AS "version!", j.progress AS "progress!", j.canvas_owner, j.canvas_id,
                  CASE WHEN j.kind = 'image' THEN greatest(jsonb_array_length(j.request -> 'targets'), 1) ELSE 1 END::bigint
                      AS "total!",
                  CASE WHEN j.status = 'succeeded' THEN NULL
                       WHEN j.completed_at IS NOT NULL THEN coalesce(jsonb_array_length(j.outcome -> 'images'), 0)
                       ELSE (SELECT count(*) FROM job_outputs o WHERE o.job_id = j.id AND o.state = 'stored')
                  END::bigint AS done
           FROM job_ids JOIN jobs j USING (id)
           WHERE j.account_uid = ANY($1) AND j.recipe_run IS NULL AND j.status <> 'expired'
           UNION ALL
           SELECT r.account_uid, r.id, 'recipe', r.status, r.version, 0, r.canvas_owner, r.canvas_id,
                  count(o.position), count(o.position) FILTER (WHERE o.status = 'succeeded')
           FROM run_ids JOIN recipe_runs r USING (id) LEFT JOIN recipe_run_outputs o ON o.run_id = r.id
           WHERE r.account_uid = ANY($1)
           GROUP BY r.id
           ORDER BY 2"#,
        &accounts as &[&str],
        since,
        more,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let kind = known("jobs.kind", &row.kind)?;
            let status = match (kind, known("jobs.status", &row.status)?) {
                // As in the record of a video.
                (RunKind::Video, JobStatus::Canceling) | (_, JobStatus::Finalizing) => JobStatus::Running,
                (_, status) => status,
            };
            let (total, done) = (row.total.max(1), row.done.unwrap_or(row.total));
            let progress = match kind {
                RunKind::Video if status != JobStatus::Succeeded => row.progress,
                // There are at most a few thousand outputs.
                _ => done as f64 * 100.0 / total as f64,
            };
            let canvas = row.canvas_owner.zip(row.canvas_id).map(|(owner, id)| CanvasHandle {
                owner: AccountUid::from_stored(owner),
                id: CanvasId::from_stored(id),
            });
            let event = RunStreamEvent {
                run: match kind {
                    RunKind::Image | RunKind::Action => JobId(row.id).run_handle(),
                    RunKind::Video => JobId(row.id).job_handle(),
                    RunKind::Recipe => RunId(row.id).handle(),
                },
                kind,
                status,
                progress,
                done,
                total,
                canvas,
            };
            Ok(RunState { account: AccountUid::from_stored(row.account_uid), id: row.id, version: row.version, event })
        })
        .collect()
}
