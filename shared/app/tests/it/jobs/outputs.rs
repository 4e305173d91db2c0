//! Outputs of image jobs, and the final charge of jobs.

use std::time::Duration;

use domain::id::{AssetId, JobId, NodeId};
use domain::job::{CancelReason, ChosenModel, Failure, FailureCode, ImageRequest, JobOperation, JobStatus, Request};
use domain::message::{Queue, TaskKind};
use domain::metadata::{Provenance, ProvenanceKind};
use domain::model::ProviderKind;
use serde_json::json;
use uuid::Uuid;

use crate::fixture::{CONTEXT, Fixture, begin, image_node, put, stored_blob};
use app::job::{Cancellation, Completion, CompletionResult};
use app::target::{self, Work};
use db::canvases;
use db::deliveries::{self, NewDelivery};
use db::jobs::outputs::{self, LeasedOutput, OutputState};
use db::jobs::{self, NewJob};
use db::ledger;
use db::tasks::{self, ClaimRequest, NewTask};
use db::workers::Worker;
use domain::job::Placement;

const PATIENCE: Duration = Duration::from_secs(600);
const PRICE: i64 = 3;
const GRANT: i64 = 100;

/// An image job of two outputs under a lease, with its credit reserved.
struct Taken {
    fixture: Fixture,
    id: JobId,
    lease: Uuid,
    targets: Vec<NodeId>,
}

fn failure(code: FailureCode) -> Failure {
    Failure::new(code, "no")
}

impl Taken {
    async fn new() -> Self {
        let (fixture, id, targets) = accepted().await;
        let lease = claim(&fixture).await;
        let mut conn = fixture.conn().await;
        begin(&mut conn, id, lease).await.expect("is ours");
        let (opened, fresh) = outputs::open(&mut conn, id, lease, 2).await.expect("opens").expect("is ours");
        assert!(
            fresh
                && opened
                    .iter()
                    .map(|it| (it.position, it.state))
                    .eq([(0, OutputState::Ready), (1, OutputState::Ready)])
        );
        drop(conn);
        Self { fixture, id, lease, targets }
    }

    fn held(&self, position: i32) -> LeasedOutput {
        LeasedOutput { job: self.id, lease_token: self.lease, position }
    }

    async fn submit(&self, position: i32) {
        let begun = outputs::begin_submit(&mut *self.fixture.conn().await, self.held(position), PATIENCE).await;
        assert!(begun.expect("records"));
    }

    /// Submits an output that a provider accepts.
    async fn accept(&self, position: i32) {
        self.submit(position).await;
        let run = json!({"id": "r", "poll": "https://p.example/r"});
        let mut conn = self.fixture.conn().await;
        let submitted = outputs::submitted(&mut conn, self.held(position), &run, Duration::from_secs(1)).await;
        assert!(submitted.expect("records"));
    }

    async fn fail(&self, position: i32, orphan: bool) {
        let failure = failure(FailureCode::ProviderTimeout);
        let mut conn = self.fixture.conn().await;
        assert!(outputs::failed(&mut conn, self.held(position), &failure, orphan).await.expect("records"));
    }

    /// Stores an output that a provider accepted.
    async fn store(&self, position: i32) -> Placement {
        let placement = self.placement(position).await;
        let stored = outputs::stored(&mut *self.fixture.conn().await, self.held(position), &placement).await;
        assert!(stored.expect("records"));
        placement
    }

    async fn placement(&self, position: i32) -> Placement {
        let index = usize::try_from(position).expect("small");
        let (blob_key, sha256) = (Uuid::new_v4(), [u8::try_from(position).expect("small"); 32]);
        stored_blob(&mut *self.fixture.conn().await, blob_key, &sha256, 12).await;
        Placement {
            node: self.targets[index].clone(),
            asset: AssetId::from_stored(format!("made-{position}")),
            name: format!("generate-{}.png", position + 1),
            mime_type: "image/png".into(),
            width: 3,
            height: 2,
            bytes: 12,
            sha256,
            blob_key,
            metadata_removed: Vec::new(),
            masked: None,
            preview: None,
            video: None,
            origin: None,
            provenance: Provenance::new(ProvenanceKind::Generated),
        }
    }

    async fn list(&self) -> Vec<outputs::JobOutput> {
        outputs::list(&mut *self.fixture.conn().await, self.id).await.expect("lists")
    }

    async fn end(&self, ending: Completion) -> domain::job::Record {
        let CompletionResult::Done(record) = self.fixture.complete(self.id, self.lease, ending).await else {
            panic!("not completed")
        };
        *record
    }

