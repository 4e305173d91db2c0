//! Reviews of large canvases, made before the end of a job.

use std::time::Duration;

use app::job::{Cancellation, Completion, CompletionContext, CompletionResult, PreparedReview, Reviews, cancel};
use db::canvases::{self, Change, GraphWrites};
use db::{PgConnection, jobs};
use domain::canvas::Changes;
use domain::graph::Node;
use domain::id::JobId;
use domain::job::{CancelReason, Failure, FailureCode, Record};
use domain::review::{CompletionReview, ReviewStatus};
use uuid::Uuid;

use crate::fixture::{CONTEXT, Fixture, account, image_node};

/// A canvas that counts as large, with a job that has begun.
struct Large {
    fixture: Fixture,
    id: JobId,
    lease: Uuid,
    reviews: Reviews,
}

impl Large {
    async fn new() -> Self {
        let fixture = Fixture::new().await;
        run(&fixture, "UPDATE canvases SET node_count = 600").await;
        let id = fixture.start().await;
        let lease = fixture.claim().await;
        jobs::begin(&mut *fixture.conn().await, id, lease).await.expect("begins").expect("is ours");
        Self { fixture, id, lease, reviews: Reviews::default() }
    }

    async fn prepare(&self, completion: &Completion) -> Option<PreparedReview> {
        let Fixture { database, account, .. } = &self.fixture;
        self.reviews.prepare(database.pool(), self.id, account, completion).await
    }

    /// An attempt to end the job, rolled back.
    async fn attempt(&self, completion: &Completion, review: Option<&PreparedReview>) -> CompletionResult {
        let mut tx = self.fixture.database.pool().begin().await.expect("begins");
        self.end(&mut tx, completion, review).await
    }

    async fn end(
        &self,
        conn: &mut PgConnection,
        completion: &Completion,
        review: Option<&PreparedReview>,
    ) -> CompletionResult {
        let context = CompletionContext { review, ..*CONTEXT };
        app::job::complete(conn, self.id, self.lease, completion.clone(), &context).await.expect("completes")
    }

    /// Puts a node over the target, with a new revision or without.
    async fn cover(&self, revision: Option<&str>) {
        let node = Node { title: "over it".into(), ..image_node() };
        let writes = GraphWrites { nodes: vec![&node], ..GraphWrites::default() };
        let mut conn = self.fixture.conn().await;
        let key = self.fixture.canvas.key;
        canvases::write_graph(&mut conn, key, &writes).await.expect("writes a node");
        if let Some(revision) = revision {
            let changes = Changes { changed_node_ids: vec![node.id.clone()], ..Changes::default() };
            canvases::commit_change(&mut conn, key, &Change::of(revision, &changes)).await.expect("records the change");
        }
    }
}

async fn run(fixture: &Fixture, sql: &'static str) {
    sqlx::query(sql).execute(&mut *fixture.conn().await).await.expect("runs");
}

fn record(result: CompletionResult) -> Record {
    match result {
        CompletionResult::Done(record) => *record,
        other => panic!("not completed: {other:?}"),
    }
}

fn review(result: CompletionResult) -> CompletionReview {
    record(result).outcome.completion_review.expect("has a review")
}

fn failed() -> Failure {
    Failure::new(FailureCode::RuntimeFailed, "it failed")
}

