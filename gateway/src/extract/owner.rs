//! The two places that can name a canvas's owner: its handle, and `ownerUid` (docs/reference/conventions.md#canvas-and-owner).

use domain::id::{AccountUid, CanvasRef};

use crate::problem::{Problem, Result};

/// Combines a reference with `ownerUid`; 400 when the handle names a different owner.
pub fn with_owner(canvas: CanvasRef, owner: Option<AccountUid>) -> Result<CanvasRef> {
    match (&canvas.owner, owner) {
        (Some(named), Some(owner)) if *named != owner => {
            Err(Problem::invalid("ownerUid", "differs from the owner that the handle names"))
        }
        (None, Some(owner)) => Ok(CanvasRef { owner: Some(owner), id: canvas.id }),
        _ => Ok(canvas),
    }
}
