//! Who makes a job's pictures: the embedded runtime, the operator's server, or a third party under a saved connection.

use std::sync::Arc;

use domain::job::{Failure, FailureCode, ImageRequest};
use domain::model::ProviderKind;
use providers::catalogue::Runtime;
use providers::{ApiKey, Endpoint, Entry, ManagedProtocol, Provider};
use uuid::Uuid;

use super::{Error, Generator, Run};

/// Who makes the pictures.
pub(super) enum Maker {
    /// The embedded runtime, by this model.
    Embedded(Arc<Entry>),
    /// A provider.
    Remote(Box<Remote>),
}

/// A provider that can be asked.
pub(super) struct Remote {
    /// The provider.
    pub provider: Provider,
    /// The model; `None` when it is gone: runs that there are can still be followed.
    pub model: Option<Arc<Entry>>,
    /// Whose calls are counted together.
    pub line: String,
}

/// What fails the outputs of a model that this service does not run (any more).
pub(super) fn model_gone() -> Failure {
    Failure::new(FailureCode::ProviderRejected, "the model is not offered any more")
}

impl Run<'_> {
    /// Who makes this job's pictures, or why nobody can.
    pub(super) async fn maker(&self) -> Result<Result<Maker, Failure>, Error> {
        let (generator, chosen) = (self.generator, &self.request.model);
        let model = generator.setup.models(chosen.provider).find(|entry| entry.id == chosen.id).cloned();
        let endpoint = match (chosen.provider, model) {
            (ProviderKind::Managed, Some(model)) if model.runtime == Runtime::Embedded => {
                return Ok(Ok(Maker::Embedded(model)));
            }
            (ProviderKind::Managed, model) => match &generator.setup.server {
                Some(server) => Ok((server.endpoint(), model)),
                None => Err(model_gone()),
            },
            (_, model) => self.connection().await?.map(|endpoint| (endpoint, model)),
        };
        Ok(endpoint.and_then(|(endpoint, model)| {
            let provider = Provider::new(endpoint, generator.worker.egress.clone(), generator.settings.deadlines);
            let provider = provider.map_err(|error| Failure::new(FailureCode::RuntimeFailed, error.to_string()))?;
            Ok(Maker::Remote(Box::new(Remote { provider, model, line: line(self.request) })))
        }))
    }

    /// The saved connection that the job is run with, its key opened. One that is gone is a credential that is refused.
    async fn connection(&self) -> Result<Result<Endpoint, Failure>, Error> {
        let refused = |why: &str| Err(Failure::new(FailureCode::ProviderAuthenticationFailed, why));
        let id = self.request.model.connection.as_deref().and_then(|id| Uuid::try_parse(id).ok());
        let Some(id) = id else { return Ok(refused("the model is run with no saved connection")) };
        let Generator { worker, keys, .. } = self.generator;
        let found = db::connections::credentials(&mut *worker.connection().await?, &self.job.account, id).await?;
        let Some(found) = found.filter(|found| found.provider == self.request.model.provider) else {
            return Ok(refused("the saved connection was removed"));
        };
        let key = match keys.open(&db::connections::context(id), &found.sealed_key) {
            Ok(key) => str::from_utf8(&key).ok().and_then(ApiKey::new),
            Err(error) => {
                tracing::error!(connection.id = %id, error = &error as &dyn std::error::Error, "the key of connection {id} cannot be opened");
                None
            }
        };
        let Some(key) = key else { return Ok(refused("the saved connection's key cannot be used")) };
        let base = match found.base_url.as_deref().map(providers::base_url).transpose() {
            Ok(base) => base,
            Err(error) => return Ok(Err(Failure::new(FailureCode::RuntimeFailed, error.to_string()))),
        };
        let managed = ManagedProtocol::default();
        Ok(Ok(Endpoint { kind: found.provider, managed, base, key: Some(key) }))
    }
}

/// Whose calls are counted together.
fn line(request: &ImageRequest) -> String {
    request.model.connection.clone().unwrap_or_else(|| request.model.provider.to_string())
}
