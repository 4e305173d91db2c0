//! The decoders of a worker, which is this process.

use std::fs;

use domain::job::JobStatus;
use serde_json::json;
use testkit::wait_for;

use crate::harness::{DEADLINE, Harness, png};

/// The children of this process.
fn decoders() -> Vec<u32> {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").expect("lists").filter_map(|entry| {
        let pid: u32 = entry.expect("is there").file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // State and parent follow the name in parentheses.
        (stat.rsplit_once(") ")?.1.split(' ').nth(1)? == own).then_some(pid)
    });
    processes.collect()
}

#[tokio::test]
async fn decoders_have_nothing_of_the_worker_and_their_death_ends_no_work() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (first, _) = harness.resize(&input, json!({"width": 10})).await;
    let _worker = harness.work();
    assert_eq!(harness.ended(first).await.status, JobStatus::Succeeded);
    let before = decoders();
    assert!(!before.is_empty());
    for pid in &before {
        let of = |name: &str| format!("/proc/{pid}/{name}");
        let command = fs::read(of("cmdline")).expect("reads");
        assert!(command.ends_with(b"\0decode\0"), "{command:?}");
        // The one in reserve may just have been started.
        wait_for("its confinement", DEADLINE, async || {
            let status = fs::read_to_string(of("status")).expect("reads");
            (status.contains("\nNoNewPrivs:\t1\n") && status.contains("\nSeccomp:\t2\n")).then_some(())
        })
        .await;
        // Only root may read the others, because a decoder cannot be dumped.
        assert!(fs::read(of("environ")).unwrap_or_default().is_empty());
        if let Ok(descriptors) = fs::read_dir(of("fd")) {
            assert_eq!(descriptors.count(), 3);
        }
    }
    for pid in before {
        let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        assert!(killed.expect("runs").success());
    }
    let (second, _) = harness.resize(&input, json!({"width": 20})).await;
    assert_eq!(harness.ended(second).await.status, JobStatus::Succeeded);
}
