//! The common part of the worker processes: command line, configuration, telemetry, probes, database, broker and
//! two-stage shutdown. A process adds its queue and its handler.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use broker::{Consumer, Publisher, Waker};
use db::PgPool;
use db::jobs::Windows;
use domain::message::Queue;
use service::config::{Config, ConfigError, Part};
use service::lifecycle::{Lifecycle, TaskResult, block_on};
use service::metrics::Metrics;
use service::probes::{ComponentHandle, Readiness, watch_component};
use service::telemetry::{Collector, Traces};
use service::{chain, probes, telemetry};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::failpoint::InvalidFailpoint;
use crate::{Handler, Runner, RunnerOptions, failpoint};

/// Grace period at shutdown, in which tasks in progress finish or are released (docs/architecture.md#shutdown).
const GRACE: Duration = Duration::from_secs(25);

/// Texts for operators in `/readyz` and in the log: which service is unavailable, and how to fix
/// it.
const DATABASE_AWAY: &str = "database does not answer: start PostgreSQL, or correct CANVAS_DATABASE_URL";
/// The role cannot log in, or has not been granted what the process needs.
const FORBIDDEN: &str = "database refuses the role: run canvas-gateway migrate, or correct CANVAS_DATABASE_URL";
/// The process works, with more rights than it needs.
const OWNER: &str = "the database role of this process owns the schema; each process can have a role of its own: deploy/README.md#database-roles";
/// Like [`DATABASE_AWAY`], for the broker.
const BROKER_AWAY: &str = "broker is not connected: start RabbitMQ, or correct CANVAS_AMQP_URL";
/// Limit for the database's answer to a check. Shorter than the limit of the check itself, whose error would contain no advice.
const DATABASE_LIMIT: Duration = Duration::from_millis(1800);
/// Limit for the first connection to the broker, after which it counts as unavailable.
const BROKER_LIMIT: Duration = Duration::from_secs(2);

