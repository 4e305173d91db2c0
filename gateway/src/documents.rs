//! Canvas documents: the memory they take, and a cache of served documents by revision.
//!
//! **Guarantee.** Graphs being loaded and documents being sent take at most 352 MiB in one process, however many clients read and
//! however slowly, and those of one account at most 176 MiB of large and 48 MiB of small ones. The cache takes at most 64 MiB. A request
//! for which no memory is free waits for a bounded time and is then answered with 503. Reads of large canvases never delay reads of small
//! ones.
//!
//! **Mechanism.** A request holds memory of its account before it loads a graph ([`GraphPermit`]); small graphs have a share of their
//! own. Once the document is made, the unused part is released; the rest is released when the last byte of the response is dropped. A
//! response from the cache holds its size as well: the cache may forget the document before a slow reader has read it. A revision is
//! never used twice (docs/reference/canvases.md#revision), so a document cached under the revision that Postgres just returned is
//! current: nothing has to be invalidated, and a read of an unchanged canvas costs one statement.

use std::sync::Arc;

use app::graphs::memory_bytes;
use bytes::Bytes;
use domain::id::AccountUid;
use quick_cache::sync::{Cache, DefaultLifecycle, PlaceholderGuard};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use serde::Serialize;
use service::shares::{Held, Key, Shares};
use tokio::time::timeout;

use crate::admission::{WAIT_MAX, account_key, admitted};
use crate::compression::Coding;
use crate::problem::{Problem, Result};

const MIB: u64 = 1024 * 1024;
/// Bytes of documents and drawings that one process caches.
const CAPACITY_BYTES: u64 = 64 * MIB;
/// Bytes of large graphs and their documents in one process, and the most of one account, and so of one load.
const LARGE_TOTAL: u64 = 256 * MIB;
const LARGE_PER_ACCOUNT: u64 = 176 * MIB;
/// The same for small graphs.
const SMALL_TOTAL: u64 = 96 * MIB;
const SMALL_PER_ACCOUNT: u64 = SMALL_TOTAL / 2;
/// The most that loading a small graph takes: about a thousand nodes with some text.
const SMALL_LOAD_MAX: u64 = 2 * MIB;
/// Bytes that all of this takes at most in one process.
#[cfg(test)]
pub const MEMORY_MAX: u64 = CAPACITY_BYTES + LARGE_TOTAL + SMALL_TOTAL;

/// The canvas documents of a process.
pub struct Documents {
    kept: Cache<Name, Bytes, ByLength>,
    large: Shares,
    small: Shares,
}

/// What is cached: a canvas, its revision, and the coding of a compressed form.
type Name = (i64, Arc<str>, Option<Coding>);

/// The turn to make a form of a document for all who wait for it. Dropped without [`insert`](Turn::insert), it goes to one of them.
pub struct Turn<'a>(PlaceholderGuard<'a, Name, Bytes, ByLength, DefaultHashBuilder, DefaultLifecycle<Name, Bytes>>);

impl Turn<'_> {
    /// Caches the form.
    pub fn insert(self, form: Bytes) {
        // An error returns a form that is not admitted.
        let _ = self.0.insert(form);
    }
}

#[derive(Clone)]
pub struct ByLength;

impl Weighter<Name, Bytes> for ByLength {
    fn weight(&self, (_, revision, _): &Name, document: &Bytes) -> u64 {
        (document.len() + revision.len() + 64) as u64
    }
}

/// Memory for a graph and the document made of it.
pub struct GraphPermit(Held);

/// A document together with the memory held for it.
struct HeldDocument {
    document: Bytes,
    _memory: Held,
}

impl AsRef<[u8]> for HeldDocument {
    fn as_ref(&self) -> &[u8] {
        &self.document
    }
}

impl GraphPermit {
    /// Turns the document into bytes that hold as much of the memory as they take.
    pub fn into_bytes(self, document: impl Into<Bytes>) -> Bytes {
        let (Self(mut memory), document) = (self, document.into());
        memory.shrink_to(document.len() as u64);
        Bytes::from_owner(HeldDocument { document, _memory: memory })
    }

    /// The same for the JSON document of `body`.
    pub fn into_json(self, body: &impl Serialize) -> Result<Bytes> {
        Ok(self.into_bytes(serde_json::to_vec(body).map_err(Problem::internal)?))
    }
}

impl Documents {
    /// An empty cache and unused shares.
    pub fn new() -> Self {
        // One shard: no document is larger than the part of the capacity that a shard has.
        let mut options = OptionsBuilder::new();
        options.estimated_items_capacity(4096).weight_capacity(CAPACITY_BYTES).shards(1);
        let options = options.build().expect("capacities are given");
        Self {
            kept: Cache::with_options(options, ByLength, Default::default(), Default::default()),
            large: Shares::new("canvases", LARGE_TOTAL, LARGE_PER_ACCOUNT),
            small: Shares::new("small_canvases", SMALL_TOTAL, SMALL_PER_ACCOUNT),
        }
    }

