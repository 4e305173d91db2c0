//! Characters, numbers and texts in an XML document.

use std::fmt::{self, Write};

/// Drawn instead of characters that XML forbids (`docs/reference/canvases.md#text-in-a-render`).
pub(super) const REPLACEMENT: char = '\u{fffd}';

/// `c`, or U+FFFD if XML 1.0 does not allow it (XML 1.0, production 2).
pub(super) fn legal(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => c,
        _ => REPLACEMENT,
    }
}

/// Appends `text`, escaped for character data and attribute values.
pub(super) fn escape(out: &mut String, text: &str) {
    for c in text.chars().map(legal) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// Most bytes that [`escape`] produces for one character.
pub(super) const ESCAPED_MAX: usize = 6;

/// A number with two decimals in its shortest form: finer than any screen resolves.
#[derive(Clone, Copy)]
pub(super) struct Num(pub f64);

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Printing integers takes a fraction of the time that it takes to find the shortest form of a float. Lengths on a
        // canvas are far from the bounds of an integer.
        let hundredths = (self.0 * 100.0).round() as i64;
        let sign = if hundredths < 0 { "-" } else { "" };
        let (whole, part) = (hundredths.unsigned_abs() / 100, hundredths.unsigned_abs() % 100);
        match (part, part % 10) {
            (0, _) => write!(f, "{sign}{whole}"),
            (_, 0) => write!(f, "{sign}{whole}.{}", part / 10),
            _ => write!(f, "{sign}{whole}.{part:02}"),
        }
    }
}

/// `write!` into a `String`, which cannot fail.
macro_rules! put {
    ($out:expr, $($argument:tt)*) => {
        std::fmt::Write::write_fmt($out, format_args!($($argument)*)).expect("a String takes everything")
    };
}
pub(super) use put;

/// A color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    /// Parses `#rrggbb`, and no other form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii())?;
        let part = |from: usize| u8::from_str_radix(&digits[from..from + 2], 16).ok();
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
        Some(Self(part(0)?, part(2)?, part(4)?))
    }

    /// This color mixed with `share` (0 to 1) of `other`.
    pub(super) fn mix(self, other: Self, share: f64) -> Self {
        // Between two bytes, so it fits a byte.
        let part = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
        Self(part(self.0, other.0), part(self.1, other.1), part(self.2, other.2))
    }

    /// Relative luminance, 0 to 1 (WCAG 2.2).
    fn luminance(self) -> f64 {
        let part = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(self.0) + 0.7152 * part(self.1) + 0.0722 * part(self.2)
    }

    /// Contrast ratio of this color on `ground`, 1 to 21 (WCAG 2.2).
    pub(super) fn contrast(self, ground: Self) -> f64 {
        let (a, b) = (self.luminance(), ground.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }
}

impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('#')?;
        write!(f, "{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_what_xml_forbids_is_replaced() {
        let mut out = String::new();
        escape(&mut out, "<script>&'\"\0\u{1b}\u{ffff}\u{fffe}\t\n\u{7f}é😀</script>");
        assert_eq!(out, "&lt;script&gt;&amp;&#39;&quot;\u{fffd}\u{fffd}\u{fffd}\u{fffd}\t\n\u{7f}é😀&lt;/script&gt;");
    }

    #[test]
    fn numbers_have_two_decimals_at_most() {
        let text = |value| Num(value).to_string();
        assert_eq!([text(0.0), text(-0.001), text(1.006), text(-10_000_000.5)], ["0", "0", "1.01", "-10000000.5"]);
    }

    #[test]
    fn colors_have_one_form() {
        assert_eq!(Rgb::parse("#0aFf10"), Some(Rgb(10, 255, 16)));
        assert_eq!(Rgb(10, 255, 16).to_string(), "#0aff10");
        for wrong in ["", "#", "#fff", "0aff10", "#0aff1", "#0aff101", "#+1+1+1", "#ééé", "#zzzzzz"] {
            assert_eq!(Rgb::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn contrast_is_that_of_wcag() {
        assert!((Rgb(0, 0, 0).contrast(Rgb(255, 255, 255)) - 21.0).abs() < 1e-9);
        assert!((Rgb(118, 118, 118).contrast(Rgb(255, 255, 255)) - 4.54).abs() < 0.01);
        assert_eq!(Rgb(0, 0, 0).mix(Rgb(255, 255, 255), 0.5), Rgb(128, 128, 128));
    }
}
