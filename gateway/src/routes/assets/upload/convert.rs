//! Uploads in a format that is not kept: an image-worker converts them while the request waits
//! (docs/reference/assets.md#converted-formats).

use std::time::Duration;

use app::upload::{KeptOriginal, StoredFile};
use blob::BlobKey;
use db::blobs::PutFile;
use db::renditions::CONVERTED;
use domain::asset::{OriginalReason, UploadMetadata};
use futures_util::StreamExt;
use raster::avif::Kind;

use super::as_stored;
use super::receive::{FileType, Found, Head, Stored};
use crate::extract::caller::{Caller, UploadAsset};
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::rendition::{Rendition, rendition};
use crate::state::App;

/// Maximum wait for a conversion. Proxies commonly end a request after a minute.
const WAIT: Duration = Duration::from_secs(55);
/// Bytes of a converted file that hold its header and its XMP packet.
const HEAD_BYTES: u64 = 1024 * 1024;

/// The image that a stored file of another format becomes. The same upload, sent again after a 503, finds what was made in the meantime.
pub async fn convert(
    app: &App,
    caller: &Caller<UploadAsset>,
    (upload, kind): (PutFile, Kind),
    rule: UploadMetadata,
    trace: Trace,
) -> Result<Stored> {
    let mut transaction = app.transaction().await?;
    let adopted = db::blobs::adopt(&mut transaction, upload.key, &upload.sha256, upload.bytes).await?;
    db::pool::commit(transaction).await?;
    let source = adopted.ok_or_else(|| Problem::internal("an upload was swept before it was converted"))?;
    let (key, sha256) = match rendition(app, (source, CONVERTED), &caller.account, trace, WAIT, &caller.place).await? {
        Rendition::Ready { key, sha256, .. } => (key, sha256),
        Rendition::Undecodable => return Err(Problem::unprocessable("body", "the image is damaged or cannot be read")),
        Rendition::GivenUp => return Err(Problem::unprocessable("body", "the image could not be converted")),
    };
    let mut object = app.blobs.stream(BlobKey(key), Some(0..HEAD_BYTES)).await?;
    let mut head = Head::new(None);
    while let Some(piece) = object.stream.next().await.transpose()? {
        head.push(&piece)?;
    }
    let found = head.finish()?.image()?;
    let sha256: [u8; 32] = sha256.try_into().map_err(|_| Problem::internal("a conversion has no hash"))?;
    let media_type = FileType::Converted(kind).media_type();
    let original =
        KeptOriginal { file: PutFile { key: source, ..upload }, media_type, reason: OriginalReason::Converted };
    let file = PutFile { key, sha256, bytes: as_stored(object.size) };
    let stored = Stored::image(file, &Found { is_animated: false, ..found }, upload);
    let original = (rule != UploadMetadata::Strip).then_some(original);
    Ok(Stored { file: StoredFile { original, ..stored.file }, ..stored })
}
