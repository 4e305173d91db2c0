//! The texts of a run: made by the embedded runtime, or by a provider's model (docs/reference/recipes.md#text-steps).
//!
//! **Guarantee.** A provider is never called twice for one text, whatever crashes (docs/reliability.md#provider-submits): the
//! state `running` of a step ([`recipe::begin_text`]) is the record of its submit. A step that a worker finds in this state
//! has lost its previous worker and with it the outcome of the call. It fails, because no text protocol supports idempotency
//! keys. Texts of the embedded runtime cost nothing and are made again.
//!
//! **Mechanism.** Images are sent to models that accept them; for other models the prompt contains their names. The response is
//! the result, so that the call is awaited under the lease of the run's task; a cancel ends the wait. Only calls that were
//! certainly not accepted are repeated, a few times. A result is kept in memory through a short outage of the database: it is
//! paid for, and there is no other copy.

use app::recipe::{self, StepResult};
use domain::id::JobId;
use domain::job::{Failure, FailureCode, ReferenceInput, WorkOperation};
use domain::metadata::{Provenance, ProvenanceKind};
use domain::recipe::run::{RunFailure, text_value};
use embedded::text::write;
use providers::{Media, OrderImage, TextOrder};
use service::shares::Held;
use tokio::time::sleep;
use worker::generation::{
    Admitted, Backend, RemoteBackend, model_gone, note_orphan, order_bytes, retry_during_outage, unless_canceled,
};
use worker::image::{fitted, unusable};
use worker::{Error, Interrupt};

use super::{Step, caused};

/// A call to a provider, ready to be sent.
struct Prepared {
    order: TextOrder,
    /// Permit for the call.
    _place: Held,
    /// Memory for the images.
    _admitted: Option<Admitted>,
}

