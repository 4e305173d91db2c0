//! `canvas-gateway admin asset`: deletes assets, and removes private metadata from the files of old ones.

use app::purge::PurgedAsset;
use blob::BlobKey;
use clap::Subcommand;
use db::assets::Uncleaned;
use db::audit::{self, Event};
use domain::Timestamp;
use domain::asset::{MetadataClass, OriginalFile, OriginalReason};
use domain::id::AssetHandle;
use domain::message::ReadyTasks;
use futures_util::TryStreamExt;
use raster::metadata::{Class, Cleaned, Cleaner};
use serde_json::json;

use super::announcer::Announcer;
use super::{CommandError, Context, Result, account};
use crate::clean::rewrite;

/// Assets that are looked at together.
const PAGE: i64 = 100;

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
    /// Remove private metadata from the files of assets that were stored before uploads did so. The file as it came is kept for the
    /// owner of the asset, and counts against the quota even beyond it.
    Clean {
        /// Uid or email of the account whose assets are cleaned; all accounts without it.
        #[arg(long)]
        account: Option<String>,
        /// Change nothing, count what would be cleaned.
        #[arg(long)]
        dry_run: bool,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::Purge { asset, .. } => purge(context, &asset).await,
        Command::Clean { account, dry_run } => clean(context, account.as_deref(), dry_run).await,
    }
}

async fn purge(context: &mut Context, asset: &str) -> Result {
    let handle = AssetHandle::try_from(asset.to_owned())
        .map_err(|_| CommandError::rule(format!("{asset:?} is not an asset handle (asset:<ownerUid>:<id>)")))?;
    let announcer = Announcer::prepare(&context.config)?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    match app::purge::asset(&mut transaction, &context.actor, &handle, true).await {
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

/// Page by page, so that it may be interrupted and run again.
async fn clean(context: &mut Context, of: Option<&str>, dry_run: bool) -> Result {
    let owner = match of {
        Some(named) => Some(account(context, named).await?.uid),
        None => None,
    };
    let blobs = blob::Store::open(context.config.blob_url()?.as_str())?;
    let before: Timestamp = db::assets::rule_since(&mut context.connection).await?;
    let (mut examined, mut cleaned, mut unreadable, mut last) = (0_u64, 0_u64, 0_u64, None);
    loop {
        let page = db::assets::uncleaned(&mut context.connection, owner.as_ref(), before, last.as_ref(), PAGE).await?;
        let Some(end) = page.last() else { break };
        last = Some(end.handle.clone());
        for asset in &page {
            examined += 1;
            match examine(&blobs, asset).await {
                Ok(None) => {}
                Ok(Some(plan)) => cleaned += u64::from(dry_run || replace(context, &blobs, asset, plan).await?),
                Err(CommandError::Blobs(blob::Error::Missing(_))) => unreadable += 1,
                Err(error) => return Err(error),
            }
        }
    }
    if !dry_run {
        let event = Event::AssetsCleaned { assets: cleaned };
        audit::write(&mut context.connection, &context.actor, owner.as_ref(), &event).await?;
    }
    Ok(json!({ "dryRun": dry_run, "examined": examined, "cleaned": cleaned, "unreadable": unreadable }))
}

/// How the file of an asset is rewritten; `None` if it stays as it is. A file that a provider signed stays.
async fn examine(blobs: &blob::Store, asset: &Uncleaned) -> Result<Option<Cleaned>> {
    let mut cleaner = Cleaner::new();
    let mut pieces = blobs.stream(BlobKey(asset.blob_key), None).await?.stream;
    while let Some(piece) = pieces.try_next().await? {
        cleaner.push(&piece);
    }
    if asset.is_made && cleaner.has_manifest() {
        return Ok(None);
    }
    // Metadata in too many places for a plan: such an upload would be refused today.
    cleaner.finish().map_err(|error| CommandError::rule(format!("{}: {error}", asset.handle)))
}

/// Stores the rewritten file and lets the asset serve it. `false` if the asset was changed or deleted in the meantime.
async fn replace(context: &mut Context, blobs: &blob::Store, asset: &Uncleaned, plan: Cleaned) -> Result<bool> {
    let removed = MetadataClass::named(plan.removed().map(Class::as_str));
    let to = BlobKey(db::blobs::stage_unknown(&mut context.connection).await?);
    let file = rewrite(blobs, BlobKey(asset.blob_key), to, plan, |_| Ok::<_, CommandError>(())).await?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let Some(blob_key) = db::blobs::adopt(&mut transaction, file.key, &file.sha256, file.bytes).await? else {
        return Ok(false);
    };
    let original = OriginalFile {
        blob_key: asset.blob_key,
        mime_type: asset.mime_type.as_str().into(),
        bytes: asset.bytes,
        reason: OriginalReason::PrivateMetadata,
    };
    let served = (blob_key, file.bytes);
    if !db::assets::replace_file(&mut transaction, &asset.handle, served, &removed, &original).await? {
        return Ok(false);
    }
    // Workers find these tasks by themselves.
    let ready = ReadyTasks::new();
    db::renditions::request_eager(&mut transaction, blob_key, asset.size, &asset.handle.owner, None, &ready).await?;
    db::pool::commit(transaction).await?;
    Ok(true)
}
