//! Machines whose clocks differ by a minute. Everything that must agree uses the clocks of PostgreSQL and Redis.

use std::path::PathBuf;
use std::time::Duration;

use e2e::api::text;
use e2e::{Chance, Load, Part, Plan, SETTLING, checker};
use sqlx::types::chrono::{DateTime, Utc};

use super::{OTHER_DISPATCHER, OTHER_GATEWAY, OTHER_WORKER, doubled, start};

/// The processes of the first machine are behind, those of the second are ahead.
const SKEWS: [(&str, [Part; 3]); 2] = [
    ("-60s", [Part::GATEWAY, Part::IMAGE_WORKER, Part::DISPATCHER]),
    ("+60s", [OTHER_GATEWAY, OTHER_WORKER, OTHER_DISPATCHER]),
];

#[expect(clippy::disallowed_methods, reason = "the clock of the test, with which the processes' clocks are compared")]
fn now() -> DateTime<Utc> {
    Utc::now()
}

/// Debian's libfaketime, which `tests/run` installs.
fn faketime() -> PathBuf {
    let machines = std::fs::read_dir("/usr/lib").expect("lists /usr/lib").flatten();
    machines
        .map(|machine| machine.path().join("faketime/libfaketime.so.1"))
        .find(|library| library.exists())
        .expect("libfaketime is installed: tests/run --services-only does that")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_two_minutes_apart_do_all_work_once() {
    let library = faketime();
    let (chance, stack) = (Chance::new(), start(doubled().env("CANVAS_SWEEP_SECONDS", 0.1)).await);
    for (skew, parts) in SKEWS {
        for part in parts {
            // The monotonic clock, which measures intervals, is not changed.
            let env = [
                ("LD_PRELOAD", library.to_str().expect("a UTF-8 path")),
                ("FAKETIME", skew),
                ("DONT_FAKE_MONOTONIC", "1"),
            ];
            stack.restart_with(part, &env).await;
        }
    }
    let user = stack.user().await;
    for (gateway, expected) in [(0, -60), (1, 60)] {
        let reply = user.at(&stack, gateway).get("/auth/status").await.expect(200);
        let date = DateTime::parse_from_rfc2822(reply.header("date").expect("has a date")).expect("a date");
        let skew = (date.with_timezone(&Utc) - now()).num_seconds();
        assert!((skew - expected).abs() < 10, "the clock of gateway {gateway} is {skew} s off");
    }

    let load = Load::prepare(&stack, &chance, Plan { jobs: 60, clients: 6, pause: Duration::ZERO }).await;
    load.run().await;
    checker::check(&stack, &load, SETTLING).await;
    load.assert_untroubled();

    // A preview URL of one gateway is valid at the other. The difference only moves its expiry.
    let asset = user.upload("image/png", e2e::images::png(8, 8)).await;
    for gateway in [0, 1] {
        let made = user.at(&stack, gateway).get(&format!("/assets/{}", text(&asset, "/id"))).await.ok();
        let path = text(&made, "/asset/previewUrl").strip_prefix(&stack.origin(0)).expect("the public address");
        stack.anonymous_at(1 - gateway).get(path).await.expect(200);
    }
}
