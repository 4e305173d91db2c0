//! Foreign bytes as an image: detected from the bytes, decoded once, and matched across sizes.

use bytes::Bytes;
use decoder::{Made, Order, Refusal, Work};
use domain::limits::FILE_NAME_MAX;
use domain::origin::Origin;
use raster::avif::{self, Kind};
use raster::resize::{Plan, PlanError};
use raster::{Bounds, Color, Fit, Format, Resize, Size};
use serde::{Deserialize, Serialize};
use url::Url;
use worker::decode::refusal;
use worker::files::CleanContent;
use worker::marks::claimed_origin;
use worker::{Error, Worker};

use crate::jobs::conversion::Foreign;

/// Side of the thumbnails by which two images are compared, in pixels.
const THUMBNAIL_SIDE: u32 = 32;

/// Maximum difference between the aspect ratios of one image at two sizes: rounding at a side of 200 pixels, plus a margin.
const RATIO_TOLERANCE: f64 = 0.02;

/// Maximum differences between thumbnails of one image at two sizes: on average, and at any one place. Resampling and lossy
/// coding stay well below. Another view of a product on a white background is similar on average, but not at every place.
const MEAN_TOLERANCE: f64 = 3.0;
const MOST_TOLERANCE: u8 = 24;

/// An image that can be displayed.
#[derive(Debug)]
pub(super) struct ImportedImage {
    pub content: CleanContent,
    pub format: Format,
    pub size: Size,
    pub origin: Option<Origin>,
    pub thumbnail: Thumbnail,
}

/// A thumbnail of an image for comparison: 32 × 32 pixels of RGB on white.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Thumbnail(Vec<u8>);

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    /// There is no decoder for it.
    #[error("HEIC is not accepted: convert it to JPEG first")]
    Heic,
    #[error("{0}")]
    Image(String),
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Self::Image(why)
    }
}

/// Detects and decodes a file of `account`, for which memory is reserved already. A file in a format that is not kept is converted
/// first, as an upload is. The inner error says what is wrong with it.
pub(super) async fn read(
    worker: &Worker,
    account: &str,
    bytes: Bytes,
) -> Result<Result<ImportedImage, Unusable>, Error> {
    let converted = match avif::sniff(&bytes) {
        None => Ok(bytes),
        Some(Kind::Heif) if worker.heif.is_none() => return Ok(Err(Unusable::Heic)),
        Some(kind) => convert(worker, account, kind, bytes).await?,
    };
    Ok(match converted {
        Ok(bytes) => look(worker, account, bytes).await?,
        Err(why) => Err(why),
    }
    .map_err(Unusable::from))
}