    /// The job's charge, after checking that ledger and balance agree.
    async fn charge(&self) -> i64 {
        charge(&self.fixture, self.id).await
    }
}

/// Starts a paid image job into two new nodes.
async fn accepted() -> (Fixture, JobId, Vec<NodeId>) {
    let fixture = Fixture::new().await;
    let mut conn = fixture.conn().await;
    ledger::grant(&mut conn, &fixture.account, GRANT).await.expect("grants");
    let mut nodes = [image_node(), image_node()];
    let targets: Vec<NodeId> = nodes.iter().map(|node| node.id.clone()).collect();
    let id = JobId::generate();
    let request = Request::Image(ImageRequest {
        model: ChosenModel {
            key: "key".into(),
            id: "sketch".into(),
            name: "Sketch".into(),
            provider: ProviderKind::Managed,
            connection: None,
            credit_cost: PRICE,
        },
        prompt: "a kite".into(),
        caption: None,
        size: None,
        quality: None,
        references: Vec::new(),
        mask: None,
        elements: Vec::new(),
        targets: targets.clone(),
    });
    let job = NewJob {
        id,
        account: &fixture.account,
        token_id: fixture.token,
        operation: JobOperation::Generate,
        canvas: Some((fixture.canvas.key, &fixture.canvas.handle)),
        canvas_revision: Some("r1"),
        request: &request,
        estimated_seconds: 1,
        credit_cost: 2 * PRICE,
        recipe_run: None,
        about: None,
        traceparent: None,
    };
    jobs::insert(&mut conn, &job).await.expect("inserts a job");
    assert!(target::bind(&mut nodes, Work::Job(id, JobOperation::Generate), false).is_some());
    put(&mut conn, fixture.canvas.key, &nodes).await;
    // As a start reserves it.
    for statement in [
        "UPDATE accounts SET credit_balance = credit_balance - $3 WHERE uid = $1 AND $2::uuid IS NOT NULL",
        "INSERT INTO ledger (account_uid, amount, reason, job_id) VALUES ($1, -$3, 'reserve', $2)",
    ] {
        let reserve = sqlx::query(statement).bind(fixture.account.as_str()).bind(id.0).bind(2 * PRICE);
        reserve.execute(&mut *conn).await.expect("reserves");
    }
    drop(conn);
    (fixture, id, targets)
}

async fn claim(fixture: &Fixture) -> Uuid {
    let (queue, lease) = (Queue::Generation, Duration::from_secs(30));
    let wanted = ClaimRequest { queue, limit: 1, quarantined: false, caps: None, lease, owner: "test" };
    tasks::claim(&mut *fixture.conn().await, &wanted).await.expect("claims").first().expect("a task").lease_token
}

/// The charge of a job, after checking that the ledger's sum is the balance and that the record shows the charge.
async fn charge(fixture: &Fixture, id: JobId) -> i64 {
    let (balance, sum): (i64, i64) = sqlx::query_as(
        "SELECT credit_balance, (SELECT sum(amount)::bigint FROM ledger WHERE account_uid = uid) FROM accounts
         WHERE uid = $1",
    )
    .bind(fixture.account.as_str())
    .fetch_one(&mut *fixture.conn().await)
    .await
    .expect("reads the books");
    let charge = fixture.get(id).await.credit_cost;
    assert_eq!((balance, sum), (GRANT - charge, GRANT - charge));
    let returns = fixture.count("SELECT count(*) FROM ledger WHERE reason = 'return'").await;
    assert_eq!(returns, i64::from(charge < 2 * PRICE), "one row, or none when nothing is returned");
    charge
}

async fn orphans(fixture: &Fixture) -> i64 {
    fixture.count("SELECT coalesce(sum(possible_orphans), 0)::bigint FROM ledger").await
}

#[tokio::test]
async fn a_submit_is_on_record_before_it_is_made_and_a_run_before_it_is_polled() {
    let taken = Taken::new().await;
    taken.submit(0).await;
    let seen = taken.list().await;
    assert_eq!((seen[0].state, seen[0].attempts), (OutputState::Submitting, 1));
    assert!(seen[0].given_up_in.is_some_and(|left| left > PATIENCE - Duration::from_secs(60) && left <= PATIENCE));
    assert_eq!((seen[1].state, seen[1].given_up_in), (OutputState::Ready, None));
    let run = json!({"id": "r", "poll": "https://p.example/r"});
    let mut conn = taken.fixture.conn().await;
    assert!(outputs::submitted(&mut conn, taken.held(0), &run, PATIENCE).await.expect("records"));
    assert!(!outputs::begin_submit(&mut conn, taken.held(0), PATIENCE).await.expect("refuses"), "a second submit");
    let seen = &taken.list().await[0];
    assert_eq!((seen.state, seen.run.as_ref()), (OutputState::Submitted, Some(&run)));
    assert!(seen.due_in > PATIENCE / 2);
}

