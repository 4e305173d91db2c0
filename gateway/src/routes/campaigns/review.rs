//! `POST /campaigns/{runId}/review`.

use std::collections::HashSet;

use axum::extract::State;
use domain::Violation;
use domain::campaign::{CampaignRead, ShotDecision};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{id_of, load, require_switched_on};
use crate::extract::caller::{Caller, ManageCampaigns};
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;

/// A person's decisions on the shots of a campaign.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignReviewRequest {
    /// Decisions, at most one for each shot.
    #[schema(min_items = 1, max_items = 8)]
    decisions: Vec<DecisionInput>,
}

/// A person's decision on a shot.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionInput {
    /// Id of the shot.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$")]
    shot_id: String,
    /// Decision on the shot.
    decision: ShotDecision,
}

impl Input for CampaignReviewRequest {}

impl CampaignReviewRequest {
    fn check(self) -> Result<Self, Vec<Violation>> {
        let mut check = Check::default();
        let mut seen = HashSet::new();
        for (index, decision) in self.decisions.iter().enumerate() {
            let is_repeated = !seen.insert(&decision.shot_id);
            check.note_if(is_repeated, format!("decisions[{index}].shotId"), "is decided twice");
        }
        check.finish(|| Some(self))
    }
}

/// Review a legacy campaign
///
/// Records a person's decision on shots. Use it after the images have been seen. It deletes nothing and starts
/// nothing. Deprecated: 410 unless the operator has enabled legacy campaigns.
#[utoipa::path(
    post, path = "/campaigns/{runId}/review", operation_id = "reviewCampaign", tag = "Legacy campaigns",
    request_body = CampaignReviewRequest,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate", "job:manage"])),
    params(("runId" = String, Path, pattern = "^(?:run:)?[A-Za-z0-9_-]{1,180}$", description = "Id of the campaign.")),
    responses(ReadErrors, (status = 410), (status = 422), (status = 200, description = "The campaign after the review.", body = CampaignRead))
)]
pub async fn review(
    State(app): State<App>,
    caller: Caller<ManageCampaigns>,
    params: PathText,
    body: JsonBody,
) -> Result {
    require_switched_on(&app)?;
    let (request, id) = combine_violations(body.checked(CampaignReviewRequest::check).await, id_of(&params))?;
    let campaign = load(&app, &caller.account, id).await?;
    caller.require_acceptable()?;
    let known: HashSet<&str> = campaign.shots.iter().map(|shot| shot.id.as_str()).collect();
    let unknown = request.decisions.iter().enumerate().filter(|(_, decision)| !known.contains(&*decision.shot_id));
    let violations: Vec<Violation> = unknown
        .map(|(index, _)| Violation::new(format!("decisions[{index}].shotId"), "is not a shot of the campaign"))
        .collect();
    if !violations.is_empty() {
        return Err(Problem::Unprocessable(violations));
    }
    let decisions: Vec<(String, ShotDecision)> =
        request.decisions.into_iter().map(|decision| (decision.shot_id, decision.decision)).collect();
    db::campaigns::decide(&mut *app.connection().await?, id, &decisions).await?;
    Ok(reply::ok(&CampaignRead { run: load(&app, &caller.account, id).await?.document(), replayed: None }))
}
