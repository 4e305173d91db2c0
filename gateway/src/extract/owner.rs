//! The two places of a canvas's owner: its handle, and `ownerUid` (decisions 1.4, 18.2).

use domain::id::{AccountUid, CanvasRef};

use crate::problem::{Problem, Result};

/// Joins a reference with `ownerUid`; an owner in the handle that differs is 400 (decisions 18.2).
pub fn with_owner(canvas: CanvasRef, owner: Option<AccountUid>) -> Result<CanvasRef> {
    match (&canvas.owner, owner) {
        (Some(named), Some(owner)) if *named != owner => {
            Err(Problem::invalid("ownerUid", "differs from the owner that the handle names"))
        }
        (None, Some(owner)) => Ok(CanvasRef { owner: Some(owner), id: canvas.id }),
        _ => Ok(canvas),
    }
}
