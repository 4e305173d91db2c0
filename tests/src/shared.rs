//! Stacks that tests share, also those of other test processes.
//!
//! **Guarantee.** [`Builder::shared`] returns the stack of this run with this configuration, and starts it if there is none. It ends
//! when no test has used it for a while, and with the run, however that ends. Two runs share nothing.
//! **Mechanism.** A run is the process of nextest, or of `cargo test`. It has a directory with a subdirectory for each configuration.
//! A test that uses a stack has a shared lock on a file there; one that starts it has an exclusive lock. The stack belongs to a
//! process of its own (`canvas-stack`), because each test is a process that ends before the next one needs the stack. That process
//! checks several times a second that the run is alive and that the lock is held.
//! **Reason.** A stack takes a second or two to start and hundreds of megabytes, so few of them run at a time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use testkit::wait_for;

use crate::process::command;
use crate::stack::Site;
use crate::{Builder, Part, Stack};

/// The time for which a stack outlives its last test: longer than the next one that needs it takes to begin.
const IDLE: Duration = Duration::from_secs(10);
/// The interval at which the owner of a stack looks whether it is needed.
const INTERVAL: Duration = Duration::from_millis(250);
/// The longest wait for a stack that starts: for a virtual host, which other stacks may have, and for processes on a busy machine.
const STARTING: Duration = Duration::from_secs(360);
/// The number of receivers of a shared stack, each for one test.
const RECEIVERS: usize = 200;

impl Stack {
    /// The shared stack of two gateways and no worker: work stays queued. No limit of requests applies.
    pub async fn without_workers() -> Self {
        unlimited().shared().await
    }

    /// The shared stack of two gateways, one worker of each kind, a dispatcher that retries soon, and receivers. No limit of
    /// requests applies.
    pub async fn with_workers() -> Self {
        let workers = unlimited().image_workers(1).video_workers(1).dispatchers(1).receivers(RECEIVERS);
        workers.env("CANVAS_WEBHOOK_BACKOFF_SECONDS", "0.1,0.1,0.1").shared().await
    }
}

/// Many tests use it at a time, so it may have more connections than others.
fn unlimited() -> Builder {
    Stack::builder().gateways(2).env("CANVAS_RATE_PER_MINUTE", 0).env("CANVAS_DATABASE_CONNECTIONS", 16)
}

/// A test's use of a stack that another process owns.
pub(crate) struct Visit {
    /// The lengths of the logs when the test began.
    pub(crate) log_lengths: BTreeMap<Part, u64>,
    /// A shared lock: the stack is used.
    _used: File,
}

impl Builder {
    /// The stack of this run with this configuration. Tests use it with accounts of their own, and leave its processes alone.
    pub async fn shared(self) -> Stack {
        let directory = place(&self);
        let (site, used) = wait_for("a shared stack", STARTING, async || {
            let lock = lock_of(&directory);
            if lock.try_lock_shared().is_ok() {
                if let Some(site) = site(&directory) {
                    return Some((site, lock));
                }
                lock.unlock().expect("unlocks");
            }
            // Nobody uses a stack here. One test starts it, and the others look again.
            if lock.try_lock().is_ok() && site(&directory).is_none() {
                self.launch(&directory).await;
            }
            None
        })
        .await;
        Stack::visit(site, |stack| Visit { log_lengths: stack.log_lengths(), _used: used })
    }

    /// Starts the owner of the stack and waits until the stack is ready.
    async fn launch(&self, directory: &Path) {
        write(&directory.join("builder.json"), self);
        let log = File::create(directory.join("log")).expect("makes a log");
        let mut owner = command("canvas-stack")
            .arg(directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("duplicates a descriptor"))
            .stderr(log)
            // Signals to the test are not for the stack.
            .process_group(0)
            .spawn()
            .expect("starts canvas-stack");
        wait_for("a stack to start", STARTING, async || {
            if let Some(status) = owner.try_wait().expect("asks for the state of a child") {
                let log = fs::read_to_string(directory.join("log")).unwrap_or_default();
                panic!("canvas-stack ended with {status}: {log}");
            }
            site(directory)
        })
        .await;
    }
}

