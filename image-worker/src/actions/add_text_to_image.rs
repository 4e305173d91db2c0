//! `add-text-to-image`: writes text onto a picture (decisions 8.1, 8.2).

use bytes::Bytes;
use domain::action::AddTextToImageParams;
use raster::text::Caption;
use raster::{Finish, Output};

use super::{NotUnderstood, read};

/// What drawing takes beside the picture, however large it is: outlines of 500 letters with their strokes, and a band of pixels.
const DRAWING_BYTES: u64 = 16 << 20;

/// Bytes a pixel of the file that is written, at most: RGBA.
const FILE_PIXEL_BYTES: u64 = 4;

/// A text that is ready to be written.
#[derive(Debug)]
pub struct Prepared {
    picture: Bytes,
    caption: Caption,
    finish: Finish,
}

impl Prepared {
    pub(super) fn new(params: AddTextToImageParams, picture: Bytes) -> Result<Self, NotUnderstood> {
        let caption = Caption {
            anchor: read("anchor", &params.anchor)?,
            offset: (params.offset_x, params.offset_y),
            family: read("font", &params.font)?,
            weight: read("weight", &params.weight)?,
            size: params.size,
            color: read("color", &params.color)?,
            align: read("align", &params.align)?,
            max_width: params.max_width,
            line_height: params.line_height,
            stroke_color: read("strokeColor", &params.stroke_color)?,
            stroke_width: params.stroke_width,
            background: read("background", &params.background)?,
            padding: params.padding,
            text: params.text,
        };
        let finish = Finish { choice: read("format", &params.format)?, quality: params.quality };
        Ok(Self { picture, caption, finish })
    }

    /// The decoded picture, which is drawn on in place, and the file. What cannot be read takes none: it is refused before
    /// anything is allocated.
    pub(super) fn memory_bytes(&self) -> u64 {
        let Ok(header) = raster::probe(&self.picture) else { return 0 };
        header.decoded_bytes() + FILE_PIXEL_BYTES * header.size().pixels() + DRAWING_BYTES
    }

    pub(super) fn run(self) -> Result<Output, raster::Error> {
        raster::text::add_text(&self.picture, &self.caption, self.finish)
    }
}
