//! Image generation against simulators of every provider.

mod cancels;
mod crashes;
mod failures;
pub mod studio;
mod successes;
