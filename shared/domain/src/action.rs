//! Image Actions: one definition that is served, documented, and that requests are validated by (decisions 8).

mod add_text_to_image;
mod change_aspect_ratio;
mod color_grade;
mod cost;
mod crop;
mod overlay_image;
mod parts;
mod resize;
mod rotate;
mod side_by_side_composite;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use serde::Serialize;
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use crate::Violation;
use crate::graph::named;

pub use add_text_to_image::AddTextToImageParams;
pub use change_aspect_ratio::{ChangeAspectRatioParams, Ratio};
pub use color_grade::ColorGradeParams;
pub use crop::CropParams;
pub use overlay_image::OverlayImageParams;
pub use resize::ResizeParams;
pub use rotate::RotateParams;
pub use side_by_side_composite::SideBySideCompositeParams;

/// The version of every Action (specification, Versioning 2).
pub const ACTION_VERSION: &str = "1.0.0";

named! {
    /// The type of a parameter.
    ParameterType {
        /// A number.
        Number = "number",
        /// One of the options.
        Select = "select",
        /// Free text.
        Text = "text",
        /// `#rgb`, `#rrggbb` or `#rrggbbaa`.
        Color = "color",
    }
}

/// A picture that an Action reads.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ActionInput {
    /// Its name.
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_-]{0,79}$")]
    pub id: &'static str,
    /// For people.
    pub title: &'static str,
    /// For people.
    pub description: &'static str,
}

/// What an Action makes.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ActionOutput {
    /// For people.
    pub title: &'static str,
    /// For people.
    pub description: &'static str,
}

/// One choice of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ParameterOption {
    /// What is sent: a text or a number.
    #[schema(value_type = OptionValue)]
    pub value: Value,
    /// For people.
    pub label: &'static str,
}

/// The value of a choice.
#[derive(ToSchema)]
#[schema(as = OptionValue)]
#[serde(untagged)]
pub enum OptionValue {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
}

/// A parameter of an Action.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    /// Its name in `params`.
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_-]{0,79}$")]
    pub id: &'static str,
    /// For people.
    pub title: &'static str,
    /// For people.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: &'static str,
    /// What values it takes.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// Whether it must be sent.
    pub required: bool,
    /// Whether a number must be whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub integer: Option<bool>,
    /// Least number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub min: Option<f64>,
    /// Greatest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max: Option<f64>,
    /// A sensible step for a control.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub step: Option<f64>,
    /// Longest text, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub max_length: Option<usize>,
    /// The choices of a select.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<ParameterOption>,
    /// What a parameter that is left out stands for (an extension).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OptionValue>, nullable = false)]
    pub default: Option<Value>,
}

/// What the parameters' schemas cannot say: a rule over several of them, or over the form of a text. It sees them as they
/// were sent, so that it speaks beside what is wrong with single ones.
type Check = fn(&Map<String, Value>) -> Vec<Violation>;

/// An Image Action.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// `action:<slug>`.
    pub id: String,
    /// Its name.
    pub slug: &'static str,
    /// `1.0.0`.
    pub version: &'static str,
    /// For people.
    #[schema(min_length = 1)]
    pub title: &'static str,
    /// For people.
    #[schema(min_length = 1)]
    pub summary: &'static str,
    /// Guidance.
    #[schema(minimum = 1)]
    pub estimated_seconds: i32,
    /// What it reads; the order counts.
    #[schema(min_items = 1, max_items = 2)]
    pub inputs: Vec<ActionInput>,
    /// What it makes.
    pub output: ActionOutput,
    /// Its settings.
    pub parameters: Vec<Parameter>,
    /// What no single parameter's schema can say.
    #[serde(skip)]
    #[schema(ignore)]
    check: Check,
    /// What it takes beside reading and writing.
    #[serde(skip)]
    #[schema(ignore)]
    cost: cost::Cost,
}

/// Every Action, in the order of the decisions' table.
pub fn all() -> &'static [Action] {
    static ACTIONS: LazyLock<Vec<Action>> = LazyLock::new(|| {
        vec![
            resize::action(),
            crop::action(),
            change_aspect_ratio::action(),
            side_by_side_composite::action(),
            add_text_to_image::action(),
            overlay_image::action(),
            color_grade::action(),
            rotate::action(),
        ]
    });
    &ACTIONS
}

