//! Blending of two images (W3C Compositing and Blending Level 1, sections 5.1, 9.1.4 and 10.1) in
//! sRGB.
//!
//! With backdrop `Cb`, `αb` and source `Cs`, `αs`: `Cs' = (1 - αb)·Cs + αb·B(Cb, Cs)`, `αo = αs +
//! αb·(1 - αs)` and `co = αs·Cs' + (1 - αs)·αb·Cb`, premultiplied by `αo`.

use std::str::FromStr;

use crate::bitmap::{Bitmap, Channels};
use crate::geometry::ParseError;

/// A separable blend mode (section 9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Blend {
    /// `Cs`.
    #[default]
    Normal,
    /// `Cb·Cs`.
    Multiply,
    /// `Cb + Cs - Cb·Cs`.
    Screen,
    /// Multiply where the backdrop is dark, screen where it is bright.
    Overlay,
    /// `min(Cb, Cs)`.
    Darken,
    /// `max(Cb, Cs)`.
    Lighten,
}

impl FromStr for Blend {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "normal" => Ok(Self::Normal),
            "multiply" => Ok(Self::Multiply),
            "screen" => Ok(Self::Screen),
            "overlay" => Ok(Self::Overlay),
            "darken" => Ok(Self::Darken),
            "lighten" => Ok(Self::Lighten),
            _ => Err(ParseError),
        }
    }
}

impl Blend {
    /// The blend function `B(Cb, Cs)` for values from 0 to 1.
    fn apply(self, backdrop: f32, source: f32) -> f32 {
        match self {
            Self::Normal => source,
            Self::Multiply => backdrop * source,
            Self::Screen => backdrop + source - backdrop * source,
            Self::Overlay if backdrop <= 0.5 => source * 2.0 * backdrop,
            Self::Overlay => Self::Screen.apply(2.0 * backdrop - 1.0, source),
            Self::Darken => backdrop.min(source),
            Self::Lighten => backdrop.max(source),
        }
    }
}

/// Blends `layer`, whose alpha is multiplied by `opacity` percent, over an image with its top left
/// pixel at `place`. It must lie within the image. `band` contains rows of that image from row
/// `first` onwards.
pub(super) fn mix(band: &mut Bitmap, first: u32, layer: &Bitmap, place: (u32, u32), opacity: f64, blend: Blend) {
    let opacity = (opacity / 100.0) as f32;
    let is_copy = opacity == 1.0 && blend == Blend::Normal;
    let (stride, count) = (band.stride(), band.channels().count());
    let left = place.0 as usize * count;
    // The rows of the band above the layer, and the rows of the layer above the band.
    let (above, passed) = (place.1.saturating_sub(first) as usize, first.saturating_sub(place.1) as usize);
    let layer_count = layer.channels().count();
    let rows = band.pixels_mut().chunks_exact_mut(stride).skip(above);
    for (row, source) in rows.zip(layer.pixels().chunks_exact(layer.stride()).skip(passed)) {
        let pixels = row[left..].chunks_exact_mut(count).zip(source.chunks_exact(layer_count));
        for (pixel, source) in pixels {
            let alpha = if layer.channels() == Channels::Rgba { source[3] } else { 255 };
            if is_copy && alpha == 255 {
                pixel[..3].copy_from_slice(&source[..3]);
                if let Some(below) = pixel.get_mut(3) {
                    *below = 255;
                }
            } else if alpha > 0 {
                mix_pixel(pixel, source, f32::from(alpha) / 255.0 * opacity, blend);
            }
        }
    }
}

fn mix_pixel(pixel: &mut [u8], source: &[u8], source_alpha: f32, blend: Blend) {
    let below_alpha = pixel.get(3).map_or(1.0, |alpha| f32::from(*alpha) / 255.0);
    let alpha = source_alpha + below_alpha * (1.0 - source_alpha);
    if alpha <= 0.0 {
        return;
    }
    for (sample, source) in pixel[..3].iter_mut().zip(source) {
        let (below, source) = (f32::from(*sample) / 255.0, f32::from(*source) / 255.0);
        let blended = (1.0 - below_alpha) * source + below_alpha * blend.apply(below, source);
        let mixed = source_alpha * blended + (1.0 - source_alpha) * below_alpha * below;
        *sample = level(mixed / alpha);
    }
    if let Some(below) = pixel.get_mut(3) {
        *below = level(alpha);
    }
}

/// Rounds to the nearest of 256 levels.
fn level(value: f32) -> u8 {
    (value * 255.0 + 0.5).clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Size;

    fn mixed(below: [u8; 4], source: [u8; 4], opacity: f64, blend: Blend) -> [u8; 4] {
        let size = Size::new(1, 1);
        let mut image = Bitmap::new(size, Channels::Rgba, below.to_vec()).unwrap();
        let layer = Bitmap::new(size, Channels::Rgba, source.to_vec()).unwrap();
        mix(&mut image, 0, &layer, (0, 0), opacity, blend);
        image.pixel(0, 0).unwrap()
    }

    #[test]
    fn opaque_colours_blend_as_the_standard_says() {
        let (below, source) = ([51, 102, 204, 255], [102, 204, 51, 255]);
        for (blend, expected) in [
            (Blend::Normal, [102, 204, 51]),
            // 0.2·0.4, 0.4·0.8, 0.8·0.2
            (Blend::Multiply, [20, 82, 41]),
            // 0.6 - 0.08, 1.2 - 0.32, 1.0 - 0.16
            (Blend::Screen, [133, 224, 214]),
            // 2·0.08, 2·0.32, screen(0.6, 0.2) = 0.68
            (Blend::Overlay, [41, 163, 173]),
            (Blend::Darken, [51, 102, 51]),
            (Blend::Lighten, [102, 204, 204]),
        ] {
            assert_eq!(mixed(below, source, 100.0, blend)[..3], expected, "{blend:?}");
        }
    }

    #[test]
    fn alpha_is_mixed_as_the_standard_says() {
        // αo = 0.5 + 0.5·0.5; co = 0.5·Cs + 0.25·Cb.
        assert_eq!(mixed([255, 0, 0, 128], [0, 0, 255, 128], 100.0, Blend::Normal), [85, 0, 170, 192]);
        assert_eq!(
            mixed([0, 0, 0, 0], [9, 8, 7, 200], 100.0, Blend::Multiply),
            [9, 8, 7, 200],
            "nothing to blend with"
        );
        assert_eq!(mixed([1, 2, 3, 255], [9, 8, 7, 0], 100.0, Blend::Normal), [1, 2, 3, 255]);
        assert_eq!(mixed([0, 0, 0, 255], [255, 255, 255, 255], 50.0, Blend::Normal), [128, 128, 128, 255]);
        assert_eq!(mixed([1, 2, 3, 255], [255, 255, 255, 255], 0.0, Blend::Normal), [1, 2, 3, 255]);
        assert_eq!(mixed([1, 2, 3, 77], [9, 9, 9, 255], 100.0, Blend::Normal), [9, 9, 9, 255]);
    }
}
