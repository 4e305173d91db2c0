//! `GET /auth/status` (decisions 2.3).

use domain::Timestamp;
use domain::account::Scope;
use domain::id::AccountUid;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::extract::caller::{AnyToken, Caller};
use crate::problem::Result;
use crate::reply;

/// Who the token stands for and what it may do.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthStatus {
    /// Always true: a failed credential is a 401.
    authenticated: bool,
    /// `agent_token`.
    auth_type: &'static str,
    /// The account's email.
    email: String,
    /// In the order of the specification's table.
    scopes: Vec<Scope>,
    /// The token's id.
    agent_token_id: Uuid,
    /// The token's label.
    agent_label: String,
    /// The account's uid (an extension).
    uid: AccountUid,
    /// The account's credits (an extension).
    credit_balance: i64,
    /// When the token ends by itself (an extension).
    #[schema(required = true)]
    expires_at: Option<Timestamp>,
}

/// Tell who the token stands for
#[utoipa::path(get, path = "/auth/status", operation_id = "getAuthStatus", tag = "Authentication", responses((status = 200, body = AuthStatus)))]
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
