//! Names of things: handles, ids, refs, titles, and beginnings of ids and titles (docs/reference/canvas.md#naming-things).
//!
//! A handle, a UUID and a ref go to the service as they are. Any other name is looked up among the things that the caller can list.

use std::io;

use client::answers::{CanvasRead, NodeRead};
use client::{Call, Item, List, Pages};
use domain::asset::Asset;
use domain::canvas::{Canvas, CanvasSummary};
use domain::element::{Element, ElementCollection};
use domain::job::RunSummary;
use domain::model::Model;
use domain::recipe::Recipe;
use domain::refs::{ConnectionRef, NodeRef};

use crate::context::{Context, typed};
use crate::failure::{Failure, Outcome, not_found, usage};
use crate::output::plain;
use crate::profile::Configuration;

/// Characters of the beginning of an id or title that names a thing.
const PREFIX_MIN: usize = 4;
/// Items of a list among which a name is looked up: the newest ones.
const ITEMS_MAX: usize = 1000;
/// Candidates that are named when a name fits several things.
const CANDIDATES_MAX: usize = 10;

/// A thing that a name can mean.
struct Named {
    handle: String,
    id: String,
    title: String,
}

impl Named {
    fn new(handle: impl ToString, id: impl ToString, title: impl ToString) -> Self {
        Self { handle: handle.to_string(), id: id.to_string(), title: title.to_string() }
    }
}

/// The handle of the thing that a name means: the one with this id, the only one with this title, or the only one whose id or title
/// begins with it. `None`: there is none.
fn choose(name: &str, kind: &str, all: &[Named]) -> Outcome<Option<String>> {
    let lower = name.to_lowercase();
    let is_prefix = name.chars().count() >= PREFIX_MIN;
    let rules: [&dyn Fn(&&Named) -> bool; 3] =
        [&|it| it.id == name || it.handle == name, &|it| it.title.to_lowercase() == lower, &|it| {
            is_prefix && (it.id.starts_with(&lower) || it.title.to_lowercase().starts_with(&lower))
        }];
    for rule in rules {
        let found: Vec<&Named> = all.iter().filter(rule).collect();
        match found.as_slice() {
            [] => {}
            [one] => return Ok(Some(one.handle.clone())),
            several => {
                let mut lines = vec![format!("{} names several of the {kind}:", plain(name))];
                let line = |it: &&Named| format!("  {}  {}", it.handle, plain(&it.title)).trim_end().to_owned();
                lines.extend(several.iter().take(CANDIDATES_MAX).map(line));
                if several.len() > CANDIDATES_MAX {
                    lines.push(format!("  and {} more", several.len() - CANDIDATES_MAX));
                }
                return Err(Failure::Ambiguous(lines.join("\n")));
            }
        }
    }
    Ok(None)
}

/// Returns `true` for a handle of one of these kinds, and for a UUID.
fn is_exact(name: &str, kinds: &[&str]) -> bool {
    name.split_once(':').is_some_and(|(kind, _)| kinds.contains(&kind)) || uuid::Uuid::try_parse(name).is_ok()
}

/// The nodes of a canvas.
fn nodes_of(canvas: &Canvas) -> Vec<Named> {
    canvas.nodes.values().map(|it| Named::new(it.handle, it.id, it.title)).collect()
}

/// The host and port of an address.
fn host(url: &str) -> Option<&str> {
    url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next())
}

/// The lines of standard input that are not empty.
async fn lines_of_stdin() -> Outcome<Vec<String>> {
    let text = typed(io::read_to_string).await?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// These names, with each `-` replaced by the lines of standard input.
pub async fn with_stdin(names: Vec<String>) -> Outcome<Vec<String>> {
    let Some(at) = names.iter().position(|name| name == "-") else { return Ok(names) };
    let mut all = names;
    all.splice(at..=at, lines_of_stdin().await?);
    Ok(all)
}

/// A name; for `-`, the one line of standard input.
async fn one(name: &str) -> Outcome<String> {
    let mut names = with_stdin(vec![name.to_owned()]).await?;
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        _ => usage("standard input has not one line, the name"),
    }
}

async fn find<T: List>(
    name: &str,
    kind: &str,
    list: impl Fn() -> Call<T>,
    named: impl Fn(T::Item) -> Named,
) -> Outcome<String> {
    let items = Pages::new(list).take(ITEMS_MAX).await?;
    let all: Vec<Named> = items.iter().filter_map(Item::value).map(named).collect();
    match choose(name, kind, &all)? {
        Some(handle) => Ok(handle),
        None => not_found(format!("none of the {kind} is {}", plain(name))),
    }
}

impl Context {
    /// A canvas as the contract names it.
    pub async fn canvas(&self, name: &str) -> Outcome<String> {
        let name = one(name).await?;
        if name.contains("://") {
            return self.canvas_of_page(&name);
        }
        if is_exact(&name, &["canvas"]) || domain::id::is_slug(&name) {
            return Ok(name);
        }
        let named = |it: CanvasSummary| Named::new(it.handle, it.id, it.title);
        find(&name, "canvases", || self.client.list_canvases(), named).await
    }

