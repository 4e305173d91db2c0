//! Videos (decisions 11).

mod body;
pub mod generate;
mod pictures;
mod rules;
