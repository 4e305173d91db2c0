//! `admin share`

use clap::Args;
use domain::canvas::AccessRole;
use domain::id::CanvasHandle;
use serde_json::json;

use super::{Context, Refusal, Result, account};

/// Shares a canvas with an account, or stops sharing it.
#[derive(Debug, Args)]
pub struct Share {
    /// `canvas:<ownerUid>:<id>`.
    #[arg(long)]
    canvas: String,
    /// Uid or email of the other account.
    #[arg(long)]
    with: String,
    /// `viewer`, `editor` or `none`.
    #[arg(long)]
    role: String,
}

pub(super) async fn run(share: Share, context: &mut Context) -> Result {
    let handle = CanvasHandle::try_from(share.canvas.clone())
        .map_err(|_| Refusal::rule(format!("{:?} is no canvas:<ownerUid>:<id>", share.canvas)))?;
    let role = match share.role.as_str() {
        "viewer" => Some(AccessRole::Viewer),
        "editor" => Some(AccessRole::Editor),
        "none" => None,
        other => return Err(Refusal::rule(format!("{other:?} is no role: viewer, editor, none"))),
    };
    let account = account(context, &share.with).await?;
    if account.uid == handle.owner {
        return Err(Refusal::rule("the account owns the canvas"));
    }
    if !db::canvases::share(&mut context.connection, &handle, &account.uid, role).await? {
        return Err(Refusal::rule(format!("there is no canvas {handle}")));
    }
    Ok(json!({ "canvas": handle, "account": account.uid, "role": share.role }))
}
