//! `pgbench` with a script, the peer of measurements whose baseline is PostgreSQL.

use std::path::PathBuf;

use e2e::Stack;
use tokio::process::Command;

use crate::setting;

/// A script with its variables, for the database of a service.
pub struct Pgbench {
    database_url: String,
    script: PathBuf,
    variables: Vec<String>,
}

/// The result of a run.
pub struct Ran {
    /// Number of transactions.
    pub transactions: i64,
    pub per_second: f64,
}

impl Pgbench {
    /// Stores the script under this name.
    pub fn new(stack: &Stack, name: &str, script: &str, variables: &[(&str, String)]) -> Self {
        let path = stack.blobs().with_file_name(name);
        std::fs::write(&path, script).expect("writes the script");
        Self {
            database_url: setting(stack, "CANVAS_DATABASE_URL").to_owned(),
            script: path,
            variables: variables.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        }
    }

    /// Runs the script for `length`, an option of pgbench. It uses one thread, as the load generator does.
    pub async fn run(&self, clients: usize, length: &[&str]) -> Ran {
        let bin = std::env::var("TEST_POSTGRES_BIN").expect("TEST_POSTGRES_BIN is set: run through tests/bench");
        let output = Command::new(PathBuf::from(bin).join("pgbench"))
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=1", "--client", &clients.to_string()])
            .args(length)
            .arg("--file")
            .arg(&self.script)
            .args(self.variables.iter().flat_map(|variable| ["--define", variable]))
            .arg(&self.database_url)
            .kill_on_drop(true)
            .output()
            .await
            .expect("runs pgbench");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split([' ', '/']).next());
        Ran {
            transactions: value("number of transactions actually processed: ")
                .and_then(|count| count.parse().ok())
                .unwrap_or_else(|| panic!("pgbench reports no number: {text}")),
            per_second: value("tps = ")
                .and_then(|tps| tps.parse().ok())
                .unwrap_or_else(|| panic!("pgbench reports no rate: {text}")),
        }
    }
}
