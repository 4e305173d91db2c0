//! `GET /providers`: saved provider connections (docs/reference/models.md#connections).

use axum::extract::{OriginalUri, State};
use db::connections::Connection;
use domain::Timestamp;
use domain::limits::PAGE_MAX;
use domain::model::ConnectionList;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::extract::caller::{Caller, Generate};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::QueryReader;
use crate::models::saved;
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// Position of a connection in the list.
#[derive(PartialEq, PartialOrd, Serialize, Deserialize)]
struct ConnectionPosition {
    saved_at: Timestamp,
    id: Uuid,
}

impl ConnectionPosition {
    fn after(connection: &Connection) -> Self {
        Self { saved_at: connection.created_at, id: connection.id }
    }
}

/// List saved provider connections
///
/// Returns one page of the account's connections to providers. Use it to choose the `connectionId` of a start.
/// Keys are masked; the full key is never returned.
#[utoipa::path(
    get, path = "/providers", operation_id = "listProviders", tag = "Models and providers",
    security(("bearer" = ["image:generate"]), ("bearer" = ["video:generate"])),
    params(Paged),
    responses(ScopeErrors, (status = 200, description = "One page of connections.", body = ConnectionList))
)]
pub async fn list(State(app): State<App>, caller: Caller<Generate>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let scope = ListScope::new("providers", &caller.account, &[]);
    let request = page_request::<ConnectionPosition, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    // Operators create connections one by one, so that an account has few.
    let mut found = db::connections::list(&mut *app.connection().await?, &caller.account).await?;
    found
        .retain(|connection| request.after.as_ref().is_none_or(|after| ConnectionPosition::after(connection) > *after));
    let page = page(&app, &scope, request.limit, &mut found, ConnectionPosition::after);
    let connections = found.iter().map(|connection| saved(&app.models, connection)).collect();
    Ok(reply::ok(&ConnectionList { connections, page }))
}
