//! What a text model is asked for.

use std::sync::Arc;

use crate::catalogue::{Entry, EntryType};
use crate::fault::{Class, Fault};
use crate::order::Picture;

/// A text to write, by one model (decisions 13.1). Apart from [`Order`](crate::Order): a text has neither capability nor shape,
/// and its answer is always the result itself.
#[derive(Clone, Debug)]
pub struct TextOrder {
    /// The model; a text model.
    pub model: Arc<Entry>,
    /// Sent as it is, as the only message; at most [`Entry::prompt_max`] UTF-16 code units.
    pub prompt: String,
    /// Pictures that it is about, in the same message; at most as many as the model takes.
    pub pictures: Vec<Picture>,
    /// The same for every attempt at this text and no other: 1 to 200 of visible ASCII. No protocol honours it for texts.
    pub idempotency_key: String,
}

impl TextOrder {
    /// Judges the order by what the model declares, before anything is sent.
    pub(crate) fn check(&self, picture_bytes_max: usize) -> Result<(), Fault> {
        let model = &self.model;
        if model.kind != EntryType::Text {
            return Err(Fault::new(Class::Invalid, format!("{} writes no texts", model.id)));
        }
        if self.prompt.encode_utf16().count() > model.prompt_max {
            let limit = format!("{} takes prompts of at most {} UTF-16 code units", model.id, model.prompt_max);
            return Err(Fault::new(Class::Invalid, limit));
        }
        if self.pictures.len() > model.references_max() {
            let limit = format!("{} takes at most {} pictures", model.id, model.references_max());
            return Err(Fault::new(Class::Invalid, limit));
        }
        if self.pictures.iter().any(|picture| picture.bytes.len() > picture_bytes_max) {
            return Err(Fault::new(Class::Invalid, format!("a picture has more than {picture_bytes_max} bytes")));
        }
        Ok(())
    }

    /// What the provider calls the model.
    pub(crate) fn model_name(&self) -> &str {
        self.model.wire.endpoint.as_ref().unwrap_or(&self.model.id)
    }
}
