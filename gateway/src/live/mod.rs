//! Subscriptions of event streams and long polls of canvases: revisions and roles, participants, pointers, runs of an account.

mod feed;
mod pointers;
mod presence;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use db::PgPool;
use db::streams::{CanvasState, FollowedCanvas, RunState};
use domain::channel;
use domain::id::{AccountUid, CanvasHandle};
use uuid::Uuid;

use crate::problem::Result;

pub use feed::Follower;
pub use pointers::{Pointers, Shown};
pub use presence::{Attendee, LISTED_MAX, Presence, Present};

use feed::Feed;

/// Minimum time between two reads of the canvases and participants that are followed.
const PACE: Duration = Duration::from_millis(20);
/// The same for runs. A short job goes through its states in less, and its followers get its start and its end.
const PACE_OF_RUNS: Duration = Duration::from_millis(500);

/// Everything that this gateway follows.
pub struct Live {
    pool: PgPool,
    canvases: Arc<Feed<FollowedCanvas, Option<CanvasState>>>,
    participants: Arc<Feed<CanvasHandle, Arc<[Attendee]>>>,
    runs: Arc<Feed<AccountUid, Arc<[RunState]>>>,
    presence: Arc<Presence>,
    pointers: Arc<Pointers>,
}

impl Live {
    /// Follows nothing yet; and the background task, which runs as long as the process serves.
    pub fn new(pool: PgPool, cache: &cache::Cache) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (presence, registering) = Presence::new(cache.clone());
        let (pointers, pointing) = Pointers::new(cache.clone());
        let (canvases, participants, runs) =
            (Feed::new(cache.clone(), PACE), Feed::new(cache.clone(), PACE), Feed::new(cache.clone(), PACE_OF_RUNS));
        let live = Self {
            pool: pool.clone(),
            canvases: canvases.clone(),
            participants: participants.clone(),
            runs: runs.clone(),
            presence: presence.clone(),
            pointers,
        };
        let work = async move {
            let (pool, presence) = (&pool, &presence);
            tokio::join!(
                registering,
                pointing,
                canvases.run(|followed| async move { read_canvases(pool, &followed).await }),
                participants.run(|canvases| async move { Ok(presence.list(&canvases).await) }),
                runs.run(|accounts| async move { read_runs_of_each(pool, &accounts).await }),
            );
        };
        (live, work)
    }

    /// Follows the revisions of a canvas and the account's role on it; `None` while the account cannot read it.
    pub fn canvas(&self, canvas: &CanvasHandle, account: &AccountUid) -> Follower<FollowedCanvas, Option<CanvasState>> {
        self.canvases.follow((canvas.clone(), account.clone()), &channel::canvas(canvas))
    }

    /// The present state of each canvas.
    pub async fn canvases_now(&self, followed: &[FollowedCanvas]) -> Result<Vec<Option<CanvasState>>> {
        Ok(read_canvases(&self.pool, followed).await?)
    }

    /// Follows who has open streams of a canvas.
    pub fn participants(&self, canvas: &CanvasHandle) -> Follower<CanvasHandle, Arc<[Attendee]>> {
        self.participants.follow(canvas.clone(), &channel::canvas(canvas))
    }

    /// Who has open streams of canvases.
    pub fn presence(&self) -> &Arc<Presence> {
        &self.presence
    }

    /// What people point at on canvases.
    pub fn pointers(&self) -> &Pointers {
        &self.pointers
    }

    /// Follows the runs and jobs of an account.
    pub fn runs(&self, account: &AccountUid) -> Follower<AccountUid, Arc<[RunState]>> {
        self.runs.follow(account.clone(), &channel::runs(account))
    }

    /// The present state of an account's runs and jobs that are not over, that were started within the last minute, or that are
    /// among `known`.
    pub async fn runs_now(&self, account: &AccountUid, known: &[Uuid]) -> Result<Vec<RunState>> {
        Ok(read_runs(&self.pool, std::slice::from_ref(account), known).await?)
    }
}

async fn read_canvases(pool: &PgPool, followed: &[FollowedCanvas]) -> db::Result<Vec<Option<CanvasState>>> {
    db::streams::canvases(&mut *db::pool::acquire(pool).await?, followed).await
}

async fn read_runs(pool: &PgPool, accounts: &[AccountUid], known: &[Uuid]) -> db::Result<Vec<RunState>> {
    db::streams::runs(&mut *db::pool::acquire(pool).await?, accounts, a_minute_ago(), known).await
}

/// The same for many accounts, in their order.
async fn read_runs_of_each(pool: &PgPool, accounts: &[AccountUid]) -> db::Result<Vec<Arc<[RunState]>>> {
    let mut by_account: HashMap<AccountUid, Vec<RunState>> = HashMap::new();
    for run in read_runs(pool, accounts, &[]).await? {
        by_account.entry(run.account.clone()).or_default().push(run);
    }
    Ok(accounts.iter().map(|account| by_account.remove(account).unwrap_or_default().into()).collect())
}

/// Below every id (UUID version 7) that was made within the last minute. A run that starts and ends between two reads is found by
/// its id; a minute is far above the time between them and the difference of clocks.
fn a_minute_ago() -> Uuid {
    let millis = u64::try_from(service::clock::now().timestamp_millis()).unwrap_or_default().saturating_sub(60_000);
    Uuid::from_u128(u128::from(millis) << 80)
}
