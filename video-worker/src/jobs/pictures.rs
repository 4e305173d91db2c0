//! Frames and references: found, fetched, and brought into a form that a provider takes.

use bytes::Bytes;
use domain::job::{Failure, FailureCode, VideoPicture};
use providers::Picture;
use raster::{Bounds, DecodeOptions, Fault, Format, FormatChoice, Header, Resize};
use tokio::sync::OwnedSemaphorePermit;

use super::run::{Run, Stop};
use super::{Error, fetch, store};

/// The quality of a picture that had to be written anew: enough that no model sees a difference.
const QUALITY: u8 = 90;

/// The longest side of one that had to: no model looks closer.
const SIDE_MAX: u32 = 4096;

/// Tries to make one small enough; each comes close by itself, the others are for what compresses unevenly.
const SHRINKS_MAX: usize = 6;

/// Bytes of a decoded pixel of the result beside the picture's own.
const PIXEL_BYTES: u64 = 4;

/// What a file is counted with besides itself when it is sent: its base64, and the body that this stands in.
const BODY_FACTOR: u64 = 3;

/// For whom pictures are loaded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reader {
    /// The embedded runtime, which takes every file as it is and says itself what it cannot read.
    Embedded,
    /// A provider that takes PNG, JPEG and WebP of at most so many bytes each.
    Provider(usize),
}

/// A request's pictures, by what they are for.
#[derive(Default)]
pub(super) struct Pictures {
    /// What it begins with.
    pub first: Option<Picture>,
    /// What it ends with.
    pub last: Option<Picture>,
    /// What guides it.
    pub references: Vec<Picture>,
    /// Their place in memory.
    pub admitted: Option<OwnedSemaphorePermit>,
}

/// A picture that cannot be used.
fn unusable(named: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(FailureCode::ActionInputInvalid, format!("the picture {named} cannot be used: {why}"))
}

