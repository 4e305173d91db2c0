//! Resident memory of idle processes.

use std::time::Duration;

use e2e::{Kind, Stack};

use crate::table::BenchRow;

/// The time between start and measurement: long enough to open every pool and connection.
const SETTLE: Duration = Duration::from_secs(5);
const GATEWAY_MIB: f64 = 40.0;
const WORKER_MIB: f64 = 60.0;

/// Measures each process of the stack, which has received no request yet.
pub async fn measure(_stack: &Stack) -> Vec<BenchRow> {
    tokio::time::sleep(SETTLE).await;
    [
        (Kind::Gateway, GATEWAY_MIB),
        (Kind::Dispatcher, GATEWAY_MIB),
        (Kind::ImageWorker, WORKER_MIB),
        (Kind::VideoWorker, WORKER_MIB),
    ]
    .map(|(kind, goal)| {
        let mib = resident_mib(kind.binary());
        BenchRow::reported(format!("memory, idle {}", kind.binary()), format!("{mib:.0} MiB"))
            .goal(format!("<= {goal} MiB"), mib <= goal)
    })
    .into()
}

/// `VmRSS` (proc(5)) of the child that runs `binary`.
pub fn resident_mib(binary: &str) -> f64 {
    let read = |path: String| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let children = read("/proc/thread-self/children".to_owned()).expect("reads the list of children");
    let child = children
        .split_whitespace()
        .find(|pid| {
            let command = read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command.split('\0').next().is_some_and(|program| program.ends_with(&format!("/{binary}")))
        })
        .unwrap_or_else(|| panic!("{binary} is not a child of this process"));
    let status = read(format!("/proc/{child}/status")).expect("reads a status");
    let kib: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok())
        .expect("a process has resident memory");
    kib / 1024.0
}
