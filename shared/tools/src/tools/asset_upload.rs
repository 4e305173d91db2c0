//! Storing images and videos.

use std::borrow::Cow;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use client::answers::{AssetRead, UploadLinks};
use domain::Timestamp;
use domain::account::Scope;
use domain::asset::MetadataClass;
use domain::known::Name;
use http::HeaderName;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answer::Answer;
use crate::call::{Call, key_of};
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::names::NamedCanvas;
use crate::place::Place;
use crate::stdio::Root;
use crate::tool::{Hints, Result, Tool};

const FILE_NAME: HeaderName = HeaderName::from_static("x-service-file-name");
/// An image within a message, in bytes.
const DATA_MAX: usize = 8 * 1024 * 1024;
/// A file of this machine: what the service takes.
const FILE_MAX: u64 = 524_288_000;

pub struct AssetUpload;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Of your shell: answers a curl command for each
    #[schemars(length(min = 1, max = 20))]
    files: Option<Vec<File>>,
    /// One file in base64, up to 8 MiB
    data: Option<String>,
    /// Local files
    #[schemars(length(min = 1, max = 20))]
    paths: Option<Vec<String>>,
    /// With data
    #[schemars(length(min = 1, max = 255))]
    name: Option<String>,
    /// Also show it there, on a new node
    canvas: Option<CanvasName>,
    /// With files and canvas
    place: Option<Place>,
    /// No node, for a mask
    node: Option<NoNode>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// Its path
    #[schemars(length(min = 1, max = 255))]
    name: String,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NoNode {
    None,
}

/// What one call stored, or how to store it.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
pub struct Output {
    // Of `data`.
    #[serde(flatten)]
    stored: Option<Stored>,
    // Of `paths`, each as that of `data`.
    assets: Option<Vec<Stored>>,
    // Of `files`.
    uploads: Option<Vec<Link>>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub struct Stored {
    asset: String,
    name: String,
    width: i32,
    height: i32,
    /// Classes of private and other metadata that the stored file lacks.
    #[serde(rename = "metadataRemoved", skip_serializing_if = "Vec::is_empty")]
    metadata_removed: Vec<Name<MetadataClass>>,
    replayed: bool,
    node: Option<String>,
    /// Of the canvas, if one was named.
    #[serde(flatten)]
    on: Option<NamedCanvas>,
    revision: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    name: String,
    // A command that sends the file. It works once, and for nobody after it.
    curl: String,
    expires_at: Timestamp,
}

impl Tool for AssetUpload {
    const NAME: &'static str = "asset_upload";
    const TITLE: &'static str = "Upload images or a video";
    const ABOUT: &'static str = "Store an image or MP4, once however often it is called. To show it once more, \
                                 use canvas_edit with node.create and asset.";
    const HINTS: Hints = Hints::ADD_ONCE;
    const SCOPES: &'static [Scope] = &[Scope::AssetRead];
    const ANY_SCOPE: &'static [Scope] = &[Scope::ImageGenerate, Scope::VideoGenerate];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let Arguments { files, data, paths, name, canvas, place, node } = arguments;
        let canvas = canvas.as_ref().map(CanvasName::handle);
        if place.is_some() && (files.is_none() || canvas.is_none()) {
            return Err(Failure::argument("place", "needs files and canvas"));
        }
        let target = Target { canvas, node: node.map(|NoNode::None| "none") };
        match (files, data, paths, &call.root) {
            (Some(files), None, None, None) if target.node.is_none() => links(call, &files, &target, place).await,
            (Some(_), None, None, None) => Err(Failure::argument("node", "cannot be combined with files")),
            (None, Some(data), None, _) => {
                let bytes = decoded(&data).map_err(|why| Failure::argument("data", why))?;
                let stored = store(call, bytes, name.as_deref(), &target, "data").await?;
                let handle = stored.asset.clone();
                Ok(Answer::new(Output { stored: Some(stored), ..Output::default() }).with_link(&handle))
            }
            (None, None, Some(paths), Some(root)) => {
                let mut assets = Vec::new();
                for (index, path) in paths.iter().enumerate() {
                    let field = format!("paths[{index}]");
                    let bytes = read(root, path).await.map_err(|why| Failure::argument(&field, why))?;
                    let name = Path::new(path).file_name().and_then(|name| name.to_str());
                    assets.push(store(call, bytes, name, &target, &field).await?);
                }
                let handles: Vec<String> = assets.iter().map(|it| it.asset.clone()).collect();
                let answer = Answer::new(Output { assets: Some(assets), ..Output::default() });
                Ok(handles.iter().fold(answer, |answer, handle| answer.with_link(handle)))
            }
            (None, None, None, root) => {
                Err(Failure::argument("data", if root.is_some() { "give data or paths" } else { "give data or files" }))
            }
            _ => Err(Failure::argument("data", "only one of data, files and paths may be given")),
        }
    }
}

