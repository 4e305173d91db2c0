//! The task queue and its workers, for all processes: wake-up → claim → run under a lease →
//! decision (docs/architecture.md#how-work-moves). It does not depend on the kind of work.
//!
//! Work is a row in Postgres; a broker message is only a wake-up. Three guarantees follow from
//! this:
//!
//! - *Nothing is lost*: a task is a row, and only the transaction that writes its result deletes
//!   it. Wake-up messages are published after the commit and may be lost: an idle [`Runner`] polls
//!   the table itself.
//! - *No visible effect happens twice*: a task is claimed under a lease with a fencing token, and a
//!   statement without the current token changes nothing.
//! - *Nothing is stranded*: a lease that is not renewed expires. A task that was claimed too often
//!   without reaching an end is passed to [`Handler::exhausted`], which ends it.
//!
//! [`failpoint`] marks the places where a crash would do the most damage. [`Batcher`] combines many
//! statements into one. [`Process`] is the code that the worker processes share.

mod batch;
pub mod failpoint;
mod lease;
mod process;
mod refresh;
mod runner;
mod task;

pub use batch::{BatchError, Batcher};
pub use broker::Waker;
pub use lease::Lease;
pub use process::{BootError, Process, check_urls, main, windows};
pub use runner::{Runner, RunnerOptions};
pub use task::{Decision, Handler, HandlerResult, Task};
