//! `PATCH /element-collections/{collectionId}`.

use axum::extract::State;
use domain::element::Listed;
use domain::id::ElementCollectionId;

use super::create::{CollectionName, CollectionRead};
use crate::extract::caller::{Caller, WriteElements};
use crate::extract::json::Unread;
use crate::extract::path::PathText;
use crate::problem::{Problem, Result, both};
use crate::reply;
use crate::state::App;

/// Rename a collection of Elements
#[utoipa::path(
    patch, path = "/element-collections/{collectionId}", operation_id = "renameElementCollection", tag = "Elements", request_body = CollectionName,
    security(("bearer" = ["element:write"])),
    params(("collectionId" = String, Path, pattern = "^(element-collection:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle.")),
    responses((status = 200, body = CollectionRead))
)]
pub async fn rename(State(app): State<App>, caller: Caller<WriteElements>, params: PathText, body: Unread) -> Result {
    let id = params.parameter::<ElementCollectionId>("collectionId");
    let (wanted, id) = both(body.json::<CollectionName>().await, id)?;
    let renamed =
        db::element_collections::rename(&mut *app.connection().await?, &caller.account, &id, &wanted.name).await?;
    let collection = renamed.ok_or(Problem::NotFound("element collection"))?.document(Listed::No);
    Ok(reply::ok(&CollectionRead { collection }))
}
