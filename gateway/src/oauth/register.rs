//! `POST /oauth/register`: a client registers itself (RFC 7591). Nothing is stored.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::response::IntoResponse;
use domain::limits::{CLIENT_ID_MAX, OAUTH_BODY_MAX, REDIRECT_URIS_MAX};
use http::StatusCode;
use http::header::CACHE_CONTROL;
use serde::Deserialize;
use serde_json::json;
use service::config::OauthMode;

use super::client::{registered_id, shown_name};
use super::error::{OauthError, Result};
use super::redirect;
use crate::address::ClientAddress;
use crate::extract::json::{JsonBody, is_json};
use crate::problem::Problem;
use crate::rates::{self, Rate};
use crate::state::App;

/// The metadata of a client. Other members change nothing here, and the answer leaves them out.
#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    redirect_uris: Vec<String>,
    client_name: Option<String>,
}

pub async fn register(State(app): State<App>, request: Request) -> Result {
    if app.config.oauth != OauthMode::Open {
        return Err(Problem::NotFound("path").into());
    }
    let address = ClientAddress::from_extensions(request.extensions());
    rates::take(&app, Rate::OauthRegistrations, &address).await?;
    if !is_json(request.headers()) {
        return Err(Problem::UnsupportedMediaType("the body must be application/json".into()).into());
    }
    let Ok(body) = JsonBody::from_request(request, &()).await;
    let bytes = body.bytes(OAUTH_BODY_MAX).await?;
    let invalid = |why: String| OauthError::new("invalid_client_metadata", why);
    let Metadata { redirect_uris, client_name } = serde_json::from_slice(&bytes)
        .map_err(|error| invalid(format!("the body is not the metadata of a client: {error}")))?;
    let is_usable = |uri: &String| redirect::is_usable(uri, &app.config.oauth_redirect_schemes);
    let usable: Vec<String> = redirect_uris.into_iter().filter(is_usable).collect();
    if usable.is_empty() {
        let why = "redirect_uris needs an address that is https, or http on 127.0.0.1, [::1] or localhost, or of an allowed scheme";
        return Err(OauthError::new("invalid_redirect_uri", why));
    }
    if usable.len() > REDIRECT_URIS_MAX {
        return Err(invalid(format!("redirect_uris has more than {REDIRECT_URIS_MAX} usable addresses")));
    }
    let name = shown_name(client_name.as_deref().unwrap_or_default());
    let id = registered_id(&app, &name, &usable);
    if id.len() > CLIENT_ID_MAX {
        return Err(invalid("the redirect addresses and the name are too long together".into()));
    }
    let registered = json!({
        "client_id": id,
        "client_name": name,
        "redirect_uris": usable,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    Ok((StatusCode::CREATED, [(CACHE_CONTROL, "no-store")], Json(registered)).into_response())
}
