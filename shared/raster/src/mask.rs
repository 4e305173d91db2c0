//! Masks of edits: which pixels of an image may change, and the composite that keeps the others
//! (`docs/reference/images.md#masks`).
//!
//! **Guarantee.** Where a plane is 0, the composite has the samples of the source, alpha included, bit
//! for bit. A feather never leaves the area that may change, and never reduces a value to 0.
//!
//! **Formulas.** Luminance is `(54 r + 183 g + 19 b) / 256`, the weights of Rec. 709, of pixels over black.
//! A mask is scaled to the source by area: each value is the average of the part of the mask that it
//! covers. Distances are those of the chamfer mask ⟨3, 4⟩ (G. Borgefors, Distance transformations in
//! digital images, 1986), in thirds of a pixel. Pixels are mixed in sRGB with premultiplied alpha.

use fast_image_resize as fir;
use fir::images::{TypedImage, TypedImageRef};
use fir::pixels::U8;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

use crate::bitmap::{Bitmap, Channels};
use crate::decode::{DecodeError, decode};
use crate::encode::{EncodeError, PNG_LEVEL, encode_lossless};
use crate::format::Format;
use crate::geometry::Size;
use crate::header::{Header, decoded_bytes_max, probe};
use crate::pipeline::{Error, Output};
use crate::resize::{check_output, stretched};

/// The distance between neighbors in a row or column, in the unit of the distances.
const STEP: u8 = 3;
/// The distance between diagonal neighbors.
const DIAGONAL: u8 = 4;

/// The part of a mask's pixels that says what changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// [`Alpha`](Self::Alpha) if any pixel is not opaque, otherwise [`Luminance`](Self::Luminance).
    Auto,
    /// What is transparent changes.
    Alpha,
    /// What is white changes.
    Luminance,
}

/// How a mask applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masking {
    /// What of the mask's pixels is read.
    pub channel: Channel,
    /// `true` if it is read the other way round.
    pub invert: bool,
    /// Width in pixels of the transition inside the area that changes, at most 64.
    pub feather: u32,
}

/// How much each pixel may change: 0 not at all, 255 completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plane {
    size: Size,
    values: Vec<u8>,
}

impl Plane {
    /// Reads a mask of any accepted format, as displayed, in the size `size`.
    ///
    /// # Errors
    ///
    /// Any [`DecodeError`].
    pub fn decode(mask: &[u8], masking: &Masking, size: Size) -> Result<Self, DecodeError> {
        Ok(Self::of_bitmap(&decode(mask)?, masking).scaled(size))
    }

    /// Reads a mask in its own size.
    fn of_bitmap(mask: &Bitmap, masking: &Masking) -> Self {
        let alpha = match masking.channel {
            Channel::Auto => !mask.is_opaque(),
            Channel::Alpha => true,
            Channel::Luminance => false,
        };
        let flip = if masking.invert { 255 } else { 0 };
        let luminance = |r: u8, g: u8, b: u8| ((54 * u32::from(r) + 183 * u32::from(g) + 19 * u32::from(b)) >> 8) as u8;
        let over_black = |value: u8, alpha: u8| ((u32::from(value) * u32::from(alpha) + 127) / 255) as u8;
        let values = match mask {
            Bitmap::Rgb(_) if alpha => vec![flip; mask.size().pixels() as usize],
            Bitmap::Rgb(image) => {
                image.as_raw().as_chunks().0.iter().map(|&[r, g, b]| luminance(r, g, b) ^ flip).collect()
            }
            Bitmap::Rgba(image) => {
                let value = |&[r, g, b, a]: &[u8; 4]| if alpha { 255 - a } else { over_black(luminance(r, g, b), a) };
                image.as_raw().as_chunks().0.iter().map(|pixel| value(pixel) ^ flip).collect()
            }
        };
        Self { size: mask.size(), values }
    }

    /// Scales by area.
    pub fn scaled(self, size: Size) -> Self {
        if self.size == size {
            return self;
        }
        let mut values = vec![0; size.pixels() as usize];
        let source = TypedImageRef::<U8>::from_buffer(self.size.width, self.size.height, &self.values)
            .expect("a plane's values fit its size");
        let mut target = TypedImage::<U8>::from_buffer(size.width, size.height, &mut values)
            .expect("the values were made for this size");
        let options = fir::ResizeOptions::new().resize_alg(fir::ResizeAlg::Convolution(fir::FilterType::Box));
        fir::Resizer::new().resize_typed(&source, &mut target, &options).expect("the whole is within the plane");
        Self { size, values }
    }

