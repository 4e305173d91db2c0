//! `crop`: cuts a rectangle out of a picture (docs/reference/actions.md#crop).

use bytes::Bytes;
use domain::action::CropParams;
use raster::crop::{self, CropPosition};
use raster::resize::PlanError;
use raster::{Finish, Output, Size};
use serde_json::{Map, Value};

use super::{Engine, NotUnderstood, finish, typed};

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

    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        crop::transform(&files[0], &self.params, self.finish)
    }
}
