//! Canvases: a graph each, under one revision.

pub mod changes;
pub mod create;
pub mod list;
pub mod node;
pub mod operations;
pub mod outline;
pub mod read;
pub mod render;
pub mod review;
pub mod set_aside;
pub mod workflows;
