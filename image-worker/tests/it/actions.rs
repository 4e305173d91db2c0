use std::sync::mpsc;
use std::time::Duration;

use blob::BlobKey;
use db::canvases::GraphWrites;
use db::jobs::Cancellation;
use db::tasks::Wanted;
use domain::canvas::AccessRole;
use domain::id::JobId;
use domain::job::{CancelReason, FailureCode, JobStatus};
use domain::limits::TASK_CLAIMS_MAX;
use domain::message::Queue;
use image_worker::jobs::Tasks;
use serde_json::json;
use spine::RunnerOptions;
use testkit::wait_for;
use tokio::time::timeout;

use crate::world::{DEADLINE, PUBLIC_URL, WINDOWS, World, png};

/// Occupies the only thread for pixels until it is dropped.
struct Busy {
    _release: mpsc::Sender<()>,
}

impl Busy {
    async fn occupy(world: &World) -> Self {
        let (release, released) = mpsc::channel::<()>();
        let (started, begun) = tokio::sync::oneshot::channel();
        let pixels = world.pixels.clone();
        tokio::spawn(async move {
            let work = move || {
                let _ = started.send(());
                let _ = released.recv();
            };
            pixels.run(0, work).await
        });
        begun.await.expect("begins");
        Self { _release: release }
    }

    /// Returns when other work has all it needs but the thread.
    async fn is_waited_for(world: &World) {
        wait_for("work that waits for the thread", DEADLINE, async || (world.pixels.waiting() > 0).then_some(())).await;
    }
}

pub async fn cancel(world: &World, id: JobId) -> Cancellation {
    let terms = db::jobs::Terms {
        revision: "rc",
        public_url: PUBLIC_URL,
        windows: &WINDOWS,
        traceparent: None,
        review: canvas::review::review_of_job,
        storage_max: 0,
    };
    let mut transaction = db::pool::begin(world.database.pool()).await.expect("begins");
    let canceled = db::jobs::cancel(&mut transaction, id, &world.me, &terms).await.expect("cancels").expect("is mine");
    db::pool::commit(transaction).await.expect("commits");
    canceled
}

/// Lets the only task be claimed so often without an end.
async fn claim_in_vain(world: &World, id: JobId, times: i32) {
    let mut conn = world.conn().await;
    for _ in 0..times {
        let wanted = Wanted {
            queue: Queue::Image,
            limit: 1,
            suspects: false,
            lanes: None,
            lease: Duration::from_secs(60),
            owner: "the unlucky",
        };
        let claim = db::tasks::claim(&mut conn, &wanted).await.expect("claims").pop().expect("is ready");
        assert!(db::tasks::retry(&mut conn, id.0, claim.lease_token, Duration::ZERO).await.expect("parks"));
        // Stored times are rounded to milliseconds, upwards too.
        wait_for("the task to be due", DEADLINE, async || {
            let promoted = db::tasks::promote(&mut conn, Queue::Image, 1, &db::tasks::Floors::default(), &[])
                .await
                .expect("promotes");
            (promoted.due == 1).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_resize_becomes_an_asset_in_its_node() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = world.resize(&input, json!({"width": 10})).await;
    let _worker = world.work();
    let job = world.ended(id).await;
    assert_eq!(job.status, JobStatus::Succeeded, "{:?}", job.outcome.failure);

    let output = &job.outcome.images[0];
    assert_eq!((output.width, output.height, output.media_type.as_str()), (10, 5, "image/png"));
    let stored = world.asset(&output.asset).await.expect("is stored");
    assert_eq!((stored.name.as_str(), stored.canvas_key), ("green-resize.png", Some(world.canvas.key)));
    let bytes = world.store.get(BlobKey(stored.blob_key), 1 << 20).await.expect("is in the store");
    let header = raster::probe(&bytes).expect("is a picture");
    assert_eq!((header.width, header.height, bytes.len() as i64), (10, 5, stored.bytes));

    let node = world.node(&node).await.expect("is there");
    assert_eq!((node.asset.as_ref(), node.active_job), (Some(&output.asset), None));
    let provenance = &node.server["provenance"];
    assert_eq!(provenance["kind"], "action");
    assert_eq!(provenance["run"], json!(id.run_handle()));
    assert_eq!((&provenance["actionId"], &provenance["params"]["width"]), (&json!("action:resize"), &json!(10)));
    assert_eq!(provenance["references"], json!([{"handle": input.to_string()}]));
}

#[tokio::test]
async fn a_broken_picture_is_the_owners_to_mend() {
    let world = World::new().await;
    let broken = png(40, 20).slice(..60);
    let input = world.upload("in", "broken.png", broken).await;
    let (id, node) = world.resize(&input, json!({"width": 10})).await;
    let _worker = world.work();
    let job = world.ended(id).await;
    let failure = job.outcome.failure.expect("failed");
    assert_eq!((failure.code, failure.retryable), (FailureCode::ActionInputInvalid, false));
    assert!(!failure.message.is_empty());
    assert_eq!(world.node(&node).await.expect("is there").active_job, None);
}

#[tokio::test]
async fn a_result_over_the_limits_says_which_limit() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (id, _) = world.resize(&input, json!({"width": 16384, "height": 16384, "fit": "fill"})).await;
    let _worker = world.work();
    let failure = world.ended(id).await.outcome.failure.expect("failed");
    assert_eq!(failure.code, FailureCode::ActionInputInvalid);
    assert!(failure.message.contains("100 megapixels"), "{}", failure.message);
}

#[tokio::test]
async fn an_input_whose_object_is_gone_is_named() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let blob_key = world.asset(&input).await.expect("is there").blob_key;
    world.store.delete(BlobKey(blob_key)).await.expect("deletes");
    world.execute("UPDATE blobs SET state = 'removing'").await;
    let (id, _) = world.resize(&input, json!({"width": 10})).await;
    let _worker = world.work();
    let failure = world.ended(id).await.outcome.failure.expect("failed");
    assert_eq!(
        (failure.code, failure.message),
        (FailureCode::ActionInputInvalid, format!("the input {input} is gone"))
    );
}

#[tokio::test]
async fn an_input_that_the_store_has_lost_is_waited_for() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let object = world.object_path(world.asset(&input).await.expect("is there").blob_key);
    let aside = object.with_extension("aside");
    std::fs::rename(&object, &aside).expect("moves the object aside");
    let (id, _) = world.resize(&input, json!({"width": 10})).await;
    let _worker = world.work();
    world.until_parked().await;
    assert_eq!(world.job(id).await.status, JobStatus::Running);
    std::fs::rename(&aside, &object).expect("moves it back");
    world.execute("UPDATE tasks SET due_at = now()").await;
    assert_eq!(world.ended(id).await.status, JobStatus::Succeeded);
}

