//! What every process stands on, and nothing that is specific to one of them.
//!
//! - [`config`]: one validated configuration from the environment;
//! - [`keys`]: the key ring for secrets at rest, and the keys derived from the installation key;
//! - [`clock`], [`random`], [`blocking`]: the one door each to time, randomness and threads (house rule 14);
//! - [`telemetry`], [`metrics`], [`probes`], and errors by [`chain`](fn@chain): what operators see;
//! - [`lifecycle`]: supervision of tasks and stopping in two stages.
//!
//! It imports no other room of the house.

pub mod blocking;
mod chain;
pub mod clock;
pub mod config;
pub mod keys;
pub mod lifecycle;
pub mod metrics;
pub mod probes;
pub mod random;
pub mod telemetry;

pub use chain::chain;
