//! Start, supervision and two-stage shutdown (docs/architecture.md#shutdown).
//!
//! The first SIGTERM or SIGINT cancels the [`stopping`](Lifecycle::stopping) token: tasks take no new work and finish what they
//! have. After four fifths of the grace period, [`aborted`](Lifecycle::aborted) is canceled: tasks release what they cannot
//! finish. At the end of the grace period, or on a second signal, the process ends whatever still runs, so that an orchestrator
//! never has to kill it. Durability never depends on any of this: leases recover the work of a process that dies.
//!
//! A task that panics, fails or ends before the shutdown began is a defect of the whole process. The process shuts down in the
//! same two stages and exits non-zero, so that it is restarted as a whole instead of running without one of its parts. Tokens
//! and trackers are passed in; nothing here is global.

mod supervise;

use std::panic::resume_unwind;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::stack::{self, STACK_BYTES};
pub use supervise::TaskResult;
use supervise::Tasks;

/// The tasks of a process and the tokens that stop them. Clones are handles to the same lifecycle.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    stopping: CancellationToken,
    aborted: CancellationToken,
    /// Tasks that do the work of the process. Shutdown waits for them.
    tasks: Tasks,
    /// Tasks that the others need until they have ended.
    support: Tasks,
    /// Listened to since the beginning, so that a signal while the process still starts counts, too.
    signals: Arc<Mutex<Option<Signals>>>,
}

impl Lifecycle {
    /// A lifecycle without tasks, which listens to signals from now on. Needs a runtime.
    pub fn new() -> Self {
        Self { signals: Arc::new(Mutex::new(Signals::listen().ok())), ..Self::default() }
    }

    /// Canceled when shutdown begins: take no new work, finish the work in progress.
    pub fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    /// Canceled when every task has ended or the time to finish has passed: release the work in progress and end.
    pub fn aborted(&self) -> CancellationToken {
        self.aborted.clone()
    }

    /// Begins the shutdown, like a signal.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Runs `task` under supervision. It must watch [`stopping`](Self::stopping) and then end. A panic, an error, or an end
    /// before that stops the process with a failure.
    pub fn spawn<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output: TaskResult> + Send + 'static,
    {
        self.tasks.spawn(name, self.stopping.clone(), task);
    }

    /// Runs a task that others need while they finish (the admin server, the publisher). Like [`spawn`](Self::spawn), except
    /// that shutdown does not wait for it: it ends when [`aborted`](Self::aborted) is canceled, as soon as the other tasks have
    /// ended.
    pub fn spawn_support<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output: TaskResult> + Send + 'static,
    {
        self.support.spawn(name, self.stopping.clone(), task);
    }

    /// Waits for the first reason to stop, then for the tasks, and returns the exit code: success when all of them ended
    /// without a failure within `grace`, 128 + the signal's number when a second signal interrupted the shutdown, otherwise
    /// failure. Takes at most `grace` from the beginning of the shutdown.
    pub async fn run(self, grace: Duration) -> ExitCode {
        self.run_then(grace, async {}).await
    }

    /// Like [`run`](Self::run), then runs `last` in the rest of the grace period, for example to
    /// report how the tasks ended.
    pub async fn run_then(self, grace: Duration, last: impl Future<Output = ()>) -> ExitCode {
        let listened = self.signals.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut signals = match listened.map_or_else(Signals::listen, Ok) {
            Ok(signals) => signals,
            Err(error) => {
                tracing::error!(error = %error, "cannot listen for signals");
                return ExitCode::FAILURE;
            }
        };
        tokio::select! {
            () = self.stopping.cancelled() => {}
            number = signals.next() => {
                tracing::info!(signal = number, "stopping: signal received");
                self.stop();
            }
        }
        tokio::select! {
            biased;
            number = signals.next() => {
                tracing::warn!(signal = number, tasks = ?self.tasks.running(), "exiting at once: second signal");
                ExitCode::from(128 + number)
            }
            finished = self.finish(grace, last) => if finished { ExitCode::SUCCESS } else { ExitCode::FAILURE },
        }
    }

    /// The two stages, and `last`. Returns whether every task ended without a failure.
    async fn finish(&self, grace: Duration, last: impl Future<Output = ()>) -> bool {
        let over = Instant::now() + grace;
        let hand_back = grace / 5;
        let mut ended = timeout(grace - hand_back, self.tasks.wait()).await.is_ok();
        if !ended {
            tracing::warn!(tasks = ?self.tasks.running(), "aborting: the time to finish tasks has elapsed");
        }
        self.aborted.cancel();
        // One deadline for both kinds of task, so that `grace` is the total time.
        let everything = async {
            self.tasks.wait().await;
            ended = true;
            self.support.wait().await;
        };
        if timeout(hand_back, everything).await.is_err() {
            tracing::warn!(
                tasks = ?self.tasks.running(),
                support = ?self.support.running(),
                "exiting with tasks still running: the grace period has elapsed"
            );
        }
        let failed = self.tasks.failed() || self.support.failed();
        tracing::info!(ended, failed, "stopped");
        // A timeout of `last` does not count as a failure.
        let _ = timeout_at(over, last).await;
        ended && !failed
    }
}

/// SIGTERM (orchestrators) and SIGINT (terminals).
#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The number of the next signal.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 15,
            _ = self.interrupt.recv() => 2,
        }
    }
}

/// Runs `process` on a multi-threaded runtime and returns its exit code to `main`, without waiting for threads in blocking
/// work: dropping a runtime would wait for them forever, and the grace period would not be a limit. All threads, that of
/// `process` included, have an explicit stack ([`stack`]).
///
/// # Panics
///
/// If `process` panics, or the system cannot start a thread.
pub fn block_on<F: Future<Output = ExitCode>>(process: impl FnOnce() -> F + Send) -> ExitCode {
    let run = || match Builder::new_multi_thread().thread_stack_size(STACK_BYTES).enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(Box::pin(process()));
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            tracing::error!(error = %error, "cannot start the runtime");
            ExitCode::FAILURE
        }
    };
    thread::scope(|scope| {
        let process = stack::thread("process").spawn_scoped(scope, run).expect("the system starts threads");
        process.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests;