/// The reason why a process does not start.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The list of failpoints is malformed.
    #[error(transparent)]
    Failpoints(#[from] InvalidFailpoint),
    /// A required variable is missing.
    #[error(transparent)]
    Missing(#[from] ConfigError),
    /// A part of the process rejected its configuration; the text names the variable.
    #[error(transparent)]
    Setting(Box<dyn std::error::Error + Send + Sync>),
    /// Logging or the export of traces could not be set up.
    #[error("cannot set up logging")]
    Telemetry(#[source] telemetry::TelemetryError),
    /// The metrics recorder could not be installed.
    #[error("cannot set up metrics")]
    Metrics(#[source] service::metrics::RecorderTaken),
    /// The database's URL was rejected.
    #[error("CANVAS_DATABASE_URL: invalid URL")]
    Database(#[source] db::Error),
    /// The broker's URL was rejected.
    #[error("CANVAS_AMQP_URL: invalid URL")]
    Broker(#[source] broker::Error),
    /// The address of the probes could not be bound.
    #[error("CANVAS_ADMIN_LISTEN: cannot listen on this address")]
    Listen(#[source] std::io::Error),
}

/// The `main` of a worker process: reads command line and environment, then runs `run` to its exit code.
///
/// `part` decides which variables must be set. The only arguments are `--help` and `--version`. Any other argument exits with code
/// 2, an invalid environment with 1.
pub fn main<F>(name: &'static str, part: Part, about: &str, run: impl FnOnce(Config) -> F + Send) -> ExitCode
where
    F: Future<Output = Result<ExitCode, BootError>>,
{
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some("--help" | "-h") => {
            println!("{name}: {about}\n\nUsage: {name} [--help | --version]\n\n{}", Config::help());
            return ExitCode::SUCCESS;
        }
        Some("--version" | "-V") => {
            println!("{name} {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some(argument) => {
            eprintln!("{name}: unexpected argument {argument:?}; see {name} --help");
            return ExitCode::from(2);
        }
    }
    let config = match Config::from_env(&[part]) {
        Ok(config) => config,
        Err(errors) => {
            // Only the first error is printed; `canvas-gateway check-config` reports all of them.
            errors.first().inspect(|error| eprintln!("{name}: {error}"));
            return ExitCode::FAILURE;
        }
    };
    block_on(|| async move {
        Box::pin(run(config)).await.unwrap_or_else(|error| {
            eprintln!("{name}: {}", chain(&error));
            ExitCode::FAILURE
        })
    })
}

/// Checks the URLs of database and broker, options included, without connecting.
///
/// # Errors
///
/// [`BootError`] that names the variable.
pub fn check_urls(database: &str, amqp: &str) -> Result<(), Vec<BootError>> {
    let database = db::pool::check_url(database).map_err(BootError::Database);
    let broker = broker::Config::new(amqp, broker::Config::PREFIX, "").map_err(BootError::Broker);
    let errors: Vec<BootError> = database.err().into_iter().chain(broker.err()).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The time for which records are kept, as configured. Every process that ends jobs must have the same configuration.
pub fn windows(config: &Config) -> Windows {
    Windows {
        unread: config.retention_unread,
        finalized: config.retention_finalized,
        tombstone: config.retention_tombstone,
        failed: config.retention_failed,
        video: config.retention_video,
    }
}

/// A started process, which serves its probes, publishes wake-ups, and can be given work.
#[derive(Debug)]
pub struct Process {
    /// Its name as a worker, unique for each start.
    instance: String,
    config: Config,
    pool: PgPool,
    broker: broker::Config,
    waker: Waker,
    readiness: Readiness,
    lifecycle: Lifecycle,
    traces: Traces,
}

impl Process {
    /// Starts failpoints, telemetry, metrics, probes, database pool and publisher. Database, schema and broker need not
    /// be available; readiness reports whether they are.
    pub async fn start(name: &'static str, config: Config) -> Result<Self, BootError> {
        let service = Some(config.otlp_service_name.as_str()).filter(|name| !name.is_empty()).unwrap_or(name);
        let headers = &config.otlp_headers;
        let collector = config.otlp_endpoint.as_ref().map(|endpoint| Collector { endpoint, headers, service });
        let traces = telemetry::init(name, &config.log, collector.as_ref()).map_err(BootError::Telemetry)?;
        failpoint::arm(&config.failpoints)?;
        let metrics = Metrics::install().map_err(BootError::Metrics)?;
        let url = config.database_url.expose();
        let pool = db::pool::connect(url, name, config.database_connections, config.storage_max)
            .map_err(BootError::Database)?;
        let broker = broker::Config::new(config.amqp_url()?.expose(), broker::Config::PREFIX, name)
            .map_err(BootError::Broker)?;
        let listener = TcpListener::bind(config.admin_listen).await.map_err(BootError::Listen)?;

        let lifecycle = Lifecycle::new();
        let readiness = Readiness::new(lifecycle.stopping());
        let aborted = lifecycle.aborted();
        lifecycle.spawn_support("probes", probes::serve(listener, readiness.clone(), metrics.clone(), aborted.clone()));
        lifecycle.spawn_support("metrics", metrics.upkeep(aborted.clone()));
        lifecycle.spawn_support("shares", {
            let aborted = aborted.clone();
            async move { aborted.run_until_cancelled(service::shares::watch()).await.unwrap_or_default() }
        });
        lifecycle.spawn_support("database watch", {
            let handle = readiness.component("database", true);
            let (pool, migrated) = (pool.clone(), Arc::new(AtomicBool::new(false)));
            watch_component(handle, move || check_database(pool.clone(), migrated.clone()), aborted.clone())
        });

        let (waker, publisher) = Publisher::new(broker.clone());
        // Not required for readiness: without the broker, work is delayed but no request is
        // rejected.
        let handle = readiness.component("broker publisher", false);
        lifecycle.spawn_support("publisher watch", follow(handle, publisher.connected(), aborted.clone()));
        lifecycle.spawn_support("publisher", publisher.run(aborted));

        tracing::info!(version = env!("CARGO_PKG_VERSION"), "{name} started");
        // The process id alone is the same in each container.
        let instance = format!("{name} {} {:08x}", std::process::id(), service::random::number());
        Ok(Self { instance, config, pool, broker, waker, readiness, lifecycle, traces })
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Announces tasks after the commits that make them ready.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Registry for further readiness components.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Supervisor for further tasks.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Runs another task under supervision. The task watches the token, which is canceled when shutdown begins.
    pub fn spawn<F>(&self, name: &'static str, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output: TaskResult> + Send + 'static,
    {
        self.lifecycle.spawn(name, task(self.lifecycle.stopping()));
    }

    /// Options for a runner of this process, as configured. `slots` applies unless `CANVAS_SLOTS` is set.
    pub fn runner_options(&self, queue: Queue, slots: usize) -> RunnerOptions {
        RunnerOptions {
            lease: self.config.lease,
            heartbeat: self.config.heartbeat(),
            idle_claim: self.config.idle_claim,
            owner: self.instance.clone(),
            ..RunnerOptions::new(queue, self.config.slots.unwrap_or(slots))
        }
    }

    /// Starts a runner with this handler.
    pub fn work(&self, options: RunnerOptions, handler: impl Handler) {
        let prefetch = u16::try_from(options.slots).unwrap_or(u16::MAX);
        let consumer = Consumer::start(self.broker.clone(), options.queue, prefetch);
        let handle = self.readiness.component(consumer_of(options.queue), true);
        let (stop, abort) = (self.lifecycle.stopping(), self.lifecycle.aborted());
        self.lifecycle.spawn_support("consumer watch", follow(handle, consumer.live(), abort.clone()));
        self.lifecycle.spawn("runner", Runner::new(&self.pool, consumer, handler, options).run(stop, abort));
    }

    /// Works until a shutdown signal arrives or a part fails, then shuts down in two stages.
    pub async fn finish(self) -> ExitCode {
        self.finish_within(GRACE).await
    }

    /// [`finish`](Self::finish) with another grace period.
    pub async fn finish_within(self, grace: Duration) -> ExitCode {
        self.lifecycle.run_then(grace, self.traces.flush()).await
    }
}

/// The readiness component of a queue's consumer. A process may consume several queues, and a
/// failed consumer must be visible next to working ones.
const fn consumer_of(queue: Queue) -> &'static str {
    match queue {
        Queue::Image => "broker consumer image",
        Queue::Import => "broker consumer import",
        Queue::Generation => "broker consumer generation",
        Queue::Recipe => "broker consumer recipe",
        Queue::Video => "broker consumer video",
        Queue::Webhook => "broker consumer webhook",
    }
}

/// Checks that the database answers and has this build's schema. A schema that was found is not checked again.
async fn check_database(pool: PgPool, migrated: Arc<AtomicBool>) -> Result<(), String> {
    let asking = async {
        if migrated.load(Ordering::Relaxed) {
            return db::pool::ping(&pool).await.map(|()| true);
        }
        let current = db::pool::is_migrated(&pool).await?;
        if current && db::roles::owns_schema(&pool).await? {
            tracing::info!("{OWNER}");
        }
        migrated.store(current, Ordering::Relaxed);
        Ok(current)
    };
    match timeout(DATABASE_LIMIT, asking).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err("its schema is not this build's yet: run canvas-gateway migrate".to_owned()),
        Ok(Err(error)) if error.is_outage() => Err(format!("{DATABASE_AWAY} ({})", chain(&error))),
        Ok(Err(error)) if error.is_forbidden() => Err(format!("{FORBIDDEN} ({})", chain(&error))),
        Ok(Err(error)) => Err(chain(&error)),
        // The pool continues trying to connect.
        Err(_) => Err(DATABASE_AWAY.to_owned()),
    }
}

/// Reports the state of a connection to the broker.
async fn follow(handle: ComponentHandle, mut up: watch::Receiver<bool>, stop: CancellationToken) {
    let follow = async {
        // A short delay of the connection after the start is no failure.
        if timeout(BROKER_LIMIT, up.wait_for(|up| *up)).await.is_err() {
            handle.set_failing(BROKER_AWAY);
        }
        if up.wait_for(|up| *up).await.is_ok() {
            handle.set_ok();
            while up.changed().await.is_ok() {
                if *up.borrow_and_update() { handle.set_ok() } else { handle.set_failing(BROKER_AWAY) }
            }
        }
        // It ends only while the process shuts down.
        std::future::pending::<()>().await;
    };
    stop.run_until_cancelled(follow).await;
}

#[cfg(test)]
mod tests {
    use service::probes::Status;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_is_not_consumed_is_named_beside_those_that_are() {
        let stop = CancellationToken::new();
        let readiness = Readiness::new(stop.clone());
        let queues = Queue::ALL.iter().map(|queue| {
            let (up, live) = watch::channel(false);
            tokio::spawn(follow(readiness.component(consumer_of(*queue), true), live, stop.clone()));
            (*queue, up)
        });
        let queues: Vec<_> = queues.collect();
        let shows = async |failing: &[&str]| {
            for _ in 0..100 {
                // Time is virtual: the pause ends when all other tasks wait.
                tokio::time::sleep(Duration::from_millis(1)).await;
                let report = readiness.report();
                let missing = report.components.iter().filter(|(_, component)| !component.ok);
                if missing.map(|(name, _)| *name).eq(failing.iter().copied()) {
                    return report.status;
                }
            }
            panic!("never showed {failing:?}: {:?}", readiness.report());
        };
        for (queue, up) in &queues {
            if *queue != Queue::Recipe {
                up.send_replace(true);
            }
        }
        assert_eq!(shows(&["broker consumer recipe"]).await, Status::Unready);
        for (_, up) in &queues {
            up.send_replace(true);
        }
        assert_eq!(shows(&[]).await, Status::Ready);
        for (queue, up) in &queues {
            up.send_replace(false);
            assert_eq!(shows(&[consumer_of(*queue)]).await, Status::Unready, "{queue}");
            up.send_replace(true);
            shows(&[]).await;
        }
        stop.cancel();
    }
}
