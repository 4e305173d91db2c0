//! What the end of a job comes to, given the stored state that the transaction has locked.

use db::jobs::LockedJob;
use db::{PgConnection, Result};
use domain::job::{CancelReason, Failure, FailureCode, JobStatus, Placement};

use super::completion::{Completion, VideoOutput};
use super::end::Ending;
use super::placement;
use crate::storage;

/// The effects of a completion, given the rows that the transaction has locked.
pub(super) struct Decision {
    pub(super) status: JobStatus,
    pub(super) placements: Vec<Placement>,
    pub(super) video: Option<VideoOutput>,
    pub(super) failure: Option<Failure>,
    pub(super) cancel_reason: Option<CancelReason>,
}

impl Decision {
    fn new(status: JobStatus) -> Self {
        Self { status, placements: Vec::new(), video: None, failure: None, cancel_reason: None }
    }

    fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::new(JobStatus::Failed) }
    }

    fn not_finalized(message: &str) -> Self {
        Self::failed(Failure::new(FailureCode::OutputFinalizationFailed, message))
    }
}

/// What the job comes to. A full storage is no obstacle to images, which are small: the start was admitted. A video is as large as
/// thousands of them, and is admitted again by its size.
pub(super) async fn decide(conn: &mut PgConnection, &Ending { job, completion, .. }: &Ending<'_>) -> Result<Decision> {
    Ok(match completion {
        Completion::SucceededVideo(video) => {
            Decision { video: Some(video.clone()), ..Decision::new(JobStatus::Succeeded) }
        }
        Completion::Succeeded(placements) => match obstacle(conn, job, placements).await? {
            Some(message) => Decision::not_finalized(message),
            None => Decision { placements: placements.clone(), ..Decision::new(JobStatus::Succeeded) },
        },
        Completion::Failed(failure, made) => {
            let is_placed = !made.is_empty() && obstacle(conn, job, made).await?.is_none();
            let placements = if is_placed { made.clone() } else { Vec::new() };
            Decision { placements, ..Decision::failed(failure.clone()) }
        }
        Completion::Canceled(reason) => Decision { cancel_reason: Some(*reason), ..Decision::new(JobStatus::Canceled) },
    })
}

/// Why these outputs cannot be placed anymore.
async fn obstacle(conn: &mut PgConnection, job: &LockedJob, placements: &[Placement]) -> Result<Option<&'static str>> {
    let Some(canvas) = &job.canvas else { return Ok(Some("the canvas was deleted")) };
    if !canvas.is_writable() {
        return Ok(Some("the account may no longer write to the canvas"));
    }
    for video in placements.iter().filter(|placement| placement.video.is_some()) {
        let counted = storage::of_files([placement::column("assets.bytes", video.bytes)?]);
        if db::storage::hold(conn, &canvas.owner, counted).await?.is_some() {
            return Ok(Some("the owner of the canvas has no storage left for the video"));
        }
    }
    Ok(match job.recipe_run {
        Some(run) if !db::recipe_runs::is_delegated(conn, run).await? => {
            Some("the token, its session or its account is no longer valid")
        }
        _ => None,
    })
}
