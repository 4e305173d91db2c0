//! The worker loop: wake-up → claim for all free slots → acknowledge, and run under leases →
//! decisions.
//!
//! A wake-up message only says that Postgres has work. Whenever there is a free slot and a reason
//! to claim, one statement claims tasks for *all* free slots. Postgres selects them, fairly among
//! fairness keys. Reasons to claim are: a message; the idle interval (lost messages, due times, expired
//! leases); a fairness key that is below its cap again; and a previous claim that was full, so that a
//! backlog is processed at full speed without messages.
//!
//! Messages are acknowledged once the claim is made, not when the work is done: from then on the
//! lease protects the task. While all slots are busy, messages wait at the broker, at most as many
//! as there are slots. None is held for longer than [`HOLD_LIMIT`], because RabbitMQ closes a
//! channel with a message that stays unacknowledged for half an hour. If the database does not
//! answer, messages are acknowledged anyway: the next poll finds the work, and a requeue would
//! cause a hot loop.
//!
//! A task whose worker was lost twice may have killed it (a *quarantined task*,
//! docs/reliability.md#quarantine). It is claimed when this process has no other task in progress,
//! and no other task is claimed until it has ended. [`Quarantine`] divides the time fairly between
//! quarantined tasks and the others.

mod execute;
mod options;
mod quarantine;
mod reserve;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use broker::{Consumer, Delivery};
use db::PgPool;
use db::deadline::with_deadline;
use db::tasks::{self, ClaimRequest, FairnessCaps, HeldKey, LowWaterMarks};
use db::workers::{self, Worker};
use service::chain;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::lease::Leases;
use crate::refresh::{RefreshSchedule, Scope, rested};
use crate::{Handler, Task};
use execute::Execution;
pub use options::RunnerOptions;
use quarantine::Quarantine;

/// The runner's own connections, for claims and for releasing tasks. Heartbeats have one more.
const CONNECTIONS: u32 = 2;
/// Maximum time that a message stays unacknowledged while all slots are busy.
const HOLD_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of tasks that one poll makes ready. A poll that finds more is followed by another.
const PROMOTE_LIMIT: usize = 500;
/// First pause after a failed claim. Each pause doubles, up to the idle interval.
const FAILURE_PAUSE: Duration = Duration::from_millis(100);
/// The interval at which a runner reports that it claims. The threshold after which its queue counts as silent
/// (`CANVAS_WORKER_SILENT_SECONDS`) is at least twice as long.
const REPORT: Duration = Duration::from_secs(5);
/// The interval at which the depth of the queue is measured.
const MEASURE: Duration = Duration::from_secs(5);

/// How long only the reserve has to be free before it is claimed from. Short tasks end in the meantime, and then one claim for several
/// tasks of any key takes the place of one for each.
const RESERVE_PAUSE: Duration = Duration::from_millis(20);

/// Runs the tasks of one queue.
#[derive(Debug)]
pub struct Runner<H> {
    /// The runner's own connections.
    pool: PgPool,
    /// The connection pool of the handlers.
    shared_pool: PgPool,
    consumer: Consumer,
    handler: Arc<H>,
    options: RunnerOptions,
    leases: Leases,
    /// Runs in progress, with the fairness key and tenant that they count against.
    running: JoinSet<Option<Duration>>,
    running_keys: HashMap<Id, FairnessKeys>,
    /// The limit that was reached after the last claim.
    skipped: Skipped,
    /// The low-water marks of the queue, from the last refresh.
    marks: LowWaterMarks,
    refreshes: RefreshSchedule,
    quarantine: Quarantine,
    /// Unacknowledged messages, with the time of their arrival.
    messages: VecDeque<(Delivery, Instant)>,
    /// `true` if there is a reason to claim.
    look: bool,
    next_idle_look: Instant,
    /// The time at which this runner next reports that it claims.
    next_report: Instant,
    /// No poll for due tasks before this time.
    next_gathered_look: Instant,
    /// After a failed claim: no claim before this time, and the length of the next pause.
    not_before: Instant,
    pause: Duration,
    /// While only the reserve is free: no claim before this time.
    reserve_from: Option<Instant>,
}

/// The next step of the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Make due tasks ready.
    Promote,
    /// Claim tasks for all free slots.
    Claim,
    /// Claim one quarantined task.
    ClaimQuarantined,
    Wait,
}

