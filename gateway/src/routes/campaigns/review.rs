//! `POST /campaigns/{runId}/review`.

use std::collections::HashSet;

use axum::extract::State;
use domain::Violation;
use domain::campaign::ShotDecision;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{CampaignRead, id_of, load, require_switched_on};
use crate::extract::caller::{Caller, ManageCampaigns};
use crate::extract::json::{Input, Unread};
use crate::extract::path::PathText;
use crate::problem::{Problem, Result, both};
use crate::reply;
use crate::state::App;

/// What a person made of a campaign's shots.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignReviewRequest {
    /// One a shot.
    #[schema(min_items = 1, max_items = 8)]
    decisions: Vec<DecisionInput>,
}

/// What a person made of a shot.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionInput {
    /// The shot.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$")]
    shot_id: String,
    /// What was made of it.
    decision: ShotDecision,
}

impl Input for CampaignReviewRequest {
    fn check(&self) -> Vec<Violation> {
        let mut seen = HashSet::new();
        let named = self.decisions.iter().enumerate();
        let twice = named.filter(|(_, decision)| !seen.insert(&decision.shot_id));
        twice.map(|(index, _)| Violation::new(format!("decisions[{index}].shotId"), "is decided twice")).collect()
    }
}

/// Review a legacy campaign
#[utoipa::path(
    post, path = "/campaigns/{runId}/review", operation_id = "reviewCampaign", tag = "Legacy campaigns",
    request_body = CampaignReviewRequest,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate", "job:manage"])),
    params(("runId" = String, Path, pattern = "^(?:run:)?[A-Za-z0-9_-]{1,180}$", description = "Its id.")),
    responses((status = 200, body = CampaignRead))
)]
pub async fn review(State(app): State<App>, caller: Caller<ManageCampaigns>, params: PathText, body: Unread) -> Result {
    require_switched_on(&app)?;
    let (request, id) = both(body.json::<CampaignReviewRequest>().await, id_of(&params))?;
    let campaign = load(&app, &caller.account, id).await?;
    let known: HashSet<&str> = campaign.shots.iter().map(|shot| shot.id.as_str()).collect();
    let unknown = request.decisions.iter().enumerate().filter(|(_, decision)| !known.contains(&*decision.shot_id));
    let violations: Vec<Violation> = unknown
        .map(|(index, _)| Violation::new(format!("decisions[{index}].shotId"), "is no shot of the campaign"))
        .collect();
    if !violations.is_empty() {
        return Err(Problem::Unprocessable(violations));
    }
    let decisions: Vec<(String, ShotDecision)> =
        request.decisions.into_iter().map(|decision| (decision.shot_id, decision.decision)).collect();
    db::campaigns::decide(&mut *app.connection().await?, id, &decisions).await?;
    Ok(reply::ok(&CampaignRead { run: load(&app, &caller.account, id).await?.document(), replayed: None }))
}
