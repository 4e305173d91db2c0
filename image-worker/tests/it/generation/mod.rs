//! Image generation against simulators of every provider.

mod cancels;
mod crashes;
mod failures;
mod studio;
mod successes;
