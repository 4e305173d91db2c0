//! The Image Actions on top of `raster`: from a job's request and the bytes of its inputs to the
//! bytes of its result.
//!
//! The functions are pure and block the thread: they do no I/O, use no clock, and give the same
//! output for the same input (docs/reference/actions.md#determinism). There is one module per
//! Action. It converts the stored parameters to the types of `raster`.

mod add_text_to_image;
mod change_aspect_ratio;
mod color_grade;
mod crop;
mod overlay_image;
mod resize;
mod rotate;
mod side_by_side_composite;

#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::str::FromStr;

use bytes::Bytes;
use raster::header::Header;
use raster::resize::PlanError;
use raster::{Finish, Format, Output, Size};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Bytes per pixel of a result (RGBA).
const PIXEL_BYTES: u64 = 4;

/// Upper bound of the memory that an Action needs in addition to the pictures, whatever their size: the
/// state of the codecs.
const FIXED_BYTES: u64 = 2 << 20;

/// A stored request that this build cannot execute, because another version wrote it or because it
/// is damaged.
#[derive(Debug, thiserror::Error)]
pub enum NotUnderstood {
    /// No Action has this name.
    #[error("there is no Action `{0}`")]
    Action(String),
    /// The parameters do not match the Action's schema.
    #[error("the stored parameters do not match the Action")]
    Params(#[source] serde_json::Error),
    /// A parameter has an unknown value.
    #[error("the stored parameter `{0}` has an unknown value")]
    Value(&'static str),
    /// The number of inputs differs from what the Action takes.
    #[error("the stored request has a wrong number of inputs: {0}")]
    Inputs(usize),
}

/// What is known about an input before its bytes are loaded.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The format of the stored file.
    pub format: Format,
    /// The size as displayed.
    pub size: Size,
    /// The size of the stored file in bytes.
    pub file_bytes: u64,
}

impl Source {
    fn assumed(&self) -> Header {
        Header::assumed(self.format, self.size)
    }
}

/// An Action with its parameters.
trait Engine: Debug + Send + Sync {
    /// The size of the result for inputs of these sizes. Their number matches the Action.
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError>;

    /// Upper bound in bytes of the memory for a result of size `output`, in addition to the files and to
    /// [`FIXED_BYTES`].
    fn memory_bytes(&self, sources: &[Header], output: Size) -> u64 {
        held_as_a_whole(sources, output)
    }

    /// Makes the result from the input files. Their number matches the Action.
    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error>;
}

/// The memory for an Action that holds all pictures as a whole: for every input its pixels and a
/// working copy, the result, and its encoder.
fn held_as_a_whole(sources: &[Header], output: Size) -> u64 {
    sources.iter().fold(2 * PIXEL_BYTES * output.pixels(), |sum, source| {
        sum + source.decoded_bytes() + PIXEL_BYTES * source.size().pixels()
    })
}

/// An Action with its parameters, ready to run.
#[derive(Debug)]
pub struct Prepared {
    engine: Box<dyn Engine>,
    /// Sizes of the input files together, in bytes.
    file_bytes: u64,
    memory_bytes: u64,
}

impl Prepared {
    /// Parses the stored request of Action `slug`. The inputs are in the declared order.
    ///
    /// # Errors
    ///
    /// [`NotUnderstood`] if the request is invalid. The gateway accepts no such request.
    pub fn new(slug: &str, params: &Map<String, Value>, inputs: &[Source]) -> Result<Self, NotUnderstood> {
        let (engine, count): (Box<dyn Engine>, usize) = match slug {
            "resize" => (Box::new(resize::read(params)?), 1),
            "crop" => (Box::new(crop::read(params)?), 1),
            "change-aspect-ratio" => (Box::new(change_aspect_ratio::read(params)?), 1),
            "side-by-side-composite" => (Box::new(side_by_side_composite::read(params)?), 2),
            "add-text-to-image" => (Box::new(add_text_to_image::read(params)?), 1),
            "overlay-image" => (Box::new(overlay_image::read(params)?), 2),
            "color-grade" => (Box::new(color_grade::read(params)?), 1),
            "rotate" => (Box::new(rotate::read(params)?), 1),
            other => return Err(NotUnderstood::Action(other.to_owned())),
        };
        if inputs.len() != count {
            return Err(NotUnderstood::Inputs(inputs.len()));
        }
        let file_bytes = inputs.iter().map(|input| input.file_bytes).sum();
        let mut prepared = Self { engine, file_bytes, memory_bytes: 0 };
        let assumed: Vec<Header> = inputs.iter().map(Source::assumed).collect();
        prepared.memory_bytes = prepared.memory_for(&assumed);
        Ok(prepared)
    }

    /// Memory to reserve for running the Action, including the input files, in bytes. It suffices for
    /// upright files in the usual coding of their format.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Upper bound of the memory for running the Action on these files, in bytes.
    pub fn memory_bytes_of(&self, files: &[Bytes]) -> u64 {
        let headers: Result<Vec<Header>, _> = files.iter().map(|file| raster::probe(file)).collect();
        // A file without a header is rejected before anything is decoded.
        headers.map_or(self.file_bytes, |headers| self.memory_for(&headers))
    }

    fn memory_for(&self, headers: &[Header]) -> u64 {
        let sizes: Vec<Size> = headers.iter().map(Header::size).collect();
        match self.engine.plan(&sizes) {
            // The preview is made once the inputs are freed, and takes no more than they did or than the encoder.
            Ok(output) => self.file_bytes + self.engine.memory_bytes(headers, output) + FIXED_BYTES,
            // The Action is rejected before anything is decoded.
            Err(_) => self.file_bytes,
        }
    }

    /// Makes the result from the input files. Blocks the thread.
    ///
    /// # Errors
    ///
    /// [`raster::Error`]. Its `kind` says whether the message may be shown to the owner.
    pub fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        self.engine.run(files)
    }
}

/// Stored parameters in their typed form.
fn typed<T: DeserializeOwned>(params: &Map<String, Value>) -> Result<T, NotUnderstood> {
    serde_json::from_value(Value::Object(params.clone())).map_err(NotUnderstood::Params)
}

/// Parses a parameter to its type.
fn read<T: FromStr>(name: &'static str, text: &str) -> Result<T, NotUnderstood> {
    text.parse().map_err(|_| NotUnderstood::Value(name))
}

/// The output format and quality, which all Actions share.
fn finish(format: &str, quality: u8) -> Result<Finish, NotUnderstood> {
    Ok(Finish { choice: read("format", format)?, quality })
}
