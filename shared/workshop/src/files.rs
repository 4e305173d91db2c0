//! Files on their way out of and into the object store.

use std::ops::Range;

use blob::{BlobKey, Object};
use bytes::Bytes;
use db::blobs::Staged;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{Error, Worker};

/// How often a result is put anew because the sweeper took its blob before it was referred to. Once is hardly possible:
/// a blob is left alone for 24 h.
pub const PUTS_MAX: usize = 3;

/// The largest picture that is read: larger than any upload (decisions 1.5) and than an Action's output of the largest size
/// that does not compress at all.
const PICTURE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A file with its content address, made where hashing disturbs nobody.
#[derive(Clone, Debug)]
pub struct Content {
    /// The file.
    pub bytes: Bytes,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

impl Content {
    /// Hashes `bytes`; a thread is busy with that.
    pub fn of(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { sha256: Sha256::digest(&bytes).into(), bytes }
    }
}

impl Worker {
    /// A whole picture, or nothing when it is gone: when its blob is. An object that is missing although its blob is stored is
    /// the store's failure (a mount that is away, a directory that was restored late), not the picture's.
    ///
    /// # Errors
    /// When store or database fail.
    pub async fn get(&self, key: Uuid) -> Result<Option<Bytes>, Error> {
        let read = self.blobs.get(BlobKey(key), PICTURE_BYTES_MAX).await;
        self.unless_gone(key, read).await
    }

    /// A part of a file, to be read piece by piece; nothing when it is gone, as [`get`](Self::get) has it.
    /// `range` is cut at the file's end, beyond which it must not begin.
    ///
    /// # Errors
    /// When store or database fail.
    pub async fn part(&self, key: Uuid, range: Range<u64>) -> Result<Option<Object>, Error> {
        let opened = self.blobs.stream(BlobKey(key), Some(range)).await;
        self.unless_gone(key, opened).await
    }

    /// What was read of an object. One that is missing is gone when its blob is.
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

    /// Begins a file whose bytes come little by little: the key of its blob, to adopt once the writer has finished. The row is
    /// there before the object; a writer that is dropped leaves nothing that anybody refers to.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin_file(&self) -> Result<(Uuid, blob::Writer), Error> {
        let key = db::blobs::stage_unknown(&mut *self.connection().await?).await?;
        Ok((key, self.blobs.writer(BlobKey(key))))
    }

    /// Makes sure that the store holds `content`; the key of the blob to adopt. The row is there before the object
    /// (decisions 6.6), and what is stored already is not stored again.
    ///
    /// # Errors
    /// When store or database fail.
    pub async fn put(&self, content: &Content) -> Result<Uuid, Error> {
        let staged = db::blobs::stage(&mut *self.connection().await?, &content.sha256).await?;
        self.put_staged(staged, content).await
    }

    /// The same for content that was staged.
    ///
    /// # Errors
    /// When the store fails.
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
