//! `/console/admin/accounts/{accountUid}/tokens`.

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse;
use db::tokens::After;
use domain::channel;
use domain::id::AccountUid;
use domain::limits::PAGE_MAX;
use http::StatusCode;
use uuid::Uuid;

use super::accounts::named;
use super::administrator::Administrator;
use crate::console::routes::tokens::{AgentToken, TokenList};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Result, combine_violations};
use crate::reply;
use crate::state::App;

/// List the tokens of an account
///
/// Returns one page of the tokens of an account, newest first, without their secrets.
#[utoipa::path(
    get, path = "/accounts/{accountUid}/tokens", operation_id = "listAccountTokens", tag = "Tokens",
    params(
        ("accountUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the account."),
        Paged,
    ),
    responses(ReadErrors, (status = 200, description = "One page of tokens.", body = TokenList))
)]
pub async fn list(
    State(app): State<App>,
    admin: Administrator,
    path: PathText,
    OriginalUri(uri): OriginalUri,
) -> Result {
    let uid = path.parameter::<AccountUid>("accountUid");
    let mut query = QueryReader::new(&uri);
    let filter = uid.as_ref().map(ToString::to_string).unwrap_or_default();
    let scope = ListScope::new("console/admin/tokens", &admin.account, &[&filter]);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
    let (uid, ()) = combine_violations(uid, query.finish())?;
    let mut connection = app.connection().await?;
    named(&mut connection, &uid).await?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let mut found = db::tokens::page(&mut connection, &uid, after, limit).await?;
    let page =
        page(&app, &scope, request.limit, &mut found, |token| After { created_at: token.created_at, id: token.id });
    Ok(reply::ok(&TokenList { tokens: found.into_iter().map(AgentToken::from).collect(), page }))
}

/// Revoke a token of an account
///
/// Revokes a token of an account for the next request, for good. Sessions that it signed in end with it.
#[utoipa::path(
    delete, path = "/accounts/{accountUid}/tokens/{tokenId}", operation_id = "revokeAccountToken", tag = "Tokens",
    params(
        ("accountUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the account."),
        ("tokenId" = Uuid, Path, description = "Id of the token."),
    ),
    responses(ReadErrors, (status = 204, description = "The token is revoked."))
)]
pub async fn revoke(State(app): State<App>, admin: Administrator, path: PathText) -> Result {
    let (uid, id): (AccountUid, Uuid) = combine_violations(path.parameter("accountUid"), path.parameter("tokenId"))?;
    let mut transaction = app.transaction().await?;
    app::token::revoke(&mut transaction, admin.actor(), id, Some(&uid)).await?;
    db::pool::commit(transaction).await?;
    app.announce(vec![channel::access(&uid)]);
    Ok(reply::private(StatusCode::NO_CONTENT.into_response()))
}
