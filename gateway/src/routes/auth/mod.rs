//! The caller itself.

pub mod status;
