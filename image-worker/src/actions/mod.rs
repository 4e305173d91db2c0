//! The Image Actions on top of `raster`: from a job's request and the bytes of its inputs to the bytes of its result.
//!
//! Pure functions that hold a thread: no I/O, no clock, the same bytes out for the same bytes in (decisions 8.3). One
//! module an Action: it reads the stored parameters into `raster`'s own types.

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
use raster::resize::PlanError;
use raster::{Finish, Format, Output, Size};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Bytes of a pixel of a result: RGBA.
const PIXEL_BYTES: u64 = 4;

/// What an Action takes beside pictures, however large they are: the most is a text's, outlines of 500 letters with their
/// strokes and a band of pixels.
const DRAWING_BYTES: u64 = 16 << 20;

/// A stored request that this build cannot carry out: written by another version, or damaged.
#[derive(Debug, thiserror::Error)]
pub enum NotUnderstood {
    /// There is no Action of this name.
    #[error("there is no Action `{0}`")]
    Action(String),
    /// The parameters are not of the Action's form.
    #[error("the stored parameters are not of the Action's form")]
    Params(#[source] serde_json::Error),
    /// A parameter has a value that is none of the known ones.
    #[error("the stored parameter `{0}` has an unknown value")]
    Value(&'static str),
    /// Another number of inputs than the Action takes.
    #[error("the stored request has {0} inputs")]
    Inputs(usize),
}

/// What is known of an input before its bytes are loaded.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Of the stored file.
    pub format: Format,
    /// As displayed.
    pub size: Size,
    /// Of the stored file.
    pub file_bytes: u64,
}

/// An Action with its parameters.
trait Engine: Debug + Send {
    /// The size of the result for inputs of these sizes, as many as the Action takes.
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError>;

    /// Makes the result of files, as many as the Action takes.
    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error>;
}

/// An Action with its parameters and what is known of its inputs, ready to run.
#[derive(Debug)]
pub struct Prepared {
    engine: Box<dyn Engine>,
    memory_bytes: u64,
}

impl Prepared {
    /// Reads the stored request of Action `slug`; the inputs are in the declared order.
    ///
    /// # Errors
    /// [`NotUnderstood`]; the gateway let no such request in.
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
        let sizes: Vec<Size> = inputs.iter().map(|input| input.size).collect();
        let memory_bytes = match engine.plan(&sizes) {
            // The result, what it is written to, and every input: its file, its pixels and a working copy of them.
            Ok(output) => inputs.iter().fold(2 * PIXEL_BYTES * output.pixels() + DRAWING_BYTES, |sum, input| {
                let pixels = raster::header::decoded_bytes_max(input.format, input.size);
                sum + input.file_bytes + pixels + PIXEL_BYTES * input.size.pixels()
            }),
            // It is refused before anything is decoded.
            Err(_) => inputs.iter().map(|input| input.file_bytes).sum(),
        };
        Ok(Self { engine, memory_bytes })
    }

    /// An upper estimate of the memory that running it takes, its files included, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Makes the result of the inputs' files. Blocks its thread.
    ///
    /// # Errors
    /// [`raster::Error`]; its `fault` says whether its message is fit for the owner.
    pub fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        self.engine.run(files)
    }
}

/// Stored parameters in their typed form.
fn typed<T: DeserializeOwned>(params: &Map<String, Value>) -> Result<T, NotUnderstood> {
    serde_json::from_value(Value::Object(params.clone())).map_err(NotUnderstood::Params)
}

/// A parameter in its own type.
fn read<T: FromStr>(name: &'static str, text: &str) -> Result<T, NotUnderstood> {
    text.parse().map_err(|_| NotUnderstood::Value(name))
}

/// What every Action is asked about its file.
fn finish(format: &str, quality: u8) -> Result<Finish, NotUnderstood> {
    Ok(Finish { choice: read("format", format)?, quality })
}