    /// The canvas of a page of this service.
    fn canvas_of_page(&self, url: &str) -> Outcome<String> {
        if host(url) != host(&self.origin) {
            return usage(format!("{} is not a page of {}", plain(url), self.origin));
        }
        let path = url.splitn(4, '/').nth(3).unwrap_or_default();
        let parts: Vec<&str> = path.split(['?', '#']).next().unwrap_or_default().split('/').collect();
        match parts[..] {
            ["c", owner, id] if !owner.is_empty() && !id.is_empty() => Ok(format!("canvas:{owner}:{id}")),
            ["c", slug] if domain::id::is_slug(slug) => Ok(slug.to_owned()),
            _ => usage(format!("{url} is not the page of a canvas: it ends with /c/<owner>/<id> or /c/<slug>")),
        }
    }

    /// The canvas that a command works on: the one that is named, or the default one.
    pub async fn on(&self, on: Option<&str>) -> Outcome<String> {
        match self.on_if_any(on).await? {
            Some(canvas) => Ok(canvas),
            None => usage("name the canvas: --on CANVAS, CANVAS_ON, or `canvas use CANVAS` for all commands"),
        }
    }

    /// The canvas that is named, or the default one, if there is one.
    pub async fn on_if_any(&self, on: Option<&str>) -> Outcome<Option<String>> {
        // A variable that is set to nothing names none.
        match on.filter(|name| !name.is_empty()) {
            Some(name) => self.canvas(name).await.map(Some),
            None => Ok(Configuration::load()?.canvases.remove(&self.origin)),
        }
    }

    /// A canvas with its nodes and connections.
    pub async fn graph(&self, on: &str) -> Outcome<Canvas> {
        let CanvasRead { canvas, .. } = self.client.get_canvas(on).await?.value()?;
        Ok(canvas)
    }

    /// Nodes of a canvas by handle, id, ref or title. `-` reads them from standard input.
    pub async fn nodes(&self, on: &str, names: Vec<String>) -> Outcome<Vec<String>> {
        let names = with_stdin(names).await?;
        let is_exact = |name: &String| is_exact(name, &["node"]) || name.parse::<NodeRef>().is_ok();
        if names.iter().all(is_exact) {
            return Ok(names);
        }
        let all = nodes_of(&self.graph(on).await?);
        let resolve = |name: String| match is_exact(&name) {
            true => Ok(name),
            false => match choose(&name, "nodes", &all)? {
                Some(handle) => Ok(handle),
                None => not_found(format!("none of the nodes is {}", plain(&name))),
            },
        };
        names.into_iter().map(resolve).collect()
    }

    /// A node of a canvas.
    pub async fn node(&self, on: &str, name: &str) -> Outcome<String> {
        Ok(self.nodes(on, vec![one(name).await?]).await?.remove(0))
    }

    /// A node of a canvas, if one is named.
    pub async fn node_if(&self, on: &str, name: Option<String>) -> Outcome<Option<String>> {
        match name {
            Some(name) => self.node(on, &name).await.map(Some),
            None => Ok(None),
        }
    }

    /// Connections of a canvas. `-` reads them from standard input.
    pub async fn connections(&self, on: &str, names: Vec<String>) -> Outcome<Vec<String>> {
        let names = with_stdin(names).await?;
        let is_exact = |name: &String| is_exact(name, &["connection"]) || name.parse::<ConnectionRef>().is_ok();
        if names.iter().all(is_exact) {
            return Ok(names);
        }
        let canvas = self.graph(on).await?;
        let all: Vec<Named> = canvas.connections.values().map(|it| Named::new(it.handle, it.id, "")).collect();
        let resolve = |name: String| Ok(choose(&name, "connections", &all)?.unwrap_or(name));
        names.into_iter().map(resolve).collect()
    }

    /// An image or video: a `node:` or `asset:` handle, by handle, ref of a node, id or title. Nodes of the canvas come first.
    pub async fn shown(&self, on: Option<&str>, name: &str) -> Outcome<String> {
        if name.starts_with("node:") || name.starts_with("asset:") {
            return Ok(name.to_owned());
        }
        if let Some(on) = on {
            if name.parse::<NodeRef>().is_ok() {
                return Ok(format!("node:{name}"));
            }
            if let Some(handle) = choose(name, "nodes", &nodes_of(&self.graph(on).await?))? {
                return Ok(handle);
            }
        }
        self.asset(name).await
    }

    /// An asset of the account.
    async fn asset(&self, name: &str) -> Outcome<String> {
        if is_exact(name, &["asset"]) {
            return Ok(name.to_owned());
        }
        // The title of an asset is that of a node; without one, it is the name of the file.
        let named = |it: Asset| Named::new(it.handle, it.id, it.title.unwrap_or(it.name));
        find(name, "assets", || self.client.list_assets().query("kind", "all"), named).await
    }

