//! Jobs on a real database.

pub(crate) mod fixture;

mod endings;
mod outputs;
mod progress;
mod retention;
mod videos;
