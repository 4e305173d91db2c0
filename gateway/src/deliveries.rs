//! The webhook deliveries of an account, for persons in the console and for tokens: list and replay
//! (docs/reference/webhooks.md#deliveries).

use db::audit::Actor;
use db::deliveries::operation::{self, After, ListedDelivery, Replay};
use domain::id::AccountUid;
use domain::limits::PAGE_MAX;
use domain::message::Queue;
use domain::webhook::{DeliveriesReplayed, DeliveryList, DeliveryReplayed, DeliveryStatus};
use http::{StatusCode, Uri};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::extract::page::{ListScope, page, page_request};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Which deliveries are listed.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DeliveryFilter {
    /// Only deliveries with this status.
    status: Option<DeliveryStatus>,
}

/// Answers with one page of an account's deliveries. `list` names the list in cursors.
pub async fn list(app: &App, account: &AccountUid, uri: &Uri, list: &'static str) -> Result {
    let mut query = QueryReader::new(uri);
    let DeliveryFilter { status } = query.read().unwrap_or_default();
    let filter = status.map(DeliveryStatus::as_str).unwrap_or_default();
    let scope = ListScope::new(list, account, &[filter]);
    let request = page_request::<After, PAGE_MAX>(app, &mut query, &scope);
    query.finish()?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let mut found = operation::list(&mut *app.connection().await?, Some(account), status, after, limit).await?;
    let page = page(app, &scope, request.limit, &mut found, After::of);
    Ok(reply::ok(&DeliveryList { deliveries: found.into_iter().map(ListedDelivery::served).collect(), page }))
}

/// Enqueues one more attempt of the account's delivery in the path, and answers with it.
pub async fn replay(app: &App, actor: &Actor, account: &AccountUid, path: &PathText) -> Result {
    let DeliveryInPath(id) = path.parameter("deliveryId")?;
    let mut transaction = app.transaction().await?;
    let replay = app::delivery::replay(&mut transaction, actor, id, Some(account)).await?;
    let conflict = |why: String| Err(Problem::conflict(why));
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

/// Enqueues one more attempt of each of these deliveries that has ended, and answers with them. Each is committed by itself: what is
/// enqueued before a failure is sent.
pub async fn replay_all(app: &App, actor: &Actor, account: Option<&AccountUid>, ids: Vec<Uuid>) -> Result {
    let (mut replayed, mut skipped) = (Vec::new(), Vec::new());
    for id in ids {
        let mut transaction = app.transaction().await?;
        match app::delivery::replay(&mut transaction, actor, id, account).await {
            Ok(Replay::Enqueued(_)) => {
                db::pool::commit(transaction).await?;
                app.waker.wake(Queue::Webhook, id);
                replayed.push(db::deliveries::handle(id));
            }
            Ok(Replay::Unfinished(_) | Replay::WithoutEvent) | Err(app::Error::NotFound(_)) => {
                skipped.push(db::deliveries::handle(id));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(reply::with_status(StatusCode::ACCEPTED, &DeliveriesReplayed { replayed, skipped }))
}

/// The id of a delivery, with or without `webhook:`.
pub fn delivery_id(text: &str) -> Result<Uuid, &'static str> {
    Uuid::try_parse(text.strip_prefix("webhook:").unwrap_or(text)).map_err(|_| "must be the id of a delivery")
}

/// The id of a delivery in a path.
struct DeliveryInPath(Uuid);

impl std::str::FromStr for DeliveryInPath {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        delivery_id(text).map(Self)
    }
}
