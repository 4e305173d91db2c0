//! Images and videos: upload, download, list.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use client::Answer;
use client::answers::{AssetRead, CanvasRead};
use domain::asset::AssetKind;
use domain::graph::NodeType;
use domain::limits::{OPERATIONS_MAX, TITLE_MAX};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::batch;
use super::canvases::listed;
use super::runs::save;
use crate::args::{Asset, Write};
use crate::context::{Context, canvas};
use crate::failure::{Failure, Outcome, both, file};
use crate::journal;
use crate::output::{credits, joined, optional, text};

/// Uploads at a time. The service takes eight of an account.
const UPLOADS: usize = 4;

pub async fn run(context: &Context, asset: Asset) -> Outcome {
    match asset {
        Asset::Put { files, on, no_node, metadata, again } => {
            let on = on.as_deref().map(canvas).transpose()?;
            let to = Destination { canvas: on.as_deref(), is_hidden: no_node, metadata: metadata.as_deref(), again };
            let (mut single, mut folders) = (Vec::new(), Vec::new());
            for path in files {
                match tokio::fs::metadata(&path).await.is_ok_and(|it| it.is_dir()) {
                    true => folders.push(files_of(&path).await?),
                    false => single.push(path),
                }
            }
            if to.canvas.is_none() || to.is_hidden {
                single.extend(folders.drain(..).flatten());
            }
            let files = single;
            let uploads = stream::iter(&files).map(|path| upload(context, path, to));
            let mut ended = uploads.buffered(UPLOADS);
            // Each file that fails is named; the others are uploaded nevertheless.
            let mut outcome = Ok(());
            while let Some(upload) = ended.next().await {
                let upload = upload.map(|answer| context.output.answer(&answer, uploaded));
                outcome = both(outcome, upload, context.output.json);
            }
            for folder in folders {
                outcome = both(outcome, put_folder(context, &folder, to).await, context.output.json);
            }
            outcome
        }
        Asset::Get { asset, output, width, original } => {
            let content = context.client.get_asset_content(&asset);
            save(context, content.query_if("w", width).query_if("original", original.then_some(true)), &output).await
        }
        Asset::Show { asset } => {
            let read = context.client.get_asset(&asset).query("include", "usedIn,inputs").await?;
            context.output.answer(&read, |read| described(read).join("\n"));
            Ok(())
        }
        Asset::List { kind, on, model, since, until, tag, sort, search } => {
            let on = on.as_deref().map(canvas).transpose()?;
            let row = |it: domain::asset::Asset| {
                let size = format!("{}x{}", it.width, it.height);
                vec![text(it.handle), text(it.mime_type), size, text(it.bytes), text(it.ai_generated), text(it.name)]
            };
            let list = || {
                let list = context.client.list_assets().query_if("canvasId", on.as_deref());
                let list = list.query_if("kind", kind.as_deref()).query_if("q", search.search.as_deref());
                let list = list.query_if("model", model.as_deref()).query_if("tag", tag.as_deref());
                let list = list.query_if("since", since.as_deref()).query_if("until", until.as_deref());
                list.query_if("sort", sort.as_deref())
            };
            listed(context, &search.listing, list, &["asset", "type", "size", "bytes", "AI", "name"], row).await
        }
    }
}

/// The lines about an asset: the file, how it came to be, its inputs and its places.
fn described(AssetRead { asset: it, made, inputs, used_in, more, hidden, .. }: AssetRead) -> Vec<String> {
    let duration = it.duration_seconds.map(|seconds| format!(" {seconds} s")).unwrap_or_default();
    let mut lines = vec![format!(
        "{} {} {}x{}{duration} {} bytes, AI: {}, {}",
        it.handle,
        text(it.mime_type),
        it.width,
        it.height,
        it.bytes,
        it.ai_generated,
        text(it.name)
    )];
    lines.extend(made.map(|made| {
        let model = made.model.map(|model| format!(" model {}", text(model)));
        let action = made.action_id.map(|action| format!(" {}", text(action)));
        let of_run = made.run.map(|run| format!(" {}", text(run.as_str())));
        let prompt = made.prompt.map(|prompt| format!(" prompt \"{}\"", text(prompt)));
        let source = made.source_url.map(|url| format!(" from {}", text(url)));
        let by = made.by.map(|by| format!(" by {}", text(by.label)));
        let parts: String = [model, action, of_run, prompt, source, by].into_iter().flatten().collect();
        format!("made: {}{parts}, {}", made.kind, credits(made.credit_cost))
    }));
    lines.extend(inputs.into_iter().flatten().map(|input| {
        let role = input.role.map(|role| format!(" {}", text(role))).unwrap_or_default();
        let name = if input.gone { "deleted".to_owned() } else { optional(input.name) };
        format!("input: {}{role} {name}", input.handle)
    }));
    lines.extend(used_in.into_iter().flatten().map(|place| {
        format!(
            "shown: {} {} {}",
            place.canvas,
            place.short.map_or(place.node, |short| short.to_string()),
            text(place.title)
        )
    }));
    if more == Some(true) {
        lines.push("shown: more".to_owned());
    }
    let hidden = hidden.unwrap_or_default();
    lines.extend(hidden.inputs.filter(|count| *count > 0).map(|count| format!("input: {count} that you cannot read")));
    lines.extend(hidden.used_in.filter(|count| *count > 0).map(|count| format!("shown: {count} that you cannot read")));
    lines
}

