//! Tests of image generation against the simulators of all providers.

mod cancels;
mod crashes;
mod failures;
pub mod fixture;
mod masks;
mod privacy;
mod successes;