    /// The number of columns and rows.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns `true` if no pixel may change.
    pub fn changes_nothing(&self) -> bool {
        self.values.iter().all(|value| *value == 0)
    }

    /// Reduces the values near pixels that are kept: linearly with the distance, to nothing `radius` pixels away.
    fn feathered(mut self, radius: u32) -> Self {
        let Ok(limit) = u8::try_from((radius + 1) * u32::from(STEP)) else { return self };
        if radius == 0 {
            return self;
        }
        let scale = |value: u8, distance: u8| {
            (u32::from(value) * u32::from(distance)).div_ceil(u32::from(limit)).min(u32::from(value)) as u8
        };
        let distances = self.distances(limit);
        for (value, distance) in self.values.iter_mut().zip(distances) {
            if (1..limit).contains(&distance) {
                *value = scale(*value, distance);
            }
        }
        self
    }

    /// The distance of each pixel to the next one that is kept, at most `limit`.
    fn distances(&self, limit: u8) -> Vec<u8> {
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let mut distances: Vec<u8> = self.values.iter().map(|value| if *value == 0 { 0 } else { limit }).collect();
        let mut before = vec![0; width];
        for y in 0..height {
            let (above, row) = distances.split_at_mut(y * width);
            let row = &mut row[..width];
            if y > 0 {
                approach(row, &above[(y - 1) * width..]);
            }
            for step in steps(limit) {
                before.copy_from_slice(row);
                lower(&mut row[width.min(step.into())..], &before, step * STEP);
            }
        }
        for y in (0..height).rev() {
            let (rows, below) = distances.split_at_mut((y + 1) * width);
            let row = &mut rows[y * width..];
            if let Some(next) = below.get(..width) {
                approach(row, next);
            }
            for step in steps(limit) {
                before.copy_from_slice(row);
                lower(row, &before[width.min(step.into())..], step * STEP);
            }
        }
        distances
    }

    /// A gray PNG in which white changes.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Png`].
    pub fn white_png(&self) -> Result<Vec<u8>, EncodeError> {
        let mut bytes = Vec::new();
        let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Level(PNG_LEVEL), FilterType::Adaptive);
        let Size { width, height } = self.size;
        encoder.write_image(&self.values, width, height, ExtendedColorType::L8).map_err(EncodeError::Png)?;
        Ok(bytes)
    }

    /// A PNG with alpha in which what is transparent changes. It is white as well, for readers that ignore alpha.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Png`].
    pub fn transparent_png(&self) -> Result<Vec<u8>, EncodeError> {
        let pixels = self.values.iter().flat_map(|&value| [value, value, value, 255 - value]).collect();
        crate::encode::png(&Bitmap::made(self.size, Channels::Rgba, pixels))
    }
}

/// Lowers the distances of a row to what those of the row beside it allow.
fn approach(row: &mut [u8], beside: &[u8]) {
    lower(row, beside, STEP);
    lower(&mut row[1..], beside, DIAGONAL);
    lower(row, &beside[1..], DIAGONAL);
}

/// How far each pixel of a row looks, so that in the end each knows all that are less than `limit` away: every whole number of pixels
/// is a sum of such steps. A step is one vector operation for many pixels, where a walk along the row waits for each.
fn steps(limit: u8) -> impl Iterator<Item = u8> {
    std::iter::successors(Some(1_u8), |step| step.checked_mul(2)).take_while(move |step| *step < limit.div_ceil(STEP))
}

/// Lowers each distance to another one and `by`.
fn lower(distances: &mut [u8], others: &[u8], by: u8) {
    for (distance, other) in distances.iter_mut().zip(others) {
        *distance = (*distance).min(other.saturating_add(by));
    }
}

