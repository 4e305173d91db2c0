//! One run of a job's task: a step, or its end.

use std::sync::Arc;

use db::jobs::Film;
use db::jobs::outputs::{self, JobOutput, OutputState};
use domain::job::{Failure, FailureCode, Request, VideoRequest};
use providers::{Calls, Entry, Incoming, Media, Order, Shape};
use spine::{Decision, Lease, Task};
use tokio::time::sleep;
use workshop::generation::{Craft, Drive, Heard, Maker, Remote, SOON, Step, Turn, model_gone};
use workshop::{Error, Stop, TakenUp};

use super::Videos;
use super::keep::IN_HAND;
use super::pictures::{Pictures, Reader};
use super::watch::Watched;

/// One run of a job's task.
pub(super) struct Run<'a> {
    pub turn: Turn<'a>,
    pub request: &'a VideoRequest,
}

impl Videos {
    /// Takes the task's job a step further.
    pub(super) async fn step(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let heard = match self.watch.look(&self.generator, task, lease).await {
            Watched::Over(decision) => return Ok(decision),
            Watched::Heard(heard) => Some(heard),
            Watched::Otherwise => None,
        };
        let TakenUp { job, outputs } = match self.generator.worker.take_up(task, lease).await? {
            Ok(taken_up) => taken_up,
            Err(decision) => return Ok(decision),
        };
        let Request::Video(request) = &job.request else { return Err(Error::WrongQueue(task.kind)) };
        let Some(output) = outputs.first() else { return Ok(Decision::Stale) };
        let turn = Turn { generator: &self.generator, job: &job, model: &request.model, lease };
        let run = Run { turn, request };
        let advanced = if run.turn.is_canceled() { Err(Stop::Canceled) } else { run.advance(output, heard).await };
        match advanced {
            Ok(Step::Wait(_)) if run.turn.is_canceled() => run.cancel(task).await,
            Ok(Step::Wait(after)) => Ok(Decision::Later { after }),
            Ok(Step::Made(film, _in_hand)) => run.finish(task, &film).await,
            Err(Stop::Failed { failure, orphan }) => run.fail(task, output, failure, orphan).await,
            Err(Stop::Canceled) => run.cancel(task).await,
            Err(Stop::Stale) => Ok(Decision::Stale),
            Err(Stop::Error(error)) => Err(error),
        }
    }
}

impl Craft for Run<'_> {
    type Made = Film;
    const MEDIA: Media = Media::Video;
    const IN_HAND: u64 = IN_HAND;

    fn blank(&self, model: &Arc<Entry>, _: i32) -> Order {
        self.order(model, self.blank_pictures())
    }

    async fn take_in(&self, result: Incoming) -> Result<Result<Film, Failure>, Stop> {
        self.keep(result).await
    }

    /// Nothing hangs on it, so that a failure is only told.
    async fn progress(&self, share: f64) {
        let (worker, id) = (&self.turn.generator.worker, self.turn.job.id);
        let noted = async {
            let mut connection = worker.connection().await?;
            let token = self.turn.lease.token();
            Ok::<_, Error>(db::jobs::note_progress(&mut connection, id, token, share * 100.0).await?)
        };
        match noted.await {
            Ok(true) => worker.announce(id).await,
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, job.id = %id, "the progress of {id} is not noted");
            }
        }
    }
}

impl Run<'_> {
    /// The next step of the video, when it is due; `heard`: what a look at its provider's run told just now.
    async fn advance(&self, output: &JobOutput, heard: Option<Heard>) -> Result<Step<Film>, Stop> {
        if output.state.is_terminal() {
            let failure = output.failure.clone();
            return Err(failure.unwrap_or_else(|| Failure::new(FailureCode::RuntimeFailed, "it was given up")).into());
        }
        let heard = heard.filter(|_| output.state == OutputState::Submitted);
        if heard.is_none() {
            if output.due_in > SOON {
                return Ok(Step::Wait(output.due_in));
            }
            sleep(output.due_in).await;
        }
        let may_be_there = output.state != OutputState::Ready;
        match self.turn.maker().await.map_err(|stop| stop.with_orphan(may_be_there))? {
            Maker::Embedded(model) => self.film(&model).await,
            Maker::Remote(remote) => {
                let drive = Drive::new(&self.turn, &remote, self);
                match heard {
                    Some(heard) => drive.heed(output, heard).await,
                    None if drive.is_to_submit(output) => self.submit(&remote, &drive, output).await,
                    None => drive.pursue(output).await,
                }
            }
        }
    }

    /// Submits the video, its pictures loaded as soon as there are memory for them and a place for the call.
    async fn submit(&self, remote: &Remote, drive: &Drive<'_, Self>, output: &JobOutput) -> Result<Step<Film>, Stop> {
        let prepared = async {
            let model = remote.model.as_ref().ok_or_else(model_gone)?;
            let pictures = self.pictures(Reader::Provider(*drive.promises()), drive.enter()).await?;
            Ok(pictures.map(|(mut pictures, place)| {
                let admitted = pictures.admitted.take();
                (self.order(model, pictures), place, admitted)
            }))
        };
        let prepared: Result<_, Stop> = prepared.await;
        let prepared = prepared.map_err(|stop| stop.with_orphan(output.state != OutputState::Ready))?;
        let Some((order, place, _admitted)) = prepared else { return Ok(Step::Wait(Calls::RETURN)) };
        drive.submit(output, &order, place).await
    }

    /// Ends a job that somebody asked to stop.
    async fn cancel(&self, task: &Task) -> Result<Decision, Error> {
        let mut connection = self.turn.generator.worker.connection().await?;
        let outputs = outputs::list(&mut connection, self.turn.job.id).await?;
        drop(connection);
        self.turn.cancel(task, &outputs).await
    }

    /// The order of the video, the same in every attempt but for the bytes of its pictures.
    pub(super) fn order(&self, model: &Arc<Entry>, pictures: Pictures) -> Order {
        let request = self.request;
        Order {
            model: model.clone(),
            capability: request.capability,
            prompt: request.prompt.clone(),
            references: pictures.references,
            shape: Shape::Video {
                first_frame: pictures.first,
                last_frame: pictures.last,
                duration_seconds: request.duration_seconds,
                aspect_ratio: request.aspect_ratio.clone(),
                resolution: request.resolution.clone(),
                generate_audio: request.generate_audio,
            },
            idempotency_key: format!("{}-0", self.turn.job.id.0),
        }
    }
}
