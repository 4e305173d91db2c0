//! `POST /campaigns/plan`: writes nothing.

use axum::extract::State;
use domain::Violation;
use domain::campaign;
use domain::id::CanvasRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::require_switched_on;
use crate::extract::caller::{Caller, PlanCampaigns};
use crate::extract::json::{Input, Unread};
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// A campaign to plan.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CampaignPlanRequest {
    /// Plain id or handle.
    #[schema(max_length = 560, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$")]
    canvas_id: String,
    /// What it is about.
    #[schema(min_length = 1, max_length = 8000)]
    brief: String,
    /// How many shots.
    #[schema(minimum = 1, maximum = 8)]
    shot_count: usize,
}

impl Input for CampaignPlanRequest {
    fn check_value(body: &Value) -> Vec<Violation> {
        let canvas = body["canvasId"].as_str().unwrap_or_default();
        CanvasRef::parse(canvas).err().map(|error| Violation::new("canvasId", error.to_string())).into_iter().collect()
    }
}

/// A plan.
#[derive(Serialize, ToSchema)]
pub struct CampaignPlanned {
    /// To be sent to the start, as it is or changed.
    plan: CampaignPlan,
}

/// What a campaign is to be.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignPlan {
    /// What it is about.
    #[schema(min_length = 1, max_length = 8000)]
    pub brief: String,
    /// Its pictures.
    #[schema(min_items = 1, max_items = 8)]
    pub shots: Vec<PlannedShot>,
}

/// A picture to be made.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedShot {
    /// What it shows.
    #[schema(min_length = 1, max_length = 8000)]
    pub prompt: String,
}

/// Plan a legacy campaign
#[utoipa::path(
    post, path = "/campaigns/plan", operation_id = "planCampaign", tag = "Legacy campaigns",
    request_body = CampaignPlanRequest, security(("bearer" = ["canvas:read", "canvas:write", "asset:read"])),
    responses((status = 200, body = CampaignPlanned))
)]
pub async fn plan(State(app): State<App>, caller: Caller<PlanCampaigns>, body: Unread) -> Result {
    require_switched_on(&app)?;
    let request: CampaignPlanRequest = body.json().await?;
    let canvas =
        CanvasRef::parse(&request.canvas_id).map_err(|error| Problem::invalid("canvasId", error.to_string()))?;
    let canvas = canvas.resolve(&caller.account);
    db::canvases::find(&mut *app.connection().await?, &caller.account, &canvas)
        .await?
        .ok_or(Problem::NotFound("canvas"))?;
    let shots = campaign::plan(&request.brief, request.shot_count);
    let shots = shots.into_iter().map(|prompt| PlannedShot { prompt }).collect();
    Ok(reply::ok(&CampaignPlanned { plan: CampaignPlan { brief: request.brief, shots } }))
}
