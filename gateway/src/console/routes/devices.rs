//! `/console/devices`: a person types the code of a program that has no browser, and decides whether it gets access.

use app::device;
use app::oauth::Allowed;
use axum::extract::State;
use axum::response::IntoResponse;
use db::Transaction;
use db::devices::{Lookup, WaitingDevice};
use domain::Timestamp;
use domain::account::Scope;
use domain::budget::Budget;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::authorizations::{Decision, granted, preset, require_oauth};
use crate::console::person::Person;
use crate::extract::json::{Input, JsonBody};
use crate::oauth::client::Client;
use crate::oauth::{self, Resource};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::rates::{self, Rate};
use crate::reply;
use crate::state::App;

/// The code that a person typed.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreviewDevice {
    /// The code that the program shows: 8 consonants. Spaces, hyphens and case do not matter.
    #[schema(max_length = 40)]
    user_code: String,
}

impl Input for PreviewDevice {}

/// What the program asks for that shows a code.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedDevice {
    /// The `client_id` of the program.
    client_id: String,
    /// Its name.
    name: String,
    /// The address that it asks from.
    address: String,
    /// When it asked.
    asked_at: Timestamp,
    /// The scopes, in a fixed order.
    scopes: Vec<Scope>,
    /// What the app may spend, unless the person decides otherwise: nothing is limited where no scope generates.
    budgets: Vec<Budget>,
}

/// What waits with the code that a person typed, locked in a transaction. A wrong code is counted.
async fn find(app: &App, person: &Person, typed: &str) -> Result<(Transaction, WaitingDevice)> {
    let code = device::parse_user_code(typed)
        .ok_or_else(|| Problem::invalid("userCode", "must be the 8 letters that the program shows"))?;
    let mut transaction = app.transaction().await?;
    match db::devices::look_up(&mut transaction, &person.account, &code).await? {
        Lookup::Found(device) => Ok((transaction, device)),
        Lookup::Missed => {
            db::pool::commit(transaction).await?;
            Err(Problem::unprocessable("userCode", "belongs to no program that waits; codes are good for 10 minutes"))
        }
        Lookup::Locked(seconds) => {
            Err(Problem::RateLimited("an account may type 10 wrong codes an hour".into(), seconds))
        }
    }
}

/// Preview a device
///
/// Tells what the program asks for that shows this code, and from where. The person types the code: nothing else says which program waits.
/// A code that no program shows is 422, and after 10 of them within an hour the account can try no other one.
#[utoipa::path(
    post, path = "/devices/preview", operation_id = "previewDevice", tag = "Apps",
    request_body = PreviewDevice,
    responses(ReadErrors, (status = 200, description = "The request.", body = RequestedDevice), (status = 422))
)]
pub async fn preview(State(app): State<App>, person: Person, body: JsonBody) -> Result {
    let body: PreviewDevice = body.json().await?;
    require_oauth(&app)?;
    let (_, device) = find(&app, &person, &body.user_code).await?;
    let client = Client::command_line().recorded;
    Ok(reply::ok(&RequestedDevice {
        client_id: client.id,
        name: client.name,
        address: device.address,
        asked_at: device.created_at,
        scopes: device.scopes.iter().collect(),
        budgets: preset(&app.config, device.scopes),
    }))
}

/// A person's decision about the program that shows a code.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecideDevice {
    /// The code that the program shows: 8 consonants. Spaces, hyphens and case do not matter.
    #[schema(max_length = 40)]
    user_code: String,
    /// The decision.
    decision: Decision,
    /// What is granted, with every scope that these require: of what was asked for, all when omitted.
    #[schema(min_items = 1, max_items = 8)]
    scopes: Option<Vec<Scope>>,
    /// What the app may spend: each unit and period once. Empty: what the account has. When omitted, `budgets` of the preview, if what is
    /// granted generates.
    #[schema(max_items = 8)]
    budgets: Option<Vec<Budget>>,
    /// Days until the app ends; it does not end by itself when omitted.
    #[schema(minimum = 1, maximum = 90)]
    expires_days: Option<u32>,
}

impl Input for DecideDevice {}

/// Decide about a device
///
/// Grants the program that shows this code what it asked for, or less, or denies it. It gets its tokens when it asks next.
#[utoipa::path(
    post, path = "/devices", operation_id = "decideDevice", tag = "Apps",
    request_body = DecideDevice,
    responses(ReadErrors, (status = 204, description = "The decision is made."), (status = 422))
)]
pub async fn decide(State(app): State<App>, person: Person, body: JsonBody) -> Result {
    let body: DecideDevice = body.json().await?;
    require_oauth(&app)?;
    let is_allowed = body.decision == Decision::Allow;
    let (mut transaction, device) = find(&app, &person, &body.user_code).await?;
    if is_allowed {
        let (scopes, budgets) = granted(&app.config, device.scopes, body.scopes, body.budgets)?;
        rates::take(&app, Rate::Tokens, &person.account).await?;
        let client = &Client::command_line().recorded;
        let allowed = Allowed {
            account: &person.account,
            client,
            scopes,
            surface: oauth::surface(client, Resource::Service),
            budgets: &budgets,
            expires_days: body.expires_days,
        };
        device::allow(&mut transaction, person.actor(), &device, &allowed).await?;
    } else {
        device::deny(&mut transaction, person.actor(), &person.account, &device).await?;
    }
    db::pool::commit(transaction).await?;
    Ok(reply::private(StatusCode::NO_CONTENT.into_response()))
}
