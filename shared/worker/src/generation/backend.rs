//! Selects what makes a job's outputs: the embedded runtime, the operator's server, or a third
//! party through a saved connection.

use std::sync::Arc;

use db::connections::Credentials;
use domain::id::AccountUid;
use domain::job::{ChosenModel, Failure, FailureCode};
use domain::model::ProviderKind;
use providers::catalogue::Runtime;
use providers::{ApiKey, Endpoint, Entry, ManagedProtocol, ProtocolCapabilities, Provider};
use uuid::Uuid;

use super::{Generator, TaskRun};
use crate::Interrupt;

/// Memory reserved for a response that contains the result: an image of a few megapixels, in
/// base64 and decoded. The actual size is known only when the response has arrived; the adapters
/// limit it.
const ANSWER_BYTES: u64 = 2 * 1024 * 1024;
/// Memory reserved per file of an order, as a multiple of the file's size: its base64 form, and the
/// body that contains it.
const BODY_FACTOR: u64 = 3;

/// The backend that makes the outputs of a job.
pub enum Backend {
    /// A model of the embedded runtime.
    Embedded(Arc<Entry>),
    /// A provider, called through its API.
    Remote(Box<RemoteBackend>),
}

/// A provider that can be called.
pub struct RemoteBackend {
    pub provider: Provider,
    /// The model; `None` if it was removed. Existing runs can still be followed.
    pub model: Option<Arc<Entry>>,
    /// The key by which concurrent calls are limited.
    pub line: String,
}

/// The failure of outputs whose model is unknown to this service or was removed.
pub fn model_gone() -> Failure {
    Failure::new(FailureCode::ProviderRejected, "the model is not offered any more")
}

/// The memory in bytes for `orders` orders with the same files, `file_bytes` in total, while they
/// are submitted.
pub fn order_bytes(capabilities: &ProtocolCapabilities, file_bytes: u64, orders: usize) -> u64 {
    let each = BODY_FACTOR * file_bytes + if capabilities.inline { ANSWER_BYTES } else { 0 };
    file_bytes + each * orders as u64
}

impl TaskRun<'_> {
    /// Determines what makes this job's outputs.
    ///
    /// # Errors
    ///
    /// [`Interrupt::Failed`] if the model cannot be run; also if the database fails.
    pub async fn backend(&self) -> Result<Backend, Interrupt> {
        self.generator.backend(&self.job.account, self.model).await
    }
}

impl Generator {
    /// Determines what makes the outputs that `account` requests of `chosen`.
    ///
    /// # Errors
    ///
    /// [`Interrupt::Failed`] if the model cannot be run; also if the database fails.
    pub async fn backend(&self, account: &AccountUid, chosen: &ChosenModel) -> Result<Backend, Interrupt> {
        let credentials = match chosen.connection.as_deref().and_then(|id| Uuid::try_parse(id).ok()) {
            Some(id) if chosen.provider != ProviderKind::Managed => {
                db::connections::credentials(&mut *self.worker.connection().await?, account, id).await?
            }
            _ => None,
        };
        self.backend_with(chosen, credentials)
    }

    /// Like [`backend`](Self::backend), with credentials of the saved connection that were already
    /// read.
    ///
    /// # Errors
    ///
    /// [`Interrupt::Failed`] if the model cannot be run.
    pub fn backend_with(&self, chosen: &ChosenModel, credentials: Option<Credentials>) -> Result<Backend, Interrupt> {
        let model = self.setup.models(chosen.provider).find(|entry| entry.id == chosen.id).cloned();
        let endpoint = match (chosen.provider, &model) {
            (ProviderKind::Managed, Some(model)) if model.runtime == Runtime::Embedded => {
                return Ok(Backend::Embedded(model.clone()));
            }
            (ProviderKind::Managed, _) => match &self.setup.server {
                Some(server) => server.endpoint(),
                None => return Err(model_gone().into()),
            },
            _ => self.endpoint(chosen, credentials)?,
        };
        let provider = Provider::new(endpoint, self.worker.egress.clone(), self.settings.deadlines);
        let provider = provider.map_err(|error| Failure::new(FailureCode::RuntimeFailed, error.to_string()))?;
        let line = chosen.connection.clone().unwrap_or_else(|| chosen.provider.to_string());
        Ok(Backend::Remote(Box::new(RemoteBackend { provider, model, line })))
    }

    /// The saved connection that a model uses, with its key decrypted. A deleted connection is
    /// treated like rejected credentials.
    fn endpoint(&self, chosen: &ChosenModel, credentials: Option<Credentials>) -> Result<Endpoint, Interrupt> {
        let refused = |why: &str| Failure::new(FailureCode::ProviderAuthenticationFailed, why);
        let id = chosen.connection.as_deref().and_then(|id| Uuid::try_parse(id).ok());
        let id = id.ok_or_else(|| refused("the model is run with no saved connection"))?;
        let found = credentials
            .filter(|found| found.provider == chosen.provider)
            .ok_or_else(|| refused("the saved connection was removed"))?;
        let key = match self.keys.decrypt(&db::connections::context(id), &found.sealed_key) {
            Ok(key) => str::from_utf8(&key).ok().and_then(ApiKey::new),
            Err(error) => {
                tracing::error!(connection.id = %id, error = &error as &dyn std::error::Error, "cannot open the key of connection {id}");
                None
            }
        };
        let key = key.ok_or_else(|| refused("the saved connection's key cannot be used"))?;
        let base = found.base_url.as_deref().map(providers::base_url).transpose();
        let base = base.map_err(|error| Failure::new(FailureCode::RuntimeFailed, error.to_string()))?;
        Ok(Endpoint { kind: found.provider, managed: ManagedProtocol::default(), base, key: Some(key) })
    }
}
