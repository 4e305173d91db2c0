//! Videos (docs/reference/videos.md).

mod body;
pub mod generate;
mod images;
mod plan;
mod rules;
