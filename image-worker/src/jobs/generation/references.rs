//! The pictures that guide an output, in the form that a provider takes.

use bytes::Bytes;
use domain::asset::AssetRecord;
use domain::job::{Failure, FailureCode};
use providers::Picture;
use raster::{Bounds, Fault, Format, FormatChoice, Resize, Size};

use super::{Run, Stop};
use crate::jobs::{Error, store};

/// The quality of a reference that had to be written anew: enough that no model sees a difference.
const QUALITY: u8 = 90;
/// The longest side of one that had to: no model looks closer.
const SIDE_MAX: u32 = 4096;
/// Tries to make one small enough; each comes close by itself, the others are for what compresses unevenly.
const SHRINKS_MAX: usize = 6;
/// Bytes of a decoded pixel, and of one of the result beside it.
const PIXEL_BYTES: u64 = 4;

/// A reference that cannot be used.
fn unusable(handle: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(FailureCode::ActionInputInvalid, format!("the reference {handle} cannot be used: {why}"))
}

impl Run<'_> {
    /// What is stored of the references, in their order, or why the job cannot be done.
    pub(super) async fn assets(&self) -> Result<Result<Vec<AssetRecord>, Failure>, Error> {
        let mut connection = self.generator.worker.connection().await?;
        let mut assets = Vec::with_capacity(self.request.references.len());
        for reference in &self.request.references {
            match db::assets::get(&mut connection, &reference.asset).await? {
                Some(asset) => assets.push(asset),
                None => return Ok(Err(unusable(&reference.handle, "it is gone"))),
            }
        }
        Ok(Ok(assets))
    }

    /// The file of the reference at `index`.
    pub(super) async fn file(&self, index: usize, asset: &AssetRecord) -> Result<Result<Bytes, Failure>, Error> {
        let file = store::get(&self.generator.worker, asset.blob_key).await?;
        Ok(file.ok_or_else(|| unusable(&self.request.references[index].handle, "it is gone")))
    }

    /// The references as a provider takes them: PNG, JPEG or WebP of at most `bytes_max` each.
    pub(super) async fn pictures(
        &self,
        assets: &[AssetRecord],
        bytes_max: usize,
    ) -> Result<Result<Vec<Picture>, Failure>, Stop> {
        let mut pictures = Vec::with_capacity(assets.len());
        for (index, (asset, reference)) in assets.iter().zip(&self.request.references).enumerate() {
            let file = match self.file(index, asset).await? {
                Ok(file) => file,
                Err(failure) => return Ok(Err(failure)),
            };
            let media_type = match asset.mime_type.as_str() {
                "image/png" => Some("image/png"),
                "image/jpeg" => Some("image/jpeg"),
                "image/webp" => Some("image/webp"),
                _ => None,
            };
            let (bytes, media_type) = match media_type.filter(|_| file.len() <= bytes_max) {
                Some(media_type) => (file, media_type),
                None => match self.converted(file, bytes_max).await? {
                    Ok(converted) => converted,
                    Err(why) => return Ok(Err(unusable(&reference.handle, why))),
                },
            };
            pictures.push(Picture { bytes, media_type, role: reference.role });
        }
        Ok(Ok(pictures))
    }

    /// A file in a form that every provider takes, as soon as there is memory for its pixels; or why it cannot be.
    async fn converted(&self, file: Bytes, bytes_max: usize) -> Result<Result<(Bytes, &'static str), String>, Stop> {
        let header = match raster::probe(&file) {
            Ok(header) => header,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let memory_bytes = header.decoded_bytes() + 2 * PIXEL_BYTES * header.size().pixels();
        let pixels = &self.generator.worker.pixels;
        let converting = pixels.run(memory_bytes, move || convert(&file, header.format, header.size(), bytes_max));
        match self.unless_canceled(converting).await?.map_err(Error::Panicked)? {
            Ok(Some((bytes, media_type))) => Ok(Ok((bytes.into(), media_type))),
            Ok(None) => Ok(Err("it cannot be made small enough".to_owned())),
            Err(error) if error.fault() == Fault::Internal => Err(Error::Raster(error).into()),
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}

/// Writes a picture anew, smaller until it has at most `bytes_max`: a JPEG stays one, a GIF becomes a PNG, and of what may have
/// alpha a WebP keeps it at a fraction of a PNG's size.
fn convert(
    file: &[u8],
    format: Format,
    size: Size,
    bytes_max: usize,
) -> Result<Option<(Vec<u8>, &'static str)>, raster::Error> {
    let choice = match format {
        Format::Jpeg => FormatChoice::Jpeg,
        Format::Gif => FormatChoice::Png,
        Format::Png | Format::Webp => FormatChoice::Webp,
    };
    let mut side = size.width.max(size.height).min(SIDE_MAX);
    for _ in 0..SHRINKS_MAX {
        let Some(bounds) = Bounds::new(Some(side), Some(side)) else { return Ok(None) };
        let resize = Resize { enlarge: false, ..Resize::new(bounds) };
        let written = raster::transform_resize(file, &resize, choice, QUALITY)?;
        let length = written.bytes.len();
        if length <= bytes_max {
            return Ok(Some((written.bytes, Format::from(written.format).media_type())));
        }
        // Bytes go with the area. A little less than that says, so that the next try fits.
        let scale = (bytes_max as f64 / length as f64).sqrt() * 0.9;
        side = (f64::from(side) * scale) as u32;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use raster::{Channels, Color, Encoding, OutputFormat, Picture};

    use super::*;

    /// Noise, which no codec makes small.
    fn noise(format: OutputFormat, channels: Channels) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let pixels = (0..256 * 128 * channels.count()).map(|_| next()).collect();
        let picture = Picture::new(Size::new(256, 128), channels, pixels).expect("as many as fit");
        raster::encode(&picture, &Encoding { format, quality: 95, flatten: Color::WHITE }).expect("encodes")
    }

    fn converted(file: &[u8], bytes_max: usize) -> (Vec<u8>, &'static str) {
        let header = raster::probe(file).expect("a picture");
        convert(file, header.format, header.size(), bytes_max).expect("decodes").expect("fits")
    }

    #[test]
    fn what_is_too_large_is_made_smaller_and_keeps_its_shape() {
        for (format, media_type) in
            [(OutputFormat::Jpeg, "image/jpeg"), (OutputFormat::Png, "image/webp"), (OutputFormat::Webp, "image/webp")]
        {
            let file = noise(format, Channels::Rgba);
            for bytes_max in [file.len() / 3, 2000] {
                let (bytes, told) = converted(&file, bytes_max);
                let header = raster::probe(&bytes).expect("a picture");
                assert_eq!((told, header.format.media_type()), (media_type, media_type));
                assert!(bytes.len() <= bytes_max, "{} of {bytes_max}", bytes.len());
                let ratio = f64::from(header.width) / f64::from(header.height);
                assert!((ratio - 2.0).abs() < 0.2, "{header:?}");
            }
        }
    }

    #[test]
    fn what_only_has_the_wrong_format_keeps_its_size() {
        let file = noise(OutputFormat::Png, Channels::Rgb);
        let header = raster::probe(&file).expect("a picture");
        let (bytes, media_type) =
            convert(&file, Format::Gif, header.size(), usize::MAX).expect("decodes").expect("fits");
        let written = raster::probe(&bytes).expect("a picture");
        assert_eq!((media_type, written.size()), ("image/png", header.size()));
    }

    #[test]
    fn what_cannot_be_made_small_enough_is_refused_in_time() {
        let file = noise(OutputFormat::Png, Channels::Rgb);
        let header = raster::probe(&file).expect("a picture");
        assert!(convert(&file, header.format, header.size(), 10).expect("decodes").is_none());
    }
}
