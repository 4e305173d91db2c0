//! Runs: the shared view of image and Action work, and of Recipe runs (docs/reference/jobs.md#jobs-and-runs).

pub mod cancel;
pub mod events;
pub mod list;
pub mod read;
