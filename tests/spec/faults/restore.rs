//! A backup that was made during work and is restored after that work continued (deploy/README.md, "What a restore loses, and
//! what it repeats"). `tests/restore` checks that the data itself is restored.

use std::path::Path;

use e2e::api::{key, text};
use e2e::load::SECRET;
use e2e::{PATIENCE, Part, SETTLING, Stack, checker, images};
use futures_util::future::join_all;
use serde_json::json;
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};

use super::{mortal, start};

/// Long enough that a lease does not expire on a busy machine, because the test counts attempts. Short enough to wait for.
const LEASE_SECONDS: u64 = 4;

/// Runs `deploy/<script>` with the stack's database and blobs.
async fn deploy(stack: &Stack, script: &str, directory: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(script);
    let mut command = tokio::process::Command::new(&script);
    command.arg(directory).envs(stack.env().iter().map(|(name, value)| (name, value)));
    let output = command.output().await.expect("runs a script");
    assert!(output.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&output.stderr));
}

/// Deletes all data of the stack and restores it from `directory`.
async fn restore(stack: &Stack, directory: &Path) {
    stack.parts().into_iter().for_each(|part| stack.kill(part));
    stack.execute("DROP SCHEMA public CASCADE").await;
    stack.execute("CREATE SCHEMA public").await;
    std::fs::remove_dir_all(stack.blobs()).expect("deletes the blobs");
    stack.purge_queues().await;
    deploy(stack, "restore", directory).await;
    stack.admin(&["migrate"]).await.expect_success();
    join_all(stack.parts().into_iter().map(|part| stack.restart(part))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_under_way_at_a_backup_is_repeated_once_after_the_restore() {
    let (stack, simulator) =
        (start(mortal().env("CANVAS_LEASE_SECONDS", LEASE_SECONDS)).await, Simulator::start(Vendor::Replicate).await);
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    let connection = stack.connect_to(&user.uid, "replicate", simulator.url(), SIMULATOR_KEY).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let asset = user.upload("image/png", images::png(64, 48)).await;
    let webhook = |path: &str| json!({"url": receiver.url(path), "secret": SECRET});
    let resize = async |path: &str| {
        let target = user.slot(&canvas).await;
        let mut request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
        request["webhook"] = webhook(path);
        user.send("/actions/resize/runs", &request).await.expect(202).json()
    };

    // A delivery that counts as an attempt but was not sent, a running job, and a submit that the provider accepted
    // but that is not recorded.
    let (begun, at_begun) = stack.make_hold("delivery.begun");
    stack.restart_with(Part::DISPATCHER, &[("CANVAS_FAILPOINTS", &at_begun)]).await;
    let ended = resize("/ended").await;
    begun.reached().await;
    let (loaded, at_loaded) = stack.make_hold("action.loaded");
    let (accepted, at_accepted) = stack.make_hold("generation.accepted");
    let both = format!("{at_loaded};{at_accepted}");
    stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", &both)]).await;
    let running = resize("/running").await;
    loaded.reached().await;
    let target = user.slot(&canvas).await;
    let request = json!({
        "canvasId": canvas, "baseRevision": user.canvas(&canvas).await["revision"], "idempotencyKey": key(),
        "targetNodeId": target, "model": "black-forest-labs/flux-schnell", "prompt": "a kite",
        "connectionId": connection, "webhook": webhook("/submitted"),
    });
    let submitted = user.send("/images/generate", &request).await.expect(202).json();
    accepted.reached().await;
    let jobs = [&ended, &running, &submitted];

    let directory = std::env::temp_dir().join(format!("canvas-backup-{}", key()));
    deploy(&stack, "backup", &directory).await;

    // All of it continues and ends. The restore loses that progress.
    [&begun, &loaded, &accepted].into_iter().for_each(|hold| hold.release());
    join_all(jobs.map(|job| user.finished(job))).await;
    receiver.wait_for(3, PATIENCE).await;
    restore(&stack, &directory).await;

    for job in jobs {
        assert_eq!(user.finished(job).await["status"], "succeeded", "{job}");
    }
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
    assert_eq!(simulator.submits().len(), 1, "the accepted submit was looked up, not repeated");
    let requests = receiver.requests();
    for path in ["/ended", "/running", "/submitted"] {
        let sent: Vec<_> = requests.iter().filter(|request| request.path == path).collect();
        assert_eq!(sent.len(), 2, "{path}: once before it was lost, and once after the restore");
        assert!(sent.iter().all(|request| request.verify_signature(SECRET).is_ok()), "{path}");
        // The backup contained the event of the job that had ended. The other jobs ended again, with a new event.
        assert_eq!(sent[0].body == sent[1].body, path == "/ended", "{path}");
    }
    std::fs::remove_dir_all(&directory).expect("deletes the backup");
}
