//! Legacy campaigns (docs/reference/campaigns.md). Deprecated.
//!
//! The status of a shot is the status of its job. When the job's record has been removed, the status comes from the shot's
//! node, which keeps the job's last status and the image for as long as the node exists.

use chrono::{DateTime, Utc};
use domain::campaign::{Campaign, CampaignStatus, Shot, ShotDecision};
use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, CanvasId, JobId, NodeId};
use domain::job::JobStatus;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::error::known;

/// Maximum number of campaigns in a list, which has no pages.
const LISTED_MAX: i64 = 200;

struct CampaignRow {
    id: Uuid,
    owner_uid: String,
    canvas_id: String,
    title: String,
    brief: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    shot_id: String,
    prompt: String,
    job_id: Uuid,
    node_id: String,
    decision: Option<String>,
    status: Option<String>,
    made: Option<Json<AssetHandle>>,
    last_status: Option<String>,
    asset_owner: Option<String>,
    asset_id: Option<String>,
}

impl CampaignRow {
    fn shot(&self) -> Result<Shot> {
        let of_job = self.status.as_deref().map(|status| known("jobs.status", status)).transpose()?;
        let last = self.last_status.as_deref().map(|status| known("nodes.server", status)).transpose()?;
        // Record and node were both deleted, so there is no image to show, whatever the status was.
        let status: JobStatus = of_job.or(last).unwrap_or(JobStatus::Canceled);
        let status = CampaignStatus::of_job(status);
        let shown = self
            .asset_owner
            .clone()
            .zip(self.asset_id.clone())
            .map(|(owner, id)| AssetHandle { owner: AccountUid::from_stored(owner), id: AssetId::from_stored(id) });
        let asset = self.made.as_ref().map(|made| made.0.clone()).or(shown.filter(|_| of_job.is_none()));
        Ok(Shot {
            id: self.shot_id.clone(),
            prompt: self.prompt.clone(),
            job: JobId(self.job_id),
            node: NodeId::from_stored(self.node_id.clone()),
            status,
            asset: asset.filter(|_| status == CampaignStatus::Succeeded),
            decision: self.decision.as_deref().map(|text| known("campaign_shots.decision", text)).transpose()?,
        })
    }
}

/// The account's campaigns, newest first; those of one canvas when `canvas_key` is given, a single one when its id is.
async fn select(
    conn: &mut PgConnection,
    account: &AccountUid,
    canvas_key: Option<i64>,
    id: Option<Uuid>,
) -> Result<Vec<Campaign>> {
    let rows = sqlx::query_as!(
        CampaignRow,
        r#"SELECT c.id, v.owner_uid, v.id AS canvas_id, c.title, c.brief, c.created_at,
                  greatest(c.updated_at, j.updated_at) AS "updated_at!", s.id AS shot_id, s.prompt, s.job_id, s.node_id,
                  s.decision, j.status AS "status?", j.outcome #> '{images,0,asset}' AS "made?: Json<AssetHandle>",
                  n.server -> 'job' ->> 'status' AS last_status, n.asset_owner AS "asset_owner?",
                  n.asset_id AS "asset_id?"
           FROM (SELECT * FROM campaigns
                 WHERE account_uid = $1 AND ($2::bigint IS NULL OR canvas_key = $2) AND ($3::uuid IS NULL OR id = $3)
                 ORDER BY created_at DESC, id DESC LIMIT $4) c
           JOIN canvases v ON v.key = c.canvas_key
           JOIN campaign_shots s ON s.campaign_id = c.id
           LEFT JOIN jobs j ON j.id = s.job_id
           LEFT JOIN nodes n ON n.canvas_key = c.canvas_key AND n.id = s.node_id
           ORDER BY c.created_at DESC, c.id DESC, s.position"#,
        account.as_str(),
        canvas_key,
        id,
        LISTED_MAX,
    )
    .fetch_all(conn)
    .await?;
    let mut campaigns: Vec<Campaign> = Vec::new();
    for row in rows {
        let shot = row.shot()?;
        match campaigns.last_mut().filter(|last| last.id == row.id) {
            Some(last) => {
                last.updated_at = last.updated_at.max(row.updated_at.into());
                last.shots.push(shot);
            }
            None => campaigns.push(Campaign {
                id: row.id,
                canvas: CanvasHandle {
                    owner: AccountUid::from_stored(row.owner_uid),
                    id: CanvasId::from_stored(row.canvas_id),
                },
                title: row.title,
                brief: row.brief,
                shots: vec![shot],
                created_at: row.created_at.into(),
                updated_at: row.updated_at.into(),
            }),
        }
    }
    Ok(campaigns)
}

