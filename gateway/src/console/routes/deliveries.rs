//! `/console/deliveries`: the webhook deliveries of a person's account, without URLs and secrets.

use axum::extract::{OriginalUri, State};
use domain::webhook::{DeliveryList, DeliveryReplayed};

use crate::console::person::Person;
use crate::deliveries::{self, DeliveryFilter};
use crate::extract::page::Paged;
use crate::extract::path::PathText;
use crate::openapi::errors::{ReadErrors, ScopeErrors};
use crate::problem::Result;
use crate::state::App;

/// List webhook deliveries
///
/// Returns one page of the deliveries of the account's runs, newest first. A delivery is kept for 30 days after its last attempt.
#[utoipa::path(
    get, path = "/deliveries", operation_id = "listDeliveries", tag = "Deliveries",
    params(DeliveryFilter, Paged),
    responses(ScopeErrors, (status = 200, description = "One page of deliveries.", body = DeliveryList))
)]
pub async fn list(State(app): State<App>, person: Person, OriginalUri(uri): OriginalUri) -> Result {
    deliveries::list(&app, &person.account, &uri, "console/deliveries").await
}

/// Replay a webhook delivery
///
/// Makes one more attempt to deliver the event of a delivery that has ended: the same event, signed again. The attempt does not count
/// as one of the four.
#[utoipa::path(
    post, path = "/deliveries/{deliveryId}/replay", operation_id = "replayDelivery", tag = "Deliveries",
    params(("deliveryId" = String, Path, pattern = "^(webhook:)?[0-9a-fA-F-]{36}$", description = "Id of the delivery, with or without `webhook:`.")),
    responses(
        ReadErrors,
        (status = 202, description = "The attempt is enqueued.", body = DeliveryReplayed),
        (status = 409, description = "The delivery has not ended, or the run ended without an event."),
    )
)]
pub async fn replay(State(app): State<App>, person: Person, path: PathText) -> Result {
    deliveries::replay(&app, person.actor(), &person.account, &path).await
}
