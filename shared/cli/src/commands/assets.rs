//! Images and videos: upload, download, list.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use client::Answer;
use client::answers::AssetRead;
use domain::asset::AssetKind;
use domain::counted;
use domain::graph::NodeType;
use domain::limits::{OPERATIONS_MAX, TITLE_MAX};
use futures_util::{StreamExt, stream};
use indicatif::{DecimalBytes, ProgressBar};
use serde_json::{Value, json};

use super::batch;
use super::canvases::listed;
use super::files::{Source, is_stdio, save_all};
use super::pictures::read_stdin;
use crate::args::{Asset, On, Write};
use crate::context::Context;
use crate::failure::{Outcome, both, file, usage};
use crate::journal;
use crate::names::with_stdin;
use crate::output::{credits, joined, optional, text};

/// Uploads at a time. The service takes eight of an account.
const UPLOADS: usize = 4;

pub async fn run(context: &Context, asset: Asset) -> Outcome {
    match asset {
        Asset::Put { files, recursive, on, no_canvas, no_node, metadata, again } => {
            let on = if no_canvas { None } else { context.on_if_any(on.as_deref()).await? };
            let is_hidden = no_node && on.is_some();
            let metadata = metadata.as_deref();
            let to = Destination { canvas: on.as_deref(), is_hidden, metadata, again, total: None };
            put(context, files, recursive, to).await
        }
        Asset::Get { assets, output, on, width, original } => {
            let on = context.on_if_any(on.on.as_deref()).await?;
            let mut sources = Vec::new();
            for name in with_stdin(assets).await? {
                sources.push(Source::Asset(context.asset_of(on.as_deref(), &name).await?));
            }
            let original = original.then_some(true);
            save_all(context, &sources, &output, |it| it.query_if("w", width.as_deref()).query_if("original", original))
                .await
        }
        Asset::Show { asset, on } => {
            let on = context.on_if_any(on.on.as_deref()).await?;
            let asset = context.asset_of(on.as_deref(), &asset).await?;
            let read = context.client.get_asset(&asset).query("include", "usedIn,inputs").await?;
            context.output.answer(&read, |read| described(read).join("\n"));
            Ok(())
        }
        Asset::List { kind, on, model, since, until, tag, sort, search } => {
            let on = match on {
                Some(on) => Some(context.canvas(&on).await?),
                None => None,
            };
            let row = |it: domain::asset::Asset| {
                let size = format!("{}x{}", it.width, it.height);
                let title = text(it.title.unwrap_or(it.name));
                vec![title, text(it.handle), text(it.mime_type), size, text(it.bytes), text(it.ai_generated)]
            };
            let list = || {
                let list = context.client.list_assets().query_if("canvasId", on.as_deref());
                let list = list.query_if("kind", kind.as_deref()).query_if("q", search.search.as_deref());
                let list = list.query_if("model", model.as_deref()).query_if("tag", tag.as_deref());
                let list = list.query_if("since", since.as_deref()).query_if("until", until.as_deref());
                list.query_if("sort", sort.as_deref())
            };
            listed(context, &search.listing, list, &["title", "asset", "type", "size", "bytes", "AI"], row).await
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

/// The destination of uploads, and their options.
#[derive(Clone, Copy)]
pub struct Destination<'a> {
    canvas: Option<&'a str>,
    /// `true` if no node shows them.
    is_hidden: bool,
    metadata: Option<&'a str>,
    again: bool,
    /// The bar of all uploads of the command.
    total: Option<&'a ProgressBar>,
}

impl<'a> Destination<'a> {
    /// A canvas, where no node shows them, or no canvas.
    pub fn hidden(canvas: Option<&'a str>) -> Self {
        Self { canvas, is_hidden: canvas.is_some(), metadata: None, again: false, total: None }
    }
}

/// Prints what an upload has stored.
fn print(context: &Context, answer: &Answer<AssetRead>) {
    let handle = |AssetRead { asset, .. }: &AssetRead| {
        vec![asset.node.as_ref().map_or_else(|| asset.handle.to_string(), ToString::to_string)]
    };
    context.output.made(answer, handle, uploaded);
}

/// The files of a folder by name, without hidden ones; those of its folders, too, if it is `recursive`.
async fn files_of(folder: &Path, recursive: bool) -> Outcome<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let failed = |error: std::io::Error| file(&folder, &error);
        let mut entries = tokio::fs::read_dir(&folder).await.map_err(failed)?;
        while let Some(entry) = entries.next_entry().await.map_err(failed)? {
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            // Folders are not entered through links, which may lead back.
            let is_folder = entry.file_type().await.map_err(failed)?.is_dir();
            if is_folder && recursive {
                folders.push(entry.path());
            } else if !is_folder && tokio::fs::metadata(entry.path()).await.is_ok_and(|it| it.is_file()) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Uploads files in the order of the arguments. On a canvas, those of a command with a folder are placed together; otherwise each
/// becomes a node by itself. A file that fails is named; the others are uploaded nevertheless.
async fn put(context: &Context, arguments: Vec<PathBuf>, recursive: bool, to: Destination<'_>) -> Outcome {
    let (mut files, mut has_folder) = (Vec::new(), false);
    for path in arguments {
        match tokio::fs::metadata(&path).await.is_ok_and(|it| it.is_dir()) {
            true => {
                has_folder = true;
                files.extend(files_of(&path, recursive).await?);
            }
            false => files.push(path),
        }
    }
    let together = to.canvas.filter(|_| has_folder && !to.is_hidden);
    let mut bytes = 0;
    for path in &files {
        bytes += tokio::fs::metadata(path).await.map_or(0, |it| it.len());
    }
    let total = (files.len() > 1).then(|| context.output.total_bar(bytes));
    let to = Destination { is_hidden: to.is_hidden || together.is_some(), total: total.as_ref(), ..to };
    let began = Instant::now();
    let mut ended = stream::iter(&files).map(|path| upload_file(context, path, to)).buffered(UPLOADS);
    let (mut outcome, mut stored, mut again) = (Ok(()), Vec::new(), 0);
    while let Some(upload) = ended.next().await {
        let upload = upload.and_then(|answer| {
            // Of files that are placed together, the nodes are named.
            if together.is_none() || !context.output.quiet {
                print(context, &answer);
            }
            let read = answer.value()?;
            again += usize::from(read.replayed == Some(true));
            stored.push(read.asset);
            Ok(())
        });
        outcome = both(outcome, upload, context.output.json);
    }
    if let Some(total) = &total {
        total.finish_and_clear();
        let failed = files.len() - stored.len();
        let before = if again > 0 { format!(", {again} of them uploaded before") } else { String::new() };
        let stored = counted(stored.len(), "file");
        let seconds = began.elapsed().as_secs_f64();
        context
            .output
            .remark(format!("{stored} stored{before}, {failed} failed, {} in {seconds:.1} s", DecimalBytes(bytes)));
    }
    match together {
        Some(on) => both(outcome, place(context, on, &stored).await, context.output.json),
        None => outcome,
    }
}

/// Puts assets that no node of the canvas shows yet on it, in one grid.
async fn place(context: &Context, on: &str, stored: &[domain::asset::Asset]) -> Outcome {
    let canvas = context.graph(on).await?;
    let mut shown: HashSet<String> =
        canvas.nodes.values().filter_map(|node| node.asset).map(|asset| asset.to_string()).collect();
    // A file that was named twice is placed once.
    let new = stored.iter().filter(|asset| shown.insert(asset.handle.to_string()));
    let operations: Vec<Value> = new
        .enumerate()
        .map(|(at, asset)| {
            let kind = if asset.kind == AssetKind::Video { NodeType::Video } else { NodeType::Image };
            let title: String = asset.name.chars().take(TITLE_MAX).collect();
            let node = json!({"type": kind, "title": title, "asset": asset.handle.to_string()});
            json!({"type": "node.create", "clientId": format!("file-{at}"), "node": node})
        })
        .collect();
    let mut outcome = Ok(());
    for operations in operations.chunks(OPERATIONS_MAX) {
        let options = Write { on: On { on: None }, dry_run: false, rebase: true, force: false };
        outcome = both(outcome, batch::write_all(context, operations.into(), on, &options).await, context.output.json);
    }
    outcome
}

/// Uploads a file; `-` is standard input.
pub async fn upload_file(context: &Context, path: &Path, to: Destination<'_>) -> Outcome<Answer<AssetRead>> {
    if is_stdio(path) {
        return upload_bytes(context, "stdin", read_stdin().await?, to).await;
    }
    let bytes = tokio::fs::read(path).await.map_err(|error| file(path, &error))?;
    upload_bytes(context, &path.display().to_string(), bytes.into(), to).await
}

/// Uploads the content of a file. Its key is the hash of its name, content, canvas and rule for metadata, so that a repetition is
/// answered from the record of the first.
pub async fn upload_bytes(
    context: &Context,
    path: &str,
    bytes: Bytes,
    to: Destination<'_>,
) -> Outcome<Answer<AssetRead>> {
    let Some(media_type) = client::media_type(&bytes) else {
        return usage(format!("{path}: is not a PNG, JPEG, WebP, GIF or AVIF image, nor an MP4 video"));
    };
    let name = name_of(Path::new(path));
    let content = journal::hash_bytes(&bytes);
    let salt = if to.again { uuid::Uuid::new_v4().to_string() } else { String::new() };
    let mut parts = vec![&*name, &*content, to.canvas.unwrap_or_default(), &*salt];
    parts.extend(to.metadata);
    let node = to.is_hidden.then_some("none");
    parts.extend(node.map(|_| "no node"));
    let key = format!("cli-{}", journal::hash(&parts));
    let length = bytes.len() as u64;
    let (bar, total) = (context.output.byte_bar(&name, length), to.total.cloned());
    let (sent, all) = (bar.clone(), total.clone());
    let answer = context
        .client
        .upload_asset()
        .query_if("canvasId", to.canvas)
        .query_if("node", node)
        .query_if("metadata", to.metadata)
        .key(&key)
        .header(http::HeaderName::from_static("x-service-file-name"), &encoded(&name))
        .body(media_type, bytes)
        .on_sent(move |at| {
            // A repetition begins anew.
            let at = at as u64;
            if let Some(all) = &all {
                all.inc(at.saturating_sub(sent.position()));
            }
            sent.set_position(at.max(sent.position()));
        })
        .await;
    if let Some(total) = total {
        total.inc(length.saturating_sub(bar.position()));
    }
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
