//! The connection for commands: supervised, with a deadline for each call and a circuit breaker.
//!
//! The breaker is closed while the link is up. Five failures in a row, or the end of the
//! connection, open it. Calls then fail at once. One second later, the supervisor probes with a new
//! connection and a `PING`, so that no request is used as a probe. It closes the breaker if both
//! succeed in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

/// Time limit for every call, including the wait for the first connection.
const DEADLINE: Duration = Duration::from_millis(50);
/// Time limit for connecting. It is longer than that of a call, because of name resolution and
/// handshakes. No caller waits for it.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Pause between probes while the breaker is open, and between pings of an idle connection.
const PROBE_PAUSE: Duration = Duration::from_secs(1);
/// A single lost answer is tolerated; five in a row count as an outage.
const FAILURES_TO_OPEN: u32 = 5;

#[derive(Clone)]
enum State {
    /// The first connection is being established. A call may wait for it.
    Connecting,
    /// The breaker is closed.
    Up(u64, MultiplexedConnection),
    /// The breaker is open.
    Down,
}

pub(crate) struct Link {
    shared: Arc<Shared>,
    _supervisor: AbortOnDropHandle<()>,
}

struct Shared {
    state: watch::Sender<State>,
    /// Failed calls since the last that succeeded.
    failures: AtomicU32,
}

impl Link {
    pub(crate) fn start(client: Client) -> Self {
        let shared = Arc::new(Shared { state: watch::Sender::new(State::Connecting), failures: AtomicU32::new(0) });
        let supervisor = tokio::spawn(supervise(client, shared.clone()));
        Self { shared, _supervisor: AbortOnDropHandle::new(supervisor) }
    }

    /// Waits until the first connection is established or has failed.
    pub(crate) async fn settled(&self) {
        let mut state = self.shared.state.subscribe();
        // We hold the sender, so the wait cannot fail.
        let _ = state.wait_for(|state| !matches!(state, State::Connecting)).await;
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(*self.shared.state.borrow(), State::Up(..))
    }

    /// Runs a command within the deadline. `None`: Redis did not answer; counted as a failure.
    pub(crate) async fn call<T>(
        &self,
        operation: &'static str,
        command: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> Option<T> {
        match self.shared.call(command).await {
            Ok(value) => Some(value),
            Err(reason) => {
                metrics::counter!("canvas_cache_fail_open_total", "operation" => operation, "reason" => reason.name())
                    .increment(1);
                None
            }
        }
    }
}

/// Why a call has no result.
enum Unanswered {
    BreakerOpen,
    Deadline,
    Failed,
}

impl Unanswered {
    fn name(&self) -> &'static str {
        match self {
            Self::BreakerOpen => "breaker_open",
            Self::Deadline => "deadline",
            Self::Failed => "failed",
        }
    }
}

impl Shared {
    async fn call<T>(
        &self,
        command: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<T, Unanswered> {
        let mut state = self.state.subscribe();
        let mut generation = None;
        let answer = timeout(DEADLINE, async {
            let settled = state.wait_for(|state| !matches!(state, State::Connecting)).await;
            let Ok(State::Up(current, mut connection)) = settled.map(|state| state.clone()) else { return None };
            generation = Some(current);
            Some(command(&mut connection).await)
        })
        .await;
        match answer {
            Ok(Some(Ok(value))) => {
                self.failures.store(0, Ordering::Relaxed);
                Ok(value)
            }
            Ok(None) => Err(Unanswered::BreakerOpen),
            Ok(Some(Err(error))) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "redis command failed");
                self.failed(generation, error.is_unrecoverable_error());
                Err(Unanswered::Failed)
            }
            Err(_) => {
                self.failed(generation, false);
                Err(Unanswered::Deadline)
            }
        }
    }

    /// Counts a failure of a connection. Opens the breaker if the failure is `fatal` or too many
    /// have occurred. A late failure of an earlier connection does not count against the current
    /// one.
    fn failed(&self, generation: Option<u64>, fatal: bool) {
        let Some(generation) = generation else { return };
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if fatal || failures >= FAILURES_TO_OPEN {
            self.open(|state| matches!(state, State::Up(current, _) if *current == generation));
        }
    }

    fn open(&self, condition: impl FnOnce(&State) -> bool) {
        let opened = self.state.send_if_modified(|state| {
            let open = condition(state);
            if open {
                *state = State::Down;
            }
            open
        });
        if opened {
            metrics::gauge!("canvas_cache_up").set(0);
            tracing::warn!(
                "redis does not answer: start Redis, or correct CANVAS_REDIS_URL; until then rate limits are open and waiting readers poll"
            );
        }
    }
}

async fn supervise(client: Client, shared: Arc<Shared>) {
    for generation in 0.. {
        match connect(&client).await {
            Ok(connection) => {
                shared.failures.store(0, Ordering::Relaxed);
                shared.state.send_replace(State::Up(generation, connection));
                metrics::gauge!("canvas_cache_up").set(1);
                tracing::info!("redis is available");
                attend(&shared).await;
            }
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "redis connection failed");
                shared.open(|state| matches!(state, State::Connecting));
            }
        }
        sleep(PROBE_PAUSE).await;
    }
}

/// Opens a connection that answers within the time limit of calls.
async fn connect(client: &Client) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT_LIMIT)).set_response_timeout(None);
    let late = |_| redis::RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    let connecting = client.get_multiplexed_async_connection_with_config(&config);
    let mut connection = timeout(CONNECT_LIMIT, connecting).await.map_err(late)??;
    let ping = redis::cmd("PING");
    timeout(DEADLINE, ping.exec_async(&mut connection)).await.map_err(late)??;
    Ok(connection)
}

/// Pings an idle connection, so that its end is noticed without a request. Returns when the breaker
/// opens.
async fn attend(shared: &Shared) {
    let mut state = shared.state.subscribe();
    loop {
        if timeout(PROBE_PAUSE, state.wait_for(|state| matches!(state, State::Down))).await.is_ok() {
            return;
        }
        // A failure is counted like that of any call.
        let _ = shared.call(async |connection| redis::cmd("PING").exec_async(connection).await).await;
    }
}
