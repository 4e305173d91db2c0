//! The life of jobs.

mod batches;
mod endings;
mod outputs;
mod progress;
mod retention;
mod reviews;
mod videos;
