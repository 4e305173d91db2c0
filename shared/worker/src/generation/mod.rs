//! Runs a model until the outputs of a job are made, with one order per output
//! (docs/architecture.md#generation).
//!
//! **Guarantee.** No output is submitted twice with effect, whatever crashes ([`db::jobs::outputs`]
//! keeps the record; docs/reliability.md#provider-submits). While a job waits for the next poll, it
//! holds no message, no transaction and no slot. It is polled no more often than the provider
//! advises, and abandoned at a deadline. Every step checks for a cancellation.
//!
//! **Mechanism.** One run of a job's task ([`TaskRun`]) advances the outputs by one step and
//! reschedules the task for the next step. Every run determines again what makes the outputs
//! ([`Backend`]), so that the removal of a connection takes effect at once. [`ProviderDriver`] submits to a
//! provider, follows its run and looks up lost responses. A [`GenerationKind`] contains what is specific to
//! a kind of output. Concurrent calls are limited per connection ([`Calls`]), and memory is limited
//! in total ([`MemoryBudgets`]).
//!
//! **Reason.** Outputs take seconds to minutes and cost money when they are submitted, and hardly
//! any provider allows repeating a submit.

mod backend;
mod follow;
mod memory_budgets;
mod submit;
mod task_run;

use std::sync::Arc;
use std::time::Duration;

use db::jobs::outputs::{JobOutput, OutputState};
use domain::job::Failure;
use providers::{Calls, Deadlines, Entry, Idempotency, Incoming, Media, Order, ProtocolCapabilities, Setup};
use service::config::Config;
use service::keys::KeyRing;

use crate::{Interrupt, Worker};
pub use backend::{Backend, RemoteBackend, model_gone, order_bytes};
pub use follow::Heard;
pub use memory_budgets::{Admitted, MemoryBudgets};
pub use task_run::{Passing, TaskRun, note_orphan, retry_during_outage, unless_canceled};

/// A step that is due within this time is awaited instead of rescheduling the task.
pub const SOON: Duration = Duration::from_millis(50);

/// The time limit of a run: enough for the longest video of the embedded runtime on a slow machine,
/// or for the slowest call (a submit whose response is the result). A run that exceeds it leaves
/// its submit with an unknown outcome.
pub const RUN_LIMIT: Duration = Duration::from_secs(900);

/// The default of [`Settings::foreign_max`]. It is enough for the maximum number of images of a
/// request from responsive hosts, and limits the cost of an unresponsive host.
const FOREIGN_MAX: Duration = Duration::from_secs(60);

/// The number of times that a submit with an unknown outcome is repeated at a provider that rejects duplicates.
const REPEATS_MAX: i32 = 1;

/// Timeouts and retries of generation. Only tests change them.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The deadlines of calls to providers.
    pub deadlines: Deadlines,
    /// Delays before a retry of a submit that was certainly not accepted, and of a failed download.
    /// Their number is the number of retries.
    pub pauses: [Duration; 2],
    /// The longest `Retry-After` that is followed. If it is longer, the job fails as retryable, and
    /// its client decides.
    pub wait_max: Duration,
    /// The deadline of an output, counted from its first submit. `None` derives it from the
    /// estimate of its model.
    pub patience: Option<Duration>,
    /// The interval from the submit to the first poll, and between polls; `None`: as the provider
    /// advises.
    pub poll_every: Option<Duration>,
    /// The time limit for fetching all foreign images of a job, including redirects.
    pub foreign_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deadlines: Deadlines::default(),
            pauses: [1, 5].map(Duration::from_secs),
            wait_max: Duration::from_secs(30),
            patience: None,
            poll_every: None,
            foreign_max: FOREIGN_MAX,
        }
    }
}

