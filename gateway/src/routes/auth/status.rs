//! `GET /auth/status` (docs/reference/authentication.md#authentication-status).

use axum::extract::State;
use domain::account::{AccountStorage, AppStatus, AuthStatus, TokenKind};

use crate::extract::caller::{AnyToken, Caller};
use crate::openapi::errors::CredentialErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Check the credential
///
/// Returns the account, its credit, storage and open links, and the scopes and budgets of the token. Call it first to check that a token works
/// and what it may do. It changes nothing and needs no scope.
#[utoipa::path(
    get, path = "/auth/status", operation_id = "getAuthStatus", tag = "Authentication",
    responses(CredentialErrors, (status = 200, description = "The credential is valid.", body = AuthStatus))
)]
pub async fn status(State(app): State<App>, caller: Caller<AnyToken>) -> Result {
    let credential = caller.credential;
    let mut connection = app.connection().await?;
    let storage = db::storage::get(&mut connection, &credential.account).await?.ok_or(Problem::Unauthorized)?;
    let open_links = db::links::open(&mut connection, &credential.account).await?;
    let owner = credential.budget_owner();
    let budgets = db::budgets::list(&mut connection, &credential.account, &[credential.authority], owner).await?;
    let client = match credential.kind {
        TokenKind::Oauth => db::oauth::client_of(&mut connection, credential.token).await?,
        TokenKind::Agent | TokenKind::Session => None,
    };
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
        budgets: budgets.into_iter().map(|(_, budget)| budget).collect(),
        storage: AccountStorage { bytes: storage.bytes, max: (storage.max > 0).then_some(storage.max) },
        open_links,
        expires_at: credential.expires_at,
        confirm_by: credential.confirm_by.filter(|_| app.confirms_tokens()),
        app: client.map(|client| AppStatus { client_id: client.id, name: client.name, host: client.host }),
    }))
}
