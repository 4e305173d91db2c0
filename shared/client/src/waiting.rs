//! Causes of waits, in words (docs/reference/status.md).

use std::fmt;
use std::time::Duration;

use domain::message::Queue;
use domain::queue::{QueueState, QueueStatus, WaitCause, WaitingFor};
use domain::{Timestamp, counted};

/// The cause of a wait. It is displayed as the end of a sentence that begins with "waiting:".
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// As the record says it.
    pub why: WaitingFor,
    /// The queue of the work, where the record tells.
    queue: Option<Queue>,
    /// The time at which the record was read.
    at: Timestamp,
}

impl Waiting {
    /// The cause for which work of a queue waits. The record was read at `at`, by the clock of the service
    /// ([`Answer::time`](crate::Answer::time)).
    pub fn new(why: Option<&WaitingFor>, queue: Option<Queue>, at: Timestamp) -> Option<Self> {
        Some(Self { why: why?.clone(), queue, at })
    }

    /// Returns `true` if no worker is there to do the work.
    pub fn is_for_worker(&self) -> bool {
        self.why.what == WaitCause::Worker
    }

    /// Returns `true` if another record says the same, apart from how long it has been so.
    pub fn is_as(&self, other: &Self) -> bool {
        (self.why.what, self.why.retry_at) == (other.why.what, other.why.retry_at)
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why.what {
            WaitCause::Worker => f.write_str(&unseen(self.queue, self.why.last_seen_at, self.at)),
            WaitCause::Slot => f.write_str("its turn"),
            WaitCause::Retry => match self.why.retry_at {
                Some(at) => write!(f, "the next attempt at {} UTC", at.get().format("%H:%M:%S")),
                None => f.write_str("the next attempt"),
            },
            WaitCause::Provider => f.write_str("the provider"),
            WaitCause::Input => f.write_str("another output of its run"),
        }
    }
}

/// The state of a queue in words; `at` is when it was read.
pub fn queue_in_words(queue: &QueueStatus, at: Timestamp) -> String {
    let workers = counted(queue.workers, "worker");
    match queue.state {
        QueueState::Silent => unseen(Some(queue.queue), queue.last_seen_at, at),
        QueueState::Slow => format!("{workers}, and work has waited for {}", span(queue.oldest_waiting_seconds)),
        QueueState::Ok => workers,
    }
}

fn unseen(queue: Option<Queue>, last_seen_at: Option<Timestamp>, at: Timestamp) -> String {
    let whose = match queue {
        Some(queue) => format!("of the queue {queue}"),
        None => "for it".to_owned(),
    };
    match last_seen_at {
        Some(seen) => format!("no worker {whose} has been seen for {}", span(at.millis_since(seen) / 1000)),
        None => format!("no worker {whose} has ever been seen"),
    }
}

/// A number of seconds in the unit that reads best.
fn span(seconds: u64) -> String {
    let minute = Duration::from_mins(1).as_secs();
    match seconds / minute {
        0..2 => format!("{seconds} s"),
        minutes @ 2..120 => format!("{minutes} min"),
        minutes => format!("{} h", minutes / 60),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::WorkRecord;

    fn time(text: &str) -> Timestamp {
        serde_json::from_value(json!(text)).expect("a time")
    }

    fn waiting(record: Value, at: &str) -> Option<String> {
        let record: WorkRecord = serde_json::from_value(record).expect("a record");
        record.waiting(time(at)).map(|waiting| waiting.to_string())
    }

    fn words(record: Value) -> Option<String> {
        waiting(record, "2026-01-01T12:00:40.900Z")
    }

    #[test]
    fn each_cause_has_its_words() {
        let since = "2026-01-01T12:00:00.000Z";
        let work = |kind: &str, what: &str| json!({"kind": kind, "waitingFor": {"what": what, "since": since}});
        let mut seen = work("video", "worker");
        seen["waitingFor"]["lastSeenAt"] = since.into();
        assert_eq!(words(seen.clone()).as_deref(), Some("no worker of the queue video has been seen for 40 s"));
        // A clock that is behind the other.
        assert!(waiting(seen.clone(), "2026-01-01T11:00:00.000Z").expect("waits").ends_with("for 0 s"));
        assert!(waiting(seen, "2026-01-01T12:10:00.000Z").expect("waits").ends_with("for 10 min"));
        assert_eq!(words(work("action", "worker")).as_deref(), Some("no worker of the queue image has ever been seen"));
        let mut again = work("image", "retry");
        again["waitingFor"]["retryAt"] = "2026-01-01T12:03:10.000Z".into();
        assert_eq!(words(again).as_deref(), Some("the next attempt at 12:03:10 UTC"));
        for (what, expected) in
            [("slot", "its turn"), ("provider", "the provider"), ("input", "another output of its run")]
        {
            assert_eq!(words(work("image", what)).as_deref(), Some(expected));
        }
        assert_eq!(words(json!({"kind": "image"})), None);
        assert_eq!(words(json!({"waitingFor": {"what": "a later one", "since": since}})), None);
    }

    #[test]
    fn a_recipe_run_waits_in_the_queue_of_the_image_that_is_made() {
        let waits = json!({"what": "worker", "since": "2026-01-01T12:00:00.000Z"});
        let run =
            |outputs: Value| words(json!({"kind": "recipe", "waitingFor": waits, "outputs": outputs})).expect("waits");
        assert!(run(json!([{"status": "pending"}])).contains("queue recipe"));
        assert!(run(json!([{"status": "succeeded"}, {"status": "running", "jobId": "job:1"}])).contains("generation"));
    }
}
