//! `GET /models/{modelKey}` (docs/reference/models.md#read-a-model).

use std::str::FromStr;

use axum::extract::State;
use domain::model::{ModelRead, is_model_key};

use crate::extract::caller::{Caller, Generate};
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Key of a model in a path: `^[A-Za-z0-9_-]{8,600}$`, with or without the prefix `model:`.
struct ModelKey(String);

impl FromStr for ModelKey {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key = text.strip_prefix("model:").unwrap_or(text);
        if is_model_key(key) { Ok(Self(key.to_owned())) } else { Err("must be a model key or handle") }
    }
}

/// Read a model
///
/// Returns one model with its parameters and price. Use it before a start to learn which sizes, qualities and
/// durations the model offers. It runs nothing. The key is opaque: take it from a list, never build or decode one.
#[utoipa::path(
    get, path = "/models/{modelKey}", operation_id = "getModel", tag = "Models and providers",
    security(("bearer" = ["image:generate"]), ("bearer" = ["video:generate"])),
    params(("modelKey" = String, Path, pattern = "^(model:)?[A-Za-z0-9_-]{8,600}$", description = "Key, or `model:<key>`.")),
    responses(ReadErrors, (status = 200, description = "The model.", body = ModelRead))
)]
pub async fn read(State(app): State<App>, caller: Caller<Generate>, params: PathText) -> Result {
    let ModelKey(key) = params.parameter("modelKey")?;
    let models = app.runnable(&mut *app.connection().await?, &caller.account).await?;
    let model = models.iter().find(|model| model.has_key(&key) && model.is_for(caller.scopes));
    let model = model.and_then(|model| model.document()).ok_or(Problem::NotFound("model"))?;
    Ok(reply::ok(&ModelRead { model }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_8_to_600_characters_of_its_alphabet() {
        let key = |text: &str| text.parse::<ModelKey>().map(|key| key.0);
        assert_eq!(key("model:abcdefgh"), Ok("abcdefgh".into()));
        assert!(key(&"k".repeat(600)).is_ok());
        for wrong in ["", "abcdefg", &"k".repeat(601), "abcd efgh", "model:model:abcd", "abcdefgä"] {
            assert!(key(wrong).is_err(), "{wrong:?}");
        }
    }
}
