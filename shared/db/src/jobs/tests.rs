//! Jobs on a real database.

mod fixture;

mod endings;
mod outputs;
mod progress;
mod retention;
mod videos;
