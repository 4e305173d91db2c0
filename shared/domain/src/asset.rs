//! Assets: stored images and videos.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Timestamp;
use crate::graph::named;
use crate::id::{AccountUid, AssetHandle, AssetId, NodeHandle, NodeId};
use crate::known::{self, Name};
use crate::limits::{FILE_NAME_MAX, RENDITION_EAGER};
use crate::lineage::{AssetInput, AssetPlace, HiddenOrigins, Made};
use crate::origin::{AiGenerated, DigitalSourceType, Origin, OriginFrom};
use crate::page::Page;

/// Widths of the renditions that renders embed, in pixels, in order of preference. Up to [`RENDITION_EAGER`] they are
/// those of previews, so that both share most renditions; smaller widths serve images that are very high.
const THUMBNAIL_WIDTHS: [u32; 10] = [RENDITION_EAGER, 256, 128, 64, 32, 16, 8, 4, 2, 1];

named! {
    /// Media type of a stored image.
    ImageMediaType {
        /// PNG.
        Png = "image/png",
        /// JPEG.
        Jpeg = "image/jpeg",
        /// WebP.
        Webp = "image/webp",
        /// GIF.
        Gif = "image/gif",
    }
}

named! {
    /// Media type of a stored file.
    AssetMediaType {
        /// PNG.
        Png = "image/png",
        /// JPEG.
        Jpeg = "image/jpeg",
        /// WebP.
        Webp = "image/webp",
        /// GIF.
        Gif = "image/gif",
        /// MP4, of a video.
        Mp4 = "video/mp4",
    }
}

named! {
    /// Kind of an asset.
    AssetKind {
        /// An image.
        Image = "image",
        /// A video.
        Video = "video",
        /// A prompt. This service stores none: prompts are texts of nodes.
        Prompt = "prompt",
    }
}

named! {
    /// The kinds of assets of a list.
    AssetKindFilter {
        /// Images.
        Image = "image",
        /// Videos.
        Video = "video",
        /// Prompts.
        Prompt = "prompt",
        /// Every kind.
        All = "all",
    }
}

named! {
    /// The order of a list of assets.
    AssetSort {
        /// Last stored first.
        New = "new",
        /// First stored first.
        Old = "old",
        /// By name, whatever its case.
        Name = "name",
        /// Largest file first.
        Size = "size",
    }
}

impl AssetKindFilter {
    /// The kinds that a list contains; without a filter: images and prompts.
    pub const fn kinds(filter: Option<Self>) -> &'static [AssetKind] {
        match filter {
            None => &[AssetKind::Image, AssetKind::Prompt],
            Some(Self::Image) => &[AssetKind::Image],
            Some(Self::Video) => &[AssetKind::Video],
            Some(Self::Prompt) => &[AssetKind::Prompt],
            Some(Self::All) => AssetKind::ALL,
        }
    }
}

named! {
    /// The treatment of private metadata of an image when it is stored.
    UploadMetadata {
        /// It is removed, and the file as it came is kept for the owner. In a canvas of another account: as `strip`.
        Auto = "auto",
        /// It stays in the file, which everybody who may read the asset gets.
        Keep = "keep",
        /// It is removed for good.
        Strip = "strip",
    }
}

named! {
    /// Class of metadata that was removed from an image.
    MetadataClass {
        /// Where it was taken.
        Location = "location",
        /// The device that took it.
        Device = "device",
        /// Who is in it, who owns the camera, and how to reach its author.
        Person = "person",
        /// Smaller copies of the image.
        Thumbnail = "thumbnail",
        /// Bytes after the image in the file.
        Trailer = "trailer",
        /// Comments, and the inputs of a generator.
        Text = "text",
        /// Anything else.
        Other = "other",
    }
}

named! {
    /// Why an asset has an original.
    OriginalReason {
        /// Private metadata was removed from the file that is served.
        PrivateMetadata = "private-metadata",
        /// It has a format that is converted.
        Converted = "converted",
    }
}

