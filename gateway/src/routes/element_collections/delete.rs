//! `DELETE /element-collections/{collectionId}` (docs/reference/elements.md#delete-a-collection).

use axum::extract::State;
use domain::constant::True;
use domain::element::{CollectionDeleted, Listed};
use domain::id::ElementCollectionId;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::extract::caller::{Caller, WriteElements};
use crate::extract::json::{Input, JsonBody};
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::{App, retrying};

/// Confirmation of a deletion.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteCollection {
    /// Must be `true`. Agents must ask a person for confirmation first.
    #[schema(value_type = True, inline)]
    #[expect(dead_code, reason = "the schema admits `true` alone")]
    confirm: bool,
}

impl Input for DeleteCollection {}

/// Delete an Element collection
///
/// Deletes a collection after `confirm: true`. Use it only when a person has agreed. Its Elements lose the
/// membership and are never deleted.
#[utoipa::path(
    delete, path = "/element-collections/{collectionId}", operation_id = "deleteElementCollection", tag = "Elements", request_body = DeleteCollection,
    security(("bearer" = ["element:write"])),
    params(("collectionId" = String, Path, pattern = "^(element-collection:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle.")),
    responses(ReadErrors, (status = 200, description = "The deleted collection.", body = CollectionDeleted))
)]
pub async fn delete(State(app): State<App>, caller: Caller<WriteElements>, params: PathText, body: JsonBody) -> Result {
    let id = params.parameter::<ElementCollectionId>("collectionId");
    let (DeleteCollection { .. }, id) = combine_violations(body.json().await, id)?;
    let deleted = retrying(async || {
        let mut transaction = app.transaction().await?;
        let deleted = db::element_collections::delete(&mut transaction, &caller.account, &id).await?;
        let deleted = deleted.ok_or(Problem::NotFound("element collection"))?;
        caller.require_acceptable()?;
        db::pool::commit(transaction).await?;
        Ok(deleted)
    });
    Ok(reply::ok(&CollectionDeleted { deleted: true, collection: deleted.await?.document(Listed::No) }))
}
