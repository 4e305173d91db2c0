//! Which models an account can run, and which of them a request means (decisions 10.5, 12).

use std::sync::Arc;

use domain::Violation;
use domain::account::{Scope, Scopes};
use domain::id::AccountUid;
use domain::job::ChosenModel;
use domain::model::{Capability, Model, ModelType, ProviderConnection, ProviderKind, is_model_key};
use providers::{Entry, Setup};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use service::keys::DerivedKeys;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::problem::Result;
use crate::state::App;

/// What is wrong with a model's name by itself (decisions 1.3): a handle is one as a whole; everything else may be a provider's id.
pub fn malformed_name(field: &str, name: &Value) -> Option<Violation> {
    let key = name.as_str()?.strip_prefix("model:")?;
    (!is_model_key(key)).then(|| Violation::new(field, "must be a model id or a `model:` handle"))
}

/// The saved connection that a model is run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Its plain id.
    pub id: String,
    /// For people.
    pub name: String,
}

/// A model that an account can run.
#[derive(Clone, Debug)]
pub struct Runnable {
    /// The model.
    pub entry: Arc<Entry>,
    /// Its opaque key: the account's own name for this model of this connection (decisions 12.3).
    pub key: String,
    /// What it is run with; none for managed models.
    pub connection: Option<Connection>,
    /// Where it stands among the account's models.
    pub place: Place,
}

/// Where a model stands: connections by age, then the managed runtime, each in catalogue order. It says so of models that
/// are gone, too, so that a walk through the list goes on behind them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    managed: bool,
    /// When the connection was saved, in milliseconds of the Unix epoch.
    saved_at: i64,
    connection: Uuid,
    index: usize,
}

impl Runnable {
    /// What a job keeps of it.
    pub fn chosen(&self) -> ChosenModel {
        ChosenModel {
            key: self.key.clone(),
            id: self.entry.id.clone(),
            name: self.entry.name.clone(),
            provider: self.entry.provider,
            connection: self.connection.as_ref().map(|connection| connection.id.clone()),
            credit_cost: self.entry.credit_cost,
        }
    }

    /// The served form; `None` of text models, which are not listed (decisions 12.3).
    pub fn document(&self) -> Option<Model> {
        let label = self.entry.provider.label();
        Some(Model {
            id: self.key.clone(),
            handle: format!("model:{}", self.key),
            model_id: self.entry.id.clone(),
            name: self.entry.name.clone(),
            provider: self.entry.provider,
            provider_label: label.to_owned(),
            connection_id: self.connection.as_ref().map(|connection| connection.id.clone()),
            connection_name: self.connection.as_ref().map_or(label, |connection| &connection.name).to_owned(),
            kind: self.entry.model_type()?,
            capabilities: self.entry.capabilities.clone(),
            parameters: self.entry.parameters(),
            estimated_seconds: self.entry.estimated_seconds,
            beta: self.entry.beta,
            credit_cost: self.entry.credit_cost,
        })
    }

    /// Whether a caller with `scopes` may run it (decisions 12.3); nobody is shown a text model.
    pub fn is_for(&self, scopes: Scopes) -> bool {
        match self.entry.model_type() {
            Some(ModelType::Image) => scopes.contains(Scope::ImageGenerate),
            Some(ModelType::Video) => scopes.contains(Scope::VideoGenerate),
            None => false,
        }
    }

    /// Whether a request that says `name` means it: its handle, or the provider's own id (decisions 12.3).
    pub fn is_named(&self, name: &str) -> bool {
        name.strip_prefix("model:").map_or_else(|| self.entry.id == name, |key| self.has_key(key))
    }

    /// Whether `key` is its key; how much of a guess is right cannot be told from the time it takes.
    pub fn has_key(&self, key: &str) -> bool {
        self.key.as_bytes().ct_eq(key.as_bytes()).into()
    }
}

