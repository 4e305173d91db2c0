//! `canvas-gateway admin asset`: deletes assets.

use app::purge::PurgedAsset;
use clap::Subcommand;
use domain::id::AssetHandle;
use serde_json::json;

use super::announcer::Announcer;
use super::{CommandError, Context, Result};

/// The subcommands of `admin asset`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Delete an asset permanently. Nodes keep its handle; its bytes are removed a day later unless another asset has the same
    /// bytes.
    Purge {
        /// Handle of the asset, `asset:<ownerUid>:<id>`.
        #[arg(long)]
        asset: String,
        /// Confirm the deletion.
        #[arg(long, required = true)]
        yes: bool,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Purge { asset, .. } = command;
    let handle = AssetHandle::try_from(asset.clone())
        .map_err(|_| CommandError::rule(format!("{asset:?} is not an asset handle (asset:<ownerUid>:<id>)")))?;
    let announcer = Announcer::prepare(&context.config)?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    match app::purge::asset(&mut transaction, &handle, true).await {
        Ok(PurgedAsset { bytes, canvases }) => {
            db::pool::commit(transaction).await?;
            for canvas in &canvases {
                announcer.canvas(canvas).await;
            }
            Ok(json!({ "asset": handle, "purged": true, "bytes": bytes }))
        }
        Err(app::Error::NotFound(_)) => Err(CommandError::rule(format!("{handle} does not exist"))),
        Err(error) => Err(error.into()),
    }
}
