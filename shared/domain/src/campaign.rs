//! Legacy campaigns: a brief and up to eight shots made from it. Deprecated. Rules: `docs/reference/campaigns.md`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Timestamp;
use crate::graph::named;
use crate::id::{AssetHandle, CanvasHandle, JobId, NodeId, RunHandle};
use crate::job::JobStatus;
use crate::limits::PROMPT_MAX;

named! {
    /// Status of a campaign or a shot.
    CampaignStatus {
        /// No worker has started any of the work.
        Queued = "queued",
        /// At least one image is unfinished.
        Running = "running",
        /// Every image is stored.
        Succeeded = "succeeded",
        /// It ended without all of its images.
        Failed = "failed",
        /// It was canceled.
        Canceled = "canceled",
    }
}

impl CampaignStatus {
    /// The status of a shot whose job has this status.
    pub const fn of_job(status: JobStatus) -> Self {
        match status {
            JobStatus::Preparing | JobStatus::Queued => Self::Queued,
            JobStatus::Running | JobStatus::Finalizing | JobStatus::Canceling => Self::Running,
            JobStatus::Succeeded | JobStatus::Expired => Self::Succeeded,
            JobStatus::Failed => Self::Failed,
            JobStatus::Canceled => Self::Canceled,
        }
    }

    /// The status of a campaign with these shots: unfinished while one shot is unfinished, then that of its worst shot.
    pub fn of_shots(shots: &[Self]) -> Self {
        let all = |status| shots.iter().all(|shot| *shot == status);
        let any = |status| shots.contains(&status);
        match () {
            () if all(Self::Queued) => Self::Queued,
            () if any(Self::Queued) || any(Self::Running) => Self::Running,
            () if any(Self::Failed) => Self::Failed,
            () if any(Self::Canceled) => Self::Canceled,
            () => Self::Succeeded,
        }
    }
}

named! {
    /// Decision of a person about a shot.
    ShotDecision {
        /// The shot is approved.
        Approve = "approve",
        /// The shot is rejected.
        Reject = "reject",
    }
}

/// A campaign in its present state.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    /// Id of the campaign.
    pub id: Uuid,
    /// The canvas of its images.
    pub canvas: CanvasHandle,
    /// Title. User-authored.
    pub title: String,
    /// Brief. User-authored.
    pub brief: String,
    /// One to eight shots.
    pub shots: Vec<Shot>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it or one of its jobs last changed.
    pub updated_at: Timestamp,
}

/// A shot of a campaign: one image.
#[derive(Clone, Debug, PartialEq)]
pub struct Shot {
    /// Id, unique in the campaign.
    pub id: String,
    /// Prompt of the image.
    pub prompt: String,
    /// The job that makes it.
    pub job: JobId,
    /// The node that receives the image.
    pub node: NodeId,
    /// Status of the shot.
    pub status: CampaignStatus,
    /// The stored image.
    pub asset: Option<AssetHandle>,
    /// Decision of a person.
    pub decision: Option<ShotDecision>,
}

/// A campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignRun {
    /// Id of the campaign.
    pub id: Uuid,
    /// Status of the campaign.
    pub status: CampaignStatus,
    /// Handle of the canvas.
    pub canvas_id: CanvasHandle,
    /// Title. User-authored.
    #[schema(max_length = 160)]
    pub title: String,
    /// Brief. User-authored.
    #[schema(max_length = 8000)]
    pub brief: String,
    /// Shots in the order of the plan.
    #[schema(min_items = 1, max_items = 8)]
    pub shots: Vec<CampaignShot>,
    /// When the campaign was started.
    pub created_at: Timestamp,
    /// When the campaign or one of its jobs last changed.
    pub updated_at: Timestamp,
}

/// A shot of a campaign: one image.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignShot {
    /// Id of the shot, unique in the campaign.
    pub id: String,
    /// Prompt of the image. User-authored.
    #[schema(max_length = 8000)]
    pub prompt: String,
    /// Status of the shot.
    pub status: CampaignStatus,
    /// Handle of the job that makes the image.
    #[schema(value_type = RunHandle, required = false)]
    pub run_handle: String,
    /// Handle of the stored image.
    pub asset_id: Option<AssetHandle>,
    /// Decision of a person.
    pub decision: Option<ShotDecision>,
}

