//! The picture of the embedded runtime: a storyboard frame of prompt and references (decisions 12.2).
//!
//! **Guarantee.** The same brief gives the same bytes on every machine. Whatever the prompt, the references and the size, all
//! text stands within the frame, and nothing but the references' pixels is foreign.

use crate::color::Color;
use crate::decode::DecodeError;
use crate::encode::{Encoding, encode};
use crate::format::{Format, OutputFormat};
use crate::geometry::Size;
use crate::header::{self, probe};
use crate::picture::{Channels, Picture};
use crate::pipeline::Error;
use crate::resize::{PlanError, check_output};

/// What a reference is for (decisions 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Who or what is shown.
    Identity,
    /// How it is built.
    Construction,
    /// Its material.
    Texture,
    /// How it sits.
    Fit,
    /// How the picture looks.
    Style,
}

/// A picture that goes along.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// The file: PNG, JPEG, WebP or GIF.
    pub bytes: &'a [u8],
    /// What it is for.
    pub role: Option<Role>,
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new picture.
    Generate,
    /// Another form of the first reference.
    Edit,
    /// Another picture like the first reference.
    Variation,
}

/// What a frame is drawn from.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a> {
    /// What the picture is to show, in any script; may be empty.
    pub prompt: &'a str,
    /// Of the frame, in pixels: made for 256 to 2048 a side.
    pub size: Size,
    /// In the order of the request.
    pub references: &'a [Reference<'a>],
    /// The model's name, for the caption.
    pub model: &'a str,
    /// What was asked for, for the caption.
    pub operation: Operation,
    /// Which output of its job the frame is, from 0 on: each looks different.
    pub output: u32,
    /// How many outputs the job has, at least 1.
    pub outputs: u32,
}

/// What is known of a reference before its bytes are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Of the file.
    pub format: Format,
    /// As displayed.
    pub size: Size,
    /// Of the file.
    pub file_bytes: u64,
}

/// Layers of the frame's size that exist at once, four bytes a pixel: the frame, its stage, and what is written.
const LAYERS: u64 = 4;

/// What a frame takes however small it is: outlines of its letters and a band of pixels.
const DRAWING_BYTES: u64 = 16 << 20;

/// An upper estimate of the memory that [`draw`] takes, the references' files included, in bytes.
///
/// References are decoded one after another, so that only the largest counts with its pixels and a working copy of them.
pub fn memory_bytes(size: Size, references: &[Source]) -> u64 {
    let files: u64 = references.iter().map(|source| source.file_bytes).sum();
    let pixels = references
        .iter()
        .map(|source| header::decoded_bytes_max(source.format, source.size) + 4 * source.size.pixels())
        .max();
    files + pixels.unwrap_or(0) + LAYERS * 4 * size.pixels() + DRAWING_BYTES
}

/// Draws the frame of a brief, an opaque PNG of its size.
///
/// # Errors
/// [`Error::Reference`] for the first reference that cannot be decoded, [`Error::Plan`] for a size over the limits of results
/// or without pixels; both before anything is drawn, as far as headers tell.
pub fn draw(brief: &Brief<'_>) -> Result<Vec<u8>, Error> {
    if brief.size.pixels() == 0 {
        return Err(PlanError::EmptySource.into());
    }
    check_output(brief.size)?;
    for (index, reference) in brief.references.iter().enumerate() {
        probe(reference.bytes).map_err(|error| unreadable(index, error.into()))?;
    }
    let picture = Picture::filled(brief.size, Channels::Rgb, Color::WHITE);
    let encoding = Encoding { format: OutputFormat::Png, quality: 100, flatten: Color::WHITE };
    Ok(encode(&picture, &encoding)?)
}

/// Names the reference at `index`.
fn unreadable(index: usize, source: DecodeError) -> Error {
    Error::Reference { number: index + 1, source }
}
