//! A Recipe run: its steps, one after the other, and its completion
//! (docs/reference/recipes.md#steps).
//!
//! **Guarantee.** Whatever crashes, each step takes effect once: it begins and ends in transactions
//! that are fenced by the lease and by the delegation ([`db::recipe_runs`]). A canceled run is not
//! changed.
//!
//! **Mechanism.** Each iteration reads the run again, asks the plan for the next step and takes it.
//! A text is made in this process, by the embedded runtime or by a provider ([`text`]). An image
//! is made by a separate job in another queue. While that job is active, the run's task is
//! rescheduled, so runs that wait for images occupy no slots. The transaction that completes the
//! job makes the task ready ([`db::tasks::make_ready`]), so that the next step follows at once. A
//! revocation makes no task ready. Instead, a run checks its delegation each time before it waits.
//! If the delegation is no longer valid, the run fails, and the job that it waits for is canceled.
//! If a transaction conflicts with another one, the next iteration repeats it.

mod text;

use std::time::Duration;

use app::recipe::{self, ImageStep, RunCompletion, StepResult};
use db::recipe_runs;
use domain::id::JobId;
use domain::job::{
    ChosenModel, Failure, FailureCode, ImageRequest, JobOperation, JobStatus, Record, Reference, Request,
};
use domain::limits::PROMPT_MAX;
use domain::message::{Queue, ReadyTasks, TaskKind};
use domain::recipe::OutputKind;
use domain::recipe::run::{Next, RunFailure, RunFailureCode, RunId, RunRecord};
use embedded::text::caption;
use providers::Calls;
use taskqueue::{Decision, Handler, HandlerResult, Lease, Task};
use tokio::time::Instant;
use worker::generation::Generator;
use worker::{Error, Worker, wait_out};

use super::ExecutionError;

/// The interval at which a waiting run checks its job, although the job's completion makes its task ready. The
/// check detects a revoked delegation, and a job that was completed by a process of the previous
/// version, which did not make the task ready.
const LOOK: Duration = Duration::from_secs(15);
/// The pause of a run that has used its share of a slot.
const BREATHER: Duration = Duration::from_millis(500);
/// Maximum number of iterations in one run of the task: every output begins and ends, and a few
/// iterations are lost to conflicts.
const ITERATIONS_MAX: usize = 4 * domain::limits::RECIPE_OUTPUTS_MAX;
/// The time for which one run of the task takes steps. Together with the longest text it stays within
/// [`RUN_LIMIT`](worker::generation::RUN_LIMIT). A task that is stopped at that limit would lose
/// a text that is paid for.
const STRETCH: Duration = Duration::from_secs(60);

/// The task handler for Recipe runs.
#[derive(Clone)]
pub struct Recipes(pub Generator);

