//! Test fixture: a database and queues for a single test, and handlers that the test controls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use broker::{Config, Consumer, Publisher};
use db::PgPool;
use db::tasks::{NewTask, QueueStats};
use domain::message::{Queue, TaskKind};
use futures_util::future::BoxFuture;
use taskqueue::{Decision, Handler, HandlerResult, Lease, Runner, RunnerOptions, Task, Waker};
use testkit::{TestDatabase, amqp_prefix, amqp_url, wait_for};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The deadline for anything that is expected to happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Harness {
    pub database: TestDatabase,
    prefix: String,
}

impl Harness {
    pub async fn new() -> Self {
        Self { database: TestDatabase::new().await, prefix: amqp_prefix() }
    }

    pub fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    pub fn broker(&self, url: &str) -> Config {
        Config::new(url, &self.prefix, "taskqueue test").expect("a URL")
    }

    /// Runs a publisher to the broker at `url`.
    pub fn publisher_to(&self, url: &str) -> (Running, Waker) {
        let (waker, publisher) = Publisher::new(self.broker(url));
        let stop = CancellationToken::new();
        let task = tokio::spawn(publisher.run(stop.clone()));
        (Running { stop, abort: CancellationToken::new(), task }, waker)
    }

    /// Runs a publisher.
    pub fn publisher(&self) -> (Running, Waker) {
        self.publisher_to(&amqp_url())
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

    pub fn runner(&self, handler: Script, options: RunnerOptions) -> Running {
        self.runner_on(self.pool(), &amqp_url(), handler, options)
    }

    pub async fn enqueue(&self, fairness_key: &str) -> Uuid {
        self.enqueue_many(fairness_key, 1).await[0]
    }

    /// Commits `count` tasks at once.
    pub async fn enqueue_many(&self, fairness_key: &str, count: usize) -> Vec<Uuid> {
        let mut transaction = self.pool().begin().await.expect("begins");
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            let id = Uuid::now_v7();
            let traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
            let task =
                NewTask { id, queue: Queue::Image, kind: TaskKind::Action, fairness_key, due_in: None, traceparent };
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

    pub async fn until_no_task_is_left(&self) {
        wait_for("the end of all tasks", PATIENCE, async || {
            (self.stats().await == QueueStats::default()).then_some(())
        })
        .await;
    }

    /// Sends wake-up messages of a task.
    pub async fn wake(&self, task: Uuid, times: usize) {
        let (waker, publisher) = Publisher::new(self.broker(&amqp_url()));
        let mut connected = publisher.connected();
        let stop = CancellationToken::new();
        let running = tokio::spawn(publisher.run(stop.clone()));
        connected.wait_for(|connected| *connected).await.expect("connects");
        (0..times).for_each(|_| waker.wake(Queue::Image, task));
        // It writes what waits before it ends.
        stop.cancel();
        running.await.expect("ends");
    }
}

/// Deletes the queues on a separate thread, because the test's runtime may be shutting down.
impl Drop for Harness {
    fn drop(&mut self) {
        let config = self.broker(&amqp_url());
        let cleaned = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            runtime.block_on(broker::remove(&config)).map_err(std::io::Error::other)
        });
        // Best effort: a test that stopped the broker does not fail here.
        let _ = cleaned.join();
    }
}

/// A publisher or runner in progress.
pub struct Running {
    stop: CancellationToken,
    abort: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// Stops it and lets it finish.
    pub async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("ends in time").expect("ends well");
    }

    /// Aborts it without cleanup, like SIGKILL: its tasks stay leased.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err_and(|error| error.is_cancelled()), "it was running");
    }

    /// Runs both stages of the shutdown at once.
    pub async fn abort(self) {
        self.abort.cancel();
        self.stop().await;
    }
}

/// Options whose idle polls are too rare to find anything during a test.
pub fn options(slots: usize) -> RunnerOptions {
    RunnerOptions { idle_claim: Duration::from_secs(3600), ..RunnerOptions::new(Queue::Image, slots) }
}

/// [`options`] with frequent idle polls.
pub fn looking(slots: usize) -> RunnerOptions {
    RunnerOptions { idle_claim: Duration::from_millis(50), ..options(slots) }
}

type Step = Arc<dyn Fn(Task, Lease) -> BoxFuture<'static, HandlerResult> + Send + Sync>;

/// A handler that the test controls.
#[derive(Clone)]
pub struct Script {
    run: Step,
    exhausted: Step,
}

impl Script {
    pub fn new<F>(run: impl Fn(Task, Lease) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        let run: Step = Arc::new(move |task, lease| Box::pin(run(task, lease)));
        Self { exhausted: run.clone(), run }
    }

    pub fn when_exhausted<F>(mut self, exhausted: impl Fn(Task, Lease) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        self.exhausted = Arc::new(move |task, lease| Box::pin(exhausted(task, lease)));
        self
    }

    /// Settles every task at once and records it.
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
    async fn run(&self, task: &Task, lease: &Lease) -> HandlerResult {
        (self.run)(task.clone(), lease.clone()).await
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> HandlerResult {
        (self.exhausted)(task.clone(), lease.clone()).await
    }
}

/// Settles the task and returns the decision.
pub async fn settle(pool: &PgPool, task: &Task, lease: &Lease) -> HandlerResult {
    let mut conn = pool.acquire().await?;
    let settled = db::tasks::settle(&mut conn, task.id, lease.token()).await?;
    Ok(if settled { Decision::Done } else { Decision::Stale })
}

/// The tasks that were begun, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<(Uuid, String)>>>);

impl Log {
    pub fn note(&self, task: &Task) {
        self.0.lock().expect("whole").push((task.id, task.fairness_key.clone()));
    }

    pub fn ids(&self) -> Vec<Uuid> {
        self.0.lock().expect("whole").iter().map(|(id, _)| *id).collect()
    }

    pub fn fairness_keys(&self) -> Vec<String> {
        self.0.lock().expect("whole").iter().map(|(_, fairness_key)| fairness_key.clone()).collect()
    }

    pub fn len(&self) -> usize {
        self.0.lock().expect("whole").len()
    }

    pub async fn until(&self, count: usize) {
        wait_for("tasks to begin", PATIENCE, async || (self.len() >= count).then_some(())).await;
    }
}
