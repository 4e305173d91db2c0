//! `change-aspect-ratio`: crops or pads a picture to a ratio (docs/reference/actions.md#change-aspect-ratio).

use bytes::Bytes;
use domain::action::{ChangeAspectRatioParams, Ratio};
use raster::header::Header;
use raster::ratio::{self, ChangeRatio, Mode};
use raster::resize::PlanError;
use raster::{Finish, Output, Size};
use serde_json::{Map, Value};

use super::{Engine, NotUnderstood, finish, held_as_a_whole, typed};

#[derive(Debug)]
pub(super) struct ChangeAspectRatio {
    params: ChangeRatio,
    finish: Finish,
}

pub(super) fn read(params: &Map<String, Value>) -> Result<ChangeAspectRatio, NotUnderstood> {
    let params: ChangeAspectRatioParams = typed(params)?;
    let ratio = Ratio::parse(&params.ratio).ok_or(NotUnderstood::Value("ratio"))?;
    let change = ChangeRatio {
        ratio: (ratio.width, ratio.height),
        mode: super::read("mode", &params.mode)?,
        anchor: super::read("anchor", &params.anchor)?,
        background: super::read("background", &params.background)?,
    };
    Ok(ChangeAspectRatio { params: change, finish: finish(&params.format, params.quality)? })
}

impl Engine for ChangeAspectRatio {
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError> {
        Ok(ratio::plan(sources[0], &self.params)?.output)
    }

    fn memory_bytes(&self, sources: &[Header], output: Size) -> u64 {
        let streamed = self.finish.stream_bytes(&sources[0], output).filter(|_| self.params.mode == Mode::Crop);
        streamed.unwrap_or_else(|| held_as_a_whole(sources, output))
    }

    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        ratio::transform(&files[0], &self.params, self.finish)
    }
}
