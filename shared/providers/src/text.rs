//! Orders of texts.

use std::sync::Arc;

use domain::counted;

use crate::call_error::{CallError, Class};
use crate::catalogue::{Entry, EntryType};
use crate::order::OrderImage;

/// A text to be written by one model. It is separate from [`Order`](crate::Order): a text has
/// neither a capability nor a shape, and its answer is always the result itself.
#[derive(Clone, Debug)]
pub struct TextOrder {
    pub model: Arc<Entry>,
    /// The prompt, sent unchanged as the only message; at most [`Entry::prompt_max`] UTF-16 code
    /// units.
    pub prompt: String,
    /// Images in the same message; at most as many as the model accepts.
    pub images: Vec<OrderImage>,
    /// The key of this text: 1 to 200 characters of visible ASCII, the same in every attempt at the
    /// text and different in every other order. No protocol honors it for texts.
    pub idempotency_key: String,
}

impl TextOrder {
    /// Checks the order against the model's catalog entry before anything is sent.
    pub(crate) fn check(&self, image_bytes_max: usize) -> Result<(), CallError> {
        let model = &self.model;
        if model.kind != EntryType::Text {
            return Err(CallError::new(Class::Invalid, format!("{} writes no texts", model.id)));
        }
        if self.prompt.encode_utf16().count() > model.prompt_max {
            let limit = format!("{} takes prompts of at most {} UTF-16 code units", model.id, model.prompt_max);
            return Err(CallError::new(Class::Invalid, limit));
        }
        if self.images.len() > model.references_max() {
            let limit = format!("{} takes at most {}", model.id, counted(model.references_max(), "image"));
            return Err(CallError::new(Class::Invalid, limit));
        }
        if self.images.iter().any(|image| image.bytes.len() > image_bytes_max) {
            return Err(CallError::new(Class::Invalid, format!("an image has more than {image_bytes_max} bytes")));
        }
        Ok(())
    }

    /// The name of the model in the provider's protocol.
    pub(crate) fn model_name(&self) -> &str {
        self.model.wire.endpoint.as_ref().unwrap_or(&self.model.id)
    }
}
