//! `POST /oauth/device`: a program without a browser asks for a code that a person types elsewhere (RFC 8628). The command line alone
//! may: a person who types a code cannot see where the access goes.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use domain::limits::{DEVICE_INTERVAL, DEVICE_SECONDS};
use http::header::{CACHE_CONTROL, ORIGIN};
use serde::Serialize;

use super::client::{COMMAND_LINE, Client};
use super::error::{OauthError, Result};
use super::form::{Form, Parameters};
use super::request::requested_scopes;
use crate::rates::Rate;
use crate::state::App;

/// The grant type by which a program presents its device code.
pub const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Seconds after which a program may try again when too many wait.
const RETRY: u64 = 60;

/// The answer, in the form of RFC 8628, section 3.2.
#[derive(Serialize)]
struct Waiting {
    device_code: String,
    user_code: String,
    verification_uri: String,
    expires_in: u32,
    interval: u32,
}

/// A page asks for no code: it would ask from the address of the person who reads it, which is what the person is shown to judge by.
pub async fn device(State(app): State<App>, request: Request) -> Result {
    if [ORIGIN.as_str(), "sec-fetch-site"].iter().any(|name| request.headers().contains_key(*name)) {
        return Err(OauthError::invalid_request("device codes are not for programs in a browser"));
    }
    let form = Form::receive(&app, request, Rate::Devices).await?;
    let parameters = form.parameters()?;
    Client::find(&app, parameters.required("client_id")?).await?.ok_or_else(OauthError::invalid_client)?;
    require_command_line(&parameters)?;
    let scopes = requested_scopes(&parameters).map_err(|(error, description)| OauthError::new(error, description))?;
    let mut transaction = app.transaction().await?;
    let created = app::device::create(&mut transaction, app.keys.app(), scopes, &form.origin.address).await?;
    db::pool::commit(transaction).await?;
    let code = created.ok_or_else(|| OauthError::busy("too many device codes wait for a person", RETRY))?;
    let (first, second) = code.user_code.split_at(app::device::LENGTH / 2);
    let waiting = Waiting {
        user_code: format!("{first}-{second}"),
        device_code: code.device_code,
        verification_uri: format!("{}/device", app.config.public_url),
        expires_in: DEVICE_SECONDS,
        interval: DEVICE_INTERVAL,
    };
    Ok(([(CACHE_CONTROL, "no-store")], Json(waiting)).into_response())
}

/// Refuses other clients than the command line.
///
/// # Errors
///
/// `unauthorized_client`.
pub fn require_command_line(parameters: &Parameters<'_>) -> Result<()> {
    if parameters.required("client_id")? == COMMAND_LINE {
        return Ok(());
    }
    Err(OauthError::new("unauthorized_client", "device codes are for the command line alone"))
}
