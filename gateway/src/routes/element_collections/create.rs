//! `POST /element-collections`.

use axum::extract::State;
use domain::element::{ElementCollection, Listed};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::extract::caller::{Caller, WriteElements};
use crate::extract::json::{Input, Unread};
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// The name of a collection.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionName {
    /// Need not be unique.
    #[schema(min_length = 1, max_length = 120)]
    pub name: String,
}

impl Input for CollectionName {}

/// One collection.
#[derive(Serialize, ToSchema)]
pub struct CollectionRead {
    /// As it is now.
    pub collection: ElementCollection,
}

/// Create a collection of Elements
#[utoipa::path(
    post, path = "/element-collections", operation_id = "createElementCollection", tag = "Elements", request_body = CollectionName,
    security(("bearer" = ["element:write"])),
    responses((status = 201, body = CollectionRead))
)]
pub async fn create(State(app): State<App>, caller: Caller<WriteElements>, body: Unread) -> Result {
    let wanted: CollectionName = body.json().await?;
    let made = db::element_collections::create(&mut *app.connection().await?, &caller.account, &wanted.name).await?;
    // No `Location`: a collection has no read of its own (decisions 18.1).
    Ok(reply::with_status(StatusCode::CREATED, &CollectionRead { collection: made.document(Listed::No) }))
}
