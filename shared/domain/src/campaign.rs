//! Legacy campaigns: a brief, and up to eight shots that are made from it (specification, Legacy campaigns; decisions 16).
//! Deprecated.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Timestamp;
use crate::graph::named;
use crate::id::{AssetHandle, CanvasHandle, JobId, NodeId};
use crate::job::JobStatus;
use crate::limits::PROMPT_MAX;

named! {
    /// Where a campaign or a shot stands.
    CampaignStatus {
        /// No worker has taken anything.
        Queued = "queued",
        /// Work is under way.
        Running = "running",
        /// Every picture is there.
        Succeeded = "succeeded",
        /// It ended without all of its pictures.
        Failed = "failed",
        /// It was stopped.
        Canceled = "canceled",
    }
}

impl CampaignStatus {
    /// The status of a shot whose job stands so.
    pub const fn of_job(status: JobStatus) -> Self {
        match status {
            JobStatus::Preparing | JobStatus::Queued => Self::Queued,
            JobStatus::Running | JobStatus::Finalizing | JobStatus::Canceling => Self::Running,
            JobStatus::Succeeded | JobStatus::Expired => Self::Succeeded,
            JobStatus::Failed => Self::Failed,
            JobStatus::Canceled => Self::Canceled,
        }
    }

    /// The status of a campaign whose shots stand so: unfinished while one is, and then as good as its worst shot.
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
    /// What a person made of a shot.
    ShotDecision {
        /// It is good.
        Approve = "approve",
        /// It is not.
        Reject = "reject",
    }
}

/// A campaign as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    /// Its id.
    pub id: Uuid,
    /// Where its pictures are.
    pub canvas: CanvasHandle,
    /// For people.
    pub title: String,
    /// What it is about.
    pub brief: String,
    /// One to eight.
    pub shots: Vec<Shot>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it or one of its jobs last changed.
    pub updated_at: Timestamp,
}

/// A picture of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Shot {
    /// Unique in its campaign.
    pub id: String,
    /// What it shows.
    pub prompt: String,
    /// The job that makes it.
    pub job: JobId,
    /// The node that takes it.
    pub node: NodeId,
    /// Where it stands.
    pub status: CampaignStatus,
    /// The picture.
    pub asset: Option<AssetHandle>,
    /// What a person made of it.
    pub decision: Option<ShotDecision>,
}

/// A campaign as it is served.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignRun {
    /// Its id.
    pub id: Uuid,
    /// Where it stands.
    pub status: CampaignStatus,
    /// `canvas:<ownerUid>:<id>`.
    pub canvas_id: CanvasHandle,
    /// User-authored.
    #[schema(max_length = 160)]
    pub title: String,
    /// User-authored.
    #[schema(max_length = 8000)]
    pub brief: String,
    /// In the order of the plan.
    #[schema(min_items = 1, max_items = 8)]
    pub shots: Vec<CampaignShot>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it or one of its jobs last changed.
    pub updated_at: Timestamp,
}

/// A shot as it is served.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignShot {
    /// Unique in its campaign.
    pub id: String,
    /// User-authored.
    #[schema(max_length = 8000)]
    pub prompt: String,
    /// Where it stands.
    pub status: CampaignStatus,
    /// `run:<id>` of the job that makes it.
    #[schema(required = false)]
    pub run_handle: String,
    /// `asset:<ownerUid>:<id>`, once it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub asset_id: Option<AssetHandle>,
    /// What a person made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub decision: Option<ShotDecision>,
}

impl Campaign {
    /// Whether a shot is still to come.
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

/// How a shot looks at what the brief is about, in the order in which a plan takes them.
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

/// Shots of a campaign at most (decisions 16.2).
pub const SHOTS_MAX: usize = FRAMINGS.len();

/// The prompts of a plan of `count` shots: the brief, each time looked at in another way. The same brief gives the same plan.
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