#[tokio::test]
async fn a_worker_without_the_lease_changes_no_output() {
    let taken = Taken::new().await;
    taken.submit(0).await;
    let mut conn = taken.fixture.conn().await;
    let stale = LeasedOutput { lease_token: Uuid::new_v4(), ..taken.held(0) };
    let (met, run) = (failure(FailureCode::ProviderTimeout), json!({}));
    let placement = taken.placement(0).await;
    let before = taken.list().await;
    assert!(outputs::open(&mut conn, JobId::generate(), stale.lease_token, 2).await.expect("answers").is_none());
    let refused = [
        outputs::begin_submit(&mut conn, stale, PATIENCE).await,
        outputs::put_back(&mut conn, stale, &met, PATIENCE).await,
        outputs::note_unknown(&mut conn, stale, &met, PATIENCE).await,
        outputs::note_accepted(&mut conn, stale).await,
        outputs::submitted(&mut conn, stale, &run, PATIENCE).await,
        outputs::put_off(&mut conn, stale, PATIENCE, true).await,
        outputs::stored(&mut conn, stale, &placement).await,
        outputs::failed(&mut conn, stale, &met, true).await,
    ];
    assert!(refused.iter().all(|done| matches!(done, Ok(false))), "{refused:?}");
    let unchanged = taken.list().await;
    assert_eq!((unchanged[0].state, unchanged[0].attempts), (before[0].state, before[0].attempts));
}

#[tokio::test]
async fn what_has_ended_stays_so() {
    let taken = Taken::new().await;
    taken.accept(0).await;
    taken.fail(0, false).await;
    let mut conn = taken.fixture.conn().await;
    let placement = taken.placement(0).await;
    assert!(!outputs::stored(&mut conn, taken.held(0), &placement).await.expect("refuses"));
    assert!(!outputs::begin_submit(&mut conn, taken.held(0), PATIENCE).await.expect("refuses"));
    assert!(!outputs::put_off(&mut conn, taken.held(0), PATIENCE, false).await.expect("refuses"));
    assert_eq!(taken.list().await[0].state, OutputState::Failed);
}

#[tokio::test]
async fn an_attempt_that_fails_before_its_submit_is_counted() {
    let taken = Taken::new().await;
    let mut conn = taken.fixture.conn().await;
    let met = failure(FailureCode::ProviderUnavailable);
    assert!(outputs::put_back(&mut conn, taken.held(0), &met, Duration::from_secs(9)).await.expect("records"));
    let seen = taken.list().await.remove(0);
    assert_eq!((seen.state, seen.attempts, seen.failure), (OutputState::Ready, 1, Some(met)));
    assert_eq!(seen.given_up_in, None, "the deadline counts from the first submit");
}

#[tokio::test]
async fn an_output_that_was_put_back_is_submitted_again_and_keeps_its_deadline() {
    let taken = Taken::new().await;
    taken.submit(0).await;
    let mut conn = taken.fixture.conn().await;
    let met = failure(FailureCode::ProviderRateLimited);
    assert!(outputs::put_back(&mut conn, taken.held(0), &met, Duration::from_secs(9)).await.expect("records"));
    let seen = taken.list().await.remove(0);
    assert_eq!((seen.state, seen.failure.as_ref()), (OutputState::Ready, Some(&met)));
    assert!(seen.due_in > Duration::from_secs(5));
    assert!(outputs::begin_submit(&mut conn, taken.held(0), PATIENCE * 9).await.expect("records"));
    let seen = taken.list().await.remove(0);
    assert_eq!(seen.attempts, 2);
    assert!(seen.given_up_in.is_some_and(|left| left <= PATIENCE));
}

#[tokio::test]
async fn a_success_is_charged_whole() {
    let taken = Taken::new().await;
    let mut made = Vec::new();
    for position in 0..2 {
        taken.accept(position).await;
        made.push(taken.store(position).await);
    }
    assert_eq!(taken.list().await[1].placement.as_ref(), Some(&made[1]), "reads back");
    let record = taken.end(Completion::Succeeded(made)).await;
    assert_eq!((record.status, record.outcome.images.len()), (JobStatus::Succeeded, 2));
    assert_eq!(taken.charge().await, 2 * PRICE);
}

