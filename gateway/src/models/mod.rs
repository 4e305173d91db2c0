//! The models that an account can run, and the selection of the model that a request means (docs/reference/models.md#model-keys).

pub mod fit;
pub mod steps;

use std::sync::Arc;

use app::recipe::Choice;
use domain::Violation;
use domain::account::{Scope, Scopes};
use domain::id::{AccountUid, NodeId};
use domain::job::ChosenModel;
use domain::model::{Capability, Model, ModelType, ProviderConnection, ProviderKind, is_model_key, is_stand_in};
use domain::recipe::run::{RunInput, Step};
use domain::recipe::{NewOutput, Output};
use providers::{Entry, Setup};
use serde::{Deserialize, Serialize};
use service::keys::DerivedKeys;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use self::fit::Asked;
use crate::state::App;

/// The violation of a malformed model name: a handle must match as a whole; any other text may be a provider's id.
pub fn malformed_name(field: impl Into<String>, name: &str) -> Option<Violation> {
    let key = name.strip_prefix("model:")?;
    (!is_model_key(key)).then(|| Violation::new(field, "must be a model id or a `model:` handle"))
}

/// The saved connection that a model runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Plain id of the connection.
    pub id: String,
    /// Display name of the connection.
    pub name: String,
}

/// A model that an account can run.
#[derive(Clone, Debug)]
pub struct Runnable {
    /// The catalog entry of the model.
    pub entry: Arc<Entry>,
    /// Opaque key: identifies this model of this connection for this account (docs/reference/models.md#model-keys).
    pub key: String,
    /// Connection that the model runs with; `None` for managed models.
    pub connection: Option<Connection>,
    /// Position among the account's models.
    pub place: ModelPosition,
}

/// The position of a model: connections by age, then the managed runtime, each in catalog order. It is also valid for a model
/// that was removed, so that a list continues after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ModelPosition {
    managed: bool,
    /// When the connection was saved, in milliseconds of the Unix epoch.
    saved_at: i64,
    connection: Uuid,
    index: usize,
}

impl Runnable {
    /// The record of the model in a job.
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

    /// The estimated duration of a job with the model, in seconds.
    pub fn estimated_seconds(&self) -> i32 {
        i32::try_from(self.entry.estimated_seconds).unwrap_or(i32::MAX)
    }

    /// The served form; `None` for text models, which are not listed (docs/reference/models.md#text-models).
    pub fn document(&self) -> Option<Model> {
        let label = self.entry.provider.label();
        Some(Model {
            id: self.key.clone(),
            handle: format!("model:{}", self.key),
            model_id: self.entry.id.clone(),
            name: self.entry.name.clone(),
            provider: self.entry.provider.into(),
            provider_label: label.to_owned(),
            connection_id: self.connection.as_ref().map(|connection| connection.id.clone()),
            connection_name: self.connection.as_ref().map_or(label, |connection| &connection.name).to_owned(),
            kind: self.entry.model_type()?.into(),
            capabilities: self.entry.capabilities.iter().copied().map(Into::into).collect(),
            parameters: self.entry.parameters(),
            estimated_seconds: self.entry.estimated_seconds,
            beta: self.entry.beta,
            credit_cost: self.entry.credit_cost,
            stand_in: is_stand_in(self.entry.provider, &self.entry.id),
        })
    }

    /// Returns `true` if a caller with `scopes` may run the model; always false for text models, which are not listed.
    pub fn is_for(&self, scopes: Scopes) -> bool {
        match self.entry.model_type() {
            Some(ModelType::Image) => scopes.contains(Scope::ImageGenerate),
            Some(ModelType::Video) => scopes.contains(Scope::VideoGenerate),
            None => false,
        }
    }

    /// Returns `true` if `name` in a request means this model: its handle, or the provider's id.
    pub fn is_named(&self, name: &str) -> bool {
        name.strip_prefix("model:").map_or_else(|| self.entry.id == name, |key| self.has_key(key))
    }

    /// Returns `true` if `key` is the model's key, compared in constant time.
    pub fn has_key(&self, key: &str) -> bool {
        self.key.as_bytes().ct_eq(key.as_bytes()).into()
    }
}

impl App {
    /// The account's models in order: saved connections, oldest first, then the managed runtime, each in catalog order
    /// (docs/reference/models.md#model-order). Text models are included; lists omit them.
    pub async fn runnable(
        &self,
        conn: &mut db::PgConnection,
        account: &AccountUid,
    ) -> Result<Vec<Runnable>, db::Error> {
        let connections = db::connections::list(conn, account).await?;
        Ok(runnable(&self.models, &self.keys, account, &connections))
    }
}

