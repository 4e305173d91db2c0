//! `GET /assets/{assetId}/lineage`: what an asset was made from, and what was made from it (docs/reference/assets.md#lineage).

use std::collections::HashMap;

use axum::extract::{OriginalUri, State};
use db::PgConnection;
use db::assets::lineage::{self, Relative};
use domain::id::{AccountUid, AssetHandle};
use domain::limits::{LINEAGE_DEPTH, LINEAGE_DEPTH_MAX, LINEAGE_ITEMS, LINEAGE_ITEMS_MAX, PLACES_MAX};
use domain::lineage::{AssetLineage, LineageCost, LineageDirection, LineageDirections, LineageItem};
use serde::Deserialize;
use utoipa::IntoParams;

use super::read::named;
use crate::extract::caller::{Caller, ReadAsset};
use crate::extract::path::PathText;
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Memory that an item takes at most, in bytes: a prompt, parameters and places.
const ITEM_BYTES: u64 = 16 * 1024;

/// How much of the lineage is read.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LineageQuery {
    /// `parents`: what it was made from; `children`: what was made from it. Default: both.
    #[param(inline)]
    direction: Option<LineageDirections>,
    /// Works between the asset and an item, at most. Default: 3.
    #[param(minimum = 1, maximum = 20)]
    depth: Option<u32>,
    /// Items at most. Default: 100.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// Read the lineage of an asset
///
/// Returns what an asset was made from, what was made from it, and so on, nearest first, each asset once: how it
/// came to be, where it is shown, and what all of it cost. It outlives jobs and nodes. What the caller cannot read
/// is an item with `hidden` and without a name; a deleted asset of the caller has `gone`.
#[utoipa::path(
    get, path = "/assets/{assetId}/lineage", operation_id = "getAssetLineage", tag = "Assets",
    security(("bearer" = ["asset:read"])),
    params(
        ("assetId" = String, Path, pattern = "^(asset:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        LineageQuery,
        OwnerQuery,
    ),
    responses(ReadErrors, (status = 200, description = "The lineage.", body = AssetLineage))
)]
pub async fn lineage(
    State(app): State<App>,
    caller: Caller<ReadAsset>,
    params: PathText,
    OriginalUri(uri): OriginalUri,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let LineageQuery { direction, depth, limit } = query.read().unwrap_or_default();
    let handle = named(&params, query, &caller.account)?;
    let limit = limit.unwrap_or(LINEAGE_ITEMS).min(LINEAGE_ITEMS_MAX);
    let room = app.documents.hold(&caller.account, u64::from(limit) * ITEM_BYTES).await?;
    let mut connection = app.connection().await?;
    let (record, _) =
        db::assets::get_readable(&mut connection, &caller.account, &handle).await?.ok_or(Problem::NotFound("asset"))?;
    let walk = Walk {
        reader: &caller.account,
        directions: direction.unwrap_or(LineageDirections::Both).followed(),
        depth: depth.unwrap_or(LINEAGE_DEPTH).min(LINEAGE_DEPTH_MAX),
        limit: limit as usize,
    };
    let (items, truncated) = walk.items(&mut connection, &handle).await?;
    let known: Vec<AssetHandle> =
        std::iter::once(&handle).chain(items.iter().filter_map(|it| it.handle.as_ref())).cloned().collect();
    let edges = lineage::edges(&mut connection, &known).await?;
    let made = lineage::made(&mut connection, &handle).await?;
    drop(connection);
    let own = made.as_ref().map_or(0, |made| made.credit_cost);
    let total = items.iter().filter_map(|item| item.made.as_ref()).map(|made| made.credit_cost).sum::<i64>() + own;
    let urls = app.previews.urls(&app.keys, &record, service::clock::now());
    let asset = record.document(&caller.account, urls);
    let answer = AssetLineage { asset, made, items, edges, cost: LineageCost { own, total }, truncated };
    Ok(reply::private(reply::document(room.into_json(&answer)?)))
}

/// A walk along lineage, breadth first.
struct Walk<'a> {
    reader: &'a AccountUid,
    directions: &'static [LineageDirection],
    depth: u32,
    limit: usize,
}

impl Walk<'_> {
    /// The relatives of an asset, and whether there are more within the depth. Those that cannot be read are not followed: beyond them
    /// nothing is known to be the reader's business.
    async fn items(&self, conn: &mut PgConnection, asset: &AssetHandle) -> Result<(Vec<LineageItem>, bool)> {
        let (mut items, mut seen, mut readable) = (Vec::new(), vec![asset.clone()], Vec::new());
        let mut fronts: HashMap<LineageDirection, Vec<AssetHandle>> =
            self.directions.iter().map(|direction| (*direction, vec![asset.clone()])).collect();
        let mut truncated = false;
        'walk: for depth in 1..=self.depth {
            for direction in self.directions {
                let front = fronts.insert(*direction, Vec::new()).unwrap_or_default();
                if front.is_empty() {
                    continue;
                }
                // One more tells that there are more.
                let max = (self.limit - items.len()) as i64 + 1;
                let mut found = lineage::relatives(conn, self.reader, &front, *direction, &seen, max).await?;
                truncated = found.len() as i64 == max;
                found.truncate(self.limit - items.len());
                for relative in found {
                    seen.push(relative.asset.clone());
                    if relative.is_stored && relative.is_readable {
                        fronts.entry(*direction).or_default().push(relative.asset.clone());
                        readable.push(relative.asset.clone());
                    }
                    items.push(item(relative, depth, *direction));
                }
                if truncated {
                    break 'walk;
                }
            }
        }
        let mut places = lineage::places(conn, self.reader, &readable, PLACES_MAX).await?;
        for item in items.iter_mut().filter(|item| !item.hidden && !item.gone) {
            item.shown_in = item.handle.as_ref().map(|handle| places.remove(handle).unwrap_or_default());
        }
        Ok((items, truncated))
    }
}

/// What the reader may know of a relative, without its places.
fn item(relative: Relative, depth: u32, direction: LineageDirection) -> LineageItem {
    let Relative { asset, is_stored, is_readable, made } = relative;
    LineageItem {
        handle: is_readable.then_some(asset),
        depth,
        direction: direction.into(),
        made: made.filter(|_| is_readable),
        shown_in: None,
        hidden: !is_readable,
        gone: is_readable && !is_stored,
    }
}