#[tokio::test]
async fn a_partial_failure_keeps_and_charges_what_was_made_and_frees_the_other_nodes() {
    let taken = Taken::new().await;
    taken.accept(0).await;
    let made = taken.store(0).await;
    taken.submit(1).await;
    taken.fail(1, true).await;
    let why = failure(FailureCode::ProviderTimeout);
    let record = taken.end(Completion::Failed(why.clone(), vec![made])).await;
    assert_eq!((record.status, record.outcome.failure), (JobStatus::Failed, Some(why)));
    assert_eq!(record.outcome.images.iter().map(|it| &it.node).collect::<Vec<_>>(), [&taken.targets[0]]);
    for (target, filled) in taken.targets.iter().zip([true, false]) {
        let mut conn = taken.fixture.conn().await;
        let node = canvases::node(&mut conn, taken.fixture.canvas.key, target).await.expect("reads").expect("is there");
        assert_eq!((node.active_job, node.asset.is_some()), (None, filled));
        assert_eq!(node.job().map(|job| job.status), Some(JobStatus::Failed));
    }
    assert_eq!((taken.charge().await, orphans(&taken.fixture).await), (PRICE, 1));
}

#[tokio::test]
async fn the_event_of_an_image_job_says_what_was_made_and_what_it_cost_and_its_record_goes_with_its_outputs() {
    let taken = Taken::new().await;
    let (fixture, id) = (&taken.fixture, taken.id);
    let mut conn = fixture.conn().await;
    let delivery = NewDelivery {
        id: Uuid::now_v7(),
        account: &fixture.account,
        job_id: id,
        url: "https://receiver.example/hook",
        sealed_secret: "sealed",
    };
    deliveries::insert(&mut conn, &delivery).await.expect("inserts");
    taken.accept(0).await;
    let made = taken.store(0).await;
    taken.fail(1, false).await;
    taken.end(Completion::Failed(failure(FailureCode::ProviderRejected), vec![made])).await;
    let body: Vec<u8> =
        sqlx::query_scalar("SELECT body FROM webhook_deliveries").fetch_one(&mut *conn).await.expect("has an event");
    let event: serde_json::Value = serde_json::from_slice(&body).expect("is JSON");
    let run = &event["data"]["run"];
    assert_eq!((&event["type"], &run["operation"]), (&json!("image_job.failed"), &json!("generate")));
    assert_eq!((&run["failure"]["code"], &run["creditCost"]), (&json!("provider_rejected"), &json!(PRICE)));
    assert_eq!(run["images"].as_array().map(Vec::len), Some(1));

    sqlx::query("UPDATE jobs SET retain_until = now() - interval '1 s'").execute(&mut *conn).await.expect("ages");
    let removed = jobs::remove(&mut conn, crate::fixture::PUBLIC_URL, 10).await.expect("removes");
    assert_eq!((removed.removed, removed.unreadable), (1, 0));
    assert_eq!(fixture.count("SELECT count(*) FROM job_outputs").await, 0);
}

#[tokio::test]
async fn a_cancel_charges_what_a_provider_accepted_and_did_not_fail_at() {
    let taken = Taken::new().await;
    taken.accept(0).await;
    taken.accept(1).await;
    taken.fail(1, false).await;
    let record = taken.end(Completion::Canceled(CancelReason::UserRequested)).await;
    assert_eq!(record.status, JobStatus::Canceled);
    let states: Vec<_> = taken.list().await.into_iter().map(|it| it.state).collect();
    assert_eq!(states, [OutputState::Canceled, OutputState::Failed]);
    assert_eq!((taken.charge().await, orphans(&taken.fixture).await), (PRICE, 0));
}

#[tokio::test]
async fn a_cancel_returns_what_was_never_dispatched_and_notes_what_may_have_been() {
    let taken = Taken::new().await;
    taken.submit(0).await;
    taken.end(Completion::Canceled(CancelReason::UserRequested)).await;
    assert_eq!((taken.charge().await, orphans(&taken.fixture).await), (0, 1));
}

