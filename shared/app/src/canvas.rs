//! Changes of a canvas's graph: batches of operations, and the steps that all graph writes share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ::canvas::graph::{AssetImage, Sources};
use ::canvas::{Applied, Batch, Footprint, Graph, Options, Refused, Touched};
use db::assets::Placeable;
use db::canvases::{Change, Guard, NewActivity};
use db::idempotency::NewKey;
use db::{PgConnection, PgPool};
use domain::Violation;
use domain::asset::AssetKind;
use domain::canvas::{AccessRole, ActivityType, Actor, CanvasAfter, CanvasRecord, Changes, MutationResult};
use domain::channel;
use domain::graph::{GraphWrites, Node, NodeType};
use domain::id::{AccountUid, AssetHandle, AssetRef};
use domain::idempotency::StoredOutcome;
use domain::review::{CompletionReview, DetachedOutput, StoredAssets};

use crate::command::{CanvasWrite, Command, Key, LockedCanvas};
use crate::graphs::{Graphs, load};
use crate::{Error, Result};

/// A canvas after a write, with what the write changed.
#[derive(Debug)]
pub struct ChangedCanvas {
    /// The canvas at its present revision.
    pub record: CanvasRecord,
    /// The account's role on it.
    pub role: AccessRole,
    pub graph: Arc<Graph>,
    /// Created id for each `clientId`.
    pub resolved_ids: BTreeMap<String, String>,
    /// Changed and deleted ids.
    pub changes: Changes,
    /// `true` if an earlier, equal request made the change.
    pub replayed: bool,
    /// `true` if the change was accepted although its base revision was stale.
    pub lenient: bool,
}

impl ChangedCanvas {
    /// The result as the contract serves it; `minimal` leaves out nodes and connections.
    pub fn document(self, minimal: bool) -> MutationResult {
        let canvas = if minimal {
            CanvasAfter::Minimal(self.record.summary(Some(self.role)))
        } else {
            CanvasAfter::Whole(self.record.document(self.graph.served_nodes(), self.graph.served_connections()))
        };
        let refs = self.refs();
        MutationResult { canvas, replayed: self.replayed, resolved_ids: self.resolved_ids, refs, changes: self.changes }
    }

    /// The refs of what was changed and is on the canvas, by id.
    fn refs(&self) -> BTreeMap<String, String> {
        let Changes { changed_node_ids, changed_connection_ids, .. } = &self.changes;
        let nodes =
            changed_node_ids.iter().filter_map(|id| Some((id.to_string(), self.graph.node(id)?.short?.to_string())));
        let connections = changed_connection_ids.iter();
        let connections =
            connections.filter_map(|id| Some((id.to_string(), self.graph.connection(id)?.short?.to_string())));
        nodes.chain(connections).collect()
    }
}

/// Applies a batch of operations (docs/reference/operations.md).
pub struct ApplyBatch<'a> {
    /// The canvas that is written to.
    pub target: CanvasWrite<'a>,
    pub canvas_key: i64,
    pub key: Key<'a>,
    /// Actor of the activity entry.
    pub actor: Actor,
    /// The checked operations.
    pub batch: &'a Batch,
    /// `true` if findings of severity error, and active jobs of deleted nodes, do not block the batch.
    pub force: bool,
    /// Graphs of the process.
    pub graphs: &'a Graphs,
}

impl ApplyBatch<'_> {
    /// Applies the batch to a graph that has the images it needs. Reads and writes nothing else, so that it decides the same with and
    /// without a lock.
    fn decide(&self, graph: &mut Graph) -> std::result::Result<Applied, Refusal> {
        let options = Options { agent: self.actor.surface.is_agent(), force: self.force };
        let applied = ::canvas::apply(graph, self.batch, options).map_err(Refusal::Rules)?;
        if !self.force && ::canvas::is_blocked(graph, &applied.touched) {
            return Err(Refusal::Findings(Box::new(applied.touched)));
        }
        Ok(applied)
    }

    fn event(&self) -> CanvasEvent<'_> {
        let count = self.batch.operation_count();
        let summary = format!("applied {count} operation{}", if count == 1 { "" } else { "s" });
        CanvasEvent { kind: ActivityType::OperationsApplied, actor: &self.actor, summary }
    }
}