/// The file of an asset as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginalFile {
    /// Key in the object store.
    pub blob_key: Uuid,
    /// Media type.
    pub mime_type: String,
    /// Size in bytes.
    pub bytes: i64,
    /// Why it is not the file that is served.
    pub reason: OriginalReason,
}

/// What an asset of kind `video` has besides its file. All of it can be unknown: a video is stored whatever can be read of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VideoDetails {
    /// Duration in milliseconds.
    pub duration_ms: Option<i64>,
    /// `true` if it has a sound track.
    pub has_audio: Option<bool>,
    /// The image that stands for it: its first frame, or else the image that it was made to begin with.
    pub poster: Option<Poster>,
}

/// The image that stands for a video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poster {
    /// Key in the object store.
    pub blob_key: Uuid,
    /// Media type.
    pub mime_type: String,
}

/// Row of an asset.
#[derive(Clone, Debug, PartialEq)]
pub struct AssetRecord {
    /// Owner and id.
    pub handle: AssetHandle,
    /// Key of the canvas that the asset is stored in; `None` when it belongs to the account alone.
    pub canvas_key: Option<i64>,
    /// The node in which the upload was placed.
    pub node: Option<NodeId>,
    /// Kind of the asset.
    pub kind: AssetKind,
    /// File name.
    pub name: String,
    /// `image/png`, `image/jpeg`, `image/webp` or `image/gif`; `video/mp4` of a video.
    pub mime_type: String,
    /// Width as displayed, in pixels; 0 for a video of unknown size.
    pub width: i32,
    /// Height as displayed, in pixels; 0 for a video of unknown size.
    pub height: i32,
    /// Size of the stored file, in bytes.
    pub bytes: i64,
    /// Key of the file in the object store.
    pub blob_key: Uuid,
    /// The epoch that its preview tokens are bound to. It grows when an account loses a right to the asset.
    pub preview_epoch: i64,
    /// Where the image comes from, if that is known.
    pub origin: Option<Origin>,
    /// The classes of metadata that were removed from the file before it was stored.
    pub metadata_removed: Vec<MetadataClass>,
    /// The file as it came, for the owner alone.
    pub original: Option<OriginalFile>,
    /// Of an asset of kind `video`.
    pub video: Option<VideoDetails>,
    /// It has more than one frame.
    pub is_animated: bool,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Width of the rendition that renders embed of an image of this size, in pixels: the largest width for which neither
/// side exceeds [`RENDITION_EAGER`]. `None` when even a column of single pixels is higher; renders then show no
/// image.
pub fn thumbnail_width(width: i32, height: i32) -> Option<u32> {
    let fits = |rendition: u32| {
        let (width, height) = (i64::from(width.max(1)), i64::from(height));
        let shown = width.min(i64::from(rendition));
        // Rounded as renditions are: half up.
        (2 * height * shown + width) / (2 * width) <= i64::from(RENDITION_EAGER)
    };
    THUMBNAIL_WIDTHS.into_iter().find(|width| fits(*width))
}

/// Short-lived URL of an image or a video.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// Absolute URL.
    pub url: String,
    /// Remaining lifetime in seconds, at least 1.
    pub expires_in_seconds: u64,
}

/// Short-lived URLs of an asset.
#[derive(Clone, Debug, PartialEq)]
pub struct AssetUrls {
    /// Of its image; of a video: of its poster, if it has one.
    pub preview: Option<Preview>,
    /// Of its video.
    pub video: Option<Preview>,
}

/// The file of an asset as it came, which only its owner can download.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Original {
    /// Media type.
    pub mime_type: String,
    /// Size in bytes.
    #[schema(minimum = 0)]
    pub bytes: i64,
    /// Why it is not the file that is served.
    #[schema(value_type = OriginalReason)]
    pub reason: Name<OriginalReason>,
}

