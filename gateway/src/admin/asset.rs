//! `admin asset …`

use clap::Subcommand;
use domain::id::AssetHandle;
use serde_json::json;

use super::{Context, Refusal, Result};

/// What can be done with assets.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Delete an asset for good. Nodes that show it keep its handle; its bytes go when nothing else has the same, a day later.
    Purge {
        /// `asset:<ownerUid>:<id>`.
        #[arg(long)]
        asset: String,
        /// Say that you mean it.
        #[arg(long, required = true)]
        yes: bool,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Purge { asset, .. } = command;
    let handle = AssetHandle::try_from(asset.clone())
        .map_err(|_| Refusal::rule(format!("{asset:?} is no asset:<ownerUid>:<id>")))?;
    match db::purge::asset(&mut context.connection, &handle).await? {
        Some(bytes) => Ok(json!({ "asset": handle, "purged": true, "bytes": bytes })),
        None => Err(Refusal::rule(format!("there is no asset {handle}"))),
    }
}
