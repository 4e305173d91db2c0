//! Runs: the shared view of image and Action work, and of Recipe runs (decisions 9).

pub mod cancel;
pub mod events;
pub mod read;
mod view;

pub use view::{RunDocument, Target, View, cancel_job, cancel_record, document, load, read_record, recipe_document};
