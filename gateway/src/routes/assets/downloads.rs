//! `POST /assets/downloads`: links that download files without a token (docs/reference/assets.md#download-links).

use std::collections::HashMap;

use axum::extract::State;
use db::assets::AssetFile;
use db::links::{NewLinks, Served};
use domain::Violation;
use domain::account::Scope;
use domain::asset::AssetMediaType;
use domain::id::{AccountUid, AssetHandle, AssetRef, CanvasHandle, CanvasReference, JobId, NodeId};
use domain::limits::DOWNLOAD_LINKS_MAX;
use domain::link::{DownloadLink, DownloadLinks, DownloadRefusal, RefusedDownload};
use serde::Deserialize;
use utoipa::ToSchema;

use super::upload::hex;
use crate::extract::caller::{Caller, ReadAsset};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::extract::names;
use crate::extract::path::JobInPath;
use crate::links::Secret;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::runs::video_of;
use crate::state::App;

/// Lifetime of a link in seconds, unless the request names one.
const SECONDS_DEFAULT: u32 = 3600;
/// `Retry-After` in seconds of a request that would exceed the number of open links.
pub const OPEN_RETRY: u64 = 60;

/// Request for download links.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DownloadRequest {
    /// What to download: handles of assets, `job:` handles of videos, or nodes of the canvas.
    #[schema(min_items = 1, max_items = 50)]
    items: Vec<String>,
    /// Canvas of the nodes among the items.
    #[schema(value_type = Option<CanvasReference>)]
    canvas_id: Option<String>,
    /// Lifetime of the links.
    #[schema(minimum = 60, maximum = 86_400)]
    expires_in_seconds: Option<u32>,
}

impl Input for DownloadRequest {}

/// What an item names.
enum Item {
    Asset(AssetHandle),
    /// `None`: the id has the form of one, but no such job can exist.
    Job(Option<JobId>),
    Node(NodeId),
}

impl Item {
    fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Node(node) => Some(node),
            _ => None,
        }
    }
}

/// A checked request.
struct Checked {
    items: Vec<(String, Item)>,
    canvas: Option<CanvasHandle>,
    seconds: u32,
}

impl DownloadRequest {
    fn check(self, account: &AccountUid) -> Result<Checked, Vec<Violation>> {
        let Self { items, canvas_id, expires_in_seconds } = self;
        let mut check = Check::default();
        let canvas = canvas_id.as_deref().and_then(|canvas| canvas_of(&mut check, canvas, None, account));
        let mut checked = Vec::with_capacity(items.len());
        let mut has_nodes = false;
        for (index, text) in items.into_iter().enumerate() {
            let field = format!("items[{index}]");
            let item = if text.starts_with("asset:") {
                check.parsed(field, AssetRef::parse(&text)).map(|asset| Item::Asset(asset.resolve(account)))
            } else if text.starts_with("job:") {
                check.parsed(field, text.parse()).map(|JobInPath(job)| Item::Job(job))
            } else {
                has_nodes = true;
                check.parsed(field, NodeId::parse(&text)).map(Item::Node)
            };
            checked.extend(item.map(|item| (text, item)));
        }
        check.note_if(has_nodes && canvas_id.is_none(), "canvasId", "is required for nodes");
        let seconds = expires_in_seconds.unwrap_or(SECONDS_DEFAULT);
        check.finish(|| Some(Checked { items: checked, canvas, seconds }))
    }
}

/// A file that a link may serve.
struct File {
    served: Served,
    name: String,
    mime_type: String,
    bytes: i64,
    sha256: Vec<u8>,
    size: (i32, i32),
}

