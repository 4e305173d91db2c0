//! Canvas documents: the memory they take, and a cache of served documents by revision.
//!
//! **Guarantee.** Graphs being loaded, documents in the cache and documents being sent take at most 352 MiB in one process,
//! however many clients read and however slowly; cached drawings take at most 64 MiB. A request for which no memory is free waits
//! for a bounded time and is then answered with 503. Reads of large canvases never delay reads of small ones.
//!
//! **Mechanism.** A request reserves a [`GraphPermit`] before it loads a graph; small graphs have a budget of their own. Each budget is
//! larger than what the cache can hold. Once the document is made, the unused part of the reservation is released; the rest is
//! released when the last reference to the document's bytes is dropped. A revision is never used twice
//! (docs/reference/canvases.md#revision), so a document cached under the revision that Postgres just returned is current: nothing
//! has to be invalidated, and a read of an unchanged canvas costs one statement and reserves no memory.

use std::sync::Arc;

use app::graphs::memory_bytes;
use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::Serialize;
use service::admission::{ByteBudget, MemoryPermit};

use crate::admission::admitted;
use crate::problem::{Problem, Result};

/// Bytes of documents that one process caches.
const CAPACITY_BYTES: u64 = 64 * 1024 * 1024;
/// Budget for large graphs and their documents in one process, in bytes; the cached ones are included.
const LARGE_BUDGET_BYTES: u64 = 4 * CAPACITY_BYTES;
/// The same budget for small graphs.
const SMALL_BUDGET_BYTES: u64 = CAPACITY_BYTES + CAPACITY_BYTES / 2;
/// The most that loading a small graph takes: about a thousand nodes with some text.
const SMALL_LOAD_MAX: u64 = 2 * 1024 * 1024;
/// The most that one load takes. It always fits in addition to a full cache, whose entries may be rounded up.
pub const LOAD_MAX: u64 = LARGE_BUDGET_BYTES - CAPACITY_BYTES - 16 * 1024 * 1024;

/// The canvas documents of a process.
pub struct Documents {
    kept: Cache<(i64, Arc<str>), Bytes, ByLength>,
    large: ByteBudget,
    small: ByteBudget,
}

#[derive(Clone)]
struct ByLength;

impl Weighter<(i64, Arc<str>), Bytes> for ByLength {
    fn weight(&self, (_, revision): &(i64, Arc<str>), document: &Bytes) -> u64 {
        (document.len() + revision.len() + 64) as u64
    }
}

/// Reserved memory for a graph and the document made of it.
pub struct GraphPermit(MemoryPermit);

/// A document together with the memory reserved for it.
struct BudgetedBytes {
    document: Box<[u8]>,
    _memory: MemoryPermit,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.document
    }
}

impl GraphPermit {
    /// Turns the document into shared bytes that keep as much of the reservation as they take.
    pub fn into_bytes(self, document: Vec<u8>) -> Bytes {
        let Self(mut memory) = self;
        memory.shrink_to(document.len() as u64);
        Bytes::from_owner(BudgetedBytes { document: document.into_boxed_slice(), _memory: memory })
    }

    /// The same for the JSON document of `body`.
    pub fn into_json(self, body: &impl Serialize) -> Result<Bytes> {
        Ok(self.into_bytes(serde_json::to_vec(body).map_err(Problem::internal)?))
    }
}

impl Documents {
    /// An empty cache and unused budgets.
    pub fn new() -> Self {
        Self {
            kept: Cache::with_weighter(4096, CAPACITY_BYTES, ByLength),
            large: ByteBudget::new(LARGE_BUDGET_BYTES),
            small: ByteBudget::new(SMALL_BUDGET_BYTES),
        }
    }

    /// Reserves memory to load a graph of `graph_bytes` and to make its document; 503 when none becomes free in time.
    pub async fn reserve(&self, graph_bytes: i64) -> Result<GraphPermit> {
        let bytes = memory_bytes(graph_bytes).min(LOAD_MAX);
        let budget = if bytes <= SMALL_LOAD_MAX { &self.small } else { &self.large };
        Ok(GraphPermit(admitted(budget.acquire(bytes), "too many canvases are loaded or sent at once").await?))
    }

    /// The budget for large graphs, which others of the process share.
    pub fn large(&self) -> ByteBudget {
        self.large.clone()
    }

    /// The cached document of a canvas at a revision.
    pub fn get(&self, canvas_key: i64, revision: &str) -> Option<Bytes> {
        self.kept.get(&(canvas_key, Arc::from(revision)))
    }

    /// Caches a document.
    pub fn put(&self, canvas_key: i64, revision: &str, document: Bytes) {
        self.kept.insert((canvas_key, Arc::from(revision)), document);
    }
}

