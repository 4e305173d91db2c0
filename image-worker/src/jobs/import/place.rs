//! Completes an import in one transaction: task, assets, nodes, revision, activity and outcome
//! together or not at all.
//!
//! The canvas row is locked first, then the task is settled under its fencing token, then rows are
//! written in the common lock order (docs/reliability.md#lock-order).

use canvas::geometry::fitted;
use canvas::pack;
use canvas::placement::{Frame, free_spot};
use canvas::size::serialized_size;
use db::assets::NewAsset;
use db::canvases::{Change, NewActivity};
use db::imports::Import;
use db::storage::Storage;
use domain::asset::AssetKind;
use domain::canvas::{ActivityType, CanvasRecord};
use domain::graph::{GraphWrites, Node, NodeType, Position};
use domain::id::{AssetHandle, AssetId, NodeId};
use domain::import::{Failure, FailureKind, Full, Image, ImportOutcome, Imported, Pack, Request};
use domain::limits::{CANVAS_BYTES_MAX, CANVAS_NODES_MAX, TITLE_MAX};
use domain::lineage::Made;
use domain::message::ReadyTasks;
use domain::metadata::{NodeSource, Provenance, ProvenanceKind, ServerMetadata, WritableMetadata};
use taskqueue::{Lease, Task};
use worker::{Error, Worker};

use super::gather::{Brought, Gathered, OfPage};
use super::image::file_name;

/// Outcome of an attempt to complete an import.
pub(super) enum Ended {
    /// The import is complete.
    Done(Box<ImportOutcome>),
    /// The lease is no longer valid.
    Stale,
    /// A blob was deleted between its upload and this transaction.
    BlobGone,
}

/// Completes an import. Adds the tasks that it makes ready to `ready`, to be announced after `Done`.
pub(super) async fn conclude(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    import: &Import,
    gathered: &Gathered,
    ready: &ReadyTasks,
) -> Result<Ended, Error> {
    let mut transaction = db::pool::begin(&worker.pool).await?;
    let conn = &mut *transaction;
    let outcome = match gathered {
        Gathered::Stale => return Ok(Ended::Stale),
        Gathered::Failed(failure) => ImportOutcome::Failed(failure.clone()),
        Gathered::Review(review) => ImportOutcome::Review(review.clone()),
        Gathered::Images(brought, of_page) => {
            let canvas = import.lock_canvas(conn).await?;
            if !db::tasks::settle(conn, task.id, lease.token()).await? {
                return Ok(Ended::Stale);
            }
            let placed = match canvas {
                Some(canvas) => match without_room(conn, import, &canvas, brought).await? {
                    Some(full) => Some(full),
                    None => place(conn, (task, ready), import, &canvas, brought, of_page.as_ref()).await?,
                },
                None => Some(refusal(FailureKind::Forbidden, "the account may no longer write to the canvas")),
            };
            let Some(outcome) = placed else { return Ok(Ended::BlobGone) };
            db::imports::finish(conn, task.id, &outcome).await?;
            db::pool::commit(transaction).await?;
            return Ok(Ended::Done(Box::new(outcome)));
        }
    };
    if !db::tasks::settle(conn, task.id, lease.token()).await? {
        return Ok(Ended::Stale);
    }
    db::imports::finish(conn, task.id, &outcome).await?;
    db::pool::commit(transaction).await?;
    Ok(Ended::Done(Box::new(outcome)))
}

fn refusal(kind: FailureKind, message: &str) -> ImportOutcome {
    let (field, message) = ("canvasId".into(), message.into());
    ImportOutcome::Failed(Failure { kind, field, message, full: None, is_heic: false })
}

/// The refusal of images for which the canvas's owner has no room. Otherwise, the room is held until the transaction ends.
async fn without_room(
    conn: &mut db::PgConnection,
    import: &Import,
    canvas: &CanvasRecord,
    brought: &[Brought],
) -> Result<Option<ImportOutcome>, Error> {
    // Sizes are within the limits of uploads.
    let counted = app::storage::of_files(brought.iter().map(|image| image.bytes as i64));
    let full = db::storage::hold(conn, &canvas.handle.owner, counted).await?;
    Ok(full.map(|Storage { bytes, max }| {
        let own = (import.actor.owner_uid == canvas.handle.owner).then_some((bytes, max));
        ImportOutcome::Failed(Failure {
            kind: FailureKind::Unprocessable,
            field: "canvasId".into(),
            message: "the storage of the canvas's owner has no room for what was found".into(),
            full: Some(Full { own }),
            is_heic: false,
        })
    }))
}

