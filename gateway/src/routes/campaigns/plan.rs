//! `POST /campaigns/plan`: returns a plan and writes nothing.

use axum::extract::State;
use domain::Violation;
use domain::campaign;
use domain::campaign::{CampaignPlan, CampaignPlanned, PlannedShot};
use domain::id::{AccountUid, CanvasHandle, CanvasReference};
use serde::Deserialize;
use utoipa::ToSchema;

use super::require_switched_on;
use crate::extract::caller::{Caller, PlanCampaigns};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Request to plan a campaign.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CampaignPlanRequest {
    /// Plain id or handle of the canvas.
    #[schema(value_type = CanvasReference)]
    canvas_id: String,
    /// Brief of the campaign.
    #[schema(min_length = 1, max_length = 8000)]
    brief: String,
    /// Number of shots.
    #[schema(minimum = 1, maximum = 8)]
    shot_count: usize,
}

impl Input for CampaignPlanRequest {}

impl CampaignPlanRequest {
    /// The canvas, the brief and the number of shots.
    fn check(self, account: &AccountUid) -> Result<(CanvasHandle, String, usize), Vec<Violation>> {
        let mut check = Check::default();
        let canvas = canvas_of(&mut check, &self.canvas_id, None, account);
        check.finish(|| Some((canvas?, self.brief, self.shot_count)))
    }
}

/// Plan a legacy campaign
///
/// Proposes the shots of a campaign from a brief. Use it before `startCampaign`, which takes the plan, edited or
/// not. It writes nothing and spends no credit. Deprecated: 410 unless the operator has enabled legacy campaigns.
#[utoipa::path(
    post, path = "/campaigns/plan", operation_id = "planCampaign", tag = "Legacy campaigns",
    request_body = CampaignPlanRequest, security(("bearer" = ["canvas:read", "canvas:write", "asset:read"])),
    responses(ReadErrors, (status = 410), (status = 200, description = "The plan.", body = CampaignPlanned))
)]
pub async fn plan(State(app): State<App>, caller: Caller<PlanCampaigns>, body: JsonBody) -> Result {
    require_switched_on(&app)?;
    let check = |request: CampaignPlanRequest| request.check(&caller.account);
    let (canvas, brief, shot_count) = body.checked(check).await?;
    db::canvases::find(&mut *app.connection().await?, &caller.account, &canvas)
        .await?
        .ok_or(Problem::NotFound("canvas"))?;
    caller.require_acceptable()?;
    let shots = campaign::plan(&brief, shot_count);
    let shots = shots.into_iter().map(|prompt| PlannedShot { prompt }).collect();
    Ok(reply::ok(&CampaignPlanned { plan: CampaignPlan { brief, shots } }))
}
