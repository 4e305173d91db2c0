//! Pixels: header probing, decoding, orientation, colour management, resizing, text and encoding.
//!
//! **Guarantee.** Pure functions from bytes and parameters to bytes: no I/O, no clock, no threads, and the same
//! bytes out for the same bytes in (decisions 8.3). Foreign bytes never cause a panic, a partial picture, or an
//! allocation that the header did not announce and the limits did not allow.
//!
//! **Mechanism.** [`header`] reads sizes out of untrusted bytes with bounded memory; [`mod@decode`] checks them
//! against the limits before anything is allocated and hands out 8-bit sRGB pixels; [`mod@resize`] first plans (sizes
//! only, so that a caller can refuse early), then resamples; [`mod@encode`] writes JPEG, PNG or WebP. [`transform_resize`]
//! and [`rendition`] are the whole way in one call, with the shortcuts that save work: a JPEG is decoded at a
//! reduced scale where the result allows it, and turned upright only after it was made small.
//!
//! **Reason.** The gateway needs sizes and refusals without ever touching foreign pixels, the image worker needs
//! the pixels; both must agree to the pixel on what a picture measures, so both read it here.

pub mod beside;
pub mod crop;
pub mod decode;
pub mod document;
pub mod encode;
pub mod grade;
pub mod header;
pub mod motion;
pub mod overlay;
pub mod ratio;
pub mod resize;
pub mod rotate;
pub mod sketch;
pub mod text;

mod color;
mod format;
mod geometry;
mod orientation;
mod picture;
mod pipeline;
mod sample;
mod wide;

pub use color::Color;
pub use decode::{DecodeError, DecodeOptions, Decoded, decode};
pub use encode::{EncodeError, Encoding, encode};
pub use format::{Format, FormatChoice, OutputFormat};
pub use geometry::{Anchor, ParseError, Rect, Size};
pub use header::{Header, HeaderError, HeaderReader, Progress, probe};
pub use orientation::Orientation;
pub use picture::{Channels, Picture};
pub use pipeline::{Error, Fault, Finish, Output, rendition, transform_resize};
pub use resize::{Bounds, Fit, PlanError, Resize, resize};

#[cfg(test)]
mod testing;
