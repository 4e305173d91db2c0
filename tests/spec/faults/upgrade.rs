//! Processes of the previous release on the schema of this release, as during an upgrade (shared/db/migrations/README.md).

use std::time::Duration;

use e2e::{Chance, Load, Plan, SETTLING, Work, checker};

use super::scale::measured;
use super::{doubled, start};

/// The default lease, in seconds: long enough that a lease does not expire on a busy machine.
const LEASE: u64 = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_of_another_release_work_on_this_schema() {
    assert!(
        std::env::var_os("E2E_BIN_DIR").is_some(),
        "E2E_BIN_DIR names the other release's processes: tests/upgrade"
    );
    let chance = Chance::new();
    let stack = start(doubled().video_workers(1).env("CANVAS_LEASE_SECONDS", LEASE)).await;
    let plan = Plan { jobs: 160, clients: 8, pause: Duration::from_millis(200) };
    let load = Load::new(&stack, &chance, plan, Work::MIXED).await;
    load.run().await;
    checker::check(&stack, &load, SETTLING).await;
    load.assert_untroubled();
    measured("upgrade", format_args!("{} starts, clients saw no failure", plan.jobs));
}
