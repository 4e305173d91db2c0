//! A sign-in in progress, which the browser keeps in a cookie.

use domain::limits::SIGNIN_PROVIDER_MINUTES;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use identity::provider;
use serde::{Deserialize, Serialize};
use service::keys::DerivedKeys;
use service::random::token_secret;
use uuid::Uuid;

/// The cookie. It is sent with the provider's redirect, hence `Lax`.
const NAME: &str = "__Host-canvas-signin";
const CONTEXT: &str = "sign-in";

/// What the end of a sign-in needs.
#[derive(Serialize, Deserialize)]
pub struct Attempt {
    pub provider: String,
    pub state: String,
    nonce: String,
    verifier: String,
    /// The session whose account the identity is linked to; none for a sign-in.
    pub session: Option<Uuid>,
    /// When it expires, in seconds since 1970.
    until: i64,
}

impl Attempt {
    /// A new attempt, with secrets of its own.
    pub fn begin(provider: &str, session: Option<Uuid>) -> Self {
        let until = service::clock::now().timestamp() + SIGNIN_PROVIDER_MINUTES * 60;
        let (state, nonce, verifier) = (token_secret(), token_secret(), token_secret());
        Self { provider: provider.to_owned(), state, nonce, verifier, session, until }
    }

    /// The attempt that a request presents. `None` also when it presents several, or one that has expired.
    pub fn presented(keys: &DerivedKeys, headers: &HeaderMap) -> Option<Self> {
        let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = pairs.flat_map(|text| text.split(';'));
        let mut values = pairs.filter_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='));
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let attempt: Self = serde_json::from_slice(&keys.sign_in().decrypt(CONTEXT, value)?).ok()?;
        (service::clock::now().timestamp() < attempt.until).then_some(attempt)
    }

    /// The `Set-Cookie` header that replaces the attempt before.
    pub fn cookie(&self, keys: &DerivedKeys) -> HeaderValue {
        let text = serde_json::to_vec(self).expect("texts and numbers are JSON");
        let (value, kept) = (keys.sign_in().encrypt(CONTEXT, &text), SIGNIN_PROVIDER_MINUTES * 60);
        let cookie = format!("{NAME}={value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={kept}");
        HeaderValue::from_str(&cookie).expect("base64url is visible ASCII")
    }

    /// What the provider is told of it.
    pub fn with<'a>(&'a self, redirect_uri: &'a str) -> provider::Attempt<'a> {
        provider::Attempt { redirect_uri, state: &self.state, nonce: &self.nonce, verifier: &self.verifier }
    }
}

/// The `Set-Cookie` header that ends an attempt.
pub const CLEAR: HeaderValue =
    HeaderValue::from_static("__Host-canvas-signin=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0");

#[cfg(test)]
mod tests {
    use service::keys::InstallationKey;

    use super::*;

    fn keys(byte: u8) -> DerivedKeys {
        DerivedKeys::derive(&InstallationKey::from_bytes([byte; 32]))
    }

    fn headers(cookie: &str) -> HeaderMap {
        HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(cookie).expect("a value"))])
    }

    #[test]
    fn an_attempt_is_kept_by_one_cookie_of_this_installation() {
        let attempt = Attempt::begin("main", Some(Uuid::nil()));
        let cookie = attempt.cookie(&keys(1));
        let pair = cookie.to_str().expect("text").split(';').next().expect("a pair").to_owned();
        assert!(cookie.len() < 1024 && !cookie.to_str().expect("text").contains(&attempt.state));
        for text in [pair.clone(), format!("__Host-canvas=x; {pair}")] {
            let found = Attempt::presented(&keys(1), &headers(&text)).expect("an attempt");
            assert_eq!((found.state, found.session), (attempt.state.clone(), attempt.session));
        }
        for text in [String::new(), format!("{pair}; {pair}"), format!("{pair}A"), pair.replace("-signin", "")] {
            assert!(Attempt::presented(&keys(1), &headers(&text)).is_none(), "{text}");
        }
        assert!(Attempt::presented(&keys(2), &headers(&pair)).is_none());
    }

    #[test]
    fn an_attempt_lives_ten_minutes() {
        let mut attempt = Attempt::begin("main", None);
        let is_kept = |attempt: &Attempt| {
            let cookie = attempt.cookie(&keys(1));
            let pair = cookie.to_str().expect("text").split(';').next().expect("a pair").to_owned();
            Attempt::presented(&keys(1), &headers(&pair)).is_some()
        };
        let now = service::clock::now().timestamp();
        assert!((attempt.until - now - 600).abs() < 10);
        attempt.until = now + 5;
        assert!(is_kept(&attempt));
        attempt.until = now;
        assert!(!is_kept(&attempt));
    }
}
