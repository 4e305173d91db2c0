//! One process of a stack: started, watched, signalled, and never left behind.

use std::ffi::OsStr;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use testkit::wait_for;

use crate::{Kind, PATIENCE, Part};

/// Lines of a log that are shown when a test fails.
const LOG_TAIL: usize = 60;

/// A running process, killed when dropped.
pub(crate) struct Process {
    part: Part,
    child: Child,
    log: PathBuf,
    admin: u16,
}

/// What a process is started with.
pub(crate) struct Launch<'a> {
    pub(crate) part: Part,
    pub(crate) env: &'a [(String, String)],
    /// Where it serves the API (a gateway) and its probes.
    pub(crate) port: u16,
    pub(crate) admin: u16,
    /// Where its log goes; appended, so that a restart keeps the history.
    pub(crate) log: PathBuf,
    /// A directory that is to be a disk of its own for this process, and its size as `mount` takes it.
    pub(crate) disk: Option<(&'a Path, &'a str)>,
}

/// Mounts an empty disk of the size `$0` on the directory `$1`, and becomes the rest. In namespaces of its own, so that nobody
/// else sees it, nobody has to be root, and it goes with the process.
const ON_A_DISK: &str = r#"mount -t tmpfs -o size="$0" tmpfs "$1" && shift && exec "$@""#;

impl Process {
    /// Starts it; it may not be ready yet.
    pub(crate) fn start(launch: Launch<'_>) -> Self {
        let Launch { part, env, port, admin, log, disk } = launch;
        let file = File::options().create(true).append(true).open(&log).expect("opens the log of a part");
        let mut command = match disk {
            None => bare(served(part.0.binary())),
            Some((directory, size)) => {
                let mut command = bare("unshare");
                command.args(["--map-root-user", "--mount", "sh", "-c", ON_A_DISK, size]);
                command.arg(directory).arg(served(part.0.binary()));
                command
            }
        };
        let child = command
            .args(part.0.arguments())
            .envs(env.iter().map(|(name, value)| (name, value)))
            .env("CANVAS_LISTEN", format!("127.0.0.1:{port}"))
            .env("CANVAS_ADMIN_LISTEN", format!("127.0.0.1:{admin}"))
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("duplicates a descriptor"))
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{part} does not start: {error}"));
        Self { part, child, log, admin }
    }

    /// The origin of its probes.
    pub(crate) fn admin(&self) -> String {
        format!("http://127.0.0.1:{}", self.admin)
    }

    /// A directory as it sees it, which may lie on a disk of its own.
    pub(crate) fn sees(&self, directory: &Path) -> PathBuf {
        let inside = directory.strip_prefix("/").expect("an absolute path");
        Path::new("/proc").join(self.child.id().to_string()).join("root").join(inside)
    }

    /// Whether it has ended, and how.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("asks for the state of a child")
    }

    /// Sends a signal, by its name without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        // The shell's tool: sending a signal is a foreign call that nothing else here needs.
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIG{name} does not reach {}", self.part);
    }

    /// Ends it at once and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop and waits until it has.
    pub(crate) async fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        let part = self.part;
        wait_for(&format!("{part} to stop"), PATIENCE * 2, async || self.ended()).await
    }

    /// The most memory that it had resident so far, in bytes (`VmHWM` of proc(5)).
    pub(crate) fn peak_resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("reads a status");
        let kib =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
        kib.expect("a process has resident memory") * 1024
    }

    /// The end of its log, without what is merely informative.
    pub(crate) fn log_tail(&self) -> String {
        let text = self.log();
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains(r#""level":"INFO""#)).collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }

    /// All that it has written.
    pub(crate) fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A command for a process of this kind, without its arguments, in an environment without any `CANVAS_*` of the machine's.
pub fn process_command(kind: Kind) -> Command {
    command(kind.binary())
}

/// A command for a binary of the workspace, in an environment without any `CANVAS_*` of the machine's.
pub(crate) fn command(binary: &str) -> Command {
    bare(self::binary(binary))
}

fn bare(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let ours = name.to_str().is_some_and(|name| name.starts_with("CANVAS_") || name.starts_with("OTEL_"));
        if ours {
            command.env_remove(name);
        }
    }
    command
}

/// The path of the binary that a part runs: the workspace's, or the one of this name in the directory `E2E_BIN_DIR`, so that processes
/// of another release are seen on the schema of this one (`tests/upgrade`). Admin commands and migrations are always the workspace's.
fn served(name: &str) -> PathBuf {
    std::env::var_os("E2E_BIN_DIR").map_or_else(|| binary(name), |directory| Path::new(&directory).join(name))
}

/// The path of a binary of the workspace.
pub fn binary(name: &str) -> PathBuf {
    binaries().join(name)
}

/// The directory of the binaries: that of this test's own, or the one above it.
fn binaries() -> &'static Path {
    static DIRECTORY: std::sync::LazyLock<PathBuf> = std::sync::LazyLock::new(|| {
        let test = std::env::current_exe().expect("knows its own path");
        let found = test.ancestors().skip(1).take(2).find(|directory| directory.join("canvas-gateway").is_file());
        found.expect("the processes are not built: cargo build --workspace").to_owned()
    });
    &DIRECTORY
}

/// Where ports of processes are looked for: below those that the kernel gives to clients (from 32768), so that no connection of another
/// test takes one before its process listens, and below those of the services that the tests share (from 20000).
const PORTS: std::ops::Range<u16> = 10_000..20_000;

/// Ports of loopback that nobody uses at the moment.
pub(crate) fn free_ports(count: usize) -> Vec<u16> {
    // From a place of chance on: several suites look at once.
    let start = (uuid::Uuid::new_v4().as_u128() % PORTS.len() as u128) as usize;
    let candidates = PORTS.cycle().skip(start).take(PORTS.len());
    // All are held until all are known, so that they differ.
    let held: Vec<(u16, TcpListener)> =
        candidates.filter_map(|port| Some((port, TcpListener::bind(("127.0.0.1", port)).ok()?))).take(count).collect();
    assert_eq!(held.len(), count, "so many ports of {PORTS:?} are free");
    held.iter().map(|(port, _)| *port).collect()
}
