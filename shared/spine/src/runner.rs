//! The worker loop: wake-up → claim for all free slots → acknowledge, and run under leases → decisions.
//!
//! A wake-up says "look into Postgres" and nothing more. Whenever there is a free slot and a reason to look, one statement
//! claims tasks for *all* free slots; which ones is Postgres's choice, fair between lanes. Reasons to look are a message,
//! the idle interval (lost messages, due times, expired leases), a lane that has room again, and a last look that came back
//! full, so that a backlog drains at full speed even if no message announces it.
//!
//! Messages are acknowledged once the claim is made, not when the work is done: from there on the lease protects the task. While all
//! slots are busy messages wait at the broker, as many as there are slots; none is kept longer than [`HOLD_LIMIT`], because
//! RabbitMQ closes a channel on which one stays unacknowledged for half an hour. When the database cannot be asked,
//! messages are acknowledged all the same: the next look finds the work, and a requeue would be a hot loop.
//!
//! Where a task has lost two workers, it may be what killed them (a *suspect*). It is claimed when nothing else is in hand
//! here, and nothing else is claimed until it has ended; [`Suspects`] sees to it that its time comes, and that of the others.

mod execute;
mod options;
mod suspects;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use broker::{Consumer, Delivery};
use db::PgPool;
use db::pool::limited;
use db::tasks::{self, Floors, LaneCap, Wanted};
use service::chain;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::lease::Leases;
use crate::survey::{Scope, Surveys, rested};
use crate::{Handler, Task};
use execute::Execution;
pub use options::RunnerOptions;
use suspects::Suspects;

/// Connections of the spine's own, beside the handlers' pool, for claims and for the fates of tasks. Heartbeats have one more.
const CONNECTIONS: u32 = 2;
/// How long a message may stay unacknowledged while all slots are busy.
const HOLD_LIMIT: Duration = Duration::from_secs(10);
/// Tasks that one look makes ready at most; a look that finds more is followed by another.
const PROMOTE_LIMIT: usize = 500;
/// First pause after a failed claim; the pauses double up to the idle interval.
const TROUBLE_PAUSE: Duration = Duration::from_millis(100);
/// How often the depth of the queue is measured.
const MEASURE: Duration = Duration::from_secs(5);

/// Runs the tasks of one queue.
#[derive(Debug)]
pub struct Runner<H> {
    /// The spine's own connections.
    pool: PgPool,
    /// The handlers'.
    shared_pool: PgPool,
    consumer: Consumer,
    handler: Arc<H>,
    options: RunnerOptions,
    leases: Leases,
    /// Runs under way, with the places they take.
    running: JoinSet<Option<Duration>>,
    places: HashMap<Id, Place>,
    /// Where the queue began when it was last looked.
    floors: Floors,
    surveys: Surveys,
    suspects: Suspects,
    /// Messages in hand, with the time they came.
    messages: VecDeque<(Delivery, Instant)>,
    /// Whether there is a reason to claim.
    look: bool,
    next_idle_look: Instant,
    /// Not before this time, whatever is due.
    next_gathered_look: Instant,
    /// After a failed claim: not before this time, and how long the next pause is.
    not_before: Instant,
    pause: Duration,
}

impl<H: Handler> Runner<H> {
    /// A runner that is woken by `consumer` and claims through connections of its own beside `pool`.
    pub fn new(pool: &PgPool, consumer: Consumer, handler: H, options: RunnerOptions) -> Self {
        let now = Instant::now();
        Self {
            leases: Leases::new(db::pool::beside(pool, 1), &options),
            pool: db::pool::beside(pool, CONNECTIONS),
            shared_pool: pool.clone(),
            consumer,
            handler: Arc::new(handler),
            options,
            running: JoinSet::new(),
            places: HashMap::new(),
            floors: Floors::default(),
            surveys: Surveys::new(),
            suspects: Suspects::default(),
            messages: VecDeque::new(),
            look: true,
            next_idle_look: now,
            next_gathered_look: now,
            not_before: now,
            pause: TROUBLE_PAUSE,
        }
    }

