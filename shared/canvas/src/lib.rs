//! The graph engine: what a batch of operations does to a canvas, decided in memory.
//!
//! A request's operations become a [`Batch`], which holds every rule that the request alone can break; [`apply()`] takes
//! the batch to a [`Graph`], atomically and in order, and reports exactly what changed. Both list every violation they
//! can find, not only the first. [`validate()`] then says what is left to fix. Nothing here does I/O or reads a clock, so a dry run is the same call as a write.

pub mod apply;
pub mod batch;
mod findings;
pub mod graph;
pub mod instance;
mod journal;
mod metadata;
mod outline;
pub mod pack;
pub mod placement;
pub mod review;
pub mod size;
mod slots;
pub mod svg;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod properties;

pub use apply::{Applied, Options, Refused, Touched, Writes, apply};
pub use batch::Batch;
pub use graph::Graph;
pub use outline::outline;
pub use review::{is_blocked, validate};
