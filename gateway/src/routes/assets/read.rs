//! `GET /assets/{assetId}`.

use axum::extract::{OriginalUri, State};
use domain::asset::AssetRead;
use domain::id::{AccountUid, AssetHandle, AssetRef};

use crate::extract::caller::{Caller, ReadAsset};
use crate::extract::path::PathText;
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;

/// Read one asset
///
/// Returns one asset with a fresh preview URL, and of a video a fresh `videoUrl`. Use it to get size and type of an
/// image or video, or a new URL after the old one expired. It never returns the bytes: load them from the URL or from
/// `content`.
#[utoipa::path(
    get, path = "/assets/{assetId}", operation_id = "getAsset", tag = "Assets",
    security(("bearer" = ["asset:read"])),
    params(
        ("assetId" = String, Path, pattern = "^(asset:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        OwnerQuery,
    ),
    responses(ReadErrors, (status = 200, description = "The asset.", body = AssetRead))
)]
pub async fn read(
    State(app): State<App>,
    caller: Caller<ReadAsset>,
    params: PathText,
    OriginalUri(uri): OriginalUri,
) -> Result {
    let handle = named(&params, QueryReader::new(&uri), &caller.account)?;
    let mut connection = app.connection().await?;
    let (record, _) =
        db::assets::get_readable(&mut connection, &caller.account, &handle).await?.ok_or(Problem::NotFound("asset"))?;
    let urls = app.previews.urls(&app.keys, &record, service::clock::now());
    Ok(reply::ok(&AssetRead { asset: record.document(&caller.account, urls), replayed: None }))
}

/// The asset that path and query name; 400 with all violations of both.
pub fn named(params: &PathText, mut query: QueryReader<'_>, caller: &AccountUid) -> Result<AssetHandle> {
    let OwnerQuery { owner_uid: owner } = query.read().unwrap_or_default();
    let (named, ()) = combine_violations(params.parameter::<AssetRef>("assetId"), query.finish())?;
    resolve(named, owner, caller)
}

/// The full handle; 400 when the handle names a different owner than `ownerUid`.
fn resolve(named: AssetRef, owner: Option<AccountUid>, caller: &AccountUid) -> Result<AssetHandle> {
    match (&named.owner, owner) {
        (Some(named), Some(owner)) if *named != owner => {
            Err(Problem::invalid("ownerUid", "differs from the owner that the handle names"))
        }
        (None, Some(owner)) => Ok(AssetHandle { owner, id: named.id }),
        _ => Ok(named.resolve(caller)),
    }
}
