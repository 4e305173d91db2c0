//! `resize`: scales a picture to a width, a height or a box (decisions 8.1).

use bytes::Bytes;
use domain::action::ResizeParams;
use raster::{Bounds, Color, FormatChoice, Resize};

use super::{NotUnderstood, read};

/// Bytes of a pixel of the result: RGBA.
const PIXEL_BYTES: u64 = 4;

/// A resize that is ready to run.
#[derive(Debug)]
pub struct Prepared {
    picture: Bytes,
    resize: Resize,
    format: FormatChoice,
    quality: u8,
}

impl Prepared {
    pub(super) fn new(params: &ResizeParams, picture: Bytes) -> Result<Self, NotUnderstood> {
        let bounds = Bounds::new(params.width, params.height).ok_or(NotUnderstood::Value("width"))?;
        let resize = Resize {
            bounds,
            fit: read("fit", &params.fit)?,
            anchor: read("anchor", &params.anchor)?,
            background: read::<Color>("background", &params.background)?,
            enlarge: params.enlarge == "yes",
        };
        Ok(Self { picture, resize, format: read("format", &params.format)?, quality: params.quality })
    }

    /// The decoded source at full size and the result with the file it is written to. What cannot be read takes none: it
    /// is refused before anything is allocated.
    pub(super) fn memory_bytes(&self) -> u64 {
        let Ok(header) = raster::probe(&self.picture) else { return 0 };
        let Ok(plan) = raster::resize::plan(header.size(), &self.resize) else { return 0 };
        header.decoded_bytes() + 2 * PIXEL_BYTES * plan.output().pixels()
    }

    pub(super) fn run(self) -> Result<raster::Output, raster::Error> {
        raster::transform_resize(&self.picture, &self.resize, self.format, self.quality)
    }
}
