//! `resize`: scales a picture to a width, a height or a box (docs/reference/actions.md#resize).

use bytes::Bytes;
use domain::action::ResizeParams;
use raster::header::Header;
use raster::resize::PlanError;
use raster::{Bounds, Finish, Output, Size};
use serde_json::{Map, Value};

use super::{Engine, NotUnderstood, finish, held_as_a_whole, typed};

#[derive(Debug)]
pub(super) struct Resize {
    params: raster::Resize,
    finish: Finish,
}

pub(super) fn read(params: &Map<String, Value>) -> Result<Resize, NotUnderstood> {
    let params: ResizeParams = typed(params)?;
    let resize = raster::Resize {
        bounds: Bounds::new(params.width, params.height).ok_or(NotUnderstood::Value("width"))?,
        fit: super::read("fit", &params.fit)?,
        anchor: super::read("anchor", &params.anchor)?,
        background: super::read("background", &params.background)?,
        enlarge: params.enlarge == "yes",
    };
    Ok(Resize { params: resize, finish: finish(&params.format, params.quality)? })
}

impl Engine for Resize {
    fn plan(&self, sources: &[Size]) -> Result<Size, PlanError> {
        Ok(raster::resize::plan(sources[0], &self.params)?.output())
    }

    fn memory_bytes(&self, sources: &[Header], output: Size) -> u64 {
        let plan = raster::resize::plan(sources[0].size(), &self.params);
        plan.map_or_else(|_| held_as_a_whole(sources, output), |plan| raster::resize::memory_bytes(&sources[0], &plan))
    }

    fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        raster::transform_resize(&files[0], &self.params, self.finish.choice, self.finish.quality)
    }
}
