//! Writing objects.

use bytes::{Bytes, BytesMut};
use object_store::{MultipartUpload, ObjectStoreExt};
use sha2::{Digest, Sha256};

use crate::{BlobKey, Error, Result, Store};

/// The size of the parts of a large object, and the maximum that a writer buffers in addition to
/// one chunk. It is above the 5 MiB that S3 requires of every part but the last (Amazon S3 user
/// guide, Multipart upload limits), and small enough for many uploads at once.
const PART: usize = 8 * 1024 * 1024;

/// The result of a [`Writer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The SHA-256 hash of the bytes.
    pub sha256: [u8; 32],
    /// The number of bytes.
    pub bytes: u64,
}

impl Store {
    /// Writes a complete object.
    pub async fn put(&self, key: BlobKey, bytes: Bytes) -> Result<()> {
        let result = self.objects.put(&key.path(), bytes.into()).await;
        result.map(drop).map_err(|source| Error::Write { key: key.0, source })
    }

    /// Begins an object whose bytes arrive in chunks. It exists once [`finish`](Writer::finish) has
    /// returned, and never if the writer is dropped before.
    pub fn writer(&self, key: BlobKey) -> Writer {
        Writer { store: self.clone(), key, buffer: BytesMut::new(), upload: None, hash: Sha256::new(), bytes: 0 }
    }
}

/// An object that is being written. Buffers at most one part.
pub struct Writer {
    store: Store,
    key: BlobKey,
    buffer: BytesMut,
    /// Created with the first complete part.
    upload: Option<Box<dyn MultipartUpload>>,
    hash: Sha256,
    bytes: u64,
}

impl Writer {
    /// Adds `chunk`. Returns when there is room for the next one. After an error the writer must be
    /// dropped.
    pub async fn write(&mut self, chunk: &[u8]) -> Result<()> {
        self.hash.update(chunk);
        self.bytes += chunk.len() as u64;
        self.buffer.extend_from_slice(chunk);
        while self.buffer.len() >= PART {
            let part = self.buffer.split_to(PART).freeze();
            self.send(part).await?;
        }
        Ok(())
    }

    /// Number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Completes the object.
    pub async fn finish(mut self) -> Result<Written> {
        let rest = self.buffer.split().freeze();
        if self.upload.is_none() {
            self.store.put(self.key, rest).await?;
        } else {
            if !rest.is_empty() {
                self.send(rest).await?;
            }
            if let Some(upload) = &mut self.upload {
                upload.complete().await.map_err(|source| Error::Write { key: self.key.0, source })?;
            }
            // The upload is complete: there is nothing to abort.
            self.upload = None;
        }
        Ok(Written { sha256: self.hash.finalize_reset().into(), bytes: self.bytes })
    }

    async fn send(&mut self, part: Bytes) -> Result<()> {
        let failed = |source| Error::Write { key: self.key.0, source };
        let upload = match &mut self.upload {
            Some(upload) => upload,
            none => none.insert(self.store.objects.put_multipart(&self.key.path()).await.map_err(failed)?),
        };
        upload.put_part(part.into()).await.map_err(failed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // If a client disconnects, its handler is dropped, and with it the writer. The uploaded
        // parts must not stay in the bucket forever.
        if let (Some(mut upload), Ok(runtime)) = (self.upload.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                // Best effort: remaining parts are invisible, and a lifecycle rule of the bucket
                // removes them.
                let _ = upload.abort().await;
            });
        }
    }
}
