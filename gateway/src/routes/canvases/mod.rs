//! Canvases: one graph under one revision each.

pub mod changes;
pub mod create;
pub mod list;
pub mod node;
pub mod operations;
pub mod outline;
pub mod read;
pub mod render;
pub mod review;
pub mod workflows;
pub mod write;
