//! `GET /console/admin/health`: whether the installation works.

use axum::extract::State;
use domain::queue::QueueStatus;
use serde::Serialize;
use utoipa::ToSchema;

use super::administrator::Administrator;
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// State of the installation, as this gateway sees it.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// What the gateway needs.
    components: Vec<Component>,
    /// The queues and their workers.
    queues: Vec<QueueStatus>,
    /// Versions of what runs.
    versions: Versions,
}

/// Something that the gateway needs.
#[derive(Serialize, ToSchema)]
pub struct Component {
    /// `database` or `redis`.
    name: &'static str,
    /// `true` if it answers.
    ok: bool,
}

/// Versions of what runs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Version of this gateway.
    gateway: &'static str,
    /// Version of the schema that this gateway knows.
    schema: i64,
    /// Versions of the workers that were seen within a minute, each once.
    workers: Vec<String>,
}

/// Read health
///
/// Returns the state of components and queues, and the versions of what runs.
#[utoipa::path(
    get, path = "/health", operation_id = "getHealth", tag = "Health",
    responses(ScopeErrors, (status = 200, description = "The state.", body = Health))
)]
pub async fn read(State(app): State<App>, _: Administrator) -> Result {
    let mut connection = app.connection().await?;
    let queues = app.queues(&mut connection).await?.status();
    let workers = db::workers::versions(&mut connection).await?;
    // The request was authenticated: the database answers.
    let components = vec![Component { name: "database", ok: true }, Component { name: "redis", ok: app.cache.is_up() }];
    let versions = Versions { gateway: env!("CARGO_PKG_VERSION"), schema: db::pool::schema_version(), workers };
    Ok(reply::ok(&Health { components, queues, versions }))
}
