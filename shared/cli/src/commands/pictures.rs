//! Pictures in arguments: a node or an asset by its name, a file, an address, or standard input.

use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use client::answers::{AssetRead, ImageImport};
use domain::refs::NodeRef;
use serde_json::json;

use super::assets::{Destination, upload_bytes, upload_file};
use crate::context::{Body, Context, typed};
use crate::failure::{Outcome, usage};
use crate::journal;

/// The `node:` and `asset:` handles of the pictures that these arguments name. A file is uploaded, where no node shows it; a picture
/// at an `https:` URL is imported to the canvas.
pub async fn pictures(context: &Context, on: Option<&str>, arguments: &[String]) -> Outcome<Vec<String>> {
    let mut handles = Vec::new();
    for argument in arguments {
        match argument.as_str() {
            "-" => handles.extend(of_stdin(context, on).await?),
            argument => handles.push(named(context, on, argument).await?),
        }
    }
    Ok(handles)
}

/// One picture, as [`pictures`].
pub async fn picture(context: &Context, on: Option<&str>, argument: &str) -> Outcome<String> {
    let mut handles = pictures(context, on, &[argument.to_owned()]).await?;
    match (handles.pop(), handles.is_empty()) {
        (Some(handle), true) => Ok(handle),
        _ => usage("standard input does not name one picture"),
    }
}

/// One picture, if an argument names one.
pub async fn picture_if(context: &Context, on: Option<&str>, argument: Option<String>) -> Outcome<Option<String>> {
    match argument {
        Some(argument) => picture(context, on, &argument).await.map(Some),
        None => Ok(None),
    }
}

/// The bytes of standard input are a picture, or name pictures, one on each line.
async fn of_stdin(context: &Context, on: Option<&str>) -> Outcome<Vec<String>> {
    let bytes = read_stdin().await?;
    if client::media_type(&bytes).is_some() {
        let AssetRead { asset, .. } = upload_bytes(context, "stdin", bytes, Destination::hidden(on)).await?.value()?;
        return Ok(vec![asset.handle.to_string()]);
    }
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return usage("standard input is neither an image or video of a known format, nor text that names some");
    };
    let mut handles = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        handles.push(named(context, on, line).await?);
    }
    match handles.is_empty() {
        true => usage("standard input names no picture"),
        false => Ok(handles),
    }
}

/// All bytes of standard input.
pub async fn read_stdin() -> Outcome<Bytes> {
    let read = |mut stdin: std::io::Stdin| {
        let mut bytes = Vec::new();
        stdin.read_to_end(&mut bytes).map(|_| bytes)
    };
    Ok(typed(read).await?.into())
}

async fn named(context: &Context, on: Option<&str>, argument: &str) -> Outcome<String> {
    if argument.starts_with("node:") || argument.starts_with("asset:") {
        return Ok(argument.to_owned());
    }
    if argument.starts_with("https://") {
        return import(context, on, argument).await;
    }
    if argument.starts_with("http://") {
        return usage(format!("{argument}: pictures are imported from https: addresses alone"));
    }
    // The ref of a node is no file; ./n12 is one.
    let path = Path::new(argument);
    if path.is_file() && argument.parse::<NodeRef>().is_err() {
        let AssetRead { asset, .. } = upload_file(context, path, Destination::hidden(on)).await?.value()?;
        return Ok(asset.handle.to_string());
    }
    context.shown(on, argument).await
}

/// Imports a picture for the command. The entry of the import stays until the command has ended, so that the same command after a
/// crash has the same picture.
async fn import(context: &Context, on: Option<&str>, url: &str) -> Outcome<String> {
    let Some(on) = on else { return usage(format!("name the canvas to which {url} is imported: --on CANVAS")) };
    let name = journal::hash(&[&context.origin, "picture", on, url]);
    let entry = match journal::find(&name)? {
        Some(entry) => entry,
        None => {
            let key = format!("cli-{}", uuid::Uuid::new_v4());
            let body = json!({"imageUrl": url, "canvasId": on, "idempotencyKey": key});
            journal::begin(&name, Body::from_iter(body.as_object().cloned().into_iter().flatten()))?
        }
    };
    let ImageImport { image, .. } = context.client.import_image().json(&entry.body).await?.value()?;
    context.end_with_command(entry);
    Ok(image.node_id)
}
