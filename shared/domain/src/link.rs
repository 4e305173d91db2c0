//! Capability links: URLs that download one file, or take one upload, without a token (docs/reference/assets.md#capability-links).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;
use crate::asset::{Asset, AssetMediaType};
use crate::graph::{Position, named};
use crate::id::{AssetHandle, CanvasHandle, NodeId};
use crate::known::Name;

/// What an upload link takes. Stored with the link.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Slot {
    /// Name of the asset.
    pub name: Option<String>,
    /// Size of the file, if it was declared.
    pub bytes: Option<u64>,
    /// SHA-256 of the file in hexadecimal digits, if it was declared.
    pub sha256: Option<String>,
    /// Where the node goes, if the upload belongs to a canvas.
    pub cell: Option<Cell>,
}

/// The place of the node of an upload.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Top left corner; a taken one is replaced by the nearest free place.
    pub at: Position,
    /// The Section that it joins.
    pub section: Option<NodeId>,
    /// Title of the node; the name of the asset if there is none.
    pub title: Option<String>,
}

/// What an upload link made. Stored with the link.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filled {
    pub asset: AssetHandle,
    /// Revision of the canvas that has its node.
    pub revision: Option<String>,
}

named! {
    /// Why there is no link for an item.
    DownloadRefusal {
        /// It does not exist, has no file or is not visible to the caller.
        NotFound = "not_found",
        /// The job is not over yet.
        Conflict = "conflict",
    }
}

/// Links to files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DownloadLinks {
    /// One for each item that has a file, in the order of the items.
    pub downloads: Vec<DownloadLink>,
    /// The other items.
    pub refused: Vec<RefusedDownload>,
}

/// A link to a file.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownloadLink {
    /// The item as the request names it.
    pub item: String,
    /// Where a GET without a token downloads it. Anyone who has it can; do not store it.
    #[schema(format = Uri)]
    pub url: String,
    /// File name. User-authored.
    pub name: String,
    /// Media type of the file.
    #[schema(value_type = AssetMediaType)]
    pub mime_type: String,
    /// Size of the file.
    #[schema(minimum = 0)]
    pub bytes: i64,
    /// SHA-256 of the file.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub sha256: String,
    /// Width as displayed, in pixels, where it is known.
    #[schema(minimum = 1)]
    pub width: Option<i32>,
    /// Height as displayed, in pixels, where it is known.
    #[schema(minimum = 1)]
    pub height: Option<i32>,
    /// When the link ends, unless its token ends before.
    pub expires_at: Timestamp,
}

/// An item without a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RefusedDownload {
    /// The item as the request names it.
    pub item: String,
    /// The reason.
    #[schema(value_type = DownloadRefusal)]
    pub code: Name<DownloadRefusal>,
}

/// Links that take one file each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UploadLinks {
    /// One for each file, in the order of the files.
    pub uploads: Vec<UploadLink>,
}

/// A link that takes one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadLink {
    /// Name of the link in what people and programs tell each other. It opens nothing.
    #[schema(pattern = "^[0-9a-f]{16}$")]
    pub id: String,
    /// Name of the asset. User-authored.
    pub name: String,
    /// Where a PUT without a token sends the bytes. Anyone who has it can; do not store it.
    #[schema(format = Uri)]
    pub url: String,
    /// A command for a shell that sends the file of this name.
    pub curl: String,
    /// Size of the file at most.
    #[schema(minimum = 1)]
    pub max_bytes: u64,
    /// When the link ends, unless its token ends before.
    pub expires_at: Timestamp,
}

/// The answer to a PUT to an upload link.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uploaded {
    pub asset: Asset,
    /// Handle of the node that shows it.
    pub node: Option<String>,
    /// Ref of that node.
    #[serde(rename = "ref")]
    pub short: Option<String>,
    /// The canvas that has the node.
    pub canvas: Option<UploadedInto>,
    /// `true` if the same bytes were sent before.
    pub replayed: Option<bool>,
}

/// The canvas that an upload changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UploadedInto {
    pub handle: CanvasHandle,
    /// The revision that the upload made.
    pub revision: String,
}

/// The open links of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenLinks {
    /// Links that download.
    #[schema(minimum = 0)]
    pub downloads: i64,
    /// Links that wait for their upload.
    #[schema(minimum = 0)]
    pub uploads: i64,
}
