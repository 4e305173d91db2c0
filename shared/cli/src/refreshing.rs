//! Requests with the access token of a profile, which is replaced shortly before its end.
//!
//! **Guarantee.** Any number of processes with the same profile end up with one pair of tokens, which the configuration holds.
//!
//! **Mechanism.** A refresh changes the configuration, which processes do in turn, and begins with what another one has stored meanwhile.
//! Where they cannot take turns, the service answers a refresh that is repeated at once with the same pair.

use client::network::Network;
use client::{BodyStream, Payload, Transport, Unreachable};
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use tokio::sync::Mutex;

use crate::failure::{Outcome, no_token};
use crate::oauth::Server;
use crate::profile::{Configuration, Profile};

/// The service of a profile.
pub struct Refreshing {
    network: Network,
    /// Name of the profile.
    name: String,
    profile: Mutex<Profile>,
}

impl Refreshing {
    pub fn new(network: Network, name: String, profile: Profile) -> Self {
        Self { network, name, profile: Mutex::new(profile) }
    }

    /// The access token. One that cannot be replaced is used as it is, and the service refuses it after its end.
    async fn token(&self) -> String {
        let mut profile = self.profile.lock().await;
        if profile.is_due()
            && let Ok(refreshed) = refresh(&self.name, &profile.base_url).await
        {
            *profile = refreshed;
        }
        profile.token.clone()
    }
}

impl Transport for Refreshing {
    fn send(&self, mut request: Request<Payload>) -> BoxFuture<'_, Result<Response<BodyStream>, Unreachable>> {
        Box::pin(async move {
            if let Ok(mut token) = HeaderValue::from_str(&format!("Bearer {}", self.token().await)) {
                token.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, token);
            }
            self.network.send(request).await
        })
    }
}

/// Replaces the tokens of a profile, unless another process has done so. A token is sent to the service it is from, and to no other.
async fn refresh(name: &str, base_url: &str) -> Outcome<Profile> {
    Configuration::change(async |configuration| {
        let stored = configuration.profiles.get_mut(name).filter(|stored| stored.is_of(base_url));
        let Some(stored) = stored else { return no_token(format!("the profile {name} is gone")) };
        if let Some(refresh) = stored.refresh.as_ref().filter(|_| stored.is_due()) {
            let form = [("refresh_token", refresh.token.as_str())];
            match Server::new(base_url)?.tokens("refresh_token", &form).await? {
                Ok(refreshed) => *stored = refreshed,
                Err(refusal) => return no_token(refusal.error_description),
            }
        }
        Ok(stored.clone())
    })
    .await
}