impl Step<'_> {
    /// Begins a text step and ends it with its text, or with a failure; `None` when its provider has no free call slot now.
    pub(super) async fn write(&self, at: usize) -> Result<Option<StepResult>, Error> {
        let backend = match self.generator.backend(&self.run.account, &self.run.plan.steps[at].model).await {
            // The error occurred before the step began, so nothing is lost.
            Err(Interrupt::Error(error)) => return Err(error),
            backend => backend,
        };
        let prepared = match &backend {
            Ok(Backend::Remote(remote)) => match self.prepared(at, remote).await {
                Ok(None) => return Ok(None),
                Err(Interrupt::Error(error)) => return Err(error),
                Err(Interrupt::Canceled | Interrupt::Stale) => return Ok(Some(StepResult::Stale)),
                prepared => prepared.transpose(),
            },
            _ => None,
        };
        if !self.lease.check() {
            return Ok(Some(StepResult::Stale));
        }
        let mut transaction = db::pool::begin(&self.worker.pool).await?;
        let begun = recipe::begin_text(&mut transaction, self.run.id, self.lease.token(), at).await?;
        if self.settle(transaction, begun).await? != StepResult::Done {
            return Ok(Some(begun));
        }
        // A text may take minutes, so its start is announced.
        self.worker.announce(&self.run.account, JobId(self.run.id.0), None).await;
        taskqueue::failpoint!("recipe.writing");
        let made = match (backend, prepared) {
            (Ok(Backend::Remote(remote)), Some(Ok(prepared))) => self.ask(&remote, &prepared.order).await,
            (Ok(_), Some(Err(interrupt))) | (Err(interrupt), _) => Err(interrupt),
            (Ok(_), _) => Ok(self.outline(at)),
        };
        match made {
            Ok(text) => self.end(at, Ok(text)).await.map(Some),
            Err(Interrupt::Failed { failure, orphan }) => {
                if orphan {
                    self.note_orphan(at);
                }
                self.end(at, Err(failure)).await.map(Some)
            }
            // The run is terminal, or the lease is lost: the next iteration finds out.
            Err(Interrupt::Canceled | Interrupt::Stale) => Ok(Some(StepResult::Stale)),
            Err(Interrupt::Error(error)) => Err(error),
        }
    }

    /// Ends a text step whose worker crashed during it.
    pub(super) async fn take_over(&self, at: usize) -> Result<StepResult, Error> {
        match self.generator.backend(&self.run.account, &self.run.plan.steps[at].model).await {
            Ok(Backend::Embedded(_)) => self.end(at, Ok(self.outline(at))).await,
            Err(Interrupt::Error(error)) => Err(error),
            Ok(Backend::Remote(_)) | Err(_) => {
                self.note_orphan(at);
                let lost = "the provider was asked for the text, and its answer was lost";
                self.end(at, Err(Failure::new(FailureCode::ProviderTimeout, lost))).await
            }
        }
    }

    /// The text of the embedded runtime.
    fn outline(&self, at: usize) -> String {
        let plan = &self.run.plan;
        write(&plan.steps[at].prompt, &plan.texts(at, &self.run.outputs))
    }

    /// Prepares a call: loads the images once there is memory for them and a call slot. `None` if
    /// no slot is free.
    async fn prepared(&self, at: usize, remote: &RemoteBackend) -> Result<Option<Prepared>, Interrupt> {
        let model = remote.model.clone().ok_or_else(model_gone)?;
        let references = self.run.plan.references(at, &self.run.outputs);
        let capabilities = remote.provider.capabilities(Media::Image);
        let (mut assets, mut bytes) = (Vec::new(), 0);
        for (handle, asset) in references.into_iter().take(model.references_max()) {
            let found = db::assets::get(&mut *self.worker.connection().await?, &asset).await?;
            let found = found.ok_or_else(|| unusable(&handle, "it is gone"))?;
            bytes += found.bytes.unsigned_abs();
            assets.push((handle, found));
        }
        let admitted = match assets.is_empty() {
            true => None,
            false => Some(
                unless_canceled(self.lease, self.generator.memory.order(order_bytes(&capabilities, bytes, 1))).await?,
            ),
        };
        let Some(place) = self.generator.calls.enter(&remote.line).await else { return Ok(None) };
        let mut images = Vec::with_capacity(assets.len());
        for (handle, asset) in assets {
            let refuse = |why: String| unusable(&handle, why);
            let file = self.worker.get(asset.blob_key).await?.ok_or_else(|| unusable(&handle, "it is gone"))?;
            let header = raster::probe(&file).map_err(|error| refuse(error.to_string()))?;
            let fitting = fitted(&self.worker.pixels, &self.run.account, file, &header, capabilities.image_bytes_max);
            let (bytes, format) = unless_canceled(self.lease, fitting).await??.map_err(refuse)?;
            images.push(OrderImage { bytes, media_type: format.media_type(), role: None });
        }
        let idempotency_key = format!("{}-{at}", self.run.id.0);
        let order = TextOrder { model, prompt: self.prompt(at), images, idempotency_key };
        Ok(Some(Prepared { order, _place: place, _admitted: admitted }))
    }

    /// The text of a provider.
    async fn ask(&self, remote: &RemoteBackend, order: &TextOrder) -> Result<String, Interrupt> {
        let settings = &self.generator.settings;
        let mut pauses = settings.pauses.iter();
        loop {
            let call_error = match unless_canceled(self.lease, remote.provider.write(order)).await? {
                Ok(text) => {
                    taskqueue::failpoint!("recipe.written");
                    return Ok(text);
                }
                Err(call_error) => call_error,
            };
            let pause = pauses.next().map(|pause| (*pause).max(call_error.retry_after.unwrap_or_default()));
            let is_worth_it = call_error.is_retryable() && !call_error.maybe_accepted;
            let Some(pause) = pause.filter(|pause| is_worth_it && *pause <= settings.wait_max) else {
                return Err(Interrupt::from(call_error.failure()).with_orphan(call_error.maybe_accepted));
            };
            unless_canceled(self.lease, sleep(pause)).await?;
            if !self.lease.check() {
                return Err(Interrupt::Stale);
            }
        }
    }

    /// Logs for the operator that a text may have been made, and charged, without a result.
    fn note_orphan(&self, at: usize) {
        note_orphan(self.run.plan.steps[at].model.provider, self.run.id, at, None);
    }

    /// Ends a text step, retrying during a short outage of the database.
    async fn end(&self, at: usize, made: Result<String, Failure>) -> Result<StepResult, Error> {
        let step = &self.run.plan.steps[at];
        let made = match made {
            Ok(text) => Ok((text_value(&text), self.provenance(at))),
            Err(cause) => Err(caused(&cause, &step.key)),
        };
        retry_during_outage(self.run.id, || self.try_to_end(at, &made)).await
    }

    async fn try_to_end(
        &self,
        at: usize,
        made: &Result<(String, Provenance), RunFailure>,
    ) -> Result<StepResult, Error> {
        let mut transaction = db::pool::begin(&self.worker.pool).await?;
        let (id, token) = (self.run.id, self.lease.token());
        let ended = recipe::end_text(&mut transaction, id, token, at, made).await?;
        self.settle(transaction, ended).await
    }

    /// The `provenance` of a text node.
    fn provenance(&self, at: usize) -> Provenance {
        let plan = &self.run.plan;
        let model = &plan.steps[at].model;
        let references = plan.references(at, &self.run.outputs).into_iter();
        Provenance {
            created_at: Some(service::clock::now().into()),
            model: Some(model.id.clone()),
            operation: Some(WorkOperation::Recipe),
            prompt: Some(self.prompt(at)),
            provider: Some(model.provider),
            references: references
                .map(|(handle, _)| ReferenceInput { handle: handle.to_string(), role: None })
                .collect(),
            run: Some(self.run.id.into()),
            stand_in: model.is_stand_in().then_some(true),
            ..Provenance::new(ProvenanceKind::Recipe)
        }
    }

    /// The prompt of a text step, as it is sent.
    fn prompt(&self, at: usize) -> String {
        let plan = &self.run.plan;
        plan.prompt(at, &self.run.outputs, self.prompt_max(&plan.steps[at].model))
    }
}