/// Upper bound in bytes of the memory of [`edit`], without the files.
pub fn edit_bytes(source: (Format, Size), mask: (Format, Size), result: &Header) -> u64 {
    /// Result, source and working copies, the plane and its distances, and the encoded file.
    const PIXEL: u64 = 4 + 4 + 4 + 2 + 5;
    /// What the lossless WebP encoder needs beside it.
    const WEBP_PIXEL: u64 = 40;
    let pixels = source.1.pixels();
    let encoder = if source.0 == Format::Webp { WEBP_PIXEL * pixels } else { 0 };
    let resampled = 4 * result.size().pixels() + 4 * result.size().pixels().max(pixels);
    let decoded = decoded_bytes_max(source.0, source.1) + decoded_bytes_max(mask.0, mask.1) + result.decoded_bytes();
    decoded + resampled + PIXEL * pixels + encoder
}

/// Lays `result`, in whatever size, over `source` where `mask` allows it. The output has the size of the source and is a PNG, or a
/// lossless WebP for a WebP source.
///
/// # Errors
///
/// Any [`Error`]. A source above the limits of results is rejected before anything is decoded.
pub fn edit(source: &[u8], mask: &[u8], result: &[u8], masking: &Masking) -> Result<Output, Error> {
    let header = probe(source).map_err(DecodeError::from)?;
    let size = header.size();
    check_output(size)?;
    let plane = Plane::decode(mask, masking, size)?.feathered(masking.feather);
    let result = decode(result)?;
    let result = if result.size() == size { result } else { stretched(&result, size) };
    let image = composite(decode(source)?, result, &plane);
    let (bytes, format) = encode_lossless(&image, header.format)?;
    Ok(Output { bytes, format, width: size.width, height: size.height })
}

/// Mixes two images of the plane's size: the source where the plane is 0, the result where it is 255.
fn composite(source: Bitmap, result: Bitmap, plane: &Plane) -> Bitmap {
    let (mut image, result) = match (source, result) {
        (source @ Bitmap::Rgb(_), result) if result.is_opaque() => (source, result.into_rgb()),
        (source, result) => (source.into_rgba(), result.into_rgba()),
    };
    match image.channels() {
        Channels::Rgb => lay::<3>(image.pixels_mut(), result.pixels(), &plane.values, opaque),
        Channels::Rgba => lay::<4>(image.pixels_mut(), result.pixels(), &plane.values, translucent),
    }
    image
}

/// Lays pixels of `N` samples over others.
fn lay<const N: usize>(image: &mut [u8], over: &[u8], values: &[u8], mix: impl Fn([u8; N], [u8; N], u32) -> [u8; N]) {
    for ((pixel, over), value) in image.as_chunks_mut().0.iter_mut().zip(over.as_chunks().0).zip(values) {
        match value {
            0 => {}
            255 => *pixel = *over,
            value => *pixel = mix(*pixel, *over, u32::from(*value)),
        }
    }
}

fn opaque(under: [u8; 3], over: [u8; 3], share: u32) -> [u8; 3] {
    let mix = |under: u8, over: u8| ((u32::from(under) * (255 - share) + u32::from(over) * share + 127) / 255) as u8;
    [mix(under[0], over[0]), mix(under[1], over[1]), mix(under[2], over[2])]
}