/// Why a batch is not applied.
enum Refusal {
    /// It breaks rules of the graph, which is as before.
    Rules(Refused),
    /// What it touched has findings of severity error.
    Findings(Box<Touched>),
}

impl Command for ApplyBatch<'_> {
    type Subject = ();
    type Reply = ChangedCanvas;

    fn account(&self) -> &AccountUid {
        self.target.account
    }

    fn key(&self) -> Option<Key<'_>> {
        Some(self.key)
    }

    fn channels(&self) -> Vec<String> {
        vec![channel::canvas(self.target.canvas)]
    }

    async fn authorize(&self, _: &mut PgConnection) -> Result<()> {
        Ok(())
    }

    fn writes_to(&self) -> Option<CanvasWrite<'_>> {
        Some(self.target)
    }

    /// For a batch of the owner that depends on the graph alone, on the revision whose graph is kept.
    async fn try_single_statement(&self, pool: &PgPool) -> Result<Option<ChangedCanvas>> {
        let CanvasWrite { account, canvas, base: Some(base), .. } = self.target else { return Ok(None) };
        if canvas.owner != *account {
            return Ok(None);
        }
        let is_enough = |graph: &Graph| self.batch.depends_on_graph_alone(graph);
        let Some(mut graph) = self.graphs.take_at(self.canvas_key, &base.revision, is_enough) else { return Ok(None) };
        graph.set_images(HashMap::new(), HashMap::new());
        let applied = match self.decide(&mut graph) {
            Ok(applied) => applied,
            Err(Refusal::Rules(_)) => {
                self.graphs.keep_at(self.canvas_key, &base.revision, &Arc::new(graph));
                return Ok(None);
            }
            Err(Refusal::Findings(_)) => return Ok(None),
        };
        let outcome =
            StoredOutcome::Operations { resolved_ids: applied.resolved_ids.clone(), changes: applied.changes.clone() };
        let Key { text, fingerprint } = self.key;
        let key = NewKey { account, text, fingerprint, outcome: Some(&outcome), job: None };
        let guard = Guard { key, base_revision: &base.revision };
        let revision = service::random::revision();
        let change = self.event().of_change(&revision, &graph, &applied);
        let conn = &mut *db::pool::acquire(pool).await?;
        let written = db::canvases::write_guarded(conn, self.canvas_key, &guard, applied.grows, &change).await?;
        let Some(record) = written else {
            return Ok(None);
        };
        let changed = ChangedCanvas::new(record, AccessRole::Owner, graph, applied);
        self.graphs.keep(&changed.record, &changed.graph);
        Ok(Some(changed))
    }

    async fn execute(&self, conn: &mut PgConnection, (): (), locked: Option<LockedCanvas>) -> Result<ChangedCanvas> {
        let canvas = self.target.lock_checked(conn, locked, &Footprint::named_by(self.batch)).await?;
        let mut graph = match load_for_restore(conn, &canvas.record, self.batch).await? {
            Some(graph) => graph,
            None => self.graphs.take(conn, &canvas.record).await?,
        };
        let named: Vec<AssetHandle> =
            self.batch.assets().map(|asset| asset.clone().resolve(self.target.account)).collect();
        if !named.is_empty() {
            db::assets::hold(conn, named.iter()).await?;
        }
        read_images(conn, &canvas.record, self.target.account, self.batch, &mut graph).await?;
        if canvas.stale_base.is_some() {
            canvas.admit(&Footprint::from_batch(self.batch, &graph))?;
        }
        let applied = match self.decide(&mut graph) {
            Ok(applied) => applied,
            Err(Refusal::Rules(refused)) => {
                self.graphs.keep(&canvas.record, &Arc::new(graph));
                return Err(refused.into());
            }
            Err(Refusal::Findings(touched)) => {
                let assets = stored_assets(conn, &graph).await?;
                let works = db::jobs::owing(conn, canvas.record.key, self.target.account).await?;
                return Err(Error::Blocked(Box::new(::canvas::validate(&graph, &touched, &assets, &works))));
            }
        };
        let changed = write(conn, canvas, graph, applied, ("operations", self.event())).await?;
        self.graphs.keep(&changed.record, &changed.graph);
        Ok(changed)
    }

    fn outcome(&self, reply: &ChangedCanvas) -> Option<StoredOutcome> {
        Some(reply.outcome())
    }

    async fn replay(&self, conn: &mut PgConnection, outcome: StoredOutcome) -> Result<ChangedCanvas> {
        replayed(conn, &self.target, outcome).await
    }
}

