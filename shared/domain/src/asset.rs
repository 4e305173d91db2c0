//! Assets: durable pictures.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Timestamp;
use crate::graph::named;
use crate::id::{AccountUid, AssetHandle, AssetId, NodeId};
use crate::limits::RENDITION_EAGER;

/// Widths of the renditions that renders embed, in pixels, the preferred first: those of previews up to
/// [`RENDITION_EAGER`], so that most are shared with them, and on down by halves for pictures that are very high.
const THUMBNAIL_WIDTHS: [u32; 10] = [RENDITION_EAGER, 256, 128, 64, 32, 16, 8, 4, 2, 1];

named! {
    /// What an asset is.
    AssetKind {
        /// A picture.
        Image = "image",
        /// A prompt. Not made by this service: prompts are texts of nodes.
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

/// The width of the rendition that renders embed of a picture of this size, in pixels: the largest neither side of which is
/// longer than [`RENDITION_EAGER`] (decisions 3.10). `None`: a picture so high that even a column of single pixels would be
/// longer; it is not shown.
pub fn thumbnail_width(width: i32, height: i32) -> Option<u32> {
    let fits = |rendition: u32| {
        let (width, height) = (i64::from(width.max(1)), i64::from(height));
        let shown = width.min(i64::from(rendition));
        // Rounded as renditions are: half up.
        (2 * height * shown + width) / (2 * width) <= i64::from(RENDITION_EAGER)
    };
    THUMBNAIL_WIDTHS.into_iter().find(|width| fits(*width))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thumbnail_has_no_side_longer_than_512() {
        for (width, height, chosen) in [
            (512, 512, 512),
            (5000, 100, 512),
            (100, 512, 512),
            (100, 513, 64),
            (600, 600, 512),
            (600, 601, 256),
            (1000, 2000, 256),
            (1000, 2004, 128),
            (300, 900, 128),
            (64, 512, 512),
            (100, 800, 64),
            (100, 801, 32),
            (100, 1000, 32),
            (10, 1000, 4),
            (100, 30_000, 1),
            (59, 30_000, 1),
            (0, 0, 512),
        ] {
            assert_eq!(thumbnail_width(width, height), Some(chosen), "{width} × {height}");
        }
    }

    #[test]
    fn a_picture_that_no_width_makes_short_enough_has_no_thumbnail() {
        for (width, height) in [(1, 513), (1, 30_000), (58, 30_000)] {
            assert_eq!(thumbnail_width(width, height), None, "{width} × {height}");
        }
        assert_eq!(thumbnail_width(1, 512), Some(512));
    }
}
