//! Reading objects.

use std::io::SeekFrom;
use std::ops::Range;

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use object_store::{GetOptions, GetResultPayload, ObjectStore, ObjectStoreExt};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use crate::{BlobKey, Error, Result, Store};

/// The number of bytes read from a file at once. Each read is executed on the blocking pool, and
/// the store's default of 8 KiB causes many.
const PIECE: usize = 256 * 1024;

/// An object, or a range of it, being read.
pub struct Object {
    /// The size of the whole object in bytes.
    pub size: u64,
    /// The range that the stream returns.
    pub range: Range<u64>,
    /// The bytes, in chunks.
    pub stream: BoxStream<'static, Result<Bytes>>,
}

impl Store {
    /// Reads a whole object of at most `limit` bytes.
    pub async fn get(&self, key: BlobKey, limit: u64) -> Result<Bytes> {
        let found = match self.objects.get(&key.path()).await {
            Ok(found) => found,
            Err(source) => return Err(self.unreadable(key, source).await),
        };
        if found.meta.size > limit {
            return Err(Error::TooLarge { key: key.0, bytes: found.meta.size, limit });
        }
        found.bytes().await.map_err(|source| Error::Read { key: key.0, source })
    }

    /// Streams an object or, with `range`, a part of it. A range is truncated at the end of the
    /// object. An empty range, or one that begins beyond the end, is an error.
    pub async fn stream(&self, key: BlobKey, range: Option<Range<u64>>) -> Result<Object> {
        let options = GetOptions { range: range.map(Into::into), ..GetOptions::default() };
        let found = match self.objects.get_opts(&key.path(), options).await {
            Ok(found) => found,
            Err(source) => return Err(self.unreadable(key, source).await),
        };
        let (size, range) = (found.meta.size, found.range.clone());
        let stream: BoxStream<'static, Result<Bytes>> = match found.payload {
            GetResultPayload::File(file, _) => {
                let broken = move |source| Error::Stream { key: key.0, source };
                let mut file = tokio::fs::File::from_std(file);
                file.seek(SeekFrom::Start(range.start)).await.map_err(broken)?;
                let part = file.take(range.end - range.start);
                Box::pin(ReaderStream::with_capacity(part, PIECE).map_err(broken))
            }
            GetResultPayload::Stream(stream) => {
                Box::pin(stream.map_err(move |source| Error::Read { key: key.0, source }))
            }
        };
        Ok(Object { size, range, stream })
    }
}