/// Uploads a file to a canvas, where no node shows it, and returns its handle.
pub async fn upload_hidden(context: &Context, path: &Path, on: &str) -> Outcome<String> {
    let on = canvas(on)?;
    let to = Destination { canvas: Some(&on), is_hidden: true, metadata: None, again: false };
    let AssetRead { asset, .. } = upload(context, path, to).await?.value()?;
    Ok(asset.handle.to_string())
}

/// The destination of uploads, and their options.
#[derive(Clone, Copy)]
struct Destination<'a> {
    canvas: Option<&'a str>,
    /// `true` if no node shows them.
    is_hidden: bool,
    metadata: Option<&'a str>,
    again: bool,
}

/// The files of a folder by name, without hidden ones.
async fn files_of(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let failed = |error: std::io::Error| file(folder, &error);
    let mut entries = tokio::fs::read_dir(folder).await.map_err(failed)?;
    let mut files = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(failed)? {
        let is_file = tokio::fs::metadata(entry.path()).await.is_ok_and(|it| it.is_file());
        if is_file && !entry.file_name().to_string_lossy().starts_with('.') {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Uploads files, and puts those that no node shows yet on the canvas together.
async fn put_folder(context: &Context, files: &[PathBuf], to: Destination<'_>) -> Outcome {
    let on = to.canvas.unwrap_or_default();
    let uploads = stream::iter(files).map(|path| upload(context, path, Destination { is_hidden: true, ..to }));
    let mut ended = uploads.buffered(UPLOADS);
    let (mut outcome, mut stored) = (Ok(()), Vec::new());
    while let Some(upload) = ended.next().await {
        let upload = match upload {
            Ok(answer) => {
                context.output.answer(&answer, uploaded);
                answer.value().map(|read| stored.push(read.asset)).map_err(Failure::from)
            }
            Err(failure) => Err(failure),
        };
        outcome = both(outcome, upload, context.output.json);
    }
    let CanvasRead { canvas, .. } = context.client.get_canvas(on).await?.value()?;
    let shown: HashSet<String> =
        canvas.nodes.values().filter_map(|node| node.asset).map(|asset| asset.to_string()).collect();
    let new = stored.iter().filter(|asset| !shown.contains(&asset.handle.to_string()));
    let operations: Vec<Value> = new
        .map(|asset| {
            let kind = if asset.kind == AssetKind::Video { NodeType::Video } else { NodeType::Image };
            let title: String = asset.name.chars().take(TITLE_MAX).collect();
            json!({"type": "node.create", "node": {"type": kind, "title": title, "asset": asset.handle.to_string()}})
        })
        .collect();
    for operations in operations.chunks(OPERATIONS_MAX) {
        let options = Write { on: on.to_owned(), dry_run: false, rebase: true, force: false };
        outcome = both(outcome, batch::write_all(context, operations.into(), &options).await, context.output.json);
    }
    outcome
}

/// Uploads a file. Its key is the hash of its name, content, canvas and rule for metadata, so that a repetition is answered from the
/// record of the first.
async fn upload(context: &Context, path: &Path, to: Destination<'_>) -> Outcome<Answer<AssetRead>> {
    let bytes = Bytes::from(tokio::fs::read(path).await.map_err(|error| file(path, &error))?);
    let Some(media_type) = client::media_type(&bytes) else {
        return Err(Failure::Usage(format!(
            "{}: is not a PNG, JPEG, WebP, GIF or AVIF image, nor an MP4 video",
            path.display()
        )));
    };
    let name = name_of(path);
    let content = journal::hash_bytes(&bytes);
    let salt = if to.again { uuid::Uuid::new_v4().to_string() } else { String::new() };
    let mut parts = vec![&*name, &*content, to.canvas.unwrap_or_default(), &*salt];
    parts.extend(to.metadata);
    let node = to.is_hidden.then_some("none");
    parts.extend(node.map(|_| "no node"));
    let key = format!("cli-{}", journal::hash(&parts));
    let bar = context.output.byte_bar(&name, bytes.len() as u64);
    let sent = bar.clone();
    let answer = context
        .client
        .upload_asset()
        .query_if("canvasId", to.canvas)
        .query_if("node", node)
        .query_if("metadata", to.metadata)
        .key(&key)
        .header(http::HeaderName::from_static("x-service-file-name"), &encoded(&name))
        .body(media_type, bytes)
        .on_sent(move |at| sent.set_position(at as u64))
        .await;
    bar.finish_and_clear();
    Ok(answer?)
}

fn uploaded(AssetRead { asset, replayed, .. }: AssetRead) -> String {
    let again = if replayed == Some(true) { "(uploaded before)".to_owned() } else { String::new() };
    let removed = Some(joined(&asset.metadata_removed, ", ")).filter(|classes| !classes.is_empty());
    let removed = removed.map(|classes| format!("(removed: {classes})")).unwrap_or_default();
    let parts = [text(asset.handle), optional(asset.node), text(asset.name), removed, again];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A name as its header carries it: percent-encoded UTF-8 (docs/reference/assets.md#file-names).
fn encoded(name: &str) -> String {
    name.bytes()
        .map(
            |byte| {
                if byte.is_ascii_graphic() && byte != b'%' {
                    (byte as char).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}