/// The Action of `key`: a slug or `action:<slug>`.
pub fn find(key: &str) -> Option<&'static Action> {
    let slug = key.strip_prefix("action:").unwrap_or(key);
    all().iter().find(|action| action.slug == slug)
}

impl Action {
    /// Guidance for inputs that have so many pixels together and a result of so many, in seconds, at least 1.
    pub fn seconds_for(&self, read: u64, written: u64) -> i32 {
        self.cost.seconds(read, written)
    }

    /// `params` with every default filled in, or everything that is wrong with them, each under `params.<id>`.
    pub fn normalize(&self, params: &Map<String, Value>) -> Result<Map<String, Value>, Vec<Violation>> {
        let mut violations: Vec<Violation> = params
            .keys()
            .filter(|key| !self.parameters.iter().any(|parameter| parameter.id == key.as_str()))
            .map(|key| Violation::new(format!("params.{key}"), "is not a parameter of this Action"))
            .collect();
        let mut normalized = Map::new();
        for parameter in &self.parameters {
            match params.get(parameter.id) {
                Some(value) => match parameter.accept(value) {
                    Ok(value) => drop(normalized.insert(parameter.id.into(), value)),
                    Err(message) => violations.push(Violation::new(format!("params.{}", parameter.id), message)),
                },
                None if parameter.required => {
                    violations.push(Violation::new(format!("params.{}", parameter.id), "is required"));
                }
                None => {
                    if let Some(default) = &parameter.default {
                        normalized.insert(parameter.id.into(), default.clone());
                    }
                }
            }
        }
        violations.extend((self.check)(params));
        if violations.is_empty() { Ok(normalized) } else { Err(violations) }
    }
}

impl Parameter {
    /// `value` in its canonical form, or what it should have been.
    fn accept(&self, value: &Value) -> Result<Value, String> {
        match (self.kind, value) {
            (ParameterType::Number, Value::Number(number)) => self.accept_number(number),
            (ParameterType::Number, _) => Err("must be a number".into()),
            (ParameterType::Select, _) if self.options.iter().any(|option| &option.value == value) => Ok(value.clone()),
            (ParameterType::Select, _) => {
                let names: Vec<String> = self.options.iter().map(|option| option.value.to_string()).collect();
                Err(format!("must be one of {}", names.join(", ")))
            }
            (ParameterType::Text, Value::String(text)) => match self.max_length {
                Some(most) if text.chars().count() > most => Err(format!("must have at most {most} characters")),
                _ => Ok(value.clone()),
            },
            (ParameterType::Color, Value::String(text)) if is_color(text) => Ok(text.to_ascii_lowercase().into()),
            (ParameterType::Color, _) => Err("must be a colour: #rgb, #rrggbb or #rrggbbaa".into()),
            (ParameterType::Text, _) => Err("must be a text".into()),
        }
    }

    fn accept_number(&self, number: &Number) -> Result<Value, String> {
        let range = || match (self.min, self.max) {
            (Some(min), Some(max)) => format!("must be from {min} to {max}"),
            (Some(min), None) => format!("must be at least {min}"),
            (None, Some(max)) => format!("must be at most {max}"),
            (None, None) => "must be a number".into(),
        };
        let number = canonical(number);
        if self.integer == Some(true) && !number.is_i64() {
            return Err("must be a whole number".into());
        }
        let float = number.as_f64().ok_or_else(range)?;
        if self.min.is_some_and(|min| float < min) || self.max.is_some_and(|max| float > max) {
            return Err(range());
        }
        Ok(Value::Number(number))
    }
}

fn is_color(text: &str) -> bool {
    text.strip_prefix('#')
        .is_some_and(|hex| matches!(hex.len(), 3 | 6 | 8) && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whole numbers in one spelling: `25.0` is `25`, as JSON Schema has it, so that both give one fingerprint.
fn canonical(number: &Number) -> Number {
    /// Up to here every whole `f64` is the number that was written.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT => Number::from(float as i64),
        _ => number.clone(),
    }
}
