use domain::canvas::ActivityType;
use domain::graph::Node;
use domain::job::{CancelReason, Failure, FailureCode, JobStatus, Preview};
use domain::metadata::ProvenanceKind;
use domain::webhook::DeliveryStatus;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixture::{CONTEXT, Fixture, WINDOWS, account, asset, begin, end_of, stored_blob};
use app::job::{Cancellation, Completion, CompletionResult};
use db::deliveries::{self, NewDelivery};
use db::jobs;
use db::{assets, canvases};

fn status(node: &Node) -> Option<JobStatus> {
    node.job().map(|job| job.status)
}

#[tokio::test]
async fn a_success_changes_everything_in_one_transaction() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let delivery = NewDelivery {
        id: Uuid::now_v7(),
        account: &fixture.account,
        job_id: id,
        url: "https://receiver.example/hook",
        sealed_secret: "sealed",
    };
    deliveries::insert(&mut *fixture.conn().await, &delivery).await.expect("inserts");
    let lease = fixture.claim().await;
    let mut conn = fixture.conn().await;
    begin(&mut conn, id, lease).await.expect("is ours");
    assert!(jobs::mark_finalizing(&mut conn, id, lease).await.expect("marks"));
    let ending = fixture.success().await;
    let sequence = fixture.count("SELECT sequence FROM canvases").await;
    let CompletionResult::Done(record) = fixture.complete(id, lease, ending).await else { panic!("not done") };

    assert_eq!(record.status, JobStatus::Succeeded);
    assert_eq!(record.canvas_revision, Some(fixture.revision().await));
    assert_eq!(record.outcome.images[0].asset, asset("made"));
    assert_eq!(fixture.history(id).await, ["queued", "running", "finalizing", "succeeded"]);

    let node = fixture.node().await.expect("is there");
    assert_eq!((node.asset, node.active_job), (Some(asset("made")), None));
    let provenance = json!({"kind": "action", "references": [], "elements": [], "createdAt": record.completed_at});
    let job = json!({"id": id.job_handle(), "run": id.run_handle(), "status": "succeeded", "operation": "action"});
    assert_eq!(node.server.text(), json!({"job": job, "provenance": provenance}).to_string());

    let stored = assets::get(&mut conn, &asset("made")).await.expect("reads").expect("is stored");
    assert_eq!((stored.canvas_key, stored.name.as_str()), (Some(fixture.canvas.key), "photo-resize.png"));
    let made = assets::lineage::made(&mut conn, &asset("made")).await.expect("reads").expect("is recorded");
    assert_eq!((made.kind, made.by.map(|by| by.label)), (ProvenanceKind::Action, Some("laptop".to_owned())));
    let (inputs, _) = assets::lineage::inputs(&mut conn, &account("me"), &asset("made")).await.expect("reads");
    assert_eq!(inputs.into_iter().map(|input| input.handle).collect::<Vec<_>>(), [asset("input")]);
    let (canvas, _) =
        canvases::find(&mut conn, &fixture.account, &fixture.canvas.handle).await.expect("reads").expect("is there");
    assert_eq!((Some(canvas.revision), canvas.sequence), (record.canvas_revision, sequence + 1));
    let activity = canvases::activity(&mut conn, canvas.key).await.expect("reads");
    assert!(activity[0].kind == ActivityType::JobFinished && activity[0].actor.label == "laptop");
    assert_eq!(activity[0].node_ids, std::slice::from_ref(&fixture.node));

    assert_eq!(fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'action'").await, 0);
    assert_eq!(fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'rendition'").await, 1);
    assert_eq!(fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'delivery'").await, 1);
    let webhook = fixture.get(id).await.webhook.expect("has a webhook");
    assert_eq!((webhook.id, webhook.status), (format!("webhook:{}", delivery.id), DeliveryStatus::Pending));
    let body: Vec<u8> =
        sqlx::query_scalar("SELECT body FROM webhook_deliveries").fetch_one(&mut *conn).await.expect("has an event");
    let event: Value = serde_json::from_slice(&body).expect("is JSON");
    assert_eq!((&event["type"], &event["createdAt"]), (&json!("image_job.succeeded"), &json!(record.completed_at)));
    assert_eq!(event["data"]["run"]["images"][0]["assetId"], json!("asset:me:made"));
    // The review was made after the node was filled and freed, with its new asset stored.
    let review = record.outcome.completion_review.as_ref().expect("has a review").clone();
    let outputs = &review.outputs;
    assert_eq!((outputs.count, outputs.durable_count, outputs.pending_count, outputs.failed_count), (1, 1, 0, 0));
    assert_eq!(fixture.get(id).await.outcome.completion_review, Some(review.clone()));
    assert_eq!(event["data"]["run"]["completionReview"], json!(review));
    assert!(event["data"]["run"].get("webhook").is_none());
}

#[tokio::test]
async fn a_preview_that_was_made_with_its_result_needs_no_task() {
    for is_removed in [false, true] {
        let fixture = Fixture::new().await;
        let id = fixture.start().await;
        let lease = fixture.claim().await;
        begin(&mut *fixture.conn().await, id, lease).await.expect("is ours");
        let Completion::Succeeded(mut placements) = fixture.success().await else { unreachable!("is a success") };
        let (blob_key, sha256) = (Uuid::new_v4(), [8; 32]);
        if !is_removed {
            stored_blob(&mut *fixture.conn().await, blob_key, &sha256, 5).await;
        }
        placements[0].preview = Some(Preview { mime_type: "image/jpeg".into(), bytes: 5, sha256, blob_key });
        let completed = fixture.complete(id, lease, Completion::Succeeded(placements)).await;
        assert!(matches!(completed, CompletionResult::Done(_)), "{completed:?}");
        let is_made =
            "SELECT count(*) FROM renditions WHERE state = 'ready' AND width = 512 AND mime_type = 'image/jpeg'";
        let made = fixture.count(is_made).await;
        let asked = fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'rendition'").await;
        assert_eq!((made, asked), if is_removed { (0, 1) } else { (1, 0) }, "one that was removed is made again");
    }
}

#[tokio::test]
async fn a_stale_lease_writes_nothing() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let stale = fixture.claim().await;
    begin(&mut *fixture.conn().await, id, stale).await.expect("is ours");
    fixture.expire_lease(id).await;
    let current = fixture.claim().await;

    let mut conn = fixture.conn().await;
    assert!(!jobs::mark_finalizing(&mut conn, id, stale).await.expect("refuses"));
    assert_eq!(begin(&mut conn, id, stale).await, None);
    let ending = fixture.success().await;
    assert_eq!(fixture.complete(id, stale, ending.clone()).await, CompletionResult::Stale);
    assert_eq!(fixture.count("SELECT count(*) FROM assets").await, 0);
    assert_eq!(fixture.history(id).await, ["queued", "running"]);

    assert!(matches!(fixture.complete(id, current, ending.clone()).await, CompletionResult::Done(_)));
    assert_eq!(fixture.complete(id, current, ending).await, CompletionResult::Stale, "it ends once");
}

#[tokio::test]
async fn without_its_node_the_output_is_still_stored_and_the_end_is_an_activity() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let lease = fixture.claim().await;
    begin(&mut *fixture.conn().await, id, lease).await.expect("is ours");
    fixture.delete_node().await;
    let ending = fixture.success().await;
    let CompletionResult::Done(record) = fixture.complete(id, lease, ending).await else { panic!("not done") };
    assert_eq!((record.status, record.canvas_revision), (JobStatus::Succeeded, Some(fixture.revision().await)));
    assert_eq!(record.outcome.images[0].node, fixture.node);
    let review = record.outcome.completion_review.expect("has a review");
    assert_eq!(review.delivery.non_durable_output_handles, [fixture.node.handle()]);
    assert!(assets::get(&mut *fixture.conn().await, &asset("made")).await.expect("reads").is_some());
    let finished = "SELECT count(*) FROM canvas_changes WHERE activity ->> 'type' = 'job.finished'
                    AND cardinality(changed_nodes) = 0";
    assert_eq!(fixture.count(finished).await, 1);
}