/// Make download links
///
/// Returns, for each item, a URL from which anybody downloads its file without a token, until the link expires or the
/// token that made it ends. Use it to hand files over, or to download them with a command that has no token. The file is
/// what `content` serves, under its name, with byte ranges. An item that cannot be downloaded is listed in `refused`.
/// Jobs also need the scope job:manage, nodes canvas:read. An account has at most 1000 open links (429).
#[utoipa::path(
    post, path = "/assets/downloads", operation_id = "createDownloads", tag = "Assets", request_body = DownloadRequest,
    security(("bearer" = ["asset:read"])),
    responses(ReadErrors, (status = 200, description = "The links.", body = DownloadLinks))
)]
pub async fn create(State(app): State<App>, caller: Caller<ReadAsset>, body: JsonBody) -> Result {
    let Checked { items, canvas, seconds } = body.checked(|body: DownloadRequest| body.check(&caller.account)).await?;
    if canvas.is_some() {
        caller.require(&[Scope::CanvasRead])?;
    }
    if items.iter().any(|(_, item)| matches!(item, Item::Job(_))) {
        caller.require(&[Scope::JobManage])?;
    }
    let assets = assets(&app, &caller.account, &items, canvas.as_ref()).await?;
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for ((text, item), asset) in items.into_iter().zip(assets) {
        match file(&app, &caller.account, item, asset).await? {
            Ok(file) => found.push((text, Secret::generate(), file)),
            Err(code) => refused.push(RefusedDownload { item: text, code: code.into() }),
        }
    }
    caller.require_acceptable()?;
    let links: Vec<_> =
        found.iter().map(|(_, secret, file)| (secret.hash(), file.served.clone(), file.name.clone())).collect();
    let mut transaction = app.transaction().await?;
    let of = (&caller.account, caller.token);
    let made = db::links::create(&mut transaction, of, NewLinks::Downloads(&links), seconds).await?;
    let expires_at = made.ok_or_else(|| {
        Problem::RateLimited(format!("an account has at most {DOWNLOAD_LINKS_MAX} open download links"), OPEN_RETRY)
    })?;
    db::pool::commit(transaction).await?;
    let link = |(item, secret, file): (String, Secret, File)| DownloadLink {
        item,
        url: secret.download_url(&app),
        name: file.name,
        mime_type: file.mime_type,
        bytes: file.bytes,
        sha256: hex(&file.sha256),
        width: Some(file.size.0).filter(|width| *width > 0),
        height: Some(file.size.1).filter(|height| *height > 0),
        expires_at,
    };
    Ok(reply::ok(&DownloadLinks { downloads: found.into_iter().map(link).collect(), refused }))
}

/// The asset that each item names or shows, if the account may read it.
async fn assets(
    app: &App,
    account: &AccountUid,
    items: &[(String, Item)],
    canvas: Option<&CanvasHandle>,
) -> Result<Vec<Option<(AssetHandle, AssetFile)>>> {
    let named: Vec<NodeId> = items.iter().filter_map(|(_, item)| item.node().cloned()).collect();
    let mut shown = HashMap::new();
    if let Some(canvas) = canvas {
        let found = db::canvases::find(&mut *app.connection().await?, account, canvas).await?;
        let (record, _) = found.ok_or(Problem::NotFound("canvas"))?;
        let mut nodes = named.clone();
        names::resolve_nodes(app, record.key, &mut nodes).await?;
        let found = db::assets::of_nodes(&mut *app.connection().await?, record.key, &nodes).await?;
        let pairs = named.into_iter().zip(&nodes);
        shown.extend(pairs.filter_map(|(name, node)| Some((name, found.get(node)?.clone()))));
    }
    let mut connection = app.connection().await?;
    let handle = |item: &Item| match item {
        Item::Asset(asset) => Some(asset.clone()),
        Item::Node(node) => shown.get(node).cloned(),
        Item::Job(_) => None,
    };
    let handles: Vec<Option<AssetHandle>> = items.iter().map(|(_, item)| handle(item)).collect();
    let mut named: Vec<AssetHandle> = handles.iter().flatten().cloned().collect();
    named.sort();
    named.dedup();
    let files = db::assets::files(&mut connection, account, &named).await?;
    let file = |handle: Option<AssetHandle>| {
        let file = files.get(handle.as_ref()?)?.clone();
        Some((handle?, file))
    };
    Ok(handles.into_iter().map(file).collect())
}

/// The file of an item, or why there is none.
async fn file(
    app: &App,
    account: &AccountUid,
    item: Item,
    asset: Option<(AssetHandle, AssetFile)>,
) -> Result<Result<File, DownloadRefusal>> {
    let Item::Job(id) = item else {
        let file = |(handle, file): (AssetHandle, AssetFile)| File {
            served: Served::Asset(handle),
            name: file.name,
            mime_type: file.mime_type,
            bytes: file.bytes,
            sha256: file.sha256,
            size: (file.width, file.height),
        };
        return Ok(asset.map(file).ok_or(DownloadRefusal::NotFound));
    };
    let Some(id) = id else { return Ok(Err(DownloadRefusal::NotFound)) };
    match video_of(app, account, id).await {
        Ok(video) => Ok(Ok(File {
            served: Served::Video(id),
            name: format!("{}.mp4", id.0),
            mime_type: AssetMediaType::Mp4.as_str().to_owned(),
            bytes: i64::try_from(video.bytes).unwrap_or(i64::MAX),
            sha256: video.sha256,
            size: (0, 0),
        })),
        Err(Problem::NotFound(_)) => Ok(Err(DownloadRefusal::NotFound)),
        Err(Problem::Conflict(..)) => Ok(Err(DownloadRefusal::Conflict)),
        Err(problem) => Err(problem),
    }
}
