//! Text: lines set from Unicode text with the bundled fonts, measured, and drawn into a picture (decisions 8.2, 8.3).
//!
//! **Guarantee.** Every character leaves a mark: what no bundled font has is drawn as that font's box, nothing is dropped
//! and nothing fails. The same text, style and picture give the same pixels, whatever the machine has installed, whatever
//! ran before and on however many threads. Cost and memory grow with the text and with the pixels it touches.
//!
//! **Mechanism.** [`layout()`] splits the text into paragraphs, orders each by the bidirectional algorithm (UAX 9), breaks it
//! where UAX 14 allows it (between grapheme clusters where one word alone is too wide), gives every grapheme cluster a font
//! that has all of it, and shapes each finished line with HarfBuzz's algorithm. A [`Layout`] knows its size and
//! [draws](Layout::draw) itself: outlines are flattened once and their exact coverage of each pixel is accumulated band by
//! band, all plain glyphs as one shape, so that letters that overlap or join show no seam. Emoji are layered outlines in
//! colour.
//!
//! **Reason.** The pieces (shaping, bidi, breaking) are the field's own crates, put together here because a line is shaped
//! after it was broken, falls back by grapheme cluster and must never panic on foreign text, which is little code once
//! nothing needs to be edited, hinted or cached.

mod caption;
mod coverage;
mod fonts;
mod layout;
mod outline;
mod paint;
mod shape;

pub use caption::{Caption, PlacedCaption, add_text};
pub(crate) use coverage::Shape;
pub(crate) use fonts::family_for;
pub use fonts::{Family, Font, Weight, fonts};
pub use layout::{Align, Layout, Style, is_right_to_left, layout, layout_lines};
pub use paint::{Ink, Stroke, fill_rect};
pub(crate) use paint::{fill, lay_over};

#[cfg(test)]
mod tests;
