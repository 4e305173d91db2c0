//! Image Actions: deterministic transformations that cost no credit.

pub mod list;
mod plan;
pub mod read;
pub mod run;
