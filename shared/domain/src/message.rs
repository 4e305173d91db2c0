//! Messages on the broker: small, versioned wake-ups.
//!
//! The work itself is in PostgreSQL; a message only announces it (`docs/adr/0002-wake-up-messages.md`). A lost message
//! costs seconds, a duplicate costs an empty claim, a late one costs nothing.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::graph::named;

named! {
    /// Queue of one kind of work.
    Queue {
        /// Actions and renditions, run by the image-worker and limited by pixels in memory.
        Image = "image",
        /// Imports, run by the image-worker. An import waits for other servers and its slots are few. In the queue of
        /// Actions it would be claimed without a free slot and rescheduled, and it would take part in fair scheduling
        /// with work of another kind.
        Import = "import",
        /// Image generation, run by the image-worker, which mostly waits for providers and so runs many at once.
        Generation = "generation",
        /// Steps of Recipe runs, run by the image-worker. A step waits for a text model or for a job. In the queue of
        /// Actions it would hold a slot for pixels; in the queue of generations it would wait behind the jobs that it
        /// started.
        Recipe = "recipe",
        /// Video generation, run by the video-worker.
        Video = "video",
        /// Webhook deliveries, run by the webhook-dispatcher.
        Webhook = "webhook",
    }
}

named! {
    /// Kind of a task. The id of a task is the id of a record of this kind.
    TaskKind {
        /// An Image Action: a job.
        Action = "action",
        /// Generation, edit or variations of images: a job.
        Image = "image",
        /// Generation of a video: a job.
        Video = "video",
        /// The steps of a Recipe run: a run.
        Recipe = "recipe",
        /// A smaller copy of an image: a rendition.
        Rendition = "rendition",
        /// An image or the gallery of a page from a public URL: an import.
        Import = "import",
        /// A webhook delivery.
        Delivery = "delivery",
    }
}

/// Announces work in a queue. A variant stays readable until no message of its form can be in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "v")]
pub enum WakeUp {
    /// Version 1.
    #[serde(rename = "1")]
    V1 {
        /// The task that was committed. The consumer may claim any other due task instead.
        task: Uuid,
    },
}

/// Tasks that one transaction makes ready. Whoever commits it announces them afterwards.
#[derive(Debug, Default)]
pub struct ReadyTasks(Mutex<Vec<(Queue, Uuid)>>);

impl ReadyTasks {
    /// No tasks.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Adds a task of a queue.
    pub fn add(&self, queue: Queue, task: Uuid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((queue, task));
    }

    /// Removes and returns the tasks.
    pub fn take(&self) -> Vec<(Queue, Uuid)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_carries_its_version() {
        let wake_up = WakeUp::V1 { task: Uuid::nil() };
        let text = serde_json::to_string(&wake_up).expect("serializes");
        assert_eq!(text, r#"{"v":"1","task":"00000000-0000-0000-0000-000000000000"}"#);
        assert_eq!(serde_json::from_str::<WakeUp>(&text).expect("reads back"), wake_up);
        // The previous release adds a trace context.
        let earlier = r#"{"v":"1","task":"00000000-0000-0000-0000-000000000000","traceparent":"00-a-b-01"}"#;
        assert_eq!(serde_json::from_str::<WakeUp>(earlier).expect("reads"), wake_up);
        assert!(serde_json::from_str::<WakeUp>(r#"{"v":"9"}"#).is_err());
    }
}
