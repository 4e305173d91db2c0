//! Stored parameters, which are normalized, in their typed form.

use std::str::FromStr;

use raster::{Finish, FormatChoice};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::{NotUnderstood, Run};

/// The parameters of an Action, with those that all Actions have.
#[derive(Debug, Deserialize)]
pub(crate) struct Stored<P> {
    #[serde(flatten)]
    pub params: P,
    #[serde(deserialize_with = "parsed")]
    format: FormatChoice,
    quality: u8,
}

impl<P> Stored<P> {
    pub fn finish(&self) -> Finish {
        Finish { choice: self.format, quality: self.quality }
    }
}

/// Parses the parameters of an Action.
pub(crate) fn parse<R: Run + DeserializeOwned + 'static>(
    params: &Map<String, Value>,
) -> Result<Stored<Box<dyn Run>>, NotUnderstood> {
    let stored: Stored<R> = serde_json::from_value(Value::Object(params.clone())).map_err(NotUnderstood::Params)?;
    Ok(Stored { params: Box::new(stored.params), format: stored.format, quality: stored.quality })
}

/// A value that is written as a text.
pub(crate) fn parsed<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom(format_args!("`{text}` is not a known value")))
}

/// `yes` or `no`.
pub(crate) fn yes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    one_of(deserializer, "yes", "no")
}

/// Parses one of two texts as a Boolean: `true` for the first.
pub(crate) fn one_of<'de, D: Deserializer<'de>>(
    deserializer: D,
    yes: &'static str,
    no: &'static str,
) -> Result<bool, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text == yes || text == no { Ok(text == yes) } else { Err(D::Error::unknown_variant(&text, &[])) }
}
