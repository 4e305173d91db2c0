//! Video jobs: one video each, made by one model, served by the job itself (specification, VideoJob; decisions 9.5, 9.8, 11).
//!
//! **Guarantee.** No video is submitted twice to an effect, whatever crashes ([`db::jobs::outputs`] keeps the record, one
//! output a job); while a provider works a job holds neither a message nor a transaction nor a slot; it is asked no more often
//! than it advises, and given up at a deadline. A cancel is heard at every step. Every job ends, and its credit is settled
//! then.
//!
//! **Mechanism.** A run of the task takes the job one step further ([`run`]) and parks the task until the next step is due.
//! Who makes the video is decided anew in every run ([`maker`]). The embedded runtime films here ([`film`]); a provider is
//! submitted to ([`submit`]) and polled ([`poll`]). A finished video is stored and shown in one transaction ([`end`]): what a
//! crash keeps from that is fetched or filmed again, which costs nothing.
//!
//! **Reason.** Videos take minutes, cost money when they are submitted, and hardly a provider lets a submit be repeated.

mod end;
mod fetch;
mod film;
mod maker;
mod pictures;
mod poll;
mod run;
mod store;
mod submit;

use std::time::Duration;

use db::PgPool;
use db::jobs::Windows;
use domain::message::TaskKind;
use providers::{Calls, Deadlines, Setup};
use service::blocking::Panicked;
use service::keys::KeyRing;
use spine::{Decision, Handler, Lease, Nudge, Outcome, Task};

use crate::budget::{Memory, Pixels};

/// Pauses after each claim on which the object store or the database failed, in seconds; the last one serves for all that
/// follow: short at first, because most outages are the restart of a server, and together longer than any restart takes.
const OUTAGE_PAUSES: [u64; 4] = [1, 5, 30, 120];

/// How jobs wait and repeat. Only tests choose otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long a call may take.
    pub deadlines: Deadlines,
    /// Pauses before a submit that was surely not accepted, and before a download that failed, is tried again; as many tries
    /// follow the first.
    pub pauses: [Duration; 2],
    /// The longest that a provider's wish to wait is followed. Beyond it the failure is told, as retryable, and who asked decides.
    pub wait_max: Duration,
    /// How long a video may take from its first submit; `None`: as its model's estimate says.
    pub patience: Option<Duration>,
    /// How long from submit, and from poll to poll; `None`: as the provider advises.
    pub poll_every: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deadlines: Deadlines::default(),
            pauses: [1, 5].map(Duration::from_secs),
            wait_max: Duration::from_secs(30),
            patience: None,
            poll_every: None,
        }
    }
}

/// Runs video jobs. Clones share everything.
#[derive(Clone)]
pub struct Worker {
    /// Connections to the database.
    pub pool: PgPool,
    /// Where pictures are, and videos go.
    pub blobs: blob::Store,
    /// To tell those who wait for a change.
    pub cache: cache::Cache,
    /// To wake the relay after commits that enqueue.
    pub nudge: Nudge,
    /// Where films are made and pictures decoded.
    pub pixels: Pixels,
    /// Pictures and results in hand.
    pub memory: Memory,
    /// The way out to providers and foreign pictures.
    pub egress: egress::Client,
    /// Opens the connections' keys.
    pub keys: KeyRing,
    /// The models, and what runs the managed ones.
    pub setup: Setup,
    /// Calls in flight.
    pub calls: Calls,
    /// How it waits and repeats.
    pub settings: Settings,
    /// The origin of links in events.
    pub public_url: String,
    /// How long records are kept.
    pub windows: Windows,
}

/// Why a task did not work out this time. It is tried again, a few times (reliability.md 2).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] db::Error),
    /// The object store failed.
    #[error("the object store failed")]
    Store(#[from] blob::Error),
    /// An encoder failed.
    #[error("the picture could not be written")]
    Raster(#[source] raster::Error),
    /// The engine panicked.
    #[error("the engine failed")]
    Panicked(#[source] Panicked),
    /// The video's blob was swept again and again.
    #[error("the video was swept before it was referred to")]
    BlobGone,
    /// The task is not this process's kind of work.
    #[error("a task of kind {0} in the queue of videos")]
    WrongQueue(TaskKind),
}

impl Error {
    /// Whether what the work needs was not there, as against the work being at fault.
    fn is_outage(&self) -> bool {
        match self {
            Error::Store(_) => true,
            Error::Database(error) => error.is_outage(),
            _ => false,
        }
    }
}

impl Handler for Worker {
    async fn run(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Video => self.step(task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Video => self.give_up(task, lease).await,
            // Nobody waits for it here; its record's owner would have to mend it.
            _ => self.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}

/// Turns an outage into a pause; every other failure is the runner's to report.
fn wait_out(task: &Task, outcome: Result<Decision, Error>) -> Outcome {
    match outcome {
        Err(error) if error.is_outage() => {
            let after = Duration::from_secs(outage_pause(task.claims));
            tracing::warn!(error = &error as &dyn std::error::Error, "{} {} waits for {after:?}", task.kind, task.id);
            Ok(Decision::Retry { after })
        }
        outcome => Ok(outcome?),
    }
}

/// How many seconds to wait after an outage on claim `claims`, from 1.
fn outage_pause(claims: i32) -> u64 {
    let index = usize::try_from(claims - 1).unwrap_or(0).min(OUTAGE_PAUSES.len() - 1);
    OUTAGE_PAUSES[index]
}

impl Worker {
    async fn connection(&self) -> Result<db::Connection, Error> {
        Ok(db::pool::acquire(&self.pool).await?)
    }

    /// Ends a task that has nothing to do.
    async fn settle(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let settled = db::tasks::settle(&mut *self.connection().await?, task.id, lease.token()).await?;
        Ok(if settled { Decision::Done } else { Decision::Stale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_waited_out_longer_and_longer() {
        assert_eq!([1, 2, 3, 4, 5, 9].map(outage_pause), [1, 5, 30, 120, 120, 120]);
    }

    #[test]
    fn only_what_is_missing_is_waited_for() {
        let missing = Error::Store(blob::Error::Missing(uuid::Uuid::nil()));
        assert!(missing.is_outage() && Error::Database(db::Error::Timeout).is_outage());
        assert!(!Error::BlobGone.is_outage() && !Error::WrongQueue(TaskKind::Image).is_outage());
    }
}
