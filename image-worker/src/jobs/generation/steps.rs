//! What happens to the outputs of a job in one run: each goes one step further, all at once.

use std::sync::Arc;
use std::time::Duration;

use db::jobs::outputs::{JobOutput, OutputState};
use domain::job::Failure;
use futures_util::future::{join, join_all};
use providers::{Calls, Entry, Incoming, Media, Order};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;
use workshop::Stop;
use workshop::generation::{Craft, Drive, Maker, Remote, SOON, Step, model_gone, order_bytes};

use super::Run;
use super::keep::Made;

/// How long until an output's next step; `None` when it has ended.
type Next = Result<Option<Duration>, Stop>;

impl Craft for Run<'_> {
    type Made = Made;
    const MEDIA: Media = Media::Picture;
    /// What a result may have at most: it is held whole, to be decoded.
    const IN_HAND: u64 = domain::limits::UPLOAD_MAX;

    fn blank(&self, model: &Arc<Entry>, position: i32) -> Order {
        let pictures = self.request.references.iter().map(|reference| providers::Picture {
            bytes: bytes::Bytes::new(),
            media_type: "image/png",
            role: reference.role,
        });
        self.order(model, position, pictures.collect())
    }

    async fn take_in(&self, result: Incoming) -> Result<Result<Made, Failure>, Stop> {
        Ok(match result.whole().await {
            Ok(artifact) => self.decoded(artifact).await,
            Err(fault) => Err(fault.failure()),
        })
    }

    /// Nobody is told how far a picture is.
    async fn progress(&self, _: f64) {}
}

impl Run<'_> {
    /// Takes every output that is due a step further; when the next step of any is due.
    pub(super) async fn advance(&self, outputs: &[JobOutput]) -> Next {
        let open = outputs.iter().filter(|output| !output.state.is_terminal());
        let (due, later): (Vec<&JobOutput>, Vec<&JobOutput>) = open.partition(|output| output.due_in <= SOON);
        let mut next: Vec<Duration> = later.iter().map(|output| output.due_in).collect();
        if let Some(wait) = due.iter().map(|output| output.due_in).max() {
            sleep(wait).await;
            let steps = match self.turn.maker().await? {
                Maker::Embedded(model) => {
                    let draw =
                        async |output| self.land(output, self.draw(&model, output).await, &self.request.prompt).await;
                    join_all(due.into_iter().map(draw)).await
                }
                Maker::Remote(remote) => self.ask(&remote, &due).await,
            };
            next.extend(outcome(steps)?);
        }
        Ok(next.into_iter().min())
    }

    /// Asks a provider: for what is to be submitted, together, because the references are loaded once; and for everything
    /// else.
    async fn ask(&self, remote: &Remote, due: &[&JobOutput]) -> Vec<Next> {
        let drive = Drive::new(&self.turn, remote, self);
        let (submits, others): (Vec<&JobOutput>, Vec<&JobOutput>) =
            due.iter().partition(|output| drive.is_to_submit(output));
        let pursue = async |output| self.land(output, drive.pursue(output).await, &self.instruction()).await;
        let others = join_all(others.into_iter().map(pursue));
        let (mut steps, others) = join(self.submit(remote, &drive, &submits), others).await;
        steps.extend(others);
        steps
    }

    /// Submits outputs, each once, those whose calls have a place; their references are loaded once, as soon as there is memory
    /// for them and any has.
    async fn submit(&self, remote: &Remote, drive: &Drive<'_, Self>, outputs: &[&JobOutput]) -> Vec<Next> {
        if outputs.is_empty() {
            return Vec::new();
        }
        let prepared = async {
            let model = remote.model.as_ref().ok_or_else(model_gone)?;
            let assets = self.assets().await?;
            let files = assets.iter().map(|asset| asset.bytes.unsigned_abs()).sum();
            let bytes = order_bytes(drive.promises(), files, outputs.len());
            let admitted = self.turn.unless_canceled(self.turn.generator.in_hand.order(bytes)).await?;
            let places = join_all(outputs.iter().map(|_| drive.enter())).await;
            let pictures = match places.iter().any(Option::is_some) {
                true => self.pictures(&assets, drive.promises().picture_bytes_max).await?,
                false => Vec::new(),
            };
            Ok((model, places, pictures, admitted))
        };
        let (model, places, pictures, _admitted) = match prepared.await {
            Ok(prepared) => prepared,
            Err(Stop::Failed { failure, .. }) => return self.fail_all(outputs, &failure).await,
            Err(stop) => return vec![Err(stop)],
        };
        let submit = async |output: &JobOutput, place: Option<OwnedSemaphorePermit>| {
            let Some(place) = place else { return Ok(Some(Calls::RETURN)) };
            let order = self.order(model, output.position, pictures.clone());
            self.land(output, drive.submit(output, &order, place).await, &self.instruction()).await
        };
        join_all(outputs.iter().zip(places).map(|(output, place)| submit(output, place))).await
    }

    /// Puts on record what became of an output; `sent` is the prompt that it was made from.
    async fn land(&self, output: &JobOutput, step: Result<Step<Made>, Stop>, sent: &str) -> Next {
        match step {
            Ok(Step::Wait(after)) => Ok(Some(after)),
            Ok(Step::Made(made, _in_hand)) => self.keep(output, &made, sent).await.map(|()| None),
            Err(Stop::Failed { failure, orphan }) => self.turn.fail(output, &failure, orphan).await.map(|()| None),
            Err(stop) => Err(stop),
        }
    }

    /// Gives outputs up for one reason; what may have been submitted may have been made all the same.
    pub(super) async fn fail_all(&self, outputs: &[&JobOutput], failure: &Failure) -> Vec<Next> {
        let fail = async |output: &JobOutput| {
            self.turn.fail(output, failure, output.state != OutputState::Ready).await.map(|()| None)
        };
        join_all(outputs.iter().map(|output| fail(output))).await
    }
}

/// When outputs' next steps are due, or the reason why the run ends: a lost lease before everything, a cancel before trouble,
/// because it ends all.
pub(super) fn outcome(steps: Vec<Next>) -> Result<Vec<Duration>, Stop> {
    let mut due = Vec::with_capacity(steps.len());
    let mut worst: Option<Stop> = None;
    for step in steps {
        match (step, &worst) {
            (Ok(step), _) => due.extend(step),
            (Err(Stop::Stale), _) => worst = Some(Stop::Stale),
            (Err(_), Some(Stop::Stale)) => {}
            (Err(Stop::Canceled), _) => worst = Some(Stop::Canceled),
            (Err(_), Some(_)) => {}
            (Err(stop), None) => worst = Some(stop),
        }
    }
    worst.map_or(Ok(due), Err)
}
