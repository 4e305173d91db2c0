//! The command line `canvas`, as a person or script uses it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use uuid::Uuid;

use crate::process::{bare, binary, command};
use crate::{Stack, User};

/// A home directory, an address and a token. Removed when dropped.
pub struct Shell {
    home: PathBuf,
    env: Vec<(String, String)>,
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    arguments: String,
    /// The exit status.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Stack {
    /// A home of somebody who has exported the address of the service and the token of `user`.
    pub fn shell(&self, user: &User) -> Shell {
        self.shell_at(user, 0)
    }

    /// The same at another gateway.
    pub fn shell_at(&self, user: &User, gateway: usize) -> Shell {
        let shell = Shell::new();
        shell.with("CANVAS_BASE_URL", &self.origin(gateway)).with("CANVAS_TOKEN", &user.token)
    }
}

impl Default for Shell {
    fn default() -> Self {
        Self::new()
    }
}

impl Shell {
    /// A home without an address and a token.
    pub fn new() -> Self {
        let home = std::env::temp_dir().join(format!("canvas-home-{}", Uuid::new_v4()));
        fs::create_dir_all(&home).expect("makes a home");
        let env = vec![("HOME".to_owned(), home.display().to_string()), ("NO_PROXY".to_owned(), "*".to_owned())];
        Self { home, env }
    }

    /// With this variable.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The home directory, in which commands run.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Writes a file in the home directory.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.home.join(name);
        path.parent().map(fs::create_dir_all).transpose().expect("makes the folder");
        fs::write(path, content).expect("writes a file");
    }

    /// Starts `canvas`.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = command("canvas");
        command.args(arguments);
        self.spawn(command)
    }

    fn spawn(&self, command: Command) -> Child {
        let mut command = tokio::process::Command::from(command);
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "TERM_PROGRAM", "KITTY_WINDOW_ID"] {
            command.env_remove(name);
        }
        command.current_dir(&self.home).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().expect("starts canvas")
    }

    /// Runs `canvas`.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with_input(arguments, "").await
    }

    /// Runs `canvas` with its output in this file or device.
    pub async fn run_into(&self, output: &str, arguments: &[&str]) -> Ran {
        let mut shell = bare("sh");
        shell.args(["-c", &format!("exec \"$0\" \"$@\" >{output}")]).arg(binary("canvas")).args(arguments);
        self.ended(self.spawn(shell), arguments.join(" "), "").await
    }

    /// Runs `canvas` with a text on standard input.
    pub async fn run_with_input(&self, arguments: &[&str], input: &str) -> Ran {
        self.ended(self.start(arguments), arguments.join(" "), input).await
    }

    /// Runs `canvas` on a terminal of its own, where this is typed. Standard output is all that the terminal receives.
    pub async fn typed(&self, arguments: &[&str], input: &str) -> Ran {
        let quoted: Vec<String> = arguments.iter().map(|it| format!("'{it}'")).collect();
        let mut terminal = bare("script");
        let line = format!("{} {}", binary("canvas").display(), quoted.join(" "));
        terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        self.ended(self.spawn(terminal), arguments.join(" "), input).await
    }

    async fn ended(&self, mut process: Child, arguments: String, input: &str) -> Ran {
        // Most commands do not read their input and can exit before it is written.
        let _ = process.stdin.take().expect("a pipe").write_all(input.as_bytes()).await;
        let output = process.wait_with_output().await.expect("runs canvas");
        Ran {
            arguments,
            code: output.status.code().expect("was not killed"),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// Panics unless the command ended with this exit status.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        let Self { arguments, stdout, stderr, .. } = &self;
        assert_eq!(self.code, code, "canvas {arguments}\n{stdout}{stderr}");
        self
    }

    /// The one JSON document on standard output of a command that succeeded.
    #[track_caller]
    pub fn json(self) -> Value {
        let Self { arguments, stdout, .. } = self.expect(0);
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("canvas {arguments}: {error}: {stdout}"))
    }

    /// The JSON documents on standard output, one on each line.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        let read = |line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("canvas {}: {error}: {line}", self.arguments))
        };
        self.stdout.lines().map(read).collect()
    }

    /// The error envelope on standard error of a command that failed with this status and printed nothing.
    #[track_caller]
    pub fn error(self, code: i32) -> Value {
        let Self { arguments, stdout, stderr, .. } = self.expect(code);
        assert_eq!(stdout, "", "canvas {arguments}");
        let envelope: Value =
            serde_json::from_str(&stderr).unwrap_or_else(|error| panic!("canvas {arguments}: {error}: {stderr}"));
        envelope["error"].clone()
    }
}
