//! `/webhook-deliveries` (docs/reference/webhooks.md#deliveries).

use axum::extract::{OriginalUri, State};
use db::audit::Actor;
use db::deliveries::operation;
use domain::Timestamp;
use domain::webhook::{DeliveriesReplayed, DeliveryList, DeliveryReplayed};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::audit::Origined;
use crate::deliveries::{self, DeliveryFilter};
use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::page::Paged;
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::openapi::errors::ReadErrors;
use crate::problem::Result;
use crate::state::App;

/// Deliveries that one request replays, at most.
const REPLAYED_MAX: i64 = 1000;

/// List webhook deliveries
///
/// Returns one page of the deliveries of the account's webhooks, newest first. A delivery is kept for 30 days after its last attempt.
#[utoipa::path(
    get, path = "/webhook-deliveries", operation_id = "listWebhookDeliveries", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(DeliveryFilter, Paged),
    responses(ReadErrors, (status = 200, description = "One page of deliveries.", body = DeliveryList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ManageJobs>, OriginalUri(uri): OriginalUri) -> Result {
    deliveries::list(&app, &caller.account, &uri, "webhook-deliveries").await
}

/// Replay a webhook delivery
///
/// Makes one more attempt of a delivery that has ended: the same event, signed again. The attempt does not count as one of the four.
#[utoipa::path(
    post, path = "/webhook-deliveries/{deliveryId}/replay", operation_id = "replayWebhookDelivery", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(("deliveryId" = String, Path, pattern = "^(webhook:)?[0-9a-fA-F-]{36}$", description = "Id of the delivery.")),
    responses(
        ReadErrors,
        (status = 202, description = "The attempt is enqueued.", body = DeliveryReplayed),
        (status = 409, description = "The delivery has not ended, or the run ended without an event."),
    )
)]
pub async fn replay(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    Origined(origin): Origined,
    path: PathText,
) -> Result {
    caller.require_acceptable()?;
    deliveries::replay(&app, &Actor::caller(&caller, origin), &caller.account, &path).await
}

/// Which deliveries are replayed.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FailedSince {
    /// Only those whose run was started then or later.
    #[param(example = "2026-01-15T09:30:00.000Z")]
    since: Timestamp,
}

/// Replay failed webhook deliveries
///
/// Makes one more attempt of each failed delivery whose run was started at a time or later, of the oldest 1000. Repeat it until
/// nothing is replayed.
#[utoipa::path(
    post, path = "/webhook-deliveries/replay", operation_id = "replayFailedWebhookDeliveries", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(FailedSince),
    responses(ReadErrors, (status = 202, description = "What is enqueued.", body = DeliveriesReplayed))
)]
pub async fn replay_failed(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    Origined(origin): Origined,
    OriginalUri(uri): OriginalUri,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let since = query.read().map(|FailedSince { since }| since);
    query.finish()?;
    caller.require_acceptable()?;
    let mut connection = app.connection().await?;
    let ids = operation::failed(&mut connection, &caller.account, since, REPLAYED_MAX).await?;
    drop(connection);
    deliveries::replay_all(&app, &Actor::caller(&caller, origin), Some(&caller.account), ids).await
}
