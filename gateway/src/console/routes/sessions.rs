//! `/console/sessions`: the sessions of a person.

use axum::extract::State;
use axum::response::IntoResponse;
use domain::Timestamp;
use domain::channel;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::session::{SessionKind, signed_out};
use crate::console::person::Person;
use crate::extract::path::PathText;
use crate::openapi::errors::{ReadErrors, ScopeErrors};
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// The active sessions of an account.
#[derive(Serialize, ToSchema)]
pub struct Sessions {
    /// The sessions, newest first.
    sessions: Vec<Session>,
}

/// An active session.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Id of the session.
    id: Uuid,
    /// Scopes that it grants.
    kind: SessionKind,
    /// Label under which its activity is recorded.
    label: String,
    /// The browser, as it names itself.
    client: Option<String>,
    /// `true` if it is the session of this request.
    current: bool,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last used, to the minute.
    last_used_at: Option<Timestamp>,
    /// When it expires at the latest. It also ends after 12 hours without use.
    expires_at: Timestamp,
}

/// List sessions
///
/// Returns the active sessions of the account, newest first.
#[utoipa::path(
    get, path = "/sessions", operation_id = "listSessions", tag = "Session",
    responses(ScopeErrors, (status = 200, description = "The sessions.", body = Sessions))
)]
pub async fn list(State(app): State<App>, person: Person) -> Result {
    let sessions = db::sessions::list(&mut *app.connection().await?, &person.account).await?;
    let entry = |session: db::sessions::Session| Session {
        id: session.id,
        kind: SessionKind::from_narrow(session.is_narrow),
        label: session.label,
        client: session.client,
        current: session.id == person.token,
        created_at: session.created_at,
        last_used_at: session.last_used_at,
        expires_at: session.expires_at,
    };
    Ok(reply::ok(&Sessions { sessions: sessions.into_iter().map(entry).collect() }))
}

/// End a session
///
/// Signs one session out. Work that it started goes on.
#[utoipa::path(
    delete, path = "/sessions/{sessionId}", operation_id = "endSession", tag = "Session",
    params(("sessionId" = Uuid, Path, description = "Id of the session.")),
    responses(ReadErrors, (status = 204, description = "The session has ended."))
)]
pub async fn end(State(app): State<App>, person: Person, path: PathText) -> Result {
    let id: Uuid = path.parameter("sessionId")?;
    let mut transaction = app.transaction().await?;
    app::session::end(&mut transaction, person.actor(), &person.account, id).await?;
    db::pool::commit(transaction).await?;
    app.announce(vec![channel::access(&person.account)]);
    Ok(reply::private(StatusCode::NO_CONTENT.into_response()))
}

/// Sign out everywhere
///
/// Revokes all sessions of the account, this one included. Recipe runs that they started stop at their next step, because their
/// delegation is withdrawn. Agent tokens stay valid.
#[utoipa::path(
    delete, path = "/sessions", operation_id = "endAllSessions", tag = "Session",
    responses(ScopeErrors, (status = 204, description = "All sessions have ended."))
)]
pub async fn revoke_all(State(app): State<App>, person: Person) -> Result {
    let mut transaction = app.transaction().await?;
    app::session::end_all(&mut transaction, person.actor(), &person.account).await?;
    db::pool::commit(transaction).await?;
    app.announce(vec![channel::access(&person.account)]);
    Ok(signed_out())
}
