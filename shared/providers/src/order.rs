//! Orders of images and videos.

use std::sync::Arc;

use bytes::Bytes;
use domain::graph::Role;
use domain::model::Capability;

use crate::call_error::{CallError, Class};
use crate::catalogue::{Entry, MaskHandling};

/// The prompt of a variation without a prompt. No provider has a separate endpoint for variations
/// anymore, so they are sent as edits.
pub const VARIATION_PROMPT: &str =
    "Make a new variation of this image: keep its subject, style and mood, and vary composition and details.";

/// An image that is sent with an order.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderImage {
    /// The content of the file.
    pub bytes: Bytes,
    /// `image/png`, `image/jpeg` or `image/webp`, which every provider reads.
    pub media_type: &'static str,
    /// The role of the reference.
    pub role: Option<Role>,
}

/// The kind of output, with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// An image.
    Image {
        /// A size that the model offers.
        size: Option<String>,
        /// A quality that the model offers.
        quality: Option<String>,
    },
    Video {
        first_frame: Option<OrderImage>,
        /// The last frame; only together with a first frame.
        last_frame: Option<OrderImage>,
        /// A duration that the model offers.
        duration_seconds: Option<u32>,
        /// An aspect ratio that the model offers.
        aspect_ratio: Option<String>,
        /// A resolution that the model offers.
        resolution: Option<String>,
        /// `true` if the video has sound; only for models that can omit it.
        generate_audio: Option<bool>,
    },
}

/// One output of one model. A job with several outputs places several orders: half of the protocols allow one output
/// only, and an output that fails alone can then be reported and refunded alone.
#[derive(Clone, Debug)]
pub struct Order {
    pub model: Arc<Entry>,
    /// The capability of the model that is used.
    pub capability: Capability,
    /// The prompt, which may be empty in a variation.
    pub prompt: String,
    /// The reference images; at least one in an edit or a variation.
    pub references: Vec<OrderImage>,
    /// The mask of an edit, of the size of the first reference, in the [form](MaskForm) of the protocol. Only for models that are
    /// sent one.
    pub mask: Option<OrderImage>,
    /// The kind of output, which must match the capability.
    pub shape: Shape,
    /// The key of this output: 1 to 200 characters of visible ASCII, the same in every attempt at
    /// the output and different in every other order. It is sent to every provider as
    /// `Idempotency-Key`; [`ProtocolCapabilities::idempotency`](crate::ProtocolCapabilities::idempotency) says which ones
    /// honor it.
    pub idempotency_key: String,
}

/// The form of a mask that a protocol takes: a PNG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskForm {
    /// Gray; white changes.
    White,
    /// With alpha; what is transparent changes, and is white. The source is a PNG as well.
    Transparent,
}

/// Maximum size of a mask in bytes: below OpenAI's 4 MB, the smallest limit.
pub const MASK_BYTES_MAX: usize = 4_000_000 - 1;

/// The kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// An image: PNG, JPEG, WebP or GIF.
    Image,
    /// A video: MP4 or WebM.
    Video,
}

impl Order {
    /// The kind of output of the order.
    pub fn media(&self) -> Media {
        if self.capability.is_video() { Media::Video } else { Media::Image }
    }

    pub(crate) fn size(&self) -> Option<&str> {
        match &self.shape {
            Shape::Image { size, .. } => size.as_deref(),
            Shape::Video { .. } => None,
        }
    }

    pub(crate) fn quality(&self) -> Option<&str> {
        match &self.shape {
            Shape::Image { quality, .. } => quality.as_deref(),
            Shape::Video { .. } => None,
        }
    }

    /// The first and the last frame of a video.
    pub(crate) fn frames(&self) -> (Option<&OrderImage>, Option<&OrderImage>) {
        match &self.shape {
            Shape::Image { .. } => (None, None),
            Shape::Video { first_frame, last_frame, .. } => (first_frame.as_ref(), last_frame.as_ref()),
        }
    }

    /// The prompt that is sent. See [`instruction`].
    pub fn instruction(&self) -> String {
        instruction(self.capability, &self.prompt, self.references.iter().map(|image| image.role))
    }

    /// A seed derived from the idempotency key, for models that have such a parameter. It is the
    /// same in every attempt, so that a run can be recognized by it. It is an FNV-1a hash, folded
    /// to the 31 bits that every model accepts.
    pub(crate) fn seed(&self) -> u32 {
        let hash = self
            .idempotency_key
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        ((hash >> 32) ^ hash) as u32 & 0x7fff_ffff
    }

