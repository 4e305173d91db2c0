//! A foreign program that decodes files for which the service has no decoder: `PROGRAM IN OUT.png`
//! (`docs/adr/0018-decoders.md`).
//!
//! **Guarantee.** The program has no environment, no network and no other processes. It reads its input and the libraries of the
//! system, and writes in a directory of its own alone, which is deleted afterwards. Memory, processor time, time and sizes of files
//! are bounded. It never runs unconfined: a kernel without Landlock refuses it.
//!
//! **Mechanism.** [`Program::convert`] starts the calling program with the argument [`PROGRAM_COMMAND`]. That process confines itself
//! and then becomes the foreign program ([`become_program`]). The parent waits, and kills it when it takes too long or too much.
//!
//! **Reason.** What a file makes the program do must reach no more than a decoder does. It cannot be one, because it must open
//! libraries, its input and its output.

use std::ffi::{CString, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use crate::pool::{Process, memory_max};
use crate::{Failure, Leash, Outcome, Refusal, sandbox};

/// The argument that makes a program become a foreign one.
pub const PROGRAM_COMMAND: &str = "program";

/// Time for one file.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Time between two looks at the program.
const TICK: Duration = Duration::from_millis(10);

/// Names in the directory of the program.
const IN: &str = "in.heic";
/// Of a file with several images, libheif numbers the results.
const OUT: [&str; 2] = ["out.png", "out-1.png"];
const MESSAGES: &str = "messages";

/// The beginning of the names of directories of programs.
const PREFIX: &str = "canvas-heif-";

/// Age of a directory that nobody uses any more: much longer than a program may take.
const ABANDONED: Duration = Duration::from_secs(600);

/// Bytes of the program's messages that are logged.
const MESSAGES_MAX: usize = 1024;

/// The status of a process that cannot become the program, as that of shells.
const CANNOT_START: u8 = 126;

/// What a program may use.
pub(crate) struct Limits {
    pub(crate) memory_bytes: u64,
    /// Size of each file that it writes.
    pub(crate) file_bytes: u64,
    pub(crate) time: Duration,
}

/// A foreign program.
#[derive(Clone, Debug)]
pub struct Program {
    launcher: PathBuf,
    path: PathBuf,
    time: Duration,
}

impl Program {
    /// The program at `path`, which `launcher` becomes if it is called with [`PROGRAM_COMMAND`].
    pub fn new(launcher: impl Into<PathBuf>, path: impl Into<PathBuf>) -> Self {
        Self { launcher: launcher.into(), path: path.into(), time: TIME_MAX }
    }

    /// The same program with another time for a file, rounded up to seconds.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Checks that the program is there and that it can be confined. Deletes the files of processes that were killed.
    ///
    /// # Errors
    ///
    /// If it is not an executable file, if the kernel has no Landlock, or if there is no directory for its files.
    pub fn check(&self) -> io::Result<()> {
        Scratch::delete_abandoned();
        let file = fs::metadata(&self.path)?;
        if !file.is_file() || file.mode() & 0o111 == 0 {
            return Err(Error::other("it is not an executable file"));
        }
        if !sandbox::can_confine_programs() {
            return Err(Error::other("the kernel has no Landlock, which confines the program"));
        }
        let directory = |error| Error::other(format!("it needs a directory for its files: {error}"));
        Scratch::new().map(drop).map_err(directory)
    }

    /// Converts a file with `memory_bytes` to one of at most `file_bytes`. Blocks the thread, which has to live until the end.
    /// Returns the file, and the processor time that the program spent.
    ///
    /// The inner error says what is wrong with the file, in words for its owner. The reason is logged, because only the operator
    /// can tell a damaged file from a program that cannot work.
    ///
    /// # Errors
    ///
    /// If the program cannot be started, was killed from outside, or was canceled.
    pub fn convert(&self, file: &[u8], (memory_bytes, file_bytes): (u64, u64), leash: &Leash) -> (Outcome, Duration) {
        let limits = Limits { memory_bytes: memory_max(memory_bytes), file_bytes, time: self.time };
        let mut spent = Duration::ZERO;
        (self.converted(file, &limits, leash, &mut spent), spent)
    }

    fn converted(&self, file: &[u8], limits: &Limits, leash: &Leash, spent: &mut Duration) -> Outcome {
        let scratch = Scratch::new().map_err(Failure::Start)?;
        let messages = scratch.prepare(file).map_err(Failure::Start)?;
        let started = self.start(&scratch, &messages, limits).map_err(Failure::Start)?;
        leash.hold(Some(&started.0))?;
        let ended = started.wait(limits, || scratch.bytes(), spent);
        // A process that the leash has killed.
        leash.hold(None)?;
        let refused = |why: &str| Ok(Err(Refusal::Input(why.to_owned())));
        let (program, text) = (self.path.display(), text_of(&messages));
        match ended.map_err(Failure::Start)? {
            Ended::Exited(status) if status.success() => match scratch.made(limits.file_bytes) {
                Ok(made) => Ok(Ok(vec![made])),
                Err(error) => {
                    tracing::warn!(%program, %error, text, "CANVAS_HEIF_COMMAND made no file");
                    refused("the image could not be decoded")
                }
            },
            Ended::Exited(status) if status.code() == Some(CANNOT_START.into()) => {
                tracing::error!(%program, text, "CANVAS_HEIF_COMMAND cannot be started");
                Err(Failure::Start(Error::other(text)))
            }
            Ended::Exited(status) if status.signal() == Some(libc::SIGKILL) => Err(Failure::Ended(status)),
            Ended::Exited(status) => {
                tracing::warn!(%program, %status, text, "CANVAS_HEIF_COMMAND failed");
                refused("the image could not be decoded")
            }
            Ended::TooLong => {
                tracing::warn!(%program, text, "CANVAS_HEIF_COMMAND took longer than {:?}", limits.time);
                refused("the image takes too long to process")
            }
            Ended::TooLarge => {
                tracing::warn!(%program, text, "CANVAS_HEIF_COMMAND wrote too much");
                refused("the image is larger than it declares")
            }
        }
    }

    fn start(&self, scratch: &Scratch, messages: &File, limits: &Limits) -> io::Result<Started> {
        let numbers = [limits.memory_bytes, limits.file_bytes, limits.time.as_secs_f64().ceil() as u64];
        let mut command = Command::new(&self.launcher);
        command.arg(PROGRAM_COMMAND).arg(&self.path).arg(&scratch.0).args(numbers.map(|number| number.to_string()));
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages.try_clone()?);
        Process::start(&mut command).map(Started)
    }
}

