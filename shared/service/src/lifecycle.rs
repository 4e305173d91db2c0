//! Start, supervision and the two stages of stopping.
//!
//! The first SIGTERM or SIGINT cancels the [`stopping`](Lifecycle::stopping) token: tasks take no new work and finish what they hold. When
//! four fifths of the grace have passed, [`aborted`](Lifecycle::aborted) is cancelled: tasks give back what they cannot finish. When the
//! grace is over, or on a second signal, the process ends whatever still runs, so that an orchestrator never has to kill it. Durability
//! never depends on any of this: leases recover the work of a process that dies.
//!
//! A task that panics, fails or ends before stopping began is a defect of the whole process: it stops in the same two stages and exits
//! non-zero, so that it is restarted whole instead of limping on without one of its parts. Tokens and trackers are passed in; nothing here
//! is global (house rule 13).

mod supervise;

use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

pub use supervise::Outcome;
use supervise::Tasks;

/// The tasks of a process and the tokens that stop them. Clones are handles to the same lifecycle.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    stopping: CancellationToken,
    aborted: CancellationToken,
    /// What the process is for; stopping waits for these.
    tasks: Tasks,
    /// What the others lean on until they have ended.
    support: Tasks,
}

impl Lifecycle {
    /// A lifecycle without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when stopping begins: take no new work, finish what is in hand.
    pub fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    /// Cancelled when every task has ended or the time to finish is over: give back what is in hand and end.
    pub fn aborted(&self) -> CancellationToken {
        self.aborted.clone()
    }

    /// Begins stopping, as a signal would.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Runs `task` under supervision. It watches [`stopping`](Self::stopping) and ends by itself after that; a panic, an error, or an end
    /// before that stops the process with a failure.
    pub fn spawn<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        self.tasks.spawn(name, self.stopping.clone(), task);
    }

    /// Runs a task that the others need while they finish (the admin server, the outbox relay): as [`spawn`](Self::spawn), except that
    /// stopping does not wait for it. It ends when [`aborted`](Self::aborted) is cancelled, which happens as soon as the other tasks ended.
    pub fn spawn_support<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        self.support.spawn(name, self.stopping.clone(), task);
    }

    /// Waits for the first reason to stop, then for the tasks, and gives the exit code: success when all of them ended well within
    /// `grace`, 128 + the signal's number when a second signal cut it short, otherwise failure. Never takes longer than `grace` from the
    /// moment stopping began.
    pub async fn run(self, grace: Duration) -> ExitCode {
        self.run_then(grace, async {}).await
    }

    /// The same, and then `last`, in what is left of the grace: for what the tasks' own end is to be told to.
    pub async fn run_then(self, grace: Duration, last: impl Future<Output = ()>) -> ExitCode {
        let mut signals = match Signals::listen() {
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

    /// The two stages, and `last`; whether every task ended, and ended well.
    async fn finish(&self, grace: Duration, last: impl Future<Output = ()>) -> bool {
        let over = Instant::now() + grace;
        let hand_back = grace / 5;
        let mut ended = timeout(grace - hand_back, self.tasks.wait()).await.is_ok();
        if !ended {
            tracing::warn!(tasks = ?self.tasks.running(), "aborting: time to finish is over");
        }
        self.aborted.cancel();
        // One deadline for both kinds, so that `grace` is the whole time.
        let everything = async {
            self.tasks.wait().await;
            ended = true;
            self.support.wait().await;
        };
        if timeout(hand_back, everything).await.is_err() {
            tracing::warn!(
                tasks = ?self.tasks.running(),
                support = ?self.support.running(),
                "exiting with tasks still running: grace is over"
            );
        }
        let failed = self.tasks.failed() || self.support.failed();
        tracing::info!(ended, failed, "stopped");
        // What it did not get to do is nobody's failure.
        let _ = timeout_at(over, last).await;
        ended && !failed
    }
}

/// SIGTERM (orchestrators) and SIGINT (terminals).
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

/// Runs `process` on a multi-threaded runtime and gives its exit code to `main`, without waiting for threads that are still in blocking
/// work: dropping a runtime would wait for them for ever, and the grace would be no limit.
pub fn block_on(process: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(process);
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            tracing::error!(error = %error, "cannot start the runtime");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