impl Default for Documents {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use canvas::Graph;
    use domain::graph::{Node, NodeType, Position};
    use domain::id::{AccountUid, AssetHandle, AssetId, NodeId};
    use domain::limits::CANVAS_BYTES_MAX;
    use domain::review::StoredAssets;
    use domain::stored::Stored;
    use futures_util::FutureExt;

    use super::*;
    use crate::counting::held_by;

    /// The metadata that the service writes to the node of an Action's result.
    const SERVER: &str = r##"{"createdBy":{"surface":"api","token":"agent-token:01980000-0000-7000-8000-000000000000"},
        "job":{"id":"job:01980000-0000-7000-8000-000000000000","run":"run:image:01980000-0000-7000-8000-000000000000",
        "status":"succeeded","operation":"action","updatedAt":"2026-11-28T09:00:00.000Z"},
        "provenance":{"kind":"action","run":"run:image:01980000-0000-7000-8000-000000000000","operation":"action",
        "actionId":"action:resize","actionVersion":"1.0.0","params":{"width":1024,"fit":"inside","format":"auto","quality":85,
        "background":"#ffffff"},"references":[{"handle":"asset:me:01980000-0000-7000-8000-000000000000"}],"elements":[],
        "createdAt":"2026-11-28T09:00:00.000Z"}}"##;

    #[tokio::test(start_paused = true)]
    async fn documents_on_their_way_take_their_memory_until_the_last_byte_is_dropped() {
        let documents = Documents::new();
        let loading = documents.reserve(CANVAS_BYTES_MAX).await.expect("the largest fits");
        assert!(matches!(documents.reserve(CANVAS_BYTES_MAX).await, Err(Problem::Unavailable(_, Some(1)))));
        // The document takes a part of the reservation.
        let document = loading.into_bytes(vec![b'x'; 100 * 1024 * 1024]);
        let rest = documents.reserve(30 * 1024 * 1024).await.expect("fits beside it");
        drop(rest);
        let last = document.slice(document.len() - 1..);
        drop(document);
        assert!(documents.reserve(CANVAS_BYTES_MAX).await.is_err(), "a part of it is still there");
        drop(last);
        assert!(documents.reserve(CANVAS_BYTES_MAX).await.is_ok());
        assert_eq!(documents.large.held_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_a_small_canvas_waits_for_none_that_is_large() {
        let documents = Documents::new();
        let largest = documents.reserve(CANVAS_BYTES_MAX).await.expect("the largest fits");
        assert!(documents.reserve(CANVAS_BYTES_MAX).await.is_err(), "large ones wait for each other");
        assert!(documents.reserve(400_000).await.is_ok());
        drop(largest);
    }

    #[tokio::test]
    async fn the_largest_canvas_is_loaded_beside_all_that_is_kept() {
        let documents = Documents::new();
        for canvas in 0..2000 {
            let permit = documents.reserve(50_000).await.expect("fits");
            documents.put(canvas, "r", permit.into_bytes(vec![b'x'; 50_001]));
        }
        assert!(documents.get(1999, "r").is_some() || documents.kept.len() > 1000, "they are kept");
        assert!(documents.large.acquire(LOAD_MAX).now_or_never().is_some());
        assert!(documents.small.acquire(SMALL_LOAD_MAX).now_or_never().is_some());
    }

    #[test]
    fn a_graph_that_was_served_and_reviewed_takes_no_more_than_is_counted() {
        let result = |number: usize| Node {
            id: NodeId::parse(&format!("01980000-0000-7000-8000-{number:012}")).expect("an id"),
            kind: NodeType::Image,
            title: "photo-resize.jpg".into(),
            position: Position { x: 400.0 * number as f64, y: 0.0 },
            width: 320.0,
            height: 240.0,
            agent_owned: true,
            metadata: Stored::default(),
            server: Stored::from_stored(SERVER.to_owned()).expect("an object"),
            asset: Some(AssetHandle { owner: AccountUid::generate(), id: AssetId::generate() }),
            active_job: None,
        };
        let nodes: Vec<Node> = (0..1000).map(result).collect();
        let bytes = nodes.iter().map(canvas::size::serialized_size).sum();
        let held = held_by(|| {
            let mut graph = Graph::new("canvas".into(), bytes, nodes.clone(), Vec::new());
            drop(graph.served_nodes());
            drop(canvas::review::review(&graph, &StoredAssets::new(), &[]));
            graph.forget_parsed();
            graph
        });
        assert!(held <= memory_bytes(bytes), "{held} bytes for {bytes} serialized ones");
    }

    #[tokio::test]
    async fn a_document_larger_than_its_canvas_said_is_sent_all_the_same() {
        let documents = Documents::new();
        let document = documents.reserve(0).await.expect("fits").into_bytes(vec![b'x'; 5000]);
        assert_eq!(document.len(), 5000);
    }
}
