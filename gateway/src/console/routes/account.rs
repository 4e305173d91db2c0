//! `/console/account`: the name under which others see a person (docs/reference/console.md#name).

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::session::{PersonSummary, shown_role};
use crate::console::person::Person;
use crate::extract::json::{Input, JsonBody};
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// The new name of an account.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rename {
    /// The name that others see, without `@`, so that it shows no address, and without control characters. Empty: the part of the email
    /// before the `@`.
    #[schema(max_length = 80, pattern = r"^[^@\x00-\x1f\x7f-\x9f]*$")]
    display_name: String,
}

impl Input for Rename {}

/// The account after the change.
#[derive(Serialize, ToSchema)]
pub struct Renamed {
    /// The account.
    account: PersonSummary,
}

/// Change the name
///
/// Changes the name under which others see what the person does in the console. Activity that was recorded before keeps the former one.
#[utoipa::path(
    patch, path = "/account", operation_id = "renameAccount", tag = "Session", request_body = Rename,
    responses(ScopeErrors, (status = 200, description = "The name was changed.", body = Renamed))
)]
pub async fn rename(State(app): State<App>, person: Person, body: JsonBody) -> Result {
    let Rename { display_name } = body.json().await?;
    let name = display_name.trim();
    let mut transaction = app.transaction().await?;
    let who = (&person.account, person.email.as_str());
    let shown = app::account::rename(&mut transaction, person.actor(), who, name).await?;
    db::pool::commit(transaction).await?;
    let (id, email) = (person.account.clone(), person.email.clone());
    let account = PersonSummary { id, email, display_name: shown, role: shown_role(person.role) };
    Ok(reply::ok(&Renamed { account }))
}
