//! One run over the outputs of a job. Each output advances by one step, all of them concurrently.

use std::sync::Arc;
use std::time::Duration;

use db::jobs::outputs::{JobOutput, OutputState};
use domain::job::Failure;
use futures_util::future::{join, join_all};
use providers::{Calls, Entry, Incoming, MASK_BYTES_MAX, Media, Order};
use service::shares::Held;
use tokio::time::sleep;
use worker::Interrupt;
use worker::generation::{Backend, GenerationKind, ProviderDriver, RemoteBackend, SOON, Step, model_gone, order_bytes};

use super::Run;
use super::image::GeneratedImage;
use super::order::OrderImages;

/// Time until an output's next step; `None` when the output is terminal.
type Next = Result<Option<Duration>, Interrupt>;

impl GenerationKind for Run<'_> {
    type Output = GeneratedImage;
    const MEDIA: Media = Media::Image;
    /// Maximum size of a result. It is held in memory as a whole to be decoded.
    const RESULT_BYTES: u64 = domain::limits::UPLOAD_MAX;

    fn blank(&self, model: &Arc<Entry>, position: i32) -> Order {
        let images = self.request.references.iter().map(|reference| providers::OrderImage {
            bytes: bytes::Bytes::new(),
            media_type: "image/png",
            role: reference.role,
        });
        self.order(model, position, OrderImages { references: images.collect(), ..OrderImages::default() })
    }

    async fn take_in(&self, result: Incoming) -> Result<Result<GeneratedImage, Failure>, Interrupt> {
        match result.whole().await {
            Ok(artifact) => Ok(self.decoded(artifact).await?),
            Err(call_error) => Ok(Err(call_error.failure())),
        }
    }

    /// Images have no progress to report.
    async fn progress(&self, _: f64) {}
}

impl Run<'_> {
    /// Advances every output that is due. Returns when the next step of any of them is due.
    pub(super) async fn advance(&self, outputs: &[JobOutput]) -> Next {
        let open = outputs.iter().filter(|output| !output.state.is_terminal());
        let (due, later): (Vec<&JobOutput>, Vec<&JobOutput>) = open.partition(|output| output.due_in <= SOON);
        let mut next: Vec<Duration> = later.iter().map(|output| output.due_in).collect();
        if let Some(wait) = due.iter().map(|output| output.due_in).max() {
            sleep(wait).await;
            let steps = match self.task_run.backend().await? {
                Backend::Embedded(model) => {
                    let draw =
                        async |output| self.land(output, self.draw(&model, output).await, &self.request.prompt).await;
                    join_all(due.into_iter().map(draw)).await
                }
                Backend::Remote(remote) => self.ask(&remote, &due).await,
            };
            next.extend(outcome(steps)?);
        }
        Ok(next.into_iter().min())
    }

    /// Calls a provider: one common step for all submits, because they share the references, and one step for each other output.
    async fn ask(&self, remote: &RemoteBackend, due: &[&JobOutput]) -> Vec<Next> {
        let driver = ProviderDriver::new(&self.task_run, remote, self);
        let (submits, others): (Vec<&JobOutput>, Vec<&JobOutput>) =
            due.iter().partition(|output| driver.is_to_submit(output));
        let pursue = async |output| self.land(output, driver.pursue(output).await, &self.instruction()).await;
        let others = join_all(others.into_iter().map(pursue));
        let (mut steps, others) = join(self.submit(remote, &driver, &submits), others).await;
        steps.extend(others);
        steps
    }

    /// Submits each output once, as far as call slots are free. The references are loaded once,
    /// when there is memory for them and a slot is free.
    async fn submit(
        &self,
        remote: &RemoteBackend,
        driver: &ProviderDriver<'_, Self>,
        outputs: &[&JobOutput],
    ) -> Vec<Next> {
        if outputs.is_empty() {
            return Vec::new();
        }
        let prepared = async {
            let model = remote.model.as_ref().ok_or_else(model_gone)?;
            let assets = self.assets().await?;
            let mask = if self.request.mask.is_some() { MASK_BYTES_MAX as u64 } else { 0 };
            let files = assets.iter().map(|asset| asset.bytes.unsigned_abs()).sum::<u64>() + mask;
            let bytes = order_bytes(driver.capabilities(), files, outputs.len());
            let admitted = self.task_run.unless_canceled(self.task_run.generator.memory.order(bytes)).await?;
            let places = join_all(outputs.iter().map(|_| driver.enter())).await;
            let images = match places.iter().any(Option::is_some) {
                true => self.order_images(&assets, model, &remote.provider).await?,
                false => OrderImages::default(),
            };
            Ok((model, places, images, admitted))
        };
        let (model, places, images, _admitted) = match prepared.await {
            Ok(prepared) => prepared,
            Err(Interrupt::Failed { failure, .. }) => return self.fail_all(outputs, &failure).await,
            Err(interrupt) => return vec![Err(interrupt)],
        };
        let submit = async |output: &JobOutput, place: Option<Held>| {
            let Some(place) = place else { return Ok(Some(Calls::RETURN)) };
            let order = self.order(model, output.position, images.clone());
            self.land(output, driver.submit(output, &order, place).await, &self.instruction()).await
        };
        join_all(outputs.iter().zip(places).map(|(output, place)| submit(output, place))).await
    }

    /// Records the outcome of an output's step; `sent` is the prompt that was sent.
    async fn land(&self, output: &JobOutput, step: Result<Step<GeneratedImage>, Interrupt>, sent: &str) -> Next {
        match step {
            Ok(Step::Wait(after)) => Ok(Some(after)),
            Ok(Step::Finished(made, _admitted)) => self.keep(output, &made, sent).await.map(|()| None),
            Err(Interrupt::Failed { failure, orphan }) => {
                self.task_run.fail(output, &failure, orphan).await.map(|()| None)
            }
            Err(interrupt) => Err(interrupt),
        }
    }

    /// Fails outputs for one reason. If a submit may have been accepted, the result may exist at
    /// the provider.
    pub(super) async fn fail_all(&self, outputs: &[&JobOutput], failure: &Failure) -> Vec<Next> {
        let fail = async |output: &JobOutput| {
            self.task_run.fail(output, failure, output.state != OutputState::Ready).await.map(|()| None)
        };
        join_all(outputs.iter().map(|output| fail(output))).await
    }
}

/// When the next steps of the outputs are due, or why the run ends. A lost lease takes precedence,
/// then a cancellation, because it ends all outputs, then errors.
pub(super) fn outcome(steps: Vec<Next>) -> Result<Vec<Duration>, Interrupt> {
    let mut due = Vec::with_capacity(steps.len());
    let mut worst: Option<Interrupt> = None;
    for step in steps {
        match (step, &worst) {
            (Ok(step), _) => due.extend(step),
            (Err(Interrupt::Stale), _) => worst = Some(Interrupt::Stale),
            (Err(_), Some(Interrupt::Stale)) => {}
            (Err(Interrupt::Canceled), _) => worst = Some(Interrupt::Canceled),
            (Err(_), Some(_)) => {}
            (Err(interrupt), None) => worst = Some(interrupt),
        }
    }
    worst.map_or(Ok(due), Err)
}