impl<H: Handler> Runner<H> {
    /// A runner that is woken by `consumer` and claims through its own connections to the database of `pool`.
    pub fn new(pool: &PgPool, consumer: Consumer, handler: H, options: RunnerOptions) -> Self {
        let now = Instant::now();
        Self {
            leases: Leases::new(db::pool::dedicated_pool(pool, 1), &options),
            pool: db::pool::dedicated_pool(pool, CONNECTIONS),
            shared_pool: pool.clone(),
            consumer,
            handler: Arc::new(handler),
            options,
            running: JoinSet::new(),
            running_keys: HashMap::new(),
            skipped: Skipped::default(),
            marks: LowWaterMarks::default(),
            refreshes: RefreshSchedule::new(),
            quarantine: Quarantine::default(),
            messages: VecDeque::new(),
            look: true,
            next_idle_look: now,
            next_report: now,
            next_gathered_look: now,
            not_before: now,
            pause: FAILURE_PAUSE,
            reserve_from: None,
        }
    }

    /// Works until `stop`, then finishes the tasks in progress. At `abort`, unfinished runs are dropped and their tasks
    /// released.
    pub async fn run(mut self, stop: CancellationToken, abort: CancellationToken) {
        let leases = self.leases.clone();
        let (pool, queue) = (self.shared_pool.clone(), self.options.queue);
        tokio::select! {
            () = leases.beat() => {}
            () = measure(pool, queue) => {}
            () = self.work(&stop, &abort) => {}
        }
    }

    async fn work(&mut self, stop: &CancellationToken, abort: &CancellationToken) {
        while !stop.is_cancelled() {
            if Instant::now() >= self.next_report {
                self.report().await;
            }
            let now = Instant::now();
            self.reserve_from = self.open().is_none().then(|| self.reserve_from.unwrap_or(now + RESERVE_PAUSE));
            let is_free = self.is_free();
            let may_ask = now >= self.claims_from();
            match self.next_step(now, is_free && may_ask) {
                Step::Promote => self.promote().await,
                Step::Claim => self.claim(abort).await,
                Step::ClaimQuarantined => self.claim_quarantined(abort).await,
                Step::Wait => self.wait(stop, now, is_free, may_ask).await,
            }
        }
        self.wind_up().await;
    }

    fn next_step(&self, now: Instant, may_claim: bool) -> Step {
        if !may_claim {
            Step::Wait
        } else if now >= self.next_idle_look {
            Step::Promote
        } else if !self.quarantine.are_next() && (self.look || !self.messages.is_empty()) {
            Step::Claim
        } else if self.running.is_empty() && self.quarantine.wait() {
            Step::ClaimQuarantined
        } else {
            Step::Wait
        }
    }

