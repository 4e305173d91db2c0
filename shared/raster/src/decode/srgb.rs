//! Converts stored samples to sRGB.
//!
//! The embedded ICC profile is used if it is readable and matches the kind of the samples;
//! otherwise it is ignored. Most profiles describe sRGB itself. They are detected with a lattice of
//! colors, so that the pixels need no conversion.

use moxcms::{ColorProfile, DataColorSpace, Layout, Transform8BitExecutor, TransformOptions};
use std::sync::Arc;

use super::{Raw, Samples};
use crate::geometry::Size;
use crate::picture::{Channels, Picture};

pub(super) fn convert(raw: Raw) -> Picture {
    Conversion::new(raw.icc.as_deref(), raw.samples).apply(raw.size, raw.data)
}

/// The conversion of samples of one kind, with or without a profile, to sRGB.
pub(super) struct Conversion {
    samples: Samples,
    transform: Option<Arc<Transform8BitExecutor>>,
}

impl Conversion {
    pub(super) fn new(icc: Option<&[u8]>, samples: Samples) -> Self {
        Self { samples, transform: icc.and_then(|icc| transform(icc, samples)) }
    }

    /// Converts samples of size `size`. The result does not depend on how a picture is divided into
    /// rows.
    pub(super) fn apply(&self, size: Size, mut data: Vec<u8>) -> Picture {
        let channels = match self.samples {
            Samples::Grey | Samples::Rgb | Samples::Cmyk => Channels::Rgb,
            Samples::GreyAlpha | Samples::Rgba => Channels::Rgba,
        };
        let width = size.width as usize;
        let (row, converted_row) = (width * self.samples.count(), width * channels.count());
        let pixels = match &self.transform {
            Some(transform) if row == converted_row => {
                convert_in_place(&mut data, row, &**transform);
                None
            }
            Some(transform) => converted(&data, row, converted_row, &**transform),
            None => None,
        };
        let pixels = pixels.or_else(|| untagged(self.samples, &data));
        Picture::made(size, channels, pixels.unwrap_or(data))
    }
}

/// The conversion that a profile requires; `None` if nothing must or can be done.
fn transform(icc: &[u8], samples: Samples) -> Option<Arc<Transform8BitExecutor>> {
    let profile = ColorProfile::new_from_slice(icc).ok()?;
    let (space, from, to) = match samples {
        Samples::Grey => (DataColorSpace::Gray, Layout::Gray, Layout::Rgb),
        Samples::GreyAlpha => (DataColorSpace::Gray, Layout::GrayAlpha, Layout::Rgba),
        Samples::Rgb => (DataColorSpace::Rgb, Layout::Rgb, Layout::Rgb),
        Samples::Rgba => (DataColorSpace::Rgb, Layout::Rgba, Layout::Rgba),
        // CMYK uses the layout with four channels.
        Samples::Cmyk => (DataColorSpace::Cmyk, Layout::Rgba, Layout::Rgb),
    };
    if profile.color_space != space {
        return None;
    }
    let transform =
        profile.create_transform_8bit(from, &ColorProfile::new_srgb(), to, TransformOptions::default()).ok()?;
    let idle = matches!(samples, Samples::Rgb | Samples::Rgba) && changes_nothing(&*transform, samples.count());
    (!idle).then_some(transform)
}

/// The maximum difference, per sample, between sRGB and the profiles that are found for it: their
/// primaries and curves are rounded. Another color space changes samples by tens.
const SRGB_ROUNDING: u8 = 2;

/// Whether a transform leaves a lattice of colors unchanged, apart from rounding.
fn changes_nothing(transform: &Transform8BitExecutor, channels: usize) -> bool {
    const STEPS: [u8; 8] = [0, 13, 51, 90, 128, 179, 217, 255];
    let mut lattice = Vec::with_capacity(STEPS.len().pow(3) * channels);
    for r in STEPS {
        for g in STEPS {
            for b in STEPS {
                lattice.extend(&[r, g, b, 255][..channels]);
            }
        }
    }
    let mut moved = vec![0; lattice.len()];
    transform.transform(&lattice, &mut moved).is_ok()
        && lattice.iter().zip(&moved).all(|(before, after)| before.abs_diff(*after) <= SRGB_ROUNDING)
}

/// Applies a transform to all rows, without a copy of the picture. The rows stay as they are if it fails,
/// which a profile can only cause at the first row.
fn convert_in_place(data: &mut [u8], row: usize, transform: &Transform8BitExecutor) {
    let mut from = vec![0; row];
    for to in data.chunks_exact_mut(row) {
        from.copy_from_slice(to);
        if transform.transform(&from, to).is_err() {
            to.copy_from_slice(&from);
            return;
        }
    }
}

/// Applies a transform to all rows. `None` if it fails, which a profile can only cause at the first
/// row.
fn converted(data: &[u8], row: usize, converted_row: usize, transform: &Transform8BitExecutor) -> Option<Vec<u8>> {
    let mut pixels = vec![0; data.len() / row * converted_row];
    for (from, to) in data.chunks_exact(row).zip(pixels.chunks_exact_mut(converted_row)) {
        transform.transform(from, to).ok()?;
    }
    Some(pixels)
}

/// Converts samples without a profile: gray is repeated, and ink absorbs light in each channel.
/// `None` if the samples are already colors.
fn untagged(samples: Samples, data: &[u8]) -> Option<Vec<u8>> {
    match samples {
        Samples::Rgb | Samples::Rgba => None,
        Samples::Grey => Some(data.iter().flat_map(|grey| [*grey; 3]).collect()),
        Samples::GreyAlpha => {
            Some(data.as_chunks().0.iter().flat_map(|[grey, alpha]| [*grey, *grey, *grey, *alpha]).collect())
        }
        Samples::Cmyk => {
            let light = |ink: u8, black: u8| {
                let product = u32::from(255 - ink) * u32::from(255 - black);
                ((product + 127) / 255) as u8
            };
            let pixels = data.as_chunks().0.iter();
            Some(pixels.flat_map(|[c, m, y, k]| [light(*c, *k), light(*m, *k), light(*y, *k)]).collect())
        }
    }
}