async fn convert(worker: &Worker, account: &str, kind: Kind, file: Bytes) -> Result<Result<Bytes, String>, Error> {
    let header = match Foreign::probe(kind, &file[..file.len().min(avif::MAX_META_BYTES)]) {
        Ok(header) => header,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let memory = worker.pixels.reserve(file.len() as u64 + header.memory_bytes()).await;
    let converted = header.convert(worker, account, memory, file).await?;
    Ok(converted.map(|(_, content)| content.bytes))
}

async fn look(worker: &Worker, account: &str, bytes: Bytes) -> Result<Result<ImportedImage, String>, Error> {
    let header = match raster::probe(&bytes) {
        Ok(header) => header,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let memory_bytes = match thumbnail_plan(header.size()) {
        Ok(plan) => raster::resize::memory_bytes(&header, &plan),
        Err(error) => return Ok(Err(raster::Error::from(error).to_string())),
    };
    let rule = worker.upload_metadata;
    let memory = worker.pixels.reserve(bytes.len() as u64 + memory_bytes).await;
    let read = memory.decode(Order::new(account, Look, vec![bytes]), move |files, made| {
        let origin = claimed_origin(&files[0]);
        let content = CleanContent::new(files[0].clone(), rule).map_err(|error| error.to_string())?;
        // The orientation may be at another position now.
        let header = raster::probe(&content.content.bytes).map_err(|error| error.to_string())?;
        let thumbnail = Thumbnail(made.into_iter().next().unwrap_or_default());
        Ok::<_, String>(ImportedImage { content, format: header.format, size: header.size(), origin, thumbnail })
    });
    Ok(read.await?.flatten())
}

/// Makes the pixels of the thumbnail of an image, as a decoder does.
#[derive(Serialize, Deserialize)]
pub(crate) struct Look;

impl Work for Look {
    const NAME: &'static str = "thumbnail";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let header = raster::probe(&files[0]).map_err(|error| Refusal::Input(error.to_string()))?;
        let Thumbnail(pixels) = thumbnail(&files[0], header.size()).map_err(refusal)?;
        Ok(vec![pixels])
    }
}

/// Decodes the whole file, at the smallest scale that its format allows, so that damage anywhere is found.
fn thumbnail(bytes: &[u8], size: Size) -> Result<Thumbnail, raster::Error> {
    let plan = thumbnail_plan(size)?;
    let small = raster::decode_resized(bytes, &plan, Color::WHITE)?.flattened(Color::WHITE);
    Ok(Thumbnail(small.pixels().to_vec()))
}

/// The plan that scales an image of size `size` to its thumbnail.
fn thumbnail_plan(size: Size) -> Result<Plan, PlanError> {
    let bounds = Bounds::new(Some(THUMBNAIL_SIDE), Some(THUMBNAIL_SIDE)).expect("both sides are given");
    let resize = Resize { fit: Fit::Fill, enlarge: true, background: Color::WHITE, ..Resize::new(bounds) };
    raster::resize::plan(size, &resize)
}

/// Returns `true` if two files show the same image at two sizes (docs/reference/imports.md#distinct-images).
pub(super) fn is_same(one: (Size, &Thumbnail), other: (Size, &Thumbnail)) -> bool {
    let ratio = |size: Size| f64::from(size.width) / f64::from(size.height);
    let stretch = ratio(one.0) / ratio(other.0);
    if one.0 == other.0 || (stretch - 1.0).abs() > RATIO_TOLERANCE {
        return false;
    }
    let differences = one.1.0.iter().zip(&other.1.0).map(|(one, other)| one.abs_diff(*other));
    let (sum, most) = differences.fold((0_u32, 0), |(sum, most), by| (sum + u32::from(by), by.max(most)));
    most <= MOST_TOLERANCE && f64::from(sum) <= MEAN_TOLERANCE * one.1.0.len() as f64
}

/// The name of a file from `url`: the last part of its path, with the extension of its format.
pub(super) fn file_name(url: &Url, format: Format) -> String {
    let last = url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
    let decoded: String = percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned();
    let stem = decoded.rsplit_once('.').map_or(decoded.as_str(), |(stem, _)| stem);
    let end = format!(".{}", format.extension());
    let clean = |c: &char| !c.is_control() && !matches!(*c, '/' | '\\' | char::REPLACEMENT_CHARACTER);
    let stem: String = stem.chars().filter(clean).take(FILE_NAME_MAX - end.len()).collect();
    if stem.trim().is_empty() { format!("import{end}") } else { stem + &end }
}

#[cfg(test)]
mod tests {
    use raster::{Channels, Encoding, OutputFormat};

    use super::*;

    fn drawn(side: u32, format: OutputFormat, color: impl Fn(f64, f64) -> [u8; 3]) -> (Size, Thumbnail) {
        let at = |n: u32| f64::from(n) / f64::from(side);
        let pixels =
            (0..side).flat_map(|y| (0..side).map(move |x| (x, y))).flat_map(|(x, y)| color(at(x), at(y))).collect();
        let size = Size::new(side, side);
        let image = raster::Bitmap::new(size, Channels::Rgb, pixels).expect("as many as fit");
        let file = raster::encode(&image, &Encoding { format, quality: 75, flatten: Color::WHITE }).expect("encodes");
        (size, thumbnail(&file, size).expect("decodes"))
    }

    /// A dark disc on a light background.
    fn disc(x: f64, y: f64, radius: f64) -> [u8; 3] {
        if (x - 0.5).hypot(y - 0.5) < radius { [40, 60, 90] } else { [250, 248, 245] }
    }

    fn same(one: &(Size, Thumbnail), other: &(Size, Thumbnail)) -> bool {
        is_same((one.0, &one.1), (other.0, &other.1))
    }

    #[test]
    fn one_image_is_known_again_at_another_size_and_in_another_format() {
        let large = drawn(800, OutputFormat::Png, |x, y| disc(x, y, 0.3));
        for (side, format) in [(300, OutputFormat::Png), (400, OutputFormat::Jpeg), (256, OutputFormat::Webp)] {
            assert!(same(&large, &drawn(side, format, |x, y| disc(x, y, 0.3))), "{side} {format:?}");
        }
    }

    #[test]
    fn another_view_is_another_image() {
        let one = drawn(800, OutputFormat::Png, |x, y| disc(x, y, 0.3));
        for other in [
            drawn(400, OutputFormat::Png, |x, y| disc(x, y, 0.36)),
            drawn(400, OutputFormat::Png, |x, y| disc(x + 0.08, y, 0.3)),
        ] {
            assert!(!same(&one, &other));
        }
        // Files of equal size are compared by their hashes only.
        assert!(!same(&one, &drawn(800, OutputFormat::Jpeg, |x, y| disc(x, y, 0.3))));
    }

    #[test]
    fn the_memory_of_a_transparent_image_includes_its_premultiplied_copy() {
        let header = raster::header::Header::assumed(Format::Png, Size::new(4000, 3000));
        let plan = thumbnail_plan(header.size()).expect("is within the limits");
        assert!(raster::resize::memory_bytes(&header, &plan) >= 8 * header.size().pixels());
    }

    #[test]
    fn a_file_is_named_after_its_address() {
        let name = |url: &str, format| file_name(&Url::parse(url).expect("a URL"), format);
        assert_eq!(name("https://a.example/b/sh%C3%B6e.front.webp?w=1", Format::Jpeg), "shöe.front.jpg");
        assert_eq!(name("https://a.example/image", Format::Png), "image.png");
        assert_eq!(name("https://a.example/", Format::Gif), "import.gif");
        assert_eq!(name("https://a.example/%2F%00%ff", Format::Webp), "import.webp");
        let long = name(&format!("https://a.example/{}", "ä".repeat(300)), Format::Png);
        assert_eq!(long.chars().count(), FILE_NAME_MAX);
    }
}