/// Owns the stack of this directory while it is needed.
pub async fn own(directory: &Path) {
    let run = directory.parent().expect("the directory of a run");
    let builder: Builder = read(&directory.join("builder.json")).expect("a configuration");
    let lock = lock_of(directory);
    let ended = async {
        while is_alive(run) {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    let needed = async {
        let stack = builder.start().await;
        write(&directory.join("stack.json"), stack.site());
        let mut used = Instant::now();
        loop {
            tokio::time::sleep(INTERVAL).await;
            match lock.try_lock() {
                Err(_) => used = Instant::now(),
                Ok(()) if used.elapsed() < IDLE => lock.unlock().expect("unlocks"),
                Ok(()) => {
                    let _ = fs::remove_file(directory.join("stack.json"));
                    return lock.unlock().expect("unlocks");
                }
            }
        }
    };
    tokio::select! {
        () = needed => {}
        () = ended => {
            let _ = fs::remove_dir_all(run);
        }
    }
}

/// The file that says whether the stack of this directory is used.
fn lock_of(directory: &Path) -> File {
    File::options().create(true).append(true).open(directory.join("lock")).expect("opens the lock")
}

/// The directory of this configuration in that of the run.
fn place(builder: &Builder) -> PathBuf {
    let run = std::env::temp_dir().join(run());
    if !run.exists() {
        delete_ended_runs();
    }
    let mut hash = DefaultHasher::new();
    serde_json::to_string(builder).expect("a configuration").hash(&mut hash);
    let directory = run.join(format!("{:016x}", hash.finish()));
    fs::create_dir_all(&directory).expect("makes a directory for a shared stack");
    directory
}

fn site(directory: &Path) -> Option<Site> {
    read(&directory.join("stack.json"))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    let text = fs::read(path).ok()?;
    Some(serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Writes a file that is whole when it is there.
fn write(path: &Path, value: &impl serde::Serialize) {
    let new = path.with_extension("new");
    fs::write(&new, serde_json::to_vec(value).expect("JSON")).expect("writes a file");
    fs::rename(new, path).expect("renames a file");
}

/// The prefix of the name of a run's directory, which continues with the process id and the time at which the process started.
const PREFIX: &str = "canvas-run-";

/// The name of the directory of this run.
fn run() -> String {
    // nextest is the parent of each test.
    let process = if std::env::var_os("NEXTEST").is_some() { parent_id() } else { std::process::id() };
    let start = start_of(process).expect("the run lives");
    format!("{PREFIX}{process}-{start}")
}

/// Returns `true` if the process that this directory of a run names still runs.
fn is_alive(directory: &Path) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str()).expect("the name of a run");
    let (process, start) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')).expect("the name of a run");
    process.parse().is_ok_and(|process| start_of(process).as_deref() == Some(start))
}

/// The start of a process, in ticks since the system started (proc(5)). `None` if it has ended.
fn start_of(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may contain anything, but what follows it has no parenthesis. It begins with the third field.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    (!matches!(fields[0], "Z" | "X")).then(|| fields[19].to_owned())
}

fn delete_ended_runs() {
    let entries = fs::read_dir(std::env::temp_dir()).expect("lists the temporary directory");
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let is_run = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if is_run && !is_alive(&path) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::PATIENCE;

    #[tokio::test]
    async fn an_equal_configuration_is_the_same_stack() {
        let settings = || Stack::builder().receivers(2);
        let (one, same, other) =
            tokio::join!(settings().shared(), settings().shared(), settings().env("CANVAS_RATE_BURST", 77).shared());
        assert_eq!(one.origin(0), same.origin(0));
        assert_ne!(one.origin(0), other.origin(0));
        assert_ne!(one.take_receiver().port(), same.take_receiver().port(), "each is for one test");
    }

    #[tokio::test]
    async fn a_stack_ends_with_its_run_and_leaves_nothing() {
        let mut run = Command::new("sleep").arg("600").spawn().expect("starts");
        let start = start_of(run.id()).expect("lives");
        let directory = std::env::temp_dir().join(format!("{PREFIX}{}-{start}", run.id())).join("stack");
        fs::create_dir_all(&directory).expect("makes a directory");
        let used = lock_of(&directory);
        used.lock_shared().expect("locks");
        Stack::builder().launch(&directory).await;
        let visit = |stack: &Stack| Visit { log_lengths: stack.log_lengths(), _used: used };
        let stack = Stack::visit(site(&directory).expect("is ready"), visit);
        stack.anonymous().get("/digest.md").await.expect(200);
        run.kill().expect("dies");
        run.wait().expect("ends");
        let run = directory.parent().expect("the directory of the run");
        wait_for("the stack to end", PATIENCE, async || (!run.exists()).then_some(())).await;
        assert!(!stack.blobs().exists());
        assert!(std::net::TcpStream::connect(stack.authority(0)).is_err(), "no process listens");
    }
}