    /// Waits for what can change the next step: the end of a run, a message, the next poll, or `stop`.
    async fn wait(&mut self, stop: &CancellationToken, now: Instant, is_free: bool, may_ask: bool) {
        let next_look = if may_ask { self.next_idle_look } else { self.claims_from() };
        let held_until = self.messages.front().map_or(now, |(_, since)| *since + HOLD_LIMIT);
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            Some(ended) = self.running.join_next_with_id() => {
                self.ended(ended);
                // One claim for all slots that are free by now.
                while let Some(ended) = self.running.try_join_next_with_id() {
                    self.ended(ended);
                }
            }
            delivery = self.consumer.next(), if may_ask && self.messages.len() < self.options.slots => {
                self.messages.push_back((delivery, Instant::now()));
                while self.messages.len() < self.options.slots && let Some(delivery) = self.consumer.try_next() {
                    self.messages.push_back((delivery, Instant::now()));
                }
            }
            () = sleep_until(next_look), if is_free => {}
            () = sleep_until(self.next_report) => {}
            () = sleep_until(held_until), if !self.messages.is_empty() => {
                self.acknowledge(usize::MAX).await;
                self.look = true;
            }
        }
    }

    /// Reports that this runner claims (docs/reference/status.md). The loop that claims does this, so that a loop that hangs is
    /// noticed; also while all slots are busy.
    async fn report(&mut self) {
        let worker = Worker {
            queue: self.options.queue,
            instance: &self.options.owner,
            version: env!("CARGO_PKG_VERSION"),
            slots: self.options.slots,
            busy: self.running.len(),
        };
        let reported = async { workers::report(&mut *self.pool.acquire().await?, &worker).await };
        if let Err(error) = with_deadline(reported).await {
            tracing::warn!(queue = %self.options.queue, error = chain(&error), "cannot report that this worker claims");
        }
        self.next_report = Instant::now() + REPORT;
    }

    fn free(&self) -> usize {
        self.options.slots - self.running.len()
    }

    /// The number of free slots that tasks of any key may take; `None` while only the reserve is free.
    fn open(&self) -> Option<usize> {
        self.options.reserve().open(self.free(), !self.skipped.fairness_keys.is_empty())
    }

    /// The time from which tasks may be claimed.
    fn claims_from(&self) -> Instant {
        self.reserve_from.map_or(self.not_before, |from| from.max(self.not_before))
    }

    /// Returns `true` if tasks may be claimed: not while a quarantined task runs, nor while the next one waits for an idle process.
    fn is_free(&self) -> bool {
        self.free() > 0 && !self.quarantine.is_running() && (self.running.is_empty() || !self.quarantine.are_next())
    }

    /// The idle poll: makes due tasks and those with expired leases ready, which is a reason to claim.
    async fn promote(&mut self) {
        let queue = self.options.queue;
        if let Some(scope) = self.refreshes.due() {
            self.refresh(scope).await;
        }
        let pauses = self.options.pauses_after_loss();
        let promoted = async {
            let mut conn = self.pool.acquire().await?;
            tasks::promote(&mut conn, queue, PROMOTE_LIMIT, &self.marks, &pauses).await
        };
        match with_deadline(promoted).await {
            Ok(promoted) => {
                if promoted.expired > 0 {
                    metrics::counter!("canvas_leases_expired_total", "queue" => queue.as_str())
                        .increment(promoted.expired);
                    tracing::warn!(%queue, tasks = promoted.expired, "took over tasks whose lease had expired");
                }
                let limit = PROMOTE_LIMIT as u64;
                let pause = if promoted.due >= limit || promoted.expired >= limit {
                    Duration::ZERO
                } else {
                    self.options.idle_claim.min(promoted.next_due.unwrap_or(Duration::MAX)).max(self.options.gather)
                };
                let now = Instant::now();
                (self.next_idle_look, self.next_gathered_look) = (now + pause, now + self.options.gather);
                self.look = true;
                self.quarantine.seen(promoted.quarantined);
            }
            Err(error) => self.claim_failed(&error),
        }
    }

    /// Determines the low-water marks of the queue. A refresh that fails is repeated later and does not delay a claim.
    async fn refresh(&mut self, scope: Scope) {
        let (queue, began) = (self.options.queue, Instant::now());
        let refreshed = async {
            tasks::refresh_low_water(&mut *self.pool.acquire().await?, queue, &self.marks, scope == Scope::Whole).await
        };
        match with_deadline(refreshed).await {
            Ok(marks) => self.marks = marks,
            Err(error) => tracing::warn!(%queue, error = chain(&error), "cannot find the first task of the queue"),
        }
        self.refreshes.made(scope, began);
    }

    /// Claims tasks for all free slots, acknowledges messages, and starts the tasks.
    async fn claim(&mut self, abort: &CancellationToken) {
        let open = self.open();
        if open.is_none() {
            metrics::counter!("canvas_reserve_refused_total", "queue" => self.options.queue.as_str()).increment(1);
        }
        self.reserve_from = None;
        let limit = open.unwrap_or_else(|| self.free());
        let before = self.in_flight();
        let Some(claimed) = self.take(limit, false, before.as_ref().map(InFlight::caps), abort).await else { return };
        // A full claim means that there may be more tasks. So does a fairness key or tenant that has just
        // reached its cap, because the tasks behind it were not considered.
        self.skipped = before.as_ref().map(InFlight::skipped).unwrap_or_default();
        let skipped = self.in_flight().as_ref().map(InFlight::skipped).unwrap_or_default();
        self.look = claimed == limit || skipped.names_more_than(&self.skipped);
        self.skipped = skipped;
        // Acknowledges as many messages as tasks were claimed, so that the other messages stay for
        // other workers. Acknowledges all of them if no tasks are left.
        self.acknowledge(if self.look { claimed } else { usize::MAX }).await;
        if claimed > 0 {
            crate::failpoint!("task.acked");
        }
    }

    /// Claims a quarantined task, if there still is one, while no other task is in progress.
    async fn claim_quarantined(&mut self, abort: &CancellationToken) {
        let Some(claimed) = self.take(1, true, None, abort).await else { return };
        if claimed > 0 {
            self.quarantine.began();
        } else {
            self.quarantine.seen(false);
        }
        self.acknowledge(claimed).await;
    }

    /// Claims and starts up to `limit` tasks. Returns their number, or `None` when the database did not answer.
    async fn take(
        &mut self,
        limit: usize,
        quarantined: bool,
        caps: Option<FairnessCaps<'_>>,
        abort: &CancellationToken,
    ) -> Option<usize> {
        let RunnerOptions { queue, lease, ref owner, .. } = self.options;
        let wanted = ClaimRequest { queue, limit, quarantined, caps, lease, owner };
        let asked_at = Instant::now();
        let claims = async { tasks::claim(&mut *self.pool.acquire().await?, &wanted).await };
        let claims = match with_deadline(claims).await {
            Ok(claims) => claims,
            Err(error) => {
                self.acknowledge(usize::MAX).await;
                self.claim_failed(&error);
                return None;
            }
        };
        self.pause = FAILURE_PAUSE;
        let claimed = claims.len();
        let queue = queue.as_str();
        match claimed {
            0 => metrics::counter!("canvas_claims_empty_total", "queue" => queue).increment(1),
            _ => metrics::counter!("canvas_claims_total", "queue" => queue).increment(claimed as u64),
        }

        let kept: Vec<(Task, _)> = claims
            .into_iter()
            .map(|claim| {
                metrics::histogram!("canvas_task_wait_seconds", "queue" => queue).record(claim.waited);
                let kept = self.leases.keep(claim.id, claim.lease_token, asked_at, claim.cancel_requested);
                (Task::new(claim, quarantined), kept)
            })
            .collect();
        if claimed > 0 {
            crate::failpoint!("task.claimed");
        }
        for (task, kept) in kept {
            self.start(task, kept, abort);
        }
        Some(claimed)
    }

    fn start(&mut self, task: Task, kept: crate::lease::Kept, abort: &CancellationToken) {
        let keys = FairnessKeys { fairness_key: task.fairness_key.clone(), tenant: task.tenant.clone() };
        let retry_pause = self.options.pause_after(task.claims);
        let execution = Execution {
            task,
            kept,
            pool: self.pool.clone(),
            queue: self.options.queue,
            retry_pause,
            run_limit: self.options.run_limit,
            abort: abort.clone(),
        };
        let handle = self.running.spawn(execution.run(self.handler.clone()));
        self.running_keys.insert(handle.id(), keys);
        self.count_busy();
    }

    fn ended(&mut self, ended: Result<(Id, Option<Duration>), JoinError>) {
        let id = match ended {
            Ok((id, due_in)) => {
                if let Some(due_in) = due_in {
                    let due = (Instant::now() + due_in).max(self.next_gathered_look);
                    self.next_idle_look = self.next_idle_look.min(due);
                }
                id
            }
            Err(error) => {
                // Panics of handlers are caught, so this is a bug in the runner. The lease will
                // expire.
                tracing::error!(error = chain(&error), "the runner panicked during a task");
                error.id()
            }
        };
        // Nothing was claimed while the quarantined task ran.
        self.look |= self.quarantine.ended();
        self.running_keys.remove(&id);
        // Fairness keys and tenants at their cap were skipped until now.
        let skipped = self.in_flight().as_ref().map(InFlight::skipped).unwrap_or_default();
        self.look |= self.skipped.names_more_than(&skipped);
        self.count_busy();
    }

    /// Counters of tasks in flight, by fairness key and by tenant; `None` when neither has a cap now.
    fn in_flight(&self) -> Option<InFlight> {
        let RunnerOptions { fairness_key_cap, tenant_cap, .. } = self.options;
        // In the reserve, keys that hold a slot are full.
        let fairness_key_cap = if self.open().is_none() { Some(1) } else { fairness_key_cap };
        (fairness_key_cap.is_some() || tenant_cap.is_some()).then(|| {
            let fairness_key_cap = fairness_key_cap.unwrap_or(usize::MAX);
            let held = tally(self.running_keys.values().map(|keys| keys.fairness_key.as_str()));
            let held = held.into_iter().map(|(name, held)| {
                let cap = self.handler.fairness_key_cap(&name).unwrap_or(fairness_key_cap);
                HeldKey { name, held, cap }
            });
            InFlight {
                fairness_key_cap,
                fairness_keys: held.collect(),
                tenant_cap: tenant_cap.unwrap_or(usize::MAX),
                tenants: tally(self.running_keys.values().filter_map(|keys| keys.tenant.as_deref())),
            }
        })
    }

    /// Acknowledges up to `count` messages, oldest first.
    async fn acknowledge(&mut self, count: usize) {
        let count = count.min(self.messages.len());
        let acks = self.messages.drain(..count).map(|(delivery, _)| delivery.ack());
        futures_util::future::join_all(acks).await;
    }

    /// Handles a failure of the database: pauses, and then claims without waiting for a message.
    fn claim_failed(&mut self, error: &db::Error) {
        tracing::warn!(queue = %self.options.queue, error = chain(error), "cannot claim tasks");
        self.look = true;
        self.not_before = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(self.options.idle_claim.max(FAILURE_PAUSE));
    }

    /// Waits for the runs in progress, which end by themselves at the abort stage. Unused messages
    /// are acknowledged: idle polls of other workers find the work, and the broker would count a
    /// returned message as a failed delivery.
    async fn wind_up(&mut self) {
        while let Some(delivery) = self.consumer.try_next() {
            self.messages.push_back((delivery, Instant::now()));
        }
        self.acknowledge(usize::MAX).await;
        self.consumer.close().await;
        while let Some(ended) = self.running.join_next_with_id().await {
            self.ended(ended);
        }
    }

    fn count_busy(&self) {
        let labels = [("queue", self.options.queue.as_str())];
        metrics::gauge!("canvas_slots_busy", &labels).set(self.running.len() as f64);
    }
}

