//! A generated image on its way from a model to the store.

use domain::origin::DigitalSourceType;
use raster::Format;
use worker::files::CleanContent;

/// An image that was decoded successfully.
pub(super) struct GeneratedImage {
    /// The content of the file.
    pub content: CleanContent,
    /// The format, detected from the bytes.
    pub format: Format,
    /// The width in pixels, as displayed.
    pub width: u32,
    /// The height in pixels, as displayed.
    pub height: u32,
    /// Where it comes from.
    pub origin: Option<DigitalSourceType>,
    /// What became of the job's mask.
    pub mask: MaskOutcome,
}

/// What became of the mask of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MaskOutcome {
    /// The job has no mask.
    Unmasked,
    /// The output has the source's pixels where the mask keeps.
    Applied,
    /// The output is as the model made it, as requested.
    NotWanted,
    /// The output is as the model made it, because it has another shape than the source.
    NotApplied,
}

impl MaskOutcome {
    /// The value of `images[].masked`.
    pub(super) fn masked(self) -> Option<bool> {
        match self {
            Self::Unmasked => None,
            Self::Applied => Some(true),
            Self::NotWanted | Self::NotApplied => Some(false),
        }
    }
}
