//! A run of a Recipe: its steps, one after the other, and its end (decisions 13.6, 13.7).
//!
//! **Guarantee.** Whatever crashes, each step takes effect once: it begins and ends in transactions that are fenced by the
//! lease and by the delegation ([`db::recipe_runs`]). A run that was stopped is left alone.
//!
//! **Mechanism.** Each turn reads the run anew, asks the plan what is next and takes that one step. A text is made here, by
//! the embedded runtime or by a provider ([`text`]); a picture by a job of its own in another queue, and while it is under way
//! the run's task is parked, so that however many runs wait for pictures, none holds a slot. The transaction that ends the job
//! wakes it ([`db::tasks::wake`]), so that the next step follows at once. A revocation wakes nobody: a run that is about to wait
//! looks at its delegation first, each time, and ends when that no longer holds, which stops the job that it waits for. What a
//! transaction lost against another is simply the next turn's.

mod text;

use std::time::Duration;

use db::recipe_runs::{self, ImageStep, RunEnding, Stepped};
use domain::id::JobId;
use domain::job::{
    ChosenModel, Failure, FailureCode, ImageRequest, JobOperation, JobStatus, Record, Reference, Request,
};
use domain::limits::PROMPT_MAX;
use domain::message::TaskKind;
use domain::recipe::OutputKind;
use domain::recipe::run::{Next, RunFailure, RunFailureCode, RunId, RunRecord};
use providers::Calls;
use spine::{Decision, Handler, Lease, Outcome, Task};
use tokio::time::Instant;
use workshop::generation::Generator;
use workshop::{Error, Worker, wait_out};

use super::Trouble;

/// How often a run that waits for the job of a picture is taken up although the job's end wakes it: to see that its delegation was
/// revoked, and that the job was ended by a process of the version before, which did not wake it.
const LOOK: Duration = Duration::from_secs(15);
/// Before a run that has had its share of a slot goes on.
const BREATHER: Duration = Duration::from_millis(500);
/// Turns of one run of the task: each of the most outputs begins and ends, and a few are lost.
const TURNS_MAX: usize = 4 * domain::limits::RECIPE_OUTPUTS_MAX;
/// How long one run of the task goes on taking steps. With the longest text after it, it stays within
/// [`RUN_LIMIT`](workshop::generation::RUN_LIMIT): to be dropped at that is to lose a text that is paid for.
const STRETCH: Duration = Duration::from_secs(60);

/// Runs Recipe runs.
#[derive(Clone)]
pub struct Recipes(pub Generator);

