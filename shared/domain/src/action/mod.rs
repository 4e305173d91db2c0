//! Image Actions. One definition is served, documented, and used to validate requests. Rules:
//! `docs/reference/actions.md`.

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

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use crate::Violation;
use crate::graph::named;
use crate::known;
use crate::page::{CatalogEntry, Page};

pub use add_text_to_image::AddTextToImageParams;
pub use change_aspect_ratio::{ChangeAspectRatioParams, Ratio};
pub use color_grade::ColorGradeParams;
pub use crop::CropParams;
pub use overlay_image::OverlayImageParams;
pub use resize::ResizeParams;
pub use rotate::RotateParams;
pub use side_by_side_composite::SideBySideCompositeParams;

/// Version of every Action.
pub const ACTION_VERSION: &str = "1.0.0";

named! {
    /// Type of a parameter.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionInput {
    /// Name of the input.
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_-]{0,79}$")]
    pub id: Cow<'static, str>,
    /// Title for people.
    pub title: Cow<'static, str>,
    /// Description for people.
    pub description: Cow<'static, str>,
}

/// Result of an Action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionOutput {
    /// Title for people.
    pub title: Cow<'static, str>,
    /// Description for people.
    pub description: Cow<'static, str>,
}

/// An option of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParameterOption {
    /// Value to send: a text or a number.
    #[schema(value_type = OptionValue)]
    pub value: Value,
    /// Label for people.
    pub label: Cow<'static, str>,
}

/// Value of an option.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    /// Name of the parameter in `params`.
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_-]{0,79}$")]
    pub id: Cow<'static, str>,
    /// Title for people.
    pub title: Cow<'static, str>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub description: Cow<'static, str>,
    /// Type of the value.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// Whether the request must contain it.
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
    /// Suggested step of a control.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub step: Option<f64>,
    /// Longest text in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub max_length: Option<usize>,
    /// Options of a `select`; suggestions for a `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<ParameterOption>,
    /// Value that is used when the parameter is omitted (an extension).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OptionValue>, nullable = false)]
    pub default: Option<Value>,
}

/// An Image Action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// Id of the Action, `action:<slug>`.
    pub id: String,
    /// Slug of the Action.
    pub slug: Cow<'static, str>,
    /// Version of the Action: `1.0.0`.
    pub version: Cow<'static, str>,
    /// Title for people.
    #[schema(min_length = 1)]
    pub title: Cow<'static, str>,
    /// Summary for people.
    #[schema(min_length = 1)]
    pub summary: Cow<'static, str>,
    /// Estimated seconds for pictures of twelve megapixels. Guidance.
    #[schema(minimum = 1)]
    pub estimated_seconds: i32,
    /// Pictures that the Action reads, in order.
    #[schema(min_items = 1, max_items = 2)]
    pub inputs: Vec<ActionInput>,
    /// Result of the Action.
    pub output: ActionOutput,
    /// Parameters of the Action.
    #[serde(deserialize_with = "known::items")]
    pub parameters: Vec<Parameter>,
}

/// One Action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionRead {
    /// The Action with its parameter schema.
    pub action: Action,
}

/// A page of Actions, in a fixed order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionList {
    /// Actions with their full schemas.
    pub actions: Vec<Action>,
    /// Position in the list.
    pub page: Page,
}

/// A page of Actions in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionSummaries {
    /// Actions in short.
    pub actions: Vec<CatalogEntry>,
    /// Position in the list.
    pub page: Page,
}

/// A page of Actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ActionPage {
    /// Actions with their full schemas.
    Full(ActionList),
    /// Actions in short, with `view=summary`.
    Summary(ActionSummaries),
}

/// Checks that a schema of one parameter cannot express: a rule over several parameters, or the syntax of a text. It
/// receives the parameters as they were sent, so that its violations are reported together with those of single
/// parameters.
type Check = fn(&Map<String, Value>) -> Vec<Violation>;

/// An Action as this service defines it: what is served, and the rules and the cost that are not.
#[derive(Clone, Debug)]
pub struct DefinedAction {
    /// The served form.
    action: Action,
    /// Rules that the schema of a single parameter cannot express.
    check: Check,
    /// Processing cost without decoding and encoding.
    cost: cost::Cost,
}

impl Deref for DefinedAction {
    type Target = Action;
    fn deref(&self) -> &Action {
        &self.action
    }
}

/// Every Action, in the order in which lists serve them.
pub fn all() -> &'static [DefinedAction] {
    static ACTIONS: LazyLock<Vec<DefinedAction>> = LazyLock::new(|| {
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

/// The Action with this slug or id (`action:<slug>`).
pub fn find(key: &str) -> Option<&'static DefinedAction> {
    let slug = key.strip_prefix("action:").unwrap_or(key);
    all().iter().find(|action| action.slug == slug)
}

impl DefinedAction {
    /// The served form.
    pub fn document(&self) -> Action {
        self.action.clone()
    }

    /// Estimated seconds, at least 1, for `read` input pixels in total and `written` output pixels.
    pub fn seconds_for(&self, read: u64, written: u64) -> i32 {
        self.cost.seconds(read, written)
    }

    /// The parameters with every default filled in, or all violations, each under `params.<id>`.
    pub fn normalize(&self, params: &Map<String, Value>) -> Result<Map<String, Value>, Vec<Violation>> {
        let mut violations: Vec<Violation> = params
            .keys()
            .filter(|key| !self.parameters.iter().any(|parameter| parameter.id == key.as_str()))
            .map(|key| Violation::new(format!("params.{key}"), "is not a parameter of this Action"))
            .collect();
        let mut normalized = Map::new();
        for parameter in &self.parameters {
            match params.get(&*parameter.id) {
                Some(value) => match parameter.accept(value) {
                    Ok(value) => drop(normalized.insert(parameter.id.to_string(), value)),
                    Err(message) => violations.push(Violation::new(format!("params.{}", parameter.id), message)),
                },
                None if parameter.required => {
                    violations.push(Violation::new(format!("params.{}", parameter.id), "is required"));
                }
                None => {
                    if let Some(default) = &parameter.default {
                        normalized.insert(parameter.id.to_string(), default.clone());
                    }
                }
            }
        }
        violations.extend((self.check)(params));
        if violations.is_empty() { Ok(normalized) } else { Err(violations) }
    }
}

impl Parameter {
    /// The canonical form of `value`, or what it must be.
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
            (ParameterType::Color, Value::String(text)) if is_color(text) => Ok(self.accept_color(text)),
            (ParameterType::Color, _) => Err("must be a color: #rgb, #rrggbb or #rrggbbaa".into()),
            (ParameterType::Text, _) => Err("must be a text".into()),
        }
    }

    /// A color in lower case. Every spelling of the default is the default, so that all of them have one fingerprint.
    fn accept_color(&self, text: &str) -> Value {
        let default = self.default.as_ref().and_then(Value::as_str);
        match default {
            Some(default) if with_alpha(default) == with_alpha(text) => default.into(),
            _ => text.to_ascii_lowercase().into(),
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

/// A color as `#rrggbbaa` in lower case.
fn with_alpha(color: &str) -> String {
    let color = color.to_ascii_lowercase();
    match color.len() {
        4 => color.chars().skip(1).fold("#".to_owned(), |long, digit| format!("{long}{digit}{digit}")) + "ff",
        7 => color + "ff",
        _ => color,
    }
}

/// The canonical form of a number: `25.0` is `25`, as in JSON Schema, so that both spellings have one fingerprint.
fn canonical(number: &Number) -> Number {
    /// Up to this value every whole `f64` is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT => Number::from(float as i64),
        _ => number.clone(),
    }
}
