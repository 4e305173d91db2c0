//! `GET /assets` (docs/reference/assets.md#list-assets).

use axum::extract::{OriginalUri, State};
use chrono::DateTime;
use db::assets::{AssetAfter, Wanted, lineage};
use domain::Timestamp;
use domain::asset::{Asset, AssetKindFilter, AssetList, AssetRecord, AssetSort};
use domain::id::{AssetHandle, CanvasRef, CanvasReference};
use domain::limits::ASSET_PAGE_MAX;
use domain::origin::AiGenerated;
use serde::Deserialize;
use utoipa::IntoParams;

use super::read::title_of;
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
    /// Only assets whose name, prompt and titles contain every word, whatever its case.
    #[param(min_length = 1, max_length = 200)]
    q: Option<String>,
    /// Only assets that this model made: the provider's id, as in `made.model`.
    #[param(min_length = 1, max_length = 200)]
    model: Option<String>,
    /// Only assets stored at this time or later.
    #[param(value_type = Option<Timestamp>)]
    since: Option<String>,
    /// Only assets stored before this time.
    #[param(value_type = Option<Timestamp>)]
    until: Option<String>,
    /// Only assets that a node with this tag shows.
    #[param(min_length = 1, max_length = 80)]
    tag: Option<String>,
    /// Default: last changed first.
    #[param(inline)]
    sort: Option<AssetSort>,
}

/// A time in a query.
fn time(query: &mut QueryReader<'_>, name: &str, text: Option<&str>) -> Option<Timestamp> {
    let time = DateTime::parse_from_rfc3339(text?).ok();
    if time.is_none() {
        query.refuse(name, "must be a time such as 2026-01-15T09:30:00Z");
    }
    Some(time?.to_utc().into())
}

/// List assets of the account or of a canvas
///
/// Returns one page of assets: the account's own without `canvasId`, otherwise those stored in that canvas. Videos are
/// listed with `kind` alone. Each asset has fresh URLs. Store the handle, never a URL.
#[utoipa::path(
    get, path = "/assets", operation_id = "listAssets", tag = "Assets",
    security(("bearer" = ["asset:read"])),
    params(AssetFilter, OwnerQuery, PagedAssets),
    responses(ReadErrors, (status = 200, description = "One page of assets.", body = AssetList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ReadAsset>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let AssetFilter { canvas_id, kind, ai_generated, q, model, since, until, tag, sort } =
        query.read().unwrap_or_default();
    let OwnerQuery { owner_uid } = query.read().unwrap_or_default();
    let canvas = query.canvas(canvas_id, owner_uid);
    let mut connection = app.connection().await?;
    let canvas = names::resolve_some(&mut connection, canvas, &caller.account).await?;
    let wanted = Wanted {
        canvas_key: None,
        kinds: AssetKindFilter::kinds(kind),
        ai_generated,
        words: q.iter().flat_map(|q| q.split_whitespace()).collect(),
        model: model.as_deref(),
        since: time(&mut query, "since", since.as_deref()),
        until: time(&mut query, "until", until.as_deref()),
        tag: tag.as_deref(),
        sort,
    };
    if q.is_some() && wanted.words.is_empty() {
        query.refuse("q", "must contain a word");
    }
    let named = canvas.as_ref().map(ToString::to_string);
    let [ai, kind, order] =
        [ai_generated.map(AiGenerated::as_str), kind.map(AssetKindFilter::as_str), sort.map(AssetSort::as_str)];
    let [named, q, model, since, until, tag] = [&named, &q, &model, &since, &until, &tag].map(Option::as_deref);
    let filters = [named, ai, kind, order, q, model, since, until, tag].map(Option::unwrap_or_default);
    let scope = ListScope::new("assets", &caller.account, &filters);
    let request = page_request::<AssetAfter, ASSET_PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let canvas_key = match &canvas {
        None => None,
        Some(handle) => {
            let found = db::canvases::find(&mut connection, &caller.account, handle).await?;
            Some(found.ok_or(Problem::NotFound("canvas"))?.0.key)
        }
    };
    let (wanted, limit) = (Wanted { canvas_key, ..wanted }, i64::from(request.limit) + 1);
    let mut found = db::assets::list(&mut connection, &caller.account, &wanted, request.after.as_ref(), limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, |asset| AssetAfter::new(asset, sort));
    let handles: Vec<AssetHandle> = found.iter().map(|asset| asset.handle.clone()).collect();
    let mut places = lineage::places(&mut connection, &caller.account, &handles, 1).await?;
    let mut models = lineage::models(&mut connection, &handles).await?;
    let now = service::clock::now();
    let document = |asset: AssetRecord| {
        let urls = app.previews.urls(&app.keys, &asset, now);
        let title = title_of(&places.remove(&asset.handle).unwrap_or_default());
        let model = models.remove(&asset.handle);
        Asset { title, model, ..asset.document(&caller.account, urls) }
    };
    let assets = found.into_iter().map(document).collect();
    Ok(reply::ok(&AssetList { assets, page }))
}
