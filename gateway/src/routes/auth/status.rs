//! `GET /auth/status` (docs/reference/authentication.md#authentication-status).

use domain::Timestamp;
use domain::account::Scope;
use domain::id::AccountUid;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::extract::caller::{AnyToken, Caller};
use crate::problem::Result;
use crate::reply;

/// The account and the permissions of the presented token.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthStatus {
    /// Always true; a rejected credential is a 401.
    authenticated: bool,
    /// Always `agent_token`.
    auth_type: &'static str,
    /// Email of the account.
    email: String,
    /// Scopes of the token, in a fixed order.
    scopes: Vec<Scope>,
    /// Id of the token.
    agent_token_id: Uuid,
    /// Label of the token.
    agent_label: String,
    /// Uid of the account (an extension).
    uid: AccountUid,
    /// Credits of the account (an extension).
    credit_balance: i64,
    /// When the token expires; null if it does not expire (an extension).
    #[schema(required = true)]
    expires_at: Option<Timestamp>,
}

/// Check the credential
///
/// Returns the account and the scopes of the token. Call it first to check that a token works and what it may do.
/// It changes nothing and needs no scope.
#[utoipa::path(
    get, path = "/auth/status", operation_id = "getAuthStatus", tag = "Authentication",
    responses((status = 200, description = "The credential is valid.", body = AuthStatus))
)]
pub async fn status(caller: Caller<AnyToken>) -> Result {
    let credential = caller.credential;
    Ok(reply::ok(&AuthStatus {
        authenticated: true,
        auth_type: "agent_token",
        email: credential.email,
        scopes: credential.scopes.iter().collect(),
        agent_token_id: credential.token,
        agent_label: credential.label,
        uid: credential.account,
        credit_balance: credential.credit_balance,
        expires_at: credential.expires_at,
    }))
}