#[tokio::test]
async fn a_withdrawn_role_turns_success_into_a_failure_that_frees_the_node() {
    let fixture = Fixture::shared().await;
    let id = fixture.start().await;
    let lease = fixture.claim().await;
    begin(&mut *fixture.conn().await, id, lease).await.expect("is ours");
    fixture.share(Some(domain::canvas::AccessRole::Viewer)).await;
    let ending = fixture.success().await;
    let CompletionResult::Done(record) = fixture.complete(id, lease, ending).await else { panic!("not done") };
    let failure = record.outcome.failure.expect("failed");
    assert_eq!((failure.code, failure.retryable), (FailureCode::OutputFinalizationFailed, true));
    assert_eq!(fixture.count("SELECT count(*) FROM assets").await, 0);
    let node = fixture.node().await.expect("is there");
    assert_eq!((node.asset.as_ref(), node.active_job, status(&node)), (None, None, Some(JobStatus::Failed)));
}

#[tokio::test]
async fn a_role_that_is_withdrawn_while_an_end_waits_is_gone() {
    let fixture = Fixture::shared().await;
    let id = fixture.start().await;
    let lease = fixture.claim().await;
    begin(&mut *fixture.conn().await, id, lease).await.expect("is ours");
    let ending = fixture.success().await;
    let mut writer = fixture.database.pool().begin().await.expect("begins");
    canvases::lock(&mut writer, &crate::fixture::account("you"), &fixture.canvas.handle).await.expect("locks");
    let withdrawn = async {
        fixture.waits_for_a_lock("the end").await;
        fixture.share(None).await;
        writer.commit().await.expect("commits");
    };
    let (completed, ()) = tokio::join!(fixture.complete(id, lease, ending), withdrawn);
    let CompletionResult::Done(record) = completed else { panic!("not done") };
    assert_eq!(record.outcome.failure.expect("failed").code, FailureCode::OutputFinalizationFailed);
    assert_eq!(fixture.count("SELECT count(*) FROM assets").await, 0);
}

