//! What the stored dimensions of the inputs already tell about an Action's result (decisions 8.1).

use domain::Violation;
use domain::action::{Action, ResizeParams};
use domain::asset::AssetRecord;
use raster::{Bounds, Resize, Size};
use serde_json::{Map, Value};

/// Why the result would be larger than a result may be; nothing when it would not.
pub fn refuse_oversized(action: &Action, params: &Map<String, Value>, inputs: &[AssetRecord]) -> Vec<Violation> {
    let refused = match (action.slug, inputs) {
        ("resize", [image]) => {
            let field = if params.contains_key("width") { "params.width" } else { "params.height" };
            refuse_resize(params, image).map(|message| (field, message))
        }
        // The result is as large as the picture.
        ("add-text-to-image", [image]) => {
            let refused = size(image).and_then(|size| raster::resize::check_output(size).err());
            refused.map(|error| ("inputs[0]", error.to_string()))
        }
        _ => None,
    };
    refused.map(|(field, message)| Violation::new(field, message)).into_iter().collect()
}

fn refuse_resize(params: &Map<String, Value>, image: &AssetRecord) -> Option<String> {
    let params: ResizeParams = serde_json::from_value(Value::Object(params.clone())).ok()?;
    let resize = Resize {
        fit: params.fit.parse().ok()?,
        enlarge: params.enlarge == "yes",
        ..Resize::new(Bounds::new(params.width, params.height)?)
    };
    raster::resize::plan(size(image)?, &resize).err().map(|error| error.to_string())
}

fn size(image: &AssetRecord) -> Option<Size> {
    Some(Size { width: u32::try_from(image.width).ok()?, height: u32::try_from(image.height).ok()? })
}
