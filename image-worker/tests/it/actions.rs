use std::sync::mpsc;
use std::time::Duration;

use app::job::Cancellation;
use blob::BlobKey;
use db::canvases::Change;
use db::tasks::ClaimRequest;
use db::workers::Worker;
use domain::canvas::AccessRole;
use domain::graph::GraphWrites;
use domain::id::JobId;
use domain::job::{CancelReason, FailureCode, JobStatus};
use domain::limits::TASK_CLAIMS_MAX;
use domain::message::{Queue, ReadyTasks};
use serde_json::json;
use service::account::FreeWork;
use taskqueue::RunnerOptions;
use testkit::wait_for;

use crate::harness::{DEADLINE, Harness, PUBLIC_URL, WINDOWS, png};

/// Occupies the only pixel thread of the account until it is dropped.
struct Busy {
    _release: mpsc::Sender<()>,
}

impl Busy {
    async fn occupy(harness: &Harness) -> Self {
        let (release, released) = mpsc::channel::<()>();
        let (started, begun) = tokio::sync::oneshot::channel();
        let (pixels, me) = (harness.pixels.clone(), harness.me.clone());
        tokio::spawn(async move {
            let work = move || {
                let _ = started.send(());
                let _ = released.recv();
            };
            service::account::on_behalf_of(me.as_str(), pixels.run(0, work)).await
        });
        begun.await.expect("begins");
        Self { _release: release }
    }

    /// Waits until other work has acquired everything it needs except the thread.
    async fn is_waited_for(harness: &Harness) {
        wait_for("work that waits for the thread", DEADLINE, async || (harness.pixels.waiting() > 0).then_some(()))
            .await;
    }
}

pub async fn cancel(harness: &Harness, id: JobId) -> Cancellation {
    let context = app::job::CompletionContext {
        public_url: PUBLIC_URL,
        windows: &WINDOWS,
        traceparent: None,
        ready: &ReadyTasks::new(),
        worker_silent: Duration::from_secs(15),
        review: None,
    };
    let mut transaction = db::pool::begin(harness.database.pool()).await.expect("begins");
    let canceled =
        app::job::cancel(&mut transaction, id, &harness.me, &context).await.expect("cancels").expect("is mine");
    db::pool::commit(transaction).await.expect("commits");
    canceled
}

