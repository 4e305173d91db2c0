//! The definition of an Action, and its building blocks.

use std::ops::Deref;

use domain::Violation;
use domain::action::{
    Action, ActionInput, ActionOutput, ActionSlug, ActionVersion, Medium, Parameter, ParameterOption, ParameterType,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

pub use domain::origin::Effect;

use crate::cost::Cost;
use crate::stored::{self, Stored};
use crate::{NotUnderstood, Run};

/// Checks that a schema of one parameter cannot express: a rule over several parameters, or the syntax of a text. It
/// receives the parameters as they were sent, so that its violations are reported together with those of single
/// parameters.
type Check = fn(&Map<String, Value>) -> Vec<Violation>;

/// Parses normalized parameters.
type Parse = fn(&Map<String, Value>) -> Result<Stored<Box<dyn Run>>, NotUnderstood>;

/// An Action as this service defines it: what is served, and its rules, cost and implementation.
#[derive(Clone, Debug)]
pub struct DefinedAction {
    /// The served form.
    action: Action,
    /// Rules that the schema of a single parameter cannot express.
    pub(crate) check: Check,
    /// Processing cost without decoding and encoding.
    pub(crate) cost: Cost,
    /// Effect on the origin of its inputs.
    effect: Effect,
    /// Parses normalized parameters.
    pub(crate) parse: Parse,
}

impl Deref for DefinedAction {
    type Target = Action;
    fn deref(&self) -> &Action {
        &self.action
    }
}

impl DefinedAction {
    /// The served form.
    pub fn document(&self) -> Action {
        self.action.clone()
    }

    /// The same Action, which reads another medium.
    pub(super) fn of(mut self, medium: Medium) -> Self {
        self.action.medium = medium;
        self
    }

    /// The same Action in a later version.
    pub(super) fn in_version(mut self, version: ActionVersion) -> Self {
        self.action.version = version.as_str().into();
        self
    }

    /// Effect on the origin of its inputs.
    pub fn effect(&self) -> Effect {
        self.effect
    }
}

pub(super) fn select(
    id: &'static str,
    title: &'static str,
    default: &str,
    options: &[(&'static str, &'static str)],
) -> Parameter {
    Parameter {
        options: options
            .iter()
            .map(|(value, label)| ParameterOption { value: json!(value), label: (*label).into() })
            .collect(),
        default: Some(json!(default)),
        ..plain(id, title, ParameterType::Select)
    }
}

pub(super) fn integer(id: &'static str, title: &'static str, min: u32, max: u32) -> Parameter {
    Parameter { min: Some(f64::from(min)), max: Some(f64::from(max)), ..whole(id, title) }
}

/// A whole number without limits.
pub(super) fn whole(id: &'static str, title: &'static str) -> Parameter {
    Parameter { integer: Some(true), step: Some(1.0), ..plain(id, title, ParameterType::Number) }
}

/// A distance from the place that the anchor gives.
pub(super) fn offset(id: &'static str, title: &'static str) -> Parameter {
    Parameter {
        description: "In pixels. Positive values move right and down, whatever the anchor.".into(),
        default: Some(json!(0)),
        ..whole(id, title)
    }
}

/// A number from `min` to `max` with a default.
pub(super) fn number(id: &'static str, title: &'static str, (min, max): (f64, f64), default: f64) -> Parameter {
    // A whole default is served as a whole number.
    let default = if default.fract() == 0.0 { json!(default as i64) } else { json!(default) };
    Parameter { min: Some(min), max: Some(max), default: Some(default), ..plain(id, title, ParameterType::Number) }
}

pub(super) fn color(id: &'static str, title: &'static str, default: &str) -> Parameter {
    Parameter { default: Some(json!(default)), ..plain(id, title, ParameterType::Color) }
}

pub(super) fn plain(id: &'static str, title: &'static str, kind: ParameterType) -> Parameter {
    Parameter {
        id: id.into(),
        title: title.into(),
        description: "".into(),
        kind,
        required: false,
        integer: None,
        min: None,
        max: None,
        step: None,
        max_length: None,
        options: Vec::new(),
        default: None,
    }
}

pub(super) fn anchor(default: &str) -> Parameter {
    Parameter {
        description: "The part of the image that is kept when it is cut, or the position of the image when there is space around it.".into(),
        ..select(
            "anchor",
            "Anchor",
            default,
            &[
                ("top-left", "Top left"),
                ("top", "Top"),
                ("top-right", "Top right"),
                ("left", "Left"),
                ("center", "Center"),
                ("right", "Right"),
                ("bottom-left", "Bottom left"),
                ("bottom", "Bottom"),
                ("bottom-right", "Bottom right"),
            ],
        )
    }
}

/// `format` and `quality`, which every Action has, last.
pub(super) fn encoding() -> [Parameter; 2] {
    [
        Parameter {
            description:
                "File format. `auto` keeps JPEG (unless alpha is needed) and WebP; everything else becomes PNG.".into(),
            ..select(
                "format",
                "Format",
                "auto",
                &[("auto", "Auto"), ("png", "PNG"), ("jpeg", "JPEG"), ("webp", "WebP")],
            )
        },
        Parameter {
            description: "Quality of a JPEG or WebP file.".into(),
            default: Some(json!(85)),
            ..integer("quality", "Quality", 1, 100)
        },
    ]
}

/// Definition of an Action of the first version. `format` and `quality` are appended to `parameters`.
pub(super) struct Definition<const N: usize> {
    pub slug: ActionSlug,
    pub title: &'static str,
    pub summary: &'static str,
    pub cost: Cost,
    pub effect: Effect,
    pub inputs: Vec<ActionInput>,
    pub output: &'static str,
    pub parameters: [Parameter; N],
    pub check: Check,
}

impl<const N: usize> Definition<N> {
    /// Defines an Action whose normalized parameters are those of `R`.
    pub(super) fn build<R: Run + DeserializeOwned + 'static>(self) -> DefinedAction {
        let action = Action {
            id: format!("action:{}", self.slug),
            slug: self.slug.as_str().into(),
            version: ActionVersion::First.as_str().into(),
            title: self.title.into(),
            summary: self.summary.into(),
            estimated_seconds: self.cost.typical_seconds(self.inputs.len()),
            medium: Medium::Image,
            inputs: self.inputs,
            output: ActionOutput { title: "Image".into(), description: self.output.into() },
            parameters: self.parameters.into_iter().chain(encoding()).collect(),
        };
        DefinedAction { action, check: self.check, cost: self.cost, effect: self.effect, parse: stored::parse::<R> }
    }
}

/// The only input of an Action with one input.
pub(super) fn image(description: &'static str) -> Vec<ActionInput> {
    vec![ActionInput { id: "image".into(), title: "Image".into(), description: description.into() }]
}

/// No rules beyond the schemas of the parameters.
pub(super) fn no_check(_: &Map<String, Value>) -> Vec<Violation> {
    Vec::new()
}