#[tokio::test]
async fn a_job_that_cannot_be_read_fails_after_its_last_claim() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = world.resize(&input, json!({"width": 10})).await;
    claim_in_vain(&world, id, TASK_CLAIMS_MAX).await;
    world.execute(r#"UPDATE jobs SET request = '{"kind": "of another build"}'"#).await;
    let worker = world.worker();
    let nudge = worker.nudge.clone();
    let _running = world.run(Tasks(worker), RunnerOptions::new(Queue::Image, 4));
    world.until_no_task_is_left().await;
    assert_eq!(world.node(&node).await.expect("is there").active_job, None);
    // A run that waits for it hears of it without the relay's next look of its own.
    timeout(DEADLINE, nudge.nudged()).await.expect("the relay is nudged");
}

#[tokio::test]
async fn a_task_whose_job_is_gone_or_over_is_settled() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    world.resize(&input, json!({"width": 10})).await;
    world.execute("DELETE FROM jobs").await;
    let (over, _) = world.resize(&input, json!({"width": 10})).await;
    world.execute("UPDATE jobs SET status = 'canceled'").await;
    let _worker = world.work();
    world.until_no_task_is_left().await;
    assert_eq!(world.job(over).await.status, JobStatus::Canceled);
}

#[tokio::test]
async fn a_withdrawn_role_keeps_the_result_out_of_the_canvas() {
    let world = World::shared().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = world.resize(&input, json!({"width": 10})).await;
    world.share(Some(AccessRole::Viewer)).await;
    let _worker = world.work();
    let failure = world.ended(id).await.outcome.failure.expect("failed");
    assert_eq!(failure.code, FailureCode::OutputFinalizationFailed);
    assert_eq!(world.node(&node).await.expect("is there").asset, None);
}

#[tokio::test]
async fn a_cancel_stops_the_wait_for_pixels() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let busy = Busy::occupy(&world).await;
    let (id, node) = world.resize(&input, json!({"width": 10})).await;
    let _worker = world.work();
    world.job_when(id, "the start of the job", |status| status == JobStatus::Running).await;
    assert!(matches!(cancel(&world, id).await, Cancellation::Requested(_)));
    let job = world.ended(id).await;
    assert_eq!((job.status, job.cancel_reason), (JobStatus::Canceled, Some(CancelReason::UserRequested)));
    assert_eq!(world.node(&node).await.expect("is there").active_job, None);
    drop(busy);
}