impl app::Models for App {
    async fn first(
        &self,
        conn: &mut db::PgConnection,
        account: &AccountUid,
        prompts: &[String],
    ) -> app::Result<(ChosenModel, i32)> {
        let models = self.runnable(conn, account).await?;
        let capability = Capability::ImageGenerate;
        let model = choose(&models, None, None, capability.into());
        let model = model.map_err(|violation| app::Error::Unprocessable(vec![violation]))?;
        let unfit = prompts.iter().enumerate().flat_map(|(at, prompt)| {
            let prompt_field = &format!("plan.shots[{at}].prompt");
            let asked =
                Asked { capability, prompt, prompt_field, roles: &[], masked: false, size: None, quality: None };
            fit::violations(&model.entry, &asked)
        });
        let unfit: Vec<Violation> = unfit.collect();
        if !unfit.is_empty() {
            return Err(app::Error::Unprocessable(unfit));
        }
        Ok((model.chosen(), model.estimated_seconds()))
    }

    async fn unfit(
        &self,
        conn: &mut db::PgConnection,
        account: &AccountUid,
        outputs: &[NewOutput],
    ) -> app::Result<Vec<Violation>> {
        if outputs.iter().all(|output| output.model.is_none()) {
            return Ok(Vec::new());
        }
        Ok(steps::unfit_models(&self.runnable(conn, account).await?, outputs))
    }

    async fn steps(
        &self,
        conn: &mut db::PgConnection,
        account: &AccountUid,
        outputs: &[Output],
        nodes: &[NodeId],
        inputs: &[RunInput],
        choice: &Choice,
    ) -> app::Result<Vec<Step>> {
        let models = self.runnable(conn, account).await?;
        steps::choose(&models, outputs, nodes, inputs, choice).map_err(app::Error::Unprocessable)
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
            place: ModelPosition {
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

/// The served form of a connection.
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

/// The text whose keyed hash is the model's key. Only its last part can contain a space.
fn identity(account: &AccountUid, connection: Option<Uuid>, entry: &Entry) -> String {
    let connection = connection.unwrap_or_default();
    format!("{account} {connection} {} {}", entry.provider, entry.id)
}

/// What a request needs of a model.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    pub capability: Capability,
    /// `true` if it has a mask. Of the models that it does not name, only those that suit this are considered.
    pub masked: bool,
}

impl From<Capability> for Need {
    fn from(capability: Capability) -> Self {
        Self { capability, masked: false }
    }
}

/// Selects the model for a capability by what a request names: an id, a `model:` handle, or nothing; among the models of
/// `connection` when it names one. Of several models with the same id it is the first in the order of
/// docs/reference/models.md#model-order that has the capability.
///
/// # Errors
///
/// The violation of `model` or `connectionId`: a rejection by stored state (422).
pub fn choose<'a>(
    models: &'a [Runnable],
    model: Option<&str>,
    connection: Option<&str>,
    need: Need,
) -> Result<&'a Runnable, Violation> {
    let Need { capability, masked } = need;
    let refuse = |field: &str, message: &str| Err(Violation::new(field, message));
    let of_connection = |it: &&Runnable| {
        connection.is_none_or(|wanted| it.connection.as_ref().is_some_and(|connection| connection.id == wanted))
    };
    if !models.iter().any(|it| of_connection(&it)) {
        return refuse("connectionId", "is not one of your connections that run models");
    }
    let able = |it: &&Runnable| it.entry.capabilities.contains(&capability);
    let Some(name) = model else {
        let suits = |it: &&Runnable| match masked {
            true => it.entry.mask.is_some(),
            false => capability != Capability::ImageEdit || !it.entry.mask_required,
        };
        let mut able = models.iter().filter(of_connection).filter(able).peekable();
        return match able.peek() {
            None => refuse("model", &format!("you have no model for {capability}")),
            Some(_) => able.find(suits).map_or_else(
                || match masked {
                    true => refuse("mask", "you have no model that takes a mask"),
                    false => refuse("mask", "your models edit with a mask alone"),
                },
                Ok,
            ),
        };
    };
    let named: Vec<&Runnable> = models.iter().filter(|it| it.is_named(name)).collect();
    if named.is_empty() {
        return refuse("model", "is not a model that you can run");
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
