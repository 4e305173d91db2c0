//! Sharing canvases, by their owners or an operator (docs/reference/canvases.md#roles).

use db::PgConnection;
use db::audit::{self, Actor, Event};
use domain::canvas::AccessRole;
use domain::id::{AccountUid, CanvasHandle};

use crate::{Error, Result};

/// Sets the role of an account on a canvas, or takes it away, and writes that into the audit. The caller commits and announces it.
///
/// # Errors
///
/// [`Error::NotFound`] when there is no such canvas.
pub async fn share(
    conn: &mut PgConnection,
    actor: &Actor,
    canvas: &CanvasHandle,
    with: &AccountUid,
    role: Option<AccessRole>,
) -> Result<()> {
    if !db::canvases::share(conn, canvas, with, role).await? {
        return Err(Error::NotFound("canvas"));
    }
    let (handle, account) = (canvas.clone(), with.clone());
    let event = match role {
        Some(role) => Event::CanvasShared { canvas: handle, with: account, role },
        None => Event::CanvasUnshared { canvas: handle, with: account },
    };
    audit::write(conn, actor, Some(&canvas.owner), &event).await?;
    Ok(())
}
