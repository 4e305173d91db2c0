//! Supervision of single tasks.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::blocking::panic_message;

/// The result of a supervised task: nothing, or a result whose error is logged with all its sources.
pub trait TaskResult: Send + 'static {
    /// The error, if any.
    fn failure(self) -> Option<String>;
}

impl TaskResult for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>> + Send + 'static> TaskResult for Result<(), E> {
    fn failure(self) -> Option<String> {
        Some(crate::chain(&*self.err()?.into()))
    }
}

/// A group of supervised tasks. Clones are handles to the same group.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    tracker: TaskTracker,
    failed: Arc<AtomicBool>,
    running: Arc<Mutex<Vec<&'static str>>>,
}

impl Tasks {
    /// Runs `task`. If it panics, fails, or ends while `stopping` is not canceled, the group has failed and `stopping` is
    /// canceled.
    pub(super) fn spawn<F>(&self, name: &'static str, stopping: CancellationToken, task: F)
    where
        F: Future<Output: TaskResult> + Send + 'static,
    {
        self.names().push(name);
        let group = self.clone();
        let task = tokio::spawn(task.in_current_span());
        self.tracker.spawn(async move {
            let failure = match task.await {
                Ok(outcome) => outcome.failure(),
                Err(error) => Some(match error.try_into_panic() {
                    Ok(payload) => format!("panicked: {}", panic_message(&*payload)),
                    Err(error) => error.to_string(),
                }),
            };
            let failure =
                failure.or_else(|| (!stopping.is_cancelled()).then(|| "ended although nothing stopped it".to_owned()));
            if let Some(failure) = failure {
                tracing::error!(task = name, error = failure, "task {name} failed; the process stops");
                group.failed.store(true, Ordering::Release);
                stopping.cancel();
            }
            let mut names = group.names();
            if let Some(position) = names.iter().position(|running| *running == name) {
                names.swap_remove(position);
            }
        });
    }

    /// Waits until no task is left.
    pub(super) async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Returns `true` if a task has failed.
    pub(super) fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// The names of the tasks that have not ended.
    pub(super) fn running(&self) -> Vec<&'static str> {
        self.names().clone()
    }

    fn names(&self) -> MutexGuard<'_, Vec<&'static str>> {
        // The list is consistent after every statement, so a poisoned lock guards a valid value.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
