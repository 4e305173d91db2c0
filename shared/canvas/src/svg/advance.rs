//! Estimated text widths, without a font engine.
//!
//! Advances of ASCII are those of Noto Sans, the font with which renders are rasterized and one of the widest that
//! browsers choose. All other characters have an advance by class. The sum is an estimate: if a line is slightly wider
//! in another font, the frame's padding and clip absorb the difference.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Advances in thousandths of an em, from U+0020 to U+007E, in Noto Sans Regular.
const ASCII: [u16; 95] = [
    260, 269, 408, 646, 572, 831, 732, 225, 300, 300, 551, 572, 268, 322, 268, 372, 572, 572, 572, 572, 572, 572, 572,
    572, 572, 572, 268, 268, 572, 572, 572, 434, 899, 639, 650, 632, 730, 556, 519, 728, 741, 339, 273, 619, 524, 907,
    760, 781, 605, 781, 622, 549, 556, 731, 600, 930, 586, 566, 572, 329, 372, 329, 572, 444, 281, 561, 615, 480, 615,
    564, 344, 615, 618, 258, 258, 534, 258, 935, 618, 605, 615, 615, 413, 479, 361, 618, 508, 786, 529, 510, 470, 380,
    551, 380, 572,
];

/// Factor by which bold letters of Noto Sans are wider, at most.
const BOLD: f64 = 1.07;

/// A size and weight of the sans family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Face {
    /// Font size, in canvas units.
    pub size: f64,
    /// `true` if it is bold.
    pub bold: bool,
}

impl Face {
    pub(super) const fn regular(size: f64) -> Self {
        Self { size, bold: false }
    }

    pub(super) const fn bold(size: f64) -> Self {
        Self { size, bold: true }
    }

    /// The width of one grapheme cluster, in canvas units.
    pub(super) fn cluster(self, cluster: &str) -> f64 {
        match cluster.as_bytes() {
            [byte] if is_printable(*byte) => self.byte(*byte),
            _ => self.units(other(cluster)),
        }
    }

    /// The width of a text, in canvas units: the sum over its grapheme clusters.
    pub(super) fn text(self, text: &str) -> f64 {
        // Each of these characters is a cluster (UAX 29), and most texts consist of them.
        if text.bytes().all(is_printable) {
            return text.bytes().map(|byte| self.byte(byte)).sum();
        }
        text.graphemes(true).map(|cluster| self.cluster(cluster)).sum()
    }

    /// The width of a printable character of ASCII.
    fn byte(self, byte: u8) -> f64 {
        self.units(f64::from(ASCII[usize::from(byte - b' ')]) / 1000.0)
    }

    fn units(self, ems: f64) -> f64 {
        ems * self.size * if self.bold { BOLD } else { 1.0 }
    }
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Width of a cluster outside of ASCII, in ems.
fn other(cluster: &str) -> f64 {
    let Some(first) = cluster.chars().next() else { return 0.0 };
    match first {
        // The replacement character, and characters that the fonts draw as a box.
        '\u{fffd}' | '\u{e000}'..='\u{f8ff}' => 1.0,
        // Emoji, one image for any number of characters, and symbols that are drawn like emoji.
        '\u{1f000}'.. if cluster.width() > 0 && !ideographic(first) => 1.25,
        // Two letters with marks can form one cluster; every base counts.
        _ => cluster.chars().map(of_char).sum(),
    }
}

fn ideographic(c: char) -> bool {
    matches!(c, '\u{20000}'..='\u{3ffff}')
}

fn of_char(c: char) -> f64 {
    match (c, c.width()) {
        (_, Some(0) | None) => 0.0,
        (_, Some(2)) => 1.0,
        (' '..='~', _) => f64::from(ASCII[c as usize - 0x20]) / 1000.0,
        ('\u{2013}' | '\u{2018}'..='\u{201f}' | '\u{00b7}', _) => 0.5,
        ('\u{2014}' | '\u{2026}' | '\u{2190}'..='\u{2bff}', _) => 1.0,
        // Arabic and related scripts: short joined forms.
        ('\u{0600}'..='\u{08ff}' | '\u{fb50}'..='\u{fefc}', _) => 0.6,
        // The scripts of South and South-East Asia and Ethiopia: wide, in Noto up to one em on average.
        ('\u{0900}'..='\u{0dff}' | '\u{1000}'..='\u{137f}', _) => 0.85,
        _ if c.is_uppercase() => 0.72,
        _ => 0.6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ems(cluster: &str) -> f64 {
        Face::regular(1.0).cluster(cluster)
    }

    #[test]
    fn widths_go_by_letter_and_class() {
        assert_eq!((ems("i"), ems("W"), ems(" "), ems("~")), (0.258, 0.93, 0.26, 0.572));
        assert_eq!((ems("漢"), ems("ア"), ems("한"), ems("𠀀")), (1.0, 1.0, 1.0, 1.0));
        assert_eq!((ems("👩‍👩‍👧‍👦"), ems("😀"), ems("🇩🇪")), (1.25, 1.25, 1.25));
        assert_eq!((ems("é"), ems("É"), ems("ش"), ems("\u{fffd}")), (0.6, 0.72, 0.6, 1.0));
        assert_eq!((ems("e\u{301}\u{301}"), ems("\u{200b}"), ems("\u{301}")), (0.564, 0.0, 0.0));
    }

    #[test]
    fn a_text_is_as_wide_as_its_clusters() {
        let face = Face::bold(15.0);
        for text in
            ["", " ", "A note, as people write them ~", "na\u{ef}ve", "e\u{301} and \u{1f600}", "a\r\nb", "\u{7f}"]
        {
            let clusters: f64 = text.graphemes(true).map(|cluster| face.cluster(cluster)).sum();
            assert_eq!(face.text(text).to_bits(), clusters.to_bits(), "{text:?}");
        }
    }

    #[test]
    fn size_and_weight_count() {
        assert_eq!(Face::regular(10.0).cluster("i"), 2.58);
        assert!(Face::bold(10.0).cluster("i") > 2.58);
    }
}
