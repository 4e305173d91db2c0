//! Perceptual colors: Oklab (B. Ottosson, "A perceptual color space for image processing", 2020).
//!
//! Roots and powers use `libm`, so that a color is identical on every machine.

use std::sync::LazyLock;

use raster::Color;

/// A color as lightness (0 to 1) and two axes: green to red and blue to yellow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Oklab {
    pub(super) l: f64,
    pub(super) a: f64,
    pub(super) b: f64,
}

/// The number of bisection steps to find the largest chroma within sRGB, to a thousandth.
const HALVINGS: usize = 10;

impl Oklab {
    /// A color from lightness, chroma and hue, with the hue in turns (0 to 1).
    pub(super) fn polar(l: f64, chroma: f64, hue: f64) -> Self {
        let (sin, cos) = libm::sincos(hue * std::f64::consts::TAU);
        Self { l, a: chroma * cos, b: chroma * sin }
    }

    pub(super) fn from_rgb(rgb: [u8; 3]) -> Self {
        let [r, g, b] = rgb.map(|sample| LINEAR[usize::from(sample)]);
        let long = libm::cbrt(0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b);
        let middle = libm::cbrt(0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b);
        let short = libm::cbrt(0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b);
        Self {
            l: 0.210_454_255_3 * long + 0.793_617_785_0 * middle - 0.004_072_046_8 * short,
            a: 1.977_998_495_1 * long - 2.428_592_205_0 * middle + 0.450_593_709_9 * short,
            b: 0.025_904_037_1 * long + 0.782_771_766_2 * middle - 0.808_675_766_0 * short,
        }
    }

    /// The sRGB color. The chroma of a color outside of sRGB is reduced until it is inside.
    pub(super) fn color(self) -> Color {
        let l = self.l.clamp(0.0, 1.0);
        let with = |share: f64| Self { l, a: self.a * share, b: self.b * share }.linear();
        let is_shown = |light: [f64; 3]| light.iter().all(|value| (-1e-4..=1.0001).contains(value));
        let mut light = with(1.0);
        if !is_shown(light) {
            let (mut shown, mut beyond) = (0.0, 1.0);
            for _ in 0..HALVINGS {
                let middle = (shown + beyond) / 2.0;
                match is_shown(with(middle)) {
                    true => shown = middle,
                    false => beyond = middle,
                }
            }
            light = with(shown);
        }
        let [r, g, b] = light.map(encoded);
        Color { r, g, b, a: 255 }
    }

    fn linear(self) -> [f64; 3] {
        let cube = |value: f64| value * value * value;
        let long = cube(self.l + 0.396_337_777_4 * self.a + 0.215_803_757_3 * self.b);
        let middle = cube(self.l - 0.105_561_345_8 * self.a - 0.063_854_172_8 * self.b);
        let short = cube(self.l - 0.089_484_177_5 * self.a - 1.291_485_548_0 * self.b);
        [
            4.076_741_662_1 * long - 3.307_711_591_3 * middle + 0.230_969_929_2 * short,
            -1.268_438_004_6 * long + 2.609_757_401_1 * middle - 0.341_319_396_5 * short,
            -0.004_196_086_3 * long - 0.703_418_614_7 * middle + 1.707_614_701_0 * short,
        ]
    }

    /// Distance from gray.
    pub(super) fn chroma(self) -> f64 {
        (self.a * self.a + self.b * self.b).sqrt()
    }

    /// The same hue with another lightness and at most this chroma.
    pub(super) fn toned(self, l: f64, chroma_max: f64) -> Self {
        let share = if self.chroma() > chroma_max { chroma_max / self.chroma() } else { 1.0 };
        Self { l, a: self.a * share, b: self.b * share }
    }

    /// Interpolates between this color (0) and `other` (1).
    pub(super) fn mixed(self, other: Self, share: f64) -> Self {
        let mix = |from: f64, to: f64| from + (to - from) * share;
        Self { l: mix(self.l, other.l), a: mix(self.a, other.a), b: mix(self.b, other.b) }
    }

    /// The square of the distance to another color.
    pub(super) fn distance(self, other: Self) -> f64 {
        let (l, a, b) = (self.l - other.l, self.a - other.a, self.b - other.b);
        l * l + a * a + b * b
    }
}

/// The linear light of each level (IEC 61966-2-1).
static LINEAR: LazyLock<[f64; 256]> = LazyLock::new(|| {
    std::array::from_fn(|level| {
        let value = level as f64 / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) }
    })
});

/// The nearest level of a linear light value.
fn encoded(light: f64) -> u8 {
    let light = light.clamp(0.0, 1.0);
    let value = if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * libm::pow(light, 1.0 / 2.4) - 0.055 };
    (value * 255.0 + 0.5) as u8
}

/// Contrast ratio of two colors, 1 to 21 (WCAG 2.2).
pub(super) fn contrast(one: Color, other: Color) -> f64 {
    let luminance = |color: Color| {
        let [r, g, b] = color.rgb().map(|sample| LINEAR[usize::from(sample)]);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    if one > other { one / other } else { other / one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_values_are_met() {
        for (rgb, l, a, b) in [
            ([255, 255, 255], 1.0, 0.0, 0.0),
            ([0, 0, 0], 0.0, 0.0, 0.0),
            ([255, 0, 0], 0.627_96, 0.224_86, 0.125_85),
            ([0, 255, 0], 0.866_44, -0.233_89, 0.179_50),
            ([0, 0, 255], 0.452_01, -0.032_46, -0.311_53),
        ] {
            let color = Oklab::from_rgb(rgb);
            assert!(
                (color.l - l).abs() < 1e-4 && (color.a - a).abs() < 1e-4 && (color.b - b).abs() < 1e-4,
                "{color:?}"
            );
        }
    }

    #[test]
    fn every_shown_color_comes_back() {
        for r in (0..=255).step_by(15) {
            for g in (0..=255).step_by(17) {
                for b in (0..=255).step_by(51) {
                    assert_eq!(Oklab::from_rgb([r, g, b]).color().rgb(), [r, g, b]);
                }
            }
        }
    }

    #[test]
    fn what_no_screen_has_keeps_lightness_and_hue() {
        for hue in 0..24 {
            let wished = Oklab::polar(0.6, 0.5, f64::from(hue) / 24.0);
            let shown = Oklab::from_rgb(wished.color().rgb());
            assert!((shown.l - 0.6).abs() < 0.01, "{shown:?}");
            let cosine = (shown.a * wished.a + shown.b * wished.b) / (shown.chroma() * wished.chroma());
            assert!(cosine > 0.99, "{shown:?} of {wished:?}");
        }
    }
}
