//! `color-grade`: changes the colors of a picture (docs/reference/actions.md#color-grade).

use bytes::Bytes;
use domain::action::ColorGradeParams;
use raster::grade::{self, Grade};
use raster::header::Header;
use raster::resize::PlanError;
use raster::{Finish, Output, Size};
use serde_json::{Map, Value};

use super::{Engine, NotUnderstood, finish, held_as_a_whole, typed};

#[derive(Debug)]
pub(super) struct ColorGrade {
    params: Grade,
    finish: Finish,
}

pub(super) fn read(params: &Map<String, Value>) -> Result<ColorGrade, NotUnderstood> {
    let params: ColorGradeParams = typed(params)?;
    let grade = Grade {
        exposure: params.exposure,
        brightness: params.brightness,
        contrast: params.contrast,
        saturation: params.saturation,
        vibrance: params.vibrance,
        temperature: params.temperature,
        tint: params.tint,
        highlights: params.highlights,
        shadows: params.shadows,
        gamma: params.gamma,
        preset: super::read("preset", &params.preset)?,
        intensity: params.intensity,
    };
    Ok(ColorGrade { params: grade, finish: finish(&params.format, params.quality)? })
}

impl Engine for ColorGrade {
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError> {
        grade::plan(sources[0])
    }

    fn memory_bytes(&self, sources: &[Header], output: Size) -> u64 {
        self.finish.stream_bytes(&sources[0], output).unwrap_or_else(|| held_as_a_whole(sources, output))
    }

    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        grade::transform(&files[0], &self.params, self.finish)
    }
}
