//! Assets: durable pictures and their previews.

pub mod content;
pub mod list;
pub mod picture;
pub mod preview;
pub mod read;
pub mod upload;
