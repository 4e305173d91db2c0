//! `video-frame`: makes an image of a frame of a video (`docs/reference/actions.md#video-frame`).
//!
//! The frame is decoded before the Action runs ([`crate::Prepared::frame`]), and comes as an image without loss.

use domain::Violation;
use domain::action::{ActionInput, ActionSlug, Medium, Parameter, ParameterType};
use raster::resize::check_output;
use raster::{Bounds, Change, Finish, Input, PlanError, Resize, Size};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cost::Cost;
use crate::definition::{Definition, Effect, plain, select};
use crate::{DefinedAction, Frame, Refusal, Run};

/// The latest time that a request names, in seconds.
const SECONDS_MAX: f64 = 86_400.0;

pub(crate) fn action() -> DefinedAction {
    Definition {
        slug: ActionSlug::VideoFrame,
        title: "Video frame",
        summary: "Make an image of the first, the last or any other frame of a video.",
        cost: Cost::RESAMPLE,
        effect: Effect::Adjusts,
        inputs: vec![ActionInput {
            id: "video".into(),
            title: "Video".into(),
            description: "The video to take a frame of.".into(),
        }],
        output: "The frame, upright, with the size of the video.",
        parameters: [
            Parameter {
                description: "Which frame. With `time`, the one that is shown at `seconds`.".into(),
                ..select("at", "Frame", "first", &[("first", "First"), ("last", "Last"), ("time", "At a time")])
            },
            Parameter {
                description: "Time from the beginning of the video, with `at: \"time\"`.".into(),
                min: Some(0.0),
                max: Some(SECONDS_MAX),
                ..plain("seconds", "Seconds", ParameterType::Number)
            },
        ],
        check,
    }
    .build::<VideoFrame>()
    .of(Medium::Video)
}

/// `seconds` is there with `at: "time"`, and only then.
fn check(params: &Map<String, Value>) -> Vec<Violation> {
    let is_time = params.get("at") == Some(&json!("time"));
    let message = match (is_time, params.contains_key("seconds")) {
        (true, false) => "is required with `at: \"time\"`",
        (false, true) => "goes with `at: \"time\"` alone",
        _ => return Vec::new(),
    };
    vec![Violation::new("params.seconds", message)]
}

/// The parameters, normalized.
#[derive(Debug, Deserialize)]
struct VideoFrame {
    at: At,
    seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum At {
    First,
    Last,
    Time,
}

impl Run for VideoFrame {
    fn plan(&self, sources: &[Size]) -> Result<Size, Refusal> {
        let size = sources[0];
        let checked = if size.pixels() == 0 { Err(PlanError::EmptySource) } else { check_output(size) };
        checked.map(|()| size).map_err(Refusal::for_field("inputs[0]"))
    }

    fn frame(&self) -> Option<Frame> {
        Some(match self.at {
            At::First => Frame::First,
            At::Last => Frame::Last,
            At::Time => Frame::Seconds(self.seconds.unwrap_or(0.0)),
        })
    }

    /// Converts the frame, which comes as an image.
    fn run(&self, image: Input, _: &[u8], _: Option<Finish>) -> Result<Change, raster::Error> {
        let Size { width, height } = image.size();
        let own = Bounds::new(Some(width), Some(height)).ok_or(PlanError::EmptySource)?;
        raster::resize::change(image, &Resize::new(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_go_with_a_time_alone() {
        let action = crate::find("video-frame").expect("is there");
        for (params, good) in [
            (json!({}), true),
            (json!({"at": "last"}), true),
            (json!({"at": "time", "seconds": 0}), true),
            (json!({"at": "time", "seconds": 1.25}), true),
            (json!({"at": "time", "seconds": 86_400}), true),
            (json!({"at": "time", "seconds": 86_401}), false),
            (json!({"at": "time", "seconds": -0.1}), false),
            (json!({"at": "time"}), false),
            (json!({"at": "first", "seconds": 1}), false),
            (json!({"seconds": 1}), false),
        ] {
            let normalized = action.normalize(params.as_object().expect("an object"));
            assert_eq!(normalized.is_ok(), good, "{params}");
            let fields: Vec<String> = normalized.err().into_iter().flatten().map(|it| it.field).collect();
            assert!(good || fields == ["params.seconds"], "{fields:?}");
        }
    }
}
