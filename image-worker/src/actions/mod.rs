//! The Image Actions on top of `raster`: from a job's request and the bytes of its inputs to the bytes of its result.
//!
//! Pure functions that hold a thread: no I/O, no clock, the same bytes out for the same bytes in (decisions 8.3).

mod add_text_to_image;
mod resize;

use std::str::FromStr;

use bytes::Bytes;
use domain::action::{AddTextToImageParams, ResizeParams};
use serde_json::{Map, Value};

/// A stored request that this build cannot carry out: written by another version, or damaged.
#[derive(Debug, thiserror::Error)]
pub enum NotUnderstood {
    /// There is no Action of this name.
    #[error("there is no Action `{0}`")]
    Action(String),
    /// The parameters are not of the Action's form.
    #[error("the stored parameters are not of the Action's form")]
    Params(#[source] serde_json::Error),
    /// A parameter has a value that is none of the known ones.
    #[error("the stored parameter `{0}` has an unknown value")]
    Value(&'static str),
    /// Another number of inputs than the Action takes.
    #[error("the stored request has {0} inputs")]
    Inputs(usize),
}

/// An Action with its parameters and inputs, ready to run.
#[derive(Debug)]
pub enum Prepared {
    /// Write text onto a picture.
    AddTextToImage(add_text_to_image::Prepared),
    /// Scale a picture.
    Resize(resize::Prepared),
}

impl Prepared {
    /// Reads the stored request of Action `slug` and binds it to the bytes of its inputs, in the declared order.
    ///
    /// # Errors
    /// [`NotUnderstood`]; the gateway let no such request in.
    pub fn new(slug: &str, params: &Map<String, Value>, inputs: Vec<Bytes>) -> Result<Self, NotUnderstood> {
        match slug {
            "resize" => {
                let params: ResizeParams =
                    serde_json::from_value(Value::Object(params.clone())).map_err(NotUnderstood::Params)?;
                let [picture] = <[Bytes; 1]>::try_from(inputs).map_err(|inputs| NotUnderstood::Inputs(inputs.len()))?;
                resize::Prepared::new(&params, picture).map(Self::Resize)
            }
            "add-text-to-image" => {
                let params: AddTextToImageParams =
                    serde_json::from_value(Value::Object(params.clone())).map_err(NotUnderstood::Params)?;
                let [picture] = <[Bytes; 1]>::try_from(inputs).map_err(|inputs| NotUnderstood::Inputs(inputs.len()))?;
                add_text_to_image::Prepared::new(params, picture).map(Self::AddTextToImage)
            }
            other => Err(NotUnderstood::Action(other.to_owned())),
        }
    }

    /// An upper estimate of the memory that running it takes, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::AddTextToImage(text) => text.memory_bytes(),
            Self::Resize(resize) => resize.memory_bytes(),
        }
    }

    /// Makes the result. Blocks its thread.
    ///
    /// # Errors
    /// [`raster::Error`]; its `fault` says whether its message is fit for the owner.
    pub fn run(self) -> Result<raster::Output, raster::Error> {
        match self {
            Self::AddTextToImage(text) => text.run(),
            Self::Resize(resize) => resize.run(),
        }
    }
}

/// A parameter in its own type.
fn read<T: FromStr>(name: &'static str, text: &str) -> Result<T, NotUnderstood> {
    text.parse().map_err(|_| NotUnderstood::Value(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prepare(slug: &str, params: Value, inputs: usize) -> Result<Prepared, NotUnderstood> {
        let Value::Object(params) = params else { panic!("an object") };
        Prepared::new(slug, &params, vec![Bytes::new(); inputs])
    }

    fn params() -> Value {
        json!({"width": 2, "fit": "inside", "anchor": "center", "background": "#00000000", "enlarge": "yes",
               "format": "auto", "quality": 85})
    }

    #[test]
    fn every_action_of_the_catalogue_is_carried_out() {
        for action in domain::action::all() {
            assert!(!matches!(prepare(action.slug, json!({}), 1), Err(NotUnderstood::Action(_))), "{}", action.slug);
        }
    }

    #[test]
    fn a_stored_request_that_no_build_wrote_is_refused() {
        assert!(prepare("resize", params(), 1).is_ok());
        assert!(matches!(prepare("melt", params(), 1), Err(NotUnderstood::Action(_))));
        assert!(matches!(prepare("resize", json!({"width": "wide"}), 1), Err(NotUnderstood::Params(_))));
        assert!(matches!(prepare("resize", params(), 2), Err(NotUnderstood::Inputs(2))));
        let mut without_sides = params();
        without_sides["width"] = Value::Null;
        assert!(matches!(prepare("resize", without_sides, 1), Err(NotUnderstood::Value("width"))));
        let mut wrong = params();
        wrong["fit"] = json!("wide");
        assert!(matches!(prepare("resize", wrong, 1), Err(NotUnderstood::Value("fit"))));
    }
}
