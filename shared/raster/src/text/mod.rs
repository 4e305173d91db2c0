//! Text: Unicode text laid out with the bundled fonts, measured, and drawn into an image
//! (`docs/reference/actions.md#text-shaping`).
//!
//! **Guarantee.** Every character is visible: a character that no bundled font contains is drawn as
//! a box. Nothing is dropped and nothing fails. Equal text, style and image give equal pixels,
//! whatever fonts the machine has, whatever ran before, and on any number of threads. Time and
//! memory grow with the text and with the pixels it touches.
//!
//! **Mechanism.** [`layout()`] splits the text into paragraphs, orders each by the bidirectional
//! algorithm (UAX 9), breaks it where UAX 14 permits it (between grapheme clusters if a single word
//! is too wide), assigns every grapheme cluster a font that contains all of it, and shapes each
//! finished line with HarfBuzz's algorithm. A [`Layout`] knows its size and can be
//! [drawn](Layout::draw): outlines are flattened once and their exact coverage of each pixel is
//! accumulated in bands. All plain glyphs form one shape, so that overlapping or joined letters
//! show no seams. Emoji are layered color outlines.
//!
//! **Reason.** Established crates provide shaping, bidi and line breaking. This module combines
//! them because a line must be shaped after it was broken, must fall back by grapheme cluster and
//! must never panic on foreign text. Without editing, hinting and caching this takes little code.

mod caption;
mod coverage;
mod fonts;
mod layout;
mod outline;
mod paint;
mod shape;

pub use caption::{Caption, PlacedCaption, add_text, change};
pub(crate) use fonts::family_for;
pub use fonts::{Family, Font, Weight, fonts};
pub use layout::{Align, Layout, Style, is_right_to_left, layout, layout_lines, line_breaks};
pub use paint::{Ink, Stroke, fill_path, fill_rect, lay_clipped};

#[cfg(test)]
mod tests;
