//! Jobs: a compatibility alias of runs for image and Action work.

pub mod cancel;
pub mod read;
