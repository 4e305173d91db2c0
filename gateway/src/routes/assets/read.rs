//! `GET /assets/{assetId}`.

use axum::extract::{OriginalUri, State};
use db::assets::lineage;
use domain::asset::{Asset, AssetRead};
use domain::id::{AccountUid, AssetHandle, AssetRef};
use domain::limits::PLACES_MAX;
use domain::lineage::{AssetInclude, AssetPlace, HiddenOrigins};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::caller::{Caller, ReadAsset};
use crate::extract::path::PathText;
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;

/// What a read of an asset has besides it.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReadQuery {
    /// `inputs`: what it was made from; `usedIn`: the nodes that show it.
    #[param(inline)]
    include: Option<AssetInclude>,
}

/// Read one asset
///
/// Returns one asset with a fresh preview URL, and of a video a fresh `videoUrl`. Use it to get size and type of an
/// image or video, or a new URL after the old one expired. `made` is how it came to be: prompt, model, Action. With
/// `include=usedIn,inputs` it says what it was made from and which nodes show it. It never returns the bytes: load
/// them from the URL or from `content`.
#[utoipa::path(
    get, path = "/assets/{assetId}", operation_id = "getAsset", tag = "Assets",
    security(("bearer" = ["asset:read"])),
    params(
        ("assetId" = String, Path, pattern = "^(asset:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ReadQuery,
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
    let mut query = QueryReader::new(&uri);
    let ReadQuery { include } = query.read().unwrap_or_default();
    let handle = named(&params, query, &caller.account)?;
    let account = &caller.account;
    let mut connection = app.connection().await?;
    let (record, _) =
        db::assets::get_readable(&mut connection, account, &handle).await?.ok_or(Problem::NotFound("asset"))?;
    let urls = app.previews.urls(&app.keys, &record, service::clock::now());
    let with_places = matches!(include, Some(AssetInclude::UsedIn | AssetInclude::UsedInAndInputs));
    let most = if with_places { PLACES_MAX + 1 } else { 1 };
    let mut places = lineage::places(&mut connection, account, std::slice::from_ref(&handle), most).await?;
    let mut places = places.remove(&handle).unwrap_or_default();
    let asset = Asset { title: title_of(&places), ..record.document(account, urls) };
    let mut read = AssetRead::new(asset, None);
    read.made = lineage::made(&mut connection, &handle).await?;
    let mut hidden = HiddenOrigins::default();
    if with_places {
        read.more = Some(places.len() as i64 > PLACES_MAX);
        places.truncate(PLACES_MAX as usize);
        read.used_in = Some(places);
        hidden.used_in = Some(lineage::hidden_places(&mut connection, account, &handle).await?);
    }
    if matches!(include, Some(AssetInclude::Inputs | AssetInclude::UsedInAndInputs)) {
        let (inputs, others) = lineage::inputs(&mut connection, account, &handle).await?;
        read.inputs = Some(inputs);
        hidden.inputs = Some(others);
    }
    read.hidden = include.map(|_| hidden);
    Ok(reply::ok(&read))
}

/// The title of an asset that these nodes show.
pub fn title_of(places: &[AssetPlace]) -> Option<String> {
    places.first().map(|place| place.title.clone()).filter(|title| !title.is_empty())
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