impl Handler for Recipes {
    async fn run(&self, task: &Task, lease: &Lease) -> HandlerResult {
        let outcome = match task.kind {
            TaskKind::Recipe => run(&self.0, task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> HandlerResult {
        let worker = &self.0.worker;
        let outcome = match task.kind {
            TaskKind::Recipe => exhausted(worker, task, lease).await,
            // A kind that belongs in another queue: this process knows nothing that waits for it,
            // and its record needs an operator.
            _ => worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}

enum IterationOutcome {
    /// The next iteration can follow.
    On,
    /// The job of an image is active, or a text waits for a call slot. Continue after this time,
    /// or earlier if the task is made ready.
    Wait(Duration),
    /// The task is finished.
    Over(Decision),
}

/// Advances the run of a task as far as possible without waiting.
async fn run(generator: &Generator, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let begun = Instant::now();
    for _ in 0..ITERATIONS_MAX {
        if !lease.check() {
            return Ok(Decision::Stale);
        }
        if begun.elapsed() > STRETCH {
            break;
        }
        match iterate(generator, task, lease).await {
            Ok(IterationOutcome::On) => {}
            Ok(IterationOutcome::Wait(after)) => return Ok(Decision::Snooze { after }),
            Ok(IterationOutcome::Over(decision)) => return Ok(decision),
            Err(Error::Database(error)) if error.is_transient() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Decision::Snooze { after: BREATHER })
}

/// Completes the Recipe run of a task whose runs crashed or failed too often.
async fn exhausted(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let failure = failure(RunFailureCode::StepFailed, "the work failed again and again and was given up", true);
    match end(worker, task, lease, &RunCompletion::Failed(failure.clone())).await {
        Ok(Some(decision)) => Ok(decision),
        Ok(None) => worker.settle(task, lease).await,
        Err(Error::Database(error)) if error.is_unreadable() => {
            let id = RunId(task.id);
            tracing::error!(error = &error as &dyn std::error::Error, run.id = %id, "cannot read the record of run {id}");
            abandon(worker, task, lease, failure).await
        }
        Err(error) => Err(error),
    }
}

/// Completes a run whose stored record cannot be read, so that no other way is possible.
async fn abandon(worker: &Worker, task: &Task, lease: &Lease, failure: RunFailure) -> Result<Decision, Error> {
    let code = failure.code.as_str();
    let ready = ReadyTasks::new();
    let context = worker.completion_context(None, &ready);
    let mut transaction = db::pool::begin(&worker.pool).await?;
    let abandoned = recipe::abandon(&mut transaction, RunId(task.id), lease.token(), failure, &context).await?;
    let Some(run) = abandoned else { return Ok(Decision::Stale) };
    db::pool::commit(transaction).await?;
    worker.waker.wake_all(&ready);
    worker.announce(&run.delegation.account, JobId(task.id), run.canvas.as_ref()).await;
    Ok(Decision::Fail { code })
}

async fn iterate(generator: &Generator, task: &Task, lease: &Lease) -> Result<IterationOutcome, Error> {
    let worker = &generator.worker;
    let id = RunId(task.id);
    let begun = recipe_runs::begin(&mut *worker.connection().await?, id, lease.token()).await?;
    let Some((run, is_news)) = begun.filter(|(run, _)| !run.status.is_terminal()) else {
        return Ok(IterationOutcome::Over(worker.settle(task, lease).await?));
    };
    if is_news {
        worker.announce(&run.account, JobId(id.0), None).await;
    }
    let step = Step { generator, worker, task, lease, run: &run };
    let stepped = match run.plan.next(&run.outputs) {
        Next::Begin(at) => step.begin(at).await?.ok_or(Calls::RETURN),
        Next::Cancel(at) => Ok(step.cancel(at).await?),
        Next::Follow(at) => step.follow(at).await?.ok_or(LOOK),
        Next::End => return over(worker, task, lease, &RunCompletion::Finished).await,
    };
    let stepped = match stepped {
        Ok(stepped) => stepped,
        Err(after) => match recipe_runs::is_delegated(&mut *worker.connection().await?, id).await? {
            true => return Ok(IterationOutcome::Wait(after)),
            false => StepResult::Revoked,
        },
    };
    match stepped {
        StepResult::Done => {
            taskqueue::failpoint!("recipe.stepped");
            worker.announce(&run.account, JobId(id.0), Some(&run.canvas)).await;
            Ok(IterationOutcome::On)
        }
        // The run is terminal, or the lease is lost: the next iteration finds out.
        StepResult::Stale => Ok(IterationOutcome::On),
        // The completion is logged, whatever the outcome.
        StepResult::Revoked => over(worker, task, lease, &RunCompletion::Revoked).await,
    }
}

async fn over(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    completion: &RunCompletion,
) -> Result<IterationOutcome, Error> {
    Ok(end(worker, task, lease, completion).await?.map_or(IterationOutcome::On, IterationOutcome::Over))
}

/// Completes the run and notifies waiters. `None` if it is already terminal or the lease is lost.
async fn end(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    completion: &RunCompletion,
) -> Result<Option<Decision>, Error> {
    let id = RunId(task.id);
    let traceparent = task.trace.to_string();
    let ready = ReadyTasks::new();
    let context = worker.completion_context(Some(&traceparent), &ready);
    let mut transaction = db::pool::begin(&worker.pool).await?;
    let ended = recipe::complete(&mut transaction, id, lease.token(), completion, &context).await?;
    let Some(run) = ended else { return Ok(None) };
    db::pool::commit(transaction).await?;
    worker.waker.wake_all(&ready);
    worker.cache.notify(run.channels()).await;
    let status = run.status.as_str();
    metrics::counter!("canvas_recipe_runs_total", "status" => status).increment(1);
    tracing::info!(run.id = %id, recipe = %run.recipe, status, "run {id} {status}");
    Ok(Some(match &run.failure {
        Some(failure) => Decision::Fail { code: failure.code.as_str() },
        None => Decision::Done,
    }))
}

/// One step of a run under a lease.
struct Step<'a> {
    generator: &'a Generator,
    worker: &'a Worker,
    task: &'a Task,
    lease: &'a Lease,
    run: &'a RunRecord,
}

impl Step<'_> {
    /// Begins a step, and for a text also ends it; `None` when it cannot begin now.
    async fn begin(&self, at: usize) -> Result<Option<StepResult>, Error> {
        match self.run.plan.steps[at].kind {
            OutputKind::Image => self.order(at).await.map(Some),
            OutputKind::Text => self.write(at).await,
        }
    }

    /// The outcome of a step that has begun; `None` while its job is active.
    async fn follow(&self, at: usize) -> Result<Option<StepResult>, Error> {
        if self.run.plan.steps[at].kind == OutputKind::Text {
            return self.take_over(at).await.map(Some);
        }
        let mut connection = self.worker.connection().await?;
        let job = match self.run.outputs[at].job {
            Some(job) => db::jobs::get(&mut connection, job, &self.run.account, self.worker.windows.tombstone).await?,
            None => None,
        };
        drop(connection);
        let Some(job) = job else { return Err(ExecutionError::JobGone.into()) };
        if !job.status.is_terminal() {
            return Ok(None);
        }
        let failure = failure_of(&job, &self.run.plan.steps[at].key);
        let mut transaction = db::pool::begin(&self.worker.pool).await?;
        let (id, token) = (self.run.id, self.lease.token());
        let ended = recipe::end_image(&mut transaction, id, token, at, &job, failure.as_ref()).await?;
        self.settle(transaction, ended).await.map(Some)
    }

    /// Cancels an output whose inputs are missing.
    async fn cancel(&self, at: usize) -> Result<StepResult, Error> {
        let mut transaction = db::pool::begin(&self.worker.pool).await?;
        let (id, token) = (self.run.id, self.lease.token());
        let canceled = recipe::cancel_output(&mut transaction, id, token, at).await?;
        self.settle(transaction, canceled).await
    }

    /// Starts the job that makes the image of a step.
    async fn order(&self, at: usize) -> Result<StepResult, Error> {
        let plan = &self.run.plan;
        let step = &plan.steps[at];
        let references: Vec<Reference> = plan
            .references(at, &self.run.outputs)
            .into_iter()
            .map(|(handle, asset)| Reference { handle, asset, role: None })
            .collect();
        let operation = if references.is_empty() { JobOperation::Generate } else { JobOperation::Edit };
        let request = Request::Image(ImageRequest {
            model: step.model.clone(),
            prompt: plan.prompt(at, &self.run.outputs, self.prompt_max(&step.model).min(PROMPT_MAX)),
            caption: step
                .model
                .is_stand_in()
                .then(|| caption(&step.label, &plan.texts(at, &self.run.outputs)))
                .flatten(),
            size: step.size.clone(),
            quality: step.quality.clone(),
            references,
            mask: None,
            elements: Vec::new(),
            targets: vec![step.node.clone()],
        });
        let traceparent = self.task.trace.to_string();
        let image = ImageStep {
            job: JobId::generate(),
            operation,
            request: &request,
            estimated_seconds: step.estimated_seconds,
            credit_cost: step.model.credit_cost,
            traceparent: Some(&traceparent),
        };
        let mut transaction = db::pool::begin(&self.worker.pool).await?;
        let (id, token) = (self.run.id, self.lease.token());
        let begun = recipe::begin_image(&mut transaction, id, token, at, &image).await?;
        let begun = self.settle(transaction, begun).await?;
        if begun == StepResult::Done {
            self.worker.waker.wake(Queue::Generation, image.job.0);
        }
        Ok(begun)
    }

    /// The maximum prompt length of a model, in UTF-16 code units; for a removed model the general maximum.
    fn prompt_max(&self, model: &ChosenModel) -> usize {
        let found = self.generator.setup.models(model.provider).find(|entry| entry.id == model.id);
        found.map_or(PROMPT_MAX, |entry| entry.prompt_max)
    }

    /// Commits a step that took effect; rolls back otherwise.
    async fn settle(&self, transaction: db::Transaction, stepped: StepResult) -> Result<StepResult, Error> {
        if stepped == StepResult::Done {
            db::pool::commit(transaction).await?;
        }
        Ok(stepped)
    }
}

/// The reason why the output of a terminal job is missing. `None` if it is not missing, or if the job was canceled on its own
/// (docs/reference/recipes.md#cancel-a-step).
fn failure_of(job: &Record, key: &str) -> Option<RunFailure> {
    let found = match (job.status, &job.outcome.failure) {
        (JobStatus::Canceled, _) => return None,
        _ if recipe::image_of(job).is_some() => return None,
        (_, Some(cause)) => return Some(caused(cause, key)),
        (_, None) => failure(RunFailureCode::OutputMissing, "the step left no image", false),
    };
    Some(RunFailure { output_key: Some(key.to_owned()), ..found })
}

/// The failure of a step with this cause.
fn caused(cause: &Failure, key: &str) -> RunFailure {
    let code = match cause.code {
        FailureCode::ActionInputInvalid => RunFailureCode::InputInvalid,
        _ => RunFailureCode::StepFailed,
    };
    RunFailure { output_key: Some(key.to_owned()), ..failure(code, &cause.message, cause.retryable) }
}

fn failure(code: RunFailureCode, message: &str, retryable: bool) -> RunFailure {
    RunFailure { code, message: message.to_owned(), retryable, output_key: None }
}
