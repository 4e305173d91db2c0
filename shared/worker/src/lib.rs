//! The common part of the workers that make images and videos.
//!
//! - [`start`] starts a process with a [`Worker`]: files, threads and memory for pixels, outbound
//!   HTTP, and the completion of jobs;
//! - [`files`] are read from and written to the object store, and [`image`]s are converted to a
//!   form that a provider accepts;
//! - [`film`] reads what a film is, its poster and its frames;
//! - [`Pixels`] runs pixel work within its memory budget, foreign images in a decoder ([`decode`]);
//! - [`generation`] runs a model until there is a result, without paying twice. The embedded
//!   runtimes belong to the processes; every provider is called here.
//!
//! A process adds what is specific to it: how it dispatches its tasks, and how it validates, places
//! and shows its results.

mod boot;
pub mod decode;
mod error;
pub mod files;
pub mod film;
pub mod generation;
pub mod image;
pub mod marks;
mod pixels;
mod worker;

pub use boot::{setup, start};
pub use error::{Error, Interrupt, wait_out};
pub use pixels::{Pixels, ProgramRun, Reservation};
pub use worker::{TRANSACTION_TRIES, TakenUp, Worker, account_of, decision, failure_of, placements};
