//! Stores a file once more, without its private metadata (docs/reference/assets.md#private-metadata).

use blob::{BlobKey, Written};
use db::blobs::PutFile;
use futures_util::StreamExt;
use raster::metadata::Cleaned;

/// Stores the file `from` as `to`, without its private metadata. `see` gets what is written.
pub async fn rewrite<E: From<blob::Error>>(
    blobs: &blob::Store,
    from: BlobKey,
    to: BlobKey,
    cleaned: Cleaned,
    mut see: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<PutFile, E> {
    let mut pieces = blobs.stream(from, None).await?.stream;
    let (mut writer, mut rewriter, mut output) = (blobs.writer(to), cleaned.rewriter(), Vec::new());
    while let Some(piece) = pieces.next().await.transpose()? {
        rewriter.push(&piece, &mut output);
        see(&output)?;
        writer.write(&output).await?;
        output.clear();
    }
    rewriter.finish(&mut output);
    see(&output)?;
    writer.write(&output).await?;
    Ok(put_file(to, &writer.finish().await?))
}

/// A file that was put under `key`.
pub fn put_file(key: BlobKey, written: &Written) -> PutFile {
    PutFile { key: key.0, sha256: written.sha256, bytes: i64::try_from(written.bytes).unwrap_or(i64::MAX) }
}
