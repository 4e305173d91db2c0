//! `POST /campaigns/start` (docs/reference/campaigns.md#start-a-campaign).

use app::campaign::{Campaign, StartCampaign};
use app::{Acceptance, Base, Terms};
use axum::Extension;
use axum::extract::State;
use domain::Violation;
use domain::campaign::{CampaignPlan, CampaignRead};
use domain::id::{AccountUid, CanvasHandle};
use domain::job::StartQuote;
use domain::message::Queue;
use http::HeaderMap;
use serde_json::json;
use uuid::Uuid;

use super::require_switched_on;
use crate::extract::caller::{Caller, ManageCampaigns};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::idempotency::fingerprint_without_defaults;
use crate::extract::json::JsonBody;
use crate::extract::prefer;
use crate::observe::Trace;
use crate::openapi::errors::WriteErrors;
use crate::problem::Result;
use crate::reply;
use crate::start::{accepted_as, quote, start_request, terms_of, with_cap, writable};
use crate::state::App;

const PATH: &str = "/campaigns/start";

/// The title of a campaign that is started without one.
const DEFAULT_TITLE: &str = "Campaign";
start_request! {
    /// Request to start a campaign.
    pub struct CampaignStartRequest on a canvas {
        /// Display title of the campaign.
        #[schema(min_length = 1, max_length = 160)]
        title: Option<String>,
        /// Plan to carry out.
        plan: CampaignPlan,
    }
}

struct Checked {
    canvas: CanvasHandle,
    base_revision: String,
    terms: Terms,
    title: Option<String>,
    plan: CampaignPlan,
}

impl CampaignStartRequest {
    fn check(self, account: &AccountUid) -> Result<Checked, Vec<Violation>> {
        let mut check = Check::default();
        let canvas = canvas_of(&mut check, &self.canvas_id, None, account);
        let terms = terms_of(&mut check, self.idempotency_key, self.max_credits, self.validate_only);
        let Self { base_revision, title, plan, .. } = self;
        check.finish(|| Some(Checked { canvas: canvas?, base_revision, terms, title, plan }))
    }
}

/// Start a legacy campaign
///
/// Starts one image job for each shot, each in a target node that it creates. Use it with a plan of
/// `planCampaign`. Credit works as in image generation, and a replay never charges again. Deprecated: 410 unless
/// the operator has enabled legacy campaigns.
#[utoipa::path(
    post, path = "/campaigns/start", operation_id = "startCampaign", tag = "Legacy campaigns",
    request_body = CampaignStartRequest,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate", "job:manage"])),
    params(("Prefer" = Option<String>, Header, description = "`handling=lenient` accepts a stale `baseRevision` where nothing that the request reads or writes has changed since.")),
    responses(
        WriteErrors, (status = 410),
        (status = 200, description = "The quote, with `validateOnly: true`; nothing is started.", body = StartQuote),
        (status = 202, description = "The campaign is queued, or is a replay of an earlier start.", body = CampaignRead),
        (status = 402),
    )
)]
pub async fn start(
    State(app): State<App>,
    caller: Caller<ManageCampaigns>,
    Extension(trace): Extension<Trace>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    require_switched_on(&app)?;
    let request = body.checked(|request: CampaignStartRequest| request.check(&caller.account)).await?;
    let body = json!({ "baseRevision": request.base_revision, "title": request.title, "plan": request.plan });
    let fingerprint =
        fingerprint_without_defaults(PATH, &request.canvas.to_string(), with_cap(body, &request.terms), |body| {
            if body["title"] == DEFAULT_TITLE {
                body["title"] = json!(null);
            }
        });
    let Checked { canvas, base_revision, terms, title, plan } = request;
    let (title, brief) = (title.unwrap_or_else(|| DEFAULT_TITLE.to_owned()), plan.brief);
    let base = Base { revision: base_revision, lenient: prefer::lenient(&headers) };
    let prompts = plan.shots.into_iter().map(|shot| shot.prompt).collect();
    let start = StartCampaign {
        models: &app,
        settings: app.job_settings(),
        caller: &caller,
        id: Uuid::now_v7(),
        campaign: Campaign { canvas, base, terms, title, brief, prompts },
        fingerprint,
        traceparent: trace.0.to_string(),
    };
    if start.campaign.terms.is_dry_run() {
        return quote(&app, &caller, &start).await;
    }
    if caller.account != start.campaign.canvas.owner {
        writable(&app, &caller.account, &start.campaign.canvas).await?;
    }
    let permit = app.writers.pass(&caller.account, &start.campaign.canvas.to_string()).await?;
    let (campaign, acceptance) = caller.run(&app, &start).await?;
    drop(permit);
    for shot in &campaign.shots {
        app.waker.wake(Queue::Generation, shot.job.0);
    }
    let location = format!("{}/campaigns/{}", domain::API_ROOT, campaign.id);
    let replayed = (acceptance == Acceptance::Replayed).then_some(true);
    let answer = CampaignRead { run: campaign.document(), replayed };
    Ok(accepted_as(acceptance, reply::accepted(&location, &answer)))
}