#[tokio::test]
async fn a_review_made_ahead_is_that_of_the_end() {
    for deletes_target in [false, true] {
        let large = Large::new().await;
        let success = large.fixture.success().await;
        let Completion::Succeeded(made) = success.clone() else { unreachable!("is a success") };
        if deletes_target {
            large.fixture.delete_node().await;
        }
        let canceled = Completion::Canceled(CancelReason::UserRequested);
        let partial = Completion::Failed(failed(), made);
        for ending in [success, partial, Completion::Failed(failed(), Vec::new()), canceled] {
            let expected = review(large.attempt(&ending, None).await);
            // The second is made from the kept graph.
            for _ in 0..2 {
                let prepared = large.prepare(&ending).await.expect("is large");
                assert_eq!(review(large.attempt(&ending, Some(&prepared)).await), expected, "{ending:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_end_reads_no_graph_for_a_review_made_ahead() {
    let large = Large::new().await;
    let success = large.fixture.success().await;
    let prepared = large.prepare(&success).await.expect("is large");
    // Only a read of the graph would notice.
    large.cover(None).await;
    assert_eq!(review(large.attempt(&success, Some(&prepared)).await).status, ReviewStatus::Ready);
    assert_eq!(review(large.attempt(&success, None).await).status, ReviewStatus::NeedsReview);
    // It is that of one way to end, and no other.
    let failure = Completion::Failed(failed(), Vec::new());
    let outputs = review(large.attempt(&failure, Some(&prepared)).await).outputs;
    assert_eq!((outputs.durable_count, outputs.failed_count), (0, 1));
}

#[tokio::test]
async fn a_review_of_an_earlier_revision_is_made_again() {
    let large = Large::new().await;
    let success = large.fixture.success().await;
    let earlier = large.prepare(&success).await.expect("is large");
    large.cover(Some("later")).await;
    let mut tx = large.fixture.database.pool().begin().await.expect("begins");
    assert_eq!(large.end(&mut tx, &success, Some(&earlier)).await, CompletionResult::ReviewOutdated);
    tx.commit().await.expect("commits");
    assert_eq!(large.fixture.count("SELECT count(*) FROM task_queue WHERE state = 'leased'").await, 1);
    // The next waits until this one is done with.
    let next = large.prepare(&success);
    assert!(tokio::time::timeout(Duration::from_millis(500), next).await.is_err());
    drop(earlier);
    let later = large.prepare(&success).await.expect("is large");
    assert_eq!(review(large.attempt(&success, Some(&later)).await).status, ReviewStatus::NeedsReview);
}

#[tokio::test]
async fn only_jobs_of_the_account_on_large_canvases_are_reviewed_ahead() {
    let large = Large::new().await;
    let success = large.fixture.success().await;
    let pool = large.fixture.database.pool();
    assert!(large.reviews.prepare(pool, large.id, &account("you"), &success).await.is_none());
    for (size, is_large) in [
        ("UPDATE canvases SET node_count = 500, graph_bytes = 1048576", false),
        ("UPDATE canvases SET node_count = 501", true),
        ("UPDATE canvases SET node_count = 500, graph_bytes = 1048577", true),
    ] {
        run(&large.fixture, size).await;
        assert_eq!(large.prepare(&success).await.is_some(), is_large, "{size}");
    }
}

#[tokio::test]
async fn a_job_that_nobody_works_on_is_canceled_with_a_review_made_ahead() {
    let fixture = Fixture::new().await;
    run(&fixture, "UPDATE canvases SET node_count = 600").await;
    let (id, reviews) = (fixture.start().await, Reviews::default());
    let canceled = Completion::Canceled(CancelReason::UserRequested);
    let prepared = reviews.prepare(fixture.database.pool(), id, &fixture.account, &canceled).await;
    let attempt = async |review: Option<&PreparedReview>| {
        let mut tx = fixture.database.pool().begin().await.expect("begins");
        let context = CompletionContext { review, ..*CONTEXT };
        match cancel(&mut tx, id, &fixture.account, &context).await.expect("cancels") {
            Some(Cancellation::Canceled(record)) => record.outcome.completion_review.expect("has a review"),
            other => panic!("not canceled: {other:?}"),
        }
    };
    let expected = attempt(None).await;
    assert_eq!(attempt(Some(prepared.as_ref().expect("is large"))).await, expected);
    // One of an earlier revision is not used.
    run(&fixture, "UPDATE nodes SET title = 'later'").await;
    run(&fixture, "UPDATE canvases SET revision = 'later'").await;
    assert_eq!(attempt(prepared.as_ref()).await, attempt(None).await);
}
