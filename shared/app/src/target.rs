//! Nodes that wait for work: bound at its start, released or filled at its end. Only these functions write `metadata.job`
//! (docs/reference/canvases.md#job-note).

use ::canvas::geometry::fitted_within;
use ::canvas::size::serialized_size;
use ::canvas::svg::whole_font;
use db::PgConnection;
use db::canvases::Change;
use domain::Timestamp;
use domain::graph::{Node, NodeType};
use domain::id::{AssetHandle, JobId};
use domain::job::{JobOperation, JobStatus, WorkOperation};
use domain::metadata::{NodeJob, Provenance};
use domain::recipe::run::RunId;
use serde_json::Map;
use uuid::Uuid;

use crate::canvas;

/// The work that a node waits for.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    Job(JobId, JobOperation),
    /// A Recipe run, of which no job writes to the node yet.
    Run(RunId),
}

impl Work {
    fn id(self) -> Uuid {
        match self {
            Self::Job(id, _) => id.0,
            Self::Run(id) => id.0,
        }
    }

    fn note(self, fit: Option<(f64, f64)>) -> NodeJob {
        let (id, operation, run) = match self {
            Self::Job(id, operation) => (Some(id.into()), operation.into(), id.into()),
            Self::Run(id) => (None, WorkOperation::Recipe, id.into()),
        };
        NodeJob { others: Map::new(), fit, id, operation, run, status: JobStatus::Queued }
    }
}

/// Changes a node. Returns the growth of the serialized graph in bytes.
pub fn change(node: &mut Node, change: impl FnOnce(&mut Node)) -> i64 {
    let before = serialized_size(node);
    change(node);
    serialized_size(node) - before
}

/// Binds nodes to work that will fill them. The transaction has locked their canvas and read them; the caller writes them. Returns
/// the growth of the serialized graph in bytes, or `None` when a node is bound to other work.
///
/// With `fit`, an image or video is shown whole within the present size of its node. The note keeps that size until the work ends, so
/// that a node that somebody resized meanwhile is known by its size.
pub fn bind(nodes: &mut [Node], work: Work, fit: bool) -> Option<i64> {
    if nodes.iter().any(|node| node.active_job.is_some()) {
        return None;
    }
    let bind = |node: &mut Node| {
        let fits = fit && matches!(node.kind, NodeType::Image | NodeType::Video);
        mark(node, work, fits.then_some((node.width, node.height)));
    };
    Some(nodes.iter_mut().map(|node| change(node, bind)).sum())
}

/// Binds a node to a job of the work that it is bound to.
pub fn rebind(node: &mut Node, work: Work) {
    let fit = node.job().and_then(|note| note.fit);
    mark(node, work, fit);
}

fn mark(node: &mut Node, work: Work, fit: Option<(f64, f64)>) {
    node.active_job = Some(work.id());
    node.server.job = Some(work.note(fit));
}

/// Frees a node of the work that ended with `status`.
pub fn release(node: &mut Node, status: JobStatus) {
    node.active_job = None;
    if let Some(note) = &mut node.server.job {
        (note.status, note.fit) = (status, None);
    }
}