/// A campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CampaignRead {
    /// The campaign with its current status.
    pub run: CampaignRun,
    /// `true` if the response repeats that of an earlier, equal request; only in responses to a start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<bool>,
}

/// The newest 200 campaigns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CampaignList {
    /// Campaigns of the account, newest first.
    pub runs: Vec<CampaignRun>,
}

/// Response with a planned campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CampaignPlanned {
    /// Plan to send with the start request, unchanged or edited.
    pub plan: CampaignPlan,
}

/// Plan of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignPlan {
    /// Brief of the campaign.
    #[schema(min_length = 1, max_length = 8000)]
    pub brief: String,
    /// Shots of the campaign.
    #[schema(min_items = 1, max_items = 8)]
    pub shots: Vec<PlannedShot>,
}

/// A planned shot: one image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedShot {
    /// Prompt of the shot.
    #[schema(min_length = 1, max_length = 8000)]
    pub prompt: String,
}

impl Campaign {
    /// The status, derived from the shots.
    pub fn status(&self) -> CampaignStatus {
        CampaignStatus::of_shots(&self.shots.iter().map(|shot| shot.status).collect::<Vec<_>>())
    }

    /// The served form.
    pub fn document(self) -> CampaignRun {
        CampaignRun {
            id: self.id,
            status: self.status(),
            canvas_id: self.canvas,
            title: self.title,
            brief: self.brief,
            shots: self.shots.into_iter().map(Shot::document).collect(),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

impl Shot {
    fn document(self) -> CampaignShot {
        CampaignShot {
            run_handle: self.job.run_handle(),
            id: self.id,
            prompt: self.prompt,
            status: self.status,
            asset_id: self.asset,
            decision: self.decision,
        }
    }
}

/// Framings of a subject, in the order in which a plan uses them.
const FRAMINGS: [&str; 8] = [
    "Wide establishing shot",
    "Hero shot, front view",
    "Close-up of a telling detail",
    "In use, natural light",
    "Three-quarter view on a plain ground",
    "From above, flat lay",
    "Atmospheric shot at dusk",
    "Closing shot with room for a line of text",
];

/// Shots of a campaign.
pub const SHOTS_MAX: usize = FRAMINGS.len();

/// The prompts of a plan of `count` shots: the brief, each time with a different framing. Equal briefs give equal plans.
pub fn plan(brief: &str, count: usize) -> Vec<String> {
    let prompts = FRAMINGS.iter().take(count).map(|framing| {
        let start = format!("{framing}: ");
        let room = PROMPT_MAX - start.chars().count();
        start + &brief.chars().take(room).collect::<String>()
    });
    prompts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_is_unfinished_while_a_shot_is_and_then_as_good_as_its_worst() {
        use CampaignStatus::{Canceled, Failed, Queued, Running, Succeeded};
        for (shots, status) in [
            (&[Queued, Queued][..], Queued),
            (&[Queued, Succeeded], Running),
            (&[Running, Failed], Running),
            (&[Succeeded, Succeeded], Succeeded),
            (&[Succeeded, Canceled], Canceled),
            (&[Canceled, Failed, Succeeded], Failed),
        ] {
            assert_eq!(CampaignStatus::of_shots(shots), status, "{shots:?}");
        }
    }

    #[test]
    fn a_plan_is_the_brief_looked_at_in_as_many_ways_as_asked_for() {
        let prompts = plan("Red boots", 3);
        assert_eq!((prompts.len(), prompts[0].as_str()), (3, "Wide establishing shot: Red boots"));
        let long = plan(&"ä".repeat(8000), SHOTS_MAX);
        assert_eq!(long.len(), 8);
        assert!(long.iter().all(|prompt| prompt.chars().count() == 8000));
    }
}
