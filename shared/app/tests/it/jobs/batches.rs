//! Jobs that end in one transaction.

use std::slice;

use app::job::{Completion, CompletionResult, End};
use app::target::{self, Work};
use db::assets;
use db::canvases::{self, Change, NewCanvas};
use db::jobs::{self, NewJob};
use domain::account::Surface;
use domain::canvas::{AccessRole, Actor, CanvasRecord};
use domain::graph::{GraphWrites, Node};
use domain::id::{AssetId, CanvasHandle, CanvasId, JobId, NodeId};
use domain::job::{
    ActionRequest, ActionStep, CancelReason, Failure, FailureCode, Input, JobOperation, JobStatus, Placement,
    ReferenceInput, Request,
};
use serde_json::Map;
use uuid::Uuid;

use crate::fixture::{CONTEXT, Fixture, account, asset, begin, end_of, image_node, stored_blob};

/// A job on a canvas of its own, and what it has made.
#[derive(Clone)]
struct StartedJob {
    canvas: CanvasRecord,
    node: NodeId,
    id: JobId,
    lease: Uuid,
    placement: Placement,
}

impl StartedJob {
    /// Makes a canvas of this name with a target, and a job that has begun.
    async fn new(fixture: &Fixture, name: &str) -> Self {
        let node = image_node();
        let mut conn = fixture.conn().await;
        let handle = CanvasHandle { owner: account("me"), id: CanvasId::from_stored(name.into()) };
        let actor = Actor { owner_uid: account("me"), surface: Surface::Api, label: "t".into() };
        let revision = format!("r-{name}");
        let new = NewCanvas { handle: &handle, canvas_type: None, title: "C", revision: &revision, actor: &actor };
        let canvas = canvases::create(&mut conn, &new).await.expect("creates").expect("is new");
        let id = start(fixture, &canvas, &node.id).await;
        let canvas = bind(fixture, &canvas, node.clone(), id).await;
        let lease = claim(fixture, id).await;
        begin(&mut conn, id, lease).await.expect("is ours");
        let placement = output(fixture, &node.id, name).await;
        Self { canvas, node: node.id, id, lease, placement }
    }

    fn success(&self) -> Completion {
        Completion::Succeeded(vec![self.placement.clone()])
    }

    /// Lets the end cost or do more: an update of the job.
    async fn with(self, fixture: &Fixture, sql: &'static str) -> Self {
        sqlx::query(sql).bind(self.id.0).execute(&mut *fixture.conn().await).await.expect("updates");
        self
    }
}

/// Accepts a resize into a node.
async fn start(fixture: &Fixture, canvas: &CanvasRecord, target: &NodeId) -> JobId {
    let id = JobId::generate();
    let step = ActionStep { slug: "resize".into(), version: "1.0.0".into(), params: Map::new() };
    let inputs = vec![Input { handle: "node:x".into(), asset: asset("input") }];
    let request = Request::Action(ActionRequest::new(vec![step], inputs, target.clone()).expect("has a step"));
    let job = NewJob {
        id,
        account: &fixture.account,
        token_id: fixture.token,
        operation: JobOperation::Action,
        canvas: Some((canvas.key, &canvas.handle)),
        canvas_revision: Some("r1"),
        request: &request,
        estimated_seconds: 1,
        credit_cost: 0,
        recipe_run: None,
        about: None,
        traceparent: None,
    };
    jobs::insert(&mut *fixture.conn().await, &job).await.expect("inserts a job");
    id
}

/// Creates a node that waits for a job. Returns the canvas with it.
async fn bind(fixture: &Fixture, canvas: &CanvasRecord, mut node: Node, id: JobId) -> CanvasRecord {
    target::bind(slice::from_mut(&mut node), Work::Job(id, JobOperation::Action), false).expect("is free");
    let graph = GraphWrites { nodes: vec![&node], ..GraphWrites::default() };
    let revision = format!("{}+", canvas.revision);
    let change = Change { graph, ..Change::new(&revision) };
    canvases::write(&mut *fixture.conn().await, canvas.key, &change).await.expect("writes a node")
}

