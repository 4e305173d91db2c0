//! Assets: durable images and their previews.

pub mod content;
pub mod downloads;
pub mod image;
pub mod lineage;
pub mod list;
pub mod preview;
pub mod read;
pub mod upload;
pub mod uploads;
