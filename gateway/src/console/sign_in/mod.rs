//! Sign-in with OpenID providers (docs/reference/signin.md).
//!
//! **Guarantee.** Nothing is stored for a browser that has not signed in, and no browser ends a sign-in that another one began.
//!
//! **Mechanism.** What the end of a sign-in needs is encrypted in a cookie of the browser ([`attempt`]). Only when the provider has said
//! who the person is does one transaction find or make the account and begin the session ([`account`]).

pub mod account;
pub mod attempt;

use identity::provider::{Provider, SignInError};
use service::chain;

use crate::problem::{Problem, Result};
use crate::state::App;

/// Why nobody is signed in. The page of the application says it in its own words, and nothing of a provider is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The sign-in was not begun in this browser, was replaced by another one, or took too long.
    Expired,
    /// The provider or the person refused, or the answer does not hold.
    Refused,
    NotAdmitted,
    NoAccount,
    EmailUnverified,
    EmailTaken,
    Disabled,
    ProviderUnavailable,
    Misconfigured,
    /// The identity to link is that of another account.
    IdentityTaken,
}

impl Failure {
    /// The code in the address of the page.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Refused => "refused",
            Self::NotAdmitted => "not_admitted",
            Self::NoAccount => "no_account",
            Self::EmailUnverified => "email_unverified",
            Self::EmailTaken => "email_taken",
            Self::Disabled => "disabled",
            Self::ProviderUnavailable => "provider_unavailable",
            Self::Misconfigured => "misconfigured",
            Self::IdentityTaken => "identity_taken",
        }
    }

    /// What an error of a provider means, which the log explains.
    pub fn of_provider(provider: &Provider, error: &SignInError) -> Self {
        let failure = match error {
            SignInError::Refused(_) | SignInError::Code => Self::Refused,
            SignInError::Unavailable(_) => Self::ProviderUnavailable,
            SignInError::Misconfigured => Self::Misconfigured,
        };
        let id = &provider.settings.id;
        tracing::warn!(provider = %id, problem = failure.code(), reason = %chain(error), "a sign-in failed");
        failure
    }

    /// What an `error` in the answer of a provider means (RFC 6749, 4.1.2.1; OpenID Connect Core 1.0, 3.1.2.6).
    pub fn of_code(error: &str) -> Self {
        match error {
            "temporarily_unavailable" | "server_error" => Self::ProviderUnavailable,
            "invalid_request"
            | "unauthorized_client"
            | "unsupported_response_type"
            | "invalid_scope"
            | "invalid_client"
            | "request_not_supported" => Self::Misconfigured,
            _ => Self::Refused,
        }
    }
}

/// The provider of this id; 404 for others.
pub fn provider<'a>(app: &'a App, id: &str) -> Result<&'a Provider> {
    app.providers.iter().find(|provider| provider.settings.id == id).ok_or(Problem::NotFound("provider"))
}