/// Claims the task of a job.
async fn claim(fixture: &Fixture, id: JobId) -> Uuid {
    sqlx::query_scalar(
        "UPDATE task_queue SET state = 'leased', lease_token = gen_random_uuid(), lease_owner = 'test', claims = 1,
                lease_until = now() + interval '30 s'
         WHERE id = $1 RETURNING lease_token",
    )
    .bind(id.0)
    .fetch_one(&mut *fixture.conn().await)
    .await
    .expect("claims")
}

async fn output(fixture: &Fixture, node: &NodeId, name: &str) -> Placement {
    let Completion::Succeeded(mut made) = fixture.success().await else { unreachable!("is a success") };
    let mut placement = made.remove(0);
    let mut sha256 = [1; 32];
    sha256[..name.len()].copy_from_slice(name.as_bytes());
    let blob_key = Uuid::new_v4();
    stored_blob(&mut *fixture.conn().await, blob_key, &sha256, 12).await;
    placement.provenance.references = vec![ReferenceInput { handle: "asset:me:input".into(), role: None }];
    Placement { node: node.clone(), asset: AssetId::from_stored(name.into()), sha256, blob_key, ..placement }
}

/// Ends the jobs in one transaction. Returns what they come to.
async fn end(fixture: &Fixture, ends: &[(&StartedJob, Completion)]) -> Vec<CompletionResult> {
    let of = |(made, completion): &'_ (&StartedJob, Completion)| (made.id, made.lease, completion.clone());
    let ends: Vec<_> = ends.iter().map(of).collect();
    let ends: Vec<End<'_>> = ends.iter().map(|(id, lease, how)| end_of(*id, *lease, how, *CONTEXT)).collect();
    fixture.end(&ends).await
}

async fn succeed(fixture: &Fixture, made: &[&StartedJob]) -> Vec<CompletionResult> {
    let ends: Vec<_> = made.iter().map(|made| (*made, made.success())).collect();
    end(fixture, &ends).await
}

/// The statuses of the jobs that have ended; `None`: the lease was lost.
fn statuses(completed: &[CompletionResult]) -> Vec<Option<JobStatus>> {
    let status = |completed: &CompletionResult| match completed {
        CompletionResult::Done(record) => Some(record.status),
        CompletionResult::Stale => None,
        other => panic!("not ended: {other:?}"),
    };
    completed.iter().map(status).collect()
}

const SUCCEEDED: Option<JobStatus> = Some(JobStatus::Succeeded);
const FAILED: Option<JobStatus> = Some(JobStatus::Failed);

/// The tasks of jobs. An image that was stored has one of its own, for its rendition.
async fn tasks(fixture: &Fixture) -> i64 {
    fixture.count("SELECT count(*) FROM task_queue WHERE kind = 'action'").await
}

#[tokio::test]
async fn each_of_several_gets_its_own_output_revision_and_review() {
    let fixture = Fixture::new().await;
    let (one, two, three) = (
        StartedJob::new(&fixture, "a").await,
        StartedJob::new(&fixture, "b").await,
        StartedJob::new(&fixture, "d").await,
    );
    let all = [&three, &one, &two];
    assert_eq!(statuses(&succeed(&fixture, &all).await), [SUCCEEDED; 3]);
    let mut conn = fixture.conn().await;
    for made in all {
        let record = fixture.get(made.id).await;
        let canvas = canvases::find(&mut conn, &fixture.account, &made.canvas.handle).await;
        let (canvas, _) = canvas.expect("reads").expect("is there");
        assert_eq!(
            (Some(&canvas.revision), canvas.sequence),
            (record.canvas_revision.as_ref(), made.canvas.sequence + 1)
        );
        let node = canvases::node(&mut conn, canvas.key, &made.node).await.expect("reads").expect("is there");
        assert_eq!((node.asset.as_ref(), node.active_job), (Some(&record.outcome.images[0].asset), None));
        let changed = "SELECT count(*) FROM canvas_changes WHERE canvas_key = $1 AND changed_nodes = ARRAY[$2]
                       AND activity ->> 'type' = 'job.finished' AND revision = $3";
        let changed: i64 = sqlx::query_scalar(changed)
            .bind(canvas.key)
            .bind(made.node.as_str())
            .bind(canvas.revision)
            .fetch_one(&mut *conn)
            .await
            .expect("counts");
        assert_eq!(changed, 1);
        let stored = assets::get(&mut conn, &record.outcome.images[0].asset).await.expect("reads").expect("is stored");
        assert_eq!((stored.blob_key, stored.canvas_key), (made.placement.blob_key, Some(canvas.key)));
        let review = record.outcome.completion_review.expect("has a review");
        assert_eq!((review.outputs.count, review.outputs.durable_count), (1, 1));
    }
    assert_eq!(tasks(&fixture).await, 0);
}

