//! Legacy campaigns (specification, Legacy campaigns; decisions 16). Deprecated: reads always work, mutations answer 410
//! unless the operator has switched them on.
//!
//! The room is whole in itself, to be taken out in one piece: this folder, `db::campaigns`, `domain::campaign`, the tables of
//! migration 15, one variable of the configuration and one line of the router.

pub mod cancel;
pub mod list;
pub mod plan;
pub mod read;
pub mod review;
pub mod start;

use axum::middleware;
use axum::response::Response;
use domain::campaign::{Campaign, CampaignRun};
use domain::id::AccountUid;
use http::HeaderValue;
use http::header::{HeaderName, LINK};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::extract::path::{PathText, RunInPath};
use crate::problem::{Problem, Result};
use crate::state::App;

/// When the campaigns came to be deprecated (RFC 9745): 2026-01-01T00:00:00Z.
const DEPRECATED_SINCE: &str = "@1767225600";

/// A campaign.
#[derive(Serialize, ToSchema)]
pub struct CampaignRead {
    /// As it stands.
    run: CampaignRun,
    /// Whether an equal request was answered before; only with a start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    replayed: Option<bool>,
}

/// The routes, every response of which says that they are deprecated.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(plan::plan))
        .routes(routes!(start::start))
        .routes(routes!(read::read, cancel::cancel))
        .routes(routes!(review::review))
        .layer(middleware::map_response(deprecated))
}

/// Marks a response of a deprecated operation, whatever it is (decisions 16.2).
async fn deprecated(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("deprecation"), HeaderValue::from_static(DEPRECATED_SINCE));
    headers.insert(LINK, HeaderValue::from_static("</docs>; rel=\"deprecation\"; type=\"text/html\""));
    response
}

/// Refuses a mutation that the operator has not switched on: before its body is looked at (decisions 1.2).
fn require_switched_on(app: &App) -> Result<()> {
    if app.config.legacy_campaigns { Ok(()) } else { Err(Problem::Gone("legacy campaigns are retired")) }
}

/// The campaign of the path, if it is the account's.
async fn load(app: &App, account: &AccountUid, id: Uuid) -> Result<Campaign> {
    let found = db::campaigns::get(&mut *app.connection().await?, id, account).await?;
    found.ok_or(Problem::NotFound("campaign"))
}

/// The id in the path; only a UUID can name a campaign.
fn id_of(params: &PathText) -> Result<Uuid> {
    match params.parameter("runId")? {
        RunInPath::Work(Some(id)) => Ok(id.0),
        RunInPath::Work(None) | RunInPath::Recipe(_) => Err(Problem::NotFound("campaign")),
    }
}