/// Writes assets, nodes and revision to a canvas that the transaction has locked; `None` when a blob is missing.
async fn place(
    conn: &mut db::PgConnection,
    (task, ready): (&Task, &ReadyTasks),
    import: &Import,
    canvas: &CanvasRecord,
    brought: &[Brought],
    of_page: Option<&OfPage>,
) -> Result<Option<ImportOutcome>, Error> {
    let frames = db::canvases::frames(conn, canvas.key).await?;
    let frames = frames.into_iter().map(|frame| Frame::new(frame.position, frame.width, frame.height));
    let content = ImportedContent::new(import, brought, of_page, frames);
    let mut nodes = content.nodes(canvas, None);
    let bytes: i64 = nodes.iter().map(serialized_size).sum();
    if canvas.node_count as usize + nodes.len() > CANVAS_NODES_MAX || canvas.graph_bytes + bytes > CANVAS_BYTES_MAX {
        return Ok(Some(refusal(FailureKind::Unprocessable, "the canvas is full")));
    }
    let Some(created_at) = content.store(conn, (task, ready), canvas).await? else { return Ok(None) };
    nodes = content.nodes(canvas, Some(created_at));
    db::canvases::give_node_refs(conn, canvas.key, &mut nodes).await?;
    let bytes_delta = nodes.iter().map(serialized_size).sum();
    let ids: Vec<NodeId> = nodes.iter().map(|node| node.id.clone()).collect();
    let revision = service::random::revision();
    let change = Change {
        graph: GraphWrites { nodes: nodes.iter().collect(), ..GraphWrites::default() },
        bytes_delta,
        activity: Some(NewActivity {
            kind: ActivityType::ReferencesImported,
            actor: &import.actor,
            summary: match brought {
                [_] => "imported an image".into(),
                all => format!("imported {} images", all.len()),
            },
            nodes: &ids,
        }),
        ..Change::new(&revision)
    };
    db::canvases::write(conn, canvas.key, &change).await?;
    Ok(Some(ImportOutcome::Imported(content.imported(revision))))
}

/// The nodes that the import adds to the canvas.
struct ImportedContent<'a> {
    import: &'a Import,
    of_page: Option<&'a OfPage>,
    /// The Section of a pack, with its frame.
    section: Option<(NodeId, Frame)>,
    items: Vec<Item<'a>>,
}

struct Item<'a> {
    brought: &'a Brought,
    asset: AssetId,
    node: NodeId,
    name: String,
    title: String,
    frame: Frame,
}

impl<'a> ImportedContent<'a> {
    fn new(
        import: &'a Import,
        brought: &'a [Brought],
        of_page: Option<&'a OfPage>,
        content: impl Iterator<Item = Frame>,
    ) -> Self {
        let (section, places) = match &import.request {
            Request::Product { title, .. } => {
                let sizes: Vec<(f64, f64)> = brought.iter().map(|brought| fitted(pixels(brought), title)).collect();
                let pack = pack::arrange(content, &sizes);
                (Some((NodeId::generate(), pack.section)), pack.places)
            }
            Request::Image { title, x, y, .. } => {
                let size = brought.first().map_or((1.0, 1.0), |brought| {
                    let name = file_name(&brought.url, brought.format);
                    fitted(pixels(brought), title.as_ref().unwrap_or(&name))
                });
                let spot = free_spot(content, size.0, size.1);
                let at = Position { x: x.unwrap_or(spot.x), y: y.unwrap_or(spot.y) };
                (None, vec![Frame::new(at, size.0, size.1)])
            }
        };
        let items = brought.iter().zip(places).enumerate().map(|(index, (brought, frame))| {
            let name = file_name(&brought.url, brought.format);
            let title = match &import.request {
                Request::Image { title, .. } => title.clone().unwrap_or_else(|| name.clone()),
                Request::Product { title, .. } => numbered(title, index + 1),
            };
            let title = title.chars().take(TITLE_MAX).collect();
            Item { brought, asset: AssetId::generate(), node: NodeId::generate(), name, title, frame }
        });
        Self { import, of_page, section, items: items.collect() }
    }

    /// The nodes, the Section first; `created_at` is the time of the assets.
    fn nodes(&self, canvas: &CanvasRecord, created_at: Option<domain::Timestamp>) -> Vec<Node> {
        let (page, of_pack) = match (&self.section, self.of_page) {
            (Some((id, frame)), Some(of_page)) => {
                let source = NodeSource {
                    page_url: Some(of_page.page.url.clone()),
                    resolved_url: Some(of_page.page.resolved_url.clone()),
                    variant: Some(of_page.variant.clone()),
                    ..NodeSource::default()
                };
                let Request::Product { title, .. } = &self.import.request else { unreachable!("a pack is of a page") };
                let metadata = WritableMetadata { section: Some(true), ..WritableMetadata::default() };
                let section = self.node(id, NodeType::Sticky, title, *frame, (metadata, source, None));
                (Some(&of_page.page.url), Some((id, section)))
            }
            _ => (None, None),
        };
        let member = of_pack.as_ref().map(|(id, _)| *id);
        let items = self.items.iter().map(|item| {
            let url = item.brought.url.to_string();
            let source = NodeSource { image_url: Some(url), page_url: page.cloned(), ..NodeSource::default() };
            let provenance = Provenance { created_at, ..provenance(item.brought) };
            let metadata = WritableMetadata { section_id: member.cloned(), ..WritableMetadata::default() };
            let mut node =
                self.node(&item.node, NodeType::Image, &item.title, item.frame, (metadata, source, Some(provenance)));
            node.asset = Some(AssetHandle { owner: canvas.handle.owner.clone(), id: item.asset.clone() });
            node
        });
        let items: Vec<Node> = items.collect();
        of_pack.into_iter().map(|(_, section)| section).chain(items).collect()
    }

