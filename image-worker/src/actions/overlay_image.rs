//! `overlay-image`: places a picture on another one (docs/reference/actions.md#overlay-image).

use bytes::Bytes;
use domain::action::OverlayImageParams;
use raster::header::Header;
use raster::overlay::{self, Overlay};
use raster::resize::PlanError;
use raster::{Finish, Output, Size};
use serde_json::{Map, Value};

use super::{Engine, NotUnderstood, PIXEL_BYTES, finish, held_as_a_whole, typed};

#[derive(Debug)]
pub(super) struct OverlayImage {
    params: Overlay,
    finish: Finish,
}

pub(super) fn read(params: &Map<String, Value>) -> Result<OverlayImage, NotUnderstood> {
    let params: OverlayImageParams = typed(params)?;
    let overlay = Overlay {
        anchor: super::read("anchor", &params.anchor)?,
        offset: (params.offset_x, params.offset_y),
        scale: params.scale,
        opacity: params.opacity,
        rotate: params.rotate,
        blend: super::read("blend", &params.blend)?,
    };
    Ok(OverlayImage { params: overlay, finish: finish(&params.format, params.quality)? })
}

impl Engine for OverlayImage {
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError> {
        overlay::plan(sources[0])
    }

    fn memory_bytes(&self, sources: &[Header], output: Size) -> u64 {
        // The layer is at most as large as the picture below it. One that is turned by other than right angles is scaled as
        // a whole before it is clipped: the result and the picture between the passes of the convolution.
        let turned = if self.params.rotate % 90.0 == 0.0 { 0 } else { 2 * PIXEL_BYTES * sources[1].size().pixels() };
        let layer = || held_as_a_whole(&sources[1..], output);
        let streamed = self.finish.stream_bytes(&sources[0], output).map(|bytes| bytes + layer());
        turned + streamed.unwrap_or_else(|| held_as_a_whole(sources, output))
    }

    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        overlay::transform(&files[0], &files[1], &self.params, self.finish)
    }
}
