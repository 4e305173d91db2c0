//! `/console/connections`: the saved connections of a person's account to providers. Their base URLs are for operators alone.

use app::connection::{NewConnection, wrong_key, wrong_name};
use axum::extract::State;
use axum::response::IntoResponse;
use db::connections::{BaseUrl, Connection};
use domain::Violation;
use domain::model::{ConnectionProvider, ProviderConnection, ProviderKind};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use service::config::Secret;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::console::person::Person;
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::extract::path::PathText;
use crate::models::{model_ids, saved};
use crate::openapi::errors::{ReadErrors, ScopeErrors};
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// The saved connections of an account.
#[derive(Serialize, ToSchema)]
pub struct Connections {
    /// The connections, oldest first, with masked API keys.
    connections: Vec<ProviderConnection>,
}

/// List saved connections
///
/// Returns all saved connections of the account, oldest first. Keys are masked.
#[utoipa::path(
    get, path = "/connections", operation_id = "listConnections", tag = "Connections",
    responses(ScopeErrors, (status = 200, description = "The connections.", body = Connections))
)]
pub async fn list(State(app): State<App>, person: Person) -> Result {
    let found = db::connections::list(&mut *app.connection().await?, &person.account).await?;
    let connection = |it: &Connection| saved(&app.models, it);
    Ok(reply::ok(&Connections { connections: found.iter().map(connection).collect() }))
}

/// Request to save a connection.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SaveConnection {
    /// The provider.
    #[schema(value_type = ConnectionProvider)]
    provider: ProviderKind,
    /// Name for people; not white space alone.
    #[schema(min_length = 1, max_length = 80)]
    name: String,
    /// The provider's API key: visible ASCII. It is encrypted and never returned.
    #[schema(min_length = 1, max_length = 4096, pattern = "^[!-~]+$", write_only)]
    api_key: String,
}

impl Input for SaveConnection {}

impl SaveConnection {
    fn check(self) -> Result<NewConnection, Vec<Violation>> {
        let mut check = Check::default();
        check.extend(wrong_name(&self.name).map(|why| Violation::new("name", why)));
        check.extend(wrong_key(&self.api_key).map(|why| Violation::new("apiKey", why)));
        let key = Secret::new(self.api_key);
        check.finish(|| Some(NewConnection { provider: self.provider, name: self.name, key }))
    }
}

/// A saved connection.
#[derive(Serialize, ToSchema)]
pub struct ConnectionSaved {
    /// The connection, with its masked API key.
    connection: ProviderConnection,
}

/// Save a connection
///
/// Saves a connection of the account to a provider. A connection with the same provider and name keeps its id and gets the new key.
/// An account has at most 100 connections.
#[utoipa::path(
    post, path = "/connections", operation_id = "saveConnection", tag = "Connections", request_body = SaveConnection,
    responses(
        ScopeErrors,
        (status = 200, description = "The connection existed. Its key was replaced.", body = ConnectionSaved),
        (status = 201, description = "The new connection.", body = ConnectionSaved),
        (status = 409, description = "The account already has 100 connections."),
    )
)]
pub async fn save(State(app): State<App>, person: Person, body: JsonBody) -> Result {
    let new = body.checked(SaveConnection::check).await?;
    let mut transaction = app.transaction().await?;
    let (actor, account) = (person.actor(), &person.account);
    let save = app::connection::save(&mut transaction, actor, &app.ring, account, &new, BaseUrl::Keep);
    let (saved, masked_key) = save.await?;
    db::pool::commit(transaction).await?;
    let connection = ProviderConnection {
        id: saved.id.to_string(),
        provider: new.provider,
        name: new.name,
        masked_key,
        models: model_ids(&app.models, new.provider),
    };
    let status = if saved.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(reply::with_status(status, &ConnectionSaved { connection }))
}

/// Delete a connection
///
/// Deletes a saved connection of the account and its key. Its models can no longer be used, and jobs that use them fail at their
/// next call.
#[utoipa::path(
    delete, path = "/connections/{connectionId}", operation_id = "deleteConnection", tag = "Connections",
    params(("connectionId" = Uuid, Path, description = "Id of the connection.")),
    responses(ReadErrors, (status = 204, description = "The connection is deleted."))
)]
pub async fn delete(State(app): State<App>, person: Person, path: PathText) -> Result {
    let id: Uuid = path.parameter("connectionId")?;
    let mut transaction = app.transaction().await?;
    app::connection::delete(&mut transaction, person.actor(), id, Some(&person.account)).await?;
    db::pool::commit(transaction).await?;
    Ok(reply::private(StatusCode::NO_CONTENT.into_response()))
}
