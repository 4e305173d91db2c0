//! `crop`: cuts a rectangle out of a picture (docs/reference/actions.md#crop).

use bytes::Bytes;
use domain::action::CropParams;
use raster::crop::{self, CropPosition};
use raster::header::Header;
use raster::resize::PlanError;
use raster::{Finish, Output, Size};
use serde_json::{Map, Value};

use super::{Engine, NotUnderstood, finish, held_as_a_whole, typed};

#[derive(Debug)]
pub(super) struct Crop {
    params: crop::Crop,
    finish: Finish,
}

pub(super) fn read(params: &Map<String, Value>) -> Result<Crop, NotUnderstood> {
    let params: CropParams = typed(params)?;
    let place = match (params.x, params.y) {
        (Some(x), Some(y)) => CropPosition::At { x, y },
        (None, None) => CropPosition::Anchored(super::read("anchor", &params.anchor)?),
        _ => return Err(NotUnderstood::Value("x")),
    };
    let crop = crop::Crop { width: params.width, height: params.height, place };
    Ok(Crop { params: crop, finish: finish(&params.format, params.quality)? })
}

impl Engine for Crop {
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError> {
        Ok(crop::plan(sources[0], &self.params)?.size)
    }

    fn memory_bytes(&self, sources: &[Header], output: Size) -> u64 {
        self.finish.stream_bytes(&sources[0], output).unwrap_or_else(|| held_as_a_whole(sources, output))
    }

    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        crop::transform(&files[0], &self.params, self.finish)
    }
}
