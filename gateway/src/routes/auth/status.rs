//! `GET /auth/status` (docs/reference/authentication.md#authentication-status).

use domain::account::AuthStatus;

use crate::extract::caller::{AnyToken, Caller};
use crate::openapi::errors::CredentialErrors;
use crate::problem::Result;
use crate::reply;

/// Check the credential
///
/// Returns the account and the scopes of the token. Call it first to check that a token works and what it may do.
/// It changes nothing and needs no scope.
#[utoipa::path(
    get, path = "/auth/status", operation_id = "getAuthStatus", tag = "Authentication",
    responses(CredentialErrors, (status = 200, description = "The credential is valid.", body = AuthStatus))
)]
pub async fn status(caller: Caller<AnyToken>) -> Result {
    let credential = caller.credential;
    Ok(reply::ok(&AuthStatus {
        authenticated: true,
        auth_type: "agent_token".into(),
        email: credential.email,
        display_name: credential.display_name,
        scopes: credential.scopes.iter().map(Into::into).collect(),
        agent_token_id: credential.token,
        agent_label: credential.label,
        uid: credential.account,
        credit_balance: credential.credit_balance,
        expires_at: credential.expires_at,
    }))
}