    /// Holds memory of `account` to load a graph of `graph_bytes` and to make its document; 503 when none becomes free in time.
    pub async fn reserve(&self, account: &AccountUid, graph_bytes: i64) -> Result<GraphPermit> {
        self.hold(account, memory_bytes(graph_bytes)).await
    }

    /// Holds memory of `account` for a document of `bytes`; 503 when none becomes free in time.
    pub async fn hold(&self, account: &AccountUid, bytes: u64) -> Result<GraphPermit> {
        Ok(GraphPermit(admitted(self.share(bytes), &account_key(account), bytes).await?))
    }

    /// Holds memory for a document of `bytes`, if it is free at once.
    pub fn spare(&self, key: &Key, bytes: u64) -> Option<GraphPermit> {
        self.share(bytes).try_hold(key, bytes).map(GraphPermit)
    }

    fn share(&self, bytes: u64) -> &Shares {
        if bytes <= SMALL_LOAD_MAX { &self.small } else { &self.large }
    }

    /// The share of large graphs, which others of the process take of.
    pub fn large(&self) -> Shares {
        self.large.clone()
    }

    /// The cached document of a canvas at a revision, with memory of the account that it is sent to.
    pub async fn kept(&self, account: &AccountUid, canvas_key: i64, revision: &str) -> Result<Option<Bytes>> {
        let Some(document) = self.get(canvas_key, revision) else { return Ok(None) };
        let memory = self.hold(account, document.len() as u64).await?;
        Ok(Some(memory.into_bytes(document)))
    }

    /// The cached document of a canvas at a revision.
    pub fn get(&self, canvas_key: i64, revision: &str) -> Option<Bytes> {
        self.kept.get(&(canvas_key, Arc::from(revision), None))
    }

    /// The cached form of a document in a coding, or the turn to make it; 503 when another request has the turn for too long.
    pub async fn form(&self, canvas_key: i64, revision: &str, coding: Coding) -> Result<Result<Bytes, Turn<'_>>> {
        let name = (canvas_key, Arc::from(revision), Some(coding));
        let form = timeout(WAIT_MAX, self.kept.get_value_or_guard_async(&name)).await;
        let form = form.map_err(|_| Problem::Unavailable("a document is being made for too long".into(), Some(1)))?;
        Ok(form.map_err(Turn))
    }

    /// Caches a document.
    pub fn put(&self, canvas_key: i64, revision: &str, document: Bytes) {
        self.kept.insert((canvas_key, Arc::from(revision), None), document);
    }
}

impl Default for Documents {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use canvas::Graph;
    use domain::graph::{Node, NodeType, Position};
    use domain::id::{AccountUid, AssetHandle, AssetId, NodeId};
    use domain::limits::CANVAS_BYTES_MAX;
    use domain::review::StoredAssets;
    use domain::stored::Stored;
    use futures_util::future::join_all;

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

    fn account(name: &str) -> AccountUid {
        AccountUid::try_from(name.to_owned()).expect("valid")
    }