    /// The asset that a name means: itself, or the one that a node shows.
    pub async fn asset_of(&self, on: Option<&str>, name: &str) -> Outcome<String> {
        let shown = self.shown(on, name).await?;
        let Some(id) = shown.strip_prefix("node:") else { return Ok(shown) };
        let Some(on) = on else { return usage(format!("name the canvas of {shown}: --on CANVAS")) };
        let NodeRead { node, .. } = self.client.get_node(on, id).await?.value()?;
        match node.asset {
            Some(asset) => Ok(asset.to_string()),
            None => not_found(format!("{shown} shows no image or video")),
        }
    }

    /// Runs and jobs. `-` reads them from standard input.
    pub async fn runs(&self, names: Vec<String>) -> Outcome<Vec<String>> {
        let mut handles = Vec::new();
        for name in with_stdin(names).await? {
            handles.push(self.find_run(name).await?);
        }
        Ok(handles)
    }

    async fn find_run(&self, name: String) -> Outcome<String> {
        if is_exact(&name, &["run", "job"]) || name.starts_with("recipe-") {
            return Ok(name);
        }
        find(&name, "runs", || self.client.list_runs(), |it: RunSummary| Named::new(it.handle, it.id, it.title)).await
    }

    /// A run or job.
    pub async fn run(&self, name: &str) -> Outcome<String> {
        self.find_run(one(name).await?).await
    }

    /// An Element, also with one of its versions.
    pub async fn element(&self, name: &str) -> Outcome<String> {
        let name = one(name).await?;
        if is_exact(name.split('@').next().unwrap_or_default(), &["element"]) {
            return Ok(name);
        }
        find(&name, "Elements", || self.client.list_elements(), |it: Element| Named::new(it.handle, it.id, it.name))
            .await
    }

    /// A collection of Elements.
    pub async fn collection(&self, name: &str) -> Outcome<String> {
        let name = one(name).await?;
        if is_exact(&name, &["element-collection"]) {
            return Ok(name);
        }
        // Requests name a collection by its id.
        let named = |it: ElementCollection| Named::new(it.id, it.handle, it.name);
        find(&name, "collections", || self.client.list_element_collections(), named).await
    }

    /// A Recipe.
    pub async fn recipe(&self, name: &str) -> Outcome<String> {
        let name = one(name).await?;
        if is_exact(&name, &["recipe"]) {
            return Ok(name);
        }
        find(&name, "Recipes", || self.client.list_recipes(), |it: Recipe| Named::new(it.id, it.handle, it.name)).await
    }

    /// A model, also by the provider's id.
    pub async fn model(&self, name: &str) -> Outcome<String> {
        let name = one(name).await?;
        if is_exact(&name, &["model"]) {
            return Ok(name);
        }
        let named = |it: Model| Named::new(it.handle, it.model_id, it.name);
        find(&name, "models (`canvas model list` shows them)", || self.client.list_models(), named).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boards() -> Vec<Named> {
        [("0199aaaa", "Mood"), ("0199aabb", "Moodboard"), ("0200", "Mood swings"), ("board", "Autumn"), ("x", "autumn")]
            .map(|(id, title)| Named::new(format!("canvas:me:{id}"), id, title))
            .into()
    }

    #[test]
    fn a_name_is_an_id_a_title_or_the_only_thing_that_begins_so() {
        let chosen = |name: &str| choose(name, "canvases", &boards());
        for (name, id) in [
            ("board", "board"),
            ("canvas:me:x", "x"),
            ("MOOD", "0199aaaa"),
            ("mood s", "0200"),
            ("0200", "0200"),
            ("0199aab", "0199aabb"),
            ("boar", "board"),
        ] {
            let found = chosen(name).expect("one canvas").expect("a canvas");
            assert_eq!(found, format!("canvas:me:{id}"), "{name}");
        }
        for nothing in ["boa", "020", "other"] {
            assert_eq!(chosen(nothing).expect("no failure"), None, "{nothing}");
        }
        for several in ["autumn", "0199"] {
            let Err(Failure::Ambiguous(message)) = chosen(several) else { panic!("{several}") };
            assert_eq!(message.lines().count(), 3, "{message}");
        }
    }

    #[test]
    fn candidates_that_are_not_named_are_counted() {
        let many: Vec<Named> = (0..12).map(|at| Named::new(at, at, "same")).collect();
        let Err(Failure::Ambiguous(message)) = choose("same", "nodes", &many) else { panic!("it names one") };
        assert!(message.ends_with("  and 2 more"), "{message}");
        let Err(Failure::Ambiguous(message)) = choose("same", "nodes", &many[..10]) else { panic!("it names one") };
        assert_eq!(message.lines().count(), 11, "{message}");
    }
}
