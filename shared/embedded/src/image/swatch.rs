//! Colors in words: hex values and names.

use raster::Color;

use super::oklab::{Oklab, contrast};
use super::palette::{COLORS, Palette};
use super::seed::Seed;

/// The contrast that text needs (WCAG 2.2, level AA).
const READABLE: f64 = 4.5;

/// Below this chroma a color counts as gray.
const GRAY: f64 = 0.02;

/// The hues of the color circle of Oklab, each with its end in degrees.
const HUES: [(f64, &str); 11] = [
    (15.0, "pink"),
    (42.0, "red"),
    (75.0, "orange"),
    (112.0, "yellow"),
    (160.0, "green"),
    (212.0, "teal"),
    (245.0, "sky blue"),
    (282.0, "blue"),
    (312.0, "violet"),
    (345.0, "magenta"),
    (360.0, "pink"),
];

/// Five colors from dark to light that go together, derived from a text.
pub(crate) fn harmony(text: &str) -> [Color; COLORS] {
    Palette::harmony(&mut Seed::from_parts(&[text.as_bytes()])).0.map(Oklab::color)
}

/// The palette of the first five hex values in a text; `None` if there are fewer.
pub(super) fn named(text: &str) -> Option<Palette> {
    let mut colors: Vec<Oklab> = Vec::with_capacity(COLORS);
    for rest in text.split('#').skip(1) {
        let digits = rest.get(..6).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let is_whole = !rest[digits.map_or(0, str::len)..].starts_with(char::is_alphanumeric);
        let value = digits.filter(|_| is_whole).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if let Some([_, r, g, b]) = value.map(u32::to_be_bytes) {
            colors.push(Oklab::from_rgb([r, g, b]));
        }
    }
    colors.truncate(COLORS);
    Some(Palette::sorted(colors.try_into().ok()?))
}

/// The hex value of a color.
pub(crate) fn hex(color: Color) -> String {
    format!("#{:02X}{:02X}{:02X}", color.r, color.g, color.b)
}

/// A name of a color: lightness and hue, such as "Deep teal".
pub(crate) fn hue_name(color: Color) -> String {
    let color = Oklab::from_rgb(color.rgb());
    let tone = match color.l {
        l if l < 0.42 => "Deep",
        l if l < 0.60 => "Strong",
        l if l < 0.74 => "Bright",
        l if l < 0.88 => "Soft",
        _ => "Pale",
    };
    let hue = libm::atan2(color.b, color.a).to_degrees().rem_euclid(360.0);
    let hue = match color.chroma() < GRAY {
        true => "gray",
        false => HUES.iter().find(|(end, _)| hue < *end).map_or(HUES[0].1, |(_, name)| name),
    };
    format!("{tone} {hue}")
}

/// The color of text that is readable on a color. Black or white always is.
pub(crate) fn contrasting(color: Color) -> &'static str {
    if contrast(color, Color::WHITE) >= READABLE { "white" } else { "black" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn color(r: u8, g: u8, b: u8) -> Color {
        Color { r, g, b, a: 255 }
    }

    #[test]
    fn colors_are_named_by_lightness_and_hue() {
        for (rgb, name) in [
            ([200, 30, 30], "Strong red"),
            ([20, 60, 60], "Deep teal"),
            ([250, 240, 180], "Pale yellow"),
            ([30, 60, 200], "Strong blue"),
            ([128, 128, 128], "Strong gray"),
            ([255, 255, 255], "Pale gray"),
            ([120, 200, 120], "Soft green"),
        ] {
            assert_eq!(hue_name(color(rgb[0], rgb[1], rgb[2])), name, "{rgb:?}");
        }
    }

    #[test]
    fn text_is_readable_on_every_color() {
        for r in (0..=255).step_by(15) {
            for g in (0..=255).step_by(15) {
                for b in (0..=255).step_by(51) {
                    let ground = color(r, g, b);
                    let text = if contrasting(ground) == "white" { Color::WHITE } else { color(0, 0, 0) };
                    assert!(contrast(ground, text) >= READABLE, "{ground:?}");
                }
            }
        }
    }

    #[test]
    fn five_hex_values_are_a_palette() {
        let text = "Ink #102030, paper #FFFFFF; #abcdef and #00ff00, #AA0000. #999999";
        let palette = named(text).expect("five");
        assert_eq!(palette.0.map(|color| hex(color.color())), ["#102030", "#AA0000", "#ABCDEF", "#00FF00", "#FFFFFF"]);
        for few in ["", "#", "#12345", "#102030 #1020304 #12345g #ä12345 #102031 #102032 #102033"] {
            assert_eq!(named(few), None, "{few}");
        }
    }

    #[test]
    fn a_harmony_has_the_same_colors_for_the_same_text() {
        assert_eq!(harmony("kites"), harmony("kites"));
        assert_ne!(harmony("kites"), harmony("chairs"));
    }
}
