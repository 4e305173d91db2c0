//! The SVG of a canvas or of a part of it: its graph from one snapshot, with as many images as fit and are available.
//!
//! **Memory.** What fits is determined before it is loaded ([`Drawing::room`]), so that a render holds its graph, its document
//! and at most as many bytes of images. An account draws at most two renders concurrently.

use std::collections::{HashMap, HashSet};

use blob::BlobKey;
use bytes::Bytes;
use canvas::svg::{Drawing, EmbeddedImage, Labels, Style, embedded_len};
use db::assets::NodeImage;
use db::renditions::RenditionState;
use domain::asset::thumbnail_width;
use domain::canvas::CanvasRecord;
use domain::graph::{Connection, Node};
use domain::id::{AccountUid, CanvasHandle, NodeId};
use domain::origin::{self, DigitalSourceType, Origin, Work};
use futures_util::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::view::View;
use crate::admission::{account_key, admitted};
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::rates::require_cpu;
use crate::rendition;
use crate::state::App;

/// Maximum images in a document, since each is a read from the object store. Only images of a few pixels could fit in larger
/// numbers.
const IMAGES_MAX: usize = 1000;

/// Images read concurrently.
const READS_AT_ONCE: usize = 8;

/// Maximum renditions that one render enqueues; the next render enqueues more.
const REQUESTS_MAX: usize = 64;

pub struct Drawn {
    /// Revision that was drawn.
    pub revision: String,
    /// The SVG document.
    pub document: Bytes,
    /// The mapping of numbers to nodes as JSON, when the view has labels; otherwise empty.
    pub labels: Bytes,
    /// `true` if the rendition of every image was available, so that this revision will always look the same.
    pub complete: bool,
}

/// The current canvas: from the cache when it was drawn completely at this revision.
pub async fn current(
    app: &App,
    caller: &AccountUid,
    handle: &CanvasHandle,
    record: &CanvasRecord,
    view: &View,
    trace: Trace,
) -> Result<Drawn> {
    if let Some(drawn) = cached(app, record, view) {
        return Ok(drawn);
    }
    require_cpu(app, caller).await?;
    let _turn = admitted(&app.renders, &account_key(caller), 1).await?;
    let _room = app.documents.reserve(caller, record.graph_bytes).await?;
    let graph = load(app, caller, handle, view).await?;
    let labels = view.labels.then(|| Labels::new(&graph.nodes));
    let style = Style { theme: view.theme, width: view.width, labels: labels.as_ref() };
    let drawing = Drawing::new(&graph.record.title, &graph.nodes, &graph.connections, style);
    let plan = Plan::new(&drawing, &graph);
    if !plan.wanted.is_empty() {
        rendition::request(app, &plan.wanted, trace).await?;
    }
    let files = read(app, &plan).await?;
    let complete = plan.complete && plan.chosen.values().all(|chosen| files.contains_key(&chosen.key));
    let shows_ai = |(node, chosen): (&NodeId, &Chosen)| graph.shown[node].has_ai && files.contains_key(&chosen.key);
    let ai = Origin::service(DigitalSourceType::CompositeWithTrainedAlgorithmicMedia);
    let origins: Vec<Option<Origin>> = plan.chosen.iter().map(|it| shows_ai(it).then_some(ai)).collect();
    let origin = origin::of_output(Work::Render, &origins).filter(|_| app.config.origin_marks);
    let packet = origin.map(|origin| raster::xmp::packet(&origin.uri(), None));
    let document = drawing.with_metadata(packet.as_deref()).finish(|node| match plan.chosen.get(node) {
        Some(Chosen { key, media_type, ratio }) => match files.get(key) {
            Some(bytes) => EmbeddedImage::Ready { media_type, bytes, ratio: *ratio },
            None => EmbeddedImage::Unreadable,
        },
        None => plan.others.get(node).copied().unwrap_or(EmbeddedImage::LeftOut),
    });
    let labels = labels.map_or_else(Bytes::new, |labels| Bytes::copy_from_slice(labels.json().as_bytes()));
    let drawn = Drawn { revision: graph.record.revision, document: Bytes::from(document), labels, complete };
    if complete {
        let [document, labels] = cache_keys(&drawn.revision, view);
        app.documents.put(graph.record.key, &document, drawn.document.clone());
        if view.labels {
            app.documents.put(graph.record.key, &labels, drawn.labels.clone());
        }
    }
    Ok(drawn)
}

