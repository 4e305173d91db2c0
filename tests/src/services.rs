//! PostgreSQL, Redis and RabbitMQ of one test alone, so that it may kill them.
//!
//! Like those of `tests/run` they come from `deploy/local/lib`: `tests/services` starts and ends them in a directory of their
//! own. Starting takes some ten seconds, most of them RabbitMQ's, so a test that needs them shares them among its stacks.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// PostgreSQL; killing it is an immediate stop, after which it recovers.
    Postgres,
    /// Redis, which keeps nothing.
    Redis,
    /// RabbitMQ.
    RabbitMq,
}

impl Service {
    /// All three.
    pub const ALL: [Self; 3] = [Self::RabbitMq, Self::Redis, Self::Postgres];

    fn part(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::RabbitMq => "rabbitmq",
        }
    }
}

/// Where services are.
#[derive(Clone, Debug)]
pub(crate) struct Urls {
    pub(crate) database: String,
    pub(crate) redis: String,
    pub(crate) broker: String,
}

/// Running services; stopped and deleted when dropped. Those of a test that was killed are deleted by the next one that
/// starts some.
pub struct Services {
    directory: PathBuf,
    urls: Urls,
}

impl Services {
    /// Starts all three with empty data.
    pub async fn start() -> Self {
        delete_abandoned();
        let name = format!("{PREFIX}{}-{}", std::process::id(), crate::api::unique());
        let directory = std::env::temp_dir().join(name);
        let urls = started(&directory).await;
        Self { directory, urls }
    }

    pub(crate) fn urls(&self) -> &Urls {
        &self.urls
    }

    /// Ends one without warning and waits until it is gone.
    pub async fn kill(&self, service: Service) {
        let killed = run(&self.directory, &["kill", service.part()]).await;
        assert!(killed.status.success(), "{service:?} is not killed: {}", String::from_utf8_lossy(&killed.stderr));
    }

    /// Starts what is down, where it was and with the data that it had.
    pub async fn start_again(&self) {
        let urls = started(&self.directory).await;
        assert_eq!((&urls.database, &urls.redis), (&self.urls.database, &self.urls.redis), "somebody took a port");
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        stop(&self.directory);
    }
}

/// The directory of a test's services is named after its process, and a number in it.
const PREFIX: &str = "canvas-faults-";

async fn started(directory: &Path) -> Urls {
    let started = run(directory, &["start"]).await;
    let (output, error) = (String::from_utf8_lossy(&started.stdout), String::from_utf8_lossy(&started.stderr));
    assert!(started.status.success(), "the services do not start: {error}");
    let url = |name: &str| {
        let line = output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no URL of {name}: {output}")).to_owned()
    };
    Urls { database: url("postgres"), redis: url("redis"), broker: url("rabbitmq") }
}

async fn run(directory: &Path, arguments: &[&str]) -> Output {
    tokio::process::Command::from(command(directory, arguments)).output().await.expect("runs tests/services")
}

fn stop(directory: &Path) {
    // Best effort: what is left is deleted by the next test.
    let _ = command(directory, &["stop"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/services"));
    command.arg(directory).args(arguments).stdin(Stdio::null());
    command
}

fn delete_abandoned() {
    let entries = std::fs::read_dir(std::env::temp_dir()).expect("lists the temporary directory");
    for directory in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            stop(&directory);
        }
    }
}