    fn node(
        &self,
        id: &NodeId,
        kind: NodeType,
        title: &str,
        frame: Frame,
        (metadata, source, provenance): (WritableMetadata, NodeSource, Option<Provenance>),
    ) -> Node {
        let server = ServerMetadata {
            provenance: provenance.map(Box::new),
            source: Some(Box::new(source)),
            ..ServerMetadata::default()
        };
        Node {
            id: id.clone(),
            short: None,
            kind,
            title: title.to_owned(),
            position: Position { x: frame.left, y: frame.top },
            width: frame.right - frame.left,
            height: frame.bottom - frame.top,
            agent_owned: self.import.actor.surface.is_agent(),
            metadata: metadata.into(),
            server: server.into(),
            asset: None,
            active_job: None,
        }
    }

    /// Stores the assets, each with the rendition that is made eagerly; returns the time, or `None` when a blob is missing.
    async fn store(
        &self,
        conn: &mut db::PgConnection,
        (task, ready): (&Task, &ReadyTasks),
        canvas: &CanvasRecord,
    ) -> Result<Option<domain::Timestamp>, Error> {
        let traceparent = task.trace.to_string();
        let mut items: Vec<&Item<'_>> = self.items.iter().collect();
        // Sorted in the order in which blobs are locked.
        items.sort_unstable_by_key(|item| item.brought.sha256);
        let mut at = None;
        for item in items {
            let Brought { format, size, bytes, sha256, blob_key, origin, metadata_removed, .. } = item.brought;
            // Sizes are within the limits of images and uploads.
            let (width, height, bytes) = (size.width as i32, size.height as i32, *bytes as i64);
            let Some(blob_key) = db::blobs::adopt(conn, *blob_key, sha256, bytes).await? else { return Ok(None) };
            if item.brought.is_animated {
                db::blobs::set_animated(conn, blob_key).await?;
            }
            let asset = NewAsset {
                handle: AssetHandle { owner: canvas.handle.owner.clone(), id: item.asset.clone() },
                canvas_key: Some(canvas.key),
                // An asset that names its node counts as an upload, not as a result
                // (docs/reference/findings.md#product-fidelity).
                node: Some(item.node.clone()),
                kind: AssetKind::Image,
                name: item.name.clone(),
                mime_type: format.media_type().into(),
                width,
                height,
                bytes,
                blob_key,
                origin: *origin,
                metadata_removed: metadata_removed.clone(),
                original: None,
                video: None,
                made: Made::new(&provenance(item.brought), &self.import.actor, 0),
                parents: Vec::new(),
            };
            at = Some(db::assets::insert(conn, &asset).await?.created_at);
            let owner = &canvas.handle.owner;
            db::renditions::request_eager(conn, blob_key, (width, height), owner, Some(&traceparent), ready).await?;
        }
        Ok(at)
    }

    fn imported(self, revision: String) -> Imported {
        let images = self.items.into_iter().map(|item| Image {
            asset: item.asset,
            node: item.node,
            title: item.title,
            media_type: item.brought.format.media_type().to_owned(),
            width: item.brought.size.width,
            height: item.brought.size.height,
            bytes: item.brought.bytes,
            source_url: item.brought.url.to_string(),
        });
        let images = images.collect();
        let pack = self.section.zip(self.of_page).map(|((section, _), of_page)| Pack {
            section,
            title: match &self.import.request {
                Request::Product { title, .. } => title.clone(),
                Request::Image { .. } => String::new(),
            },
            page: of_page.page.clone(),
            variant: of_page.variant.clone(),
            discovery: of_page.discovery.clone(),
        });
        Imported { revision, images, pack }
    }
}

/// The provenance of an image, without the time.
fn provenance(brought: &Brought) -> Provenance {
    Provenance { source_url: Some(brought.url.to_string()), ..Provenance::new(ProvenanceKind::Import) }
}

/// Width and height of an image in pixels.
fn pixels(brought: &Brought) -> (f64, f64) {
    (brought.size.width.into(), brought.size.height.into())
}

/// A numbered title such as `Boots 3`, within the maximum length of a title.
fn numbered(title: &str, number: usize) -> String {
    let end = format!(" {number}");
    let stem: String = title.chars().take(TITLE_MAX - end.len()).collect();
    stem + &end
}
