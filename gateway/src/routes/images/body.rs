//! The body of the three image requests (docs/reference/images.md#request-fields).

use domain::id::{ElementVersionHandle, ImageHandle, ModelReference, NodeReference};
use domain::job::{ImageMaskForm, ImageReferenceForm, MaskMode};
use domain::limits::MASK_FEATHER_MAX;
use domain::webhook::WebhookInput;
use serde::Deserialize;

use crate::place::TargetPlace;
use crate::reference::ReferenceItem;
use crate::start::start_request;

const _: () = assert!(MASK_FEATHER_MAX == 64, "the schema of maskFeather has the limit");

/// A mask, as a start names it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum MaskItem {
    /// The handle alone.
    Plain(String),
    /// The handle with how the mask is read.
    Detailed {
        /// The handle.
        handle: String,
        /// What of the pixels is read.
        mode: Option<MaskMode>,
        /// `true` if it is read the other way round.
        invert: Option<bool>,
    },
}

impl MaskItem {
    /// Handle, mode and inversion.
    pub fn parts(&self) -> (&str, MaskMode, bool) {
        match self {
            Self::Plain(handle) => (handle, MaskMode::Auto, false),
            Self::Detailed { handle, mode, invert } => {
                (handle, mode.unwrap_or(MaskMode::Auto), invert.unwrap_or_default())
            }
        }
    }
}

start_request! {
    /// Request to generate, edit or vary images. Edit and variations need images to start from; generate and edit need a prompt. One
    /// of `targetNodeId`, `targetNodeIds` and `place` is required.
    pub struct ImageStart on a canvas {
        /// Image node that receives the only result; excludes `targetNodeIds` and `place`.
        #[schema(value_type = Option<NodeReference>)]
        pub target_node_id: Option<String>,
        /// Image nodes that receive one result each, in this order. None is named twice. Excludes `targetNodeId` and `place`.
        #[schema(value_type = Option<Vec<NodeReference>>, min_items = 1, max_items = 4)]
        pub target_node_ids: Option<Vec<String>>,
        /// Adds the targets in place of nodes that exist.
        pub place: Option<TargetPlace>,
        /// `true` if the nodes among `references` and `source` are connected to each target: `reference` with its role, `flow`
        /// from the source. Default: `true` with `place`.
        pub connect: Option<bool>,
        /// `true` if each target takes the largest size within its present box that shows its result whole; one that was resized meanwhile
        /// keeps its size. Implied by `place`.
        #[serde(default)]
        pub fit: bool,
        /// Prompt; excludes `promptNodeId`.
        #[schema(min_length = 1, max_length = 8000)]
        pub prompt: Option<String>,
        /// Text or sticky node whose content is the prompt.
        #[schema(value_type = Option<NodeReference>)]
        pub prompt_node_id: Option<String>,
        /// Images that guide the results. When omitted with one target: the images of its incoming `reference` connections.
        #[schema(value_type = Option<Vec<ImageReferenceForm>>, inline, min_items = 1, max_items = 16)]
        pub references: Option<Vec<ReferenceItem>>,
        /// Versions of the caller's Elements, `element:<id>@v<n>`.
        #[serde(default)]
        #[schema(value_type = Vec<ElementVersionHandle>, max_items = 8)]
        pub elements: Vec<String>,
        /// Node or asset handle of an image that is appended to the references; 16 in all. With a mask it is needed, and is the
        /// image that is changed.
        #[schema(value_type = Option<ImageHandle>)]
        pub source: Option<String>,
        /// Image that says what of the source changes: white, or what is transparent where any of it is. It has the size of the source,
        /// or its aspect ratio. Only in edits.
        #[schema(value_type = Option<ImageMaskForm>, inline)]
        pub mask: Option<MaskItem>,
        /// Width in pixels of the transition at the edge of the mask, inside the area that changes. Default: 8.
        #[schema(maximum = 64)]
        pub mask_feather: Option<u32>,
        /// `false` takes the model's image as it is; otherwise what the mask keeps is restored from the source. Default: `true`.
        pub mask_composite: Option<bool>,
        /// Number of targets; must equal their actual number.
        #[schema(minimum = 1, maximum = 4)]
        pub count: Option<u32>,
        /// How many outputs the user wants, at least as many as the start makes. What it does not make is owed until another start
        /// makes it (`retryOf`) or it is given up, and until then the work is not done. Default: as many as it makes.
        #[schema(minimum = 1, maximum = 64)]
        pub asked: Option<u32>,
        /// Ended run or job of the caller, on the same canvas or on none, that this start makes up for: it owes as many outputs fewer
        /// as this start makes.
        #[schema(pattern = "^(?:(?:run|job):)?[0-9a-fA-F-]{36}$")]
        pub retry_of: Option<String>,
        /// Plain id of the saved connection to run the model with.
        #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$")]
        pub connection_id: Option<String>,
        /// Provider's model id or a `model:` handle; when omitted, the account's first model with the capability.
        #[schema(value_type = Option<ModelReference>)]
        pub model: Option<String>,
        /// Size, one of those that the model offers.
        #[schema(max_length = 80)]
        pub size: Option<String>,
        /// Quality, one of those that the model offers.
        #[schema(max_length = 80)]
        pub quality: Option<String>,
        /// Webhook to notify when the job ends.
        pub webhook: Option<WebhookInput>,
    }
}