impl Handler for Recipes {
    async fn run(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Recipe => run(&self.0, task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        let worker = &self.0.worker;
        let outcome = match task.kind {
            TaskKind::Recipe => exhausted(worker, task, lease).await,
            // Nobody waits for it here; its record's owner would have to mend it.
            _ => worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}

/// Where a turn left the run.
enum Turn {
    /// The next one can follow.
    On,
    /// The job of a picture is under way, or a text waits for its call: again after this long, if nothing happens before.
    Wait(Duration),
    /// The task is over.
    Over(Decision),
}

/// Takes the run of a task as far as it goes without waiting.
async fn run(generator: &Generator, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let begun = Instant::now();
    for _ in 0..TURNS_MAX {
        if !lease.check() {
            return Ok(Decision::Stale);
        }
        if begun.elapsed() > STRETCH {
            break;
        }
        match turn(generator, task, lease).await {
            Ok(Turn::On) => {}
            Ok(Turn::Wait(after)) => return Ok(Decision::Later { after }),
            Ok(Turn::Over(decision)) => return Ok(decision),
            Err(Error::Database(error)) if error.is_transient() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Decision::Later { after: BREATHER })
}

/// Ends the run of a task that killed its workers, or failed them, too often.
async fn exhausted(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let failure = failure(RunFailureCode::StepFailed, "the work failed again and again and was given up", true);
    match end(worker, task, lease, &RunEnding::Failed(failure)).await? {
        Some(decision) => Ok(decision),
        None => worker.settle(task, lease).await,
    }
}

async fn turn(generator: &Generator, task: &Task, lease: &Lease) -> Result<Turn, Error> {
    let worker = &generator.worker;
    let id = RunId(task.id);
    let begun = recipe_runs::begin(&mut *worker.connection().await?, id, lease.token()).await?;
    let Some((run, is_news)) = begun.filter(|(run, _)| !run.status.is_terminal()) else {
        return Ok(Turn::Over(worker.settle(task, lease).await?));
    };
    if is_news {
        worker.announce(JobId(id.0)).await;
    }
    let step = Step { generator, worker, task, lease, run: &run };
    let stepped = match run.plan.next(&run.outputs) {
        Next::Begin(at) => step.begin(at).await?.ok_or(Calls::RETURN),
        Next::Cancel(at) => Ok(step.cancel(at).await?),
        Next::Follow(at) => step.follow(at).await?.ok_or(LOOK),
        Next::End => return over(worker, task, lease, &RunEnding::Over).await,
    };
    let stepped = match stepped {
        Ok(stepped) => stepped,
        Err(after) => match recipe_runs::is_delegated(&mut *worker.connection().await?, id).await? {
            true => return Ok(Turn::Wait(after)),
            false => Stepped::Revoked,
        },
    };
    match stepped {
        Stepped::Done => {
            spine::failpoint!("recipe.stepped");
            worker.nudge.nudge();
            worker.announce(JobId(id.0)).await;
            Ok(Turn::On)
        }
        // Over, or somebody else's: the next turn finds out.
        Stepped::Stale => Ok(Turn::On),
        // The end says so, whatever the ending.
        Stepped::Revoked => over(worker, task, lease, &RunEnding::Over).await,
    }
}

async fn over(worker: &Worker, task: &Task, lease: &Lease, ending: &RunEnding) -> Result<Turn, Error> {
    Ok(end(worker, task, lease, ending).await?.map_or(Turn::On, Turn::Over))
}

/// Ends the run and tells those who wait; nothing when it is over already or the lease is lost.
async fn end(worker: &Worker, task: &Task, lease: &Lease, ending: &RunEnding) -> Result<Option<Decision>, Error> {
    let id = RunId(task.id);
    let (revision, child_revision) = (service::random::revision(), service::random::revision());
    let traceparent = task.trace.to_string();
    let terms = worker.terms(&revision, Some(&traceparent));
    let mut transaction = db::pool::begin(&worker.pool).await?;
    let ended = recipe_runs::conclude(&mut transaction, id, lease.token(), ending, &terms, &child_revision).await?;
    let Some(run) = ended else { return Ok(None) };
    db::pool::commit(transaction).await?;
    worker.nudge.nudge();
    for job in run.outputs.iter().filter_map(|output| output.job) {
        worker.announce(job).await;
    }
    worker.announce(JobId(id.0)).await;
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
    /// Begins a step, and ends it when it is a text; nothing when it cannot begin now.
    async fn begin(&self, at: usize) -> Result<Option<Stepped>, Error> {
        match self.run.plan.steps[at].kind {
            OutputKind::Image => self.order(at).await.map(Some),
            OutputKind::Text => self.write(at).await,
        }
    }

    /// What became of a step that is under way; nothing yet while its job is.
    async fn follow(&self, at: usize) -> Result<Option<Stepped>, Error> {
        if self.run.plan.steps[at].kind == OutputKind::Text {
            return self.take_over(at).await.map(Some);
        }
        let mut connection = self.worker.connection().await?;
        let job = match self.run.outputs[at].job {
            Some(job) => db::jobs::get(&mut connection, job, &self.run.account, self.worker.windows.tombstone).await?,
            None => None,
        };
        drop(connection);
        let Some(job) = job else { return Err(Trouble::JobGone.into()) };
        if !job.status.is_terminal() {
            return Ok(None);
        }
        let failure = failure_of(&job, &self.run.plan.steps[at].key);
        let mut transaction = db::pool::begin(&self.worker.pool).await?;
        let (id, token) = (self.run.id, self.lease.token());
        let ended = recipe_runs::end_image(&mut transaction, id, token, at, &job, failure.as_ref()).await?;
        self.settle(transaction, ended).await.map(Some)
    }

    /// Cancels an output that lacks what it is made from.
    async fn cancel(&self, at: usize) -> Result<Stepped, Error> {
        let revision = service::random::revision();
        let mut transaction = db::pool::begin(&self.worker.pool).await?;
        let (id, token) = (self.run.id, self.lease.token());
        let canceled = recipe_runs::cancel_output(&mut transaction, id, token, at, &revision).await?;
        self.settle(transaction, canceled).await
    }

    /// Starts the job that makes the picture of a step.
    async fn order(&self, at: usize) -> Result<Stepped, Error> {
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
            size: step.size.clone(),
            quality: step.quality.clone(),
            references,
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
            revision: &service::random::revision(),
            traceparent: Some(&traceparent),
        };
        let mut transaction = db::pool::begin(&self.worker.pool).await?;
        let (id, token) = (self.run.id, self.lease.token());
        let begun = recipe_runs::begin_image(&mut transaction, id, token, at, &image).await?;
        self.settle(transaction, begun).await
    }

    /// The longest prompt that a model takes, in UTF-16 code units; as long as any request's of one that is gone.
    fn prompt_max(&self, model: &ChosenModel) -> usize {
        let found = self.generator.setup.models(model.provider).find(|entry| entry.id == model.id);
        found.map_or(PROMPT_MAX, |entry| entry.prompt_max)
    }

    /// Commits what took place; anything else is rolled back.
    async fn settle(&self, transaction: db::Transaction, stepped: Stepped) -> Result<Stepped, Error> {
        if stepped == Stepped::Done {
            db::pool::commit(transaction).await?;
        }
        Ok(stepped)
    }
}

/// Why the output of a job that is over is not there; nothing when it is, or when the job was canceled by itself (decisions
/// 18.19).
fn failure_of(job: &Record, key: &str) -> Option<RunFailure> {
    let found = match (job.status, &job.outcome.failure) {
        (JobStatus::Canceled, _) => return None,
        _ if recipe_runs::picture_of(job).is_some() => return None,
        (_, Some(cause)) => return Some(caused(cause, key)),
        (_, None) => failure(RunFailureCode::OutputMissing, "the step left no picture", false),
    };
    Some(RunFailure { output_key: Some(key.to_owned()), ..found })
}

/// What a step fails with for this cause.
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
