//! What the end of a job comes to, given the stored state that the transaction has locked.

use std::collections::BTreeMap;

use db::jobs::LockedJob;
use db::storage::Storage;
use db::{PgConnection, Result};
use domain::id::AccountUid;
use domain::job::{CancelReason, Failure, FailureCode, JobStatus, Placement};

use super::completion::{Completion, VideoOutput};
use super::end::Ending;
use super::placement;

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

/// Stored bytes and quotas of the accounts that will own results, each behind a lock: concurrent stores wait. Accounts without a
/// quota are left out.
pub(super) struct Rooms<'a>(BTreeMap<&'a AccountUid, Storage>);

impl<'a> Rooms<'a> {
    pub(super) async fn lock(conn: &mut PgConnection, endings: &'a [Ending<'a>]) -> Result<Self> {
        let mut rooms = BTreeMap::new();
        for Ending { job, completion, context } in endings {
            let has_quota = job.storage_max.unwrap_or(context.storage_max) != 0;
            rooms.extend(
                stored_for(job, completion).filter(|_| has_quota).map(|(owner, _)| (owner, context.storage_max)),
            );
        }
        let mut held = BTreeMap::new();
        for (owner, default_max) in rooms {
            held.insert(owner, db::storage::hold(conn, owner, default_max).await?);
        }
        Ok(Self(held))
    }

    /// Takes room for the results of a job, if there is enough.
    fn reserve(&mut self, job: &'a LockedJob, completion: &'a Completion) -> Result<bool> {
        let Some((owner, bytes)) = stored_for(job, completion) else { return Ok(true) };
        let Some(storage) = self.0.get_mut(owner) else { return Ok(true) };
        let bytes: i64 = placement::column("assets.bytes", bytes)?;
        let is_admitted = storage.admits(bytes);
        if is_admitted {
            storage.bytes = storage.bytes.saturating_add(bytes);
        }
        Ok(is_admitted)
    }
}

/// The account that will own the results of a job, and their size in bytes; `None` without results.
fn stored_for<'a>(job: &'a LockedJob, completion: &Completion) -> Option<(&'a AccountUid, u64)> {
    match (completion, &job.canvas) {
        (Completion::SucceededVideo(video), _) => Some((&job.actor.owner_uid, video.bytes)),
        (Completion::Succeeded(made) | Completion::Failed(_, made), Some(canvas)) if !made.is_empty() => {
            Some((&canvas.owner, made.iter().map(|placement| placement.bytes).sum()))
        }
        _ => None,
    }
}

/// What the job comes to. Takes room for its results.
pub(super) async fn decide<'a>(
    conn: &mut PgConnection,
    ending: &'a Ending<'a>,
    rooms: &mut Rooms<'a>,
) -> Result<Decision> {
    let &Ending { job, completion, .. } = ending;
    // The work is done and cannot be repeated, so the failure is that of a result that cannot be made durable.
    let without_room = || Decision::not_finalized("the result would exceed the storage quota");
    Ok(match completion {
        Completion::SucceededVideo(video) if rooms.reserve(job, completion)? => {
            Decision { video: Some(*video), ..Decision::new(JobStatus::Succeeded) }
        }
        Completion::SucceededVideo(_) => without_room(),
        Completion::Succeeded(placements) => match obstacle(conn, job).await? {
            Some(message) => Decision::not_finalized(message),
            None if !rooms.reserve(job, completion)? => without_room(),
            None => Decision { placements: placements.clone(), ..Decision::new(JobStatus::Succeeded) },
        },
        Completion::Failed(failure, made) => {
            let is_placed =
                !made.is_empty() && obstacle(conn, job).await?.is_none() && rooms.reserve(job, completion)?;
            let placements = if is_placed { made.clone() } else { Vec::new() };
            Decision { placements, ..Decision::failed(failure.clone()) }
        }
        Completion::Canceled(reason) => Decision { cancel_reason: Some(*reason), ..Decision::new(JobStatus::Canceled) },
    })
}

/// Why no output can be placed anymore.
async fn obstacle(conn: &mut PgConnection, job: &LockedJob) -> Result<Option<&'static str>> {
    let Some(canvas) = &job.canvas else { return Ok(Some("the canvas was deleted")) };
    if !canvas.is_writable() {
        return Ok(Some("the account may no longer write to the canvas"));
    }
    Ok(match job.recipe_run {
        Some(run) if !db::recipe_runs::is_delegated(conn, run).await? => {
            Some("the token, its session or its account is no longer valid")
        }
        _ => None,
    })
}
