//! What the workers that make pictures and videos have in common: the place that they work in, whatever they make.
//!
//! - [`start`] boots a process with what [`Worker`] holds: files, threads and memory for pixels, the way out, and the way to
//!   the end of a job;
//! - [`files`] go out of and into the object store, [`picture`]s into a form that a provider takes;
//! - [`Memory`] and [`Pixels`] are the budgets;
//! - [`generation`] drives a model to a result without ever paying twice: the embedded runtimes are the processes' own, every
//!   provider is asked here.
//!
//! A process adds what only it can do: which of its tasks mean what, and how its results are looked at, placed and shown.

mod boot;
mod error;
pub mod files;
pub mod generation;
mod memory;
pub mod picture;
mod pixels;
mod worker;

pub use boot::{setup, start};
pub use error::{Error, Stop, wait_out};
pub use memory::Memory;
pub use pixels::{Pixels, Reservation};
pub use worker::{TRANSACTION_TRIES, TakenUp, Worker, decision, failure_of, placements};
