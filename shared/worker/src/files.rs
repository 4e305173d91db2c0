//! Files read from and written to the object store.

use std::ops::Range;

use blob::{BlobKey, Object};
use bytes::Bytes;
use db::blobs::Staged;
use domain::asset::{MetadataClass, UploadMetadata};
use raster::metadata::{self, Class, Scattered};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{Error, Worker};

/// The number of times that a result is stored again because its blob was deleted before it was referenced. Even
/// one repetition is unlikely: a blob is kept for 24 h.
pub const PUTS_MAX: usize = 3;

/// Maximum size of an image that is read: larger than any upload and than the largest output of an Action without any
/// compression.
const IMAGE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A file with its hash, computed on a thread for blocking work.
#[derive(Clone, Debug)]
pub struct Content {
    /// The bytes of the file.
    pub bytes: Bytes,
    /// The SHA-256 hash of the file.
    pub sha256: [u8; 32],
}

impl Content {
    /// Hashes `bytes`. Blocks the thread.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { sha256: Sha256::digest(&bytes).into(), bytes }
    }
}

/// A foreign image as it is stored, and what was removed from it.
#[derive(Clone, Debug)]
pub struct CleanContent {
    /// The file.
    pub content: Content,
    /// The classes of the metadata that the file lacks.
    pub metadata_removed: Vec<MetadataClass>,
}

impl From<Content> for CleanContent {
    fn from(content: Content) -> Self {
        Self { content, metadata_removed: Vec::new() }
    }
}

impl CleanContent {
    /// Removes private metadata from an image, unless the rule is to keep it, and hashes the result. Blocks the thread.
    ///
    /// # Errors
    ///
    /// If its metadata is scattered over too many places.
    pub fn new(bytes: Bytes, rule: UploadMetadata) -> Result<Self, Scattered> {
        let cleaned = match rule {
            UploadMetadata::Keep => None,
            UploadMetadata::Auto | UploadMetadata::Strip => metadata::examine(&bytes)?,
        };
        Ok(match cleaned {
            None => Content::new(bytes).into(),
            Some(cleaned) => {
                let metadata_removed = MetadataClass::named(cleaned.removed().map(Class::as_str));
                Self { content: Content::new(metadata::rewrite(&bytes, cleaned)), metadata_removed }
            }
        })
    }
}

impl Worker {
    /// Reads a whole image; `None` if its blob was removed. If the object is missing although its
    /// blob is recorded, this is an error of the store (an unmounted directory, an incomplete
    /// restore) and not of the image.
    ///
    /// # Errors
    ///
    /// If the store or the database fails.
    pub async fn get(&self, key: Uuid) -> Result<Option<Bytes>, Error> {
        let read = self.blobs.get(BlobKey(key), IMAGE_BYTES_MAX).await;
        self.unless_gone(key, read).await
    }

    /// Streams a part of a file; `None` if its blob was removed, as in [`get`](Self::get). `range`
    /// is truncated at the end of the file, beyond which it must not begin.
    ///
    /// # Errors
    ///
    /// If the store or the database fails.
    pub async fn part(&self, key: Uuid, range: Range<u64>) -> Result<Option<Object>, Error> {
        let opened = self.blobs.stream(BlobKey(key), Some(range)).await;
        self.unless_gone(key, opened).await
    }

    /// Passes on what was read. A missing object becomes `None` if its blob was removed.
    async fn unless_gone<T>(&self, key: Uuid, read: blob::Result<T>) -> Result<Option<T>, Error> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error @ blob::Error::Missing(_)) => {
                if db::blobs::is_stored(&mut *self.connection().await?, key).await? {
                    Err(error.into())
                } else {
                    Ok(None)
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a file whose bytes arrive in chunks. Returns the key of its blob, which must be
    /// adopted after the writer has finished. The row is inserted before the object is written.
    /// After a dropped writer, nothing refers to the stored part.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub async fn begin_file(&self) -> Result<(Uuid, blob::Writer), Error> {
        let key = db::blobs::stage_unknown(&mut *self.connection().await?).await?;
        Ok((key, self.blobs.writer(BlobKey(key))))
    }

    /// Ensures that the store contains `content`, and returns the key of the blob to adopt. The row
    /// is inserted before the object is written. Content that is already stored is not stored
    /// again.
    ///
    /// # Errors
    ///
    /// If the store or the database fails.
    pub async fn put(&self, content: &Content) -> Result<Uuid, Error> {
        let staged = db::blobs::stage(&mut *self.connection().await?, &content.sha256).await?;
        self.put_staged(staged, content).await
    }

    /// Like [`put`](Self::put), for content whose row was already inserted.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn put_staged(&self, staged: Staged, content: &Content) -> Result<Uuid, Error> {
        match staged {
            Staged::Existing(key) => Ok(key),
            Staged::New(key) => {
                self.blobs.put(BlobKey(key), content.bytes.clone()).await?;
                Ok(key)
            }
        }
    }
}
