//! The parent's side: starts children, gives them work, and collects them.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::child::{Reply, Request};
use crate::{COMMAND, Confinement, Made, Refusal, Work, message, sandbox};

/// Number of children in which work is tried when they die.
const TRIES: usize = 2;

/// Number of orders after which a child is replaced, so that nothing that one of them left behind stays.
const ORDERS_MAX: u32 = 256;

/// Memory that a child may allocate in addition to that of the work, in bytes: its own, and the freed memory of earlier work that
/// the allocator keeps.
const OWN_BYTES: u64 = 192 << 20;

/// The bytes that a child may allocate for work that was granted `memory_bytes`: twice as much, because an encoder needs more than
/// was estimated for an image that is all noise.
pub(crate) fn memory_max(memory_bytes: u64) -> u64 {
    memory_bytes.saturating_mul(2).saturating_add(OWN_BYTES)
}

/// Children of this program. Clones share them.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    idle_bytes_max: u64,
    children: Mutex<Children>,
}

/// The children that do nothing.
#[derive(Debug, Default)]
struct Children {
    /// A child that has served nobody, so that work of a new owner does not wait for the start of a process.
    fresh: Option<Child>,
    /// Children that have served somebody, the one that was used last at the end.
    used: Vec<Used>,
}

#[derive(Debug)]
struct Used {
    owner: String,
    child: Child,
    /// Memory that the child holds.
    bytes: u64,
}

/// What a decoder is to do.
#[derive(Clone, Debug)]
pub struct Order<W> {
    /// Whose files these are. A child serves one owner.
    pub owner: String,
    /// The work.
    pub work: W,
    /// The files for it.
    pub files: Vec<Bytes>,
    /// The number that the work reported last.
    pub progress: Arc<AtomicU32>,
}

impl<W: Work> Order<W> {
    /// An order.
    pub fn new(owner: impl Into<String>, work: W, files: Vec<Bytes>) -> Self {
        Self { owner: owner.into(), work, files, progress: Arc::default() }
    }
}

/// What became of an order.
pub type Outcome = Result<Made, Failure>;

/// The reason why it is unknown what the work would make. It may be tried again.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A child cannot be started.
    #[error("cannot start a decoder")]
    Start(#[source] io::Error),
    /// Something else than the work ended the children: the system is out of memory, or an operator has killed them.
    #[error("the decoder was ended: {0}")]
    Ended(ExitStatus),
    /// The [`Leash`] was canceled.
    #[error("the work was canceled")]
    Canceled,
}

/// Ends the child that does an order, from another thread. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Leash(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
enum Held {
    #[default]
    Nothing,
    Child(Arc<Process>),
    Canceled,
}

impl Leash {
    /// Kills the child that does the order. Without one, the order is not begun.
    pub fn cancel(&self) {
        if let Held::Child(process) = std::mem::replace(&mut *lock(&self.0), Held::Canceled) {
            process.kill();
        }
    }

    /// Holds a child, or nothing, unless the leash was canceled.
    pub(crate) fn hold(&self, process: Option<&Arc<Process>>) -> Result<(), Failure> {
        let mut held = lock(&self.0);
        if matches!(*held, Held::Canceled) {
            return Err(Failure::Canceled);
        }
        *held = process.map_or(Held::Nothing, |process| Held::Child(process.clone()));
        Ok(())
    }
}

/// The path of the program of this process. It leads to the same program even if the file was replaced since the start.
///
/// # Panics
///
/// If the system does not tell the path; only systems for development can fail to.
pub fn this_program() -> PathBuf {
    if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe().expect("is known") }
}

impl Pool {
    /// A pool of children that run `program` with [`COMMAND`]. Those that have served an owner stay as long as they hold at most
    /// `idle_bytes_max` bytes together; then those that were not used for longest end.
    pub fn new(program: impl Into<PathBuf>, idle_bytes_max: u64) -> Self {
        Self(Arc::new(Shared { program: program.into(), idle_bytes_max, children: Mutex::default() }))
    }

    /// Starts a child, and logs and returns how it is confined. Blocks the thread.
    ///
    /// # Errors
    ///
    /// If no child can be started.
    pub fn check(&self) -> io::Result<Confinement> {
        let mut child = self.start()?;
        let Reply::Ready(confinement) = child.receive(message::HEAD_MAX)?.0 else {
            return Err(ErrorKind::InvalidData.into());
        };
        lock(&self.0.children).fresh = Some(child);
        let Confinement { landlock, seccomp } = confinement;
        if landlock && seccomp {
            tracing::info!("decoders are confined by Landlock and seccomp");
        } else {
            tracing::warn!(landlock, seccomp, "the kernel cannot confine decoders completely");
        }
        Ok(confinement)
    }