impl App {
    /// The account's models in the order of decisions 10.5: saved connections, the oldest first, then the managed runtime,
    /// each in catalogue order. Text models are among them; lists leave them out.
    pub async fn runnable(&self, conn: &mut db::PgConnection, account: &AccountUid) -> Result<Vec<Runnable>> {
        let connections = db::connections::list(conn, account).await?;
        Ok(runnable(&self.models, &self.keys, account, &connections))
    }
}

fn runnable(
    setup: &Setup,
    keys: &DerivedKeys,
    account: &AccountUid,
    connections: &[db::connections::Connection],
) -> Vec<Runnable> {
    let of = |provider: ProviderKind, connection: Option<&db::connections::Connection>| {
        let made = setup.models(provider).enumerate().map(|(index, entry)| Runnable {
            entry: entry.clone(),
            key: keys.model_key(&identity(account, connection.map(|it| it.id), entry)),
            connection: connection.map(|it| Connection { id: it.id.to_string(), name: it.name.clone() }),
            place: Place {
                managed: connection.is_none(),
                saved_at: connection.map_or(0, |it| it.created_at.get().timestamp_millis()),
                connection: connection.map_or(Uuid::nil(), |it| it.id),
                index,
            },
        });
        made.collect::<Vec<_>>()
    };
    let saved = connections.iter().flat_map(|connection| of(connection.provider, Some(connection)));
    saved.chain(of(ProviderKind::Managed, None)).collect()
}

/// A connection as it is served.
pub fn saved(setup: &Setup, connection: &db::connections::Connection) -> ProviderConnection {
    ProviderConnection {
        id: connection.id.to_string(),
        provider: connection.provider,
        name: connection.name.clone(),
        masked_key: connection.masked_key.clone(),
        models: model_ids(setup, connection.provider),
    }
}

/// The ids of the models that a provider runs.
pub fn model_ids(setup: &Setup, provider: ProviderKind) -> Vec<String> {
    setup.models(provider).map(|entry| entry.id.clone()).collect()
}

/// What a model's key is a keyed hash of. Only its last part can hold a space.
fn identity(account: &AccountUid, connection: Option<Uuid>, entry: &Entry) -> String {
    let connection = connection.unwrap_or_default();
    format!("{account} {connection} {} {}", entry.provider, entry.id)
}

/// The model that a request names (id, `model:` handle, or nothing) for a capability, among those of `connection` when it
/// names one. Of several with one id it is the first in the order of decisions 10.5 that has the capability.
///
/// # Errors
///
/// What is wrong with `model` or `connectionId`: a rejection by stored state (422).
pub fn choose<'a>(
    models: &'a [Runnable],
    model: Option<&str>,
    connection: Option<&str>,
    capability: Capability,
) -> Result<&'a Runnable, Violation> {
    let refuse = |field: &str, message: &str| Err(Violation::new(field, message));
    let of_connection = |it: &&Runnable| {
        connection.is_none_or(|wanted| it.connection.as_ref().is_some_and(|connection| connection.id == wanted))
    };
    if !models.iter().any(|it| of_connection(&it)) {
        return refuse("connectionId", "names no connection of yours that runs models");
    }
    let able = |it: &&Runnable| it.entry.capabilities.contains(&capability);
    let Some(name) = model else {
        let first = models.iter().filter(of_connection).find(able);
        return first.map_or_else(|| refuse("model", &format!("you have no model for {capability}")), Ok);
    };
    let named: Vec<&Runnable> = models.iter().filter(|it| it.is_named(name)).collect();
    if named.is_empty() {
        return refuse("model", "is no model that you can run");
    }
    let fitting: Vec<&Runnable> = named.into_iter().filter(of_connection).collect();
    if fitting.is_empty() {
        return refuse("connectionId", "does not run this model");
    }
    let chosen = fitting.into_iter().find(able);
    chosen.map_or_else(|| refuse("model", &format!("does not offer {capability}")), Ok)
}

#[cfg(test)]
pub(crate) mod tests;
