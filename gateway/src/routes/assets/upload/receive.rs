//! Receives the bytes of an upload into the object store, and parses the header of an image from them as they pass.

use std::time::Duration;

use app::upload::{KeptOriginal, StoredFile};
use axum::body::{Body, BodyDataStream};
use blob::BlobKey;
use bytes::Bytes;
use db::blobs::PutFile;
use domain::asset::{MetadataClass, OriginalReason, UploadMetadata};
use domain::limits::{FILM_BYTES_MAX, UPLOAD_MAX};
use domain::origin::Origin;
use futures_util::StreamExt;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use raster::animation::FrameCounter;
use raster::avif::{self, Kind, MAX_META_BYTES};
use raster::metadata::{Class, Cleaned, Cleaner};
use raster::xmp::{Properties, XmpReader};
use raster::{Format, Header, HeaderError, HeaderReader};
use sha2::{Digest, Sha256};

use super::film;
use crate::admission::{account_key, admitted};
use crate::clean::{put_file, rewrite};
use crate::extract::caller::{Caller, UploadAsset};
use crate::extract::header::single;
use crate::problem::{Problem, Result, heic_details};
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

/// The declared type of an upload.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// An image, of this type unless it is `application/octet-stream`.
    Image(Option<FileType>),
    /// A video.
    Film,
}

impl Declared {
    /// Bytes of such an upload at most.
    pub fn bytes_max(self) -> u64 {
        match self {
            Self::Image(_) => UPLOAD_MAX,
            Self::Film => FILM_BYTES_MAX,
        }
    }
}

/// The type of an image that is accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FileType {
    /// It is kept as it is.
    Kept(Format),
    /// It is converted.
    Converted(Kind),
}

impl FileType {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Kept(format) => format.media_type(),
            Self::Converted(Kind::Avif) => "image/avif",
            Self::Converted(Kind::Heif) => "image/heic",
        }
    }

    /// Refuses HEIC unless the operator has set a program that decodes it.
    fn require_accepted(self, app: &App) -> Result<()> {
        match self {
            Self::Converted(Kind::Heif) if app.config.heif_command.is_none() => {
                Err(Problem::UnsupportedFormat("HEIC is not accepted: convert it to JPEG first".into(), heic_details()))
            }
            _ => Ok(()),
        }
    }
}

/// The declared type.
pub fn declared_type(app: &App, headers: &HeaderMap) -> Result<Declared> {
    let text = single(headers, &CONTENT_TYPE)?.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/octet-stream") {
        return Ok(Declared::Image(None));
    }
    if essence.eq_ignore_ascii_case(film::MEDIA_TYPE) {
        return Ok(Declared::Film);
    }
    let foreign =
        "an upload is application/octet-stream, image/png, image/jpeg, image/webp, image/gif, image/avif or video/mp4";
    let kept = Format::of_media_type(text).map(FileType::Kept);
    let declared = kept.or_else(|| Kind::of_media_type(text).map(FileType::Converted));
    let declared = declared.ok_or_else(|| Problem::UnsupportedMediaType(foreign.into()))?;
    declared.require_accepted(app)?;
    Ok(Declared::Image(Some(declared)))
}

/// What is stored of an upload.
pub enum Received {
    /// A file that can be served.
    Kept(Box<Stored>),
    /// A file of a kind that must be converted.
    Converted(PutFile, Kind),
}

/// A stored upload that nothing refers to yet.
pub struct Stored {
    /// The file to serve, and the upload, if it is another file and is to be kept.
    pub file: StoredFile,
    /// The extension of a name for it.
    pub extension: &'static str,
    /// The upload.
    pub upload: PutFile,
}

impl Stored {
    /// An image that is served as `file`.
    pub fn image(file: PutFile, found: &Found, upload: PutFile) -> Self {
        let &Found { header, origin, is_animated } = found;
        let file = StoredFile {
            file,
            media_type: header.format.media_type(),
            width: header.width,
            height: header.height,
            origin,
            metadata_removed: Vec::new(),
            is_animated,
            original: None,
            video: None,
        };
        Self { file, extension: header.format.extension(), upload }
    }
}

/// Receives a body, of a declared format, with a rule for its private metadata; [`paced`].
pub async fn store(
    app: &App,
    caller: &Caller<UploadAsset>,
    length: Option<u64>,
    body: Body,
    (declared, rule): (Declared, UploadMetadata),
) -> Result<Received> {
    let body = at_pace(body);
    let received = async {
        match declared {
            Declared::Film => Ok(Received::Kept(Box::new(film::receive(app, body, rule).await?))),
            Declared::Image(declared) => receive(app, body, (declared, rule)).await,
        }
    };
    paced(app, caller, length, declared, received).await
}

