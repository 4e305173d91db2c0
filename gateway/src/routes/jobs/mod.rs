//! Jobs: videos, and a compatibility alias of runs for image and Action work (decisions 9.1).

pub mod cancel;
pub mod output;
pub mod read;