    /// Does an order with `memory_bytes`, its files and results included, and returns the files that it made, and the processor
    /// time that decoders spent. Blocks the thread, which has to live as long as the pool, because the children end with the thread
    /// that started them.
    ///
    /// The inner error also is that of files with which the child died twice, took too long, or panicked.
    ///
    /// # Errors
    ///
    /// [`Failure`] if files and work are not at fault.
    pub fn run<W: Work>(&self, order: &Order<W>, memory_bytes: u64, leash: &Leash) -> (Outcome, Duration) {
        let mut spent = Duration::ZERO;
        (self.tried(order, memory_bytes, leash, &mut spent), spent)
    }

    fn tried<W: Work>(&self, order: &Order<W>, memory_bytes: u64, leash: &Leash, spent: &mut Duration) -> Outcome {
        let parameters = serde_json::to_value(&order.work).map_err(|error| Failure::Start(error.into()))?;
        let request = (W::NAME.to_owned(), parameters);
        let mut tries = 1;
        loop {
            let child = if tries == 1 { self.take(&order.owner) } else { self.start() };
            let mut child = child.map_err(Failure::Start)?;
            leash.hold(Some(&child.process))?;
            let (pid, began) = (child.process.pid, Instant::now());
            let before = sandbox::processor_time(pid).map_err(Failure::Start)?;
            let limits = sandbox::limit(pid, memory_max(memory_bytes), before + W::TIME_MAX);
            let reply = limits.and_then(|()| self.exchange(&mut child, &request, order, memory_bytes));
            // A child has one thread, so the time of a dead one was no longer than this.
            *spent +=
                sandbox::processor_time(pid).map_or_else(|_| began.elapsed(), |after| after.saturating_sub(before));
            // Whatever died now was killed by the leash.
            leash.hold(None)?;
            match reply {
                Ok((Reply::Made, files)) => {
                    self.keep(&order.owner, child);
                    return Ok(Ok(files));
                }
                // What earlier orders left behind may be in the way, such as memory in pieces.
                Ok((Reply::Refused(Refusal::Internal(message)), _)) if child.orders > 0 && tries < TRIES => {
                    tracing::warn!(work = W::NAME, message, orders = child.orders, "a decoder is replaced");
                    tries += 1;
                }
                Ok((Reply::Refused(refusal), _)) => {
                    self.keep(&order.owner, child);
                    return Ok(Err(refusal));
                }
                Ok((Reply::Panicked(message), _)) => {
                    count_death("panic");
                    tracing::error!(work = W::NAME, message, "a decoder panicked");
                    return Ok(Err(Refusal::Input("the image could not be processed".to_owned())));
                }
                // `exchange` returns no other replies.
                broken => {
                    let status = child.process.ended().map_err(Failure::Start)?;
                    let error = broken.err();
                    count_death(reason(status));
                    tracing::error!(work = W::NAME, %status, ?error, tries, "a decoder died");
                    match status.signal() {
                        Some(libc::SIGXCPU) => {
                            return Ok(Err(Refusal::Input("the image takes too long to process".to_owned())));
                        }
                        _ if tries < TRIES => tries += 1,
                        None | Some(libc::SIGKILL) => return Err(Failure::Ended(status)),
                        Some(_) => return Ok(Err(Refusal::Input("the image could not be processed".to_owned()))),
                    }
                }
            }
        }
    }

    /// Sends an order to a child and receives the end of the reply.
    fn exchange<W: Work>(
        &self,
        child: &mut Child,
        request: &Request,
        order: &Order<W>,
        memory_bytes: u64,
    ) -> io::Result<(Reply, Vec<Vec<u8>>)> {
        message::write(&mut &child.stream, request, &order.files)?;
        // While the child works.
        self.tend();
        loop {
            match child.receive(memory_bytes.saturating_add(message::HEAD_MAX))? {
                (Reply::Ready(_), _) => {}
                (Reply::Progress(number), _) => order.progress.store(number, Ordering::Relaxed),
                end => return Ok(end),
            }
        }
    }

    /// A child for this owner. One that was killed while it did nothing is left out.
    fn take(&self, owner: &str) -> io::Result<Child> {
        let mut children = lock(&self.0.children);
        while let Some(index) = children.used.iter().rposition(|used| used.owner == owner) {
            let child = children.used.remove(index).child;
            if child.process.lives() {
                return Ok(child);
            }
        }
        let fresh = children.fresh.take().filter(|child| child.process.lives());
        drop(children);
        fresh.map_or_else(|| self.start(), Ok)
    }