impl ChangedCanvas {
    /// A canvas after the applied changes.
    fn new(record: CanvasRecord, role: AccessRole, graph: Graph, applied: Applied) -> Self {
        let Applied { resolved_ids, changes, .. } = applied;
        Self { record, role, graph: Arc::new(graph), resolved_ids, changes, replayed: false, lenient: false }
    }

    /// The stored part of the reply to a replay; the rest is the present state.
    pub fn outcome(&self) -> StoredOutcome {
        StoredOutcome::Operations { resolved_ids: self.resolved_ids.clone(), changes: self.changes.clone() }
    }
}

/// The reply to a repeated graph write: the ids of the first one, with the canvas as it is now.
pub async fn replayed(
    conn: &mut PgConnection,
    target: &CanvasWrite<'_>,
    outcome: StoredOutcome,
) -> Result<ChangedCanvas> {
    let canvas = target.lock(conn).await?;
    let (StoredOutcome::Operations { resolved_ids, changes } | StoredOutcome::Workflow { resolved_ids, changes, .. }) =
        outcome
    else {
        return Err(Error::Inconsistent("the key of a graph write holds an outcome of another kind".into()));
    };
    let graph = load(conn, &canvas.record).await?;
    Ok(ChangedCanvas {
        record: canvas.record,
        role: canvas.role,
        graph: Arc::new(graph),
        resolved_ids,
        changes,
        replayed: true,
        lenient: false,
    })
}

/// The graph of a canvas with the deleted items that a batch restores; `None` if it restores nothing.
pub async fn load_for_restore(conn: &mut PgConnection, record: &CanvasRecord, batch: &Batch) -> Result<Option<Graph>> {
    let (restored_nodes, restored_connections) = batch.restored();
    if restored_nodes.is_empty() && restored_connections.is_empty() {
        return Ok(None);
    }
    let (nodes, connections) = db::canvases::graph(conn, record.key).await?;
    let sources = Sources {
        nodes: db::canvases::deleted_nodes(conn, record.key, &restored_nodes).await?,
        connections: db::canvases::deleted_connections(conn, record.key, &restored_connections).await?,
        ..Sources::default()
    };
    let graph = Graph::with_sources(record.title.clone(), record.graph_bytes, nodes, connections, sources);
    Ok(Some(graph.after_refs(record.refs)))
}

