//! Colors in the syntax of the Actions' parameters.

use std::str::FromStr;

use crate::geometry::ParseError;

/// An sRGB color with straight (not premultiplied) alpha and 8 bits per channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Color {
    /// Red, 0 to 255.
    pub r: u8,
    /// Green, 0 to 255.
    pub g: u8,
    /// Blue, 0 to 255.
    pub b: u8,
    /// Alpha, 0 (transparent) to 255 (opaque).
    pub a: u8,
}

impl Color {
    /// Opaque white.
    pub const WHITE: Self = Self { r: 255, g: 255, b: 255, a: 255 };
    /// Transparent black (`#00000000`), the default background of `resize`.
    pub const TRANSPARENT: Self = Self { r: 0, g: 0, b: 0, a: 0 };

    /// Returns `true` if alpha is 255.
    pub fn is_opaque(self) -> bool {
        self.a == 255
    }

    /// Red, green and blue, without alpha.
    pub fn rgb(self) -> [u8; 3] {
        [self.r, self.g, self.b]
    }

    /// Red, green, blue and alpha.
    pub fn rgba(self) -> [u8; 4] {
        [self.r, self.g, self.b, self.a]
    }

    /// The color on which a JPEG is flattened: this color when it is opaque, otherwise white.
    pub fn flattening(self) -> Self {
        if self.is_opaque() { self } else { Self::WHITE }
    }
}

impl FromStr for Color {
    type Err = ParseError;

    /// Parses `#rgb`, `#rrggbb` or `#rrggbbaa`, with digits of either case.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let digits = text.strip_prefix('#').ok_or(ParseError)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ParseError);
        }
        let value = u32::from_str_radix(digits, 16).map_err(|_| ParseError)?;
        let [b3, b2, b1, b0] = value.to_be_bytes();
        match digits.len() {
            3 => {
                let doubled = |shift: u32| ((value >> shift) & 0xf) as u8 * 0x11;
                Ok(Self { r: doubled(8), g: doubled(4), b: doubled(0), a: 255 })
            }
            6 => Ok(Self { r: b2, g: b1, b: b0, a: 255 }),
            8 => Ok(Self { r: b3, g: b2, b: b1, a: b0 }),
            _ => Err(ParseError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_spellings_are_read() {
        assert_eq!("#f80".parse(), Ok(Color { r: 255, g: 136, b: 0, a: 255 }));
        assert_eq!("#FF8000".parse(), Ok(Color { r: 255, g: 128, b: 0, a: 255 }));
        assert_eq!("#01020304".parse(), Ok(Color { r: 1, g: 2, b: 3, a: 4 }));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "#", "f80", "#ff", "#ffff", "#fffff", "#fffffff", "#fffffffff", "#ggg", "#+12", "#ééé", " #fff"]
        {
            assert_eq!(text.parse::<Color>(), Err(ParseError), "{text}");
        }
    }

    #[test]
    fn jpeg_is_flattened_on_an_opaque_colour_or_on_white() {
        let red = Color { r: 255, g: 0, b: 0, a: 255 };
        assert_eq!(red.flattening(), red);
        assert_eq!(Color { a: 254, ..red }.flattening(), Color::WHITE);
        assert_eq!(Color::TRANSPARENT.flattening(), Color::WHITE);
    }
}
