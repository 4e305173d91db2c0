//! Renaming, finding and exporting canvases.

use std::collections::BTreeSet;
use std::path::Path;

use client::{Item, Pages};
use domain::canvas::Node;
use domain::metadata::WritableMetadata;
use serde::Serialize;
use serde_json::json;

use super::batch::write_all;
use super::files::{Source, save_all};
use crate::args::{Export, Find, On, Rename, Write};
use crate::context::Context;
use crate::failure::{Outcome, file};
use crate::output::{joined, rows, text};

/// Things of each kind that are found at most.
const FOUND_MAX: usize = 100;
/// Canvases that are looked through: the newest ones.
const CANVASES_MAX: usize = 1000;

pub async fn rename(context: &Context, Rename { canvas, title }: Rename) -> Outcome {
    let canvas = context.canvas(&canvas).await?;
    let options = Write { on: On { on: None }, dry_run: false, rebase: true, force: false };
    write_all(context, json!([{"type": "canvas.update", "title": title}]), &canvas, &options).await
}

/// A thing that was found.
#[derive(Serialize)]
struct Found {
    title: String,
    handle: String,
    kind: String,
}

/// Finds canvases by their titles, nodes of the canvas by their titles and texts, and assets and Elements as their lists do.
pub async fn find(context: &Context, Find { text: wanted, on }: Find) -> Outcome {
    let lower = wanted.to_lowercase();
    let contains = |text: &str| text.to_lowercase().contains(&lower);
    let mut found: Vec<Found> = Vec::new();
    let mut add =
        |title: &str, handle: String, kind: String| found.push(Found { title: title.to_owned(), handle, kind });
    let canvases = Pages::new(|| context.client.list_canvases()).take(CANVASES_MAX).await?;
    for canvas in canvases.iter().filter_map(Item::value).filter(|it| contains(&it.title)) {
        add(&canvas.title, canvas.handle.to_string(), "canvas".into());
    }
    if let Some(on) = context.on_if_any(on.on.as_deref()).await? {
        let holds = |node: &Node| node.metadata.read::<WritableMetadata>().content.is_some_and(|it| contains(&it));
        for node in context.graph(&on).await?.nodes.values().filter(|node| contains(&node.title) || holds(node)) {
            add(&node.title, node.handle, node.kind.to_string());
        }
    }
    let assets = || context.client.list_assets().query("kind", "all").query("q", &wanted);
    for asset in Pages::new(assets).take(FOUND_MAX).await?.iter().filter_map(Item::value) {
        add(&asset.title.unwrap_or(asset.name), asset.handle.to_string(), "asset".into());
    }
    let elements = || context.client.list_elements().query("search", &wanted);
    for element in Pages::new(elements).take(FOUND_MAX).await?.iter().filter_map(Item::value) {
        add(&element.name, element.version_handle, "Element".into());
    }
    context.output.value(&json!({"found": found}), || match context.output.quiet {
        true => joined(found.iter().map(|it| &it.handle), "\n"),
        false => {
            rows(&["title", "handle", "kind"], &found, |it| vec![text(&it.title), text(&it.handle), text(&it.kind)])
        }
    });
    Ok(())
}

/// Writes a canvas to a folder: its document, its render, and the files that its nodes show.
pub async fn export(context: &Context, Export { canvas, output }: Export) -> Outcome {
    let on = context.on(canvas.on.as_deref()).await?;
    let read = context.client.get_canvas(&on).await?;
    let render = context.client.render_canvas(&on).header(http::header::ACCEPT, "image/png").await?;
    let assets = output.join("assets");
    std::fs::create_dir_all(&assets).map_err(|error| file(&assets, &error))?;
    write(context, &output.join("canvas.json"), &read.body)?;
    write(context, &output.join("board.png"), &render.body)?;
    let shown: BTreeSet<String> =
        read.value()?.canvas.nodes.values().filter_map(|node| node.asset).map(|asset| asset.to_string()).collect();
    let sources: Vec<Source> = shown.into_iter().map(Source::Asset).collect();
    save_all(context, &sources, &assets, |call| call).await
}

fn write(context: &Context, path: &Path, bytes: &[u8]) -> Outcome {
    std::fs::write(path, bytes).map_err(|error| file(path, &error))?;
    context.output.wrote(path, &json!({"file": path}));
    Ok(())
}
