//! Canvas documents: the memory that they take, and those that were served, kept by revision.
//!
//! **Guarantee.** Graphs that are loaded for a document, and documents that are kept or on their way, take at most 352 MiB in one
//! process, however many read and however slowly; drawings that are kept, at most 64 MiB. Who finds no room waits for it within
//! bounds and is then told to come back (503). Readers of large canvases hold up none of small ones.
//!
//! **Mechanism.** Whoever loads a graph takes [`Room`] for it first, for a small one from room of its own; of either kind there is
//! more than is ever kept. What is left of the room when the document is made stays with its bytes, and is given back when the last
//! of them is dropped. A revision is never used twice (decisions 3.7), so a document found under the revision that Postgres just
//! named is the document: nothing has to be invalidated, and a read of an unchanged canvas costs one statement and no room.

use std::sync::Arc;

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Problem, Result};
use crate::turnstile::admitted;

/// Bytes of documents that one process keeps.
const CAPACITY_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of large graphs and their documents that one process has, with those.
const LARGE_ROOM_BYTES: usize = 4 * CAPACITY_BYTES;
/// The same of small ones.
const SMALL_ROOM_BYTES: usize = CAPACITY_BYTES + CAPACITY_BYTES / 2;
/// The most that the load of a small graph takes: one of a thousand nodes of some text.
const SMALL_LOAD_MAX: usize = 1024 * 1024;
/// The most that one load takes, so that it fits beside all that is kept, rounded up as that may be.
const LOAD_MAX: usize = LARGE_ROOM_BYTES - CAPACITY_BYTES - 16 * 1024 * 1024;
/// How much a graph takes while its document is made, against its serialized size: rows or the document, and nodes.
const LOAD_FACTOR: usize = 3;
/// Bytes of one share of the room.
const UNIT: usize = 1024;

/// The documents of a process.
pub struct Documents {
    kept: Cache<(i64, Arc<str>), Bytes, ByLength>,
    large: Arc<Semaphore>,
    small: Arc<Semaphore>,
}

#[derive(Clone)]
struct ByLength;

impl Weighter<(i64, Arc<str>), Bytes> for ByLength {
    fn weight(&self, (_, revision): &(i64, Arc<str>), document: &Bytes) -> u64 {
        (document.len() + revision.len() + 64) as u64
    }
}

/// Room for a graph and the document that is made of it.
pub struct Room(OwnedSemaphorePermit);

/// A document and the room that it takes.
struct Housed {
    document: Box<[u8]>,
    _room: Room,
}

impl AsRef<[u8]> for Housed {
    fn as_ref(&self) -> &[u8] {
        &self.document
    }
}

impl Room {
    /// The document, which keeps as much of the room as it takes.
    pub fn house(self, document: Vec<u8>) -> Bytes {
        let Room(mut room) = self;
        let surplus = room.num_permits().saturating_sub(units(document.len()) as usize);
        drop(room.split(surplus));
        Bytes::from_owner(Housed { document: document.into_boxed_slice(), _room: Room(room) })
    }

    /// The JSON document of `body`.
    pub fn house_json(self, body: &impl Serialize) -> Result<Bytes> {
        Ok(self.house(serde_json::to_vec(body).map_err(Problem::internal)?))
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1)
}

impl Documents {
    /// Nothing kept, all room free.
    pub fn new() -> Self {
        Self {
            kept: Cache::with_weighter(4096, CAPACITY_BYTES as u64, ByLength),
            large: Arc::new(Semaphore::new(LARGE_ROOM_BYTES / UNIT)),
            small: Arc::new(Semaphore::new(SMALL_ROOM_BYTES / UNIT)),
        }
    }

    /// Room to load a graph of so many bytes (decisions 3.7) and to make its document; 503 when there is none in time.
    pub async fn room(&self, graph_bytes: i64) -> Result<Room> {
        let bytes = usize::try_from(graph_bytes).unwrap_or_default().saturating_mul(LOAD_FACTOR).min(LOAD_MAX);
        let room = if bytes <= SMALL_LOAD_MAX { &self.small } else { &self.large };
        let room = room.clone().acquire_many_owned(units(bytes));
        Ok(Room(admitted(room, "too many canvases are loaded or sent at once").await?))
    }

    /// The document of a canvas at a revision.
    pub fn get(&self, canvas_key: i64, revision: &str) -> Option<Bytes> {
        self.kept.get(&(canvas_key, Arc::from(revision)))
    }

    /// Keeps a document.
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
    use domain::limits::CANVAS_BYTES_MAX;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn documents_on_their_way_take_their_room_until_the_last_byte_is_dropped() {
        let documents = Documents::new();
        let loading = documents.room(CANVAS_BYTES_MAX).await.expect("room for the largest");
        assert!(matches!(documents.room(CANVAS_BYTES_MAX).await, Err(Problem::Unavailable(_, Some(1)))));
        // Of which the document takes a part.
        let document = loading.house(vec![b'x'; 100 * 1024 * 1024]);
        let rest = documents.room(48 * 1024 * 1024).await.expect("room beside it");
        drop(rest);
        let last = document.slice(document.len() - 1..);
        drop(document);
        assert!(documents.room(CANVAS_BYTES_MAX).await.is_err(), "a part of it is still there");
        drop(last);
        assert!(documents.room(CANVAS_BYTES_MAX).await.is_ok());
        assert_eq!(documents.large.available_permits(), LARGE_ROOM_BYTES / UNIT);
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_a_small_canvas_waits_for_none_that_is_large() {
        let documents = Documents::new();
        let largest = documents.room(CANVAS_BYTES_MAX).await.expect("room for the largest");
        assert!(documents.room(CANVAS_BYTES_MAX).await.is_err(), "large ones wait for each other");
        let small = (SMALL_LOAD_MAX / LOAD_FACTOR) as i64;
        assert!(documents.room(small).await.is_ok());
        drop(largest);
    }

    #[tokio::test]
    async fn the_largest_canvas_is_loaded_beside_all_that_is_kept() {
        let documents = Documents::new();
        for canvas in 0..2000 {
            let room = documents.room(50_000).await.expect("room");
            documents.put(canvas, "r", room.house(vec![b'x'; 50_001]));
        }
        assert!(documents.get(1999, "r").is_some() || documents.kept.len() > 1000, "they are kept");
        assert!(documents.large.try_acquire_many(units(LOAD_MAX)).is_ok());
        assert!(documents.small.try_acquire_many(units(SMALL_LOAD_MAX)).is_ok());
    }

    #[tokio::test]
    async fn a_document_larger_than_its_canvas_said_is_sent_all_the_same() {
        let documents = Documents::new();
        let document = documents.room(0).await.expect("room").house(vec![b'x'; 5000]);
        assert_eq!(document.len(), 5000);
    }
}
