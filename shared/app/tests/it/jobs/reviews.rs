//! Reviews of large canvases, made before the end of a job.

use std::sync::Arc;
use std::time::Duration;

use app::job::{Cancellation, Completion, CompletionContext, CompletionResult, End, PreparedReview, Reviews, cancel};
use db::PgConnection;
use db::canvases::{self, Change};
use domain::graph::Node;
use domain::id::{JobId, NodeId};
use domain::job::{CancelReason, Failure, FailureCode, ReferenceInput};
use domain::review::{CompletionReview, ReviewStatus};
use service::shares::{Key, Shares};
use uuid::Uuid;

use crate::fixture::{CONTEXT, Fixture, account, begin, end_of, image_node, put};

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
        // Only a graph with refs is kept.
        fixture.give_refs().await;
        let id = fixture.start().await;
        let lease = fixture.claim().await;
        begin(&mut *fixture.conn().await, id, lease).await.expect("is ours");
        Self { fixture, id, lease, reviews: Reviews::default() }
    }

    async fn prepare(&self, completion: &Completion) -> Option<PreparedReview> {
        let Fixture { database, account, .. } = &self.fixture;
        self.reviews.prepare(database.pool(), self.id, account, Some(self.lease), completion).await
    }

    /// The review that an attempt to end the job leaves, rolled back.
    async fn attempt(&self, completion: &Completion, review: Option<&PreparedReview>) -> CompletionReview {
        let mut tx = self.fixture.database.pool().begin().await.expect("begins");
        if review.is_some() {
            cover(&mut tx, &self.fixture).await;
        }
        match self.end(&mut tx, completion, review).await {
            CompletionResult::Done(record) => record.outcome.completion_review.expect("has a review"),
            other => panic!("not completed: {other:?}"),
        }
    }

    async fn end(
        &self,
        conn: &mut PgConnection,
        completion: &Completion,
        review: Option<&PreparedReview>,
    ) -> CompletionResult {
        let context = CompletionContext { review, ..*CONTEXT };
        let end = end_of(self.id, self.lease, completion, context);
        app::job::end(conn, &[end]).await.expect("ends").remove(0)
    }
}

/// Puts a node over the target, without a revision. Only a read of the graph notices.
async fn cover(conn: &mut PgConnection, fixture: &Fixture) -> NodeId {
    let node = Node { title: "over it".into(), ..image_node() };
    put(conn, fixture.canvas.key, [&node]).await;
    node.id
}

/// [`cover`] with a revision.
async fn change(fixture: &Fixture) {
    let mut conn = fixture.conn().await;
    let changed = [cover(&mut conn, fixture).await];
    let change = Change { changed_otherwise: &changed, ..Change::new("later") };
    canvases::write(&mut conn, fixture.canvas.key, &change).await.expect("records the change");
}

async fn run(fixture: &Fixture, sql: &'static str) {
    sqlx::query(sql).execute(&mut *fixture.conn().await).await.expect("runs");
}

fn failed() -> Failure {
    Failure::new(FailureCode::RuntimeFailed, "it failed")
}

