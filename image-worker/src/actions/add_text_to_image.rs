//! `add-text-to-image`: writes text onto a picture (docs/reference/actions.md#add-text-to-image).

use bytes::Bytes;
use domain::action::AddTextToImageParams;
use raster::header::Header;
use raster::resize::PlanError;
use raster::text::{self, Caption};
use raster::{Finish, Output, Size};
use serde_json::{Map, Value};

use super::{Engine, NotUnderstood, finish, held_as_a_whole, typed};

/// Upper bound of the memory for drawing a text: the stroked outlines of 500 characters, and a band of pixels.
const DRAWING_BYTES: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct AddTextToImage {
    params: Caption,
    finish: Finish,
}

pub(super) fn read(params: &Map<String, Value>) -> Result<AddTextToImage, NotUnderstood> {
    let params: AddTextToImageParams = typed(params)?;
    let finish = finish(&params.format, params.quality)?;
    let caption = Caption {
        anchor: super::read("anchor", &params.anchor)?,
        offset: (params.offset_x, params.offset_y),
        family: super::read("font", &params.font)?,
        weight: super::read("weight", &params.weight)?,
        size: params.size,
        color: super::read("color", &params.color)?,
        align: super::read("align", &params.align)?,
        max_width: params.max_width,
        line_height: params.line_height,
        stroke_color: super::read("strokeColor", &params.stroke_color)?,
        stroke_width: params.stroke_width,
        background: super::read("background", &params.background)?,
        padding: params.padding,
        text: params.text,
    };
    Ok(AddTextToImage { params: caption, finish })
}

impl Engine for AddTextToImage {
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError> {
        // The result has the size of the picture.
        raster::resize::check_output(sources[0])?;
        Ok(sources[0])
    }

    fn memory_bytes(&self, sources: &[Header], output: Size) -> u64 {
        held_as_a_whole(sources, output) + DRAWING_BYTES
    }

    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        text::add_text(&files[0], &self.params, self.finish)
    }
}
