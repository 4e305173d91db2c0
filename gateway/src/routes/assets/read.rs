//! `GET /assets/{assetId}`.

use axum::extract::{OriginalUri, State};
use domain::asset::Asset;
use domain::id::{AccountUid, AssetHandle, AssetRef};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::caller::{Caller, ReadAsset};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::problem::{Problem, Result, both};
use crate::reply;
use crate::state::App;

/// One asset.
#[derive(Serialize, ToSchema)]
pub struct AssetRead {
    /// The asset, with a fresh preview URL.
    pub asset: Asset,
    /// Whether this answers an earlier, equal upload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub replayed: Option<bool>,
}

/// Read one asset
#[utoipa::path(
    get, path = "/assets/{assetId}", operation_id = "getAsset", tag = "Assets",
    security(("bearer" = ["asset:read"])),
    params(
        ("assetId" = String, Path, pattern = "^(asset:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("ownerUid" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Owner, with a plain id."),
    ),
    responses((status = 200, body = AssetRead))
)]
pub async fn read(
    State(app): State<App>,
    caller: Caller<ReadAsset>,
    params: PathText,
    OriginalUri(uri): OriginalUri,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let owner = query.owner();
    let (named, ()) = both(params.parameter::<AssetRef>("assetId"), query.finish())?;
    let handle = resolve(named, owner, &caller.account)?;
    let mut connection = app.connection().await?;
    let (record, _) =
        db::assets::get_readable(&mut connection, &caller.account, &handle).await?.ok_or(Problem::NotFound("asset"))?;
    let preview = app.previews.make(&app.keys, &record.handle, service::clock::now());
    Ok(reply::ok(&AssetRead { asset: record.document(preview), replayed: None }))
}

/// The full handle; an owner in the handle that differs from `ownerUid` is 400 (decisions 18.2).
fn resolve(named: AssetRef, owner: Option<AccountUid>, caller: &AccountUid) -> Result<AssetHandle> {
    match (&named.owner, owner) {
        (Some(named), Some(owner)) if *named != owner => {
            Err(Problem::invalid("ownerUid", "differs from the owner that the handle names"))
        }
        (None, Some(owner)) => Ok(AssetHandle { owner, id: named.id }),
        _ => Ok(named.resolve(caller)),
    }
}
