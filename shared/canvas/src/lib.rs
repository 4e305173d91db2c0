//! The graph engine: computes in memory what a batch of operations does to a canvas.
//!
//! The operations of a request become a [`Batch`], whose construction checks every rule that depends on the request
//! alone. [`apply()`] applies the batch to a [`Graph`], atomically and in order, and reports exactly what changed. Both
//! report every violation they find, not only the first. [`validate()`] then lists the findings that remain. Nothing
//! here does I/O or reads a clock, so a dry run is the same call as a write.

pub mod apply;
pub mod batch;
mod findings;
pub mod footprint;
pub mod geometry;
pub mod graph;
pub mod instance;
mod journal;
mod metadata;
pub mod outline;
pub mod pack;
pub mod placement;
mod reference;
pub mod repair;
pub mod review;
pub mod size;
mod slots;
pub mod svg;
pub mod targets;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod properties;

pub use apply::{Applied, Options, Refused, Touched, apply};
pub use batch::Batch;
pub use footprint::Footprint;
pub use graph::Graph;
pub use review::{is_blocked, validate};