    /// Works until `stop`, then finishes what is in hand; from `abort` on, what is not finished is dropped and handed back.
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
            let now = Instant::now();
            let is_free = self.is_free();
            let may_ask = now >= self.not_before;
            if is_free && may_ask && now >= self.next_idle_look {
                self.promote().await;
                continue;
            }
            if is_free && may_ask && !self.suspects.are_next() && (self.look || !self.messages.is_empty()) {
                self.claim(abort).await;
                continue;
            }
            if is_free && may_ask && self.running.is_empty() && self.suspects.wait() {
                self.claim_suspect(abort).await;
                continue;
            }
            let next_look = if may_ask { self.next_idle_look } else { self.not_before };
            let held_until = self.messages.front().map_or(now, |(_, since)| *since + HOLD_LIMIT);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = self.running.join_next_with_id() => {
                    self.ended(ended);
                    // One claim for all the places that are free by now.
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
                () = sleep_until(held_until), if !self.messages.is_empty() => {
                    self.acknowledge(usize::MAX).await;
                    self.look = true;
                }
            }
        }
        self.wind_up().await;
    }

    fn free(&self) -> usize {
        self.options.slots - self.running.len()
    }

    /// Whether there is anything to claim for: not beside a suspect, nor while the next is to have the process for itself.
    fn is_free(&self) -> bool {
        self.free() > 0 && !self.suspects.is_in_hand() && (self.running.is_empty() || !self.suspects.are_next())
    }

    /// Makes ready what is due or whose lease has expired, and gives a reason to claim: the idle look.
    async fn promote(&mut self) {
        let queue = self.options.queue;
        if let Some(scope) = self.surveys.due() {
            self.survey(scope).await;
        }
        let pauses = self.options.pauses_after_loss();
        let promoted = async {
            let mut conn = self.pool.acquire().await?;
            tasks::promote(&mut conn, queue, PROMOTE_LIMIT, &self.floors, &pauses).await
        };
        match limited(promoted).await {
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
                self.suspects.seen(promoted.suspects);
            }
            Err(error) => self.trouble(&error),
        }
    }

    /// Looks where the queue begins. What comes to nothing is made later, and holds up no claim.
    async fn survey(&mut self, scope: Scope) {
        let (queue, began) = (self.options.queue, Instant::now());
        let surveyed =
            async { tasks::survey(&mut *self.pool.acquire().await?, queue, &self.floors, scope == Scope::Whole).await };
        match limited(surveyed).await {
            Ok(floors) => self.floors = floors,
            Err(error) => tracing::warn!(%queue, error = chain(&error), "cannot see where the queue begins"),
        }
        self.surveys.made(scope, began);
    }

    /// Claims tasks for all free slots, acknowledges, and starts them.
    async fn claim(&mut self, abort: &CancellationToken) {
        let free = self.free();
        let before = self.in_flight();
        let Some(claimed) = self.take(free, false, before.as_ref().map(InFlight::caps), abort).await else { return };
        // A full answer means that there may be more. So does a lane or a tenant that has just reached its cap: what was passed
        // over behind it was not looked at.
        let full = |in_flight: Option<&InFlight>| in_flight.map_or(0, InFlight::full);
        self.look = claimed == free || full(self.in_flight().as_ref()) > full(before.as_ref());
        // As many messages as tasks, so that the others are still there for other workers; all, once nothing is left.
        self.acknowledge(if self.look { claimed } else { usize::MAX }).await;
        if claimed > 0 {
            crate::failpoint!("task.acked");
        }
    }

    /// Claims a suspect, if there still is one, with nothing else in hand.
    async fn claim_suspect(&mut self, abort: &CancellationToken) {
        let Some(claimed) = self.take(1, true, None, abort).await else { return };
        if claimed > 0 {
            self.suspects.began();
        } else {
            self.suspects.seen(false);
        }
        self.acknowledge(claimed).await;
    }

    /// Claims and starts up to `limit` tasks; how many, unless the database could not be asked.
    async fn take(
        &mut self,
        limit: usize,
        suspects: bool,
        lanes: Option<LaneCap<'_>>,
        abort: &CancellationToken,
    ) -> Option<usize> {
        let RunnerOptions { queue, lease, ref owner, .. } = self.options;
        let wanted = Wanted { queue, limit, suspects, lanes, lease, owner };
        let asked_at = Instant::now();
        let claims = async { tasks::claim(&mut *self.pool.acquire().await?, &wanted).await };
        let claims = match limited(claims).await {
            Ok(claims) => claims,
            Err(error) => {
                self.acknowledge(usize::MAX).await;
                self.trouble(&error);
                return None;
            }
        };
        self.pause = TROUBLE_PAUSE;
        let claimed = claims.len();
        let queue = queue.as_str();
        match claimed {
            0 => metrics::counter!("canvas_claims_empty_total", "queue" => queue).increment(1),
            _ => metrics::counter!("canvas_claims_total", "queue" => queue).increment(claimed as u64),
        }

        let kept: Vec<(Task, Option<String>, _)> = claims
            .into_iter()
            .map(|mut claim| {
                metrics::histogram!("canvas_task_wait_seconds", "queue" => queue).record(claim.waited);
                let kept = self.leases.keep(claim.id, claim.lease_token, asked_at, claim.cancel_requested);
                let tenant = claim.tenant.take();
                (Task::from(claim), tenant, kept)
            })
            .collect();
        if claimed > 0 {
            crate::failpoint!("task.claimed");
        }
        for (task, tenant, kept) in kept {
            self.start(task, tenant, kept, abort);
        }
        Some(claimed)
    }

    fn start(&mut self, task: Task, tenant: Option<String>, kept: crate::lease::Kept, abort: &CancellationToken) {
        let place = Place { lane: task.lane.clone(), tenant };
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
        self.places.insert(handle.id(), place);
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
                // Handlers' panics are caught; this one is the spine's own. The lease will expire.
                tracing::error!(error = chain(&error), "a task's run ended badly");
                error.id()
            }
        };
        // Nothing was claimed beside a suspect.
        self.look |= self.suspects.ended();
        // What was at its cap was passed over until now.
        let before = self.in_flight();
        self.places.remove(&id);
        let full = |in_flight: Option<InFlight>| in_flight.map_or(0, |in_flight| in_flight.full());
        self.look |= full(self.in_flight()) < full(before);
        self.count_busy();
    }

    /// What is in flight, by lane and by tenant; nothing where neither has a cap.
    fn in_flight(&self) -> Option<InFlight> {
        let RunnerOptions { lane_cap, tenant_cap, .. } = self.options;
        (lane_cap.is_some() || tenant_cap.is_some()).then(|| InFlight {
            lane_cap: lane_cap.unwrap_or(usize::MAX),
            lanes: tally(self.places.values().map(|place| place.lane.as_str())),
            tenant_cap: tenant_cap.unwrap_or(usize::MAX),
            tenants: tally(self.places.values().filter_map(|place| place.tenant.as_deref())),
        })
    }

    /// Acknowledges up to `count` messages, oldest first.
    async fn acknowledge(&mut self, count: usize) {
        let count = count.min(self.messages.len());
        let acks = self.messages.drain(..count).map(|(delivery, _)| delivery.ack());
        futures_util::future::join_all(acks).await;
    }

    /// The database could not be asked: not again for a while, and then without a message.
    fn trouble(&mut self, error: &db::Error) {
        tracing::warn!(queue = %self.options.queue, error = chain(error), "cannot claim tasks");
        self.look = true;
        self.not_before = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(self.options.idle_claim.max(TROUBLE_PAUSE));
    }

    /// Waits for the runs in hand, which end by themselves at the abort stage. Unused messages are acknowledged: the others'
    /// idle looks find the work, while a message that is given back is counted by the broker as one more failed delivery.
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

