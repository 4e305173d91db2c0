//! `DELETE /campaigns/{runId}`.

use axum::Extension;
use axum::extract::State;
use domain::campaign::{CampaignRead, CampaignStatus};

use super::{id_of, load, require_switched_on};
use crate::extract::caller::{Caller, ManageCampaigns};
use crate::extract::path::PathText;
use crate::observe::Trace;
use crate::openapi::errors::ReadErrors;
use crate::problem::Result;
use crate::reply;
use crate::runs::cancel_job;
use crate::state::App;

/// Cancel a legacy campaign
///
/// Stops the unfinished shots. Use it to end a campaign early. Finished shots keep their images, nothing is
/// deleted, and a finished campaign is returned unchanged. Deprecated: 410 unless the operator has enabled legacy
/// campaigns.
#[utoipa::path(
    delete, path = "/campaigns/{runId}", operation_id = "cancelCampaign", tag = "Legacy campaigns",
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate", "job:manage"])),
    params(("runId" = String, Path, pattern = "^(?:run:)?[A-Za-z0-9_-]{1,180}$", description = "Id of the campaign.")),
    responses(ReadErrors, (status = 410), (status = 200, description = "The campaign.", body = CampaignRead))
)]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller<ManageCampaigns>,
    params: PathText,
    Extension(trace): Extension<Trace>,
) -> Result {
    require_switched_on(&app)?;
    let id = id_of(&params)?;
    let campaign = load(&app, &caller.account, id).await?;
    caller.require_acceptable()?;
    let unfinished = |status| matches!(status, CampaignStatus::Queued | CampaignStatus::Running);
    for shot in campaign.shots.iter().filter(|shot| unfinished(shot.status)) {
        cancel_job(&app, &caller.account, shot.job, false, trace).await?;
    }
    Ok(reply::ok(&CampaignRead { run: load(&app, &caller.account, id).await?.document(), replayed: None }))
}
