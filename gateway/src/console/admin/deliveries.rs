//! `/console/admin/deliveries`: the webhook deliveries of all accounts, without URLs and secrets.

use axum::extract::{OriginalUri, State};
use db::deliveries::operation::{self, After, ListedDelivery};
use domain::id::AccountUid;
use domain::limits::PAGE_MAX;
use domain::page::Page;
use domain::webhook::{DeliveriesReplayed, DeliveryState, DeliveryStatus};
use domain::{Timestamp, Violation};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::administrator::Administrator;
use crate::deliveries::{self, delivery_id};
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::{QueryReader, plain_uid};
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// Deliveries that one request replays, at most.
const REPLAYED_MAX: usize = 100;

/// A page of deliveries of all accounts, newest first.
#[derive(Serialize, ToSchema)]
pub struct AllDeliveries {
    /// The deliveries.
    deliveries: Vec<AccountDelivery>,
    /// Position in the list.
    page: Page,
}

/// The delivery of a run's webhook.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountDelivery {
    /// Uid of the account.
    account: AccountUid,
    /// Handle of the run whose end is announced, or of the video job.
    #[schema(pattern = "^(run:(recipe-)?|job:)[0-9a-f-]{36}$")]
    run: String,
    /// State of the delivery.
    webhook: DeliveryState,
    /// When the run was started.
    created_at: Timestamp,
}

impl From<ListedDelivery> for AccountDelivery {
    fn from(listed: ListedDelivery) -> Self {
        Self { run: listed.handle(), account: listed.account, webhook: listed.state, created_at: listed.created_at }
    }
}

/// Which deliveries are listed.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AllDeliveriesQuery {
    /// Only deliveries of the account with this uid.
    #[serde(default, deserialize_with = "plain_uid")]
    account: Option<AccountUid>,
    /// Only deliveries with this status.
    status: Option<DeliveryStatus>,
}

/// List webhook deliveries
///
/// Returns one page of the webhook deliveries of all accounts, newest first.
#[utoipa::path(
    get, path = "/deliveries", operation_id = "listAllDeliveries", tag = "Deliveries",
    params(AllDeliveriesQuery, Paged),
    responses(ScopeErrors, (status = 200, description = "One page of deliveries.", body = AllDeliveries))
)]
pub async fn list(State(app): State<App>, admin: Administrator, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let AllDeliveriesQuery { account, status } = query.read().unwrap_or_default();
    let named = account.as_ref().map(AccountUid::as_str).unwrap_or_default();
    let filters = [named, status.map(DeliveryStatus::as_str).unwrap_or_default()];
    let scope = ListScope::new("console/admin/deliveries", &admin.account, &filters);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let mut found = operation::list(&mut *app.connection().await?, account.as_ref(), status, after, limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, After::of);
    Ok(reply::ok(&AllDeliveries { deliveries: found.into_iter().map(AccountDelivery::from).collect(), page }))
}

/// Which deliveries are replayed: some by id, or the failed ones of an account.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayDeliveries {
    /// Ids of deliveries that have ended, with or without `webhook:`.
    #[schema(min_items = 1, max_items = 100)]
    ids: Option<Vec<String>>,
    /// Uid of the account whose failed deliveries are replayed, the 100 oldest.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$")]
    account: Option<String>,
    /// Only those whose run was started then or later; with `account`.
    since: Option<Timestamp>,
}

impl Input for ReplayDeliveries {}

/// What to replay.
enum Wanted {
    Ids(Vec<Uuid>),
    FailedOf(AccountUid, Option<Timestamp>),
}

impl ReplayDeliveries {
    fn check(self) -> Result<Wanted, Vec<Violation>> {
        let mut check = Check::default();
        check.at_most_one(&[("ids", self.ids.is_some()), ("account", self.account.is_some())], true);
        check.note_if(self.since.is_some() && self.account.is_none(), "since", "needs `account`");
        let mut ids = Vec::new();
        for (index, text) in self.ids.iter().flatten().enumerate() {
            ids.extend(check.parsed(format!("ids[{index}]"), delivery_id(text)));
        }
        let (account, since) = (self.account, self.since);
        check.finish(|| {
            Some(account.map_or(Wanted::Ids(ids), |uid| Wanted::FailedOf(AccountUid::from_stored(uid), since)))
        })
    }
}

/// Replay webhook deliveries
///
/// Makes one more attempt of each named delivery that has ended, or of the failed ones of an account.
#[utoipa::path(
    post, path = "/deliveries/replay", operation_id = "replayDeliveries", tag = "Deliveries", request_body = ReplayDeliveries,
    responses(ScopeErrors, (status = 202, description = "What is enqueued.", body = DeliveriesReplayed))
)]
pub async fn replay(State(app): State<App>, admin: Administrator, body: JsonBody) -> Result {
    let wanted = body.checked(ReplayDeliveries::check).await?;
    let ids = match wanted {
        Wanted::Ids(ids) => ids,
        Wanted::FailedOf(account, since) => {
            operation::failed(&mut *app.connection().await?, &account, since, REPLAYED_MAX as i64).await?
        }
    };
    deliveries::replay_all(&app, admin.actor(), None, ids).await
}
