//! The application layer: what the service does, whoever asks for it.
//!
//! A process turns its input into a command, and the result of the command into its output: the gateway requests and responses, the
//! workers tasks and decisions. A command loads what it needs, decides on the loaded state, and writes
//! (docs/architecture.md#application-layer). SQL is in `db`, graphs are in `canvas`, values are in `domain`.

pub mod account;
pub mod budget;
pub mod campaign;
pub mod canvas;
pub mod command;
pub mod connection;
pub mod delivery;
pub mod device;
pub mod error;
pub mod graphs;
pub mod job;
pub mod models;
pub mod oauth;
pub mod purge;
pub mod recipe;
pub mod removal;
pub mod session;
pub mod sharing;
pub mod start;
pub mod storage;
pub mod target;
pub mod token;
pub mod upload;

pub use command::{Base, CanvasWrite, Command, Key, KnownOutcome, LockedCanvas, Locks, replay, run};
pub use error::{Error, Result};
pub use models::Models;
pub use start::{Acceptance, Start, Terms, Wanted, quote};
