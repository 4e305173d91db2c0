//! The image-worker against a real database and object store, driven by the real runner. No broker: the runner finds
//! work by itself.

mod actions;
mod generation;
mod imports;
mod recipes;
mod renditions;
mod sweeps;
mod world;