/// Claims the only task this many times without settling it.
async fn claim_in_vain(harness: &Harness, id: JobId, times: i32) {
    let mut conn = harness.conn().await;
    for _ in 0..times {
        let wanted = ClaimRequest {
            queue: Queue::Image,
            limit: 1,
            quarantined: false,
            caps: None,
            lease: Duration::from_secs(60),
            owner: "the unlucky",
        };
        let claim = db::tasks::claim(&mut conn, &wanted).await.expect("claims").pop().expect("is ready");
        assert!(
            db::tasks::retry(&mut conn, id.0, claim.lease_token, Duration::ZERO).await.expect("reschedules").is_some()
        );
        // Stored times are rounded to milliseconds, up or down.
        wait_for("the task to be due", DEADLINE, async || {
            let promoted = db::tasks::promote(&mut conn, Queue::Image, 1, &db::tasks::LowWaterMarks::default(), &[])
                .await
                .expect("promotes");
            (promoted.due == 1).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_resize_becomes_an_asset_in_its_node() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = harness.resize(&input, json!({"width": 10})).await;
    let _worker = harness.work();
    let job = harness.ended(id).await;
    assert_eq!(job.status, JobStatus::Succeeded, "{:?}", job.outcome.failure);

    let output = &job.outcome.images[0];
    assert_eq!((output.width, output.height, output.media_type.as_str()), (10, 5, "image/png"));
    let stored = harness.asset(&output.asset).await.expect("is stored");
    assert_eq!((stored.name.as_str(), stored.canvas_key), ("green-resize.png", Some(harness.canvas.key)));
    let bytes = harness.store.get(BlobKey(stored.blob_key), 1 << 20).await.expect("is in the store");
    let header = raster::probe(&bytes).expect("is an image");
    assert_eq!((header.width, header.height, bytes.len() as i64), (10, 5, stored.bytes));

    let node = harness.node(&node).await.expect("is there");
    assert_eq!((node.asset.as_ref(), node.active_job), (Some(&output.asset), None));
    let provenance = json!(node.provenance());
    assert_eq!(provenance["kind"], "action");
    assert_eq!(provenance["run"], json!(id.run_handle()));
    assert_eq!((&provenance["actionId"], &provenance["params"]["width"]), (&json!("action:resize"), &json!(10)));
    assert_eq!(provenance["references"], json!([{"handle": input.to_string()}]));
}

#[tokio::test]
async fn a_job_ends_on_a_large_canvas_that_others_write_to_all_the_time() {
    let harness = Harness::new().await;
    let set = async |sql: &'static str| sqlx::raw_sql(sql).execute(&mut *harness.conn().await).await.expect("sets");
    set("UPDATE canvases SET node_count = 501").await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, _) = harness.resize(&input, json!({"width": 10})).await;
    let _worker = harness.work();
    // One of the two always has the lock or waits for it, so that the end waits and finds another revision.
    let write = async || {
        loop {
            set("BEGIN; UPDATE canvases SET revision = gen_random_uuid(); SELECT pg_sleep(0.05); COMMIT").await;
        }
    };
    let job = tokio::select! {
        job = harness.ended(id) => job,
        () = write() => unreachable!("writes on"),
        () = write() => unreachable!("writes on"),
    };
    assert_eq!(job.status, JobStatus::Succeeded, "{:?}", job.outcome.failure);
    let outputs = job.outcome.completion_review.expect("has a review").outputs;
    assert_eq!((outputs.count, outputs.durable_count), (1, 1));
}

#[tokio::test]
async fn a_broken_image_is_the_owners_to_mend() {
    let harness = Harness::new().await;
    let broken = png(40, 20).slice(..60);
    let input = harness.upload("in", "broken.png", broken).await;
    let (id, node) = harness.resize(&input, json!({"width": 10})).await;
    let _worker = harness.work();
    let job = harness.ended(id).await;
    let failure = job.outcome.failure.expect("failed");
    assert_eq!((failure.code, failure.retryable), (FailureCode::ActionInputInvalid, false));
    assert!(!failure.message.is_empty());
    assert_eq!(harness.node(&node).await.expect("is there").active_job, None);
}

#[tokio::test]
async fn a_result_over_the_limits_says_which_limit() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, _) = harness.resize(&input, json!({"width": 16384, "height": 16384, "fit": "fill"})).await;
    let _worker = harness.work();
    let failure = harness.ended(id).await.outcome.failure.expect("failed");
    assert_eq!(failure.code, FailureCode::ActionInputInvalid);
    assert!(failure.message.contains("100 megapixels"), "{}", failure.message);
}

#[tokio::test]
async fn an_input_whose_object_is_gone_is_named() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let blob_key = harness.asset(&input).await.expect("is there").blob_key;
    harness.store.delete(BlobKey(blob_key)).await.expect("deletes");
    harness.execute("UPDATE blobs SET state = 'removing'").await;
    let (id, _) = harness.resize(&input, json!({"width": 10})).await;
    let _worker = harness.work();
    let failure = harness.ended(id).await.outcome.failure.expect("failed");
    assert_eq!(
        (failure.code, failure.message),
        (FailureCode::ActionInputInvalid, format!("the input {input} is gone"))
    );
}

#[tokio::test]
async fn an_input_that_the_store_has_lost_is_waited_for() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let object = harness.object_path(harness.asset(&input).await.expect("is there").blob_key);
    let aside = object.with_extension("aside");
    std::fs::rename(&object, &aside).expect("moves the object aside");
    let (id, _) = harness.resize(&input, json!({"width": 10})).await;
    let _worker = harness.work();
    harness.until_parked().await;
    assert_eq!(harness.job(id).await.status, JobStatus::Running);
    std::fs::rename(&aside, &object).expect("moves it back");
    harness.execute("UPDATE task_queue SET due_at = now()").await;
    assert_eq!(harness.ended(id).await.status, JobStatus::Succeeded);
}