#[tokio::test]
async fn an_editor_stores_for_the_owner() {
    let fixture = Fixture::shared().await;
    let ending = fixture.success().await;
    let record = fixture.ended(ending).await;
    assert_eq!(record.outcome.images[0].asset.to_string(), "asset:you:made");
    let mut conn = fixture.conn().await;
    let handle = &record.outcome.images[0].asset;
    let (_, role) = assets::get_readable(&mut conn, &fixture.account, handle).await.expect("reads").expect("may");
    assert_eq!(role.as_str(), "editor");
    fixture.share(None).await;
    assert!(assets::get_readable(&mut conn, &fixture.account, handle).await.expect("reads").is_none());
}

#[tokio::test]
async fn a_swept_blob_asks_for_another_put() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let lease = fixture.claim().await;
    begin(&mut *fixture.conn().await, id, lease).await.expect("is ours");
    let ending = fixture.success().await;
    sqlx::query("DELETE FROM blobs").execute(&mut *fixture.conn().await).await.expect("sweeps");
    assert_eq!(fixture.complete(id, lease, ending).await, CompletionResult::BlobGone);
    assert_eq!(fixture.get(id).await.status, JobStatus::Running);
}

#[tokio::test]
async fn a_cancel_of_untaken_work_ends_it_at_once() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let mut conn = fixture.conn().await;
    let canceled = app::job::cancel(&mut conn, id, &fixture.account, CONTEXT).await.expect("cancels");
    let Some(Cancellation::Canceled(record)) = canceled else { panic!("not canceled: {canceled:?}") };
    assert_eq!((record.status, record.cancel_reason), (JobStatus::Canceled, Some(CancelReason::UserRequested)));
    assert_eq!(fixture.count("SELECT count(*) FROM task_queue").await, 0);
    assert_eq!(fixture.node().await.expect("is there").active_job, None);
    let again = app::job::cancel(&mut conn, id, &fixture.account, CONTEXT).await.expect("answers");
    assert!(matches!(again, Some(Cancellation::Unchanged(_))));
}

#[tokio::test]
async fn a_cancel_of_taken_work_is_an_intent_that_a_success_may_outrun() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let lease = fixture.claim().await;
    let mut conn = fixture.conn().await;
    let requested = app::job::cancel(&mut conn, id, &fixture.account, CONTEXT).await.expect("cancels");
    let Some(Cancellation::Requested(record)) = requested else { panic!("not requested: {requested:?}") };
    assert_eq!(record.status, JobStatus::Canceling);
    let begun = begin(&mut conn, id, lease).await.expect("is ours");
    assert_eq!(begun.status, JobStatus::Canceling, "the worker learns of it");
    let ending = fixture.success().await;
    let CompletionResult::Done(record) = fixture.complete(id, lease, ending).await else { panic!("not done") };
    assert_eq!(record.status, JobStatus::Succeeded);
    assert_eq!(fixture.history(id).await, ["queued", "running", "canceling", "succeeded"]);
}

#[tokio::test]
async fn a_cancel_whose_worker_died_ends_at_the_next_cancel() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    fixture.claim().await;
    let mut conn = fixture.conn().await;
    app::job::cancel(&mut conn, id, &fixture.account, CONTEXT).await.expect("cancels");
    fixture.expire_lease(id).await;
    let canceled = app::job::cancel(&mut conn, id, &fixture.account, CONTEXT).await.expect("cancels");
    assert!(matches!(canceled, Some(Cancellation::Canceled(_))), "{canceled:?}");
}

