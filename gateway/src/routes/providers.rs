//! `GET /providers`: saved provider connections (specification, ProviderConnection).

use axum::extract::{OriginalUri, State};
use db::connections::Connection;
use domain::Timestamp;
use domain::limits::{PAGE_DEFAULT, PAGE_MAX};
use domain::model::ProviderConnection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::extract::caller::{Caller, Generate};
use crate::extract::page::{ListScope, Page, page, page_request};
use crate::extract::query::QueryReader;
use crate::models::saved;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// A page of the account's connections, the oldest first.
#[derive(Serialize, ToSchema)]
pub struct ConnectionList {
    /// Their keys are masked.
    connections: Vec<ProviderConnection>,
    /// Where the list stands.
    page: Page,
}

/// Where a connection stands.
#[derive(PartialEq, PartialOrd, Serialize, Deserialize)]
struct Place {
    saved_at: Timestamp,
    id: Uuid,
}

impl Place {
    fn of(connection: &Connection) -> Self {
        Self { saved_at: connection.created_at, id: connection.id }
    }
}

/// List saved provider connections
#[utoipa::path(
    get, path = "/providers", operation_id = "listProviders", tag = "Models and providers",
    security(("bearer" = ["image:generate"]), ("bearer" = ["video:generate"])),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Most items; 50 when left out."),
        ("cursor" = Option<String>, Query, max_length = 8192, description = "`nextCursor` of the page before."),
    ),
    responses((status = 200, body = ConnectionList))
)]
pub async fn list(State(app): State<App>, caller: Caller<Generate>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let scope = ListScope::new("providers", &caller.account, &[]);
    let request = page_request::<Place>(&app, &mut query, &scope, PAGE_DEFAULT, PAGE_MAX);
    query.finish()?;
    // They are made by hand, one by one: an account has a few.
    let mut found = db::connections::list(&mut *app.connection().await?, &caller.account).await?;
    found.retain(|connection| request.after.as_ref().is_none_or(|after| Place::of(connection) > *after));
    let page = page(&app, &scope, request.limit, &mut found, Place::of);
    let connections = found.iter().map(|connection| saved(&app.models, connection)).collect();
    Ok(reply::ok(&ConnectionList { connections, page }))
}