/// Lists the account's newest 200 campaigns, or those of one canvas, newest first.
#[instrument(skip_all, name = "db.campaign.list")]
pub async fn list(conn: &mut PgConnection, account: &AccountUid, canvas_key: Option<i64>) -> Result<Vec<Campaign>> {
    select(conn, account, canvas_key, None).await
}

/// Reads a campaign of an account.
#[instrument(skip_all, name = "db.campaign.get")]
pub async fn get(conn: &mut PgConnection, id: Uuid, account: &AccountUid) -> Result<Option<Campaign>> {
    Ok(select(conn, account, None, Some(id)).await?.pop())
}

/// A campaign to insert.
#[derive(Clone, Debug)]
pub struct NewCampaign<'a> {
    /// Id of the campaign.
    pub id: Uuid,
    /// The account that starts it.
    pub account: &'a AccountUid,
    /// Key of the canvas that gets the images.
    pub canvas_key: i64,
    /// Title of the campaign.
    pub title: &'a str,
    /// Brief of the campaign.
    pub brief: &'a str,
    /// Prompt, job and target node of each shot.
    pub shots: &'a [(String, JobId, NodeId)],
}

/// Inserts a campaign, in the transaction that starts its jobs.
#[instrument(skip_all, name = "db.campaign.insert")]
pub async fn insert(conn: &mut PgConnection, campaign: &NewCampaign<'_>) -> Result<()> {
    sqlx::query!(
        "INSERT INTO campaigns (id, account_uid, canvas_key, title, brief) VALUES ($1, $2, $3, $4, $5)",
        campaign.id,
        campaign.account.as_str(),
        campaign.canvas_key,
        campaign.title,
        campaign.brief,
    )
    .execute(&mut *conn)
    .await?;
    let column = |of: fn(&(String, JobId, NodeId)) -> String| campaign.shots.iter().map(of).collect::<Vec<_>>();
    let jobs: Vec<Uuid> = campaign.shots.iter().map(|(_, job, _)| job.0).collect();
    sqlx::query!(
        "INSERT INTO campaign_shots (campaign_id, position, id, prompt, job_id, node_id)
         SELECT $1, s.position::int, 'shot-' || s.position, s.prompt, s.job_id, s.node_id
         FROM UNNEST($2::text[], $3::uuid[], $4::text[]) WITH ORDINALITY AS s (prompt, job_id, node_id, position)",
        campaign.id,
        &column(|(prompt, _, _)| prompt.clone()),
        &jobs,
        &column(|(_, _, node)| node.to_string()),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Records review decisions on shots of a campaign. A later decision replaces an earlier one.
#[instrument(skip_all, name = "db.campaign.decide")]
pub async fn decide(conn: &mut PgConnection, id: Uuid, decisions: &[(String, ShotDecision)]) -> Result<()> {
    let (shots, decisions): (Vec<String>, Vec<String>) =
        decisions.iter().map(|(shot, decision)| (shot.clone(), decision.to_string())).unzip();
    sqlx::query!(
        "WITH decided AS (
             UPDATE campaign_shots s SET decision = d.decision
             FROM UNNEST($2::text[], $3::text[]) AS d (shot, decision)
             WHERE s.campaign_id = $1 AND s.id = d.shot
         )
         UPDATE campaigns SET updated_at = now() WHERE id = $1",
        id,
        &shots,
        &decisions,
    )
    .execute(conn)
    .await?;
    Ok(())
}