#[tokio::test]
async fn jobs_on_one_canvas_end_one_after_the_other() {
    let fixture = Fixture::new().await;
    let one = StartedJob::new(&fixture, "a").await;
    let other = image_node();
    let id = start(&fixture, &one.canvas, &other.id).await;
    let canvas = bind(&fixture, &one.canvas, other.clone(), id).await;
    let lease = claim(&fixture, id).await;
    begin(&mut *fixture.conn().await, id, lease).await.expect("is ours");
    let placement = output(&fixture, &other.id, "b").await;
    let two = StartedJob { canvas, node: other.id, id, lease, placement };
    assert_eq!(statuses(&succeed(&fixture, &[&two, &one]).await), [SUCCEEDED; 2]);
    let (first, second) = (fixture.get(two.id).await, fixture.get(one.id).await);
    assert_ne!(first.canvas_revision, second.canvas_revision);
    let canvas = canvases::find(&mut *fixture.conn().await, &fixture.account, &two.canvas.handle).await;
    let (canvas, _) = canvas.expect("reads").expect("is there");
    assert_eq!((Some(canvas.revision), canvas.sequence), (second.canvas_revision.clone(), two.canvas.sequence + 2));
    let reviews = [first, second].map(|record| record.outcome.completion_review.expect("has a review").outputs);
    assert_eq!(reviews.map(|outputs| outputs.durable_count), [1, 2], "each is of its own revision");
}

#[tokio::test]
async fn a_lost_lease_is_stale_and_does_not_keep_the_others() {
    let fixture = Fixture::new().await;
    let (mut lost, held) = (StartedJob::new(&fixture, "a").await, StartedJob::new(&fixture, "b").await);
    lost.lease = Uuid::new_v4();
    // Also when the same job is there under its lease.
    let outrun = StartedJob { lease: Uuid::new_v4(), ..held.clone() };
    assert_eq!(statuses(&succeed(&fixture, &[&lost, &outrun, &held]).await), [None, None, SUCCEEDED]);
    assert_eq!(fixture.history(lost.id).await, ["queued", "running"]);
    assert_eq!(fixture.history(held.id).await, ["queued", "running", "succeeded"]);
    assert_eq!(tasks(&fixture).await, 1);
}

#[tokio::test]
async fn a_locked_canvas_is_waited_for() {
    let fixture = Fixture::new().await;
    let (one, two) = (StartedJob::new(&fixture, "a").await, StartedJob::new(&fixture, "b").await);
    let mut other = fixture.database.pool().begin().await.expect("begins");
    canvases::lock(&mut other, &fixture.account, &one.canvas.handle).await.expect("locks").expect("is there");
    let released = async {
        fixture.waits_for_a_lock("the ends").await;
        other.rollback().await.expect("ends");
    };
    let all = [&one, &two];
    let (completed, ()) = tokio::join!(succeed(&fixture, &all), released);
    assert_eq!(statuses(&completed), [SUCCEEDED; 2]);
}

