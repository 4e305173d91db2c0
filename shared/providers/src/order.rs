//! What a provider is asked for.

use std::sync::Arc;

use bytes::Bytes;
use domain::graph::Role;
use domain::model::Capability;

use crate::catalogue::Entry;
use crate::fault::{Class, Fault};

/// The prompt of a variation that came without one: no provider has variations of its own any more, so that they are edits.
const VARIATION_PROMPT: &str =
    "Make a new variation of this image: keep its subject, style and mood, and vary composition and details.";

/// A picture that goes along.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The file.
    pub bytes: Bytes,
    /// `image/png`, `image/jpeg` or `image/webp`: what every provider reads.
    pub media_type: &'static str,
    /// What it is for.
    pub role: Option<Role>,
}

/// One picture to make. One order is one output: half of the protocols know no other, and an output that fails alone can
/// then be reported and refunded alone (decisions 10.6, 12.4).
#[derive(Clone, Debug)]
pub struct ImageOrder {
    /// One of the three image capabilities.
    pub capability: Capability,
    /// May be empty in a variation.
    pub prompt: String,
    /// At most 16; at least one in an edit or a variation.
    pub references: Vec<Picture>,
    /// One of those that the model offers.
    pub size: Option<String>,
    /// One of those that the model offers.
    pub quality: Option<String>,
}

/// One output to make, by one model.
#[derive(Clone, Debug)]
pub struct Order {
    /// The model.
    pub model: Arc<Entry>,
    /// What to make.
    pub image: ImageOrder,
    /// The same for every attempt at this output and no other: 1 to 200 of visible ASCII. It is sent to every provider as
    /// `Idempotency-Key`; see [`Promises::idempotency`](crate::Promises::idempotency) for who honours it.
    pub idempotency_key: String,
}

impl Order {
    /// The prompt that is sent: what was asked, and what each reference with a role is for. Providers know no roles; words
    /// are all there is.
    pub fn instruction(&self) -> String {
        let image = &self.image;
        let prompt = match image.prompt.trim() {
            "" if image.capability == Capability::ImageVariations => VARIATION_PROMPT,
            _ => &image.prompt,
        };
        let roles =
            image.references.iter().enumerate().filter_map(|(index, picture)| {
                picture.role.map(|role| format!("Image {}: {}.", index + 1, meaning(role)))
            });
        let lines: Vec<String> = std::iter::once(prompt.to_owned()).chain(roles).collect();
        lines.join("\n")
    }

    /// A number that is this order's own, for the models that take a seed: the same in every attempt, so that a run can be
    /// recognized by it. FNV-1a, folded to the 31 bits that every model takes.
    pub(crate) fn seed(&self) -> u32 {
        let hash = self
            .idempotency_key
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        ((hash >> 32) ^ hash) as u32 & 0x7fff_ffff
    }

    /// Judges the order by what the model declares, before anything is sent.
    pub(crate) fn check(&self, picture_bytes_max: usize) -> Result<(), Fault> {
        let (model, image) = (&self.model, &self.image);
        let refuse = |what: String| Err(Fault::new(Class::Invalid, what));
        if !model.capabilities.contains(&image.capability) {
            return refuse(format!("{} has no {}", model.id, image.capability));
        }
        let count = image.references.len();
        let least = usize::from(image.capability != Capability::ImageGenerate).max(model.references_min());
        if count < least || count > model.references_max() {
            return refuse(format!("{} takes {least} to {} references", model.id, model.references_max()));
        }
        for (what, value, offered) in
            [("size", &image.size, &model.sizes), ("quality", &image.quality, &model.qualities)]
        {
            if value.as_ref().is_some_and(|value| !offered.contains(value)) {
                return refuse(format!("{} does not offer this {what}", model.id));
            }
        }
        if image.references.iter().any(|picture| picture.bytes.len() > picture_bytes_max) {
            return refuse(format!("a reference has more than {picture_bytes_max} bytes"));
        }
        if self.instruction().encode_utf16().count() > model.prompt_max {
            return refuse(format!("{} takes prompts of at most {} characters", model.id, model.prompt_max));
        }
        Ok(())
    }
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
