//! Pixels: header probing, decoding, orientation, color management, resizing, text and encoding.
//!
//! **Guarantee.** All functions are pure: they convert bytes and parameters to bytes, without I/O,
//! clock or threads, and give equal output for equal input
//! (`docs/reference/actions.md#determinism`). Foreign bytes never cause a panic, a partial image,
//! or an allocation that the header did not declare within the limits.
//!
//! **Mechanism.** [`header`] reads sizes from untrusted bytes with bounded memory. [`mod@decode`]
//! checks them against the limits before any allocation and returns 8-bit sRGB pixels.
//! [`mod@resize`] first plans with sizes only, so that a caller can reject early, and then
//! resamples. [`mod@encode`] writes JPEG, PNG or WebP. Each Action has a function `change`, which
//! reads an [`Input`] and makes pixels, so that several in a row decode and encode once, and a
//! function that does a complete job on a file. [`transform_resize`] and [`rendition`] are such
//! jobs, with shortcuts that save work: a JPEG is decoded at a reduced scale
//! if the result allows it, and transformed to its displayed orientation after it was reduced.
//!
//! **Reason.** The gateway needs sizes and error messages without decoding foreign pixels; the
//! image-worker needs the pixels. Both must agree on the exact size of an image, so both use this
//! crate.

pub mod animation;
pub mod avif;
pub mod crop;
pub mod decode;
pub mod document;
pub mod encode;
pub mod grade;
pub mod header;
pub mod mask;
pub mod memory;
pub mod metadata;
pub mod motion;
pub mod overlay;
pub mod ratio;
pub mod resize;
pub mod rotate;
pub mod side_by_side;
pub mod text;
pub mod xmp;

mod bitmap;
mod color;
mod format;
mod geometry;
mod input;
mod orientation;
mod pipeline;
mod sample;
mod wide;

pub use bitmap::{Bitmap, Channels};
pub use color::Color;
pub use decode::{DecodeError, decode};
pub use encode::{EncodeError, Encoding, encode};
pub use format::{Format, FormatChoice, OutputFormat};
pub use geometry::{Anchor, ParseError, Rect, Size};
pub use header::{Header, HeaderError, HeaderReader, Progress, probe};
pub use input::Input;
pub use orientation::Orientation;
pub use pipeline::{Change, Error, ErrorKind, Finish, Output, rendition, rendition_bytes, transform_resize};
pub use resize::{Bounds, Fit, PlanError, Resize, decode_resized, resize};

#[cfg(test)]
mod testing;