#[tokio::test]
async fn a_job_that_cannot_be_read_fails_after_its_last_claim() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = harness.resize(&input, json!({"width": 10})).await;
    claim_in_vain(&harness, id, TASK_CLAIMS_MAX).await;
    harness.execute(r#"UPDATE jobs SET request = '{"kind": "of another build"}'"#).await;
    let _running = harness.run(Harness::tasks(harness.worker()), RunnerOptions::new(Queue::Image, 4));
    harness.until_no_task_is_left().await;
    assert_eq!(harness.node(&node).await.expect("is there").active_job, None);
}

#[tokio::test]
async fn a_task_whose_job_is_gone_or_over_is_settled() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    harness.resize(&input, json!({"width": 10})).await;
    harness.execute("DELETE FROM jobs").await;
    let (over, _) = harness.resize(&input, json!({"width": 10})).await;
    harness.execute("UPDATE jobs SET status = 'canceled'").await;
    let _worker = harness.work();
    harness.until_no_task_is_left().await;
    assert_eq!(harness.job(over).await.status, JobStatus::Canceled);
}

#[tokio::test]
async fn a_withdrawn_role_keeps_the_result_out_of_the_canvas() {
    let harness = Harness::shared().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = harness.resize(&input, json!({"width": 10})).await;
    harness.share(Some(AccessRole::Viewer)).await;
    let _worker = harness.work();
    let failure = harness.ended(id).await.outcome.failure.expect("failed");
    assert_eq!(failure.code, FailureCode::OutputFinalizationFailed);
    assert_eq!(harness.node(&node).await.expect("is there").asset, None);
}

#[tokio::test]
async fn the_processor_time_of_an_action_is_reported_for_its_account() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(400, 200)).await;
    let (free_work, mut used) = FreeWork::new();
    let worker = worker::Worker { free_work, ..harness.worker() };
    let _running = harness.run(Harness::tasks(worker), RunnerOptions::new(Queue::Image, 4));
    for _ in 0..2 {
        let (id, _) = harness.resize(&input, json!({"width": 10})).await;
        assert_eq!(harness.ended(id).await.status, JobStatus::Succeeded);
        let report = tokio::time::timeout(DEADLINE, used.recv()).await.expect("in time").expect("is reported");
        assert_eq!(&*report.account, harness.me.as_str());
        assert!(!report.time.is_zero() && report.time < Duration::from_secs(5), "{:?}", report.time);
        assert!(used.try_recv().is_err(), "once for each task");
    }
}

#[tokio::test]
async fn a_cancel_stops_the_wait_for_pixels() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let busy = Busy::occupy(&harness).await;
    let (id, node) = harness.resize(&input, json!({"width": 10})).await;
    let _worker = harness.work();
    harness.job_when(id, "the start of the job", |status| status == JobStatus::Running).await;
    assert!(matches!(cancel(&harness, id).await, Cancellation::Requested(_)));
    let job = harness.ended(id).await;
    assert_eq!((job.status, job.cancel_reason), (JobStatus::Canceled, Some(CancelReason::UserRequested)));
    assert_eq!(harness.node(&node).await.expect("is there").active_job, None);
    drop(busy);
}

#[tokio::test]
async fn a_cancel_that_a_dead_worker_left_is_carried_out_by_the_next() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, _) = harness.resize(&input, json!({"width": 10})).await;
    let mut conn = harness.conn().await;
    let wanted = ClaimRequest {
        queue: Queue::Image,
        limit: 1,
        quarantined: false,
        caps: None,
        lease: Duration::from_millis(1),
        owner: "the dead",
    };
    assert_eq!(db::tasks::claim(&mut conn, &wanted).await.expect("claims").len(), 1);
    // Without a worker that is seen, the cancel would end the job at once.
    let next = Worker { queue: Queue::Image, instance: "the next", version: "1.0.0", slots: 1, busy: 0 };
    db::workers::report(&mut conn, &next).await.expect("reports");
    assert!(matches!(cancel(&harness, id).await, Cancellation::Requested(_)));
    let _worker = harness.work();
    assert_eq!(harness.ended(id).await.status, JobStatus::Canceled);
}