/// The SHA-256 of a body that is an image, which is not stored; [`paced`].
pub async fn digest(app: &App, caller: &Caller<UploadAsset>, length: Option<u64>, body: Body) -> Result<[u8; 32]> {
    let mut pieces = at_pace(body).into_data_stream();
    let digest = async move {
        let (mut digest, mut bytes) = (Sha256::new(), 0);
        while let Some(piece) = next(&mut pieces).await? {
            bytes += piece.len() as u64;
            if bytes > UPLOAD_MAX {
                return Err(Problem::PayloadTooLarge(UPLOAD_MAX));
            }
            digest.update(&piece);
        }
        Ok(digest.finalize().into())
    };
    paced(app, caller, length, Declared::Image(None), digest).await
}

/// A body that ends when it arrives below the minimum rate.
fn at_pace(body: Body) -> Body {
    Body::new(MinRateBody::at(UPLOAD_PACE_MIN, UPLOAD_TIME_LEAST, body))
}

/// Waits for a body that is received in one of the few upload slots, within a time that depends on its size; 503 when no slot becomes
/// free in time.
async fn paced<T>(
    app: &App,
    caller: &Caller<UploadAsset>,
    length: Option<u64>,
    declared: Declared,
    received: impl Future<Output = Result<T>>,
) -> Result<T> {
    // The index of a video is in memory.
    let places = if declared == Declared::Film { 2 } else { 1 };
    let _places = admitted(&app.uploads, &account_key(&caller.account), places).await?;
    let seconds = length.unwrap_or_else(|| declared.bytes_max()) / UPLOAD_BYTES_PER_SECOND_MIN;
    match tokio::time::timeout(UPLOAD_TIME_LEAST + Duration::from_secs(seconds), received).await {
        Ok(received) => received,
        Err(_) => Err(Problem::invalid("body", "took too long to arrive")),
    }
}

async fn receive(app: &App, body: Body, (declared, rule): (Option<FileType>, UploadMetadata)) -> Result<Received> {
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
    head.found.map_or(Ok(()), |found| found.require_accepted(app))?;
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
    let read = head.finish()?;
    let upload = put_file(key, &writer.finish().await?);
    let found = match read {
        Read::Image(found) => found,
        Read::Converted(kind) => return Ok(Received::Converted(upload, kind)),
    };
    let cleaned = match rule {
        UploadMetadata::Keep => None,
        UploadMetadata::Auto | UploadMetadata::Strip => {
            cleaner.finish().map_err(|error| Problem::unprocessable("body", error.to_string()))?
        }
    };
    let Some(cleaned) = cleaned else { return Ok(Received::Kept(Stored::image(upload, &found, upload).into())) };
    let metadata_removed = MetadataClass::named(cleaned.removed().map(Class::as_str));
    let (file, header) = store_cleaned(app, key, cleaned).await?;
    let (media_type, reason) = (header.format.media_type(), OriginalReason::PrivateMetadata);
    let original = (rule == UploadMetadata::Auto).then_some(KeptOriginal { file: upload, media_type, reason });
    let stored = Stored::image(file, &Found { header, ..found }, upload);
    let stored = Stored { file: StoredFile { metadata_removed, original, ..stored.file }, ..stored };
    Ok(Received::Kept(stored.into()))
}

/// Stores the upload under `key` once more, without its private metadata. Its header is parsed again, because its orientation may
/// stand in another place now.
async fn store_cleaned(app: &App, key: BlobKey, cleaned: Cleaned) -> Result<(PutFile, Header)> {
    let to = BlobKey(db::blobs::stage_unknown(&mut *app.connection().await?).await?);
    let mut head = Head::new(None);
    let file = rewrite(&app.blobs, key, to, cleaned, |piece| head.push(piece)).await?;
    Ok((file, head.finish()?.image()?.header))
}

pub async fn next(pieces: &mut BodyDataStream) -> Result<Option<Bytes>> {
    pieces.next().await.transpose().map_err(|_| Problem::invalid("body", "ended prematurely, or arrived too slowly"))
}

fn foreign() -> Problem {
    Problem::UnsupportedMediaType(
        "the body is not a PNG, JPEG, WebP, GIF or AVIF, and not declared as video/mp4".into(),
    )
}

/// Parses the image's header from the passing bytes.
pub struct Head {
    declared: Option<FileType>,
    found: Option<FileType>,
    /// The first bytes: until the type is known, or of a file that is converted those that hold its header.
    start: Vec<u8>,
    reader: HeaderReader,
    xmp: XmpReader,
    frames: FrameCounter,
    error: Option<HeaderError>,
}

