//! `/console/identities`: the identities that sign in to a person's account.

use axum::extract::State;
use axum::response::IntoResponse;
use db::audit::Event;
use domain::Timestamp;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::oidc::require_recent;
use crate::console::person::Person;
use crate::extract::path::PathText;
use crate::openapi::errors::{ReadErrors, ScopeErrors};
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// The identities of an account.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Identities {
    /// The identities, oldest first.
    identities: Vec<IdentitySummary>,
    /// The tokens of the account stop at this time unless its owner signs in before. Absent: they need no sign-in.
    confirm_by: Option<Timestamp>,
}

/// A person at a provider.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentitySummary {
    /// Id of the identity.
    id: Uuid,
    /// Id of the provider.
    provider: String,
    /// Name of the provider; absent if the operator removed it.
    name: Option<String>,
    /// The last verified email.
    email: Option<String>,
    /// When it was linked.
    created_at: Timestamp,
    /// When it last signed in.
    last_signin_at: Option<Timestamp>,
}

/// List identities
///
/// Returns the identities that sign in to the account.
#[utoipa::path(
    get, path = "/identities", operation_id = "listIdentities", tag = "Single sign-on",
    responses(ScopeErrors, (status = 200, description = "The identities.", body = Identities))
)]
pub async fn list(State(app): State<App>, person: Person) -> Result {
    let identities = db::identities::list(&mut *app.connection().await?, &person.account).await?;
    let name = |id: &str| {
        let provider = app.providers.iter().find(|provider| provider.settings.id == id);
        provider.map(|provider| provider.settings.name.clone())
    };
    let summary = |identity: db::identities::Listed| IdentitySummary {
        id: identity.id,
        name: name(&identity.provider),
        provider: identity.provider,
        email: identity.email,
        created_at: identity.created_at,
        last_signin_at: identity.last_signin_at,
    };
    let confirm_by = person.confirm_by.filter(|_| app.confirms_tokens());
    Ok(reply::ok(&Identities { identities: identities.into_iter().map(summary).collect(), confirm_by }))
}

/// Unlink an identity
///
/// The identity does not sign in to the account any more. Sessions go on. It takes a sign-in within the last 15 minutes.
#[utoipa::path(
    delete, path = "/identities/{identityId}", operation_id = "unlinkIdentity", tag = "Single sign-on",
    params(("identityId" = Uuid, Path, description = "Id of the identity.")),
    responses(ReadErrors, (status = 204, description = "The identity is unlinked."))
)]
pub async fn unlink(State(app): State<App>, person: Person, path: PathText) -> Result {
    let id: Uuid = path.parameter("identityId")?;
    let mut transaction = app.transaction().await?;
    require_recent(&mut transaction, &person).await?;
    if !db::identities::unlink(&mut transaction, &person.account, id).await? {
        return Err(Problem::NotFound("identity"));
    }
    let event = Event::IdentityUnlinked { identity: id };
    db::audit::write(&mut transaction, person.actor(), Some(&person.account), &event).await?;
    db::pool::commit(transaction).await?;
    Ok(reply::private(StatusCode::NO_CONTENT.into_response()))
}