#[tokio::test]
async fn a_worker_whose_lease_ran_out_writes_nothing() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let busy = Busy::occupy(&harness).await;
    let (id, node) = harness.resize(&input, json!({"width": 10})).await;
    // A worker that never renews its lease and never notices that it is lost.
    let frozen = RunnerOptions {
        lease: Duration::from_millis(1),
        heartbeat: Duration::from_secs(3600),
        ..RunnerOptions::new(Queue::Image, 1)
    };
    let _worker = harness.work_with(frozen);
    harness.job_when(id, "the start of the job", |status| status == JobStatus::Running).await;
    let mut conn = harness.conn().await;
    let wanted = ClaimRequest {
        queue: Queue::Image,
        limit: 1,
        quarantined: false,
        caps: None,
        lease: Duration::from_secs(3600),
        owner: "the thief",
    };
    let stolen = wait_for("the lease to run out", DEADLINE, async || {
        db::tasks::promote(&mut conn, Queue::Image, 1, &db::tasks::LowWaterMarks::default(), &[])
            .await
            .expect("promotes");
        db::tasks::claim(&mut conn, &wanted).await.expect("claims").pop()
    })
    .await;
    drop(busy);
    // The only slot is free once the result was rejected, so the next job can run.
    let (next, _) = harness.resize(&input, json!({"width": 10})).await;
    assert_eq!(harness.ended(next).await.status, JobStatus::Succeeded);
    assert_eq!(harness.job(id).await.status, JobStatus::Running);
    assert_eq!(harness.node(&node).await.expect("is there").active_job, Some(id.0));
    assert!(db::tasks::settle(&mut conn, id.0, stolen.lease_token).await.expect("settles"), "the thief still has it");
}

#[tokio::test]
async fn equal_results_share_one_blob() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (first, _) = harness.resize(&input, json!({"width": 10})).await;
    let (second, _) = harness.resize(&input, json!({"width": 10})).await;
    let _worker = harness.work();
    let mut keys = Vec::new();
    for id in [first, second] {
        let asset = &harness.ended(id).await.outcome.images[0].asset;
        keys.push(harness.asset(asset).await.expect("is stored").blob_key);
    }
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn a_deleted_node_leaves_the_result_as_an_asset() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = harness.resize(&input, json!({"width": 10})).await;
    let graph = GraphWrites { deleted_nodes: vec![&node], ..GraphWrites::default() };
    let change = Change { graph, ..Change::new("deleted") };
    db::canvases::write(&mut *harness.conn().await, harness.canvas.key, &change).await.expect("deletes");
    let _worker = harness.work();
    let job = harness.ended(id).await;
    assert_eq!(job.status, JobStatus::Succeeded);
    assert_ne!(job.canvas_revision.as_deref(), Some("r1"), "the end is an activity, and thus a revision");
    assert!(harness.asset(&job.outcome.images[0].asset).await.is_some());
}

#[tokio::test]
async fn a_store_that_fails_is_tried_again() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let busy = Busy::occupy(&harness).await;
    let (id, _) = harness.resize(&input, json!({"width": 10})).await;
    let _worker = harness.work();
    Busy::is_waited_for(&harness).await;
    let broken = harness.break_store();
    drop(busy);
    harness.until_parked().await;
    assert_eq!(harness.job(id).await.status, JobStatus::Finalizing);
    drop(broken);
    harness.execute("UPDATE task_queue SET due_at = now()").await;
    assert_eq!(harness.ended(id).await.status, JobStatus::Succeeded);
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_at_the_last_claim_fails_to_be_finalized() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, _) = harness.resize(&input, json!({"width": 10})).await;
    claim_in_vain(&harness, id, TASK_CLAIMS_MAX - 1).await;
    let busy = Busy::occupy(&harness).await;
    let _worker = harness.work();
    Busy::is_waited_for(&harness).await;
    let broken = harness.break_store();
    drop(busy);
    let failure = harness.ended(id).await.outcome.failure.expect("failed");
    assert_eq!((failure.code, failure.retryable), (FailureCode::OutputFinalizationFailed, true));
    drop(broken);
}

#[tokio::test]
async fn a_task_that_was_claimed_too_often_fails_for_good() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = harness.resize(&input, json!({"width": 10})).await;
    claim_in_vain(&harness, id, TASK_CLAIMS_MAX).await;
    let _worker = harness.work();
    let failure = harness.ended(id).await.outcome.failure.expect("failed");
    assert_eq!((failure.code, failure.retryable), (FailureCode::RuntimeFailed, false));
    assert_eq!(harness.node(&node).await.expect("is there").active_job, None);
}
