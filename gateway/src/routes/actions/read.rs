//! `GET /actions/{actionKey}`.

use std::str::FromStr;

use actions::DefinedAction;
use domain::action::ActionRead;

use crate::extract::caller::{Caller, ReadCanvas};
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;

/// Read the schema of an Image Action
///
/// Returns one Action: its inputs in order, its parameters with types, ranges and defaults, and its estimated
/// duration. Use it to learn what a run takes. It runs nothing.
#[utoipa::path(
    get, path = "/actions/{actionKey}", operation_id = "getAction", tag = "Image Actions",
    security(("bearer" = ["canvas:read"])),
    params(("actionKey" = String, Path, pattern = "^(action:)?[A-Za-z0-9_-]{1,180}$", description = "Slug, or `action:<slug>`.")),
    responses(ReadErrors, (status = 200, description = "The Action.", body = ActionRead))
)]
pub async fn read(_caller: Caller<ReadCanvas>, params: PathText) -> Result {
    Ok(reply::ok(&ActionRead { action: action_of(&params)?.document() }))
}

/// The Action that the path names; 400 for a malformed key, 404 for an unknown one.
pub fn action_of(params: &PathText) -> Result<&'static DefinedAction> {
    let ActionKey(slug) = params.parameter("actionKey")?;
    actions::find(&slug).ok_or(Problem::NotFound("action"))
}

/// Key of an Action in a path: `<slug>` or `action:<slug>`.
struct ActionKey(String);

impl FromStr for ActionKey {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let slug = text.strip_prefix("action:").unwrap_or(text);
        let fits = domain::id::is_plain_id(slug);
        if fits { Ok(Self(slug.to_owned())) } else { Err("must be a slug or action:<slug>") }
    }
}