#[tokio::test]
async fn a_failed_job_returns_what_a_provider_has_and_notes_it() {
    let taken = Taken::new().await;
    taken.accept(0).await;
    let record = taken.end(Completion::Failed(failure(FailureCode::RuntimeFailed), Vec::new())).await;
    assert_eq!(record.status, JobStatus::Failed);
    assert_eq!((taken.charge().await, orphans(&taken.fixture).await), (0, 1), "the other was never submitted");
}

#[tokio::test]
async fn a_cancel_in_the_midst_of_an_accepted_submit_charges_it() {
    let taken = Taken::new().await;
    taken.submit(0).await;
    assert!(outputs::note_accepted(&mut *taken.fixture.conn().await, taken.held(0)).await.expect("records"));
    taken.end(Completion::Canceled(CancelReason::UserRequested)).await;
    assert_eq!((taken.charge().await, orphans(&taken.fixture).await), (PRICE, 0));
}

#[tokio::test]
async fn a_job_without_a_canvas_returns_everything() {
    let taken = Taken::new().await;
    taken.accept(0).await;
    let made = taken.store(0).await;
    let mut conn = taken.fixture.conn().await;
    sqlx::query("DELETE FROM canvases").execute(&mut *conn).await.expect("deletes");
    for ending in [Completion::Failed(failure(FailureCode::ProviderTimeout), vec![made])] {
        assert!(taken.end(ending).await.outcome.images.is_empty());
    }
    assert_eq!(taken.charge().await, 0);
}

#[tokio::test]
async fn a_queued_job_that_is_canceled_or_abandoned_returns_everything() {
    let (fixture, id, _) = accepted().await;
    let mut tx = fixture.database.pool().begin().await.expect("begins");
    let canceled = app::job::cancel(&mut tx, id, &fixture.account, CONTEXT).await.expect("cancels");
    tx.commit().await.expect("commits");
    let Some(Cancellation::Canceled(record)) = canceled else { panic!("not canceled: {canceled:?}") };
    assert_eq!((record.credit_cost, charge(&fixture, id).await), (0, 0));

    let (fixture, id, _) = accepted().await;
    let lease = claim(&fixture).await;
    let mut tx = fixture.database.pool().begin().await.expect("begins");
    assert!(app::job::abandon(&mut tx, id, lease, CONTEXT).await.expect("ends").is_some());
    tx.commit().await.expect("commits");
    assert_eq!(charge(&fixture, id).await, 0);
}

#[tokio::test]
async fn a_cancel_of_parked_work_wakes_a_worker_while_a_provider_has_it() {
    let taken = Taken::new().await;
    taken.accept(0).await;
    let (fixture, id) = (&taken.fixture, taken.id);
    let mut conn = fixture.conn().await;
    assert!(tasks::reschedule(&mut conn, id.0, taken.lease, PATIENCE).await.expect("reschedules").is_some());
    for _ in 0..2 {
        let requested = app::job::cancel(&mut conn, id, &fixture.account, CONTEXT).await.expect("cancels");
        let Some(Cancellation::Requested(record)) = requested else { panic!("not requested: {requested:?}") };
        assert_eq!(record.status, JobStatus::Canceling);
    }
    let (queue, lease) = (Queue::Generation, Duration::from_secs(30));
    let wanted = ClaimRequest { queue, limit: 1, quarantined: false, caps: None, lease, owner: "test" };
    let claims = tasks::claim(&mut conn, &wanted).await.expect("claims");
    assert!(claims.first().expect("is ready at once").cancel_requested);
}

#[tokio::test]
async fn a_cancel_of_parked_work_that_no_provider_has_ends_it_at_once() {
    let taken = Taken::new().await;
    taken.submit(0).await;
    let (fixture, id) = (&taken.fixture, taken.id);
    let mut conn = fixture.conn().await;
    let met = failure(FailureCode::ProviderRateLimited);
    assert!(outputs::put_back(&mut conn, taken.held(0), &met, PATIENCE).await.expect("records"));
    assert!(tasks::reschedule(&mut conn, id.0, taken.lease, PATIENCE).await.expect("reschedules").is_some());
    let canceled = app::job::cancel(&mut conn, id, &fixture.account, CONTEXT).await.expect("cancels");
    assert!(matches!(canceled, Some(Cancellation::Canceled(_))), "{canceled:?}");
    assert_eq!(taken.charge().await, 0);
}