/// Reads the images and videos that a batch of the account needs into the graph that it will be applied to.
pub async fn read_images(
    conn: &mut PgConnection,
    record: &CanvasRecord,
    account: &AccountUid,
    batch: &Batch,
    graph: &mut Graph,
) -> Result<()> {
    let mut assets = HashMap::new();
    let mut sizes = HashMap::new();
    let named: HashMap<AssetRef, AssetHandle> =
        batch.assets().map(|asset| (asset.clone(), asset.clone().resolve(account))).collect();
    if !named.is_empty() {
        // A member of a shared canvas brings in nothing of the owner's that is not in the canvas.
        let owner = Some(account).filter(|account| **account == record.handle.owner);
        let found = db::assets::placeable(conn, record.key, owner, named.values()).await?;
        let at = service::clock::now().into();
        let image = |(named, asset): (AssetRef, AssetHandle)| {
            let Placeable { kind, size } = *found.get(&asset)?;
            let shown_by = if kind == AssetKind::Video { NodeType::Video } else { NodeType::Image };
            Some((named, AssetImage { asset, shown_by, size: known_size(size), at }))
        };
        assets = named.into_iter().filter_map(image).collect();
        let sized = |image: &AssetImage| Some((image.asset.clone(), image.size?));
        sizes = assets.values().filter_map(sized).collect();
    }
    let sizing = batch.sizing_images(graph);
    if !sizing.is_empty() {
        // What the canvas shows is stored in it or belongs to its owner.
        let found = db::assets::placeable(conn, record.key, Some(&record.handle.owner), sizing.into_iter()).await?;
        sizes.extend(found.into_iter().filter_map(|(asset, found)| Some((asset, known_size(found.size)?))));
    }
    graph.set_images(assets, sizes);
    Ok(())
}

/// Width and height in pixels, unless they are those of a video of unknown size.
fn known_size((width, height): (i32, i32)) -> Option<(f64, f64)> {
    (width > 0 && height > 0).then(|| (width.into(), height.into()))
}

/// The stored ones among the assets that findings and reviews of a graph depend on.
pub async fn stored_assets(conn: &mut PgConnection, graph: &Graph) -> Result<StoredAssets> {
    Ok(stored_assets_of(conn, graph.nodes()).await?)
}

/// [`stored_assets`] of a graph with these nodes: one statement, and another one if images were made from images.
async fn stored_assets_of<'a>(
    conn: &mut PgConnection,
    nodes: impl Iterator<Item = &'a Node>,
) -> db::Result<StoredAssets> {
    let (mut named, mut outputs) = (HashSet::new(), HashSet::new());
    for node in nodes {
        named.extend(node.named_assets());
        if node.is_made() && node.sources().next().is_some() {
            outputs.extend(node.asset.clone());
        }
    }
    let mut assets = db::assets::origins(conn, &named).await?;
    for (output, has_all) in db::assets::lineage::has_sources(conn, &outputs).await? {
        if let Some(asset) = assets.get_mut(&output) {
            asset.has_sources = Some(has_all);
        }
    }
    Ok(assets)
}

/// The activity entry of a write, without the nodes that changed.
pub struct CanvasEvent<'a> {
    /// Type of the entry.
    pub kind: ActivityType,
    /// Who made the change.
    pub actor: &'a Actor,
    /// One line for readers; contains no user text but titles.
    pub summary: String,
}

/// Writes the applied changes to a locked canvas. `field` is the member of the request that makes the canvas grow.
pub async fn write(
    conn: &mut PgConnection,
    canvas: LockedCanvas,
    graph: Graph,
    applied: Applied,
    (field, event): (&'static str, CanvasEvent<'_>),
) -> Result<ChangedCanvas> {
    let revision = service::random::revision();
    let change = event.of_change(&revision, &graph, &applied);
    let written = db::canvases::write_within_quota(conn, canvas.record.key, applied.grows, &change).await?;
    let Some(record) = written else {
        let is_own = canvas.role == AccessRole::Owner;
        let own = if is_own { db::storage::get(conn, &canvas.record.handle.owner).await? } else { None };
        return Err(Error::StorageFull { field: Some(field), own });
    };
    let lenient = canvas.stale_base.is_some();
    Ok(ChangedCanvas { lenient, ..ChangedCanvas::new(record, canvas.role, graph, applied) })
}

