//! Image Actions: deterministic transformations that cost no credit.

pub mod list;
pub mod read;
pub mod run;