/// Lets the lease of the job expire, and its queue be served by a worker that was last seen so long ago.
async fn lose_the_worker(taken: &Taken, seen_ago: Duration) {
    let conn = &mut *taken.fixture.conn().await;
    let expired = sqlx::query("UPDATE task_queue SET lease_until = now() - interval '1 s' WHERE id = $1");
    expired.bind(taken.id.0).execute(&mut *conn).await.expect("expires");
    let worker = Worker { queue: Queue::Generation, instance: "other", version: "1.0.0", slots: 1, busy: 0 };
    db::workers::report(&mut *conn, &worker).await.expect("reports");
    let aged = sqlx::query("UPDATE workers SET seen_at = now() - make_interval(secs => $1)");
    aged.bind(seen_ago.as_secs_f64()).execute(conn).await.expect("ages");
}

async fn cancel(taken: &Taken) -> Cancellation {
    let mut transaction = taken.fixture.database.pool().begin().await.expect("begins");
    let canceled = app::job::cancel(&mut transaction, taken.id, &taken.fixture.account, CONTEXT).await;
    transaction.commit().await.expect("commits");
    canceled.expect("cancels").expect("is there")
}

#[tokio::test]
async fn a_cancel_ends_work_whose_worker_is_gone_while_no_other_is_seen() {
    let taken = Taken::new().await;
    lose_the_worker(&taken, CONTEXT.worker_silent + Duration::from_secs(1)).await;
    let canceled = cancel(&taken).await;
    assert!(matches!(canceled, Cancellation::Canceled(_)), "{canceled:?}");
    assert_eq!((taken.charge().await, orphans(&taken.fixture).await), (0, 0));
    assert_eq!(taken.fixture.count("SELECT count(*) FROM task_queue").await, 0);
}

#[tokio::test]
async fn a_cancel_leaves_work_to_a_worker_that_holds_it_or_can_take_it_over() {
    let taken = Taken::new().await;
    assert!(matches!(cancel(&taken).await, Cancellation::Requested(_)), "its lease is current");
    lose_the_worker(&taken, CONTEXT.worker_silent.saturating_sub(Duration::from_secs(2))).await;
    assert!(matches!(cancel(&taken).await, Cancellation::Requested(_)), "another worker takes it over");
}

#[tokio::test]
async fn a_cancel_never_ends_what_a_provider_may_be_working_on() {
    let taken = Taken::new().await;
    taken.submit(0).await;
    lose_the_worker(&taken, CONTEXT.worker_silent + Duration::from_secs(1)).await;
    assert!(matches!(cancel(&taken).await, Cancellation::Requested(_)));
}

#[tokio::test]
async fn ends_of_many_jobs_at_once_keep_the_books() {
    let (fixture, first, _) = accepted().await;
    let mut ids = vec![first];
    for _ in 0..7 {
        let mut conn = fixture.conn().await;
        let id = JobId::generate();
        sqlx::query(
            "INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, canvas_key, request, estimated_seconds,
                               credit_cost)
             SELECT $1, account_uid, token_id, kind, operation, status, canvas_key, request, 1, credit_cost FROM jobs
             WHERE id = $2",
        )
        .bind(id.0)
        .bind(first.0)
        .execute(&mut *conn)
        .await
        .expect("copies");
        sqlx::query(
            "WITH paid AS (UPDATE accounts SET credit_balance = credit_balance - $2 WHERE uid = 'me')
             INSERT INTO ledger (account_uid, amount, reason, job_id) VALUES ('me', -$2, 'reserve', $1)",
        )
        .bind(id.0)
        .bind(2 * PRICE)
        .execute(&mut *conn)
        .await
        .expect("reserves");
        let (queue, kind) = (Queue::Generation, TaskKind::Image);
        let task = NewTask { id: id.0, queue, kind, fairness_key: "me", due_in: None, traceparent: None };
        tasks::enqueue(&mut conn, &task).await.expect("enqueues");
        ids.push(id);
    }
    let cancels = ids.into_iter().map(|id| {
        let (pool, account) = (fixture.database.pool().clone(), fixture.account.clone());
        tokio::spawn(async move {
            let mut tx = pool.begin().await.expect("begins");
            let canceled = app::job::cancel(&mut tx, id, &account, CONTEXT).await.expect("cancels");
            assert!(matches!(canceled, Some(Cancellation::Canceled(_))));
            tx.commit().await.expect("commits");
        })
    });
    for cancel in cancels.collect::<Vec<_>>() {
        cancel.await.expect("ends well");
    }
    assert_eq!(fixture.count("SELECT credit_balance FROM accounts WHERE uid = 'me'").await, GRANT);
    assert_eq!(fixture.count("SELECT sum(amount)::bigint FROM ledger").await, GRANT);
}