impl<'a> CanvasEvent<'a> {
    /// The change of the canvas that makes the applied changes and is described by this event.
    fn of_change(self, revision: &'a str, graph: &'a Graph, applied: &'a Applied) -> Change<'a> {
        let Self { kind, actor, summary } = self;
        let activity = NewActivity { kind, actor, summary, nodes: &applied.changes.changed_node_ids };
        Change { activity: Some(activity), ..change(revision, graph, applied) }
    }
}

/// The change of a canvas that makes the applied changes, without activity. `graph` is the graph after them.
pub fn change<'a>(revision: &'a str, graph: &'a Graph, applied: &'a Applied) -> Change<'a> {
    Change {
        title: applied.title.as_deref(),
        graph: applied.writes(graph),
        bytes_delta: applied.bytes_delta,
        regrouped: &applied.regrouped,
        ..Change::new(revision)
    }
}

/// The rejection of nodes and connections that a command adds, by the graph engine. The engine names operations, but the request
/// names a canvas, which is full, or a Section under `prefix`.
pub(crate) fn addition_refused(refused: Refused, prefix: &str) -> Error {
    match refused {
        Refused::Unprocessable(violations) => {
            let named = |Violation { field, message }: Violation| match field.as_str() {
                field if field.ends_with("sectionId") => Violation::new(format!("{prefix}sectionId"), message),
                "connect" | "place" => Violation::new(field, message),
                _ => Violation::new("canvasId", message),
            };
            Error::Unprocessable(violations.into_iter().map(named).collect())
        }
        Refused::Invalid(violations) => Error::Inconsistent(format!("an addition violates {violations:?}")),
    }
}

/// Writes nodes that work changed, read whole under the lock on their canvas, and gives the canvas its next revision.
pub async fn write_nodes(
    conn: &mut PgConnection,
    canvas_key: i64,
    revision: &str,
    nodes: &[Node],
    bytes_delta: i64,
) -> db::Result<()> {
    let graph = GraphWrites { nodes: nodes.iter().collect(), ..GraphWrites::default() };
    db::canvases::write(conn, canvas_key, &Change { graph, bytes_delta, ..Change::new(revision) }).await?;
    Ok(())
}

/// Reviews a locked canvas as the transaction sees it: the review that a Recipe run leaves. `detached` returns its outputs whose nodes
/// are not among the canvas's nodes. As [`reviews`].
pub async fn review(
    conn: &mut PgConnection,
    canvas_key: i64,
    detached: impl FnOnce(&[Node]) -> Vec<DetachedOutput>,
) -> db::Result<CompletionReview> {
    let (nodes, connections) = db::canvases::skeleton(conn, canvas_key).await?;
    let detached = detached(&nodes);
    let assets = stored_assets_of(conn, nodes.iter()).await?;
    Ok(::canvas::review::review_of_end(nodes, connections, &assets, &detached))
}

/// The reviews that jobs leave on locked canvases, each given with the outputs whose nodes were deleted.
///
/// They are computed inside the transaction, after the canvases are written, so that they describe exactly the revisions that the work
/// made. The end of a job on a large canvas has it [prepared](crate::job::Reviews) before. They cost one read of the light columns of
/// the graphs ([`skeletons`](db::canvases::skeletons)), a statement or two that ask which of the assets named there, and of those
/// that outputs were made from, are stored, and the reviews themselves, O(n log n).
pub async fn reviews(
    conn: &mut PgConnection,
    canvases: &[(i64, Vec<DetachedOutput>)],
) -> db::Result<Vec<CompletionReview>> {
    if canvases.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<i64> = canvases.iter().map(|(key, _)| *key).collect();
    let mut skeletons = db::canvases::skeletons(conn, &keys).await?;
    let assets = stored_assets_of(conn, skeletons.values().flat_map(|(nodes, _)| nodes)).await?;
    let review = |(key, detached): &(i64, Vec<DetachedOutput>)| {
        let (nodes, connections) = skeletons.remove(key).unwrap_or_default();
        ::canvas::review::review_of_end(nodes, connections, &assets, detached)
    };
    Ok(canvases.iter().map(review).collect())
}
