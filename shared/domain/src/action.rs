//! Image Actions: one definition that is served, documented, and that requests are validated by (decisions 8).

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};
use utoipa::ToSchema;

use crate::Violation;
use crate::graph::named;
use crate::limits::OUTPUT_SIDE_MAX;

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
    /// What a parameter that is left out stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OptionValue>, nullable = false)]
    pub default: Option<Value>,
}

/// A rule over several parameters.
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
}

/// Every Action, in the order of the decisions' table.
pub fn all() -> &'static [Action] {
    static ACTIONS: LazyLock<Vec<Action>> = LazyLock::new(|| vec![resize()]);
    &ACTIONS
}

/// The Action of `key`: a slug or `action:<slug>`.
pub fn find(key: &str) -> Option<&'static Action> {
    let slug = key.strip_prefix("action:").unwrap_or(key);
    all().iter().find(|action| action.slug == slug)
}

impl Action {
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
        if violations.is_empty() {
            violations = (self.check)(&normalized);
        }
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
        let range = || format!("must be from {} to {}", self.min.unwrap_or(f64::MIN), self.max.unwrap_or(f64::MAX));
        if self.integer == Some(true) && !number.is_i64() {
            return Err("must be a whole number".into());
        }
        let float = number.as_f64().ok_or_else(range)?;
        if self.min.is_some_and(|min| float < min) || self.max.is_some_and(|max| float > max) {
            return Err(range());
        }
        Ok(Value::Number(number.clone()))
    }
}

fn is_color(text: &str) -> bool {
    text.strip_prefix('#')
        .is_some_and(|hex| matches!(hex.len(), 3 | 6 | 8) && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn select(id: &'static str, title: &'static str, default: &str, options: &[(&'static str, &'static str)]) -> Parameter {
    Parameter {
        options: options.iter().map(|(value, label)| ParameterOption { value: json!(value), label }).collect(),
        default: Some(json!(default)),
        ..plain(id, title, ParameterType::Select)
    }
}

fn integer(id: &'static str, title: &'static str, min: u32, max: u32) -> Parameter {
    Parameter {
        integer: Some(true),
        min: Some(f64::from(min)),
        max: Some(f64::from(max)),
        step: Some(1.0),
        ..plain(id, title, ParameterType::Number)
    }
}

fn color(id: &'static str, title: &'static str, default: &str) -> Parameter {
    Parameter { default: Some(json!(default)), ..plain(id, title, ParameterType::Color) }
}

fn plain(id: &'static str, title: &'static str, kind: ParameterType) -> Parameter {
    Parameter {
        id,
        title,
        description: "",
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

fn anchor(default: &str) -> Parameter {
    Parameter {
        description: "Which part stays when something has to go, or where the picture sits when there is room.",
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

/// `format` and `quality`, which every Action has.
fn encoding() -> [Parameter; 2] {
    [
        Parameter {
            description: "Auto keeps JPEG (unless alpha is needed) and WebP; everything else becomes PNG.",
            ..select(
                "format",
                "Format",
                "auto",
                &[("auto", "Auto"), ("png", "PNG"), ("jpeg", "JPEG"), ("webp", "WebP")],
            )
        },
        Parameter {
            description: "Of JPEG and WebP.",
            default: Some(json!(85)),
            ..integer("quality", "Quality", 1, 100)
        },
    ]
}

fn resize() -> Action {
    let mut parameters = vec![
        Parameter {
            description: "In pixels; left out, it follows the ratio.",
            ..integer("width", "Width", 1, OUTPUT_SIDE_MAX)
        },
        Parameter {
            description: "In pixels; left out, it follows the ratio.",
            ..integer("height", "Height", 1, OUTPUT_SIDE_MAX)
        },
        Parameter {
            description: "How the picture meets the asked box.",
            ..select(
                "fit",
                "Fit",
                "inside",
                &[
                    ("inside", "Inside the box"),
                    ("cover", "Cover the box, cut the rest"),
                    ("contain", "Contain in the box, pad the rest"),
                    ("fill", "Fill the box, ratio given up"),
                    ("outside", "Outside the box"),
                ],
            )
        },
        anchor("center"),
        Parameter {
            description: "Of what the picture does not cover.",
            ..color("background", "Background", "#00000000")
        },
        Parameter {
            description: "Whether pixels may be scaled up.",
            ..select("enlarge", "Enlarge", "yes", &[("yes", "Yes"), ("no", "No")])
        },
    ];
    parameters.extend(encoding());
    Action {
        id: "action:resize".into(),
        slug: "resize",
        version: ACTION_VERSION,
        title: "Resize",
        summary: "Scale a picture to a width, a height, or a box.",
        estimated_seconds: 1,
        inputs: vec![ActionInput { id: "image", title: "Image", description: "The picture to scale." }],
        output: ActionOutput { title: "Image", description: "The scaled picture." },
        parameters,
        check: |params| match (params.get("width"), params.get("height")) {
            (None, None) => vec![Violation::new("params.width", "width, height or both are required")],
            _ => Vec::new(),
        },
    }
}

/// `resize`'s parameters, normalized.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResizeParams {
    /// Pixels.
    pub width: Option<u32>,
    /// Pixels.
    pub height: Option<u32>,
    /// `inside`, `cover`, `contain`, `fill` or `outside`.
    pub fit: String,
    /// One of nine.
    pub anchor: String,
    /// A colour.
    pub background: String,
    /// `yes` or `no`.
    pub enlarge: String,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// 1 to 100.
    pub quality: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalize(params: Value) -> Result<Map<String, Value>, Vec<String>> {
        let action = find("resize").expect("known");
        action
            .normalize(params.as_object().expect("an object"))
            .map_err(|violations| violations.into_iter().map(|violation| violation.field).collect())
    }

    #[test]
    fn defaults_are_filled_in() {
        let params = normalize(json!({"width": 10})).expect("valid");
        let typed: ResizeParams = serde_json::from_value(Value::Object(params)).expect("matches the definition");
        assert_eq!((typed.width, typed.height, typed.fit.as_str(), typed.quality), (Some(10), None, "inside", 85));
    }

    #[test]
    fn every_wrong_parameter_is_named() {
        let wrong =
            json!({"width": 0, "height": 16385, "fit": "wide", "background": "red", "quality": 1.5, "depth": 1});
        let mut fields = normalize(wrong).expect_err("all wrong");
        fields.sort();
        assert_eq!(
            fields,
            ["params.background", "params.depth", "params.fit", "params.height", "params.quality", "params.width"]
        );
    }

    #[test]
    fn limits_are_inclusive() {
        for (params, good) in [
            (json!({"width": 1}), true),
            (json!({"width": 0}), false),
            (json!({"height": 16384}), true),
            (json!({"height": 16385}), false),
            (json!({"width": 1, "quality": 100}), true),
            (json!({"width": 1, "quality": 101}), false),
            (json!({"width": 1, "quality": 0}), false),
            (json!({"width": 1, "background": "#FFF"}), true),
            (json!({"width": 1, "background": "#ffff"}), false),
            (json!({}), false),
            (json!({"width": "1"}), false),
            (json!({"width": null}), false),
        ] {
            assert_eq!(normalize(params.clone()).is_ok(), good, "{params}");
        }
    }
}
