//! One run of a job's task: a step, or its end.

use std::sync::Arc;

use app::job::VideoOutput;
use db::jobs::outputs::{self, JobOutput, OutputState};
use domain::job::{Failure, FailureCode, Request, VideoRequest};
use providers::{Calls, Entry, Incoming, Media, Order, Shape};
use taskqueue::{Decision, Lease, Task};
use tokio::time::sleep;
use worker::generation::{
    Backend, GenerationKind, Heard, ProviderDriver, RemoteBackend, SOON, Step, TaskRun, model_gone,
};
use worker::{Error, Interrupt, TakenUp};

use super::Videos;
use super::images::{Images, Reader};
use super::keep::RESULT_BYTES;
use super::watch::Watched;

/// A run of a job's task.
pub(super) struct Run<'a> {
    pub task_run: TaskRun<'a>,
    pub request: &'a VideoRequest,
}

impl Videos {
    /// Advances the task's job by one step.
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
        let task_run = TaskRun { generator: &self.generator, job: &job, model: &request.model, lease };
        let run = Run { task_run, request };
        let advanced =
            if run.task_run.is_canceled() { Err(Interrupt::Canceled) } else { run.advance(output, heard).await };
        match advanced {
            Ok(Step::Wait(_)) if run.task_run.is_canceled() => run.cancel(task).await,
            Ok(Step::Wait(after)) => Ok(Decision::Snooze { after }),
            Ok(Step::Finished(video, _admitted)) => run.finish(task, video).await,
            Err(Interrupt::Failed { failure, orphan }) => run.fail(task, output, failure, orphan).await,
            Err(Interrupt::Canceled) => run.cancel(task).await,
            Err(Interrupt::Stale) => Ok(Decision::Stale),
            Err(Interrupt::Error(error)) => Err(error),
        }
    }
}

impl GenerationKind for Run<'_> {
    type Output = VideoOutput;
    const MEDIA: Media = Media::Video;
    const RESULT_BYTES: u64 = RESULT_BYTES;

    fn blank(&self, model: &Arc<Entry>, _: i32) -> Order {
        self.order(model, self.blank_images())
    }

    async fn take_in(&self, result: Incoming) -> Result<Result<VideoOutput, Failure>, Interrupt> {
        self.keep(result).await
    }

    /// Stores and announces the progress of the job. A failure is only logged, because nothing
    /// depends on the progress.
    async fn progress(&self, share: f64) {
        let (worker, job) = (&self.task_run.generator.worker, self.task_run.job);
        let noted = async {
            let mut connection = worker.connection().await?;
            let token = self.task_run.lease.token();
            Ok::<_, Error>(db::jobs::note_progress(&mut connection, job.id, token, share * 100.0).await?)
        };
        match noted.await {
            Ok(true) => worker.announce(&job.account, job.id, None).await,
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, job.id = %job.id, "cannot store the progress of job {}", job.id);
            }
        }
    }
}

impl Run<'_> {
    /// Takes the next step of the video if it is due. `heard` is the result of a poll that was made
    /// just before.
    async fn advance(&self, output: &JobOutput, heard: Option<Heard>) -> Result<Step<VideoOutput>, Interrupt> {
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
        match self.task_run.backend().await.map_err(|stop| stop.with_orphan(may_be_there))? {
            // On the heap: without optimization, each future around these keeps several copies on the stack.
            Backend::Embedded(model) => Box::pin(self.render(&model)).await,
            Backend::Remote(remote) => {
                let driver = ProviderDriver::new(&self.task_run, &remote, self);
                match heard {
                    Some(heard) => Box::pin(driver.heed(output, heard)).await,
                    None if driver.is_to_submit(output) => Box::pin(self.submit(&remote, &driver, output)).await,
                    None => Box::pin(driver.pursue(output)).await,
                }
            }
        }
    }

    /// Submits the video, with its images loaded as soon as there is memory and a call slot.
    async fn submit(
        &self,
        remote: &RemoteBackend,
        driver: &ProviderDriver<'_, Self>,
        output: &JobOutput,
    ) -> Result<Step<VideoOutput>, Interrupt> {
        let prepared = async {
            let model = remote.model.as_ref().ok_or_else(model_gone)?;
            let images = self.images(Reader::Provider(*driver.capabilities()), driver.enter()).await?;
            Ok(images.map(|(mut images, place)| {
                let admitted = images.admitted.take();
                (self.order(model, images), place, admitted)
            }))
        };
        let prepared: Result<_, Interrupt> = prepared.await;
        let prepared = prepared.map_err(|stop| stop.with_orphan(output.state != OutputState::Ready))?;
        let Some((order, place, _admitted)) = prepared else { return Ok(Step::Wait(Calls::RETURN)) };
        driver.submit(output, &order, place).await
    }

    /// Ends a job with a cancel request.
    async fn cancel(&self, task: &Task) -> Result<Decision, Error> {
        let mut connection = self.task_run.generator.worker.connection().await?;
        let outputs = outputs::list(&mut connection, self.task_run.job.id).await?;
        drop(connection);
        self.task_run.cancel(task, &outputs).await
    }

    /// The order of the video, the same in every attempt apart from the bytes of its images.
    pub(super) fn order(&self, model: &Arc<Entry>, images: Images) -> Order {
        let request = self.request;
        Order {
            model: model.clone(),
            capability: request.capability,
            prompt: request.prompt.clone(),
            references: images.references,
            mask: None,
            shape: Shape::Video {
                first_frame: images.first,
                last_frame: images.last,
                duration_seconds: request.duration_seconds,
                aspect_ratio: request.aspect_ratio.clone(),
                resolution: request.resolution.clone(),
                generate_audio: request.generate_audio,
            },
            idempotency_key: format!("{}-0", self.task_run.job.id.0),
        }
    }
}
