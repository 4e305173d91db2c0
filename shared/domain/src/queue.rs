//! The served state of queues and of work that waits. Rules: `docs/reference/status.md`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;
use crate::graph::named;
use crate::message::Queue;

named! {
    /// State of a queue.
    QueueState {
        /// Workers claim its work in time.
        Ok = "ok",
        /// Workers are seen, and ready work has waited longer than is usual.
        Slow = "slow",
        /// No worker was seen lately: accepted work waits until one starts.
        Silent = "silent",
    }
}

impl QueueState {
    /// The state of `queue`, of which `workers` workers are seen and whose oldest ready task has waited for `oldest`.
    pub fn new(queue: Queue, workers: u32, oldest: Duration) -> Self {
        if workers == 0 {
            Self::Silent
        } else if oldest >= slow_after(queue) {
            Self::Slow
        } else {
            Self::Ok
        }
    }
}

/// How long ready work may wait in a queue before the queue counts as slow.
const fn slow_after(queue: Queue) -> Duration {
    match queue {
        Queue::Image | Queue::Import | Queue::Recipe => Duration::from_mins(1),
        Queue::Generation | Queue::Video | Queue::Webhook => Duration::from_mins(5),
    }
}

/// A queue and its workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Name of the queue.
    pub queue: Queue,
    /// State of the queue.
    pub state: QueueState,
    /// Number of workers that were seen lately.
    #[schema(minimum = 0)]
    pub workers: u32,
    /// When a worker of the queue was last seen. Absent if none ever was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
    /// How long the oldest ready work has waited, in seconds, rounded to 10. Zero if none waits.
    #[schema(minimum = 0)]
    pub oldest_waiting_seconds: u64,
}

/// The state of the service as its users may see it. Nothing in it belongs to an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServiceStatus {
    /// Every queue.
    pub queues: Vec<QueueStatus>,
}

named! {
    /// The cause of a wait.
    WaitCause {
        /// A worker: none that could do the work was seen lately.
        Worker = "worker",
        /// Its turn: workers are seen, and other work goes first.
        Slot = "slot",
        /// Its next attempt, after one without success.
        Retry = "retry",
        /// The provider that has accepted it.
        Provider = "provider",
        /// Another output of its Recipe run.
        Input = "input",
    }
}

/// Why work is not being worked on. Absent from a record whose work is in progress or over.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingFor {
    /// The cause of the wait.
    pub what: WaitCause,
    /// Since when.
    pub since: Timestamp,
    /// When a worker of its queue was last seen. Only with `worker`, if one ever was.
    pub last_seen_at: Option<Timestamp>,
    /// When the next attempt is due. Only with `retry`.
    pub retry_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_without_workers_is_silent_and_one_whose_work_waits_too_long_is_slow() {
        for queue in Queue::ALL {
            let limit = slow_after(*queue);
            assert_eq!(QueueState::new(*queue, 0, Duration::ZERO), QueueState::Silent, "{queue}");
            assert_eq!(QueueState::new(*queue, 0, limit), QueueState::Silent, "{queue}");
            assert_eq!(QueueState::new(*queue, 1, limit - Duration::from_millis(1)), QueueState::Ok, "{queue}");
            assert_eq!(QueueState::new(*queue, 1, limit), QueueState::Slow, "{queue}");
        }
    }
}
