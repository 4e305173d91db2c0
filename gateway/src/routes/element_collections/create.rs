//! `POST /element-collections`.

use axum::extract::State;
use db::kept::Kept;
use domain::element::{CollectionRead, Listed};
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::extract::caller::{Caller, WriteElements};
use crate::extract::json::{Input, JsonBody};
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// Name of a collection.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionName {
    /// Name; need not be unique.
    #[schema(min_length = 1, max_length = 120)]
    pub name: String,
}

impl Input for CollectionName {}

/// Create an Element collection
///
/// Creates an empty collection. Use it to group Elements; add them with the operation `collections` of an Element.
/// Names need not be unique, so repeating the call creates another collection.
#[utoipa::path(
    post, path = "/element-collections", operation_id = "createElementCollection", tag = "Elements", request_body = CollectionName,
    security(("bearer" = ["element:write"])),
    responses(ScopeErrors, (status = 422), (status = 201, description = "The collection.", body = CollectionRead))
)]
pub async fn create(State(app): State<App>, caller: Caller<WriteElements>, body: JsonBody) -> Result {
    let wanted: CollectionName = body.json().await?;
    caller.require_acceptable()?;
    let mut transaction = app.transaction().await?;
    app::storage::require_fewer(&mut transaction, &caller.account, Kept::Collections, "name").await?;
    let made = db::element_collections::create(&mut transaction, &caller.account, &wanted.name).await?;
    db::pool::commit(transaction).await?;
    // No `Location`: a collection cannot be read on its own.
    Ok(reply::with_status(StatusCode::CREATED, &CollectionRead { collection: made.document(Listed::No) }))
}
