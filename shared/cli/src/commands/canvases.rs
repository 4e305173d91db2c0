//! Canvases: list, make, open, show, view, review.

use std::collections::BTreeMap;
use std::fs;
use std::io::{IsTerminal, stdout};

use client::answers::CanvasRead;
use client::{Call, Item, List, Pages};
use domain::canvas::{CanvasSummary, Node};
use domain::metadata::WritableMetadata;
use domain::review::Validation;
use serde_json::json;

use super::files::{is_folder, is_stdio, name_in_folder};
use crate::args::{Listing, New, Show, Use, View};
use crate::context::{Context, page};
use crate::failure::{Failure, Outcome, file, not_found, usage};
use crate::journal;
use crate::output::{is_unread, joined, optional, plain_lines, put, rows, text, time};
use crate::profile::Configuration;
use crate::terminal;

/// Prints one page of a list, or with `--all` every item: as JSON, one on each line. The first cell of a row is the title, the second
/// one names the item in other commands; `--quiet` prints that alone. An item that this release cannot read is a row of its JSON.
pub async fn listed<T: List>(
    context: &Context,
    listing: &Listing,
    list: impl Fn() -> Call<T>,
    head: &[&str],
    row: impl Fn(T::Item) -> Vec<String>,
) -> Outcome {
    let cells = |item: Item<T::Item>| item.value().map_or_else(|| vec![text(&item)], &row);
    let people = |items: Vec<Item<T::Item>>| match context.output.quiet {
        true => joined(items.into_iter().filter_map(|item| cells(item).into_iter().nth(1)), "\n"),
        false => rows(head, items, cells),
    };
    if !listing.all {
        let answer = page(list(), listing).await?;
        let (items, next) = answer.items()?;
        context.output.body(&answer, || people(items));
        if let Some(cursor) = next {
            context.output.remark(format!("More: repeat with --cursor {cursor}, or --all."));
        }
        return Ok(());
    }
    let mut pages = Pages::new(|| list().query_if("limit", listing.limit));
    let mut all = Vec::new();
    while !is_unread()
        && let Some(item) = pages.next().await?
    {
        match context.output.json {
            true => context.output.line(item),
            false => all.push(item),
        }
    }
    context.output.line(people(all));
    Ok(())
}

pub async fn list(context: &Context, listing: &Listing) -> Outcome {
    let row = |it: CanvasSummary| {
        // A person pastes the short name; a program gets the handle.
        let name = it.slug.filter(|_| stdout().is_terminal() && !context.output.quiet);
        let name = name.unwrap_or_else(|| it.handle.to_string());
        vec![text(it.title), text(name), optional(it.access_role), text(it.node_count), time(it.updated_at)]
    };
    let head = ["title", "canvas", "role", "nodes", "changed"];
    listed(context, listing, || context.client.list_canvases(), &head, row).await
}

/// Makes a canvas. Its id is chosen here and kept in the journal, so that a repetition after a lost answer finds it.
pub async fn new(context: &Context, new: &New) -> Outcome {
    let name = journal::hash(&[
        &context.origin,
        "new",
        &new.title,
        new.id.as_deref().unwrap_or_default(),
        if new.agent { "agent" } else { "" },
    ]);
    let entry = match journal::find(&name)? {
        Some(entry) => entry,
        None => {
            let id = new.id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
            let mut body =
                crate::context::Body::from_iter([("id".into(), json!(id)), ("title".into(), json!(new.title))]);
            if new.agent {
                body.insert("canvasType".into(), json!("agent"));
            }
            journal::begin(&name, body)?
        }
    };
    let mut answer = context.client.create_canvas().json(&entry.body).await;
    if entry.is_resumed && answer.as_ref().is_err_and(|error| error.problem().is_some_and(|it| it.status == 409)) {
        answer = context.client.get_canvas(entry.body["id"].as_str().unwrap_or_default()).await;
    }
    if answer.is_ok() || !answer.as_ref().is_err_and(client::Error::is_temporary) {
        entry.end();
    }
    context.output.answer(&answer?, |it| text(it.canvas.handle));
    Ok(())
}

/// Chooses the default canvas of this service, or shows it.
pub async fn use_canvas(context: &Context, used: &Use) -> Outcome {
    let origin = &context.origin;
    let present = if let Some(name) = &used.canvas {
        let CanvasRead { canvas, .. } = context.client.get_canvas(&context.canvas(name).await?).await?.value()?;
        Some(canvas.handle.to_string())
    } else if used.none {
        None
    } else {
        Configuration::load()?.canvases.remove(origin)
    };
    if used.canvas.is_some() || used.none {
        Configuration::change(|configuration| {
            match &present {
                Some(handle) => configuration.canvases.insert(origin.clone(), handle.clone()),
                None => configuration.canvases.remove(origin),
            };
            Ok(())
        })
        .await?;
    }
    context.output.value(&json!({"canvas": present}), || optional(present.as_ref()));
    Ok(())
}

