//! Served canvas documents, kept by revision.
//!
//! A revision is never used twice (decisions 3.7), so a document found under the revision that Postgres just named is the
//! document: nothing has to be invalidated, and a read of an unchanged canvas costs one statement.

use std::sync::Arc;

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Bytes of documents that one process keeps.
const CAPACITY_BYTES: u64 = 64 * 1024 * 1024;

/// A cache of documents of bounded size.
pub struct Documents(Cache<(i64, Arc<str>), Bytes, ByLength>);

#[derive(Clone)]
struct ByLength;

impl Weighter<(i64, Arc<str>), Bytes> for ByLength {
    fn weight(&self, (_, revision): &(i64, Arc<str>), document: &Bytes) -> u64 {
        (document.len() + revision.len() + 64) as u64
    }
}

impl Documents {
    /// An empty cache.
    pub fn new() -> Self {
        Self(Cache::with_weighter(4096, CAPACITY_BYTES, ByLength))
    }

    /// The document of a canvas at a revision.
    pub fn get(&self, canvas_key: i64, revision: &str) -> Option<Bytes> {
        self.0.get(&(canvas_key, Arc::from(revision)))
    }

    /// Keeps a document.
    pub fn put(&self, canvas_key: i64, revision: &str, document: Bytes) {
        self.0.insert((canvas_key, Arc::from(revision)), document);
    }
}

impl Default for Documents {
    fn default() -> Self {
        Self::new()
    }
}
