//! Tests of the image-worker with a real database and object store, driven by the real runner.
//! There is no broker: the runner finds tasks by polling.

mod actions;
mod decoders;
mod generation;
mod harness;
mod imports;
mod origins;
mod recipes;
mod renditions;
mod sweeps;
