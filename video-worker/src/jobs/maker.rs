//! Who makes a job's video: the embedded runtime, the operator's server, or a third party under a saved connection.

use std::sync::Arc;

use domain::job::{Failure, FailureCode};
use domain::model::ProviderKind;
use providers::catalogue::Runtime;
use providers::{ApiKey, Endpoint, Entry, ManagedProtocol, Provider};
use uuid::Uuid;

use super::run::{Run, Stop};

/// Who makes the video.
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
    /// The model; `None` when it is gone: a run that there is can still be followed.
    pub model: Option<Arc<Entry>>,
    /// Whose calls are counted together.
    pub line: String,
}

/// What fails a video of a model that this service does not run (any more).
pub(super) fn model_gone() -> Failure {
    Failure::new(FailureCode::ProviderRejected, "the model is not offered any more")
}

impl Run<'_> {
    /// Who makes this job's video. Decided anew in every run, so that a connection that was removed takes effect at once.
    pub(super) async fn maker(&self) -> Result<Maker, Stop> {
        let (worker, chosen) = (self.worker, &self.request.model);
        let model = worker.setup.models(chosen.provider).find(|entry| entry.id == chosen.id).cloned();
        let endpoint = match (chosen.provider, &model) {
            (ProviderKind::Managed, Some(model)) if model.runtime == Runtime::Embedded => {
                return Ok(Maker::Embedded(model.clone()));
            }
            (ProviderKind::Managed, _) => match &worker.setup.server {
                Some(server) => server.endpoint(),
                None => return Err(model_gone().into()),
            },
            _ => self.connection().await?,
        };
        let provider = Provider::new(endpoint, worker.egress.clone(), worker.settings.deadlines);
        let provider = provider.map_err(|error| Failure::new(FailureCode::RuntimeFailed, error.to_string()))?;
        let line = chosen.connection.clone().unwrap_or_else(|| chosen.provider.to_string());
        Ok(Maker::Remote(Box::new(Remote { provider, model, line })))
    }

    /// The saved connection that the job is run with, its key opened. One that is gone is a credential that is refused.
    async fn connection(&self) -> Result<Endpoint, Stop> {
        let refused = |why: &str| Failure::new(FailureCode::ProviderAuthenticationFailed, why);
        let id = self.request.model.connection.as_deref().and_then(|id| Uuid::try_parse(id).ok());
        let id = id.ok_or_else(|| refused("the model is run with no saved connection"))?;
        let worker = self.worker;
        let found = db::connections::credentials(&mut *worker.connection().await?, &self.job.account, id).await?;
        let found = found
            .filter(|found| found.provider == self.request.model.provider)
            .ok_or_else(|| refused("the saved connection was removed"))?;
        let key = match worker.keys.open(&db::connections::context(id), &found.sealed_key) {
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
