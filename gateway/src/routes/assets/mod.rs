//! Assets: durable pictures and their previews.

pub mod list;
pub mod preview;
pub mod read;
pub mod upload;
