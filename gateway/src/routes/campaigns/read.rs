//! `GET /campaigns/{runId}`.

use axum::extract::State;
use domain::campaign::CampaignRead;

use super::{id_of, load};
use crate::extract::caller::{Caller, ManageCampaigns};
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// Read a legacy campaign
///
/// Returns one campaign with the state of each shot. Use it to follow a campaign. It never starts or changes
/// anything. Deprecated: new clients use Recipes and image jobs.
#[utoipa::path(
    get, path = "/campaigns/{runId}", operation_id = "readCampaign", tag = "Legacy campaigns",
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate", "job:manage"])),
    params(("runId" = String, Path, pattern = "^(?:run:)?[A-Za-z0-9_-]{1,180}$", description = "Id of the campaign.")),
    responses(ReadErrors, (status = 200, description = "The campaign.", body = CampaignRead))
)]
pub async fn read(State(app): State<App>, caller: Caller<ManageCampaigns>, params: PathText) -> Result {
    let id = id_of(&params)?;
    Ok(reply::ok(&CampaignRead { run: load(&app, &caller.account, id).await?.document(), replayed: None }))
}
