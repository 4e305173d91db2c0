//! `GET /status` (docs/reference/status.md).

use axum::extract::State;
use domain::queue::ServiceStatus;

use crate::extract::caller::{AnyToken, Caller};
use crate::openapi::errors::CredentialErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// Read the state of the queues
///
/// Returns for each queue whether workers are seen and how long its oldest ready work has waited. Use it when work
/// waits: a queue that is `silent` has no worker, so its work waits until an operator starts one. It shows nothing of
/// any account and needs no scope.
#[utoipa::path(
    get, path = "/status", operation_id = "getStatus", tag = "Status",
    responses(CredentialErrors, (status = 200, description = "Every queue.", body = ServiceStatus))
)]
pub async fn status(State(app): State<App>, _caller: Caller<AnyToken>) -> Result {
    let queues = app.queues(&mut app.connection().await?).await?;
    Ok(reply::ok(&ServiceStatus { queues: queues.status() }))
}
