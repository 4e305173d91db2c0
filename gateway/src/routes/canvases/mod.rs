//! Canvases: one graph under one revision each.

pub mod create;
pub mod list;
pub mod node;
pub mod operations;
pub mod read;
pub mod review;
