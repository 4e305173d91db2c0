//! The leases of a process, and the task that renews them all.
//!
//! The database's clock determines how long a lease lasts. This process counts from *before* it
//! sends the statement that creates or renews the lease, so it never trusts a lease for longer than
//! the database does. One statement renews all leases of a process over a separate connection. It
//! therefore cannot be delayed by many slots, by handlers that use up the pool, or by a claim that
//! hangs. The lease of a run that exceeds its limit is not renewed, so that a stuck thread, which
//! cannot be stopped, does not keep its task forever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use db::PgPool;
use service::chain;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::RunnerOptions;

/// Maximum delay until a cancellation is noticed.
const CANCEL_LOOK: Duration = Duration::from_secs(1);

/// The right to work on a task and to write its result.
#[derive(Clone, Debug)]
pub struct Lease(Arc<LeaseState>);

#[derive(Debug)]
struct LeaseState {
    task: Uuid,
    token: Uuid,
    /// The duration of two heartbeats. A lease that was not renewed for this long may soon belong
    /// to another worker.
    trusted_for: Duration,
    taken_at: Instant,
    renewed_at: Mutex<Instant>,
    cancelled: CancellationToken,
    lost: CancellationToken,
}

impl Lease {
    /// The fencing token, required by [`db::tasks::settle`] and every other write of a result.
    pub fn token(&self) -> Uuid {
        self.0.token
    }

    /// Returns `true` if a new side effect may be started. `false` if the lease is lost, and after two missed
    /// heartbeats, because the lease may then be lost without our knowledge.
    #[must_use]
    pub fn check(&self) -> bool {
        !self.0.lost.is_cancelled() && self.0.renewed_at().elapsed() < self.0.trusted_for
    }

    /// Returns `true` if cancellation of the task was requested.
    pub fn is_cancel_requested(&self) -> bool {
        self.0.cancelled.is_cancelled()
    }

    /// Waits until cancellation of the task is requested. It is noticed within a second.
    pub async fn cancelled(&self) {
        self.0.cancelled.cancelled().await;
    }

    /// Waits until the lease is known to be lost.
    pub async fn lost(&self) {
        self.0.lost.cancelled().await;
    }
}

impl LeaseState {
    fn renewed_at(&self) -> Instant {
        *self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renew(&self, at: Instant) {
        *self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }
}

/// All leases of a runner.
#[derive(Clone, Debug)]
pub(crate) struct Leases {
    pool: PgPool,
    duration: Duration,
    heartbeat: Duration,
    run_limit: Duration,
    held: Arc<Mutex<HashMap<Uuid, Arc<LeaseState>>>>,
}

/// A lease that is renewed until this is dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) lease: Lease,
    leases: Leases,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let LeaseState { task, token, .. } = *self.lease.0;
        let mut held = self.leases.lock();
        // Meanwhile the same task may have been claimed by this process again, under a new token.
        if held.get(&task).is_some_and(|held| held.token == token) {
            held.remove(&task);
        }
    }
}

impl Leases {
    /// Creates an empty set of leases. `pool` must not be used elsewhere.
    pub(crate) fn new(pool: PgPool, options: &RunnerOptions) -> Self {
        let RunnerOptions { lease, heartbeat, run_limit, .. } = *options;
        Self { pool, duration: lease, heartbeat, run_limit, held: Arc::default() }
    }

    /// Renews the lease of a claim that was sent at `since` until the returned value is dropped.
    pub(crate) fn keep(&self, task: Uuid, token: Uuid, since: Instant, cancel_requested: bool) -> Kept {
        let held = Arc::new(LeaseState {
            task,
            token,
            trusted_for: self.heartbeat * 2,
            taken_at: since,
            renewed_at: Mutex::new(since),
            cancelled: CancellationToken::new(),
            lost: CancellationToken::new(),
        });
        if cancel_requested {
            held.cancelled.cancel();
        }
        self.lock().insert(task, held.clone());
        Kept { lease: Lease(held), leases: self.clone() }
    }

    /// Renews the leases forever, and checks for cancellations in between.
    pub(crate) async fn beat(&self) {
        let mut looks = interval(CANCEL_LOOK.min(self.heartbeat));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Instant::now();
        loop {
            looks.tick().await;
            let is_in_time = |held: &&Arc<LeaseState>| held.taken_at.elapsed() <= self.run_limit;
            let held: Vec<Arc<LeaseState>> = self.lock().values().filter(is_in_time).cloned().collect();
            if held.is_empty() {
                last = Instant::now();
                continue;
            }
            let due = last.elapsed() >= self.heartbeat;
            if due {
                last = Instant::now();
            }
            let round = async { if due { self.renew(&held).await } else { self.look(&held).await } };
            // A round that hangs must not delay the next one.
            let failure = match timeout(self.heartbeat, round).await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => chain(&error),
                Err(_) => "no answer in time".to_owned(),
            };
            tracing::warn!(leases = held.len(), error = failure, "heartbeat failed");
        }
    }

    async fn renew(&self, held: &[Arc<LeaseState>]) -> db::Result<()> {
        let asked_at = Instant::now();
        let leases: Vec<(Uuid, Uuid)> = held.iter().map(|held| (held.task, held.token)).collect();
        let mut conn = self.pool.acquire().await?;
        let beats = db::tasks::heartbeat(&mut conn, &leases, self.duration).await?;
        let beats: HashMap<Uuid, db::tasks::Beat> = beats.into_iter().map(|beat| (beat.id, beat)).collect();
        for held in held {
            match beats.get(&held.task) {
                Some(beat) => {
                    if beat.renewed {
                        held.renew(asked_at);
                    }
                    if beat.cancel_requested {
                        held.cancelled.cancel();
                    }
                }
                None => held.lost.cancel(),
            }
        }
        Ok(())
    }

    async fn look(&self, held: &[Arc<LeaseState>]) -> db::Result<()> {
        let ids: Vec<Uuid> = held.iter().filter(|held| !held.cancelled.is_cancelled()).map(|held| held.task).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut conn = self.pool.acquire().await?;
        let wanted = db::tasks::cancel_requests(&mut conn, &ids).await?;
        for held in held.iter().filter(|held| wanted.contains(&held.task)) {
            held.cancelled.cancel();
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<LeaseState>>> {
        // The map is consistent after every statement, so a poisoned lock guards a valid value.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
