//! `admin share` and `admin canvas …`

use clap::{Args, Subcommand};
use db::purge;
use domain::canvas::AccessRole;
use domain::id::CanvasHandle;
use serde_json::json;

use super::{Context, Refusal, Result, account, work};

/// How often a purge begins anew because work was started on the canvas meanwhile.
const ROUNDS_MAX: usize = 5;

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

/// What can be done with canvases.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Delete a canvas for good, with its nodes, history and the assets stored in it; refused while work is under way on it.
    Purge {
        /// `canvas:<ownerUid>:<id>`.
        #[arg(long)]
        canvas: String,
        /// Cancel what work is under way first, whoever started it.
        #[arg(long)]
        cancel_jobs: bool,
        /// Say that you mean it.
        #[arg(long, required = true)]
        yes: bool,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Purge { canvas, cancel_jobs, .. } = command;
    purge(context, &parse(&canvas)?, cancel_jobs).await
}

fn parse(text: &str) -> Result<CanvasHandle> {
    CanvasHandle::try_from(text.to_owned()).map_err(|_| Refusal::rule(format!("{text:?} is no canvas:<ownerUid>:<id>")))
}

/// Work is judged under the canvas's lock, which a start takes, too.
async fn purge(context: &mut Context, handle: &CanvasHandle, cancel_jobs: bool) -> Result {
    for _ in 0..ROUNDS_MAX {
        let mut transaction = db::pool::begin_on(&mut context.connection).await?;
        let key = purge::lock_canvas(&mut transaction, handle).await?;
        let key = key.ok_or_else(|| Refusal::rule(format!("there is no canvas {handle}")))?;
        if purge::active_on_canvas(&mut transaction, key).await?.is_empty() {
            let purged = purge::canvas(&mut transaction, key).await?;
            db::pool::commit(transaction).await?;
            return Ok(json!({ "canvas": handle, "purged": true, "nodes": purged.nodes, "assets": purged.assets }));
        }
        drop(transaction);
        work::quiet(context, cancel_jobs, async |connection| purge::active_on_canvas(connection, key).await).await?;
    }
    Err(Refusal::rule(
        "work is started on the canvas again and again: stop sharing it, or disable who does, and purge again",
    ))
}

pub(super) async fn share(share: Share, context: &mut Context) -> Result {
    let handle = parse(&share.canvas)?;
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
