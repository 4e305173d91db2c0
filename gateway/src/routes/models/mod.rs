//! Models that the caller can run (docs/reference/models.md).

pub mod list;
pub mod read;
