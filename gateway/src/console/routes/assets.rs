//! `DELETE /console/assets/{ownerUid}/{assetId}`.

use app::purge::PurgedAsset;
use axum::extract::State;
use domain::channel;
use domain::id::AssetHandle;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::console::owned::require_owner;
use crate::console::person::Person;
use crate::extract::json::{Input, JsonBody, only};
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::{App, retrying};

/// Confirmation of the deletion of an asset.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteAsset {
    /// Must be `true`.
    #[schema(schema_with = only::<true>)]
    #[expect(dead_code, reason = "the schema admits `true` alone")]
    confirm: bool,
    /// Delete it even if a node shows it. The node keeps its handle.
    #[serde(default)]
    force: bool,
}

impl Input for DeleteAsset {}

/// A deleted asset.
#[derive(Serialize, ToSchema)]
pub struct AssetDeleted {
    /// Handle of the asset.
    asset: AssetHandle,
    /// Always `true`.
    #[schema(schema_with = only::<true>)]
    deleted: bool,
    /// Size of the asset in bytes.
    #[schema(minimum = 0)]
    bytes: i64,
}

/// Delete an asset
///
/// Deletes an asset of the person for good, after `confirm: true`. Its preview URLs stop working at once. Elements and history keep
/// its handle.
#[utoipa::path(
    delete, path = "/assets/{ownerUid}/{assetId}", operation_id = "deleteAsset", tag = "Deletion", request_body = DeleteAsset,
    params(
        ("ownerUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the person's account."),
        ("assetId" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Plain id of the asset."),
    ),
    responses(
        ReadErrors,
        (status = 200, description = "What was deleted.", body = AssetDeleted),
        (status = 409, description = "A node shows the asset. With `force` it is deleted anyway."),
    )
)]
pub async fn delete(State(app): State<App>, person: Person, path: PathText, body: JsonBody) -> Result {
    let named = combine_violations(path.parameter("ownerUid"), path.parameter("assetId"));
    let (DeleteAsset { force, .. }, (owner, id)) = combine_violations(body.json().await, named)?;
    let asset = AssetHandle { owner, id };
    let purged = retrying(async || {
        let mut transaction = app.transaction().await?;
        let found = db::assets::get_readable(&mut transaction, &person.account, &asset).await?;
        let (_, role) = found.ok_or(Problem::NotFound("asset"))?;
        require_owner(role, "only the owner of an asset may delete it")?;
        let purged = app::purge::asset(&mut transaction, person.actor(), &asset, force).await?;
        db::pool::commit(transaction).await?;
        Ok(purged)
    });
    let PurgedAsset { bytes, canvases } = purged.await?;
    app.announce(canvases.iter().map(channel::canvas).collect());
    Ok(reply::ok(&AssetDeleted { asset, deleted: true, bytes }))
}