/// The drawing of the canvas at this revision, if it is in the cache.
fn cached(app: &App, record: &CanvasRecord, view: &View) -> Option<Drawn> {
    let [document, labels] = cache_keys(&record.revision, view);
    Some(Drawn {
        revision: record.revision.clone(),
        document: app.documents.get(record.key, &document)?,
        labels: if view.labels { app.documents.get(record.key, &labels)? } else { Bytes::new() },
        complete: true,
    })
}

/// The cache keys of a drawing and of its labels; they differ from that of the canvas document at the same revision.
fn cache_keys(revision: &str, view: &View) -> [String; 2] {
    let tag = view.tag();
    [format!("{revision}-svg{tag}"), format!("{revision}-labels{tag}")]
}

/// The part of a canvas to show, and the state of its images.
struct Graph {
    record: CanvasRecord,
    nodes: Vec<Node>,
    connections: Vec<Connection>,
    shown: HashMap<NodeId, NodeImage>,
    /// State and file size of existing renditions, by image and width.
    renditions: HashMap<(Uuid, u32), (RenditionState, i64)>,
}

async fn load(app: &App, caller: &AccountUid, handle: &CanvasHandle, view: &View) -> Result<Graph> {
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, _) = db::canvases::find(&mut snapshot, caller, handle).await?.ok_or(Problem::NotFound("canvas"))?;
    let (mut nodes, connections) = match app.graphs.present(&record) {
        Some(graph) => (graph.nodes().cloned().collect(), graph.connections().cloned().collect()),
        None => db::canvases::graph(&mut snapshot, record.key).await?,
    };
    view.restrict(&mut nodes)?;
    let drawn: HashSet<&NodeId> = nodes.iter().map(|node| &node.id).collect();
    let mut shown = db::assets::shown_in(&mut snapshot, record.key).await?;
    shown.retain(|shown| drawn.contains(&shown.node));
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

/// The rendition to embed for an image; `None` when no rendition makes it small enough, and for a video without a poster.
fn thumbnail(shown: &NodeImage) -> Option<(Uuid, u32)> {
    Some((shown.blob_key?, thumbnail_width(shown.width, shown.height)?))
}

/// An image to embed.
struct Chosen {
    key: Uuid,
    media_type: String,
    ratio: f64,
}

/// Which image goes into which slot.
struct Plan<'a> {
    chosen: HashMap<NodeId, Chosen>,
    others: HashMap<NodeId, EmbeddedImage<'static>>,
    /// Renditions that have not been enqueued yet.
    wanted: Vec<(Uuid, u32, &'a AccountUid)>,
    /// `true` if no rendition is missing.
    complete: bool,
}

impl<'a> Plan<'a> {
    fn new(drawing: &Drawing<'_>, graph: &'a Graph) -> Self {
        let mut plan = Self { chosen: HashMap::new(), others: HashMap::new(), wanted: Vec::new(), complete: true };
        let mut room = drawing.room();
        for node in drawing.slots() {
            let Some(shown) = graph.shown.get(node) else {
                plan.absent(node, EmbeddedImage::Unreadable);
                continue;
            };
            let Some((source, width)) = thumbnail(shown) else {
                // Permanently: a later render will not show it either, so the drawing counts as complete.
                plan.others.insert(node.clone(), EmbeddedImage::LeftOut);
                continue;
            };
            match graph.renditions.get(&(source, width)) {
                Some((RenditionState::Ready { blob_key, mime_type }, bytes)) => {
                    let size = usize::try_from(*bytes).map_or(usize::MAX, embedded_len);
                    if size <= room && plan.chosen.len() < IMAGES_MAX {
                        room -= size;
                        let ratio = f64::from(shown.width) / f64::from(shown.height.max(1));
                        let chosen = Chosen { key: *blob_key, media_type: mime_type.clone(), ratio };
                        plan.chosen.insert(node.clone(), chosen);
                    } else {
                        // From here on all images are omitted, so that the selection does not depend on their sizes.
                        room = 0;
                        plan.others.insert(node.clone(), EmbeddedImage::LeftOut);
                    }
                }
                Some((RenditionState::Undecodable | RenditionState::GivenUp, _)) => {
                    plan.absent(node, EmbeddedImage::Unreadable)
                }
                Some((RenditionState::Pending, _)) => plan.absent(node, EmbeddedImage::Pending),
                None => {
                    plan.absent(node, EmbeddedImage::Pending);
                    if plan.wanted.len() < REQUESTS_MAX {
                        plan.wanted.push((source, width, &shown.owner));
                    }
                }
            }
        }
        plan
    }

    fn absent(&mut self, node: &NodeId, image: EmbeddedImage<'static>) {
        self.complete = false;
        self.others.insert(node.clone(), image);
    }
}

/// The files of the chosen images, each loaded once, however many nodes show it. A file missing from the store is omitted.
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
