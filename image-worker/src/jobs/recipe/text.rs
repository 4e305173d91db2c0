//! The texts of a run: made by the embedded runtime, or by a provider's model (decisions 12.3, 13.6).
//!
//! **Guarantee.** A provider is never asked twice for one text, whatever crashes (decisions 9.8): that a step is `running`
//! ([`recipe_runs::begin_text`]) is the record of its submit. One that is found so has lost its worker, and the outcome of its
//! call with it: it fails, because no protocol for texts honours an idempotency key. What the embedded runtime makes costs
//! nothing and is simply made again.
//!
//! **Mechanism.** The pictures that a text is made from go along to the models that take them (decisions 13.4); of the others the
//! prompt has the names. The answer is the result, so that a call is waited for under the lease of the run's task; a cancel ends the
//! wait. Only what was surely not accepted is asked for again, a few times. What came is kept through a short outage of the
//! database: it is paid for, and nowhere else.

use db::recipe_runs::{self, Stepped};
use domain::id::JobId;
use domain::job::{Failure, FailureCode};
use domain::recipe::Held;
use domain::recipe::run::{RunFailure, text_value};
use providers::{Media, Picture, TextOrder};
use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;
use workshop::generation::{Admitted, Maker, Remote, model_gone, note_orphan, order_bytes, patiently, unless_canceled};
use workshop::picture::{fitted, unusable};
use workshop::{Error, Stop};

use super::{Step, caused};
use crate::outline::outline;

/// What a provider is about to be asked for.
struct Prepared {
    order: TextOrder,
    /// For the call.
    _place: OwnedSemaphorePermit,
    /// For the pictures.
    _admitted: Option<Admitted>,
}

