//! Converts stored samples to sRGB.
//!
//! The code points of a PNG are used, otherwise the embedded ICC profile, if it is readable and
//! matches the kind of the samples; otherwise it is ignored. Most profiles describe sRGB itself.
//! They are detected with a lattice of colors, so that the pixels need no conversion.

use moxcms::{
    CicpColorPrimaries, CicpProfile, ColorProfile, DataColorSpace, Layout, LutDataType, LutType, LutWarehouse,
    MatrixCoefficients, RenderingIntent, ToneReprCurve, TransferCharacteristics, Transform8BitExecutor,
    TransformOptions,
};
use std::sync::Arc;

use super::{Raw, Samples};
use crate::bitmap::{Bitmap, Channels};
use crate::geometry::Size;
use crate::header::CodePoints;

pub(crate) fn convert(raw: Raw, code_points: Option<CodePoints>) -> Bitmap {
    let conversion = match code_points {
        Some(points) => Conversion { samples: raw.samples, transform: coded(points, raw.samples) },
        None => Conversion::new(raw.icc.as_deref(), raw.samples),
    };
    conversion.apply(raw.size, raw.data)
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

    /// Converts samples of size `size`. The result does not depend on how an image is divided into
    /// rows.
    pub(super) fn apply(&self, size: Size, mut data: Vec<u8>) -> Bitmap {
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
        Bitmap::made(size, channels, pixels.unwrap_or(data))
    }
}

/// The conversion that an ICC profile requires; `None` if nothing must or can be done.
fn transform(icc: &[u8], samples: Samples) -> Option<Arc<Transform8BitExecutor>> {
    let profile = ColorProfile::new_from_slice(icc).ok()?;
    match (profile.color_space, samples) {
        (DataColorSpace::Gray, Samples::Grey | Samples::GreyAlpha) => grey(profile, samples),
        (DataColorSpace::Rgb, Samples::Rgb | Samples::Rgba) => rgb(&profile, samples),
        (DataColorSpace::Cmyk, Samples::Cmyk) => inks(&profile, icc),
        _ => None,
    }
}

/// The conversion that the code points of a PNG require; `None` if they state sRGB.
fn coded(points: CodePoints, samples: Samples) -> Option<Arc<Transform8BitExecutor>> {
    let mut profile = ColorProfile::new_from_cicp(CicpProfile {
        color_primaries: CicpColorPrimaries::try_from(points.primaries).ok()?,
        transfer_characteristics: TransferCharacteristics::try_from(points.transfer).ok()?,
        matrix_coefficients: MatrixCoefficients::Identity,
        full_range: true,
    });
    match samples {
        // The white of the primaries becomes that of sRGB, so the transfer function alone counts for gray.
        Samples::Grey | Samples::GreyAlpha => {
            profile.color_space = DataColorSpace::Gray;
            profile.gray_trc = profile.red_trc.clone();
            grey(profile, samples)
        }
        _ => rgb(&profile, samples),
    }
}

fn rgb(profile: &ColorProfile, samples: Samples) -> Option<Arc<Transform8BitExecutor>> {
    let layout = if samples == Samples::Rgb { Layout::Rgb } else { Layout::Rgba };
    let srgb = ColorProfile::new_srgb();
    let transform = profile.create_transform_8bit(layout, &srgb, layout, TransformOptions::default()).ok()?;
    (!changes_nothing(&*transform, samples.count())).then_some(transform)
}

/// Gray is converted by the curve of its profile. With the connection space Lab, the curve gives the lightness
/// (ICC.1:2022, F.2).
fn grey(mut profile: ColorProfile, samples: Samples) -> Option<Arc<Transform8BitExecutor>> {
    profile.lut_a_to_b_perceptual = None;
    profile.lut_a_to_b_colorimetric = None;
    profile.lut_a_to_b_saturation = None;
    if profile.pcs == DataColorSpace::Lab {
        let lightness = profile.gray_trc.as_ref()?.make_linear_evaluator().ok()?;
        let luminance = (0..=255).map(|sample| luminance(100.0 * lightness.evaluate_value(sample as f32 / 255.0)));
        let table = luminance.map(|luminance| (luminance * 65535.0).round() as u16).collect();
        profile.gray_trc = Some(ToneReprCurve::Lut(table));
        profile.pcs = DataColorSpace::Xyz;
    }
    let (from, to) = match samples {
        Samples::Grey => (Layout::Gray, Layout::Rgb),
        _ => (Layout::GrayAlpha, Layout::Rgba),
    };
    profile.create_transform_8bit(from, &ColorProfile::new_srgb(), to, TransformOptions::default()).ok()
}

