//! The child: confines itself, and then serves requests until its parent is gone.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Confinement, Made, Refusal, Work, message, sandbox};

/// The head of a request: the name of the work, and its parameters.
pub(crate) type Request = (String, Value);

/// The head of a message of the child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The first message.
    Ready(Confinement),
    Progress(u32),
    /// The work is done, and the files are what it made.
    Made,
    Refused(Refusal),
    /// The work panicked. The child ends.
    Panicked(String),
}

type Run = fn(Value, &[Bytes], &mut dyn FnMut(u32)) -> Made;

/// Work that a program can do.
pub struct Kind {
    name: &'static str,
    run: Run,
}

impl Kind {
    /// The work `W`.
    pub const fn of<W: Work>() -> Self {
        let run =
            |parameters, files: &[Bytes], report: &mut dyn FnMut(u32)| match serde_json::from_value::<W>(parameters) {
                Ok(work) => work.run(files, report),
                Err(error) => Err(Refusal::Internal(error.to_string())),
            };
        Self { name: W::NAME, run }
    }
}

/// Runs a decoder on the socket that is its standard input, until the parent closes it. `kinds` is the work that it can
/// do.
pub fn serve(kinds: &[Kind]) -> ExitCode {
    match confined(kinds) {
        // The parent is gone.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => ExitCode::SUCCESS,
        // Nobody would read a text.
        _ => ExitCode::FAILURE,
    }
}

fn confined(kinds: &[Kind]) -> io::Result<()> {
    let confinement = sandbox::confine()?;
    // SAFETY: standard input is open in every process of Rust, and nothing else in a decoder uses it.
    let mut parent = unsafe { File::from_raw_fd(libc::STDIN_FILENO) };
    let none: [&[u8]; 0] = [];
    message::write(&mut parent, &Reply::Ready(confinement), &none)?;
    loop {
        let ((name, parameters), files) = message::read::<Request>(&mut parent, u64::MAX)?;
        let files: Vec<Bytes> = files.into_iter().map(Bytes::from).collect();
        let mut reporter = &parent;
        let mut report = |number| {
            // A parent that is gone is noticed by the next read.
            let _ = message::write(&mut reporter, &Reply::Progress(number), &none);
        };
        let run = || match kinds.iter().find(|kind| kind.name == name) {
            Some(kind) => (kind.run)(parameters, &files, &mut report),
            None => Err(Refusal::Internal(format!("unknown work {name}"))),
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(made)) => message::write(&mut parent, &Reply::Made, &made)?,
            Ok(Err(refusal)) => message::write(&mut parent, &Reply::Refused(refusal), &none)?,
            Err(payload) => {
                let text = payload.downcast_ref::<&str>().copied();
                let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                message::write(&mut parent, &Reply::Panicked(text.unwrap_or("no message").to_owned()), &none)?;
                // Its state is unknown.
                return parent.flush();
            }
        }
    }
}