/// What the bytes of a file are.
pub enum Read {
    Image(Found),
    /// It must be converted.
    Converted(Kind),
}

impl Read {
    /// The image, where nothing else can be.
    pub fn image(self) -> Result<Found> {
        match self {
            Self::Image(found) => Ok(found),
            Self::Converted(_) => Err(Problem::internal("a file of the service is no image")),
        }
    }
}

/// What the bytes of an image say.
pub struct Found {
    pub header: Header,
    /// The origin that the metadata state.
    pub origin: Option<Origin>,
    /// It has more than one frame.
    pub is_animated: bool,
}

impl Head {
    pub fn new(declared: Option<FileType>) -> Self {
        let (reader, xmp, frames) = (HeaderReader::new(), XmpReader::default(), FrameCounter::default());
        Self { declared, found: None, start: Vec::new(), reader, xmp, frames, error: None }
    }

    fn is_recognized(&self) -> bool {
        self.found.is_some()
    }

    /// Takes the next bytes. A type that differs from the declared one is rejected at once; other errors of the header are
    /// reported at the end, after the check of the body's size.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        match self.found {
            None => {
                self.start.extend_from_slice(bytes);
                self.found = found(&self.start)?;
                let Some(found) = self.found else { return Ok(()) };
                if let Some(declared) = self.declared.filter(|declared| *declared != found) {
                    return Err(Problem::UnsupportedMediaType(format!(
                        "the body is {}, not {} as declared",
                        found.media_type(),
                        declared.media_type()
                    )));
                }
                if let FileType::Kept(_) = found {
                    let start = std::mem::take(&mut self.start);
                    self.read(&start);
                }
            }
            Some(FileType::Kept(_)) => self.read(bytes),
            Some(FileType::Converted(_)) => {
                let missing = MAX_META_BYTES.saturating_sub(self.start.len()).min(bytes.len());
                self.start.extend_from_slice(&bytes[..missing]);
            }
        }
        Ok(())
    }

    fn read(&mut self, bytes: &[u8]) {
        self.xmp.push(bytes);
        self.frames.push(bytes);
        if self.error.is_none() {
            self.error = self.reader.push(bytes).err();
        }
    }

    /// Ends the file.
    pub fn finish(self) -> Result<Read> {
        let unprocessable = |error: HeaderError| Problem::unprocessable("body", error.to_string());
        match self.found {
            Some(FileType::Kept(_)) => {}
            Some(FileType::Converted(kind)) => {
                let probed = match kind {
                    Kind::Avif => avif::probe(&self.start).map(drop),
                    Kind::Heif => avif::probe_heif(&self.start).map(drop),
                };
                return probed.map(|()| Read::Converted(kind)).map_err(unprocessable);
            }
            // The file ended within its magic bytes.
            None if Format::sniff(&self.start).is_none() && !is_box(&self.start) => return Err(foreign()),
            None => return Err(unprocessable(HeaderError::Truncated)),
        }
        let properties = self.xmp.finish().packet.map(|packet| Properties::parse(&packet)).unwrap_or_default();
        let origin = Origin::from_file(&properties.digital_source_types);
        let read = match self.error {
            Some(error) => Err(error),
            None => self.reader.finish(),
        };
        let is_animated = self.frames.is_animated();
        Ok(Read::Image(Found { header: read.map_err(unprocessable)?, origin, is_animated }))
    }
}

/// Returns `true` if a file begins with the box that names its brands.
fn is_box(start: &[u8]) -> bool {
    start.get(4..8) == Some(b"ftyp")
}

/// The type of a file by its first bytes; `None` if there are too few of them.
fn found(start: &[u8]) -> Result<Option<FileType>> {
    if start.len() < Format::SNIFF_BYTES {
        return Ok(None);
    }
    if let Some(format) = Format::sniff(start) {
        return Ok(Some(FileType::Kept(format)));
    }
    match avif::sniff(start) {
        _ if !is_box(start) => Err(foreign()),
        _ if start.len() < avif::SNIFF_BYTES.min(be32(start)) => Ok(None),
        Some(kind) => Ok(Some(FileType::Converted(kind))),
        None => Err(foreign()),
    }
}

fn be32(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(0, |first| u32::from_be_bytes(*first) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_of_removed_metadata_is_one_of_the_contract() {
        assert_eq!(MetadataClass::named(Class::ALL.into_iter().map(Class::as_str)), MetadataClass::ALL);
    }
}
