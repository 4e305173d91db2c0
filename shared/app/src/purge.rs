//! Deleting a canvas or an asset for good, by an operator or by its owner (docs/reference/console.md#delete-a-canvas).

use db::PgConnection;
use db::audit::{self, Actor, Event};
use db::canvases::Change;
use db::purge::{self, PurgedCanvas, Removed};
use domain::id::{AccountUid, AssetHandle, CanvasHandle};
use domain::problem::ErrorReason;

use crate::{Error, Result};

/// The result of the deletion of a canvas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CanvasPurge {
    /// The canvas was deleted. The other canvases showed images of it, and have a new revision: the caller announces it.
    Done(PurgedCanvas, Vec<CanvasHandle>),
    /// Work is active on the canvas with this key, and nothing was deleted.
    Active(i64),
}

/// Deletes a canvas with everything stored in it, unless work is active on it. Looks for active work under the lock on the canvas
/// row, which every start of work takes as well.
///
/// # Errors
///
/// [`Error::NotFound`] when there is no such canvas.
pub async fn canvas(conn: &mut PgConnection, actor: &Actor, handle: &CanvasHandle) -> Result<CanvasPurge> {
    let key = purge::lock_canvas(conn, handle).await?.ok_or(Error::NotFound("canvas"))?;
    if !purge::active_on_canvas(conn, key).await?.is_empty() {
        return Ok(CanvasPurge::Active(key));
    }
    let removed = Removed::AssetsOf(key);
    purge::lock_showing(conn, removed).await?;
    let shown = purge::showing(conn, removed).await?;
    let purged = purge::canvas(conn, key).await?;
    let event = Event::CanvasDeleted { canvas: handle.clone(), nodes: purged.nodes, assets: purged.assets };
    audit::write(conn, actor, Some(&handle.owner), &event).await?;
    Ok(CanvasPurge::Done(purged, revise(conn, shown).await?))
}

/// A deleted asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgedAsset {
    /// Its size in bytes.
    pub bytes: i64,
    /// The canvases that showed it, which have a new revision. The caller announces it.
    pub canvases: Vec<CanvasHandle>,
}

/// Deletes an asset. Without `force`, an asset that a node shows is not deleted. A write that makes a node show the asset holds it
/// ([`db::assets::hold`]): one of the two sees what the other did.
///
/// # Errors
///
/// [`Error::NotFound`] when there is no such asset, [`Error::Conflict`] when a node shows it.
pub async fn asset(conn: &mut PgConnection, actor: &Actor, handle: &AssetHandle, force: bool) -> Result<PurgedAsset> {
    let removed = Removed::Asset(handle);
    // Canvases are locked before assets.
    purge::lock_showing(conn, removed).await?;
    purge::lock_asset(conn, handle).await?;
    let shown = purge::showing(conn, removed).await?;
    if !force && !shown.is_empty() {
        return Err(Error::Conflict(
            ErrorReason::State,
            "a node shows the asset; send `force: true` to delete it anyway",
        ));
    }
    let bytes = purge::asset(conn, handle).await?.ok_or(Error::NotFound("asset"))?;
    audit::write(conn, actor, Some(&handle.owner), &Event::AssetDeleted { asset: handle.clone(), bytes }).await?;
    Ok(PurgedAsset { bytes, canvases: revise(conn, shown).await? })
}

/// Removes the labels of an account that is being purged from the activity of canvases of others. Returns those canvases, which have a
/// new revision. The caller announces it.
///
/// # Errors
///
/// Failures of the database.
pub async fn forget_actor(conn: &mut PgConnection, account: &AccountUid) -> Result<Vec<CanvasHandle>> {
    let named = purge::forget_actor(conn, account).await?;
    revise(conn, named).await
}

/// Gives each canvas the next revision whose images or activity were deleted, so that nothing that was made of the former one is
/// served.
async fn revise(conn: &mut PgConnection, shown: Vec<purge::Showing>) -> Result<Vec<CanvasHandle>> {
    let mut canvases = Vec::with_capacity(shown.len());
    for (canvas_key, changed_node_ids) in shown {
        let revision = service::random::revision();
        let change = Change { changed_otherwise: &changed_node_ids, ..Change::new(&revision) };
        canvases.push(db::canvases::write(conn, canvas_key, &change).await?.handle);
    }
    Ok(canvases)
}
