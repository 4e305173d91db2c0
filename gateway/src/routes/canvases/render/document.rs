//! The SVG of a canvas: its graph out of one snapshot, its pictures as far as they fit and are there.
//!
//! **Memory.** What fits is known before it is loaded ([`Drawing::room`]), so that a render holds its graph, its
//! document and at most as many bytes of pictures; an account draws at most two at once.

use std::collections::HashMap;

use blob::BlobKey;
use bytes::Bytes;
use canvas::svg::{Drawing, Picture, embedded_len};
use db::assets::Shown;
use db::renditions::State;
use domain::asset::thumbnail_width;
use domain::canvas::CanvasRecord;
use domain::graph::{Connection, Node};
use domain::id::{AccountUid, CanvasHandle, NodeId};
use futures_util::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::rendition;
use crate::state::App;

/// The most pictures in a document: each is a read of the object store. More than fit, unless they are a few pixels each.
const PICTURES_MAX: usize = 1000;

/// Pictures that are read at once.
const READS_AT_ONCE: usize = 8;

/// The most renditions that one render asks for; the next render asks for more.
const REQUESTS_MAX: usize = 64;

/// A canvas drawn.
pub struct Drawn {
    /// Of this revision.
    pub revision: String,
    /// The document.
    pub document: Bytes,
    /// Whether every picture's rendition was there, so that the revision will always look like this.
    pub complete: bool,
}

/// The canvas as it is now: from the cache when it was drawn complete at this revision.
pub async fn current(
    app: &App,
    caller: &AccountUid,
    handle: &CanvasHandle,
    record: &CanvasRecord,
    trace: Trace,
) -> Result<Drawn> {
    if let Some(document) = app.documents.get(record.key, &cache_key(&record.revision)) {
        return Ok(Drawn { revision: record.revision.clone(), document, complete: true });
    }
    let _turn = app.renderers.pass(caller.as_str()).await?;
    let _room = app.documents.room(record.graph_bytes).await?;
    let graph = load(app, caller, handle).await?;
    let drawing = Drawing::new(&graph.record.title, &graph.nodes, &graph.connections);
    let plan = Plan::of(&drawing, &graph);
    if !plan.wanted.is_empty() {
        rendition::request(app, &plan.wanted, trace).await?;
    }
    let files = read(app, &plan).await?;
    let complete = plan.complete && plan.chosen.values().all(|chosen| files.contains_key(&chosen.key));
    let document = drawing.finish(|node| match plan.chosen.get(node) {
        Some(Chosen { key, media_type, ratio }) => match files.get(key) {
            Some(bytes) => Picture::Ready { media_type, bytes, ratio: *ratio },
            None => Picture::Unreadable,
        },
        None => plan.others.get(node).copied().unwrap_or(Picture::LeftOut),
    });
    let (revision, document) = (graph.record.revision, Bytes::from(document));
    if complete {
        app.documents.put(graph.record.key, &cache_key(&revision), document.clone());
    }
    Ok(Drawn { revision, document, complete })
}

/// Apart from the canvas's own document at that revision.
fn cache_key(revision: &str) -> String {
    format!("{revision}-svg")
}

/// A canvas and what is known of its pictures.
struct Graph {
    record: CanvasRecord,
    nodes: Vec<Node>,
    connections: Vec<Connection>,
    shown: HashMap<NodeId, Shown>,
    /// By picture and width; the bytes of those that are there.
    renditions: HashMap<(Uuid, u32), (State, i64)>,
}

async fn load(app: &App, caller: &AccountUid, handle: &CanvasHandle) -> Result<Graph> {
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, _) = db::canvases::find(&mut snapshot, caller, handle).await?.ok_or(Problem::NotFound("canvas"))?;
    let (nodes, connections) = db::canvases::graph(&mut snapshot, record.key).await?;
    let shown = db::assets::shown_in(&mut snapshot, record.key).await?;
    let wanted: Vec<(Uuid, u32)> = shown.iter().filter_map(thumbnail).collect();
    let renditions = db::renditions::find_many(&mut snapshot, &wanted).await?;
    Ok(Graph {
        record,
        nodes,
        connections,
        shown: shown.into_iter().map(|shown| (shown.node.clone(), shown)).collect(),
        renditions: renditions
            .into_iter()
            .map(|found| {
                let key = (found.rendition.source_key, found.rendition.width);
                (key, (found.rendition.state, found.bytes))
            })
            .collect(),
    })
}