/// The fairness key and tenant that a run counts against.
#[derive(Debug)]
struct FairnessKeys {
    fairness_key: String,
    tenant: Option<String>,
}

/// Counters of tasks in flight, with their caps.
struct InFlight {
    fairness_key_cap: usize,
    fairness_keys: Vec<HeldKey>,
    tenant_cap: usize,
    tenants: Vec<(String, usize)>,
}

impl InFlight {
    fn caps(&self) -> FairnessCaps<'_> {
        FairnessCaps {
            cap: self.fairness_key_cap,
            held: &self.fairness_keys,
            tenant_cap: self.tenant_cap,
            tenants: &self.tenants,
        }
    }

    fn skipped(&self) -> Skipped {
        let caps = self.caps();
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        Skipped { fairness_keys: owned(caps.full_keys()), tenants: owned(caps.full_tenants()) }
    }
}

/// The fairness keys and tenants that are full, whose tasks a claim skips.
#[derive(Debug, Default)]
struct Skipped {
    fairness_keys: HashSet<String>,
    tenants: HashSet<String>,
}

impl Skipped {
    fn names_more_than(&self, other: &Self) -> bool {
        !self.fairness_keys.is_subset(&other.fairness_keys) || !self.tenants.is_subset(&other.tenants)
    }
}

/// Counts how often each name occurs.
fn tally<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, usize)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

async fn measure(pool: PgPool, queue: domain::message::Queue) {
    let labels = [("queue", queue.as_str())];
    loop {
        let began = Instant::now();
        let stats = async { tasks::stats(&mut *pool.acquire().await?, queue).await };
        // On failure the gauges keep their values. Readiness reports the database.
        if let Ok(stats) = with_deadline(stats).await {
            metrics::gauge!("canvas_queue_ready", &labels).set(stats.ready as f64);
            metrics::gauge!("canvas_queue_scheduled", &labels).set(stats.scheduled as f64);
            // The name of release 0.1, for dashboards that still read it. The next release drops it.
            metrics::gauge!("canvas_queue_parked", &labels).set(stats.scheduled as f64);
            metrics::gauge!("canvas_queue_leased", &labels).set(stats.leased as f64);
            metrics::gauge!("canvas_queue_age_seconds", &labels)
                .set(stats.oldest_ready.unwrap_or_default().as_secs_f64());
        }
        tokio::time::sleep(rested(MEASURE, began.elapsed())).await;
    }
}
