//! `GET /campaigns`.

use axum::extract::{OriginalUri, State};
use domain::campaign::{Campaign, CampaignList};
use domain::id::{CanvasRef, CanvasReference};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::caller::{Caller, ManageCampaigns};
use crate::extract::names;
use crate::extract::owner::with_owner;
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Which campaigns are listed.
#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct CampaignFilter {
    /// Only campaigns of this canvas.
    #[param(value_type = Option<CanvasReference>)]
    canvas_id: Option<CanvasRef>,
}

/// List legacy campaigns
///
/// Returns the newest 200 campaigns of the account, newest first. Use it to find earlier campaigns. It never
/// starts or changes one. Deprecated: new clients use Recipes and image jobs.
#[utoipa::path(
    get, path = "/campaigns", operation_id = "listCampaigns", tag = "Legacy campaigns",
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate", "job:manage"])),
    params(CampaignFilter, OwnerQuery),
    responses(ReadErrors, (status = 200, description = "The campaigns.", body = CampaignList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ManageCampaigns>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let OwnerQuery { owner_uid: owner } = query.read().unwrap_or_default();
    let CampaignFilter { canvas_id: canvas } = query.read().unwrap_or_default();
    query.finish()?;
    let mut connection = app.connection().await?;
    let key = match canvas {
        None => None,
        Some(canvas) => {
            let handle = names::resolve(&mut connection, with_owner(canvas, owner)?, &caller.account).await?;
            let found = db::canvases::find(&mut connection, &caller.account, &handle).await?;
            Some(found.ok_or(Problem::NotFound("canvas"))?.0.key)
        }
    };
    let campaigns = db::campaigns::list(&mut connection, &caller.account, key).await?;
    Ok(reply::ok(&CampaignList { runs: campaigns.into_iter().map(Campaign::document).collect() }))
}