#[tokio::test]
async fn jobs_end_together_in_whatever_way_they_end() {
    let fixture = Fixture::new().await;
    let paid =
        StartedJob::new(&fixture, "paid").await.with(&fixture, "UPDATE jobs SET credit_cost = 3 WHERE id = $1").await;
    let removing = StartedJob::new(&fixture, "removing").await;
    let removing = removing
        .with(
            &fixture,
            "UPDATE jobs SET remove_targets = true, canvas_sequence = (
                 SELECT made FROM nodes WHERE active_job = $1) WHERE id = $1",
        )
        .await;
    let gone = StartedJob::new(&fixture, "gone").await;
    let graph = GraphWrites { deleted_nodes: vec![&gone.node], ..GraphWrites::default() };
    let change = Change { graph, ..Change::new("deleted") };
    let mut conn = fixture.conn().await;
    canvases::write(&mut conn, gone.canvas.key, &change).await.expect("deletes");
    let viewed = StartedJob::new(&fixture, "viewed").await;
    sqlx::query("UPDATE canvases SET owner_uid = 'you' WHERE key = $1")
        .bind(viewed.canvas.key)
        .execute(&mut *conn)
        .await
        .expect("gives away");
    let canvas = CanvasHandle { owner: account("you"), id: CanvasId::from_stored("viewed".into()) };
    assert!(canvases::share(&mut conn, &canvas, &fixture.account, Some(AccessRole::Viewer)).await.expect("shares"));
    let canceled = StartedJob::new(&fixture, "canceled").await;
    let ended = StartedJob::new(&fixture, "ended").await;
    let ended = ended
        .with(&fixture, "UPDATE jobs SET status = 'canceled', completed_at = now(), retain_until = now() - interval '1 s' WHERE id = $1")
        .await;
    let plain = StartedJob::new(&fixture, "plain").await;
    let credit: i64 = fixture.count("SELECT credit_balance FROM accounts WHERE uid = 'me'").await;

    let failed = || Completion::Failed(Failure::new(FailureCode::RuntimeFailed, "it failed"), Vec::new());
    let completed = end(
        &fixture,
        &[
            (&paid, failed()),
            (&removing, failed()),
            (&gone, gone.success()),
            (&viewed, viewed.success()),
            (&canceled, Completion::Canceled(CancelReason::UserRequested)),
            (&ended, ended.success()),
            (&plain, plain.success()),
        ],
    )
    .await;
    let expected = [FAILED, FAILED, SUCCEEDED, FAILED, Some(JobStatus::Canceled), None, SUCCEEDED];
    assert_eq!(statuses(&completed), expected);
    assert_eq!(tasks(&fixture).await, 1, "the task of the job that had ended stays");
    assert_eq!(fixture.count("SELECT credit_balance FROM accounts WHERE uid = 'me'").await, credit + 3);
    assert_eq!(fixture.count("SELECT count(*) FROM ledger WHERE reason = 'return'").await, 1);
    assert!(canvases::node(&mut conn, removing.canvas.key, &removing.node).await.expect("reads").is_none(), "removed");
    assert_eq!(fixture.get(gone.id).await.outcome.images[0].node, gone.node);
    let failure = fixture.get(viewed.id).await.outcome.failure.expect("failed");
    assert_eq!(failure.code, FailureCode::OutputFinalizationFailed);
    assert_eq!(fixture.get(canceled.id).await.cancel_reason, Some(CancelReason::UserRequested));
    assert_eq!(fixture.count("SELECT count(*) FROM assets WHERE canvas_key IS NOT NULL").await, 2);
    assert_eq!(fixture.count("SELECT count(*) FROM nodes WHERE active_job IS NOT NULL").await, 1);
}

#[tokio::test]
async fn a_full_storage_takes_the_results_of_accepted_work() {
    let fixture = Fixture::new().await;
    let (one, two) = (StartedJob::new(&fixture, "a").await, StartedJob::new(&fixture, "b").await);
    sqlx::query("UPDATE accounts SET storage_max = 1").execute(&mut *fixture.conn().await).await.expect("caps");
    assert_eq!(statuses(&succeed(&fixture, &[&one, &two]).await), [SUCCEEDED, SUCCEEDED]);
}

#[tokio::test]
async fn a_blob_that_was_removed_leaves_all_of_them_as_they_are() {
    let fixture = Fixture::new().await;
    let (one, two) = (StartedJob::new(&fixture, "a").await, StartedJob::new(&fixture, "b").await);
    sqlx::query("UPDATE blobs SET state = 'removing' WHERE key = $1")
        .bind(one.placement.blob_key)
        .execute(&mut *fixture.conn().await)
        .await
        .expect("removes");
    assert_eq!(succeed(&fixture, &[&one, &two]).await, [CompletionResult::BlobGone, CompletionResult::BlobGone]);
    assert_eq!(fixture.history(two.id).await, ["queued", "running"]);
    assert_eq!(tasks(&fixture).await, 2);
    assert_eq!(statuses(&succeed(&fixture, &[&two]).await), [SUCCEEDED]);
}