    /// Keeps a child for further orders of its owner.
    fn keep(&self, owner: &str, mut child: Child) {
        child.orders += 1;
        let Ok(bytes) = sandbox::memory(child.process.pid) else { return };
        if child.orders < ORDERS_MAX {
            lock(&self.0.children).used.push(Used { owner: owner.to_owned(), child, bytes });
        }
    }

    /// Ends the children that were not used for longest, as far as all hold too much memory, and starts a fresh one if there is
    /// none.
    fn tend(&self) {
        let mut children = lock(&self.0.children);
        let mut held: u64 = children.used.iter().map(|used| used.bytes).sum();
        let is_excess = |used: &&Used| {
            let is_excess = held > self.0.idle_bytes_max;
            held -= used.bytes;
            is_excess
        };
        let excess = children.used.iter().take_while(is_excess).count();
        let ended: Vec<_> = children.used.drain(..excess).collect();
        let has_fresh = children.fresh.is_some();
        drop(children);
        drop(ended);
        if has_fresh {
            return;
        }
        match self.start() {
            Ok(child) => lock(&self.0.children).fresh = Some(child),
            // Work that needs one will fail.
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "cannot start a decoder"),
        }
    }

    /// Starts a child. It does not wait until the child is ready.
    fn start(&self) -> io::Result<Child> {
        let (stream, end) = UnixStream::pair()?;
        let mut command = Command::new(&self.0.program);
        // Without a closure before exec, the standard library starts the process by `posix_spawn`, whose time does not depend on
        // the memory of this one. So the child does the rest itself.
        command.arg(COMMAND).env_clear().stdin(OwnedFd::from(end)).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Child { stream, process: Process::start(&mut command)?, orders: 0 })
    }
}

/// Counts a child that ended in the middle of an order, for whatever reason but a cancel. `reason` is one of a few names.
fn count_death(reason: &'static str) {
    metrics::counter!("canvas_decoder_deaths_total", "reason" => reason).increment(1);
}

/// Why a child ended.
fn reason(status: ExitStatus) -> &'static str {
    match status.signal() {
        Some(libc::SIGXCPU) => "time",
        // What an allocation beyond the limit ends in, and a check of a codec that fails.
        Some(libc::SIGABRT) => "abort",
        // By the system, an operator, or this process, because it did not keep to the protocol.
        Some(libc::SIGKILL) => "kill",
        Some(_) => "crash",
        None => "exit",
    }
}

/// A child, which dies with this value.
#[derive(Debug)]
struct Child {
    stream: UnixStream,
    process: Arc<Process>,
    orders: u32,
}

impl Child {
    fn receive(&mut self, bytes_max: u64) -> io::Result<(Reply, Vec<Vec<u8>>)> {
        message::read(&mut &self.stream, bytes_max)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.process.kill();
        // Leaves no zombie. The kernel ends a killed process without anybody's help.
        let _ = lock(&self.process.child).wait();
    }
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    child: Mutex<std::process::Child>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> io::Result<Arc<Self>> {
        let child = command.spawn()?;
        Ok(Arc::new(Self { pid: child.id(), child: Mutex::new(child) }))
    }

    pub(crate) fn kill(&self) {
        // Fails only if it has ended.
        let _ = lock(&self.child).kill();
    }

    /// How it ended; `None` while it runs.
    pub(crate) fn status(&self) -> io::Result<Option<ExitStatus>> {
        lock(&self.child).try_wait()
    }

    fn lives(&self) -> bool {
        matches!(self.status(), Ok(None))
    }

    /// How a process ended that has closed its socket, or that is killed now because it does not keep to the protocol. The kernel
    /// closes the socket of a process that ends when its status is settled already, so that this signal comes too late for it.
    pub(crate) fn ended(&self) -> io::Result<ExitStatus> {
        self.kill();
        lock(&self.child).wait()
    }
}

/// Nothing panics while it holds one of these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_one_of_a_few_reasons() {
        for (signal, expected) in [
            (libc::SIGXCPU, "time"),
            (libc::SIGABRT, "abort"),
            (libc::SIGKILL, "kill"),
            (libc::SIGSEGV, "crash"),
            (libc::SIGSYS, "crash"),
        ] {
            assert_eq!(reason(ExitStatus::from_raw(signal)), expected, "{signal}");
        }
        assert_eq!(reason(ExitStatus::from_raw(3 << 8)), "exit");
    }
}
