//! The life of jobs.

mod endings;
mod outputs;
mod progress;
mod retention;
mod reviews;
mod together;
mod videos;
