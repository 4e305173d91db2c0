//! What both workers have decoders do, and how a worker becomes a decoder.

use std::process::ExitCode;

use bytes::Bytes;
use decoder::{COMMAND, Kind, Made, PROGRAM_COMMAND, Refusal, Work};
use raster::{ErrorKind, Header};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Serves as a decoder, or becomes a foreign one, if the command line says so: `None` in any other case. `own` is the work of this
/// worker alone.
pub fn main(own: impl IntoIterator<Item = Kind>) -> Option<ExitCode> {
    match std::env::args().nth(1).as_deref() {
        Some(COMMAND) => {}
        Some(PROGRAM_COMMAND) => return Some(decoder::become_program()),
        _ => return None,
    }
    raster::memory::keep_freed();
    let common = [Kind::of::<Check>(), Kind::of::<crate::image::Fit>(), Kind::of::<crate::film::Poster>()];
    Some(decoder::serve(&common.into_iter().chain(own).collect::<Vec<_>>()))
}

/// The refusal for an error of the engine.
pub fn refusal(error: impl Into<raster::Error>) -> Refusal {
    let error = error.into();
    match error.kind() {
        ErrorKind::Image | ErrorKind::Limit => Refusal::Input(error.to_string()),
        ErrorKind::Internal => Refusal::Internal(error.to_string()),
    }
}

/// The header of an image that a decoder made.
///
/// # Errors
///
/// If it is none.
pub fn header_of_made(file: &[u8]) -> Result<Header, Error> {
    raster::probe(file).map_err(|error| Error::Engine(format!("a decoder made no image: {error}")))
}

/// Decodes an image completely and makes nothing of it.
#[derive(Serialize, Deserialize)]
pub struct Check;

impl Work for Check {
    const NAME: &'static str = "check";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        files.iter().try_for_each(|file| raster::decode(file).map(drop)).map_err(refusal)?;
        Ok(Vec::new())
    }
}
