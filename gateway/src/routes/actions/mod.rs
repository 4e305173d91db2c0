//! Image Actions: deterministic transformations that cost no credit.

mod plan;

pub mod chain;
pub mod list;
pub mod read;
pub mod run;