/// The address of a canvas's page.
async fn page_of(context: &Context, named: &str) -> Outcome<String> {
    if domain::id::is_slug(named) {
        return Ok(format!("{}/c/{named}", context.origin));
    }
    let parts: Vec<&str> = named.split(':').collect();
    let (owner, id) = match parts[..] {
        ["canvas", owner, id] => (owner.to_owned(), id),
        ["canvas", id] | [id] => (context.uid().await?, id),
        _ => return usage(format!("{named} is not a canvas")),
    };
    Ok(format!("{}/c/{owner}/{id}", context.origin))
}

pub async fn open(context: &Context, on: Option<&str>) -> Outcome {
    let url = page_of(context, &context.on(on).await?).await?;
    context.output.value(&json!({"url": url}), || url.clone());
    if !context.output.json && stdout().is_terminal() && !terminal::browse(&url) {
        context.output.remark("No browser was found: open the address above.");
    }
    Ok(())
}

pub async fn show(context: &Context, show: &Show) -> Outcome {
    let named = context.on(show.canvas.on.as_deref()).await?;
    let section = context.node_if(&named, show.section.clone()).await?;
    if !context.output.json && !context.output.quiet {
        let ids = if show.ids { "full" } else { "refs" };
        let read = context.client.get_canvas_outline(&named).query("ids", ids).query("connections", true);
        let outline = read.query_if("section", section.as_deref()).query_if("cursor", show.cursor.as_deref()).await?;
        context.output.line(plain_lines(outline.text().trim_end()));
        return Ok(());
    }
    let read = context.client.get_canvas(&named).await?;
    let handles = |nodes: &[Node]| joined(nodes.iter().map(|node| &node.handle), "\n");
    let Some(section) = &section else {
        context.output.answer(&read, |it| handles(&it.canvas.nodes.values().collect::<Vec<_>>()));
        return Ok(());
    };
    let canvas = read.value()?.canvas;
    let id = section.strip_prefix("node:").unwrap_or(section);
    let by_ref = canvas.nodes.values().find(|node| node.short.is_some_and(|short| short.to_string() == id));
    let by_id = canvas.nodes.values().find(|node| node.id.as_str() == id);
    let Some(Node { id, .. }) = by_id.or(by_ref) else {
        return not_found(format!("{} has no Section {section}", canvas.handle));
    };
    let belongs =
        |node: &Node| node.id == id || node.metadata.read::<WritableMetadata>().section_id.as_ref() == Some(&id);
    let nodes: Vec<Node> = canvas.nodes.values().filter(belongs).collect();
    context.output.value(&json!({"revision": canvas.revision, "nodes": nodes}), || handles(&nodes));
    Ok(())
}

/// The image goes to a file, to a pipe, or onto a terminal that can show it.
pub async fn view(context: &Context, view: &View) -> Outcome {
    let named = context.on(view.canvas.on.as_deref()).await?;
    let nodes = context.nodes(&named, view.nodes.clone()).await?;
    let nodes = (!nodes.is_empty()).then(|| nodes.join(","));
    let section = context.node_if(&named, view.section.clone()).await?;
    let png = context
        .client
        .render_canvas(&named)
        .header(http::header::ACCEPT, "image/png")
        .query_if("section", section)
        .query_if("nodes", nodes)
        .query_if("width", view.width)
        .query_if("labels", view.labels.then_some(true))
        .query_if("theme", view.theme.as_deref())
        .await?;
    let labels: BTreeMap<String, String> =
        png.header("x-canvas-labels").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    match view.output.as_ref().filter(|path| !is_stdio(path)) {
        Some(path) => {
            let path = match is_folder(path) {
                true => {
                    fs::create_dir_all(path).map_err(|error| file(path, &error))?;
                    path.join(name_in_folder("board", &named, "image/png"))
                }
                false => path.clone(),
            };
            fs::write(&path, &png.body).map_err(|error| file(&path, &error))?;
            let said = json!({"file": path, "bytes": png.body.len(), "labels": labels});
            context.output.wrote(&path, &said);
        }
        None if context.output.json => return usage("name a file for the image: --output FILE"),
        None if view.output.is_some() || !stdout().is_terminal() => put(&png.body),
        None => match terminal::Graphics::of_environment() {
            Some(graphics) => put(graphics.show(&png.body).as_bytes()),
            None => {
                let url = page_of(context, &named).await?;
                context.output.line(terminal::link(&url));
                context.output.remark("This terminal does not show images: --output FILE writes it to a file.");
            }
        },
    }
    if !context.output.json {
        for (number, node) in labels {
            context.output.remark(format!("{number}  {}", text(node)));
        }
    }
    Ok(())
}

pub async fn review(context: &Context, on: Option<&str>) -> Outcome {
    let review = context.client.review_canvas(&context.on(on).await?).await?;
    context.output.answer(&review, |it| findings(&it.validation));
    match review.value()?.validation.completion_review.done_claim_allowed {
        true => Ok(()),
        false => Err(Failure::Work),
    }
}

/// The findings of a validation, and what the service says about being done.
pub fn findings(validation: &Validation) -> String {
    let lines = validation.findings.iter().map(|it| {
        let about = joined(it.node_handles.iter().chain(&it.connection_handles), ", ");
        format!("{} {}: {} ({about})", it.severity, text(&it.code), text(&it.message))
    });
    let instruction = text(&validation.completion_review.instruction);
    lines.chain([instruction]).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}
