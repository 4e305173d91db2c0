//! Pictures on their way out of the object store, and videos on their way into it.

use blob::BlobKey;
use bytes::Bytes;
use db::blobs::Staged;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Error, Worker};

/// A file with its content address, made where hashing disturbs nobody.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// The file.
    pub bytes: Bytes,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

impl Content {
    /// Hashes `bytes`; a thread is busy with that.
    pub(super) fn of(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { sha256: Sha256::digest(&bytes).into(), bytes }
    }
}

/// The largest picture that is read: larger than any that is stored.
const PICTURE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A whole picture, or nothing when its blob is gone. An object that is missing although its blob is stored is the store's
/// failure, not the picture's.
pub(super) async fn get(worker: &Worker, key: Uuid) -> Result<Option<Bytes>, Error> {
    match worker.blobs.get(BlobKey(key), PICTURE_BYTES_MAX).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error @ blob::Error::Missing(_)) => {
            if db::blobs::is_stored(&mut *worker.connection().await?, key).await? {
                Err(error.into())
            } else {
                Ok(None)
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes sure that the store holds `content`; the key of the blob to adopt. The row is there before the object
/// (decisions 6.6), and what is stored already is not stored again.
pub(super) async fn put(worker: &Worker, content: &Content) -> Result<Uuid, Error> {
    let staged = db::blobs::stage(&mut *worker.connection().await?, &content.sha256).await?;
    match staged {
        Staged::Existing(key) => Ok(key),
        Staged::New(key) => {
            worker.blobs.put(BlobKey(key), content.bytes.clone()).await?;
            Ok(key)
        }
    }
}
