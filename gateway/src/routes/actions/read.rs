//! `GET /actions/{actionKey}`.

use axum::extract::RawPathParams;
use domain::action::{self, Action};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::caller::{Caller, ReadCanvas};
use crate::problem::{Problem, Result};
use crate::reply;

/// One Action.
#[derive(Serialize, ToSchema)]
pub struct ActionRead {
    /// Its schema.
    action: &'static Action,
}

/// Read one Image Action's schema
#[utoipa::path(
    get, path = "/actions/{actionKey}", operation_id = "getAction", tag = "Image Actions",
    params(("actionKey" = String, Path, description = "Slug, or `action:<slug>`.")),
    responses((status = 200, body = ActionRead))
)]
pub async fn read(_caller: Caller<ReadCanvas>, params: RawPathParams) -> Result {
    Ok(reply::ok(&ActionRead { action: action_of(&params)? }))
}

/// The Action that the path names; a malformed key is 400, an unknown one 404.
pub fn action_of(params: &RawPathParams) -> Result<&'static Action> {
    let key = params.iter().find(|(name, _)| *name == "actionKey").map(|(_, key)| key).unwrap_or_default();
    if !domain::id::is_plain_id(key.strip_prefix("action:").unwrap_or(key)) {
        return Err(Problem::invalid("actionKey", "must be a slug or action:<slug>"));
    }
    action::find(key).ok_or(Problem::NotFound("action"))
}
