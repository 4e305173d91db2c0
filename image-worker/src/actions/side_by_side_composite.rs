//! `side-by-side-composite`: combines two pictures in one (docs/reference/actions.md#side-by-side-composite).

use bytes::Bytes;
use domain::action::SideBySideCompositeParams;
use raster::resize::PlanError;
use raster::side_by_side::{self, SideBySideOptions};
use raster::{Finish, Output, Size};
use serde_json::{Map, Value};

use super::{Engine, NotUnderstood, finish, typed};

#[derive(Debug)]
pub(super) struct SideBySide {
    params: SideBySideOptions,
    finish: Finish,
}

pub(super) fn read(params: &Map<String, Value>) -> Result<SideBySide, NotUnderstood> {
    let params: SideBySideCompositeParams = typed(params)?;
    let options = SideBySideOptions {
        direction: super::read("direction", &params.direction)?,
        gap: params.gap,
        matches: params.scale == "match",
        align: super::read("align", &params.align)?,
        background: super::read("background", &params.background)?,
    };
    Ok(SideBySide { params: options, finish: finish(&params.format, params.quality)? })
}

impl Engine for SideBySide {
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError> {
        Ok(side_by_side::plan([sources[0], sources[1]], &self.params)?.output)
    }

    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        side_by_side::transform(&files[0], &files[1], &self.params, self.finish)
    }
}
