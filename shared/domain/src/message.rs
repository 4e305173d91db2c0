//! What goes over the broker: wake-ups, small and versioned.
//!
//! Postgres is the work; a message only says that there is some (decisions 9.8). A lost one costs seconds, a
//! duplicate an empty claim, a late one nothing.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::graph::named;

named! {
    /// Where a kind of work waits.
    Queue {
        /// Actions and renditions: the image-worker's, bound by pixels.
        Image = "image",
        /// Imports: the image-worker's. A queue of its own, because an import waits for foreign servers, in one of few places: among
        /// Actions it would be taken in the hope of a place and given back, and whose turn it is would tell nothing of imports.
        Import = "import",
        /// Image generation: the image-worker's, which mostly waits for providers and so has many in hand.
        Generation = "generation",
        /// Steps of Recipe runs: the image-worker's. A queue of its own, because a step waits for a text model or for a job:
        /// among Actions it would hold a slot for pixels, among generations it would wait behind the very jobs it started.
        Recipe = "recipe",
        /// Video generation: the video-worker's.
        Video = "video",
        /// Webhook deliveries: the dispatcher's.
        Webhook = "webhook",
    }
}

named! {
    /// What a task works on; its id is that of a record of this kind.
    TaskKind {
        /// An Image Action: a job.
        Action = "action",
        /// Generation, edit or variations of images: a job.
        Image = "image",
        /// Generation of a video: a job.
        Video = "video",
        /// The steps of a Recipe run: a run.
        Recipe = "recipe",
        /// A smaller copy of a picture: a rendition.
        Rendition = "rendition",
        /// A picture, or the gallery of a page, out of the network: an import.
        Import = "import",
        /// A webhook delivery.
        Delivery = "delivery",
    }
}

/// "There is work in this queue." Variants are kept readable until none can be in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "v")]
pub enum WakeUp {
    /// The first form.
    #[serde(rename = "1")]
    V1 {
        /// The task that was committed; any due task may be claimed instead.
        task: Uuid,
        /// W3C trace context of the request that committed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        traceparent: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_carries_its_version() {
        let wake_up = WakeUp::V1 { task: Uuid::nil(), traceparent: None };
        let text = serde_json::to_string(&wake_up).expect("serializes");
        assert_eq!(text, r#"{"v":"1","task":"00000000-0000-0000-0000-000000000000"}"#);
        assert_eq!(serde_json::from_str::<WakeUp>(&text).expect("reads back"), wake_up);
        assert!(serde_json::from_str::<WakeUp>(r#"{"v":"9"}"#).is_err());
    }
}
