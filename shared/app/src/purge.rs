//! Deleting a canvas or an asset for good, by an operator or by its owner (docs/reference/console.md#delete-a-canvas).

use db::PgConnection;
use db::purge::{self, PurgedCanvas};
use domain::id::{AssetHandle, CanvasHandle};

use crate::{Error, Result};

/// What became of the deletion of a canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanvasPurge {
    /// The canvas was deleted.
    Done(PurgedCanvas),
    /// Work is active on the canvas with this key, and nothing was deleted.
    Active(i64),
}

/// Deletes a canvas with everything stored in it, unless work is active on it. Looks for active work under the lock on the canvas
/// row, which every start of work takes as well.
///
/// # Errors
///
/// [`Error::NotFound`] when there is no such canvas.
pub async fn canvas(conn: &mut PgConnection, handle: &CanvasHandle) -> Result<CanvasPurge> {
    let key = purge::lock_canvas(conn, handle).await?.ok_or(Error::NotFound("canvas"))?;
    match purge::active_on_canvas(conn, key).await?.is_empty() {
        true => Ok(CanvasPurge::Done(purge::canvas(conn, key).await?)),
        false => Ok(CanvasPurge::Active(key)),
    }
}

/// Deletes an asset and returns its size in bytes. Without `force`, an asset that a node shows is not deleted.
///
/// # Errors
///
/// [`Error::NotFound`] when there is no such asset, [`Error::Conflict`] when a node shows it.
pub async fn asset(conn: &mut PgConnection, handle: &AssetHandle, force: bool) -> Result<i64> {
    if !force && purge::is_shown(conn, handle).await? {
        return Err(Error::Conflict("a node shows the asset; send `force: true` to delete it anyway"));
    }
    purge::asset(conn, handle).await?.ok_or(Error::NotFound("asset"))
}