/// Where uploads go.
struct Target {
    canvas: Option<String>,
    node: Option<&'static str>,
}

/// Stores one file, which the call names by `field`.
async fn store(call: &Call, bytes: Bytes, name: Option<&str>, target: &Target, field: &str) -> Result<Stored> {
    let Some(media_type) = client::media_type(&bytes) else {
        return Err(Failure::argument(field, "is no PNG, JPEG, WebP, GIF, AVIF or MP4"));
    };
    let Target { canvas, node } = target;
    let key = key(&bytes, canvas.as_deref(), *node, name);
    let mut request =
        call.client.upload_asset().query_if("canvasId", canvas.as_ref()).query_if("node", *node).key(&key);
    if let Some(name) = name {
        request = request.header(FILE_NAME, &utf8_percent_encode(name, NON_ALPHANUMERIC).to_string());
    }
    let AssetRead { asset, replayed, .. } = request.body(media_type, bytes).await?.value()?;
    let shown = match (canvas, &asset.node) {
        (Some(canvas), Some(node)) => call.client.get_node(canvas, node).await.and_then(|read| read.value()).ok(),
        _ => None,
    };
    let name_of = shown.as_ref().and_then(|shown| shown.node.short);
    Ok(Stored {
        asset: asset.handle.to_string(),
        name: asset.name,
        width: asset.width,
        height: asset.height,
        metadata_removed: asset.metadata_removed,
        replayed: replayed == Some(true),
        node: name_of.map(|name| name.to_string()).or(asset.node),
        on: shown.as_ref().map(|shown| NamedCanvas::of(call, &shown.canvas)),
        revision: shown.map(|shown| shown.canvas.revision),
    })
}

/// Makes links that take the files.
async fn links(call: &Call, files: &[File], target: &Target, place: Option<Place>) -> Result<Answer<Output>> {
    let mut body = json!({"files": files});
    if let Some(canvas) = &target.canvas {
        body["canvasId"] = canvas.as_str().into();
    }
    if let Some(place) = place {
        body["place"] = json!(place);
    }
    let UploadLinks { uploads } = call.client.create_uploads().json(&body).await?.value()?;
    let text: String = uploads.iter().map(|link| format!("{}\n", link.curl)).collect();
    let until = uploads.first().map(|link| format!("each works once, until {}", link.expires_at)).unwrap_or_default();
    let link = |link: domain::link::UploadLink| Link { name: link.name, curl: link.curl, expires_at: link.expires_at };
    let uploads = Some(uploads.into_iter().map(link).collect());
    Ok(Answer::new(Output { uploads, ..Output::default() }).with_text(text + &until))
}

fn decoded(data: &str) -> Result<Bytes, String> {
    let data = data.split_once(";base64,").map_or(data, |(_, data)| data);
    // Line breaks are allowed in base64 (RFC 2045).
    let data: Cow<str> = match data.contains(|it: char| it.is_ascii_whitespace()) {
        true => data.split_ascii_whitespace().collect(),
        false => data.into(),
    };
    let bytes = STANDARD.decode(data.as_bytes()).map_err(|error| format!("is no base64: {error}"))?;
    match bytes.len() <= DATA_MAX {
        true => Ok(bytes.into()),
        false => Err("has more than 8 MiB".into()),
    }
}

/// Reads a file of this machine.
async fn read(root: &Root, path: &str) -> Result<Bytes, String> {
    let (root, path) = (root.clone(), path.to_owned());
    #[expect(
        clippy::disallowed_methods,
        reason = "beside a local caller there is no service whose bounded pool it could use"
    )]
    let read = tokio::task::spawn_blocking(move || root.read(Path::new(&path), FILE_MAX)).await;
    read.unwrap_or_else(|error| Err(error.to_string())).map(Bytes::from)
}

/// The key of an upload: the same image with the same name at the same place is the same upload.
fn key(bytes: &[u8], canvas: Option<&str>, node: Option<&str>, name: Option<&str>) -> String {
    let (canvas, name) = (canvas.unwrap_or_default(), name.unwrap_or_default());
    // No name of a canvas has a space.
    let node = node.map(|node| format!(" {node}")).unwrap_or_default();
    key_of([canvas.as_bytes(), node.as_bytes(), b"\n", name.as_bytes(), b"\n", bytes])
}
