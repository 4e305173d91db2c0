//! Requests to the authorization server of the service, as its client `canvas-cli` (docs/reference/oauth.md).

use bytes::Bytes;
use client::network::Network;
use client::{Payload, Transport};
use futures_util::TryStreamExt;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::context::network;
use crate::failure::{Failure, Outcome, no_token, usage};
use crate::output::plain;
use crate::profile::{Profile, Refresh, now};

const CLIENT_ID: &str = "canvas-cli";
/// Path of the metadata of a server (RFC 8414).
const METADATA: &str = "/.well-known/oauth-authorization-server";
/// Seconds before the end of an access token from which on it is replaced. Of one that is short-lived, half of its life.
const EARLY_SECONDS: i64 = 60;

/// The authorization server of a service.
pub struct Server {
    network: Network,
    origin: String,
}

/// A refusal in the form of RFC 6749, section 5.2.
#[derive(Deserialize)]
pub struct Refusal {
    pub error: String,
    /// For people, as plain text.
    pub error_description: String,
}

/// A pair of tokens.
#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    refresh_token: String,
    expires_in: i64,
}

impl Server {
    /// The server of the service at `origin`.
    pub fn new(origin: &str) -> Outcome<Self> {
        Ok(Self { network: network(origin)?, origin: origin.trim_end_matches('/').to_owned() })
    }

    /// The issuer; `None` if people cannot allow this program access there.
    ///
    /// It is the service that was asked (RFC 8414, section 3.3): a person allows access on a page of the issuer, and what that page
    /// answers is sent here. A service that names another one would get the access to that.
    pub async fn issuer(&self) -> Outcome<Option<String>> {
        let (status, body) = self.send(Request::get(METADATA).body(Payload::default())).await?;
        let failed = || format!("{}: {METADATA} answers {status}", self.origin);
        match status {
            StatusCode::NOT_FOUND => return Ok(None),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return no_token(failed()),
            _ if !status.is_success() => return Err(Failure::Disconnected(failed())),
            _ => {}
        }
        let unreadable = |error: serde_json::Error| {
            Failure::Disconnected(format!("{}: {METADATA} is not JSON: {error}", self.origin))
        };
        let document: Value = serde_json::from_slice(&body).map_err(unreadable)?;
        // Releases without device codes do not know this program.
        if !document["device_authorization_endpoint"].is_string() {
            return Ok(None);
        }
        let issuer = document["issuer"].as_str().unwrap_or_default();
        match self.has(issuer) {
            true => Ok(Some(issuer.to_owned())),
            false => {
                let issuer = plain(issuer);
                usage(format!("{}: the service calls itself {issuer}: use --base-url {issuer}", self.origin))
            }
        }
    }

    /// Returns `true` if an address is one of this service.
    pub fn has(&self, url: &str) -> bool {
        let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
        origin(url).is_some_and(|it| Some(it) == origin(&self.origin))
    }

    /// Posts a form; a refusal of it is an answer.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, form: &[(&str, &str)]) -> Outcome<Result<T, Refusal>> {
        let (status, body) = self.post_form(path, form).await?;
        let unreadable = || Failure::Disconnected(format!("{}: {path} answers {status}", self.origin));
        if status.is_success() {
            return serde_json::from_slice(&body).map(Ok).map_err(|_| unreadable());
        }
        let mut refusal: Refusal = serde_json::from_slice(&body).map_err(|_| unreadable())?;
        refusal.error_description = plain(&refusal.error_description);
        match status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            true => Err(Failure::Disconnected(format!("{}: {}", self.origin, refusal.error_description))),
            false => Ok(Err(refusal)),
        }
    }

    /// Gets tokens for a grant: the profile that holds them.
    pub async fn tokens(&self, grant_type: &str, form: &[(&str, &str)]) -> Outcome<Result<Profile, Refusal>> {
        let form: Vec<_> = form.iter().copied().chain([("grant_type", grant_type)]).collect();
        let tokens: Result<Tokens, Refusal> = self.post("/oauth/token", &form).await?;
        Ok(tokens.map(|tokens| {
            let early = EARLY_SECONDS.min(tokens.expires_in / 2);
            let end = now().saturating_add(tokens.expires_in);
            let refresh = Refresh { token: tokens.refresh_token, at: end - early, end };
            Profile { base_url: self.origin.clone(), token: tokens.access_token, refresh: Some(refresh) }
        }))
    }

    /// Ends the access that a refresh token belongs to. Returns `false` if the service did not do it.
    pub async fn revoke(&self, refresh: &Refresh) -> bool {
        let revoked = self.post_form("/oauth/revoke", &[("token", &refresh.token)]).await;
        revoked.is_ok_and(|(status, _)| status.is_success())
    }

    async fn post_form(&self, path: &str, form: &[(&str, &str)]) -> Outcome<(StatusCode, Vec<u8>)> {
        let form = encode(&[form, &[("client_id", CLIENT_ID)]].concat());
        let payload = Payload { bytes: Bytes::from(form), sent: None };
        self.send(Request::post(path).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(payload)).await
    }

    async fn send(&self, request: http::Result<Request<Payload>>) -> Outcome<(StatusCode, Vec<u8>)> {
        let request = request.map_err(|error| Failure::Usage(error.to_string()))?;
        let answer = self.network.send(request).await.map_err(client::Error::from)?;
        let status = answer.status();
        let body = answer.into_body().try_fold(Vec::new(), async |mut body, piece| {
            body.extend_from_slice(&piece);
            Ok(body)
        });
        let body = body.await.map_err(|error| Failure::Disconnected(format!("{}: {error}", self.origin)))?;
        Ok((status, body))
    }

    /// The address of the page on which a person answers an authorization request.
    pub fn authorization(issuer: &str, parameters: &[(&str, &str)]) -> String {
        format!("{issuer}/oauth/authorize?{}", encode(&[parameters, &[("client_id", CLIENT_ID)]].concat()))
    }
}

/// Parameters as a query or a form.
fn encode(parameters: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}