    /// Checks the order against the model's catalog entry before anything is sent.
    pub(crate) fn check(&self, image_bytes_max: usize) -> Result<(), CallError> {
        let model = &self.model;
        let refuse = |what: String| Err(CallError::new(Class::Invalid, what));
        if !model.capabilities.contains(&self.capability) {
            return refuse(format!("{} has no {}", model.id, self.capability));
        }
        let (first, last) = self.frames();
        let frames = match self.capability {
            Capability::VideoFromImage => (true, false),
            Capability::VideoFromFrames => (true, true),
            _ => (false, false),
        };
        if (first.is_some(), last.is_some()) != frames {
            return refuse(format!("{} takes other frames", self.capability));
        }
        let images = matches!(
            self.capability,
            Capability::ImageEdit | Capability::ImageVariations | Capability::VideoFromReferences
        );
        let (least, most) = match self.capability.is_video() && !images {
            true => (0, 0),
            false => (usize::from(images).max(model.references_min()), model.references_max()),
        };
        if !(least..=most).contains(&self.references.len()) {
            return refuse(format!("{} takes {least} to {most} references", model.id));
        }
        let takes_mask = self.capability == Capability::ImageEdit && model.mask == Some(MaskHandling::Native);
        if self.mask.is_some() && !takes_mask {
            return refuse(format!("{} is sent no mask", model.id));
        }
        if self.mask.is_none() && model.mask_required {
            return refuse(format!("{} needs a mask", model.id));
        }
        if self.mask.as_ref().is_some_and(|mask| mask.bytes.len() > MASK_BYTES_MAX) {
            return refuse(format!("the mask has more than {MASK_BYTES_MAX} bytes"));
        }
        if let Some(what) = self.not_offered() {
            return refuse(format!("{} does not offer this {what}", model.id));
        }
        let mut all = self.references.iter().chain(first).chain(last);
        if all.any(|image| image.bytes.len() > image_bytes_max) {
            return refuse(format!("a reference has more than {image_bytes_max} bytes"));
        }
        if self.instruction().encode_utf16().count() > model.prompt_max {
            return refuse(format!("{} takes prompts of at most {} UTF-16 code units", model.id, model.prompt_max));
        }
        Ok(())
    }

    /// The first parameter whose value the model does not offer.
    fn not_offered(&self) -> Option<&'static str> {
        let model = &self.model;
        let lacks = |offered: &[String], value: &Option<String>| value.as_ref().is_some_and(|it| !offered.contains(it));
        match &self.shape {
            _ if self.capability.is_video() != matches!(self.shape, Shape::Video { .. }) => Some("shape"),
            Shape::Image { size, .. } if lacks(&model.sizes, size) => Some("size"),
            Shape::Image { quality, .. } if lacks(&model.qualities, quality) => Some("quality"),
            Shape::Image { .. } => None,
            Shape::Video { duration_seconds: Some(it), .. } if !model.durations.contains(it) => Some("duration"),
            Shape::Video { aspect_ratio, .. } if lacks(&model.aspect_ratios, aspect_ratio) => Some("aspect ratio"),
            Shape::Video { resolution, .. } if lacks(&model.resolutions, resolution) => Some("resolution"),
            Shape::Video { generate_audio: Some(_), .. } if !model.audio_optional => Some("choice of audio"),
            Shape::Video { .. } => None,
        }
    }
}

/// The prompt that is sent: the requested prompt and, in words, the purpose of each reference with
/// a role, because providers have no roles. It is not a method of [`Order`], so that a caller
/// without the images can check it against a model's [`Entry::prompt_max`].
pub fn instruction(capability: Capability, prompt: &str, roles: impl Iterator<Item = Option<Role>>) -> String {
    let prompt = match prompt.trim() {
        "" if capability == Capability::ImageVariations => VARIATION_PROMPT,
        _ => prompt,
    };
    let roles = roles.enumerate().filter_map(|(index, role)| Some(format!("Image {}: {}.", index + 1, meaning(role?))));
    let lines: Vec<String> = std::iter::once(prompt.to_owned()).chain(roles).collect();
    lines.join("\n")
}

fn meaning(role: Role) -> &'static str {
    match role {
        Role::Identity => "keep the identity of who or what it shows",
        Role::Construction => "keep how what it shows is built",
        Role::Texture => "take its material and texture",
        Role::Fit => "take how what it shows sits and fits",
        Role::Style => "take its style, not its content",
    }
}
