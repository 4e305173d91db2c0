//! Files that commands write: to a file, a folder, or standard output.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use client::answers::{AssetRead, File};
use client::{Call, Unreachable, WorkRecord};
use futures_util::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Outcome, file, usage};
use crate::output::{is_unread, put};

/// Characters of a title in the name of a file.
const STEM_MAX: usize = 60;

/// An image or video that can be downloaded.
pub enum Source {
    /// An asset by its handle.
    Asset(String),
    /// The video of a job.
    Job(String),
}

/// The images and videos that work has made.
pub fn made(record: &WorkRecord) -> Vec<Source> {
    let images = record.images.iter().map(|it| Source::Asset(it.asset_id.to_string()));
    let outputs = record.outputs.iter().filter_map(|it| it.asset_id.clone().map(Source::Asset));
    let video = record.video.as_ref().map(|video| match &video.asset_id {
        Some(asset) => Source::Asset(asset.to_string()),
        None => Source::Job(record.handle().to_owned()),
    });
    images.chain(outputs).chain(video).collect()
}

/// Returns `true` if a path is standard output or input.
pub fn is_stdio(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns `true` if files go into a folder: it exists, or its name ends with a slash.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The name of a file in a folder: its title, and the end of its id, so that no two files share a name and the same one is written
/// twice under the same name.
pub fn name_in_folder(title: &str, handle: &str, media_type: &str) -> String {
    let stem = Path::new(title).file_stem().unwrap_or_default().to_string_lossy();
    let stem: String =
        stem.chars().take(STEM_MAX).map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    let stem = stem.trim_matches(['-', '.']);
    let id: Vec<char> = handle.chars().filter(char::is_ascii_alphanumeric).collect();
    let id: String = id[id.len().saturating_sub(8)..].iter().collect();
    let extension = match media_type {
        "image/jpeg" => "jpg",
        other => other.rsplit('/').next().unwrap_or("bin"),
    };
    if stem.is_empty() { format!("{id}.{extension}") } else { format!("{stem}-{id}.{extension}") }
}

/// The path of the file number `at`, counted from 0, of several that go to one name: `board.png`, `board-2.png`, ….
fn numbered(path: &Path, at: usize) -> PathBuf {
    if at == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|it| format!(".{}", it.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{}{extension}", at + 1))
}

/// Writes images and videos to a file, each to one of its own; into a folder; or one to standard output for `-`.
pub async fn save_all(
    context: &Context,
    sources: &[Source],
    path: &Path,
    options: impl Fn(Call<File>) -> Call<File>,
) -> Outcome {
    if is_stdio(path) && sources.len() > 1 {
        return usage(format!("{} files do not go to standard output: name a folder, -o DIR/", sources.len()));
    }
    for (at, source) in sources.iter().enumerate() {
        let call = match source {
            Source::Asset(asset) => options(context.client.get_asset_content(asset)),
            Source::Job(job) => context.client.get_job_output(job),
        };
        if !is_folder(path) {
            save(context, call, |_| numbered(path, at)).await?;
            continue;
        }
        fs::create_dir_all(path).map_err(|error| file(path, &error))?;
        let (title, handle) = match source {
            Source::Asset(handle) => {
                let AssetRead { asset, .. } = context.client.get_asset(handle).await?.value()?;
                (asset.title.unwrap_or(asset.name), handle)
            }
            Source::Job(handle) => ("video".to_owned(), handle),
        };
        save(context, call, |media_type| path.join(name_in_folder(&title, handle, media_type))).await?;
    }
    Ok(())
}

/// The part of a file that has arrived. It is removed when it is dropped, so also when an interrupt ends the download.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        // After it was renamed, there is nothing to remove.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes an answer as it arrives to the file that `path` names by its media type, or to standard output for `-`. A file is complete
/// or absent. To a pipe or a device, the bytes are written directly.
async fn save(context: &Context, call: Call<File>, path: impl Fn(&str) -> PathBuf) -> Outcome {
    let (head, mut body) = call.stream().await?.into_parts();
    let header = |name| head.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let path = path(header(CONTENT_TYPE).split(';').next().unwrap_or_default());
    let failed = |error: std::io::Error| client::Error::from(Unreachable(error.to_string()));
    if is_stdio(&path) {
        // Nobody reads the rest, which is no failure.
        while !is_unread()
            && let Some(piece) = body.next().await
        {
            put(&piece.map_err(failed)?);
        }
        return Ok(());
    }
    let is_special = fs::metadata(&path).is_ok_and(|it| !it.is_file() && !it.is_dir());
    let part = (!is_special).then(|| Part(path.with_extension(format!("part-{}", std::process::id()))));
    let target = part.as_ref().map_or(path.as_path(), |part| &part.0);
    // On a thread of its own: a pipe opens when somebody reads from it.
    let opened = tokio::fs::File::create(target).await.map_err(|error| file(target, &error))?;
    let mut to = opened.into_std().await;
    let bar = context.output.byte_bar(&path.display().to_string(), header(CONTENT_LENGTH).parse().unwrap_or_default());
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(failed)?;
        bar.inc(piece.len() as u64);
        to.write_all(&piece).map_err(|error| file(target, &error))?;
    }
    bar.finish_and_clear();
    if part.is_some() {
        to.sync_all().and_then(|()| fs::rename(target, &path)).map_err(|error| file(&path, &error))?;
    }
    context.output.wrote(&path, &json!({"file": path}));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_a_folder_is_named_by_its_title_and_id() {
        let named = |title: &str| name_in_folder(title, "asset:me:0199-8f2c-aabbccdd", "image/jpeg");
        assert_eq!(named("A mug at dawn"), "A-mug-at-dawn-aabbccdd.jpg");
        assert_eq!(named("photo.png"), "photo-aabbccdd.jpg");
        assert_eq!(named("../../etc/passwd"), "passwd-aabbccdd.jpg");
        assert_eq!(named("..\u{1b}"), "aabbccdd.jpg");
        assert_eq!(named(""), "aabbccdd.jpg");
        assert_eq!(name_in_folder(&"ä".repeat(61), "x", "video/mp4"), format!("{}-x.mp4", "ä".repeat(60)));
    }

    #[test]
    fn files_after_the_first_are_numbered() {
        let names = [0, 1, 2].map(|at| numbered(Path::new("out/board.png"), at).display().to_string());
        assert_eq!(names, ["out/board.png", "out/board-2.png", "out/board-3.png"]);
        assert_eq!(numbered(Path::new("board"), 1).display().to_string(), "board-2");
    }
}