/// An asset.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Asset {
    /// Plain id of the asset.
    pub id: AssetId,
    /// Handle of the asset.
    pub handle: AssetHandle,
    /// Uid of the account that owns the asset.
    pub owner_uid: AccountUid,
    /// Kind of the asset.
    pub kind: AssetKind,
    /// File name. User-authored.
    pub name: String,
    /// Title of the newest node that shows it and that the caller can read. In reads and lists. User-authored.
    pub title: Option<String>,
    /// The provider's id of the model that made it. In lists; a read has `made`.
    pub model: Option<String>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// Media type of the stored bytes.
    #[schema(value_type = AssetMediaType)]
    pub mime_type: String,
    /// Width as displayed, in pixels; 0 for a video of unknown size.
    #[schema(minimum = 0)]
    pub width: i32,
    /// Height as displayed, in pixels; 0 for a video of unknown size.
    #[schema(minimum = 0)]
    pub height: i32,
    /// Size of the stored file, in bytes.
    #[schema(minimum = 0)]
    pub bytes: i64,
    /// Duration of a video in seconds, where it is known.
    #[schema(minimum = 0)]
    pub duration_seconds: Option<f64>,
    /// `true` if a video has sound, where that is known.
    pub has_audio: Option<bool>,
    /// Short-lived URL of the image; of a video: of its poster, absent when it has none. Anyone who has it can read the image; do
    /// not store it.
    #[schema(format = Uri)]
    pub preview_url: Option<String>,
    /// Remaining lifetime of `previewUrl`, in seconds.
    #[schema(minimum = 1)]
    pub preview_expires_in_seconds: Option<u64>,
    /// Short-lived URL of a video, for players. Anyone who has it can play the video; do not store it.
    #[schema(format = Uri)]
    pub video_url: Option<String>,
    /// Remaining lifetime of `videoUrl`, in seconds.
    #[schema(minimum = 1)]
    pub video_expires_in_seconds: Option<u64>,
    /// Handle of the node in which the upload was placed.
    #[schema(value_type = Option<NodeHandle>)]
    pub node: Option<String>,
    /// Where the image comes from, as a term of the IPTC vocabulary for digital source types. Absent when it is not known.
    #[serde(default, deserialize_with = "known::or_default")]
    pub origin: Option<DigitalSourceType>,
    /// Who says so. Metadata can be written by anybody: of what they say, only that AI was used counts in `aiGenerated`.
    #[serde(default, deserialize_with = "known::or_default")]
    pub origin_from: Option<OriginFrom>,
    /// Use of AI in the image.
    #[serde(default, deserialize_with = "known::or_default")]
    #[schema(required = true)]
    pub ai_generated: AiGenerated,
    /// Classes of private and other metadata that were removed before the file was stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<MetadataClass>, required = false)]
    pub metadata_removed: Vec<Name<MetadataClass>>,
    /// The file as it came. Only the owner of the asset sees it.
    pub original: Option<Original>,
    /// `true` if the file has more than one frame. Work, renditions and renders use the first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub animated: bool,
}

/// One asset.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssetRead {
    /// The asset, with a new preview URL.
    pub asset: Asset,
    /// How it came to be. In answers to reads; absent if an earlier release stored the asset.
    pub made: Option<Made>,
    /// What it was made from, in order. With `include=inputs`.
    pub inputs: Option<Vec<AssetInput>>,
    /// The nodes that show it and that the caller can read, newest first. With `include=usedIn`.
    #[schema(max_items = 20)]
    pub used_in: Option<Vec<AssetPlace>>,
    /// `true` if more nodes show it than `usedIn` lists. With `include=usedIn`.
    pub more: Option<bool>,
    /// Numbers of the inputs and nodes that the caller cannot read. With `include`.
    pub hidden: Option<HiddenOrigins>,
    /// `true` if the response repeats that of an earlier, equal upload.
    pub replayed: Option<bool>,
}

impl AssetRead {
    /// An answer with the asset alone. `replayed`: that of an earlier, equal request.
    pub fn new(asset: Asset, replayed: Option<bool>) -> Self {
        Self { asset, made: None, inputs: None, used_in: None, more: None, hidden: None, replayed }
    }
}

/// A page of assets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AssetList {
    /// Assets, each with a new preview URL.
    pub assets: Vec<Asset>,
    /// Position in the list.
    pub page: Page,
}

