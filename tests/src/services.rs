//! PostgreSQL, Redis and RabbitMQ for one test, which can kill them.
//!
//! Like those of `tests/run` they use `deploy/local/lib`: `tests/services` starts and stops them in a directory of their own.
//! Starting takes about ten seconds, mostly for RabbitMQ, so a test uses the same services for all its stacks.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::{Deserialize, Serialize};

/// One of the services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// PostgreSQL. It is killed with an immediate stop, and recovers when it starts.
    Postgres,
    /// Redis, without persistence.
    Redis,
    RabbitMq,
}

impl Service {
    /// All services.
    pub const ALL: [Self; 3] = [Self::RabbitMq, Self::Redis, Self::Postgres];

    fn part(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::RabbitMq => "rabbitmq",
        }
    }
}

/// The URLs of the services.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Urls {
    pub(crate) database: String,
    pub(crate) redis: String,
    pub(crate) broker: String,
}

/// Running services, which are stopped and deleted when this is dropped. The next test that starts services deletes those of a
/// test that was killed.
pub struct Services {
    directory: PathBuf,
    urls: Urls,
}

impl Services {
    /// Starts all services with empty data.
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

    /// Stops a service without warning and waits until it has ended.
    pub async fn kill(&self, service: Service) {
        let killed = run(&self.directory, &["kill", service.part()]).await;
        assert!(killed.status.success(), "{service:?} is not killed: {}", String::from_utf8_lossy(&killed.stderr));
    }

    /// Starts the services that are down, at the same addresses and with their data.
    pub async fn start_again(&self) {
        let urls = started(&self.directory).await;
        assert_eq!((&urls.database, &urls.redis), (&self.urls.database, &self.urls.redis), "a port was taken");
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        stop(&self.directory);
    }
}

/// The prefix of the directory's name, which continues with the process id and a number.
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
    // A failure is ignored, because the next test deletes what is left.
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