fn translucent(under: [u8; 4], over: [u8; 4], share: u32) -> [u8; 4] {
    let weights = (u32::from(under[3]) * (255 - share), u32::from(over[3]) * share);
    let total = weights.0 + weights.1;
    if total == 0 {
        return over;
    }
    let mix =
        |under: u8, over: u8| ((u32::from(under) * weights.0 + u32::from(over) * weights.1 + total / 2) / total) as u8;
    [mix(under[0], over[0]), mix(under[1], over[1]), mix(under[2], over[2]), ((total + 127) / 255) as u8]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::OutputFormat;
    use crate::testing::{drawn, exif_block, photo, written};

    const PLAIN: Masking = Masking { channel: Channel::Auto, invert: false, feather: 0 };

    fn plane(width: u32, height: u32, value: impl Fn(u32, u32) -> u8) -> Plane {
        let values = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| value(x, y)).collect();
        Plane { size: Size::new(width, height), values }
    }

    /// A mask file of one pixel.
    fn value(pixel: [u8; 4], masking: Masking) -> u8 {
        let mask = drawn(1, 1, Channels::Rgba, |_, _| pixel);
        Plane::of_bitmap(&mask, &masking).values[0]
    }

    #[test]
    fn white_changes_or_what_is_transparent() {
        let of = |channel, pixel| value(pixel, Masking { channel, ..PLAIN });
        for (channel, pixel, wanted) in [
            (Channel::Auto, [255, 255, 255, 255], 255),
            (Channel::Auto, [0, 0, 0, 255], 0),
            (Channel::Auto, [128, 128, 128, 255], 128),
            (Channel::Auto, [255, 255, 255, 0], 255),
            (Channel::Auto, [0, 0, 0, 55], 200),
            (Channel::Alpha, [255, 255, 255, 255], 0),
            (Channel::Luminance, [255, 255, 255, 0], 0),
            (Channel::Luminance, [255, 255, 255, 100], 100),
            (Channel::Luminance, [255, 0, 0, 255], 53),
        ] {
            assert_eq!(of(channel, pixel), wanted, "{channel:?} {pixel:?}");
            let inverted = value(pixel, Masking { channel, invert: true, ..PLAIN });
            assert_eq!(inverted, 255 - wanted, "{channel:?} {pixel:?}");
        }
        let without_alpha = drawn(2, 1, Channels::Rgb, |_, _| [255; 4]);
        let alpha = Masking { channel: Channel::Alpha, ..PLAIN };
        assert!(Plane::of_bitmap(&without_alpha, &alpha).changes_nothing());
    }

    #[test]
    fn a_mask_is_scaled_by_area() {
        let half = plane(2, 1, |x, _| if x == 0 { 0 } else { 255 });
        let large = half.clone().scaled(Size::new(6, 3));
        assert_eq!(large.values, [0, 0, 0, 255, 255, 255].repeat(3), "kept pixels stay kept");
        assert_eq!(large.scaled(Size::new(2, 1)), half);
        assert_eq!(plane(4, 1, |x, _| if x == 0 { 255 } else { 0 }).scaled(Size::new(1, 1)).values, [64]);
    }

    #[test]
    fn a_feather_lies_inside_of_what_changes() {
        let edge = |radius| plane(8, 1, |x, _| if x < 2 { 0 } else { 255 }).feathered(radius).values;
        assert_eq!(edge(0), [0, 0, 255, 255, 255, 255, 255, 255]);
        assert_eq!(edge(1), [0, 0, 128, 255, 255, 255, 255, 255]);
        assert_eq!(edge(3), [0, 0, 64, 128, 192, 255, 255, 255]);
        let border = plane(4, 4, |_, _| 255).feathered(64).values;
        assert_eq!(border, [255; 16], "the edge of the image keeps nothing");
        let faint = plane(3, 1, |x, _| x.min(1) as u8).feathered(64).values;
        assert_eq!(faint, [0, 1, 1], "what changes never becomes kept");
    }

    #[test]
    fn distances_are_those_of_the_chamfer_metric() {
        let kept = (70_u32, 4_u32);
        for limit in [6, 9, 27, 195] {
            let found = plane(141, 9, |x, y| u8::from((x, y) != kept)).distances(limit);
            for (index, found) in found.iter().enumerate() {
                let (x, y) = ((index as u32) % 141, (index as u32) / 141);
                let (dx, dy) = (x.abs_diff(kept.0), y.abs_diff(kept.1));
                let distance = 4 * dx.min(dy) + 3 * dx.abs_diff(dy);
                assert_eq!(u32::from(*found), distance.min(limit.into()), "{x} {y} {limit}");
            }
        }
    }

    #[test]
    fn both_forms_of_a_mask_say_the_same() {
        let plane = plane(5, 3, |x, y| (x * 60 + y) as u8);
        let read = |file: &[u8], channel| {
            Plane::decode(file, &Masking { channel, ..PLAIN }, Size::new(5, 3)).expect("decodes")
        };
        let transparent = plane.transparent_png().expect("encodes");
        assert_eq!(read(&transparent, Channel::Auto), plane);
        let white = plane.white_png().expect("encodes");
        assert_eq!(read(&white, Channel::Auto), plane);
    }

    #[test]
    fn a_mask_is_read_as_it_is_displayed() {
        let mask = drawn(2, 1, Channels::Rgb, |x, _| [if x == 0 { 255 } else { 0 }; 4]);
        let mut file = written(&mask, OutputFormat::Png, 100);
        let mut chunk = b"eXIf".to_vec();
        chunk.extend(exif_block(3, true));
        let mut crc = flate2::Crc::new();
        crc.update(&chunk);
        let chunk = [&((chunk.len() - 4) as u32).to_be_bytes()[..], &chunk, &crc.sum().to_be_bytes()].concat();
        file.splice(33..33, chunk);
        let turned = Plane::decode(&file, &PLAIN, Size::new(2, 1)).expect("decodes");
        assert_eq!(turned.values, [0, 255]);
    }

    #[test]
    fn the_output_has_the_size_of_the_source_in_a_format_without_loss() {
        let (mask, result) = (drawn(10, 5, Channels::Rgb, |_, _| [255; 4]), photo(40, 20));
        let (mask, result) = (written(&mask, OutputFormat::Png, 100), written(&result, OutputFormat::Jpeg, 90));
        for (format, wanted) in [
            (OutputFormat::Jpeg, OutputFormat::Png),
            (OutputFormat::Png, OutputFormat::Png),
            (OutputFormat::Webp, OutputFormat::Webp),
        ] {
            let source = written(&photo(80, 40), format, 90);
            let output = edit(&source, &mask, &result, &PLAIN).expect("is edited");
            let header = probe(&output.bytes).expect("an image");
            assert_eq!((output.format, header.format), (wanted, wanted.into()));
            assert_eq!((header.size(), output.width, output.height), (Size::new(80, 40), 80, 40));
        }
        assert!(matches!(edit(b"none", &mask, &result, &PLAIN), Err(Error::Decode(_))));
    }

    /// Pixels of any color and transparency.
    fn noise(size: Size, channels: Channels, seed: u32) -> Bitmap {
        drawn(size.width, size.height, channels, |x, y| {
            let mixed = (x ^ y.wrapping_mul(0x9e37_79b9) ^ seed).wrapping_mul(0x85eb_ca6b);
            (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35).to_be_bytes()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Whatever source, mask and result are: where the plane is 0, the decoded output has the pixels of the decoded source.
        #[test]
        fn kept_pixels_are_those_of_the_source(
            size in (1_u32..40, 1_u32..40),
            mask_size in (1_u32..40, 1_u32..40),
            result_size in (1_u32..40, 1_u32..40),
            seed in any::<u32>(),
            has_alpha in any::<[bool; 3]>(),
            format in 0..3_usize,
            (channel, invert, feather) in (0..3_usize, any::<bool>(), 0..=64_u32),
            threshold in any::<u8>(),
        ) {
            let channels = |index: usize| if has_alpha[index] { Channels::Rgba } else { Channels::Rgb };
            let size = Size::new(size.0, size.1);
            let format = [OutputFormat::Png, OutputFormat::Jpeg, OutputFormat::Webp][format];
            let source = written(&noise(size, channels(0), seed), format, 90);
            let mut mask = noise(Size::new(mask_size.0, mask_size.1), channels(1), !seed);
            // Halves of the samples are extreme, so that there are kept pixels.
            mask.pixels_mut().iter_mut().filter(|sample| **sample < threshold).for_each(|sample| *sample = 0);
            mask.pixels_mut().iter_mut().filter(|sample| **sample > 200).for_each(|sample| *sample = 255);
            let mask = written(&mask, OutputFormat::Png, 100);
            let result = noise(Size::new(result_size.0, result_size.1), channels(2), seed.rotate_left(7));
            let result = written(&result, OutputFormat::Png, 100);
            let channel = [Channel::Auto, Channel::Alpha, Channel::Luminance][channel];
            let masking = Masking { channel, invert, feather };

            let output = decode(&edit(&source, &mask, &result, &masking).expect("is edited").bytes).expect("decodes");
            let plane = Plane::decode(&mask, &masking, size).expect("decodes");
            let (source, result) = (decode(&source).expect("decodes"), decode(&result).expect("decodes"));
            let result = if result.size() == size { result } else { stretched(&result, size) };
            for (index, value) in plane.values.iter().enumerate() {
                let (x, y) = (index as u32 % size.width, index as u32 / size.width);
                match value {
                    0 => prop_assert_eq!(output.pixel(x, y), source.pixel(x, y)),
                    255 if feather == 0 => prop_assert_eq!(output.pixel(x, y), result.pixel(x, y)),
                    _ => {}
                }
            }
        }
    }
}
