//! Assets: durable pictures.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Timestamp;
use crate::graph::named;
use crate::id::{AccountUid, AssetHandle, AssetId, NodeId};

named! {
    /// What an asset is.
    AssetKind {
        /// A picture.
        Image = "image",
        /// A prompt.
        Prompt = "prompt",
    }
}

/// An asset's row.
#[derive(Clone, Debug, PartialEq)]
pub struct AssetRecord {
    /// Owner and id.
    pub handle: AssetHandle,
    /// The canvas that it is stored in; none: the account's own (decisions 6.2).
    pub canvas_key: Option<i64>,
    /// The node that the upload was placed in.
    pub node: Option<NodeId>,
    /// What it is.
    pub kind: AssetKind,
    /// The file's name.
    pub name: String,
    /// `image/png`, `image/jpeg`, `image/webp` or `image/gif`.
    pub mime_type: String,
    /// Pixels, as displayed.
    pub width: i32,
    /// Pixels, as displayed.
    pub height: i32,
    /// Of the stored file.
    pub bytes: i64,
    /// Where its bytes are.
    pub blob_key: Uuid,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A short-lived URL of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// Absolute.
    pub url: String,
    /// How long it works from now, at least 1.
    pub expires_in_seconds: u64,
}

/// An asset as it is served.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Asset {
    /// Plain id.
    pub id: AssetId,
    /// `asset:<ownerUid>:<id>`.
    pub handle: AssetHandle,
    /// The owner.
    pub owner_uid: AccountUid,
    /// What it is.
    pub kind: AssetKind,
    /// The file's name; user-authored.
    pub name: String,
    /// Media type of the stored bytes.
    pub mime_type: String,
    /// Pixels.
    #[schema(minimum = 0)]
    pub width: i32,
    /// Pixels.
    #[schema(minimum = 0)]
    pub height: i32,
    /// Of the stored file.
    #[schema(minimum = 0)]
    pub bytes: i64,
    /// A capability for this one picture; not to be stored.
    #[schema(format = Uri)]
    pub preview_url: String,
    /// How long the preview works.
    #[schema(minimum = 1)]
    pub preview_expires_in_seconds: u64,
    /// `node:<id>` of the node that the upload was placed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node: Option<String>,
}

impl AssetRecord {
    /// The served form, with `preview` of it.
    pub fn document(self, preview: Preview) -> Asset {
        Asset {
            id: self.handle.id.clone(),
            owner_uid: self.handle.owner.clone(),
            handle: self.handle,
            kind: self.kind,
            name: self.name,
            mime_type: self.mime_type,
            width: self.width,
            height: self.height,
            bytes: self.bytes,
            preview_url: preview.url,
            preview_expires_in_seconds: preview.expires_in_seconds,
            node: self.node.map(|node| node.handle()),
        }
    }
}
