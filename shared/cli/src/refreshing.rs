//! Requests with the access token of a profile, which is replaced shortly before its end.
//!
//! **Guarantee.** Any number of processes with the same profile end up with one pair of tokens. The configuration holds it, unless it
//! cannot be written: then the process that was answered has it for itself, and says so.
//!
//! **Mechanism.** A refresh begins with what another process has stored meanwhile. Nobody is locked out while the service is waited
//! for: within 60 s it answers the same refresh token with the same pair, and [`REFRESH_TIME`] keeps processes within that. The answer
//! then replaces, under the lock of the configuration, the pair that was presented and none that is newer.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::network::Network;
use client::{BodyStream, Payload, Transport, Unreachable};
use futures_util::future::BoxFuture;
use futures_util::stream;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, StatusCode};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::failure::{Failure, Outcome, no_token};
use crate::oauth::Server;
use crate::profile::{Configuration, Profile};

/// How long a refresh may take. A process can read a refresh token just before another one stores its successor. That was made up to
/// this long ago, and 10 s more for the lock; the token is presented up to this long later. That is less than the 60 s in all.
const REFRESH_TIME: Duration = Duration::from_secs(20);
/// How long nothing is refreshed after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// The service of a profile.
pub struct Refreshing {
    network: Network,
    tokens: Arc<Mutex<Tokens>>,
}

/// The tokens of a profile.
struct Tokens {
    /// Name of the profile.
    name: String,
    profile: Profile,
    /// The refresh token in the configuration, as far as is known. It is that of `profile`, unless that could not be stored.
    stored: Option<String>,
    /// When and why the last refresh failed.
    failure: Option<(Instant, Missing)>,
}

/// Why there is no access token.
#[derive(Clone)]
enum Missing {
    /// The service cannot be reached, or is busy.
    Unreachable(String),
    /// The service refuses a new one, or the configuration has no profile to get it with.
    Refused(String),
}

impl From<Failure> for Missing {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Service(client::Error::Unreachable(Unreachable(reason))) | Failure::Disconnected(reason) => {
                Self::Unreachable(reason)
            }
            failure => Self::Refused(failure.message()),
        }
    }
}

impl Refreshing {
    pub fn new(network: Network, name: String, profile: Profile) -> Self {
        let stored = profile.refresh_token().map(str::to_owned);
        Self { network, tokens: Arc::new(Mutex::new(Tokens { name, profile, stored, failure: None })) }
    }

    /// The access token, replaced if it is time.
    async fn token(&self) -> Result<String, Missing> {
        let mut tokens = Arc::clone(&self.tokens).lock_owned().await;
        if !tokens.profile.is_due() {
            return Ok(tokens.profile.token.clone());
        }
        // A task, which goes on if the request is canceled: the service has replaced the pair before its answer is read.
        let refreshing = tokio::spawn(async move { tokens.refreshed().await });
        refreshing.await.unwrap_or_else(|error| Err(Missing::Unreachable(error.to_string())))
    }
}

impl Transport for Refreshing {
    fn send(&self, mut request: Request<Payload>) -> BoxFuture<'_, Result<Response<BodyStream>, Unreachable>> {
        Box::pin(async move {
            let token = match self.token().await {
                Ok(token) => token,
                Err(Missing::Unreachable(reason)) => return Err(Unreachable(reason)),
                Err(Missing::Refused(reason)) => return Ok(unauthorized(&reason)),
            };
            if let Ok(mut token) = HeaderValue::from_str(&format!("Bearer {token}")) {
                token.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, token);
            }
            self.network.send(request).await
        })
    }
}

/// The answer of a service to a request without a good token. It tells why there is none, which the service does not know.
fn unauthorized(reason: &str) -> Response<BodyStream> {
    let envelope = json!({"error": {"code": "unauthorized", "message": reason}}).to_string();
    let body: BodyStream = Box::pin(stream::iter([Ok::<_, io::Error>(Bytes::from(envelope))]));
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::UNAUTHORIZED;
    answer
}

impl Tokens {
    /// The access token after a refresh, or after one that failed a moment ago. Without a new one, the old one is good until its end.
    async fn refreshed(&mut self) -> Result<String, Missing> {
        if self.failure.as_ref().is_none_or(|(at, _)| at.elapsed() >= FAILURE_PAUSE) {
            let refreshed = self.refresh().await;
            self.failure = refreshed.err().map(|failure| (Instant::now(), failure.into()));
        }
        match &self.failure {
            Some((_, missing)) if self.profile.has_ended() => Err(missing.clone()),
            _ => Ok(self.profile.token.clone()),
        }
    }

    /// Replaces the tokens, unless another process has done so. A token is sent to the service it is from, and to no other.
    async fn refresh(&mut self) -> Outcome {
        let found = Configuration::load()?.profiles.remove(&self.name);
        let Some(found) = found.filter(|found| found.is_of(&self.profile.base_url)) else {
            return no_token(format!("the profile {} is gone", self.name));
        };
        if found.refresh_token() != self.stored.as_deref() {
            self.take(found);
        }
        let Some(refresh_token) = self.profile.refresh_token().filter(|_| self.profile.is_due()) else {
            return Ok(());
        };
        let (server, form) = (Server::new(&self.profile.base_url)?, [("refresh_token", refresh_token)]);
        let Ok(answer) = timeout(REFRESH_TIME, server.tokens("refresh_token", &form)).await else {
            let (origin, seconds) = (&self.profile.base_url, REFRESH_TIME.as_secs());
            return Err(Failure::Disconnected(format!("{origin}: no new token within {seconds} s")));
        };
        self.profile = answer?.or_else(|refusal| no_token(refusal.error_description))?;
        self.store().await;
        Ok(())
    }

    /// Stores new tokens in place of those that they replace. Where that fails, this process goes on with them.
    async fn store(&mut self) {
        let stored = Configuration::change(|configuration| {
            let found = configuration.profiles.get_mut(&self.name).filter(|found| found.is_of(&self.profile.base_url));
            Ok(found.map(|found| {
                // What another process has stored meanwhile is the same pair, or a newer one.
                if found.refresh_token() == self.stored.as_deref() {
                    found.clone_from(&self.profile);
                }
                found.clone()
            }))
        });
        match stored.await {
            Ok(Some(profile)) => self.take(profile),
            // Somebody has signed out.
            Ok(None) => {}
            Err(failure) => {
                let message = failure.message();
                let _ =
                    writeln!(io::stderr(), "canvas: a new token is not stored, and lost with this process: {message}");
            }
        }
    }

    /// Uses what the configuration holds.
    fn take(&mut self, profile: Profile) {
        self.stored = profile.refresh_token().map(str::to_owned);
        self.profile = profile;
    }
}
