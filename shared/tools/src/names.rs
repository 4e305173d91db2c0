//! Short names in answers (docs/reference/canvases.md#refs): slugs of canvases and refs of nodes. What has none, or may not be
//! read, keeps its handle.

use std::collections::{BTreeSet, HashMap};

use client::answers::NodeRead;
use domain::canvas::{CanvasAfter, CanvasSummary};
use domain::id::is_slug;
use futures_util::future::join_all;
use serde::Serialize;

use crate::call::Call;

/// Maximum number of nodes, and of canvases, that are looked up for an answer.
const LOOKUPS_MAX: usize = 40;
/// How many of them at once.
const AT_ONCE: usize = 8;

/// A canvas, and where people open it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NamedCanvas {
    pub canvas: String,
    pub url: String,
}

impl NamedCanvas {
    pub fn new(call: &Call, handle: &str, slug: Option<&str>) -> Self {
        let canvas = slug.unwrap_or(handle).to_owned();
        let path = canvas.trim_start_matches("canvas:").replace(':', "/");
        Self { url: format!("{}/c/{path}", call.public_url), canvas }
    }

    pub fn of(call: &Call, canvas: &CanvasSummary) -> Self {
        Self::new(call, &canvas.handle.to_string(), canvas.slug.as_deref())
    }

    pub fn after(call: &Call, canvas: &CanvasAfter) -> Self {
        Self::new(call, &canvas.handle().to_string(), canvas.slug())
    }
}

/// The short names of canvases and of nodes on them.
#[derive(Default)]
pub struct Names {
    canvases: HashMap<String, String>,
    nodes: HashMap<(String, String), String>,
}

impl Names {
    /// Looks up canvases, by their handles, with nodes on them, by their ids or handles.
    pub async fn read(call: &Call, named: Vec<(String, Option<String>)>) -> Self {
        let named: BTreeSet<(String, Option<String>)> = named.into_iter().collect();
        let mut names = Self::default();
        let nodes = named.iter().filter_map(|(canvas, node)| Some((canvas, node.as_ref()?)));
        let nodes: Vec<(&String, &String)> = nodes.take(LOOKUPS_MAX).collect();
        for some in nodes.chunks(AT_ONCE) {
            let nodes = some.iter().map(|(canvas, node)| call.client.get_node(canvas, node).into_future());
            let reads = join_all(nodes.collect::<Vec<_>>()).await;
            for ((canvas, node), read) in some.iter().zip(reads) {
                let Ok(NodeRead { node: of, canvas: on, .. }) = read.and_then(|read| read.value()) else { continue };
                names.canvases.extend(on.slug.map(|slug| ((*canvas).clone(), slug)));
                names.nodes.extend(of.short.map(|name| (((*canvas).clone(), (*node).clone()), name.to_string())));
            }
        }
        let others: BTreeSet<&String> = named.iter().map(|(canvas, _)| canvas).collect();
        let is_long = |canvas: &&String| !is_slug(canvas) && !names.canvases.contains_key(*canvas);
        let others = others.into_iter().filter(is_long);
        let others: Vec<&String> = others.take(LOOKUPS_MAX).collect();
        for some in others.chunks(AT_ONCE) {
            let changes =
                some.iter().map(|canvas| call.client.get_canvas_changes(canvas).query("since", "none").into_future());
            let reads = join_all(changes.collect::<Vec<_>>()).await;
            for (canvas, read) in some.iter().zip(reads) {
                let slug = read.and_then(|read| read.value()).ok().and_then(|changes| changes.slug);
                names.canvases.extend(slug.map(|slug| ((*canvas).clone(), slug)));
            }
        }
        names
    }

    /// The canvas of this handle.
    pub fn canvas(&self, call: &Call, handle: &str) -> NamedCanvas {
        NamedCanvas::new(call, handle, self.canvases.get(handle).map(String::as_str))
    }

    /// The ref of a node, or the name by which it was looked up.
    pub fn node(&self, canvas: &str, node: &str) -> String {
        self.nodes.get(&(canvas.to_owned(), node.to_owned())).map_or(node, String::as_str).to_owned()
    }
}
