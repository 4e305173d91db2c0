//! One process of a stack, which is killed when it is dropped.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use testkit::wait_for;

use crate::{Kind, PATIENCE, Part};

/// A running process, killed when dropped.
pub(crate) struct Process {
    part: Part,
    child: Child,
}

/// The parameters of a process.
pub(crate) struct Launch<'a> {
    pub(crate) part: Part,
    pub(crate) env: &'a [(String, String)],
    /// The port of the API (of a gateway only), followed by the port of the admin listener.
    pub(crate) port: u16,
    pub(crate) admin: u16,
    /// The log file. A restarted process appends to it.
    pub(crate) log: PathBuf,
    /// A directory that becomes a disk of its own for this process, and its size as `mount` takes it.
    pub(crate) disk: Option<(&'a Path, &'a str)>,
    /// A file that replaces `/etc/resolv.conf` for this process.
    pub(crate) resolver: Option<PathBuf>,
}

/// Mounts an empty disk of size `$0` on directory `$1` and executes the remaining arguments. Separate namespaces make the disk
/// invisible to other processes, need no root, and remove the disk when the process ends.
const ON_A_DISK: &str = r#"mount -t tmpfs -o size="$0" tmpfs "$1" && shift && exec "$@""#;

/// Replaces `/etc/resolv.conf` by `$0` in the same way and executes the arguments.
const WITH_A_RESOLVER: &str = r#"mount --bind "$0" /etc/resolv.conf && exec "$@""#;

impl Process {
    /// Starts the process and does not wait until it is ready.
    pub(crate) fn start(launch: Launch<'_>) -> Self {
        let Launch { part, env, port, admin, log, disk, resolver } = launch;
        let file = File::options().create(true).append(true).open(&log).expect("opens the log of a part");
        let mut command = match (disk, resolver) {
            (None, None) => bare(served(part.0.binary())),
            (None, Some(resolver)) => {
                let mut command = bare("unshare");
                command.args(["--map-root-user", "--mount", "sh", "-c", WITH_A_RESOLVER]).arg(resolver);
                command.arg(served(part.0.binary()));
                command
            }
            (Some((directory, size)), _) => {
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
        Self { part, child }
    }

    /// The path under which this process's view of a directory is accessible. The directory can be on a disk of its own.
    pub(crate) fn sees(&self, directory: &Path) -> PathBuf {
        let inside = directory.strip_prefix("/").expect("an absolute path");
        Path::new("/proc").join(self.child.id().to_string()).join("root").join(inside)
    }

    /// The exit status, if the process has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("asks for the state of a child")
    }

    /// Sends a signal, named without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        // Uses the shell's `kill`, because a system call would need an additional dependency.
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIG{name} could not be sent to {}", self.part);
    }

    /// Kills the process and waits until it has ended.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM and waits until the process has ended.
    pub(crate) async fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        let part = self.part;
        wait_for(&format!("{part} to stop"), PATIENCE * 2, async || self.ended()).await
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The maximum resident memory so far, in bytes (`VmHWM` of proc(5)).
    pub(crate) fn peak_resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("reads a status");
        let kib =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
        kib.expect("a process has resident memory") * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A command for this kind of process without arguments, in an environment without `CANVAS_*` variables of the machine.
pub fn process_command(kind: Kind) -> Command {
    command(kind.binary())
}

/// A command for a binary of the workspace, in an environment without `CANVAS_*` variables of the machine.
pub(crate) fn command(binary: &str) -> Command {
    bare(self::binary(binary))
}

/// A command without the variables of a service that this process happens to have.
pub(crate) fn bare(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let ours = name.to_str().is_some_and(|name| name.starts_with("CANVAS_") || name.starts_with("OTEL_"));
        if ours {
            command.env_remove(name);
        }
    }
    command
}

/// The path of a part's binary: that of the workspace, or that in the directory `E2E_BIN_DIR`, which has the binaries of another
/// release (`tests/upgrade`). Admin commands and migrations always use the workspace's binary.
fn served(name: &str) -> PathBuf {
    std::env::var_os("E2E_BIN_DIR").map_or_else(|| binary(name), |directory| Path::new(&directory).join(name))
}

/// The path of a binary of the workspace.
pub fn binary(name: &str) -> PathBuf {
    binaries().join(name)
}

/// The directory of the binaries: that of the test executable or its parent.
fn binaries() -> &'static Path {
    static DIRECTORY: std::sync::LazyLock<PathBuf> = std::sync::LazyLock::new(|| {
        let test = std::env::current_exe().expect("knows its own path");
        let found = test.ancestors().skip(1).take(2).find(|directory| directory.join("canvas-gateway").is_file());
        found.expect("the processes are not built: cargo build --workspace").to_owned()
    });
    &DIRECTORY
}
