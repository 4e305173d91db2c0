//! `side-by-side-composite`: two pictures in one (decisions 8.1).

use bytes::Bytes;
use domain::action::SideBySideCompositeParams;
use raster::beside::{self, Beside};
use raster::resize::PlanError;
use raster::{Finish, Output, Size};
use serde_json::{Map, Value};

use super::{Engine, NotUnderstood, finish, typed};

#[derive(Debug)]
pub(super) struct SideBySide {
    params: Beside,
    finish: Finish,
}

pub(super) fn read(params: &Map<String, Value>) -> Result<SideBySide, NotUnderstood> {
    let params: SideBySideCompositeParams = typed(params)?;
    let beside = Beside {
        direction: super::read("direction", &params.direction)?,
        gap: params.gap,
        matches: params.scale == "match",
        align: super::read("align", &params.align)?,
        background: super::read("background", &params.background)?,
    };
    Ok(SideBySide { params: beside, finish: finish(&params.format, params.quality)? })
}

impl Engine for SideBySide {
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError> {
        Ok(beside::plan([sources[0], sources[1]], &self.params)?.output)
    }

    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        beside::transform(&files[0], &files[1], &self.params, self.finish)
    }
}