/// What a run counts against.
#[derive(Debug)]
struct Place {
    lane: String,
    tenant: Option<String>,
}

/// What is in flight, beside the caps that it is held against.
struct InFlight {
    lane_cap: usize,
    lanes: Vec<(String, usize)>,
    tenant_cap: usize,
    tenants: Vec<(String, usize)>,
}

impl InFlight {
    fn caps(&self) -> LaneCap<'_> {
        LaneCap { cap: self.lane_cap, held: &self.lanes, tenant_cap: self.tenant_cap, tenants: &self.tenants }
    }

    /// How many lanes and tenants are passed over.
    fn full(&self) -> usize {
        let caps = self.caps();
        caps.full_lanes().len() + caps.full_tenants().len()
    }
}

/// How often each name occurs.
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
        // Without an answer the gauges keep what they had; readiness tells of the database.
        if let Ok(stats) = limited(stats).await {
            metrics::gauge!("canvas_queue_ready", &labels).set(stats.ready as f64);
            metrics::gauge!("canvas_queue_parked", &labels).set(stats.parked as f64);
            metrics::gauge!("canvas_queue_leased", &labels).set(stats.leased as f64);
            metrics::gauge!("canvas_queue_age_seconds", &labels)
                .set(stats.oldest_ready.unwrap_or_default().as_secs_f64());
        }
        tokio::time::sleep(rested(MEASURE, began.elapsed())).await;
    }
}