/// The luminance Y of a lightness L* (CIE 15, 8.2.1), from 0 to 1.
fn luminance(lightness: f32) -> f32 {
    let root = (lightness + 16.0) / 116.0;
    if root > 6.0 / 29.0 { root * root * root } else { (root - 4.0 / 29.0) * 108.0 / 841.0 }
}

/// Inks are converted relative to the white of the paper, and with black point compensation.
///
/// The compensation (ISO 18619) scales XYZ so that the black point becomes the black of sRGB, which is 0, and white
/// stays. The black point is neutral, so this is the same in linear sRGB: a channel `v` becomes
/// `(v - black) / (1 - black)`, and the curve of sRGB with the inverse of it is used for the result.
fn inks(profile: &ColorProfile, icc: &[u8]) -> Option<Arc<Transform8BitExecutor>> {
    // The library takes the coding of Lab from the version of the profile; only `mft2` tables have that of version 2
    // (ICC.1:2022, 6.3.4.2 and 10.10).
    let table = profile.lut_a_to_b_colorimetric.as_ref().or(profile.lut_a_to_b_perceptual.as_ref())?;
    let is_legacy = matches!(table, LutWarehouse::Lut(LutDataType { lut_type: LutType::Lut16, .. }));
    let mut icc = icc.to_vec();
    *icc.get_mut(8)? = if is_legacy { 2 } else { 4 };
    let mut profile = ColorProfile::new_from_slice(&icc).ok()?;
    if profile.lut_a_to_b_colorimetric.is_none() {
        // The first table is for all intents that have none (ICC.1:2022, 9.2.1).
        profile.lut_a_to_b_colorimetric = profile.lut_a_to_b_perceptual.clone();
    }
    let intent = TransformOptions { rendering_intent: RenderingIntent::RelativeColorimetric, ..Default::default() };
    let black = black_point(&profile, intent).unwrap_or(0.0);
    // sRGB (IEC 61966-2-1) as a parametric curve of type 4: g, a, b, c, d, e, f (ICC.1:2022, 10.18).
    let scale = libm::powf(1.0 - black, 1.0 / 2.4);
    let linear = (1.0 - black) / 12.92;
    let curve = vec![2.4, scale / 1.055, scale * 0.055 / 1.055, linear, 0.04045, black, black];
    // CMYK uses the layout with four channels.
    profile.create_transform_8bit(Layout::Rgba, &srgb_with(ToneReprCurve::Parametric(curve)), Layout::Rgb, intent).ok()
}

/// The luminance of the black point of inks: of the color that they print for black with the perceptual intent, as
/// LittleCMS finds it for printers (`cmsDetectBlackPoint`); at most that of the lightness 50. `None` if the profile does
/// not say what is printed for black.
fn black_point(profile: &ColorProfile, intent: TransformOptions) -> Option<f32> {
    profile.lut_a_to_b_perceptual.as_ref()?;
    let perceptual = TransformOptions { rendering_intent: RenderingIntent::Perceptual, ..intent };
    let print = ColorProfile::new_srgb().create_transform_8bit(Layout::Rgb, profile, Layout::Rgba, perceptual).ok()?;
    let mut inks = [0; 4];
    print.transform(&[0; 3], &mut inks).ok()?;
    let linear = srgb_with(ToneReprCurve::Lut(vec![]));
    let mut light = [0.0; 3];
    let to_light = profile.create_transform_f32(Layout::Rgba, &linear, Layout::Rgb, intent).ok()?;
    to_light.transform(&inks.map(|ink| f32::from(ink) / 255.0), &mut light).ok()?;
    let black: f64 = linear.rgb_to_xyz_matrix().v[1].iter().zip(light).map(|(y, light)| y * f64::from(light)).sum();
    Some((black as f32).clamp(0.0, luminance(50.0)))
}

/// The primaries of sRGB with another curve.
fn srgb_with(curve: ToneReprCurve) -> ColorProfile {
    let mut profile = ColorProfile::new_srgb();
    // Its transfer function would be used instead of the curves.
    profile.cicp = None;
    profile.red_trc = Some(curve.clone());
    profile.green_trc = Some(curve.clone());
    profile.blue_trc = Some(curve);
    profile
}

/// The maximum difference, per sample, between sRGB and the profiles that are found for it: their
/// primaries and curves are rounded. Another color space changes samples by tens.
const SRGB_ROUNDING: u8 = 2;

/// Returns `true` if a transform leaves a lattice of colors unchanged, apart from rounding.
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

/// Applies a transform to all rows, without a copy of the image. The rows stay as they are if it fails,
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
