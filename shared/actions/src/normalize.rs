//! The normalized form of the parameters of a request.

use domain::Violation;
use domain::action::{Parameter, ParameterType};
use serde_json::{Map, Number, Value};

use crate::DefinedAction;

impl DefinedAction {
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
                Some(value) => match accept(parameter, value) {
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

/// The canonical form of `value`, or what it must be.
pub(crate) fn accept(parameter: &Parameter, value: &Value) -> Result<Value, String> {
    match (parameter.kind, value) {
        (ParameterType::Number, Value::Number(number)) => accept_number(parameter, number),
        (ParameterType::Number, _) => Err("must be a number".into()),
        (ParameterType::Select, _) if parameter.options.iter().any(|option| &option.value == value) => {
            Ok(value.clone())
        }
        (ParameterType::Select, _) => {
            let names: Vec<String> = parameter.options.iter().map(|option| option.value.to_string()).collect();
            Err(format!("must be one of {}", names.join(", ")))
        }
        (ParameterType::Text, Value::String(text)) => match parameter.max_length {
            Some(most) if text.chars().count() > most => Err(format!("must have at most {most} characters")),
            _ => Ok(value.clone()),
        },
        (ParameterType::Color, Value::String(text)) if is_color(text) => Ok(accept_color(parameter, text)),
        (ParameterType::Color, _) => Err("must be a color: #rgb, #rrggbb or #rrggbbaa".into()),
        (ParameterType::Text, _) => Err("must be a text".into()),
    }
}

/// A color in lower case. Every spelling of the default is the default, so that all of them have one fingerprint.
fn accept_color(parameter: &Parameter, text: &str) -> Value {
    let default = parameter.default.as_ref().and_then(Value::as_str);
    match default {
        Some(default) if with_alpha(default) == with_alpha(text) => default.into(),
        _ => text.to_ascii_lowercase().into(),
    }
}

fn accept_number(parameter: &Parameter, number: &Number) -> Result<Value, String> {
    let range = || match (parameter.min, parameter.max) {
        (Some(min), Some(max)) => format!("must be from {min} to {max}"),
        (Some(min), None) => format!("must be at least {min}"),
        (None, Some(max)) => format!("must be at most {max}"),
        (None, None) => "must be a number".into(),
    };
    let number = canonical(number);
    if parameter.integer == Some(true) && !number.is_i64() {
        return Err("must be a whole number".into());
    }
    let float = number.as_f64().ok_or_else(range)?;
    if parameter.min.is_some_and(|min| float < min) || parameter.max.is_some_and(|max| float > max) {
        return Err(range());
    }
    Ok(Value::Number(number))
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