/// Frees all nodes of a locked canvas that wait for work which ended with `status`. Nodes that cannot be read are freed and
/// otherwise stay as they are, so that none can keep its work from ending.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
pub async fn release_all(conn: &mut PgConnection, canvas_key: i64, work: Uuid, status: JobStatus) -> db::Result<()> {
    let revision = service::random::revision();
    match db::canvases::nodes_of_job(conn, canvas_key, work).await {
        Ok(mut nodes) if !nodes.is_empty() => {
            let bytes_delta = nodes.iter_mut().map(|node| change(node, |node| release(node, status))).sum();
            canvas::write_nodes(conn, canvas_key, &revision, &nodes, bytes_delta).await
        }
        Ok(_) => Ok(()),
        Err(error) if error.is_unreadable() => {
            let changed_node_ids = db::canvases::release_unread(conn, canvas_key, work).await?;
            let change = Change { changed_otherwise: &changed_node_ids, ..Change::new(&revision) };
            db::canvases::write(conn, canvas_key, &change).await?;
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// An image or a video that a job made.
#[derive(Debug)]
pub struct Made {
    pub asset: AssetHandle,
    /// Width and height in pixels; 0 if they are not known.
    pub size: (f64, f64),
    pub provenance: Provenance,
    pub at: Timestamp,
}

/// Makes a node show what a job made. The previous asset moves to the node's history, with the run that replaced it. A node that
/// [takes on the ratio](takes_on_ratio) shows it whole within its present size.
pub fn fill(node: &mut Node, job: JobId, Made { asset, size, mut provenance, at }: Made) {
    if takes_on_ratio(node) && size.0 > 0.0 && size.1 > 0.0 {
        (node.width, node.height) = fitted_within(size, &node.title, (node.width, node.height));
    }
    node.replace_asset(asset, at, Some(job.into()));
    provenance.created_at = Some(at);
    node.server.provenance = Some(Box::new(provenance));
}

/// Returns `true` for a node that has the size that its work found at the start and was asked to fit, and for an image node of the
/// default size.
fn takes_on_ratio(node: &Node) -> bool {
    /// Far below what a person sees, and above the error of a number that is written and read.
    const TOLERANCE: f64 = 1e-6;
    let (width, height) = (node.width, node.height);
    match node.job().and_then(|note| note.fit) {
        Some(start) => (width - start.0).abs() < TOLERANCE && (height - start.1).abs() < TOLERANCE,
        None => node.kind == NodeType::Image && (width, height) == node.kind.default_size(),
    }
}

/// Makes a node hold the text of a Recipe step. It replaces the client's text and does not count towards the size limit of
/// client-written metadata. A text that would be cut gets a smaller font, in which it is shown whole within the present size of the node.
pub fn fill_text(node: &mut Node, text: &str, provenance: Provenance) {
    node.metadata.content = None;
    node.server.content = Some(text.to_owned());
    node.server.provenance = Some(Box::new(provenance));
    if let Some(font) = whole_font(node) {
        node.metadata.font_size = Some(font.into());
    }
}

#[cfg(test)]
mod tests {
    use domain::graph::Position;
    use domain::id::{AccountUid, AssetId, NodeId};
    use domain::metadata::ProvenanceKind;

    use super::*;

    fn asset(id: &str) -> AssetHandle {
        AssetHandle { owner: AccountUid::from_stored("me".into()), id: AssetId::from_stored(id.into()) }
    }

    fn node() -> Node {
        Node {
            id: NodeId::generate(),
            short: None,
            kind: NodeType::Image,
            title: "image".into(),
            position: Position { x: 0.0, y: 0.0 },
            width: 320.0,
            height: 320.0,
            agent_owned: true,
            metadata: Default::default(),
            server: Default::default(),
            asset: None,
            active_job: None,
        }
    }

    fn made(id: &str) -> Made {
        let at = serde_json::from_str("\"2026-01-02T03:04:05.678Z\"").expect("a time");
        Made { asset: asset(id), size: (1600.0, 900.0), provenance: Provenance::new(ProvenanceKind::Generated), at }
    }

    #[test]
    fn a_node_of_the_default_size_shows_the_whole_image_and_another_keeps_its_size() {
        let mut slot = node();
        fill(&mut slot, JobId::generate(), made("a"));
        assert_eq!((slot.width, slot.height), (320.0, 208.0));
        for (width, height) in [(320.0, 321.0), (319.0, 320.0)] {
            let mut sized = Node { width, height, ..node() };
            fill(&mut sized, JobId::generate(), made("a"));
            assert_eq!((sized.width, sized.height), (width, height));
        }
    }

    #[test]
    fn a_start_with_fit_shows_the_whole_image_or_video_within_the_size_of_its_node() {
        let work = Work::Job(JobId::generate(), JobOperation::Generate);
        let filled = |kind, size: (f64, f64), resized: Option<(f64, f64)>| {
            let mut nodes = [Node { kind, width: size.0, height: size.1, ..node() }];
            bind(&mut nodes, Work::Run(RunId::generate()), true).expect("is free");
            let [mut node] = nodes;
            rebind(&mut node, work);
            (node.width, node.height) = resized.unwrap_or(size);
            fill(&mut node, JobId::generate(), made("a"));
            release(&mut node, JobStatus::Succeeded);
            assert_eq!(node.job().map(|job| job.fit), Some(None), "the size is of no use any more");
            (node.width, node.height)
        };
        for kind in [NodeType::Image, NodeType::Video] {
            assert_eq!(filled(kind, (640.0, 640.0), None), (640.0, 388.0));
            assert_eq!(filled(kind, (640.0, 228.0), None), (356.0, 228.0));
            assert_eq!(filled(kind, (640.0, 640.0), Some((640.0, 641.0))), (640.0, 641.0));
            assert_eq!(filled(kind, (640.0, 640.0), Some((320.0, 320.0))), (320.0, 320.0));
        }
        let mut unknown = [Node { kind: NodeType::Video, ..node() }];
        bind(&mut unknown, work, true).expect("is free");
        fill(&mut unknown[0], JobId::generate(), Made { size: (0.0, 0.0), ..made("a") });
        assert_eq!((unknown[0].width, unknown[0].height), (320.0, 320.0), "of a video that cannot be measured");
        let mut text = [Node { kind: NodeType::Text, ..node() }];
        bind(&mut text, Work::Run(RunId::generate()), true).expect("is free");
        assert_eq!(text[0].job().map(|job| job.fit), Some(None), "a text has no ratio");
    }

    #[test]
    fn the_size_at_the_start_is_the_same_once_it_was_stored() {
        for (width, height) in [(1000.0 / 3.0, 0.1 + 0.2 + 99.0), (1.0, 100_000.0 / 7.0)] {
            let mut nodes = [Node { width, height, ..node() }];
            bind(&mut nodes, Work::Run(RunId::generate()), true).expect("is free");
            let stored = nodes[0].server.text().into_owned();
            let [mut node] = nodes;
            node.server = domain::stored::Stored::from_stored(stored).expect("an object");
            assert!(takes_on_ratio(&node), "{width} {height}");
        }
    }

    #[test]
    fn a_node_is_bound_once_and_released_with_the_status_of_its_work() {
        let work = Work::Job(JobId::generate(), JobOperation::Action);
        let mut nodes = [node()];
        let grown = bind(&mut nodes, work, false).expect("is free");
        assert!(grown > 0 && nodes[0].active_job == Some(work.id()));
        assert_eq!(nodes[0].job().map(|job| job.status), Some(JobStatus::Queued));
        assert_eq!(bind(&mut nodes, Work::Run(RunId::generate()), false), None);
        assert_eq!(
            change(&mut nodes[0], |node| release(node, JobStatus::Succeeded)),
            "succeeded".len() as i64 - "queued".len() as i64
        );
        assert_eq!(nodes[0].active_job, None);
        assert_eq!(nodes[0].job().map(|job| job.operation), Some(WorkOperation::Action));
    }

    #[test]
    fn an_empty_node_gets_provenance_and_no_history() {
        let mut node = node();
        fill(&mut node, JobId::generate(), made("a"));
        assert_eq!(node.asset, Some(asset("a")));
        assert_eq!(
            node.server.text(),
            r#"{"provenance":{"createdAt":"2026-01-02T03:04:05.678Z","elements":[],"kind":"generated","references":[]}}"#
        );
    }

    #[test]
    fn a_text_that_would_be_cut_gets_a_font_in_which_it_is_whole() {
        let font = |words: usize, before: Option<u32>| {
            let mut node = Node { kind: NodeType::Text, height: 240.0, ..node() };
            node.metadata.font_size = before.map(Into::into);
            fill_text(&mut node, &"word ".repeat(words), Provenance::new(ProvenanceKind::Generated));
            assert_eq!((node.width, node.height), (320.0, 240.0));
            node.metadata.font_size.as_ref().and_then(serde_json::Number::as_u64)
        };
        assert_eq!(font(10, None), None);
        assert_eq!(font(10, Some(20)), Some(20));
        let smaller = font(120, None).expect("a font");
        assert!((8..16).contains(&smaller), "{smaller}");
        assert_eq!(font(120, Some(40)), Some(smaller));
        assert_eq!(font(5000, Some(20)), Some(20), "it cannot be whole");
    }

    #[test]
    fn the_newest_fifty_earlier_assets_are_remembered() {
        let mut node = node();
        for index in 0..=51 {
            fill(&mut node, JobId::generate(), made(&index.to_string()));
        }
        let history = &node.server.history;
        assert_eq!(history.len(), 50);
        assert_eq!((&history[0].asset, &history[49].asset), (&asset("50"), &asset("1")));
    }
}
