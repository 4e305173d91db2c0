//! Work on foreign bytes in child processes that can do nothing else (`docs/adr/0018-decoders.md`).
//!
//! **Guarantee.** Whatever a file makes a codec do, the child ([`serve`]) has no environment, no files, no network and no
//! other processes. It allocates no more than the work was granted, uses a bounded processor time, ends with its parent,
//! and serves one owner only. A file that ends its child twice is refused; the parent goes on.
//!
//! **Mechanism.** A [`Pool`] starts its program again with the argument [`COMMAND`] and keeps the children. The only
//! connection between the two is a socket, the child's standard input. A request is the name of a [`Work`], its parameters
//! as JSON, and the files; the reply has the files that were made. The child confines itself before it reads anything
//! ([`Confinement`]). The parent sets the limits of each request from outside.
//!
//! **Reason.** Codecs in C read bytes from anyone. In the process of the worker, an error in one of them reaches the keys
//! of the service and the data of all accounts.

mod child;
mod message;
mod pool;
mod program;
mod sandbox;

use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use child::{Kind, serve};
pub use pool::{Failure, Leash, Order, Outcome, Pool, this_program};
pub use program::{PROGRAM_COMMAND, Program, become_program};
pub use sandbox::Confinement;

/// The argument that makes a program a decoder.
pub const COMMAND: &str = "decode";

/// Work that a decoder does: a pure function of its parameters and files.
pub trait Work: Serialize + DeserializeOwned {
    /// The name of the work, unique in its program.
    const NAME: &'static str;

    /// The processor time of one order: several times that of the largest image in a build that is not optimized.
    const TIME_MAX: Duration = Duration::from_secs(120);

    /// Makes files from `files`. `report` passes a number to the parent while the work goes on ([`Order::progress`]).
    ///
    /// # Errors
    ///
    /// [`Refusal`] if nothing can be made of the files.
    fn run(self, files: &[Bytes], report: &mut dyn FnMut(u32)) -> Made;
}

/// The files that work made.
pub type Made = Result<Vec<Vec<u8>>, Refusal>;

/// The reason why work made nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The files or the parameters are at fault. The text may be shown to their owner.
    Input(String),
    /// The service is at fault.
    Internal(String),
}
