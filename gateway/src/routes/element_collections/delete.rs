//! `DELETE /element-collections/{collectionId}` (decisions 7.3).

use axum::extract::State;
use domain::element::{ElementCollection, Listed};
use domain::id::ElementCollectionId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::extract::caller::{Caller, WriteElements};
use crate::extract::json::{Input, Unread, only};
use crate::extract::path::PathText;
use crate::problem::{Problem, Result, both};
use crate::reply;
use crate::state::{App, retrying};

/// The confirmation of a deletion.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteCollection {
    /// Sent only after a person confirmed it.
    #[schema(schema_with = only::<true>)]
    #[expect(dead_code, reason = "the schema admits `true` alone")]
    confirm: bool,
}

impl Input for DeleteCollection {}

/// What was deleted.
#[derive(Serialize, ToSchema)]
pub struct CollectionDeleted {
    /// Always `true`.
    #[schema(schema_with = only::<true>)]
    deleted: bool,
    /// As it was.
    collection: ElementCollection,
}

/// Delete a collection; its Elements stay
#[utoipa::path(
    delete, path = "/element-collections/{collectionId}", operation_id = "deleteElementCollection", tag = "Elements", request_body = DeleteCollection,
    security(("bearer" = ["element:write"])),
    params(("collectionId" = String, Path, pattern = "^(element-collection:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle.")),
    responses((status = 200, body = CollectionDeleted))
)]
pub async fn delete(State(app): State<App>, caller: Caller<WriteElements>, params: PathText, body: Unread) -> Result {
    let id = params.parameter::<ElementCollectionId>("collectionId");
    let (DeleteCollection { .. }, id) = both(body.json().await, id)?;
    let deleted = retrying(async || {
        Ok(db::element_collections::delete(&mut *app.connection().await?, &caller.account, &id).await?)
    });
    let collection = deleted.await?.ok_or(Problem::NotFound("element collection"))?.document(Listed::No);
    Ok(reply::ok(&CollectionDeleted { deleted: true, collection }))
}
