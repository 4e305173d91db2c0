//! Models that the caller can run (decisions 12.3).

pub mod list;
pub mod read;
