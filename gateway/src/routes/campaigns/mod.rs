//! Legacy campaigns (docs/reference/campaigns.md). Deprecated: reads always work, mutations answer 410 unless the operator has
//! enabled them.
//!
//! The feature is self-contained, so that it can be removed as a whole: this directory, `app::campaign`, `db::campaigns`,
//! `domain::campaign`, the tables of migration 15, one configuration variable and one line of the router.

pub mod cancel;
pub mod list;
pub mod plan;
pub mod read;
pub mod review;
pub mod start;

use axum::middleware;
use axum::response::Response;
use domain::campaign::Campaign;
use domain::id::AccountUid;
use http::HeaderValue;
use http::header::{HeaderName, LINK};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::extract::path::{PathText, RunInPath};
use crate::problem::{Problem, Result};
use crate::state::App;

/// Date since which campaigns are deprecated (RFC 9745): 2026-01-01T00:00:00Z.
const DEPRECATED_SINCE: &str = "@1767225600";

/// The routes; every response carries the deprecation headers.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(plan::plan))
        .routes(routes!(start::start))
        .routes(routes!(read::read, cancel::cancel))
        .routes(routes!(review::review))
        .layer(middleware::map_response(deprecated))
}

/// Adds the deprecation headers to a response, whatever its status (docs/reference/campaigns.md#deprecation-headers).
async fn deprecated(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("deprecation"), HeaderValue::from_static(DEPRECATED_SINCE));
    headers.insert(LINK, HeaderValue::from_static("</docs>; rel=\"deprecation\"; type=\"text/html\""));
    response
}

/// Rejects a mutation that the operator has not enabled, before its body is read.
fn require_switched_on(app: &App) -> Result<()> {
    if app.config.legacy_campaigns { Ok(()) } else { Err(Problem::Gone("legacy campaigns are retired")) }
}

/// Loads the campaign of the path, if it belongs to the account.
async fn load(app: &App, account: &AccountUid, id: Uuid) -> Result<Campaign> {
    let found = db::campaigns::get(&mut *app.connection().await?, id, account).await?;
    found.ok_or(Problem::NotFound("campaign"))
}

/// The id in the path; only a UUID can identify a campaign.
fn id_of(params: &PathText) -> Result<Uuid> {
    match params.parameter("runId")? {
        RunInPath::Work(Some(id)) => Ok(id.0),
        RunInPath::Work(None) | RunInPath::Recipe(_) => Err(Problem::NotFound("campaign")),
    }
}
