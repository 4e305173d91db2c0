//! The journal of commands, by which the repetition of a killed command takes effect once.
//!
//! **Guarantee.** A command that is repeated after it was killed, lost its connection or gave up waiting sends the same request with
//! the same idempotency key, which the service answers from its record. After it has ended, the same command is a new one.
//!
//! **Mechanism.** The body of a mutation is written to `$XDG_STATE_HOME/canvas/journal/<hash of the command>` before it is sent,
//! and removed when its end is known. Two equal commands at the same time share it: the file is linked into place, which fails
//! for the second one.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::failure::{Outcome, file};
use crate::profile::directory;

/// The service remembers keys for 30 days. An entry that is older than this was left by a command that nobody repeats.
const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A command in the journal.
pub struct Entry {
    path: PathBuf,
    /// The body of its request.
    pub body: Map<String, Value>,
    /// `true` if an earlier command wrote it.
    pub is_resumed: bool,
}

/// The hash of a command: of what it does and where, but not of the revision it is based on.
pub fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize()[..20].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of a file's content.
pub fn hash_bytes(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn place(name: &str) -> Outcome<PathBuf> {
    Ok(directory("XDG_STATE_HOME", ".local/state")?.join("journal").join(name))
}

/// The entry of an earlier command that has not ended.
pub fn find(name: &str) -> Outcome<Option<Entry>> {
    let path = place(name)?;
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file(&path, &error)),
    };
    match serde_json::from_slice(&text) {
        Ok(body) if !is_old(&path) => Ok(Some(Entry { path, body, is_resumed: true })),
        _ => {
            fs::remove_file(&path).map_err(|error| file(&path, &error))?;
            Ok(None)
        }
    }
}

/// Returns `true` if a file is older than [`AGE_MAX`].
fn is_old(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|it| it.modified()).ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > AGE_MAX)
}

/// Removes what commands left that were killed and never repeated.
fn sweep(directory: &Path) -> std::io::Result<()> {
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        if is_old(&path) {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// Writes an entry, or returns that of an equal command which wrote it in the meantime.
pub fn begin(name: &str, body: Map<String, Value>) -> Outcome<Entry> {
    let path = place(name)?;
    let new = path.with_extension(uuid::Uuid::new_v4().to_string());
    let write = || {
        if let Some(directory) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            sweep(directory)?;
        }
        let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        to.write_all(&serde_json::to_vec(&body)?)?;
        to.sync_all()?;
        let linked = fs::hard_link(&new, &path);
        fs::remove_file(&new)?;
        linked
    };
    match write() {
        Ok(()) => Ok(Entry { path, body, is_resumed: false }),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match find(name)? {
            Some(entry) => Ok(entry),
            None => begin(name, body),
        },
        Err(error) => Err(file(&path, &error)),
    }
}

impl Entry {
    /// Removes the entry: the end of the command is known.
    pub fn end(self) {
        // If it stays, the next equal command is answered from the record of this one, which does no harm.
        let _ = fs::remove_file(&self.path);
    }
}
