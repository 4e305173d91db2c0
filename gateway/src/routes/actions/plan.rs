//! What the stored dimensions of the inputs determine about an Action's result
//! (docs/reference/actions.md#size-limits-of-a-result).
//!
//! The sizes are computed by the same functions as in the worker, so that what is accepted here does not fail there.

use db::assets::Picture;
use domain::Violation;
use domain::action::{
    ChangeAspectRatioParams, CropParams, DefinedAction, Ratio, ResizeParams, RotateParams, SideBySideCompositeParams,
};
use raster::crop::{self, Crop, CropPosition};
use raster::ratio::{self, ChangeRatio};
use raster::resize::PlanError;
use raster::rotate::{self, Flip, Rotate};
use raster::side_by_side::{self, SideBySideOptions};
use raster::{Anchor, Bounds, Color, Format, FormatChoice, OutputFormat, Resize, Size};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The size of the result, or the field at fault and why. `None`: a parameter is malformed, which validation reports.
type Planned = Option<Result<Size, (&'static str, PlanError)>>;

/// What is known of a run before its work.
pub struct Estimate {
    /// Estimated duration in seconds.
    pub seconds: i32,
    /// Size of the result in pixels, where the inputs determine it.
    pub output: Option<Size>,
}

/// The estimate of an Action on these inputs, or why it cannot succeed.
pub fn estimate(
    action: &DefinedAction,
    params: &Map<String, Value>,
    inputs: &[Picture],
) -> Result<Estimate, Vec<Violation>> {
    let sizes: Vec<Size> = inputs.iter().map(size).collect();
    let planned = match (&*action.slug, &*sizes) {
        ("resize", [image]) => plan_resize(params, *image),
        ("crop", [image]) => plan_crop(params, *image),
        ("change-aspect-ratio", [image]) => plan_ratio(params, *image),
        ("side-by-side-composite", [first, second]) => plan_side_by_side(params, [*first, *second]),
        ("rotate", [image]) => plan_rotate(params, *image),
        // The result has the size of its first input.
        (_, [image, ..]) => Some(raster::grade::plan(*image).map_err(|error| ("inputs[0]", error))),
        _ => None,
    };
    let output = planned.transpose().map_err(|(field, error)| vec![Violation::new(field, error.to_string())])?;
    if let Some(refused) = output.and_then(|output| refuse_webp(params, inputs, output)) {
        return Err(vec![refused]);
    }
    let seconds = action.seconds_for(sizes.iter().map(|size| size.pixels()).sum(), output.map_or(0, Size::pixels));
    Ok(Estimate { seconds, output })
}

fn size(picture: &Picture) -> Size {
    let side = |side: i32| u32::try_from(side).unwrap_or(0);
    Size::new(side(picture.width), side(picture.height))
}

/// A WebP side is one pixel short of the longest side of a result.
fn refuse_webp(params: &Map<String, Value>, inputs: &[Picture], output: Size) -> Option<Violation> {
    let choice: FormatChoice = params.get("format")?.as_str()?.parse().ok()?;
    let source = match inputs.first()?.mime_type.as_str() {
        "image/webp" => Format::Webp,
        _ => Format::Png,
    };
    let is_webp = OutputFormat::resolve(choice, source, false) == OutputFormat::Webp;
    let is_long = output.width.max(output.height) > raster::encode::MAX_WEBP_SIDE;
    (is_webp && is_long).then(|| Violation::new("params.format", raster::EncodeError::WebpSideTooLong.to_string()))
}

fn typed<T: DeserializeOwned>(params: &Map<String, Value>) -> Option<T> {
    serde_json::from_value(Value::Object(params.clone())).ok()
}

fn plan_resize(params: &Map<String, Value>, image: Size) -> Planned {
    let params: ResizeParams = typed(params)?;
    let resize = Resize {
        fit: params.fit.parse().ok()?,
        enlarge: params.enlarge == "yes",
        ..Resize::new(Bounds::new(params.width, params.height)?)
    };
    let field = if params.width.is_some() { "params.width" } else { "params.height" };
    Some(raster::resize::plan(image, &resize).map(|plan| plan.output()).map_err(|error| (field, error)))
}

fn plan_crop(params: &Map<String, Value>, image: Size) -> Planned {
    let params: CropParams = typed(params)?;
    let place = match (params.x, params.y) {
        (Some(x), Some(y)) => CropPosition::At { x, y },
        _ => CropPosition::Anchored(params.anchor.parse().ok()?),
    };
    let crop = Crop { width: params.width, height: params.height, place };
    let field = || {
        let (width, height) = (i64::from(image.width), i64::from(image.height));
        let beyond =
            |at: Option<i64>, length: i64, of: i64| at.is_some_and(|at| at < 0 || at > of.saturating_sub(length));
        match () {
            () if params.width > width => "params.width",
            () if params.height > height => "params.height",
            () if beyond(params.x, params.width, width) => "params.x",
            () if beyond(params.y, params.height, height) => "params.y",
            () => "params.width",
        }
    };
    Some(crop::plan(image, &crop).map(|rect| rect.size).map_err(|error| (field(), error)))
}

fn plan_ratio(params: &Map<String, Value>, image: Size) -> Planned {
    let params: ChangeAspectRatioParams = typed(params)?;
    let ratio = Ratio::parse(&params.ratio)?;
    let change = ChangeRatio {
        ratio: (ratio.width, ratio.height),
        mode: params.mode.parse().ok()?,
        anchor: Anchor::Center,
        background: Color::WHITE,
    };
    Some(ratio::plan(image, &change).map(|plan| plan.output).map_err(|error| ("params.ratio", error)))
}

fn plan_side_by_side(params: &Map<String, Value>, images: [Size; 2]) -> Planned {
    let params: SideBySideCompositeParams = typed(params)?;
    let options = SideBySideOptions {
        direction: params.direction.parse().ok()?,
        gap: params.gap,
        matches: params.scale == "match",
        align: params.align.parse().ok()?,
        background: Color::WHITE,
    };
    Some(side_by_side::plan(images, &options).map(|plan| plan.output).map_err(|error| ("inputs", error)))
}

fn plan_rotate(params: &Map<String, Value>, image: Size) -> Planned {
    let params: RotateParams = typed(params)?;
    let rotate =
        Rotate { degrees: params.degrees, expand: params.expand == "yes", flip: Flip::None, background: Color::WHITE };
    let field = if rotate.expand { "params.degrees" } else { "inputs[0]" };
    Some(rotate::plan(image, &rotate).map_err(|error| (field, error)))
}