impl Run<'_> {
    /// Loads the request's pictures as soon as there is memory for them.
    pub(super) async fn pictures(&self, reader: Reader) -> Result<Pictures, Stop> {
        let mut bytes = 0;
        let mut sources = Vec::new();
        for picture in self.request.pictures() {
            let source = match &picture.asset {
                Some(handle) => {
                    let asset = db::assets::get(&mut *self.worker.connection().await?, handle).await?;
                    let asset = asset.ok_or_else(|| unusable(&picture.named, "it is gone"))?;
                    bytes += asset.bytes.unsigned_abs();
                    Some(asset.blob_key)
                }
                None => {
                    bytes += fetch::BYTES_MAX;
                    None
                }
            };
            sources.push(source);
        }
        let each = if matches!(reader, Reader::Provider(_)) { 1 + BODY_FACTOR } else { 1 };
        let admitted = self.unless_canceled(self.worker.memory.admit(bytes * each)).await?;
        let mut sources = sources.into_iter();
        let mut next = async |picture: &VideoPicture| {
            let file = match sources.next().flatten() {
                Some(key) => {
                    store::get(self.worker, key).await?.ok_or_else(|| unusable(&picture.named, "it is gone"))?
                }
                None => self
                    .unless_canceled(fetch::get(&self.worker.egress, &picture.named))
                    .await?
                    .map_err(|why| unusable(&picture.named, why))?,
            };
            self.read(picture, file, reader).await
        };
        let mut pictures = Pictures { admitted: Some(admitted), ..Pictures::default() };
        if let Some(first) = &self.request.first_frame {
            pictures.first = Some(next(first).await?);
        }
        if let Some(last) = &self.request.last_frame {
            pictures.last = Some(next(last).await?);
        }
        for reference in &self.request.references {
            pictures.references.push(next(reference).await?);
        }
        Ok(pictures)
    }

    /// The same without their bytes, as a look-up names them.
    pub(super) fn blank(&self) -> Pictures {
        let blank = |it: &VideoPicture| Picture { bytes: Bytes::new(), media_type: "image/png", role: it.role };
        Pictures {
            first: self.request.first_frame.as_ref().map(blank),
            last: self.request.last_frame.as_ref().map(blank),
            references: self.request.references.iter().map(blank).collect(),
            admitted: None,
        }
    }

    /// A file in the form that its reader takes. What comes from a foreign host is decoded once, all of it, before anybody is
    /// paid to look at it; what is stored was, when it was uploaded.
    async fn read(&self, picture: &VideoPicture, file: Bytes, reader: Reader) -> Result<Picture, Stop> {
        let refuse = |why: String| unusable(&picture.named, why);
        let header = raster::probe(&file).map_err(|error| refuse(error.to_string()))?;
        let bytes_max = match reader {
            Reader::Embedded => usize::MAX,
            Reader::Provider(bytes_max) => bytes_max,
        };
        let is_known = matches!(reader, Reader::Embedded) || header.format != Format::Gif;
        let (bytes, format) = if is_known && file.len() <= bytes_max {
            let is_foreign = picture.asset.is_none() && matches!(reader, Reader::Provider(_));
            (if is_foreign { self.decoded(picture, file, &header).await? } else { file }, header.format)
        } else {
            self.converted(picture, file, &header, bytes_max).await?
        };
        Ok(Picture { bytes, media_type: format.media_type(), role: picture.role })
    }

    async fn decoded(&self, picture: &VideoPicture, file: Bytes, header: &Header) -> Result<Bytes, Stop> {
        let decoding = self
            .worker
            .pixels
            .run(header.decoded_bytes(), move || raster::decode(&file, DecodeOptions::default()).map(|_| file));
        let decoded = self.unless_canceled(decoding).await?.map_err(Error::Panicked)?;
        Ok(decoded.map_err(|error| unusable(&picture.named, error))?)
    }

    async fn converted(
        &self,
        picture: &VideoPicture,
        file: Bytes,
        header: &Header,
        bytes_max: usize,
    ) -> Result<(Bytes, Format), Stop> {
        let memory_bytes = header.decoded_bytes() + 2 * PIXEL_BYTES * header.size().pixels();
        let (format, side) = (header.format, header.size().width.max(header.size().height));
        let converting = self.worker.pixels.run(memory_bytes, move || convert(&file, format, side, bytes_max));
        match self.unless_canceled(converting).await?.map_err(Error::Panicked)? {
            Ok(Some((bytes, format))) => Ok((bytes.into(), format)),
            Ok(None) => Err(unusable(&picture.named, "it cannot be made small enough").into()),
            Err(error) if error.fault() == Fault::Internal => Err(Error::Raster(error).into()),
            Err(error) => Err(unusable(&picture.named, error).into()),
        }
    }
}

/// Writes a picture anew, smaller until it has at most `bytes_max`: a JPEG stays one, a GIF becomes a PNG, and of what may have
/// alpha a WebP keeps it at a fraction of a PNG's size.
fn convert(
    file: &[u8],
    format: Format,
    side: u32,
    bytes_max: usize,
) -> Result<Option<(Vec<u8>, Format)>, raster::Error> {
    let choice = match format {
        Format::Jpeg => FormatChoice::Jpeg,
        Format::Gif => FormatChoice::Png,
        Format::Png | Format::Webp => FormatChoice::Webp,
    };
    let mut side = side.min(SIDE_MAX);
    for _ in 0..SHRINKS_MAX {
        let Some(bounds) = Bounds::new(Some(side), Some(side)) else { return Ok(None) };
        let resize = Resize { enlarge: false, ..Resize::new(bounds) };
        let written = raster::transform_resize(file, &resize, choice, QUALITY)?;
        let length = written.bytes.len();
        if length <= bytes_max {
            return Ok(Some((written.bytes, Format::from(written.format))));
        }
        // Bytes go with the area. A little less than that says, so that the next try fits.
        side = (f64::from(side) * (bytes_max as f64 / length as f64).sqrt() * 0.9) as u32;
    }
    Ok(None)
}