    #[tokio::test(start_paused = true)]
    async fn documents_on_their_way_take_their_memory_until_the_last_byte_is_dropped() {
        let (documents, me) = (Documents::new(), account("me"));
        let loading = documents.reserve(&me, CANVAS_BYTES_MAX).await.expect("the largest fits");
        assert!(matches!(documents.reserve(&me, CANVAS_BYTES_MAX).await, Err(Problem::Unavailable(_, Some(1)))));
        // The document takes a part of it.
        let document = loading.into_bytes(vec![b'x'; 100 * 1024 * 1024]);
        let rest = documents.reserve(&me, 15 * 1024 * 1024).await.expect("fits beside it");
        drop(rest);
        let last = document.slice(document.len() - 1..);
        drop(document);
        assert!(documents.reserve(&me, CANVAS_BYTES_MAX).await.is_err(), "a part of it is still there");
        drop(last);
        assert!(documents.reserve(&me, CANVAS_BYTES_MAX).await.is_ok());
        assert_eq!(documents.large.held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_a_small_canvas_waits_for_none_that_is_large() {
        let (documents, me) = (Documents::new(), account("me"));
        let largest = documents.reserve(&me, CANVAS_BYTES_MAX).await.expect("the largest fits");
        assert!(documents.reserve(&me, CANVAS_BYTES_MAX).await.is_err(), "large ones wait for each other");
        assert!(documents.reserve(&me, 400_000).await.is_ok());
        assert!(documents.reserve(&account("you"), 15 * 1024 * 1024).await.is_ok(), "another account");
        drop(largest);
    }

    #[tokio::test]
    async fn an_account_holds_its_part_and_leaves_the_rest_to_others() {
        let (documents, me, you) = (Documents::new(), account("me"), account("you"));
        for (share, total, part) in
            [(&documents.large, LARGE_TOTAL, LARGE_PER_ACCOUNT), (&documents.small, SMALL_TOTAL, SMALL_PER_ACCOUNT)]
        {
            let [me, you] = [&me, &you].map(account_key);
            assert!(share.try_hold(&me, part - 1).is_some());
            let all = share.try_hold(&me, part).expect("its part");
            assert!(share.try_hold(&me, 1).is_none());
            assert!(share.try_hold(&you, total - part + 1).is_none());
            assert!(share.try_hold(&you, total - part).is_some());
            drop(all);
        }
    }

    #[tokio::test]
    async fn what_is_kept_takes_of_nobody_until_it_is_sent() {
        let (documents, me, you) = (Documents::new(), account("me"), account("you"));
        let load = async |canvas: i64| {
            let permit = documents.reserve(&me, 50_000).await.expect("fits");
            let document = Bytes::from(vec![b'x'; 50_001]);
            documents.put(canvas, "r", document.clone());
            permit.into_bytes(document)
        };
        for canvas in 0..2000 {
            drop(load(canvas).await);
        }
        assert!(documents.kept.len() > 1000, "they are kept");
        assert_eq!((documents.large.held(), documents.small.held()), (0, 0));
        let _unread = load(5000).await;
        let sent = documents.kept(&you, 5000, "r").await.expect("fits").expect("is kept");
        assert_eq!(documents.small.held(), 2 * 50_001);
        drop(sent);
        assert_eq!(documents.small.held(), 50_001);
        assert!(documents.kept(&you, 5000, "other").await.expect("fits").is_none());
    }

    #[tokio::test]
    async fn a_form_is_made_once_for_all_who_wait_for_it() {
        let documents = Documents::new();
        let made = AtomicUsize::new(0);
        let read = async |revision: &str, coding| match documents.form(1, revision, coding).await.expect("in time") {
            Ok(form) => form,
            Err(turn) => {
                let number = made.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                let form = Bytes::from(format!("{revision} {coding:?} {number}"));
                // The first who has the turn goes away.
                if number > 0 {
                    turn.insert(form.clone());
                }
                form
            }
        };
        let forms = join_all((0..50).map(|_| read("r", Coding::Zstd))).await;
        assert_eq!(made.load(Ordering::Relaxed), 2);
        assert_eq!(forms.iter().filter(|form| **form == "r Zstd 1").count(), 49);
        assert_eq!(read("r", Coding::Zstd).await, "r Zstd 1", "is kept");
        assert_eq!(read("r", Coding::Gzip).await, "r Gzip 2", "each coding has its own");
        assert_eq!(read("s", Coding::Zstd).await, "s Zstd 3", "and each revision");
        assert!(documents.get(1, "r").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_form_is_told_when_to_come_back() {
        let documents = Documents::new();
        let turn = documents.form(1, "r", Coding::Zstd).await.expect("in time").expect_err("nobody made it");
        let began = tokio::time::Instant::now();
        assert!(matches!(documents.form(1, "r", Coding::Zstd).await, Err(Problem::Unavailable(_, Some(1)))));
        assert_eq!(began.elapsed(), WAIT_MAX);
        turn.insert(Bytes::from_static(b"z"));
        assert_eq!(documents.form(1, "r", Coding::Zstd).await.expect("in time").ok().expect("is kept"), "z");
    }

    #[test]
    fn a_large_document_is_kept_and_all_together_take_no_more_than_the_cache_has() {
        let documents = Documents::new();
        let document = |bytes: u64| Bytes::from(vec![b'x'; bytes as usize]);
        documents.put(1, "r", document(58 * MIB));
        assert!(documents.get(1, "r").is_some(), "whatever the number of processors");
        for canvas in 2..20 {
            documents.put(canvas, "r", document(10 * MIB));
        }
        assert!(documents.kept.weight() <= CAPACITY_BYTES);
    }

    #[test]
    fn a_graph_that_was_served_and_reviewed_takes_no_more_than_is_counted() {
        let result = |number: usize| Node {
            id: NodeId::parse(&format!("01980000-0000-7000-8000-{number:012}")).expect("an id"),
            short: None,
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
        let document = documents.reserve(&account("me"), 0).await.expect("fits").into_bytes(vec![b'x'; 5000]);
        assert_eq!(document.len(), 5000);
    }
}
