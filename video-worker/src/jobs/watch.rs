//! The videos that providers are working on, watched many at a time.
//!
//! **Guarantee.** Ten thousand of them cost the database some dozen statements a second, and memory only while they are looked
//! at. What is heard of one is exactly what a look at it alone would have heard, under its own lease.
//!
//! **Mechanism.** Tasks that become due at about the same time are claimed together (`RunnerOptions::gather`) and looked at
//! together here: one statement reads what a poll needs of all of them ([`waiting::look`]), each is polled, and those that go on
//! are put off and parked in two more. Whatever else is to be done with a job, its end above all, takes the way of a job
//! ([`super::run`]); so does one whose batch failed.
//!
//! **Reason.** A video takes minutes, and nearly every look at it finds nothing new.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use db::jobs::waiting::{self, Unfinished, Waiting};
use futures_util::future::join_all;
use providers::{Calls, Media};
use spine::{Batcher, Decision, Lease, Task};
use tokio::time::sleep;
use uuid::Uuid;
use workshop::generation::{Generator, Heard, Maker, SOON};
use workshop::{Stop, Worker};

/// Tasks of one claim begin within moments of each other.
const TOGETHER: Duration = Duration::from_millis(5);
/// Providers' answers come within a moment of each other.
const MOMENT: Duration = Duration::from_millis(100);

/// The statements that jobs share.
#[derive(Debug)]
pub(super) struct Watch {
    looks: Batcher<(Uuid, Uuid), Option<Waiting>>,
    parks: Batcher<Unfinished, bool>,
}

/// What a look at a job came to.
pub(super) enum Watched {
    /// What is to become of its task.
    Over(Decision),
    /// What the provider said, which is for the job to heed.
    Heard(Heard),
    /// It waits for no provider, or not for a provider alone.
    Otherwise,
}

impl Watch {
    /// A watch, and the work behind it, to be run; it ends with the watch.
    pub(super) fn new(worker: &Worker) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let pool = worker.pool.clone();
        let (looks, looking) = Batcher::gathering(TOGETHER, move |held: Vec<(Uuid, Uuid)>| {
            let pool = pool.clone();
            async move {
                let found = waiting::look(&mut *db::pool::acquire(&pool).await?, &held).await?;
                let mut found: HashMap<Uuid, Waiting> =
                    found.into_iter().map(|waiting| (waiting.id.0, waiting)).collect();
                let answers = held.iter().map(|(task, _)| found.remove(task)).collect();
                Ok(answers)
            }
        });
        let worker = worker.clone();
        let (parks, parking) = Batcher::gathering(MOMENT, move |unfinished: Vec<Unfinished>| {
            let worker = worker.clone();
            async move { park(&worker, &unfinished).await }
        });
        let work = async move {
            tokio::join!(looking, parking);
        };
        (Self { looks, parks }, work)
    }

    /// Looks at the job of a task, if a provider is working on it.
    pub(super) async fn look(&self, generator: &Generator, task: &Task, lease: &Lease) -> Watched {
        let found = self.looks.apply((task.id, lease.token())).await;
        let Ok(Some(waiting)) = found else { return Watched::Otherwise };
        if waiting.due_in > SOON {
            return self.park(&waiting, lease, waiting.due_in, None).await;
        }
        sleep(waiting.due_in).await;
        let maker = generator.maker_with(&waiting.model, waiting.credentials.clone());
        let (Ok(Maker::Remote(remote)), Ok(run)) = (maker, serde_json::from_value(waiting.run.clone())) else {
            return Watched::Otherwise;
        };
        match generator.hear(&remote, Media::Video, lease, &run, waiting.running_for).await {
            Ok(Heard::Unfinished { again_in, share }) => self.park(&waiting, lease, again_in, share).await,
            Ok(Heard::Crowded) => self.park(&waiting, lease, Calls::RETURN, None).await,
            Ok(heard) => Watched::Heard(heard),
            Err(Stop::Stale) => Watched::Over(Decision::Stale),
            Err(_) => Watched::Otherwise,
        }
    }

    /// Parks a job until its next poll. Where that did not work out together with the others the runner sees to it.
    async fn park(&self, waiting: &Waiting, lease: &Lease, due_in: Duration, share: Option<f64>) -> Watched {
        let percent = share.map(|share| share * 100.0);
        let unfinished = Unfinished { id: waiting.id, lease_token: lease.token(), due_in, percent };
        Watched::Over(match self.parks.apply(unfinished).await {
            Ok(true) => Decision::Parked { after: due_in },
            Ok(false) | Err(_) => Decision::Later { after: due_in },
        })
    }
}

/// Puts jobs off and parks their tasks; whether each was parked.
async fn park(worker: &Worker, unfinished: &[Unfinished]) -> db::Result<Vec<bool>> {
    let mut connection = db::pool::acquire(&worker.pool).await?;
    let further = waiting::put_off(&mut connection, unfinished).await?;
    let plans: Vec<_> = unfinished.iter().map(|it| (it.id.0, it.lease_token, it.due_in)).collect();
    let parked: HashSet<Uuid> = db::tasks::reschedule_all(&mut connection, &plans).await?.into_iter().collect();
    drop(connection);
    join_all(further.into_iter().map(|id| worker.announce(id))).await;
    Ok(unfinished.iter().map(|it| parked.contains(&it.id.0)).collect())
}
