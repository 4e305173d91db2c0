//! Receives the bytes of an upload into the object store, and parses the image's header from them as they pass.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use blob::BlobKey;
use bytes::Bytes;
use db::blobs::PutFile;
use domain::asset::{MetadataClass, UploadMetadata};
use domain::limits::UPLOAD_MAX;
use domain::origin::Origin;
use futures_util::StreamExt;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use raster::metadata::{Class, Cleaned, Cleaner};
use raster::xmp::{Properties, XmpReader};
use raster::{Format, Header, HeaderError, HeaderReader};

use crate::admission::{account_key, admitted};
use crate::clean::{put_file, rewrite};
use crate::extract::caller::{Caller, UploadAsset};
use crate::extract::header::single;
use crate::problem::{Problem, Result};
use crate::server::min_rate_body::MinRateBody;
use crate::state::App;

/// Violation of an empty body.
pub const EMPTY: &str = "must not be empty";
/// Time that any upload may take, however small. A slow sender occupies one of few slots.
const UPLOAD_TIME_LEAST: Duration = Duration::from_secs(20);
/// Minimum average rate of a large upload beyond that time.
const UPLOAD_BYTES_PER_SECOND_MIN: u64 = 256 * 1024;
/// Minimum rate at any time, with the same allowance: a link may be slow for a while, but a sender that only trickles is cut off
/// early.
const UPLOAD_PACE_MIN: u32 = 64 * 1024;

/// The declared format; `None` for `application/octet-stream`.
pub fn declared_format(headers: &HeaderMap) -> Result<Option<Format>> {
    let text = single(headers, &CONTENT_TYPE)?.and_then(|value| value.to_str().ok()).unwrap_or_default();
    if text.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/octet-stream") {
        return Ok(None);
    }
    let foreign = "an upload is application/octet-stream, image/png, image/jpeg, image/webp or image/gif";
    Format::of_media_type(text).map(Some).ok_or_else(|| Problem::UnsupportedMediaType(foreign.into()))
}

/// A stored image that nothing refers to yet.
pub struct Stored {
    /// The file to serve.
    pub file: PutFile,
    /// The header of that file.
    pub header: Header,
    /// The origin that the metadata state.
    pub origin: Option<Origin>,
    /// The data of the upload that the file lacks.
    pub metadata_removed: Vec<MetadataClass>,
    /// The upload, if it is another file and is to be kept.
    pub original: Option<PutFile>,
    /// SHA-256 of the upload.
    pub sha256: [u8; 32],
}

/// Receives a body, of a declared format, with a rule for its private metadata. Does so in one of the few upload slots, at a minimum rate
/// and within a time that depends on its size; 503 when no slot becomes free in time.
pub async fn store(
    app: &App,
    caller: &Caller<UploadAsset>,
    length: Option<u64>,
    body: Body,
    how: (Option<Format>, UploadMetadata),
) -> Result<Stored> {
    let _place = admitted(&app.uploads, &account_key(&caller.account), 1).await?;
    let body = Body::new(MinRateBody::at(UPLOAD_PACE_MIN, UPLOAD_TIME_LEAST, body));
    let seconds = length.unwrap_or(UPLOAD_MAX) / UPLOAD_BYTES_PER_SECOND_MIN;
    match tokio::time::timeout(UPLOAD_TIME_LEAST + Duration::from_secs(seconds), stream(app, body, how)).await {
        Ok(stored) => stored,
        Err(_) => Err(Problem::invalid("body", "took too long to arrive")),
    }
}

