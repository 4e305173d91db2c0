//! Who makes a job's outputs: the embedded runtime, the operator's server, or a third party under a saved connection.

use std::sync::Arc;

use db::connections::Credentials;
use domain::id::AccountUid;
use domain::job::{ChosenModel, Failure, FailureCode};
use domain::model::ProviderKind;
use providers::catalogue::Runtime;
use providers::{ApiKey, Endpoint, Entry, ManagedProtocol, Promises, Provider};
use uuid::Uuid;

use super::{Generator, Turn};
use crate::Stop;

/// What an answer that holds the result is counted with while it is awaited: a picture of a few megapixels, in base64 and out
/// of it. How large it is shows only when it is there; the adapters cap it.
const ANSWER_BYTES: u64 = 2 * 1024 * 1024;
/// What a file is counted with for each order besides itself: its base64, and the body that this stands in.
const BODY_FACTOR: u64 = 3;

/// Who makes the outputs.
pub enum Maker {
    /// The embedded runtime, by this model.
    Embedded(Arc<Entry>),
    /// A provider.
    Remote(Box<Remote>),
}

/// A provider that can be asked.
pub struct Remote {
    /// The provider.
    pub provider: Provider,
    /// The model; `None` when it is gone: runs that there are can still be followed.
    pub model: Option<Arc<Entry>>,
    /// Whose calls are counted together.
    pub line: String,
}

/// What fails the outputs of a model that this service does not run (any more).
pub fn model_gone() -> Failure {
    Failure::new(FailureCode::ProviderRejected, "the model is not offered any more")
}

/// What `orders` orders with the same files, of `file_bytes` altogether, take while they are submitted.
pub fn order_bytes(promises: &Promises, file_bytes: u64, orders: usize) -> u64 {
    let each = BODY_FACTOR * file_bytes + if promises.inline { ANSWER_BYTES } else { 0 };
    file_bytes + each * orders as u64
}

impl Turn<'_> {
    /// Who makes this job's outputs.
    ///
    /// # Errors
    /// [`Stop::Failed`] when nobody can, and when the database fails.
    pub async fn maker(&self) -> Result<Maker, Stop> {
        self.generator.maker(&self.job.account, self.model).await
    }
}

impl Generator {
    /// Who makes what `account` asks of `chosen`.
    ///
    /// # Errors
    /// [`Stop::Failed`] when nobody can, and when the database fails.
    pub async fn maker(&self, account: &AccountUid, chosen: &ChosenModel) -> Result<Maker, Stop> {
        let credentials = match chosen.connection.as_deref().and_then(|id| Uuid::try_parse(id).ok()) {
            Some(id) if chosen.provider != ProviderKind::Managed => {
                db::connections::credentials(&mut *self.worker.connection().await?, account, id).await?
            }
            _ => None,
        };
        self.maker_with(chosen, credentials)
    }

    /// The same where what a call with the saved connection needs was read before.
    ///
    /// # Errors
    /// [`Stop::Failed`] when nobody can.
    pub fn maker_with(&self, chosen: &ChosenModel, credentials: Option<Credentials>) -> Result<Maker, Stop> {
        let model = self.setup.models(chosen.provider).find(|entry| entry.id == chosen.id).cloned();
        let endpoint = match (chosen.provider, &model) {
            (ProviderKind::Managed, Some(model)) if model.runtime == Runtime::Embedded => {
                return Ok(Maker::Embedded(model.clone()));
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
        Ok(Maker::Remote(Box::new(Remote { provider, model, line })))
    }

    /// The saved connection that a model is run with, its key opened. One that is gone is a credential that is refused.
    fn endpoint(&self, chosen: &ChosenModel, credentials: Option<Credentials>) -> Result<Endpoint, Stop> {
        let refused = |why: &str| Failure::new(FailureCode::ProviderAuthenticationFailed, why);
        let id = chosen.connection.as_deref().and_then(|id| Uuid::try_parse(id).ok());
        let id = id.ok_or_else(|| refused("the model is run with no saved connection"))?;
        let found = credentials
            .filter(|found| found.provider == chosen.provider)
            .ok_or_else(|| refused("the saved connection was removed"))?;
        let key = match self.keys.open(&db::connections::context(id), &found.sealed_key) {
            Ok(key) => str::from_utf8(&key).ok().and_then(ApiKey::new),
            Err(error) => {
                tracing::error!(connection.id = %id, error = &error as &dyn std::error::Error, "the key of connection {id} cannot be opened");
                None
            }
        };
        let key = key.ok_or_else(|| refused("the saved connection's key cannot be used"))?;
        let base = found.base_url.as_deref().map(providers::base_url).transpose();
        let base = base.map_err(|error| Failure::new(FailureCode::RuntimeFailed, error.to_string()))?;
        Ok(Endpoint { kind: found.provider, managed: ManagedProtocol::default(), base, key: Some(key) })
    }
}
