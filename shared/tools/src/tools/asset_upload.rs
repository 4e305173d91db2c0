//! Storing an image or a video.

use std::borrow::Cow;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use client::answers::AssetRead;
use domain::account::Scope;
use http::HeaderName;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::call::{Call, key_of};
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
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
    /// Base64, up to 8 MiB
    data: Option<String>,
    /// A local file instead
    path: Option<String>,
    #[schemars(length(min = 1, max = 255))]
    name: Option<String>,
    /// Also show it there, on a new node
    canvas: Option<CanvasName>,
    /// No node, for a mask
    node: Option<NoNode>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NoNode {
    None,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize, JsonSchema)]
pub struct Output {
    asset: String,
    name: String,
    width: i32,
    height: i32,
    replayed: bool,
    node: Option<String>,
    /// Of the canvas, if one was named.
    revision: Option<String>,
}

impl Tool for AssetUpload {
    const NAME: &'static str = "asset_upload";
    const TITLE: &'static str = "Upload an image or video";
    const ABOUT: &'static str = "Store a PNG, JPEG, WebP, GIF, AVIF or MP4, once however often it is called. To show it once more, \
                                 use canvas_edit with node.create and asset.";
    const HINTS: Hints = Hints::ADD_ONCE;
    const SCOPES: &'static [Scope] = &[Scope::AssetRead];
    const ANY_SCOPE: &'static [Scope] = &[Scope::ImageGenerate, Scope::VideoGenerate];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let bytes = bytes_of(call, &arguments).await?;
        let Some(media_type) = client::media_type(&bytes) else {
            return Err(Failure::argument("data", "is no PNG, JPEG, WebP, GIF, AVIF or MP4"));
        };
        let canvas = arguments.canvas.as_ref().map(CanvasName::handle);
        let own_name =
            arguments.path.as_ref().and_then(|path| Path::new(path).file_name()?.to_str().map(str::to_owned));
        let name = arguments.name.or(own_name);
        let node = arguments.node.map(|NoNode::None| "none");
        let key = key(&bytes, canvas.as_deref(), node, name.as_deref());
        let mut request =
            call.client.upload_asset().query_if("canvasId", canvas.as_ref()).query_if("node", node).key(&key);
        if let Some(name) = &name {
            request = request.header(FILE_NAME, &utf8_percent_encode(name, NON_ALPHANUMERIC).to_string());
        }
        let AssetRead { asset, replayed } = request.body(media_type, bytes).await?.value()?;
        let revision = match (&canvas, &asset.node) {
            (Some(canvas), Some(_)) => {
                let changes = call.client.get_canvas_changes(canvas).query("since", "none").await;
                changes.and_then(|read| read.value()).ok().map(|changes| changes.revision)
            }
            _ => None,
        };
        let handle = asset.handle.to_string();
        let output = Output {
            asset: handle.clone(),
            name: asset.name,
            width: asset.width,
            height: asset.height,
            replayed: replayed == Some(true),
            node: asset.node,
            revision,
        };
        Ok(Answer::new(output).with_link(&handle))
    }
}

async fn bytes_of(call: &Call, arguments: &Arguments) -> Result<Bytes> {
    match (&arguments.data, &arguments.path, &call.root) {
        (Some(data), None, _) => {
            let data = data.split_once(";base64,").map_or(data.as_str(), |(_, data)| data);
            // Line breaks are allowed in base64 (RFC 2045).
            let data: Cow<str> = match data.contains(|it: char| it.is_ascii_whitespace()) {
                true => data.split_ascii_whitespace().collect(),
                false => data.into(),
            };
            let bytes = STANDARD
                .decode(data.as_bytes())
                .map_err(|error| Failure::argument("data", format!("is no base64: {error}")))?;
            match bytes.len() <= DATA_MAX {
                true => Ok(bytes.into()),
                false => Err(Failure::argument("data", "has more than 8 MiB")),
            }
        }
        (None, Some(path), Some(root)) => {
            let (root, path) = (root.clone(), path.clone());
            #[expect(
                clippy::disallowed_methods,
                reason = "beside a local caller there is no service whose bounded pool it could use"
            )]
            let read = tokio::task::spawn_blocking(move || root.read(Path::new(&path), FILE_MAX)).await;
            let read = read.unwrap_or_else(|error| Err(error.to_string()));
            read.map(Bytes::from).map_err(|why| Failure::argument("path", why))
        }
        _ => {
            Err(Failure::argument("data", if call.root.is_some() { "give either data or path" } else { "is required" }))
        }
    }
}

/// The key of an upload: the same image with the same name at the same place is the same upload.
fn key(bytes: &[u8], canvas: Option<&str>, node: Option<&str>, name: Option<&str>) -> String {
    let (canvas, name) = (canvas.unwrap_or_default(), name.unwrap_or_default());
    // No name of a canvas has a space.
    let node = node.map(|node| format!(" {node}")).unwrap_or_default();
    key_of([canvas.as_bytes(), node.as_bytes(), b"\n", name.as_bytes(), b"\n", bytes])
}
