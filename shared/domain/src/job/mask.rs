//! Masks of edits (`docs/reference/images.md#masks`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::graph::named;
use crate::id::{AssetHandle, ImageHandle};

named! {
    /// What of a mask's pixels says what changes.
    MaskMode {
        /// Alpha if any pixel is not opaque, otherwise luminance.
        Auto = "auto",
        /// What is transparent changes.
        Alpha = "alpha",
        /// What is white changes.
        Luminance = "luminance",
    }
}

/// A mask and how it is read.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageMask {
    /// The image.
    pub handle: ImageHandle,
    /// What of its pixels is read. Default: `auto`.
    pub mode: Option<MaskMode>,
    /// `true` if what the mask says to keep changes, and the reverse.
    pub invert: Option<bool>,
}

/// A mask, with how it is read or without.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum ImageMaskForm {
    /// Its handle alone.
    Plain(ImageHandle),
    /// With how it is read.
    Detailed(ImageMask),
}

/// The mask of an edit, as it was resolved when the job was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mask {
    /// Full node or asset handle, as the request named it.
    pub handle: String,
    /// The image that the handle meant when the job was accepted.
    pub asset: AssetHandle,
    /// What of its pixels is read.
    pub mode: MaskMode,
    /// `true` if it is read the other way round.
    pub invert: bool,
    /// Width of the transition inside the area that changes, in pixels.
    pub feather: u32,
    /// `true` if the worker restores what the mask keeps.
    pub composite: bool,
}
