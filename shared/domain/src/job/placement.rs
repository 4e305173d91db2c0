//! A result that a worker has stored and that is not shown yet.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::VideoFacts;
use crate::asset::MetadataClass;
use crate::id::{AssetId, NodeId};
use crate::metadata::Provenance;
use crate::origin::DigitalSourceType;

/// A stored result, and the node that will show it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The node that shows the result, if it still waits for the job.
    pub node: NodeId,
    /// Id of the new asset. Its owner is the owner of the canvas.
    pub asset: AssetId,
    /// File name of the asset.
    pub name: String,
    /// Media type.
    pub mime_type: String,
    /// Width in pixels; 0 for a video of unknown size.
    pub width: u32,
    /// Height in pixels; 0 for a video of unknown size.
    pub height: u32,
    /// Size of the stored file in bytes.
    pub bytes: u64,
    /// SHA-256 of the stored file.
    pub sha256: [u8; 32],
    /// Key of the blob that was put.
    pub blob_key: Uuid,
    /// The origin of the result, if it is known.
    pub origin: Option<DigitalSourceType>,
    /// The classes of metadata that were removed from the file before it was stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata_removed: Vec<MetadataClass>,
    /// `true` if a mask was applied, `false` if there is one that was not.
    pub masked: Option<bool>,
    /// Its rendition of [`RENDITION_EAGER`](crate::limits::RENDITION_EAGER) pixels, if it was made together with the result.
    pub preview: Option<Preview>,
    /// Of a video.
    pub video: Option<PlacedVideo>,
    /// The node's new `provenance`, without `createdAt`, which is added.
    pub provenance: Provenance,
}

/// What a video has besides its file.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlacedVideo {
    /// What is known of it.
    pub facts: VideoFacts,
    /// Its poster, a stored image.
    pub poster: Option<Preview>,
}

/// An image that was put together with what it stands for: a rendition of an image, or the poster of a video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preview {
    /// Media type.
    pub mime_type: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
    /// Key of the blob that was put.
    pub blob_key: Uuid,
}
