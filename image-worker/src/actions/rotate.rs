//! `rotate`: mirrors and rotates a picture (docs/reference/actions.md#rotate).

use bytes::Bytes;
use domain::action::RotateParams;
use raster::resize::PlanError;
use raster::rotate;
use raster::{Finish, Output, Size};
use serde_json::{Map, Value};

use super::{Engine, NotUnderstood, finish, typed};

#[derive(Debug)]
pub(super) struct Rotate {
    params: rotate::Rotate,
    finish: Finish,
}

pub(super) fn read(params: &Map<String, Value>) -> Result<Rotate, NotUnderstood> {
    let params: RotateParams = typed(params)?;
    let rotate = rotate::Rotate {
        degrees: params.degrees,
        expand: params.expand == "yes",
        flip: super::read("flip", &params.flip)?,
        background: super::read("background", &params.background)?,
    };
    Ok(Rotate { params: rotate, finish: finish(&params.format, params.quality)? })
}

impl Engine for Rotate {
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError> {
        rotate::plan(sources[0], &self.params)
    }

    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        rotate::transform(&files[0], &self.params, self.finish)
    }
}
