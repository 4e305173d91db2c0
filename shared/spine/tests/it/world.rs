//! A database and queues of a test's own, and handlers that do what the test says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use broker::{Config, Consumer, Message, Publisher};
use db::PgPool;
use db::tasks::{NewTask, QueueStats};
use domain::message::{Queue, TaskKind};
use futures_util::future::BoxFuture;
use spine::{Decision, Handler, Lease, Nudge, Outcome, Relay, Runner, RunnerOptions, Task};
use testkit::{TestDatabase, amqp_prefix, amqp_url, wait_for};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// For everything that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct World {
    pub database: TestDatabase,
    prefix: String,
}

impl World {
    pub async fn new() -> Self {
        Self { database: TestDatabase::new().await, prefix: amqp_prefix() }
    }

    pub fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    pub fn broker(&self, url: &str) -> Config {
        Config::new(url, &self.prefix, "spine test").expect("a URL")
    }

    /// Runs a relay to the broker at `url`.
    pub fn relay_to(&self, url: &str) -> (Running, Nudge) {
        let relay = Relay::new(self.pool(), Publisher::start(self.broker(url)));
        let nudge = relay.nudge();
        let stop = CancellationToken::new();
        let task = tokio::spawn(relay.run(stop.clone()));
        (Running { stop, abort: CancellationToken::new(), task }, nudge)
    }

    /// Runs a relay.
    pub fn relay(&self) -> (Running, Nudge) {
        self.relay_to(&amqp_url())
    }

    /// Runs a runner on `pool`, woken by the broker at `url`.
    pub fn runner_on(&self, pool: &PgPool, url: &str, handler: Script, options: RunnerOptions) -> Running {
        let prefetch = u16::try_from(options.slots).expect("few slots");
        let consumer = Consumer::start(self.broker(url), Queue::Image, prefetch);
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let runner = Runner::new(pool, consumer, handler, options);
        let task = tokio::spawn(runner.run(stop.clone(), abort.clone()));
        Running { stop, abort, task }
    }

    /// Runs a runner.
    pub fn runner(&self, handler: Script, options: RunnerOptions) -> Running {
        self.runner_on(self.pool(), &amqp_url(), handler, options)
    }

    pub async fn enqueue(&self, lane: &str) -> Uuid {
        self.enqueue_many(lane, 1).await[0]
    }

    /// Commits `count` tasks at once.
    pub async fn enqueue_many(&self, lane: &str, count: usize) -> Vec<Uuid> {
        let mut transaction = self.pool().begin().await.expect("begins");
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            let id = Uuid::now_v7();
            let traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
            let task = NewTask { id, queue: Queue::Image, kind: TaskKind::Action, lane, due_in: None, traceparent };
            db::tasks::enqueue(&mut transaction, &task).await.expect("enqueues");
            ids.push(id);
        }
        transaction.commit().await.expect("commits");
        ids
    }

    pub async fn stats(&self) -> QueueStats {
        let mut conn = self.pool().acquire().await.expect("connects");
        db::tasks::stats(&mut conn, Queue::Image).await.expect("counts")
    }

    pub async fn outbox_rows(&self) -> i64 {
        let mut conn = self.pool().acquire().await.expect("connects");
        db::outbox::stats(&mut conn).await.expect("counts").rows
    }

    pub async fn until_no_task_is_left(&self) {
        wait_for("the end of all tasks", PATIENCE, async || {
            (self.stats().await == QueueStats::default()).then_some(())
        })
        .await;
    }

    pub async fn until_the_outbox_is_empty(&self) {
        wait_for("an empty outbox", PATIENCE, async || (self.outbox_rows().await == 0).then_some(())).await;
    }

    /// Sends a wake-up past the outbox.
    pub async fn wake(&self, task: Uuid, times: usize) {
        let publisher = Publisher::start(self.broker(&amqp_url()));
        publisher.connected().wait_for(|connected| *connected).await.expect("connects");
        let message = Message { queue: Queue::Image, task, traceparent: None };
        let results = publisher.publish(&vec![message; times]).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        publisher.close().await;
    }
}

/// Deletes the queues, on a thread of its own, because the test's runtime may be ending.
impl Drop for World {
    fn drop(&mut self) {
        let config = self.broker(&amqp_url());
        let cleaned = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            runtime.block_on(broker::remove(&config)).map_err(std::io::Error::other)
        });
        // Best effort: a test that stopped the broker is no failure.
        let _ = cleaned.join();
    }
}

/// A relay or runner under way.
pub struct Running {
    stop: CancellationToken,
    abort: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// Lets it finish.
    pub async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("ends in time").expect("ends well");
    }

    /// Ends it as SIGKILL would: what it held stays leased.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err_and(|error| error.is_cancelled()), "it was running");
    }

    /// Both stages at once.
    pub async fn abort(self) {
        self.abort.cancel();
        self.stop().await;
    }
}

/// Options that leave nothing to idle looks unless a test asks for them.
pub fn options(slots: usize) -> RunnerOptions {
    RunnerOptions { idle_claim: Duration::from_secs(3600), ..RunnerOptions::new(Queue::Image, slots) }
}

/// The same with frequent idle looks.
pub fn looking(slots: usize) -> RunnerOptions {
    RunnerOptions { idle_claim: Duration::from_millis(50), ..options(slots) }
}

type Step = Arc<dyn Fn(Task, Lease) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// A handler that does what the test says.
#[derive(Clone)]
pub struct Script {
    run: Step,
    exhausted: Step,
}

impl Script {
    pub fn new<F>(run: impl Fn(Task, Lease) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let run: Step = Arc::new(move |task, lease| Box::pin(run(task, lease)));
        Self { exhausted: run.clone(), run }
    }

    pub fn when_exhausted<F>(mut self, exhausted: impl Fn(Task, Lease) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        self.exhausted = Arc::new(move |task, lease| Box::pin(exhausted(task, lease)));
        self
    }

    /// Settles every task at once and notes it.
    pub fn settling(pool: &PgPool, log: &Log) -> Self {
        let (pool, log) = (pool.clone(), log.clone());
        Self::new(move |task, lease| {
            log.note(&task);
            let pool = pool.clone();
            async move { settle(&pool, &task, &lease).await }
        })
    }
}

impl Handler for Script {
    async fn run(&self, task: &Task, lease: &Lease) -> Outcome {
        (self.run)(task.clone(), lease.clone()).await
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        (self.exhausted)(task.clone(), lease.clone()).await
    }
}

/// What a handler does in the end.
pub async fn settle(pool: &PgPool, task: &Task, lease: &Lease) -> Outcome {
    let mut conn = pool.acquire().await?;
    let settled = db::tasks::settle(&mut conn, task.id, lease.token()).await?;
    Ok(if settled { Decision::Done } else { Decision::Stale })
}

/// The tasks that were begun, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<(Uuid, String)>>>);

impl Log {
    pub fn note(&self, task: &Task) {
        self.0.lock().expect("whole").push((task.id, task.lane.clone()));
    }

    pub fn ids(&self) -> Vec<Uuid> {
        self.0.lock().expect("whole").iter().map(|(id, _)| *id).collect()
    }

    pub fn lanes(&self) -> Vec<String> {
        self.0.lock().expect("whole").iter().map(|(_, lane)| lane.clone()).collect()
    }

    pub fn len(&self) -> usize {
        self.0.lock().expect("whole").len()
    }

    pub async fn until(&self, count: usize) {
        wait_for("tasks to begin", PATIENCE, async || (self.len() >= count).then_some(())).await;
    }
}
