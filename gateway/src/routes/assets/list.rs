//! `GET /assets` (docs/reference/assets.md#list-assets).

use axum::extract::{OriginalUri, State};
use db::assets::Wanted;
use db::canvases::After;
use domain::asset::{AssetKindFilter, AssetList};
use domain::id::{CanvasRef, CanvasReference};
use domain::limits::ASSET_PAGE_MAX;
use domain::origin::AiGenerated;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::caller::{Caller, ReadAsset};
use crate::extract::names;
use crate::extract::page::{ListScope, PagedAssets, page, page_request};
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Which assets are listed.
#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct AssetFilter {
    /// Plain id or handle of a canvas.
    #[param(value_type = Option<CanvasReference>)]
    canvas_id: Option<CanvasRef>,
    /// Only assets of this kind, or `all`. Default: images and prompts, so that a reader from before videos gets what it knows.
    #[param(inline)]
    kind: Option<AssetKindFilter>,
    /// Only assets with this `aiGenerated`: `yes`, `partly`, `no` or `unknown`.
    ai_generated: Option<AiGenerated>,
}

/// List assets of the account or of a canvas
///
/// Returns one page of assets, newest update first: the account's own without `canvasId`, otherwise those stored
/// in that canvas. Videos are listed with `kind` alone. Each asset has fresh URLs. Store the handle, never a URL.
#[utoipa::path(
    get, path = "/assets", operation_id = "listAssets", tag = "Assets",
    security(("bearer" = ["asset:read"])),
    params(AssetFilter, OwnerQuery, PagedAssets),
    responses(ReadErrors, (status = 200, description = "One page of assets.", body = AssetList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ReadAsset>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let AssetFilter { canvas_id, kind, ai_generated } = query.read().unwrap_or_default();
    let OwnerQuery { owner_uid } = query.read().unwrap_or_default();
    let canvas = query.canvas(canvas_id, owner_uid);
    let mut connection = app.connection().await?;
    let canvas = names::resolve_some(&mut connection, canvas, &caller.account).await?;
    let filter = canvas.as_ref().map(ToString::to_string).unwrap_or_default();
    let parts = [&*filter, ai_generated.map_or("", AiGenerated::as_str), kind.map_or("", AssetKindFilter::as_str)];
    let scope = ListScope::new("assets", &caller.account, &parts);
    let request = page_request::<After, ASSET_PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let wanted = Wanted { kinds: AssetKindFilter::kinds(kind), ai_generated };
    let mut found = match &canvas {
        None => db::assets::list_own(&mut connection, &caller.account, wanted, after, limit).await?,
        Some(handle) => {
            let (record, _) = db::canvases::find(&mut connection, &caller.account, handle)
                .await?
                .ok_or(Problem::NotFound("canvas"))?;
            db::assets::list_canvas(&mut connection, record.key, wanted, after, limit).await?
        }
    };
    let page = page(&app, &scope, request.limit, &mut found, |asset| After {
        updated_at: asset.updated_at,
        handle: asset.handle.to_string(),
    });
    let now = service::clock::now();
    let assets = found
        .into_iter()
        .map(|asset| {
            let urls = app.previews.urls(&app.keys, &asset, now);
            asset.document(&caller.account, urls)
        })
        .collect();
    Ok(reply::ok(&AssetList { assets, page }))
}