#[tokio::test]
async fn another_accounts_job_is_not_there() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let (mut conn, stranger) = (fixture.conn().await, crate::fixture::account("you"));
    assert_eq!(jobs::get(&mut conn, id, &stranger, WINDOWS.tombstone).await.expect("reads"), None);
    assert_eq!(app::job::cancel(&mut conn, id, &stranger, CONTEXT).await.expect("reads"), None);
}

#[tokio::test]
async fn a_failure_frees_the_node_and_tells_why() {
    let fixture = Fixture::new().await;
    let failure = Failure::new(FailureCode::ActionInputInvalid, "the image is cut short");
    let record = fixture.ended(Completion::Failed(failure.clone(), Vec::new())).await;
    assert_eq!((record.status, record.outcome.failure), (JobStatus::Failed, Some(failure)));
    assert_eq!(record.canvas_revision, Some(fixture.revision().await));
    let node = fixture.node().await.expect("is there");
    assert_eq!((node.active_job, status(&node)), (None, Some(JobStatus::Failed)));
}

#[tokio::test]
async fn a_job_that_cannot_be_read_is_ended_all_the_same() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let lease = fixture.claim().await;
    sqlx::query(r#"UPDATE jobs SET request = '{"kind": "of another build"}'"#)
        .execute(&mut *fixture.conn().await)
        .await
        .expect("updates");
    let unreadable = jobs::begin(&mut *fixture.conn().await, &[(id, lease)]).await.expect_err("cannot be read");
    assert!(unreadable.is_unreadable());

    let mut tx = fixture.database.pool().begin().await.expect("begins");
    assert!(app::job::abandon(&mut tx, id, Uuid::new_v4(), CONTEXT).await.expect("answers").is_none(), "not its lease");
    assert!(app::job::abandon(&mut tx, id, lease, CONTEXT).await.expect("ends").is_some());
    tx.commit().await.expect("commits");
    assert_eq!(fixture.count("SELECT count(*) FROM task_queue").await, 0);
    assert_eq!(fixture.history(id).await.last().map(String::as_str), Some("failed"));
    let failure = "SELECT count(*) FROM jobs WHERE status = 'failed' AND completed_at IS NOT NULL
                   AND retain_until IS NOT NULL AND outcome #>> '{failure,code}' = 'runtime_failed'";
    assert_eq!(fixture.count(failure).await, 1);
    let node = fixture.node().await.expect("is there");
    assert_eq!((node.active_job, status(&node)), (None, Some(JobStatus::Failed)));
    assert_ne!(fixture.revision().await, fixture.canvas.revision);
}

#[tokio::test]
async fn a_node_that_cannot_be_read_is_freed_all_the_same() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    let lease = fixture.claim().await;
    begin(&mut *fixture.conn().await, id, lease).await.expect("is ours");
    sqlx::query("UPDATE nodes SET server = 'null'").execute(&mut *fixture.conn().await).await.expect("updates");
    let mut tx = fixture.database.pool().begin().await.expect("begins");
    let success = fixture.success().await;
    let end = end_of(id, lease, &success, *CONTEXT);
    let unreadable = app::job::end(&mut tx, &[end]).await.expect_err("cannot be read");
    assert!(unreadable.is_unreadable());
    tx.rollback().await.expect("rolls back");

    let mut tx = fixture.database.pool().begin().await.expect("begins");
    assert!(app::job::abandon(&mut tx, id, lease, CONTEXT).await.expect("ends").is_some());
    tx.commit().await.expect("commits");
    assert_eq!(fixture.get(id).await.status, JobStatus::Failed);
    assert_eq!(fixture.count("SELECT count(*) FROM nodes WHERE active_job IS NOT NULL").await, 0);
    assert_eq!(fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'action'").await, 0);
}

#[tokio::test]
async fn whether_a_job_has_ended_can_be_asked_afterwards() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    assert_eq!(jobs::get_ended(&mut *fixture.conn().await, id).await.expect("reads"), None);
    let lease = fixture.claim().await;
    begin(&mut *fixture.conn().await, id, lease).await.expect("is ours");
    let ending = fixture.success().await;
    let CompletionResult::Done(record) = fixture.complete(id, lease, ending).await else { panic!("not completed") };
    assert_eq!(jobs::get_ended(&mut *fixture.conn().await, id).await.expect("reads"), Some(*record));
}
