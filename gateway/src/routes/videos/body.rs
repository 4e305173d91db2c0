//! The body of a video request (docs/reference/videos.md#start-a-video).

use domain::id::{AccountUid, BaseRevision, CanvasReference, ImageSource, NodeReference};
use domain::job::VideoReferenceForm;
use domain::webhook::WebhookInput;

use crate::place::TargetPlace;
use crate::reference::ReferenceItem;
use crate::start::start_request;

start_request! {
    /// Request to generate a video.
    pub struct VideoStart {
        /// Provider's model id or a `model:` handle.
        #[schema(min_length = 1, max_length = 650)]
        pub model: String,
        /// Plain id of the saved connection to run the model with.
        #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$")]
        pub connection_id: Option<String>,
        /// Prompt of the video.
        #[schema(min_length = 1, max_length = 8000)]
        pub prompt: String,
        /// Canvas that node handles belong to, as plain id or handle. Needed with a target; without one, nothing is written to it.
        #[schema(value_type = Option<CanvasReference>)]
        pub canvas_id: Option<String>,
        /// The canvas revision that a request with a target is based on. Only with `targetNodeId` or `place`, which need it.
        #[schema(value_type = Option<BaseRevision>)]
        pub base_revision: Option<String>,
        /// Video node that receives the video as an asset; excludes `place`. Without a target, the job alone has the video.
        #[schema(value_type = Option<NodeReference>)]
        pub target_node_id: Option<String>,
        /// Adds the target in place of a node that exists.
        pub place: Option<TargetPlace>,
        /// `true` if the nodes among frames and references are connected to the target. Only with a target. Default: `true` with
        /// `place`.
        pub connect: Option<bool>,
        /// `true` if the target takes the largest size within its present box that shows its result whole; one that was resized meanwhile
        /// keeps its size. Only with a target. Implied by `place`.
        #[serde(default)]
        pub fit: bool,
        /// Owner of the canvas, for a plain id.
        #[schema(value_type = Option<AccountUid>)]
        pub owner_uid: Option<String>,
        /// How many outputs the user wants, at least as many as the start makes. What it does not make is owed until another start
        /// makes it (`retryOf`) or it is given up, and until then the work is not done. Default: as many as it makes.
        #[schema(minimum = 1, maximum = 64)]
        pub asked: Option<u32>,
        /// Ended run or job of the caller, on the same canvas or on none, that this start makes up for: it owes as many outputs fewer
        /// as this start makes.
        #[schema(pattern = "^(?:(?:run|job):)?[0-9a-fA-F-]{36}$")]
        pub retry_of: Option<String>,
        /// Aspect ratio, one of those that the model offers.
        #[schema(max_length = 80)]
        pub aspect_ratio: Option<String>,
        /// Duration in seconds, one of those that the model offers.
        #[schema(minimum = 1, maximum = 120)]
        pub duration_seconds: Option<u32>,
        /// Resolution, one of those that the model offers.
        #[schema(max_length = 80)]
        pub resolution: Option<String>,
        /// `true` if the video has sound, for models that offer the choice.
        pub generate_audio: Option<bool>,
        /// First frame: a node handle, an asset handle or the public HTTPS URL of an image.
        #[schema(value_type = Option<ImageSource>)]
        pub first_frame: Option<String>,
        /// Last frame; requires a first frame.
        #[schema(value_type = Option<ImageSource>)]
        pub last_frame: Option<String>,
        /// Images that guide the video.
        #[serde(default)]
        #[schema(value_type = Vec<VideoReferenceForm>, inline, max_items = 9)]
        pub references: Vec<ReferenceItem>,
        /// Webhook to notify when the job ends.
        pub webhook: Option<WebhookInput>,
    }
}
