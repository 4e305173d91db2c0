//! Foundations of every process, with nothing that is specific to one of them.
//!
//! - [`config`]: one validated configuration from the environment;
//! - [`keys`]: the key ring for secrets at rest, and the keys derived from the installation key;
//! - [`clock`], [`random`], [`blocking`]: the only access to time, randomness and threads, enforced by clippy
//!   (docs/architecture.md#rules);
//! - [`account`]: on whose behalf a task works;
//! - [`shares`]: what is held at once, shared fairly among accounts;
//! - [`json`]: the memory that parsed JSON takes;
//! - [`telemetry`], [`metrics`], [`probes`], and error texts by [`chain`](fn@chain): what operators see;
//! - [`lifecycle`]: supervision of tasks and two-stage shutdown.
//!
//! It imports no other crate of the workspace.

pub mod account;
pub mod blocking;
mod chain;
pub mod clock;
pub mod config;
pub mod cpu;
pub mod json;
pub mod keys;
pub mod lifecycle;
pub mod metrics;
pub mod probes;
pub mod random;
pub mod shares;
pub mod stack;
pub mod telemetry;

pub use chain::chain;
