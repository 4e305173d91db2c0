//! Handing files over.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use client::answers::DownloadLinks;
use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answer::Answer;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::stdio::Root;
use crate::tool::{Hints, Result, Tool};

/// Digits of a hash in the text; all are in the structured answer.
const HASH_DIGITS: usize = 16;

pub struct AssetDownload;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Assets, jobs of videos, or nodes
    #[schemars(length(min = 1, max = 50))]
    items: Vec<String>,
    canvas: Option<CanvasName>,
    #[schemars(range(min = 60, max = 86_400))]
    expires_in_seconds: Option<u32>,
    /// Local folder, made if it is missing
    into: Option<String>,
}

/// Links to files, or where they are.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub struct Output {
    #[serde(flatten)]
    links: Option<DownloadLinks>,
    saved: Option<Vec<Saved>>,
}

#[derive(Serialize)]
pub struct Saved {
    item: String,
    path: String,
    bytes: u64,
}

impl Tool for AssetDownload {
    const NAME: &'static str = "asset_download";
    const TITLE: &'static str = "Hand files over";
    const ABOUT: &'static str = "Links to files for a person or a shell, without a token, for an hour.";
    const HINTS: Hints = Hints { reaches_out: true, ..Hints::READ };
    const SCOPES: &'static [Scope] = &[Scope::AssetRead];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let Arguments { items, canvas, expires_in_seconds, into } = arguments;
        let canvas = canvas.as_ref().map(CanvasName::handle);
        if let Some(root) = &call.root {
            let into = into.ok_or_else(|| Failure::argument("into", "is required"))?;
            return save(call, root, &items, canvas.as_deref(), &into).await;
        }
        let mut body = json!({"items": items});
        if let Some(canvas) = canvas {
            body["canvasId"] = canvas.into();
        }
        if let Some(seconds) = expires_in_seconds {
            body["expiresInSeconds"] = seconds.into();
        }
        let links = call.client.create_downloads().json(&body).await?.value()?;
        let text = listed(&links);
        Ok(Answer::new(Output { links: Some(links), saved: None }).with_text(text))
    }
}

/// A line for each item.
fn listed(links: &DownloadLinks) -> String {
    let downloads = links.downloads.iter().map(|link| {
        let hash = link.sha256.get(..HASH_DIGITS).unwrap_or(&link.sha256);
        format!("{}  {} {} B sha256 {hash}…  {}", link.item, link.name, link.bytes, link.url)
    });
    let refused = links.refused.iter().map(|refused| format!("{}  no file: {}", refused.item, refused.code));
    let until = links.downloads.first().map(|link| format!("until {}", link.expires_at));
    downloads.chain(refused).chain(until).collect::<Vec<_>>().join("\n")
}

/// Saves the files in a folder of this machine.
async fn save(call: &Call, root: &Root, items: &[String], canvas: Option<&str>, into: &str) -> Result<Answer<Output>> {
    let folder = root.folder(Path::new(into)).map_err(|why| Failure::argument("into", why))?;
    let mut saved = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let field = format!("items[{index}]");
        let (name, file) = match item {
            job if job.starts_with("job:") => {
                (format!("{}.mp4", job.trim_start_matches("job:")), call.client.get_job_output(job))
            }
            _ => {
                let asset = match (item.starts_with("asset:"), canvas) {
                    (true, _) => item.clone(),
                    (false, None) => return Err(Failure::argument("canvas", "is required for nodes")),
                    (false, Some(canvas)) => {
                        let node = call.client.get_node(canvas, item).await?.value()?.node;
                        let asset = node.asset.map(|asset| asset.to_string());
                        asset.ok_or_else(|| Failure::argument(&field, "shows no image or video"))?
                    }
                };
                let read = call.client.get_asset(&asset).await?.value()?;
                (read.asset.name, call.client.get_asset_content(&asset))
            }
        };
        let (path, mut open) = create(&folder, &name).map_err(|why| Failure::argument(&field, why))?;
        let (mut bytes, mut failed) = (0, None);
        let read = file.read(|_, piece| {
            bytes += piece.len() as u64;
            if failed.is_none() {
                failed = open.write_all(&piece).err();
            }
            Ok(())
        });
        let read = read.await;
        if let Some(why) =
            failed.map(|error| error.to_string()).or_else(|| open.sync_all().err().map(|it| it.to_string()))
        {
            let _ = std::fs::remove_file(&path);
            return Err(Failure::argument("into", format!("{} cannot be written: {why}", path.display())));
        }
        if let Err(error) = read {
            let _ = std::fs::remove_file(&path);
            return Err(error.into());
        }
        saved.push(Saved { item: item.clone(), path: path.display().to_string(), bytes });
    }
    Ok(Answer::new(Output { links: None, saved: Some(saved) }))
}

/// A new file with this name, or with a number in it if there is one. No file is replaced.
fn create(folder: &Path, name: &str) -> Result<(std::path::PathBuf, File), String> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = if matches!(name, "" | "." | "..") { "file" } else { name };
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        _ => (name, String::new()),
    };
    for number in 1..=1000 {
        let path = folder.join(if number == 1 { name.to_owned() } else { format!("{stem}-{number}{extension}") });
        match File::options().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("{} cannot be written: {error}", path.display())),
        }
    }
    Err(format!("{} has a thousand files named {name}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_replaced_and_none_is_outside_of_the_folder() {
        let folder = std::env::temp_dir().join(format!("canvas-download-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("makes a folder");
        let name = |name: &str| {
            let (path, _) = create(&folder, name).expect("creates");
            assert_eq!(path.parent(), Some(folder.as_path()));
            path.file_name().expect("a name").to_string_lossy().into_owned()
        };
        assert_eq!(
            ["a.png", "a.png", "../a.png", "a\\b", "..", ".png", ".png"].map(name),
            ["a.png", "a-2.png", "a-3.png", "b", "file", ".png", ".png-2"]
        );
        std::fs::remove_dir_all(folder).expect("removes");
    }
}