/// The rendition that is embedded of a picture; nothing of one that no rendition makes small enough.
fn thumbnail(shown: &Shown) -> Option<(Uuid, u32)> {
    Some((shown.blob_key, thumbnail_width(shown.width, shown.height)?))
}

/// A picture that is embedded.
struct Chosen {
    key: Uuid,
    media_type: String,
    ratio: f64,
}

/// What goes into which slot.
struct Plan<'a> {
    chosen: HashMap<NodeId, Chosen>,
    others: HashMap<NodeId, Picture<'static>>,
    /// Renditions that nobody has asked for yet.
    wanted: Vec<(Uuid, u32, &'a AccountUid)>,
    /// Whether no rendition is missing.
    complete: bool,
}

impl<'a> Plan<'a> {
    fn of(drawing: &Drawing<'_>, graph: &'a Graph) -> Self {
        let mut plan = Self { chosen: HashMap::new(), others: HashMap::new(), wanted: Vec::new(), complete: true };
        let mut room = drawing.room();
        for node in drawing.slots() {
            let Some(shown) = graph.shown.get(node) else {
                plan.absent(node, Picture::Unreadable);
                continue;
            };
            let Some((source, width)) = thumbnail(shown) else {
                // For good: it is no rendition that is still to come.
                plan.others.insert(node.clone(), Picture::LeftOut);
                continue;
            };
            match graph.renditions.get(&(source, width)) {
                Some((State::Ready { blob_key, mime_type }, bytes)) => {
                    let size = usize::try_from(*bytes).map_or(usize::MAX, embedded_len);
                    if size <= room && plan.chosen.len() < PICTURES_MAX {
                        room -= size;
                        let ratio = f64::from(shown.width) / f64::from(shown.height.max(1));
                        let chosen = Chosen { key: *blob_key, media_type: mime_type.clone(), ratio };
                        plan.chosen.insert(node.clone(), chosen);
                    } else {
                        // From here on all are left out, so that it does not depend on sizes which ones are.
                        room = 0;
                        plan.others.insert(node.clone(), Picture::LeftOut);
                    }
                }
                Some((State::Undecodable | State::GivenUp, _)) => plan.absent(node, Picture::Unreadable),
                Some((State::Pending, _)) => plan.absent(node, Picture::Pending),
                None => {
                    plan.absent(node, Picture::Pending);
                    if plan.wanted.len() < REQUESTS_MAX {
                        plan.wanted.push((source, width, &shown.owner));
                    }
                }
            }
        }
        plan
    }

    fn absent(&mut self, node: &NodeId, picture: Picture<'static>) {
        self.complete = false;
        self.others.insert(node.clone(), picture);
    }
}

/// The files of the chosen pictures, each once, however many nodes show it; one that the store has lost is left out.
async fn read(app: &App, plan: &Plan<'_>) -> Result<HashMap<Uuid, Bytes>> {
    let mut keys: Vec<Uuid> = plan.chosen.values().map(|chosen| chosen.key).collect();
    keys.sort_unstable();
    keys.dedup();
    let limit = canvas::svg::DOCUMENT_BYTES_MAX as u64;
    let reads = stream::iter(keys).map(|key| async move {
        match app.blobs.get(BlobKey(key), limit).await {
            Ok(bytes) => Ok(Some((key, bytes))),
            Err(error @ blob::Error::Missing(_)) => {
                tracing::error!(error = &error as &dyn std::error::Error, blob.key = %key, "a rendition is not in the store");
                Ok(None)
            }
            Err(error) => Err(Problem::from(error)),
        }
    });
    reads.buffer_unordered(READS_AT_ONCE).try_filter_map(|found| std::future::ready(Ok(found))).try_collect().await
}