impl MetadataClass {
    /// The classes of these names, which are those of a list elsewhere.
    ///
    /// # Panics
    ///
    /// If a name is unknown.
    pub fn named<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Self> {
        names.map(|name| name.parse().expect("a known class")).collect()
    }
}

impl AssetRecord {
    /// The form that is served to `viewer`, with these URLs.
    pub fn document(self, viewer: &AccountUid, AssetUrls { preview, video: video_url }: AssetUrls) -> Asset {
        let original = self.original.filter(|_| self.handle.owner == *viewer);
        let video = self.video.unwrap_or_default();
        Asset {
            id: self.handle.id.clone(),
            owner_uid: self.handle.owner.clone(),
            handle: self.handle,
            kind: self.kind,
            name: self.name,
            title: None,
            model: None,
            created_at: self.created_at,
            mime_type: self.mime_type,
            width: self.width,
            height: self.height,
            bytes: self.bytes,
            // Milliseconds are far below the precision of the type.
            duration_seconds: video.duration_ms.map(|duration| duration as f64 / 1000.0),
            has_audio: video.has_audio,
            preview_expires_in_seconds: preview.as_ref().map(|preview| preview.expires_in_seconds),
            preview_url: preview.map(|preview| preview.url),
            video_expires_in_seconds: video_url.as_ref().map(|video| video.expires_in_seconds),
            video_url: video_url.map(|video| video.url),
            node: self.node.map(|node| node.handle()),
            origin: self.origin.map(|origin| origin.term),
            origin_from: self.origin.map(|origin| origin.from),
            ai_generated: AiGenerated::from_origin(self.origin),
            metadata_removed: self.metadata_removed.into_iter().map(Into::into).collect(),
            original: original.map(|OriginalFile { mime_type, bytes, reason, .. }| Original {
                mime_type,
                bytes,
                reason: reason.into(),
            }),
            animated: self.is_animated,
        }
    }
}

/// Words of a prompt in a file name, at most.
const NAME_WORDS: usize = 6;

/// The file name of the output of this number: the first words of its prompt, or `fallback` if there are none. Within the limit of
/// file names.
pub fn made_name(prompt: &str, fallback: &str, number: usize, extension: &str) -> String {
    let is_apart = |letter: char| !letter.is_alphanumeric() && !is_apostrophe(letter);
    let words = prompt.split(is_apart).map(|word| word.replace(is_apostrophe, "").to_lowercase());
    let words: Vec<String> = words.filter(|word| !word.is_empty()).take(NAME_WORDS).collect();
    let stem = if words.is_empty() { fallback.to_owned() } else { words.join("-") };
    let end = format!("-{number}.{extension}");
    stem.chars().take(FILE_NAME_MAX - end.len()).collect::<String>() + &end
}

fn is_apostrophe(letter: char) -> bool {
    matches!(letter, '\'' | '’')
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
    fn an_output_is_named_after_the_first_six_words_of_its_prompt() {
        for (prompt, name) in [
            ("Slate jacket on concrete", "slate-jacket-on-concrete-1.png"),
            ("a fox's den, at dawn: misty — and quiet", "a-foxs-den-at-dawn-misty-1.png"),
            ("one two three four five six", "one-two-three-four-five-six-1.png"),
            ("one two three four five six seven", "one-two-three-four-five-six-1.png"),
            ("../../etc/passwd\n", "etc-passwd-1.png"),
            ("Ein Käfer 4K", "ein-käfer-4k-1.png"),
            ("’ — …", "generate-1.png"),
            ("", "generate-1.png"),
        ] {
            assert_eq!(made_name(prompt, "generate", 1, "png"), name, "{prompt}");
        }
        let long = made_name(&"ä".repeat(8000), "generate", 12, "webp");
        assert_eq!((long.chars().count(), long.ends_with("ä-12.webp")), (FILE_NAME_MAX, true));
    }

    #[test]
    fn an_image_that_no_width_makes_short_enough_has_no_thumbnail() {
        for (width, height) in [(1, 513), (1, 30_000), (58, 30_000)] {
            assert_eq!(thumbnail_width(width, height), None, "{width} × {height}");
        }
        assert_eq!(thumbnail_width(1, 512), Some(512));
    }
}
