//! Polls videos that providers are working on, many at a time.
//!
//! **Guarantee.** Ten thousand such videos cost the database about a dozen statements per second,
//! and memory only while they are polled. The result for one video is exactly that of polling it
//! alone, under its own lease.
//!
//! **Mechanism.** Tasks that become due at about the same time are claimed together
//! (`RunnerOptions::gather`) and polled together. One statement reads what all polls need
//! ([`waiting::look`]), each video is polled, and two more statements reschedule the jobs that
//! continue and their tasks. Every other step of a job, above all its end, takes the usual path
//! ([`super::run`]); so does a job whose batch failed.
//!
//! **Reason.** A video takes minutes, and nearly every poll finds nothing new.

use std::collections::HashMap;
use std::time::Duration;

use db::jobs::waiting::{self, Unfinished, Waiting};
use futures_util::future::join_all;
use providers::{Calls, Media};
use taskqueue::{Batcher, Decision, Lease, Task};
use tokio::time::sleep;
use uuid::Uuid;
use worker::generation::{Backend, Generator, Heard, SOON};
use worker::{Interrupt, Worker};

/// The time to collect tasks of one claim. They start within moments of each other.
const TOGETHER: Duration = Duration::from_millis(5);
/// The time to collect results. The providers' answers arrive within moments of each other.
const MOMENT: Duration = Duration::from_millis(100);

/// The database statements that jobs share.
#[derive(Debug)]
pub(super) struct Watch {
    looks: Batcher<(Uuid, Uuid), Option<Waiting>>,
    reschedules: Batcher<Unfinished, Option<Duration>>,
}

/// The result of polling a job.
pub(super) enum Watched {
    /// The decision for its task.
    Over(Decision),
    /// The report of the provider, for the job to act on.
    Heard(Heard),
    /// The job is not waiting for a provider, or not only for one.
    Otherwise,
}

impl Watch {
    /// Creates a watch and its worker, which the caller must run. The worker ends when the watch is
    /// dropped.
    pub(super) fn new(worker: &Worker) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let pool = worker.pool.clone();
        let (looks, looking) = Batcher::gathering(
            || TOGETHER,
            move |leased: Vec<(Uuid, Uuid)>| {
                let pool = pool.clone();
                async move {
                    let found = waiting::look(&mut *db::pool::acquire(&pool).await?, &leased).await?;
                    let mut found: HashMap<Uuid, Waiting> =
                        found.into_iter().map(|waiting| (waiting.id.0, waiting)).collect();
                    let answers = leased.iter().map(|(task, _)| found.remove(task)).collect();
                    Ok(answers)
                }
            },
        );
        let worker = worker.clone();
        let (reschedules, rescheduling) = Batcher::gathering(
            || MOMENT,
            move |unfinished: Vec<Unfinished>| {
                let worker = worker.clone();
                async move { reschedule(&worker, &unfinished).await }
            },
        );
        let work = async move {
            tokio::join!(looking, rescheduling);
        };
        (Self { looks, reschedules }, work)
    }

    /// Polls the job of a task, if a provider is working on it.
    pub(super) async fn look(&self, generator: &Generator, task: &Task, lease: &Lease) -> Watched {
        let found = self.looks.apply((task.id, lease.token())).await;
        let Ok(Some(waiting)) = found else { return Watched::Otherwise };
        if waiting.due_in > SOON {
            return self.reschedule(&waiting, lease, waiting.due_in, None).await;
        }
        sleep(waiting.due_in).await;
        let backend = generator.backend_with(&waiting.model, waiting.credentials.clone());
        let (Ok(Backend::Remote(remote)), Ok(run)) = (backend, serde_json::from_value(waiting.run.clone())) else {
            return Watched::Otherwise;
        };
        match generator.hear(&remote, Media::Video, lease, &run, waiting.running_for).await {
            Ok(Heard::Unfinished { again_in, share }) => self.reschedule(&waiting, lease, again_in, share).await,
            Ok(Heard::Crowded) => self.reschedule(&waiting, lease, Calls::RETURN, None).await,
            Ok(heard) => Watched::Heard(heard),
            Err(Interrupt::Stale) => Watched::Over(Decision::Stale),
            Err(_) => Watched::Otherwise,
        }
    }

    /// Reschedules a job for its next poll. If its batch failed, the runner reschedules it.
    async fn reschedule(&self, waiting: &Waiting, lease: &Lease, due_in: Duration, share: Option<f64>) -> Watched {
        let percent = share.map(|share| share * 100.0);
        let unfinished = Unfinished { id: waiting.id, lease_token: lease.token(), due_in, percent };
        Watched::Over(match self.reschedules.apply(unfinished).await {
            Ok(Some(after)) => Decision::Rescheduled { after },
            Ok(None) | Err(_) => Decision::Snooze { after: due_in },
        })
    }
}

/// Reschedules jobs and their tasks. Returns for each task when it is due; `None`: it was not rescheduled.
async fn reschedule(worker: &Worker, unfinished: &[Unfinished]) -> db::Result<Vec<Option<Duration>>> {
    let mut connection = db::pool::acquire(&worker.pool).await?;
    let further = waiting::put_off(&mut connection, unfinished).await?;
    let plans: Vec<_> = unfinished.iter().map(|it| (it.id.0, it.lease_token, it.due_in)).collect();
    let rescheduled = db::tasks::reschedule_all(&mut connection, &plans).await?;
    drop(connection);
    join_all(further.iter().map(|(account, id)| worker.announce(account, *id, None))).await;
    Ok(unfinished.iter().map(|it| rescheduled.get(&it.id.0).copied()).collect())
}