async fn stream(app: &App, body: Body, (declared, rule): (Option<Format>, UploadMetadata)) -> Result<Stored> {
    let mut pieces = body.into_data_stream();
    let mut head = Head::new(declared);
    let mut cleaner = Cleaner::new();
    // Foreign bytes are rejected before a row or an object is made for them.
    let mut held = Vec::new();
    while !head.is_recognized() {
        match next(&mut pieces).await? {
            Some(piece) => {
                head.push(&piece)?;
                held.push(piece);
            }
            None => break,
        }
    }
    if held.iter().all(Bytes::is_empty) {
        return Err(Problem::invalid("body", EMPTY));
    }
    if !head.is_recognized() {
        // The file ended within its magic bytes: truncated (422) or of another type (415).
        return Err(head.finish().err().unwrap_or_else(foreign));
    }
    let key = BlobKey(db::blobs::stage_unknown(&mut *app.connection().await?).await?);
    let mut writer = app.blobs.writer(key);
    for piece in held {
        cleaner.push(&piece);
        writer.write(&piece).await?;
    }
    while let Some(piece) = next(&mut pieces).await? {
        if writer.bytes() + piece.len() as u64 > UPLOAD_MAX {
            return Err(Problem::PayloadTooLarge(UPLOAD_MAX));
        }
        head.push(&piece)?;
        cleaner.push(&piece);
        writer.write(&piece).await?;
    }
    let (header, origin) = head.finish()?;
    let upload = put_file(key, &writer.finish().await?);
    let cleaned = match rule {
        UploadMetadata::Keep => None,
        UploadMetadata::Auto | UploadMetadata::Strip => {
            cleaner.finish().map_err(|error| Problem::unprocessable("body", error.to_string()))?
        }
    };
    let Some(cleaned) = cleaned else {
        let sha256 = upload.sha256;
        return Ok(Stored { file: upload, header, origin, metadata_removed: Vec::new(), original: None, sha256 });
    };
    let metadata_removed = MetadataClass::named(cleaned.removed().map(Class::as_str));
    let (file, header) = store_cleaned(app, key, cleaned).await?;
    let original = (rule == UploadMetadata::Auto).then_some(upload);
    Ok(Stored { file, header, origin, metadata_removed, original, sha256: upload.sha256 })
}

/// Stores the upload under `key` once more, without its private metadata. Its header is parsed again, because its orientation may
/// stand in another place now.
async fn store_cleaned(app: &App, key: BlobKey, cleaned: Cleaned) -> Result<(PutFile, Header)> {
    let to = BlobKey(db::blobs::stage_unknown(&mut *app.connection().await?).await?);
    let mut head = Head::new(None);
    let file = rewrite(&app.blobs, key, to, cleaned, |piece| head.push(piece)).await?;
    Ok((file, head.finish()?.0))
}

async fn next(pieces: &mut BodyDataStream) -> Result<Option<Bytes>> {
    pieces.next().await.transpose().map_err(|_| Problem::invalid("body", "ended prematurely, or arrived too slowly"))
}

fn foreign() -> Problem {
    Problem::UnsupportedMediaType("the body is not a PNG, JPEG, WebP or GIF".into())
}

/// Parses the image's header from the passing bytes.
struct Head {
    declared: Option<Format>,
    reader: HeaderReader,
    xmp: XmpReader,
    error: Option<HeaderError>,
}

impl Head {
    fn new(declared: Option<Format>) -> Self {
        Self { declared, reader: HeaderReader::new(), xmp: XmpReader::default(), error: None }
    }

    fn is_recognized(&self) -> bool {
        self.reader.format().is_some()
    }

    /// Takes the next bytes. A type that differs from the declared one is rejected at once; other errors of the header are
    /// reported at the end, after the check of the body's size.
    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.xmp.push(bytes);
        if self.error.is_none() {
            match self.reader.push(bytes) {
                Ok(_) => {}
                Err(HeaderError::UnknownFormat) => return Err(foreign()),
                Err(error) => self.error = Some(error),
            }
        }
        match (self.declared, self.reader.format()) {
            (Some(declared), Some(found)) if declared != found => Err(Problem::UnsupportedMediaType(format!(
                "the body is {}, not {} as declared",
                found.media_type(),
                declared.media_type()
            ))),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<(Header, Option<Origin>)> {
        let properties = self.xmp.finish().packet.map(|packet| Properties::parse(&packet)).unwrap_or_default();
        let origin = Origin::from_file(&properties.digital_source_types);
        let read = match self.error {
            Some(error) => Err(error),
            None => self.reader.finish(),
        };
        let header = read.map_err(|error| match error {
            HeaderError::UnknownFormat => foreign(),
            error => Problem::unprocessable("body", error.to_string()),
        })?;
        Ok((header, origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_of_removed_metadata_is_one_of_the_contract() {
        assert_eq!(MetadataClass::named(Class::ALL.into_iter().map(Class::as_str)), MetadataClass::ALL);
    }
}
