//! Driving a model to the outputs of a job, one order each (decisions 9.8, 12.5).
//!
//! **Guarantee.** No output is submitted twice to an effect, whatever crashes ([`db::jobs::outputs`] keeps the record);
//! whatever a provider is doing, a job holds neither a message nor a transaction nor a slot while it waits for the next
//! look; it is looked at no more often than the provider asks, and given up at a deadline. A cancel is heard at every step.
//!
//! **Mechanism.** A run of a job's task ([`Turn`]) takes its outputs one step further and parks the task until the next step
//! is due. Who makes them is decided anew in every run ([`Maker`]): a connection that was removed meanwhile takes effect at
//! once. A provider is submitted to, followed and asked what became of a lost answer by [`Drive`]; what is particular to a
//! kind of output is its [`Craft`]. Calls in flight are bounded for each connection ([`Calls`]), bytes in hand for all
//! ([`InHand`]).
//!
//! **Reason.** Outputs take seconds to minutes, cost money when they are submitted, and hardly a provider lets a submit be
//! repeated.

mod follow;
mod in_hand;
mod maker;
mod submit;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use db::jobs::outputs::{JobOutput, OutputState};
use domain::job::Failure;
use providers::{Calls, Deadlines, Entry, Idempotency, Incoming, Media, Order, Promises, Setup};
use service::config::Config;
use service::keys::KeyRing;

use crate::{Stop, Worker};
pub use follow::Heard;
pub use in_hand::{Admitted, InHand};
pub use maker::{Maker, Remote, model_gone, order_bytes};
pub use turn::{Passing, Turn, note_orphan, patiently, unless_canceled};

/// A step that is due as soon as this is waited for, instead of parking the task once more.
pub const SOON: Duration = Duration::from_millis(50);

/// A run of a job altogether: the longest film on a slow machine; or the slowest call, a submit whose answer is the result,
/// and the time around it. A run that is dropped leaves the outcome of its submit unknown.
pub const RUN_LIMIT: Duration = Duration::from_secs(900);

/// See [`Settings::foreign_max`]: enough for as many as a request may have from hosts that do their part, and what one that does
/// not may cost.
const FOREIGN_MAX: Duration = Duration::from_secs(60);

/// Submits of an output whose first had an unknown outcome, to a provider that refuses to begin it twice.
const REPEATS_MAX: i32 = 1;

/// How generation waits and repeats. Only tests choose otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long a call may take.
    pub deadlines: Deadlines,
    /// Pauses before a submit that was surely not accepted, and before a download that failed, is tried again; as many tries
    /// follow the first.
    pub pauses: [Duration; 2],
    /// The longest that a provider's wish to wait is followed. Beyond it the failure is told, as retryable, and who asked decides.
    pub wait_max: Duration,
    /// How long an output may take from its first submit; `None`: as its model's estimate says.
    pub patience: Option<Duration>,
    /// How long from submit, and from poll to poll; `None`: as the provider advises.
    pub poll_every: Option<Duration>,
    /// How long the foreign pictures of a job may take altogether, redirects included.
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

/// What jobs of models need besides what all kinds of work share. Clones share everything.
#[derive(Clone)]
pub struct Generator {
    /// What all kinds of work share.
    pub worker: Worker,
    /// Opens the connections' keys.
    pub keys: KeyRing,
    /// The models, and what runs the managed ones.
    pub setup: Setup,
    /// Calls in flight.
    pub calls: Calls,
    /// Orders, results and foreign pictures in hand.
    pub in_hand: InHand,
    /// How it waits and repeats.
    pub settings: Settings,
}

impl Generator {
    /// As configured.
    pub fn new(config: &Config, worker: Worker, setup: Setup) -> Self {
        Self {
            worker,
            keys: config.master_keys.clone(),
            setup,
            calls: Calls::new(usize::try_from(config.provider_concurrency).unwrap_or(usize::MAX)),
            in_hand: InHand::new(config.generation_memory_bytes),
            settings: Settings::default(),
        }
    }
}

/// What is particular to a kind of output.
pub trait Craft: Sync {
    /// A result that was looked at and is what it should be.
    type Made: Send;

    /// What comes of an order.
    const MEDIA: Media;

    /// The order of the output at `position` without the bytes of its pictures, as a look-up names it.
    fn blank(&self, model: &Arc<Entry>, position: i32) -> Order;

    /// What a result is counted with while it is on its way and in hand, in bytes.
    const IN_HAND: u64;

    /// Takes a result in, and looks at it before it is believed; the inner error is what it fails with, if it does so again.
    fn take_in(&self, result: Incoming) -> impl Future<Output = Result<Result<Self::Made, Failure>, Stop>> + Send;

    /// Hears how far an output is, from 0 to 1, where the provider says.
    fn progress(&self, share: f64) -> impl Future<Output = ()> + Send;
}

/// Where a step left an output.
pub enum Step<M> {
    /// Its next step is due then.
    Wait(Duration),
    /// It is made, and in hand as long as its place in memory is held.
    Made(M, Option<Admitted>),
}

/// The dealings of one run with the provider of its job.
pub struct Drive<'a, C> {
    turn: &'a Turn<'a>,
    remote: &'a Remote,
    craft: &'a C,
    promises: Promises,
}

impl<'a, C: Craft> Drive<'a, C> {
    /// To take outputs a step further at `remote`.
    pub fn new(turn: &'a Turn<'a>, remote: &'a Remote, craft: &'a C) -> Self {
        Self { turn, remote, craft, promises: remote.provider.promises(C::MEDIA) }
    }

    /// What the provider promises.
    pub fn promises(&self) -> &Promises {
        &self.promises
    }

    /// Whether the next step of an output is its submit; otherwise it is to be [pursued](Self::pursue). One of unknown outcome
    /// is repeated where the provider refuses to begin it twice.
    pub fn is_to_submit(&self, output: &JobOutput) -> bool {
        match output.state {
            OutputState::Ready => true,
            OutputState::Submitting => {
                self.promises.idempotency == Idempotency::Rejected
                    && output.tries < REPEATS_MAX
                    && self.remote.model.is_some()
            }
            _ => false,
        }
    }

    /// Goes after an output that the provider has or may have.
    ///
    /// # Errors
    /// [`Stop`] when there will be no result, and when the run ends.
    pub async fn pursue(&self, output: &JobOutput) -> Result<Step<C::Made>, Stop> {
        match output.state {
            OutputState::Submitting => self.look_up(output).await,
            _ => self.follow(output).await,
        }
    }

    /// How long from submit to the first poll, at least.
    fn poll_every(&self) -> Duration {
        self.turn.generator.poll_every(&self.promises)
    }

    /// The pause before what was tried `tries` times besides the first is tried again, while it may be.
    fn pause_before(&self, tries: i32) -> Option<Duration> {
        let tries = usize::try_from(tries).ok()?;
        self.turn.generator.settings.pauses.get(tries).copied()
    }
}
