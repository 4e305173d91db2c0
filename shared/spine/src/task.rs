//! What a kind of work looks like to the spine.

use std::error::Error;
use std::time::Duration;

use db::tasks::Claim;
use domain::message::TaskKind;
use service::telemetry::TraceContext;
use uuid::Uuid;

use crate::Lease;

/// A task in hand.
#[derive(Clone, Debug)]
pub struct Task {
    /// That of the record it works on: a job, a webhook delivery, a rendition.
    pub id: Uuid,
    /// What that record is.
    pub kind: TaskKind,
    /// Whom it belongs to, for fairness.
    pub lane: String,
    /// How often it was claimed, this time included, since it last went as planned; from 1.
    pub claims: i32,
    /// Trace context of what caused it, if it is known.
    pub traceparent: Option<String>,
    /// Trace context of this run: a child of `traceparent`, or the root of a new trace.
    pub trace: TraceContext,
}

impl From<Claim> for Task {
    fn from(claim: Claim) -> Self {
        let parent = claim.traceparent.as_deref().and_then(TraceContext::parse);
        Self {
            id: claim.id,
            kind: claim.kind,
            lane: claim.lane,
            claims: claim.claims,
            traceparent: claim.traceparent,
            trace: parent.map_or_else(TraceContext::new_root, |parent| parent.child()),
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The handler settled or rescheduled the task in a transaction of its own.
    Done,
    /// The handler parked the task in a transaction of its own.
    Parked {
        /// How long: the runner looks for it then.
        after: Duration,
    },
    /// As `Done`, and the record ended as failed.
    Fail {
        /// Why, for the log and the metrics.
        code: &'static str,
    },
    /// [`db::tasks::settle`] refused: somebody else has the task. The result was dropped.
    Stale,
    /// It did not work; again after this long. Counts towards [`domain::limits::TASK_CLAIMS_MAX`].
    Retry {
        /// How long to wait.
        after: Duration,
    },
    /// It went as planned and goes on after this long, as a poll does; the count of claims starts anew.
    Later {
        /// How long to wait.
        after: Duration,
    },
}

/// A decision, or what nobody foresaw: logged once with its causes, and tried again with backoff like a panic.
pub type Outcome = Result<Decision, Box<dyn Error + Send + Sync>>;

/// A kind of work.
///
/// The future of either method may be dropped at any await: when the lease is lost, when the run is over its limit and when
/// the process must end. That is no more than a crash could do.
pub trait Handler: Send + Sync + 'static {
    /// Runs a task.
    fn run(&self, task: &Task, lease: &Lease) -> impl Future<Output = Outcome> + Send;

    /// Ends a task that was claimed more than [`domain::limits::TASK_CLAIMS_MAX`] times, in one transaction that settles
    /// it and makes its record terminal. Whatever killed the earlier workers must not be done here again.
    fn exhausted(&self, task: &Task, lease: &Lease) -> impl Future<Output = Outcome> + Send;
}
