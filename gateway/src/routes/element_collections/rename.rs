//! `PATCH /element-collections/{collectionId}`.

use axum::extract::State;
use domain::element::{CollectionRead, Listed};
use domain::id::ElementCollectionId;

use super::create::CollectionName;
use crate::extract::caller::{Caller, WriteElements};
use crate::extract::json::JsonBody;
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;

/// Rename an Element collection
///
/// Changes the name of a collection. Use it to correct or clarify a name. It never changes members or their
/// versions.
#[utoipa::path(
    patch, path = "/element-collections/{collectionId}", operation_id = "renameElementCollection", tag = "Elements", request_body = CollectionName,
    security(("bearer" = ["element:write"])),
    params(("collectionId" = String, Path, pattern = "^(element-collection:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle.")),
    responses(ReadErrors, (status = 200, description = "The renamed collection.", body = CollectionRead))
)]
pub async fn rename(State(app): State<App>, caller: Caller<WriteElements>, params: PathText, body: JsonBody) -> Result {
    let id = params.parameter::<ElementCollectionId>("collectionId");
    let (wanted, id) = combine_violations(body.json::<CollectionName>().await, id)?;
    let mut transaction = app.transaction().await?;
    let renamed = db::element_collections::rename(&mut transaction, &caller.account, &id, &wanted.name).await?;
    let renamed = renamed.ok_or(Problem::NotFound("element collection"))?;
    caller.require_acceptable()?;
    db::pool::commit(transaction).await?;
    Ok(reply::ok(&CollectionRead { collection: renamed.document(Listed::No) }))
}
