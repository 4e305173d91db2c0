//! What a route of the console names by its owner and id, and the person must own.

use db::PgConnection;
use domain::canvas::{AccessRole, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle};

use crate::extract::path::PathText;
use crate::problem::{Problem, Result, combine_violations};

/// The handle of the canvas in a path; 400 when malformed.
pub fn named_canvas(path: &PathText) -> Result<CanvasHandle> {
    let (owner, id) = combine_violations(path.parameter("ownerUid"), path.parameter("canvasId"))?;
    Ok(CanvasHandle { owner, id })
}

/// Reads a canvas that the person must own; 404 when it is absent or not shared with the person, 403 when it is shared.
pub async fn owned_canvas(conn: &mut PgConnection, person: &AccountUid, canvas: &CanvasHandle) -> Result<CanvasRecord> {
    let found = db::canvases::find(conn, person, canvas).await?;
    let (record, role) = found.ok_or(Problem::NotFound("canvas"))?;
    require_owner(role, "only the owner of a canvas may do this")?;
    Ok(record)
}

/// Rejects a person who is not the owner of what a route names.
pub fn require_owner(role: AccessRole, why: &str) -> Result<()> {
    match role {
        AccessRole::Owner => Ok(()),
        _ => Err(Problem::Forbidden(why.into())),
    }
}
