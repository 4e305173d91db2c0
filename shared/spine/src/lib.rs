//! How work moves, for all processes: outbox → broker → claim → run under a lease → decision (house.md, "The way of one
//! Action"). It knows no kind of work.
//!
//! Postgres is the work, a broker message is a wake-up. Three things follow, and everything here rests on them:
//!
//! - *Nothing is lost*: a task is a row that only the transaction which writes its result deletes. [`Relay`] publishes
//!   wake-ups until they are confirmed, and a [`Runner`] that has nothing to do looks into the table by itself.
//! - *Nothing is done twice to a visible effect*: a task is claimed under a lease with a fencing token; what a worker
//!   without the token writes is refused by the statement itself.
//! - *Nothing is stranded*: a lease that is not renewed expires, and a task that was claimed too often without an end is
//!   given to [`Handler::exhausted`], which ends it.
//!
//! [`failpoint`] marks the places where a crash would hurt most; [`Batcher`] makes one statement of many; [`Process`] is what
//! the processes have in common.

mod batch;
pub mod failpoint;
mod lease;
mod process;
mod relay;
mod runner;
mod survey;
mod task;

pub use batch::{BatchError, Batcher};
pub use lease::Lease;
pub use process::{BootError, Process, main, windows};
pub use relay::{Nudge, Relay};
pub use runner::{Runner, RunnerOptions};
pub use task::{Decision, Handler, Outcome, Task};
