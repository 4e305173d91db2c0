//! A provider of OpenID Connect: its metadata, its token endpoint, and what its tokens say (OpenID Connect Core 1.0, Discovery 1.0,
//! Back-Channel Logout 1.0).
//!
//! **Guarantee.** A [`Person`] is returned only for a token that the provider signed for this client and this sign-in.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use egress::{Client, OperatorHost};
use http::{HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use service::keys::code_challenge;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::{Url, form_urlencoded};

use crate::fetch::{Failed, FetchError, Fetcher};
use crate::jwt::{Refusal, Token, Verified};
use crate::keys::RemoteKeys;
use crate::person::{Person, Sources};
use crate::settings::{Settings, is_secure};

/// Largest answer of a provider.
const ANSWER_MAX: usize = 256 * 1024;
/// How long metadata is used.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// Longest `sub` and `sid`, in characters.
pub const SUBJECT_MAX: usize = 255;
/// Age of a logout token, in seconds, up to which it is accepted.
const LOGOUT_MAX: i64 = 300;
/// The member of `events` that makes a token a logout token.
const LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// The reason why a sign-in failed.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The provider or its answer is not to be believed, or it refused.
    #[error("a token is refused")]
    Refused(#[from] Refusal),
    #[error("the provider refused the code")]
    Code,
    #[error("the provider cannot be asked")]
    Unavailable(#[from] FetchError),
    /// Only the operator can help.
    #[error("the provider refuses this client, or its metadata does not fit the settings")]
    Misconfigured,
}

/// The metadata of a provider.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    issuer: String,
    authorization_endpoint: Url,
    token_endpoint: Url,
    jwks_uri: Url,
    userinfo_endpoint: Option<Url>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

/// The secrets of a sign-in in progress, which its browser keeps for it.
pub struct Attempt<'a> {
    pub redirect_uri: &'a str,
    pub state: &'a str,
    pub nonce: &'a str,
    pub verifier: &'a str,
}

/// Whose sessions a provider ends.
#[derive(Debug)]
pub struct Logout {
    pub subject: Option<String>,
    pub session: Option<String>,
    /// When the provider said so, in seconds since 1970.
    pub issued_at: i64,
}

/// A step of a check, with its failure.
pub type Step = (&'static str, Result<String, String>);

/// Metadata, and when it was fetched.
type Known = (Arc<Metadata>, Instant);

/// A provider.
pub struct Provider {
    pub settings: Settings,
    fetcher: Fetcher,
    metadata: Mutex<(Option<Known>, Failed)>,
    keys: RemoteKeys,
}

impl Provider {
    /// The provider of these settings, which is asked by nobody yet.
    pub fn new(settings: Settings, client: Client) -> Self {
        let fetcher = Fetcher::new(client, OperatorHost::from_url(&settings.issuer_url), ANSWER_MAX);
        Self { settings, fetcher, metadata: Mutex::default(), keys: RemoteKeys::default() }
    }

    /// The metadata, which is kept for an hour. After a failure, the provider is left alone for a while, and everybody fails at once.
    ///
    /// # Errors
    ///
    /// If it cannot be had, is that of another issuer, or names endpoints without TLS.
    pub async fn metadata(&self) -> Result<Arc<Metadata>, SignInError> {
        let (kept, failed) = &mut *self.metadata.lock().await;
        if let Some((metadata, _)) = kept.as_ref().filter(|(_, at)| at.elapsed() < KEPT) {
            return Ok(Arc::clone(metadata));
        }
        let metadata = Arc::new(failed.remember(self.ask_metadata()).await?);
        *kept = Some((Arc::clone(&metadata), Instant::now()));
        Ok(metadata)
    }

    async fn ask_metadata(&self) -> Result<Metadata, SignInError> {
        let base = self.settings.issuer.trim_end_matches('/');
        let url =
            Url::parse(&format!("{base}/.well-known/openid-configuration")).map_err(|_| SignInError::Misconfigured)?;
        let document = self.fetcher.get(&url, None).await?.document;
        let metadata = Metadata::deserialize(document).map_err(|_| FetchError::Form)?;
        // Plain HTTP is for an issuer on loopback alone, whose host an endpoint shares then.
        let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint, &metadata.jwks_uri];
        let is_fit = |url: &Url| {
            url.scheme() == "https" || (self.settings.issuer_url.scheme() == "http" && is_secure(url.as_str()))
        };
        let are_fit = endpoints.into_iter().chain(&metadata.userinfo_endpoint).all(is_fit);
        if metadata.issuer != self.settings.issuer || !are_fit {
            return Err(SignInError::Misconfigured);
        }
        Ok(metadata)
    }

    /// Where a browser is sent to sign in.
    ///
    /// # Errors
    ///
    /// As [`metadata`](Self::metadata).
    pub async fn start(&self, attempt: &Attempt<'_>) -> Result<Url, SignInError> {
        let mut url = self.metadata().await?.authorization_endpoint.clone();
        let challenge = code_challenge(attempt.verifier);
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", attempt.redirect_uri)
            .append_pair("scope", &self.settings.scopes.join(" "))
            .append_pair("state", attempt.state)
            .append_pair("nonce", attempt.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }

    /// Checks the `iss` of an answer: the issuer when it is sent, and sent when the metadata says so (RFC 9207).
    ///
    /// # Errors
    ///
    /// [`Refusal::Issuer`], or as [`metadata`](Self::metadata).
    pub async fn check_answer(&self, issuer: Option<&str>) -> Result<(), SignInError> {
        let is_ours = match issuer {
            Some(issuer) => issuer == self.settings.issuer,
            None => !self.metadata().await?.authorization_response_iss_parameter_supported,
        };
        if is_ours { Ok(()) } else { Err(Refusal::Issuer.into()) }
    }

    /// Redeems a code. It is sent once, because it is good for one request.
    ///
    /// # Errors
    ///
    /// If the provider cannot be asked or refuses, or if what it answers does not hold.
    pub async fn redeem(&self, attempt: &Attempt<'_>, code: &str) -> Result<Person, SignInError> {
        let metadata = self.metadata().await?;
        let (authorization, form) = self.token_request(&metadata, attempt, code)?;
        let (status, answer) = self.fetcher.post(&metadata.token_endpoint, authorization, form).await?;
        if status != StatusCode::OK {
            return Err(match answer.get("error").and_then(Value::as_str) {
                Some("invalid_client" | "unauthorized_client" | "invalid_scope" | "unsupported_grant_type") => {
                    SignInError::Misconfigured
                }
                Some(_) if status.is_client_error() => SignInError::Code,
                _ => FetchError::Status(status).into(),
            });
        }
        let tokens = Tokens::deserialize(answer).map_err(|_| FetchError::Form)?;
        let access_token = tokens.access_token.as_deref();
        let verified = self.verify(&metadata, &tokens.id_token).await?;
        verified.time("iat")?.ok_or(Refusal::Claim("iat"))?;
        if verified.claims.get("nonce").and_then(Value::as_str) != Some(attempt.nonce) {
            return Err(Refusal::Nonce.into());
        }
        let subject = verified.text("sub", SUBJECT_MAX)?.to_owned();
        verified.check_access_token(access_token)?;
        let mut sources = Sources { id_token: verified.claims, userinfo: None };
        if sources.lack_any(&self.settings)
            && let (Some(url), Some(token)) = (&metadata.userinfo_endpoint, access_token)
        {
            let Value::Object(userinfo) = self.fetcher.get(url, Some(token)).await?.document else {
                return Err(FetchError::Form.into());
            };
            if userinfo.get("sub").and_then(Value::as_str) != Some(&subject) {
                return Err(Refusal::Userinfo.into());
            }
            sources.userinfo = Some(userinfo);
        }
        Ok(sources.person(&self.settings, subject))
    }

    /// Verifies a logout token.
    ///
    /// # Errors
    ///
    /// If the keys cannot be had, or if the token does not hold.
    pub async fn logout(&self, token: &str) -> Result<Logout, SignInError> {
        // Nobody is asked for what does not even say that it is of this issuer.
        if Token::parse(token)?.unverified("iss") != Some(self.settings.issuer.as_str()) {
            return Err(Refusal::Issuer.into());
        }
        let verified = self.verify(&*self.metadata().await?, token).await?;
        if verified.claims.contains_key("nonce") {
            return Err(Refusal::Nonce.into());
        }
        let event = verified.claims.get("events").and_then(|events| events.get(LOGOUT_EVENT));
        event.filter(|event| event.is_object()).ok_or(Refusal::Claim("events"))?;
        let issued_at = verified.time("iat")?.ok_or(Refusal::Claim("iat"))?;
        if issued_at < service::clock::now().timestamp() - LOGOUT_MAX {
            return Err(Refusal::Expired.into());
        }
        let named = |claim| match verified.claims.contains_key(claim) {
            true => verified.text(claim, SUBJECT_MAX).map(|text| Some(text.to_owned())),
            false => Ok(None),
        };
        let (subject, session) = (named("sub")?, named("sid")?);
        if subject.is_none() && session.is_none() {
            return Err(Refusal::Claim("sub").into());
        }
        Ok(Logout { subject, session, issued_at })
    }

    /// Asks the provider for everything that a sign-in needs from it, afresh.
    pub async fn check(&self) -> Vec<Step> {
        *self.metadata.lock().await = (None, Failed::default());
        let metadata = match self.metadata().await {
            Ok(metadata) => metadata,
            Err(error) => return vec![("discovery", Err(service::chain(&error)))],
        };
        let keys = RemoteKeys::default().get(&self.fetcher, &metadata.jwks_uri, None).await;
        let keys = keys.map(|keys| format!("{} usable keys", keys.count())).map_err(|error| service::chain(&error));
        let authentication = self.client_authentication(&metadata);
        let authentication = authentication.map(|(header, _)| match (header, &self.settings.client_secret) {
            (Some(_), _) => "client_secret_basic",
            (None, Some(_)) => "client_secret_post",
            (None, None) => "none",
        });
        // Without a token the provider refuses, which is an answer.
        let userinfo = match &metadata.userinfo_endpoint {
            None => Ok("none".to_owned()),
            Some(url) => match self.fetcher.get(url, None).await {
                Ok(_)
                | Err(FetchError::Status(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST)) => {
                    Ok(url.to_string())
                }
                Err(error) => Err(service::chain(&error)),
            },
        };
        vec![
            ("discovery", Ok(self.settings.issuer.clone())),
            ("keys", keys),
            ("clientAuthentication", authentication.map(str::to_owned).map_err(|error| service::chain(&error))),
            ("userinfo", userinfo),
        ]
    }

    /// Verifies signature, issuer, audience and times of a token.
    async fn verify(&self, metadata: &Metadata, text: &str) -> Result<Verified, SignInError> {
        let token = Token::parse(text)?;
        let keys = self.keys.get(&self.fetcher, &metadata.jwks_uri, token.key_id()).await?;
        let verified = token.verify(&keys)?;
        verified.check_issuer(&self.settings.issuer)?;
        verified.check_audience(&self.settings.client_id)?;
        verified.check_times(service::clock::now().timestamp())?;
        Ok(verified)
    }

    /// The header and the form of a request to the token endpoint.
    fn token_request(
        &self,
        metadata: &Metadata,
        attempt: &Attempt<'_>,
        code: &str,
    ) -> Result<(Option<HeaderValue>, String), SignInError> {
        let (authorization, mut form) = self.client_authentication(metadata)?;
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", attempt.redirect_uri)
            .append_pair("code_verifier", attempt.verifier);
        Ok((authorization, form.finish()))
    }

    /// How this client shows who it is at the token endpoint: a header, and the form that a request goes on with.
    fn client_authentication(
        &self,
        metadata: &Metadata,
    ) -> Result<(Option<HeaderValue>, form_urlencoded::Serializer<'static, String>), SignInError> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        let id = &self.settings.client_id;
        let Some(secret) = &self.settings.client_secret else {
            form.append_pair("client_id", id);
            return Ok((None, form));
        };
        let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
        let supports = |method: &str| methods.is_some_and(|methods| methods.iter().any(|it| it == method));
        if methods.is_none() || supports("client_secret_basic") {
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret.expose())));
            let header = HeaderValue::try_from(format!("Basic {pair}")).map_err(|_| SignInError::Misconfigured)?;
            return Ok((Some(header), form));
        }
        if !supports("client_secret_post") {
            return Err(SignInError::Misconfigured);
        }
        form.append_pair("client_id", id).append_pair("client_secret", secret.expose());
        Ok((None, form))
    }
}

#[cfg(test)]
mod tests;
