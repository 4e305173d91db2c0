//! `POST /oauth/revoke`: a client ends its app (RFC 7009).

use app::oauth::Revoked;
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use domain::channel;
use http::StatusCode;

use super::error::Result;
use super::form::Form;
use crate::console::credential;
use crate::rates::Rate;
use crate::state::App;

/// Ends the app of a token, whichever of the two it is. A token that is not one of the client's changes nothing, and the answer does not
/// tell.
pub async fn revoke(State(app): State<App>, request: Request) -> Result {
    let form = Form::receive(&app, request, Rate::OauthTokens).await?;
    let parameters = form.parameters()?;
    let (token, client_id) = (parameters.required("token")?, parameters.required("client_id")?);
    let of = |prefix: &str| token.strip_prefix(prefix).and_then(credential::parse);
    if let Some(token) = of("cba_").map(Revoked::Access).or_else(|| of("cbr_").map(Revoked::Refresh)) {
        let mut transaction = app.transaction().await?;
        let ended = app::oauth::revoke(&mut transaction, app.keys.app(), &form.origin, token, client_id).await?;
        db::pool::commit(transaction).await?;
        if let Some(account) = ended {
            app.announce(vec![channel::access(&account)]);
        }
    }
    Ok(StatusCode::OK.into_response())
}