#[tokio::test]
async fn a_cancel_that_a_dead_worker_left_is_carried_out_by_the_next() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (id, _) = world.resize(&input, json!({"width": 10})).await;
    let mut conn = world.conn().await;
    let wanted = Wanted {
        queue: Queue::Image,
        limit: 1,
        suspects: false,
        lanes: None,
        lease: Duration::from_millis(1),
        owner: "the dead",
    };
    assert_eq!(db::tasks::claim(&mut conn, &wanted).await.expect("claims").len(), 1);
    assert!(matches!(cancel(&world, id).await, Cancellation::Requested(_)));
    let _worker = world.work();
    assert_eq!(world.ended(id).await.status, JobStatus::Canceled);
}

#[tokio::test]
async fn a_worker_whose_lease_ran_out_writes_nothing() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let busy = Busy::occupy(&world).await;
    let (id, node) = world.resize(&input, json!({"width": 10})).await;
    // It never renews its lease, and never doubts it.
    let frozen = RunnerOptions {
        lease: Duration::from_millis(1),
        heartbeat: Duration::from_secs(3600),
        ..RunnerOptions::new(Queue::Image, 1)
    };
    let _worker = world.work_with(frozen);
    world.job_when(id, "the start of the job", |status| status == JobStatus::Running).await;
    let mut conn = world.conn().await;
    let wanted = Wanted {
        queue: Queue::Image,
        limit: 1,
        suspects: false,
        lanes: None,
        lease: Duration::from_secs(3600),
        owner: "the thief",
    };
    let stolen = wait_for("the lease to run out", DEADLINE, async || {
        db::tasks::promote(&mut conn, Queue::Image, 1, &db::tasks::Floors::default(), &[]).await.expect("promotes");
        db::tasks::claim(&mut conn, &wanted).await.expect("claims").pop()
    })
    .await;
    drop(busy);
    // The one slot is free again once the result has been refused, and then it takes the next job.
    let (next, _) = world.resize(&input, json!({"width": 10})).await;
    assert_eq!(world.ended(next).await.status, JobStatus::Succeeded);
    assert_eq!(world.job(id).await.status, JobStatus::Running);
    assert_eq!(world.node(&node).await.expect("is there").active_job, Some(id.0));
    assert!(db::tasks::settle(&mut conn, id.0, stolen.lease_token).await.expect("settles"), "the thief still has it");
}

#[tokio::test]
async fn equal_results_share_one_blob() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (first, _) = world.resize(&input, json!({"width": 10})).await;
    let (second, _) = world.resize(&input, json!({"width": 10})).await;
    let _worker = world.work();
    let mut keys = Vec::new();
    for id in [first, second] {
        let asset = &world.ended(id).await.outcome.images[0].asset;
        keys.push(world.asset(asset).await.expect("is stored").blob_key);
    }
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn a_deleted_node_leaves_the_result_as_an_asset() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = world.resize(&input, json!({"width": 10})).await;
    let writes = GraphWrites { deleted_nodes: vec![&node], ..GraphWrites::default() };
    db::canvases::write_graph(&mut *world.conn().await, world.canvas.key, &writes).await.expect("deletes");
    let _worker = world.work();
    let job = world.ended(id).await;
    assert_eq!((job.status, job.canvas_revision.as_deref()), (JobStatus::Succeeded, Some("r1")));
    assert!(world.asset(&job.outcome.images[0].asset).await.is_some());
}

#[tokio::test]
async fn a_store_that_fails_is_tried_again() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let busy = Busy::occupy(&world).await;
    let (id, _) = world.resize(&input, json!({"width": 10})).await;
    let _worker = world.work();
    Busy::is_waited_for(&world).await;
    let broken = world.break_store();
    drop(busy);
    world.until_parked().await;
    assert_eq!(world.job(id).await.status, JobStatus::Finalizing);
    drop(broken);
    world.execute("UPDATE tasks SET due_at = now()").await;
    assert_eq!(world.ended(id).await.status, JobStatus::Succeeded);
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_at_the_last_claim_fails_to_be_finalized() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (id, _) = world.resize(&input, json!({"width": 10})).await;
    claim_in_vain(&world, id, TASK_CLAIMS_MAX - 1).await;
    let busy = Busy::occupy(&world).await;
    let _worker = world.work();
    Busy::is_waited_for(&world).await;
    let broken = world.break_store();
    drop(busy);
    let failure = world.ended(id).await.outcome.failure.expect("failed");
    assert_eq!((failure.code, failure.retryable), (FailureCode::OutputFinalizationFailed, true));
    drop(broken);
}

#[tokio::test]
async fn a_task_that_was_claimed_too_often_fails_for_good() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = world.resize(&input, json!({"width": 10})).await;
    claim_in_vain(&world, id, TASK_CLAIMS_MAX).await;
    let _worker = world.work();
    let failure = world.ended(id).await.outcome.failure.expect("failed");
    assert_eq!((failure.code, failure.retryable), (FailureCode::RuntimeFailed, false));
    assert_eq!(world.node(&node).await.expect("is there").active_job, None);
}