/// The resources of jobs that run models. Clones share everything.
#[derive(Clone)]
pub struct Generator {
    /// The resources that all kinds of work share.
    pub worker: Worker,
    /// The key ring that opens the keys of saved connections.
    pub keys: KeyRing,
    /// The models, and the runtimes of the managed ones.
    pub setup: Setup,
    /// The limits of concurrent calls.
    pub calls: Calls,
    /// The memory budgets for orders, results and foreign images.
    pub memory: MemoryBudgets,
    /// Timeouts and retries.
    pub settings: Settings,
}

impl Generator {
    /// Creates a generator from the process's configuration.
    pub fn new(config: &Config, worker: Worker, setup: Setup) -> Self {
        Self {
            worker,
            keys: config.master_keys.clone(),
            setup,
            calls: Calls::new(usize::try_from(config.provider_concurrency).unwrap_or(usize::MAX)),
            memory: MemoryBudgets::new(config.generation_memory_bytes),
            settings: Settings::default(),
        }
    }
}

/// The part of a generation that is specific to one kind of output.
pub trait GenerationKind: Sync {
    /// A validated result.
    type Output: Send;

    /// The media type of the output.
    const MEDIA: Media;

    /// The order of the output at `position` without the bytes of its images, for a look-up.
    fn blank(&self, model: &Arc<Entry>, position: i32) -> Order;

    /// Memory in bytes reserved for a result from its transfer until it is stored.
    const RESULT_BYTES: u64;

    /// Receives a result and validates it. The inner error becomes the output's failure if this
    /// happens repeatedly.
    fn take_in(
        &self,
        result: Incoming,
    ) -> impl Future<Output = Result<Result<Self::Output, Failure>, Interrupt>> + Send;

    /// Receives the progress of an output, from 0 to 1, if the provider reports it.
    fn progress(&self, share: f64) -> impl Future<Output = ()> + Send;
}

/// State of an output after a step.
pub enum Step<M> {
    /// The next step is due after this time.
    Wait(Duration),
    /// The output is made. Its memory stays reserved as long as the admission is held.
    Finished(M, Option<Admitted>),
}

/// The calls of one run to the provider of its job.
pub struct ProviderDriver<'a, C> {
    task_run: &'a TaskRun<'a>,
    remote: &'a RemoteBackend,
    kind: &'a C,
    capabilities: ProtocolCapabilities,
}

impl<'a, C: GenerationKind> ProviderDriver<'a, C> {
    /// Creates a driver for the outputs of `task_run` at `remote`.
    pub fn new(task_run: &'a TaskRun<'a>, remote: &'a RemoteBackend, kind: &'a C) -> Self {
        Self { task_run, remote, kind, capabilities: remote.provider.capabilities(C::MEDIA) }
    }

    /// The provider's capabilities.
    pub fn capabilities(&self) -> &ProtocolCapabilities {
        &self.capabilities
    }

    /// Returns `true` if the next step of an output is its submit. Otherwise it must be
    /// [pursued](Self::pursue). A submit of unknown outcome is repeated only at a provider that
    /// rejects duplicates.
    pub fn is_to_submit(&self, output: &JobOutput) -> bool {
        match output.state {
            OutputState::Ready => true,
            OutputState::Submitting => {
                self.capabilities.idempotency == Idempotency::Rejected
                    && output.tries < REPEATS_MAX
                    && self.remote.model.is_some()
            }
            _ => false,
        }
    }

    /// Takes the next step of an output that the provider has or may have.
    ///
    /// # Errors
    ///
    /// [`Interrupt`] if there will be no result, and if the run ends.
    pub async fn pursue(&self, output: &JobOutput) -> Result<Step<C::Output>, Interrupt> {
        match output.state {
            OutputState::Submitting => self.look_up(output).await,
            _ => self.follow(output).await,
        }
    }

    /// Minimum time from submit to the first poll.
    fn poll_every(&self) -> Duration {
        self.task_run.generator.poll_every(&self.capabilities)
    }

    /// The delay before retry number `tries`; `None` if no retry is left.
    fn pause_before(&self, tries: i32) -> Option<Duration> {
        let tries = usize::try_from(tries).ok()?;
        self.task_run.generator.settings.pauses.get(tries).copied()
    }
}
