//! `/console/deliveries`: the webhook deliveries of a person's account, without URLs and secrets.

use axum::extract::{OriginalUri, State};
use db::deliveries::operation::{self, After, ListedDelivery, Replay};
use domain::Timestamp;
use domain::limits::PAGE_MAX;
use domain::message::Queue;
use domain::page::Page;
use domain::webhook::{DeliveryState, DeliveryStatus};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::console::person::Person;
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::openapi::errors::{ReadErrors, ScopeErrors};
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// A page of deliveries, newest first.
#[derive(Serialize, ToSchema)]
pub struct DeliveryList {
    /// Deliveries of the account's runs.
    deliveries: Vec<Delivery>,
    /// Position in the list.
    page: Page,
}

/// The delivery of a run's webhook. It contains neither the endpoint nor the secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Handle of the run whose end is announced.
    #[schema(pattern = "^run:(recipe-)?[0-9a-f-]{36}$")]
    run: String,
    /// State of the delivery, as the run shows it.
    webhook: DeliveryState,
    /// When the run was started.
    created_at: Timestamp,
}

impl From<ListedDelivery> for Delivery {
    fn from(listed: ListedDelivery) -> Self {
        Self { run: listed.run_handle(), webhook: listed.state, created_at: listed.created_at }
    }
}

/// Which deliveries are listed.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DeliveryFilter {
    /// Only deliveries with this status.
    status: Option<DeliveryStatus>,
}

/// List webhook deliveries
///
/// Returns one page of the deliveries of the account's runs, newest first. A delivery is kept for 30 days after its last attempt.
#[utoipa::path(
    get, path = "/deliveries", operation_id = "listDeliveries", tag = "Deliveries",
    params(DeliveryFilter, Paged),
    responses(ScopeErrors, (status = 200, description = "One page of deliveries.", body = DeliveryList))
)]
pub async fn list(State(app): State<App>, person: Person, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let DeliveryFilter { status } = query.read().unwrap_or_default();
    let filter = status.map(DeliveryStatus::as_str).unwrap_or_default();
    let scope = ListScope::new("console/deliveries", &person.account, &[filter]);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let mut connection = app.connection().await?;
    let mut found = operation::list(&mut connection, Some(&person.account), status, after, limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, |delivery| After {
        created_at: delivery.created_at,
        id: delivery.id,
    });
    Ok(reply::ok(&DeliveryList { deliveries: found.into_iter().map(Delivery::from).collect(), page }))
}

/// A delivery that is enqueued again.
#[derive(Serialize, ToSchema)]
pub struct DeliveryReplayed {
    /// Id of the delivery.
    #[schema(pattern = "^webhook:[0-9a-f-]{36}$")]
    id: String,
    /// Its status now.
    status: DeliveryStatus,
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
    let DeliveryInPath(id) = path.parameter("deliveryId")?;
    let mut transaction = app.transaction().await?;
    let replay = app::delivery::replay(&mut transaction, person.actor(), id, Some(&person.account)).await?;
    let conflict = |why: String| Err(Problem::Conflict(why, None));
    let status = match replay {
        Replay::Enqueued(status) => status,
        Replay::Unfinished(status) => return conflict(format!("the delivery is {status}: it has not ended yet")),
        Replay::WithoutEvent => {
            return conflict("the run was abandoned without an event; there is nothing to send".into());
        }
    };
    db::pool::commit(transaction).await?;
    app.waker.wake(Queue::Webhook, id);
    Ok(reply::with_status(StatusCode::ACCEPTED, &DeliveryReplayed { id: db::deliveries::handle(id), status }))
}

/// The id of a delivery in a path.
struct DeliveryInPath(Uuid);

impl std::str::FromStr for DeliveryInPath {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = Uuid::try_parse(text.strip_prefix("webhook:").unwrap_or(text));
        id.map(Self).map_err(|_| "must be the id of a delivery")
    }
}
