//! `canvas-gateway admin share` and `canvas-gateway admin canvas`: shares and deletes canvases.

use app::purge::CanvasPurge;
use clap::{Args, Subcommand};
use db::purge;
use domain::canvas::AccessRole;
use domain::id::CanvasHandle;
use serde_json::json;

use super::announcer::Announcer;
use super::{CommandError, Context, Result, account, work};

/// How often a purge starts over because work was started on the canvas in the meantime.
const ROUNDS_MAX: usize = 5;

/// Arguments of `admin share`.
#[derive(Debug, Args)]
pub struct Share {
    /// Handle of the canvas, `canvas:<ownerUid>:<id>`.
    #[arg(long)]
    canvas: String,
    /// Uid or email of the other account.
    #[arg(long)]
    with: String,
    /// Role of the account: `viewer`, `editor`, or `none` to stop sharing.
    #[arg(long)]
    role: String,
}

/// The subcommands of `admin canvas`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Delete a canvas with its nodes, history and stored assets, permanently; refused while work is active on it.
    Purge {
        /// Handle of the canvas, `canvas:<ownerUid>:<id>`.
        #[arg(long)]
        canvas: String,
        /// Cancel the active work on the canvas first, whoever started it.
        #[arg(long)]
        cancel_jobs: bool,
        /// Confirm the deletion.
        #[arg(long, required = true)]
        yes: bool,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Purge { canvas, cancel_jobs, .. } = command;
    purge(context, &parse(&canvas)?, cancel_jobs).await
}

fn parse(text: &str) -> Result<CanvasHandle> {
    CanvasHandle::try_from(text.to_owned())
        .map_err(|_| CommandError::rule(format!("{text:?} is not a canvas handle (canvas:<ownerUid>:<id>)")))
}

/// Deletes a canvas, and starts over when work was started on it in the meantime.
async fn purge(context: &mut Context, handle: &CanvasHandle, cancel_jobs: bool) -> Result {
    let announcer = Announcer::prepare(&context.config)?;
    for _ in 0..ROUNDS_MAX {
        let mut transaction = db::pool::begin_on(&mut context.connection).await?;
        let key = match app::purge::canvas(&mut transaction, &context.actor, handle).await {
            Ok(CanvasPurge::Done(purged, others)) => {
                db::pool::commit(transaction).await?;
                for canvas in others.iter().chain([handle]) {
                    announcer.canvas(canvas).await;
                }
                return Ok(json!({ "canvas": handle, "purged": true, "nodes": purged.nodes, "assets": purged.assets }));
            }
            Ok(CanvasPurge::Active(key)) => key,
            Err(app::Error::NotFound(_)) => return Err(CommandError::rule(format!("{handle} does not exist"))),
            Err(error) => return Err(error.into()),
        };
        drop(transaction);
        work::quiet(context, cancel_jobs, async |connection| purge::active_on_canvas(connection, key).await).await?;
    }
    Err(CommandError::rule(
        "work keeps being started on the canvas: stop sharing it, or disable the account that starts it, and purge again",
    ))
}

pub(super) async fn share(share: Share, context: &mut Context) -> Result {
    let handle = parse(&share.canvas)?;
    let role = match share.role.as_str() {
        "viewer" => Some(AccessRole::Viewer),
        "editor" => Some(AccessRole::Editor),
        "none" => None,
        other => return Err(CommandError::rule(format!("{other:?} is not a role: viewer, editor, none"))),
    };
    let account = account(context, &share.with).await?;
    if account.uid == handle.owner {
        return Err(CommandError::rule("the account owns the canvas"));
    }
    let announcer = Announcer::prepare(&context.config)?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    match app::sharing::share(&mut transaction, &context.actor, &handle, &account.uid, role).await {
        Err(app::Error::NotFound(_)) => return Err(CommandError::rule(format!("{handle} does not exist"))),
        shared => shared?,
    }
    db::pool::commit(transaction).await?;
    announcer.canvas(&handle).await;
    Ok(json!({ "canvas": handle, "account": account.uid, "role": share.role }))
}