impl Step<'_> {
    /// Begins a text step and ends it with its text, or with why there is none; nothing when its provider has no place for a
    /// call now.
    pub(super) async fn write(&self, at: usize) -> Result<Option<Stepped>, Error> {
        let maker = match self.generator.maker(&self.run.account, &self.run.plan.steps[at].model).await {
            // Before the step begins: nothing is lost.
            Err(Stop::Error(error)) => return Err(error),
            maker => maker,
        };
        let prepared = match &maker {
            Ok(Maker::Remote(remote)) => match self.prepared(at, remote).await {
                Ok(None) => return Ok(None),
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Canceled | Stop::Stale) => return Ok(Some(Stepped::Stale)),
                prepared => prepared.transpose(),
            },
            _ => None,
        };
        if !self.lease.check() {
            return Ok(Some(Stepped::Stale));
        }
        let mut transaction = db::pool::begin(&self.worker.pool).await?;
        let begun = recipe_runs::begin_text(&mut transaction, self.run.id, self.lease.token(), at).await?;
        if self.settle(transaction, begun).await? != Stepped::Done {
            return Ok(Some(begun));
        }
        // A text may take minutes: that it is being written is news by itself.
        self.worker.announce(JobId(self.run.id.0)).await;
        spine::failpoint!("recipe.writing");
        let made = match (maker, prepared) {
            (Ok(Maker::Remote(remote)), Some(Ok(prepared))) => self.ask(&remote, &prepared.order).await,
            (Ok(_), Some(Err(stop))) | (Err(stop), _) => Err(stop),
            (Ok(_), _) => Ok(self.outline(at)),
        };
        match made {
            Ok(text) => self.end(at, Ok(text)).await.map(Some),
            Err(Stop::Failed { failure, orphan }) => {
                if orphan {
                    self.note_orphan(at);
                }
                self.end(at, Err(failure)).await.map(Some)
            }
            // The run is over, or another worker's: the next turn finds out.
            Err(Stop::Canceled | Stop::Stale) => Ok(Some(Stepped::Stale)),
            Err(Stop::Error(error)) => Err(error),
        }
    }

    /// Ends a text step whose worker died over it.
    pub(super) async fn take_over(&self, at: usize) -> Result<Stepped, Error> {
        match self.generator.maker(&self.run.account, &self.run.plan.steps[at].model).await {
            Ok(Maker::Embedded(_)) => self.end(at, Ok(self.outline(at))).await,
            Err(Stop::Error(error)) => Err(error),
            Ok(Maker::Remote(_)) | Err(_) => {
                self.note_orphan(at);
                let lost = "the provider was asked for the text, and its answer was lost";
                self.end(at, Err(Failure::new(FailureCode::ProviderTimeout, lost))).await
            }
        }
    }

    /// The text of the embedded runtime.
    fn outline(&self, at: usize) -> String {
        outline(&self.prompt(at), &self.texts(at))
    }

    /// What a provider is asked for, its pictures loaded as soon as there are memory for them and a place for the call; nothing when
    /// there is no place now.
    async fn prepared(&self, at: usize, remote: &Remote) -> Result<Option<Prepared>, Stop> {
        let model = remote.model.clone().ok_or_else(model_gone)?;
        let references = self.run.plan.references(at, &self.run.outputs);
        let promises = remote.provider.promises(Media::Picture);
        let (mut assets, mut bytes) = (Vec::new(), 0);
        for (handle, asset) in references.into_iter().take(model.references_max()) {
            let found = db::assets::get(&mut *self.worker.connection().await?, &asset).await?;
            let found = found.ok_or_else(|| unusable(&handle, "it is gone"))?;
            bytes += found.bytes.unsigned_abs();
            assets.push((handle, found));
        }
        let admitted = match assets.is_empty() {
            true => None,
            false => {
                Some(unless_canceled(self.lease, self.generator.in_hand.order(order_bytes(&promises, bytes, 1))).await?)
            }
        };
        let Some(place) = self.generator.calls.enter(&remote.line).await else { return Ok(None) };
        let mut pictures = Vec::with_capacity(assets.len());
        for (handle, asset) in assets {
            let refuse = |why: String| unusable(&handle, why);
            let file = self.worker.get(asset.blob_key).await?.ok_or_else(|| unusable(&handle, "it is gone"))?;
            let header = raster::probe(&file).map_err(|error| refuse(error.to_string()))?;
            let fitting = fitted(&self.worker.pixels, file, &header, promises.picture_bytes_max);
            let (bytes, format) = unless_canceled(self.lease, fitting).await??.map_err(refuse)?;
            pictures.push(Picture { bytes, media_type: format.media_type(), role: None });
        }
        let idempotency_key = format!("{}-{at}", self.run.id.0);
        let order = TextOrder { model, prompt: self.prompt(at), pictures, idempotency_key };
        Ok(Some(Prepared { order, _place: place, _admitted: admitted }))
    }

    /// The text of a provider.
    async fn ask(&self, remote: &Remote, order: &TextOrder) -> Result<String, Stop> {
        let settings = &self.generator.settings;
        let mut pauses = settings.pauses.iter();
        loop {
            let fault = match unless_canceled(self.lease, remote.provider.write(order)).await? {
                Ok(text) => {
                    spine::failpoint!("recipe.written");
                    return Ok(text);
                }
                Err(fault) => fault,
            };
            let pause = pauses.next().map(|pause| (*pause).max(fault.retry_after.unwrap_or_default()));
            let is_worth_it = fault.is_retryable() && !fault.maybe_accepted;
            let Some(pause) = pause.filter(|pause| is_worth_it && *pause <= settings.wait_max) else {
                return Err(Stop::from(fault.failure()).with_orphan(fault.maybe_accepted));
            };
            unless_canceled(self.lease, sleep(pause)).await?;
            if !self.lease.check() {
                return Err(Stop::Stale);
            }
        }
    }

    /// Tells the operator of a text that may have been made, and charged, for nothing.
    fn note_orphan(&self, at: usize) {
        note_orphan(self.run.plan.steps[at].model.provider, self.run.id, at, None);
    }

    /// Ends a text step, also when the database is away for a while.
    async fn end(&self, at: usize, made: Result<String, Failure>) -> Result<Stepped, Error> {
        let step = &self.run.plan.steps[at];
        let made = match made {
            Ok(text) => Ok((text_value(&text), self.provenance(at))),
            Err(cause) => Err(caused(&cause, &step.key)),
        };
        patiently(self.run.id, || self.try_to_end(at, &made)).await
    }

    async fn try_to_end(
        &self,
        at: usize,
        made: &Result<(String, Map<String, Value>), RunFailure>,
    ) -> Result<Stepped, Error> {
        let revision = service::random::revision();
        let mut transaction = db::pool::begin(&self.worker.pool).await?;
        let (id, token) = (self.run.id, self.lease.token());
        let ended = recipe_runs::end_text(&mut transaction, id, token, at, made, &revision).await?;
        self.settle(transaction, ended).await
    }

    /// What a text's node says of where it comes from.
    fn provenance(&self, at: usize) -> Map<String, Value> {
        let plan = &self.run.plan;
        let model = &plan.steps[at].model;
        let references: Vec<Value> =
            plan.references(at, &self.run.outputs).iter().map(|(handle, _)| json!({"handle": handle})).collect();
        let provenance = json!({
            "kind": "recipe",
            "run": self.run.id.handle(),
            "operation": "recipe",
            "provider": model.provider,
            "model": model.id,
            "prompt": self.prompt(at),
            "references": references,
            "elements": [],
            "createdAt": domain::Timestamp::from(service::clock::now()),
        });
        let Value::Object(provenance) = provenance else { unreachable!("the literal above is an object") };
        provenance
    }

    /// The prompt of a text step, as it is sent.
    fn prompt(&self, at: usize) -> String {
        let plan = &self.run.plan;
        plan.prompt(at, &self.run.outputs, self.prompt_max(&plan.steps[at].model))
    }

    /// The texts that a step is made from, each with its label.
    fn texts(&self, at: usize) -> Vec<(&str, &str)> {
        let plan = &self.run.plan;
        let text = |key: &String| {
            if let Some(input) = plan.inputs.iter().find(|input| input.key == *key) {
                return match &input.held {
                    Held::Text(text) => Some((input.label.as_str(), text.as_str())),
                    Held::Asset(_) => None,
                };
            }
            let (step, output) = plan.steps.iter().zip(&self.run.outputs).find(|(step, _)| step.key == *key)?;
            Some((step.label.as_str(), output.value.as_deref()?))
        };
        plan.steps[at].input_keys.iter().filter_map(text).collect()
    }
}
