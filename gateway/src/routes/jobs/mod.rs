//! Jobs: videos, and a compatibility alias of runs for image and Action work (docs/reference/jobs.md#jobs-and-runs).

pub mod cancel;
pub mod keep;
pub mod output;
pub mod read;