#[tokio::test]
async fn the_end_uses_the_review_made_ahead_and_reads_no_graph() {
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
            let expected = large.attempt(&ending, None).await;
            // The second is made from the kept graph.
            for _ in 0..2 {
                let prepared = large.prepare(&ending).await.expect("is large");
                assert_eq!(large.attempt(&ending, Some(&prepared)).await, expected, "{ending:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_review_made_ahead_is_that_of_one_way_to_end() {
    let large = Large::new().await;
    let prepared = large.prepare(&large.fixture.success().await).await.expect("is large");
    let failure = Completion::Failed(failed(), Vec::new());
    let outputs = large.attempt(&failure, Some(&prepared)).await.outputs;
    assert_eq!((outputs.durable_count, outputs.failed_count), (0, 1));
}

#[tokio::test]
async fn a_review_made_ahead_knows_whether_what_the_output_was_made_from_is_stored() {
    let large = Large::new().await;
    let Completion::Succeeded(mut placements) = large.fixture.success().await else { unreachable!("is a success") };
    placements[0].provenance.references = vec![ReferenceInput { handle: "node:gone".into(), role: None }];
    let success = Completion::Succeeded(placements);
    for is_stored in [false, true] {
        if is_stored {
            let input = "INSERT INTO assets (owner_uid, id, name, mime_type, width, height, bytes, blob_key)
                         SELECT 'me', 'input', 'a.png', 'image/png', 3, 2, 12, key FROM blobs LIMIT 1";
            run(&large.fixture, input).await;
        }
        let expected = large.attempt(&success, None).await;
        let prepared = large.prepare(&success).await.expect("is large");
        assert_eq!(large.attempt(&success, Some(&prepared)).await, expected);
        assert_eq!(expected.reference_lineage.finding_codes.is_empty(), is_stored, "{expected:?}");
    }
}

#[tokio::test]
async fn a_review_of_an_earlier_revision_is_made_again() {
    let large = Large::new().await;
    let success = large.fixture.success().await;
    let earlier = large.prepare(&success).await.expect("is large");
    change(&large.fixture).await;
    let mut tx = large.fixture.database.pool().begin().await.expect("begins");
    assert_eq!(large.end(&mut tx, &success, Some(&earlier)).await, CompletionResult::ReviewNeeded);
    tx.commit().await.expect("commits");
    assert_eq!(large.fixture.count("SELECT count(*) FROM task_queue WHERE state = 'leased'").await, 1);
    // The next waits until this one is done with.
    let next = large.prepare(&success);
    assert!(tokio::time::timeout(Duration::from_millis(500), next).await.is_err());
    drop(earlier);
    let later = large.prepare(&success).await.expect("is large");
    // The agent's node that covers the target shows nothing.
    assert_eq!(large.attempt(&success, Some(&later)).await.status, ReviewStatus::Blocked);
}

#[tokio::test]
async fn a_large_canvas_without_a_review_is_left_unless_it_is_to_be_reviewed_under_its_lock() {
    let large = Large::new().await;
    let success = large.fixture.success().await;
    let end = End { reviews_large: false, ..end_of(large.id, large.lease, &success, *CONTEXT) };
    assert_eq!(large.fixture.end(&[end]).await, [CompletionResult::ReviewNeeded]);
    assert_eq!(large.fixture.count("SELECT count(*) FROM task_queue WHERE state = 'leased'").await, 1);
    for (size, is_left) in [
        ("UPDATE canvases SET node_count = 501, graph_bytes = 1048576", true),
        ("UPDATE canvases SET node_count = 500, graph_bytes = 1048577", true),
        ("UPDATE canvases SET node_count = 500, graph_bytes = 1048576", false),
    ] {
        run(&large.fixture, size).await;
        let completed = large.fixture.end(&[end]).await;
        assert_eq!(completed == [CompletionResult::ReviewNeeded], is_left, "{size}: {completed:?}");
    }
}

#[tokio::test]
async fn a_canvas_that_is_too_large_to_be_kept_is_reviewed_ahead_all_the_same() {
    let large = Large::new().await;
    run(&large.fixture, "UPDATE canvases SET graph_bytes = 60000000").await;
    let success = large.fixture.success().await;
    let expected = large.attempt(&success, None).await;
    for _ in 0..2 {
        let prepared = large.prepare(&success).await.expect("is large");
        assert_eq!(large.attempt(&success, Some(&prepared)).await, expected);
    }
}

#[tokio::test]
async fn a_review_reserves_no_more_than_its_share_of_a_budget_that_others_use() {
    let memory = Shares::new("test", 256 << 20, 176 << 20);
    let _held_by_others = memory.hold(&Key::account("others"), 64 << 20).await;
    let reviews = Reviews::new(Arc::default(), memory);
    let large = Large { reviews, ..Large::new().await };
    run(&large.fixture, "UPDATE canvases SET graph_bytes = 60000000").await;
    assert!(large.prepare(&large.fixture.success().await).await.is_some(), "it waits for no memory");
}

#[tokio::test]
async fn only_jobs_of_the_account_and_lease_on_large_canvases_are_reviewed_ahead() {
    let large = Large::new().await;
    let success = large.fixture.success().await;
    let Fixture { database, account: me, .. } = &large.fixture;
    for (caller, lease, is_theirs) in [
        (me, Some(large.lease), true),
        (&account("you"), Some(large.lease), false),
        (me, Some(Uuid::new_v4()), false),
        (me, None, false),
    ] {
        let prepared = large.reviews.prepare(database.pool(), large.id, caller, lease, &success).await;
        assert_eq!(prepared.is_some(), is_theirs, "{caller} {lease:?}");
    }
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
    let prepare = async || reviews.prepare(fixture.database.pool(), id, &fixture.account, None, &canceled).await;
    let attempt = async |review: Option<&PreparedReview>| {
        let mut tx = fixture.database.pool().begin().await.expect("begins");
        if review.is_some() {
            cover(&mut tx, &fixture).await;
        }
        let context = CompletionContext { review, ..*CONTEXT };
        match cancel(&mut tx, id, &fixture.account, &context).await.expect("cancels") {
            Some(Cancellation::Canceled(record)) => record.outcome.completion_review.expect("has a review"),
            other => panic!("not canceled: {other:?}"),
        }
    };
    let expected = attempt(None).await;
    let prepared = prepare().await.expect("is large");
    assert_eq!(attempt(Some(&prepared)).await, expected);
    // One of an earlier revision is not used.
    change(&fixture).await;
    assert_ne!(attempt(Some(&prepared)).await, expected);
}