/// How a program ended.
enum Ended {
    Exited(ExitStatus),
    TooLong,
    TooLarge,
}

/// A running program, which dies with this value.
struct Started(Arc<Process>);

impl Started {
    fn wait(&self, limits: &Limits, bytes: impl Fn() -> u64, spent: &mut Duration) -> io::Result<Ended> {
        let began = Instant::now();
        loop {
            // Fails only if it has ended.
            *spent = sandbox::processor_time(self.0.pid).unwrap_or(*spent);
            if let Some(status) = self.0.status()? {
                return Ok(match status.signal() {
                    Some(libc::SIGXCPU) => Ended::TooLong,
                    Some(libc::SIGXFSZ) => Ended::TooLarge,
                    _ => Ended::Exited(status),
                });
            }
            if began.elapsed() >= limits.time {
                return Ok(Ended::TooLong);
            }
            // A limit of the system is on each file only.
            if bytes() > limits.file_bytes.saturating_mul(2) {
                return Ok(Ended::TooLarge);
            }
            park_timeout(TICK);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Leaves no zombie.
        let _ = self.0.ended();
    }
}

/// A directory that only this user can enter. It is deleted with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        let template = std::env::temp_dir().join(format!("{PREFIX}XXXXXX"));
        let template = CString::new(template.into_os_string().into_vec())?.into_raw();
        // SAFETY: the text ends with a zero and is owned here. The call replaces letters of it.
        let (made, path) = unsafe { (!libc::mkdtemp(template).is_null(), CString::from_raw(template)) };
        if !made {
            return Err(Error::last_os_error());
        }
        Ok(Self(OsString::from_vec(path.into_bytes()).into()))
    }

    /// Deletes the directories of processes that were killed, with the files of users in them.
    fn delete_abandoned() {
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            if changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > ABANDONED)) {
                // One of another user stays.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Writes the input, and makes the file for messages.
    fn prepare(&self, file: &[u8]) -> io::Result<File> {
        File::create_new(self.0.join(IN))?.write_all(file)?;
        OpenOptions::new().read(true).write(true).create_new(true).open(self.0.join(MESSAGES))
    }

    /// The bytes of all files but the input.
    fn bytes(&self) -> u64 {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let written = entries.filter(|entry| entry.file_name() != IN);
        written.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    /// The result. It is as foreign as the input: neither a link nor anything that blocks is opened.
    fn made(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let open = |name| {
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            OpenOptions::new().read(true).custom_flags(flags).open(self.0.join(name))
        };
        let file = OUT.into_iter().map(open).find(|opened| !is_absent(opened)).unwrap_or_else(|| open(OUT[0]))?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > bytes_max {
            return Err(Error::other("the result is not a file of the expected size"));
        }
        let mut made = Vec::new();
        file.take(bytes_max).read_to_end(&mut made)?;
        Ok(made)
    }
}

fn is_absent(opened: &io::Result<File>) -> bool {
    opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, directory = %self.0.display(), "a directory of CANVAS_HEIF_COMMAND stays");
        }
    }
}

/// The last of the program's messages, on one line.
fn text_of(messages: &File) -> String {
    let size = messages.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = [0; MESSAGES_MAX];
    let read = messages.read_at(&mut bytes, size.saturating_sub(MESSAGES_MAX as u64)).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[..read]);
    text.split(char::is_control).filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" ")
}

/// Becomes the program that the command line names, confined. Returns only if that is impossible.
pub fn become_program() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(2).collect();
    let [program, directory, memory, file, time] = &arguments[..] else { return ExitCode::from(CANNOT_START) };
    let number = |text: &OsString| text.to_string_lossy().parse::<u64>().map_err(Error::other);
    let run = || {
        let limits = Limits {
            memory_bytes: number(memory)?,
            file_bytes: number(file)?,
            time: Duration::from_secs(number(time)?),
        };
        std::env::set_current_dir(directory)?;
        let (program, directory) = (Path::new(program), Path::new(directory));
        sandbox::confine_program(program, directory, &limits)?;
        let files = [IN, OUT[0]].map(|name| directory.join(name));
        Err::<(), _>(Command::new(program).args(files).env_clear().exec())
    };
    if let Err(error) = run() {
        // Standard error is the file for messages.
        eprintln!("{error}");
    }
    ExitCode::from(CANNOT_START)
}
