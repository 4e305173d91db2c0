//! Tests of workers that crash at critical moments, and of the workers that take over.

use std::time::Duration;

use db::jobs::outputs::OutputState;
use domain::id::JobId;
use domain::job::{FailureCode, JobStatus};
use domain::message::Queue;
use futures_util::future::join_all;
use testkit::providers::{FailureMode, Simulator, Vendor};
use testkit::wait_for;

use super::fixture::{GenerationFixture, Wish, failure, image};
use crate::harness::DEADLINE;

/// Crashes a worker during a submit that the provider has accepted.
async fn die_submitting(fixture: &GenerationFixture) -> JobId {
    fixture.simulator.misbehave_once(FailureMode::Hang);
    let doomed = fixture.work();
    let id = fixture.start(image("a kite")).await;
    fixture.until_submits(1).await;
    fixture.until_output_is(id, OutputState::Submitting).await;
    drop(doomed);
    lose(fixture).await;
    id
}

/// The record of a worker that crashed in a submit before the provider received anything.
async fn die_before_submitting(fixture: &GenerationFixture) -> JobId {
    let id = fixture.start(image("a kite")).await;
    let mut conn = fixture.harness.conn().await;
    sqlx::query("INSERT INTO job_outputs (job_id, position, state, attempts) VALUES ($1, 0, 'submitting', 1)")
        .bind(id.0)
        .execute(&mut *conn)
        .await
        .expect("inserts");
    id
}

/// Lets the lease expire after the worker is gone without returning the task.
pub async fn lose(fixture: &GenerationFixture) {
    fixture.harness.execute("UPDATE task_queue SET lease_until = now() - interval '1 s' WHERE state = 'leased'").await;
}

/// Lets the deadlines of all outputs pass.
async fn pass_deadlines(fixture: &GenerationFixture) {
    fixture.harness.execute("UPDATE job_outputs SET deadline_at = now() - interval '1 s'").await;
}

#[tokio::test]
async fn a_submit_of_unknown_outcome_is_never_blindly_repeated() {
    let vendors = [Vendor::OpenAi, Vendor::Google, Vendor::Stability, Vendor::Fal, Vendor::BlackForestLabs];
    let crashes = vendors.map(async |vendor| {
        let fixture = GenerationFixture::new(vendor).await;
        let id = die_submitting(&fixture).await;
        let _running = fixture.work();
        let record = fixture.ended(id).await;
        assert_eq!(failure(&record), (FailureCode::ProviderTimeout, true), "{vendor:?}");
        assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id, 0)), (1, 1), "{vendor:?}");
    });
    join_all(crashes).await;
}

#[tokio::test]
async fn the_credit_of_an_unknown_submit_is_returned_and_a_possible_orphan_noted() {
    let fixture = GenerationFixture::new(Vendor::Compatible).await;
    let id = die_submitting(&fixture).await;
    let _running = fixture.work();
    let record = fixture.ended(id).await;
    assert_eq!(failure(&record), (FailureCode::ProviderTimeout, true));
    assert_eq!((record.credit_cost, fixture.spent().await, fixture.accepted(id, 0)), (0, 0, 1));
    let orphans = sqlx::query_scalar::<_, i64>("SELECT sum(possible_orphans)::bigint FROM ledger");
    assert_eq!(orphans.fetch_one(fixture.harness.database.pool()).await.expect("reads"), 1);
}

#[tokio::test]
async fn a_run_whose_id_was_lost_is_found_where_it_can_be() {
    let fixture = GenerationFixture::new(Vendor::Replicate).await;
    let id = die_submitting(&fixture).await;
    let _running = fixture.work();
    assert_eq!(fixture.ended(id).await.status, JobStatus::Succeeded);
    assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id, 0)), (1, 1));
}

#[tokio::test]
async fn a_submit_is_repeated_where_the_provider_refuses_a_second_effect() {
    let fixture = GenerationFixture::new(Vendor::Comfy).await;
    let id = die_submitting(&fixture).await;
    let _running = fixture.work();
    assert_eq!(failure(&fixture.ended(id).await), (FailureCode::ProviderTimeout, true));
    assert_eq!(fixture.accepted(id, 0), 1);

    // A worker that crashed before the provider received anything: the next one continues.
    let fixture = GenerationFixture::new(Vendor::Comfy).await;
    let id = die_before_submitting(&fixture).await;
    let _running = fixture.work();
    assert_eq!(fixture.ended(id).await.status, JobStatus::Succeeded);
    assert_eq!(fixture.accepted(id, 0), 1);
}

#[tokio::test]
async fn a_repeat_that_is_refused_leaves_the_first_submit_unknown() {
    for (failure_mode, expected) in [
        (FailureMode::Down, (FailureCode::ProviderUnavailable, true)),
        (FailureMode::Invalid, (FailureCode::ProviderRejected, false)),
    ] {
        let fixture = GenerationFixture::new(Vendor::Comfy).await;
        let id = die_before_submitting(&fixture).await;
        fixture.simulator.misbehave_once(failure_mode);
        let _running = fixture.work();
        let record = fixture.ended(id).await;
        assert_eq!((failure(&record), record.credit_cost), (expected, 0), "{failure_mode:?}");
        assert_eq!((fixture.simulator.submits().len(), fixture.orphans().await), (1, 1), "{failure_mode:?}");
    }
}

#[tokio::test]
async fn a_run_that_was_recorded_is_followed_by_whoever_comes_next() {
    for vendor in [Vendor::BlackForestLabs, Vendor::Fal, Vendor::Runway] {
        let fixture = GenerationFixture::new(vendor).await;
        fixture.simulator.take(Duration::from_millis(300));
        let doomed = fixture.work();
        let id = fixture.start(image("a kite")).await;
        fixture.until_output_is(id, OutputState::Submitted).await;
        drop(doomed);
        lose(&fixture).await;
        let _running = fixture.work();
        assert_eq!(fixture.ended(id).await.status, JobStatus::Succeeded, "{vendor:?}");
        assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id, 0)), (1, 1), "{vendor:?}");
    }
}

#[tokio::test]
async fn a_run_that_finished_while_no_worker_ran_is_kept_past_its_deadline() {
    for vendor in [Vendor::Replicate, Vendor::Fal, Vendor::Runway, Vendor::Comfy] {
        let fixture = GenerationFixture::new(vendor).await;
        fixture.simulator.take(Duration::from_secs(600));
        let doomed = fixture.work();
        let id = fixture.start(image("a kite")).await;
        fixture.until_output_is(id, OutputState::Submitted).await;
        drop(doomed);
        lose(&fixture).await;
        fixture.simulator.finish();
        pass_deadlines(&fixture).await;
        let _running = fixture.work();
        let record = fixture.ended(id).await;
        assert_eq!(record.status, JobStatus::Succeeded, "{vendor:?}: {:?}", record.outcome.failure);
        assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id, 0)), (1, 1), "{vendor:?}");
        assert_eq!(fixture.simulator.cancel_requests(), 0, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_run_whose_id_was_lost_is_found_past_its_deadline() {
    let fixture = GenerationFixture::new(Vendor::Replicate).await;
    let id = die_submitting(&fixture).await;
    fixture.simulator.finish();
    pass_deadlines(&fixture).await;
    let _running = fixture.work();
    assert_eq!(fixture.ended(id).await.status, JobStatus::Succeeded);
    assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id, 0)), (1, 1));
}

#[tokio::test]
async fn a_look_up_that_fails_ends_at_the_deadline() {
    let mut fixture = GenerationFixture::new(Vendor::Replicate).await;
    let id = die_submitting(&fixture).await;
    pass_deadlines(&fixture).await;
    // Nothing listens at the connection's address any more.
    fixture.simulator = Simulator::start(Vendor::Replicate).await;
    let _running = fixture.work();
    assert_eq!(failure(&fixture.ended(id).await), (FailureCode::ProviderTimeout, true));
    assert_eq!(fixture.orphans().await, 1);
}

#[tokio::test]
async fn a_job_that_kills_its_workers_is_given_up_and_returned() {
    let fixture = GenerationFixture::embedded().await;
    let id = fixture.start(image("a kite")).await;
    fixture.harness.exhaust_claims().await;
    let _running = fixture.work();
    let record = fixture.ended(id).await;
    assert_eq!(failure(&record), (FailureCode::RuntimeFailed, false));
    assert_eq!((record.credit_cost, fixture.spent().await), (0, 0));
}

#[tokio::test]
async fn a_result_is_kept_when_the_store_comes_back_in_time() {
    let fixture = GenerationFixture::new(Vendor::OpenAi).await;
    fixture.simulator.take(Duration::from_millis(200));
    let broken = fixture.harness.break_store();
    let _running = fixture.work();
    let id = fixture.start(image("a kite")).await;
    fixture.until_submits(1).await;
    wait_for("the answer", DEADLINE, async || {
        fixture.outputs(id).await.first().filter(|output| output.state == OutputState::Submitting).map(|_| ())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(broken);
    assert_eq!(fixture.ended(id).await.status, JobStatus::Succeeded);
    assert_eq!(fixture.simulator.submits().len(), 1);
    let stats = db::tasks::stats(&mut *fixture.harness.conn().await, Queue::Generation).await.expect("counts");
    assert_eq!(stats, db::tasks::QueueStats::default());
}

#[tokio::test]
async fn a_result_that_came_with_the_answer_is_kept_when_the_database_comes_back_in_time() {
    let fixture = GenerationFixture::new(Vendor::OpenAi).await;
    // The database refuses to record the answer. The sequence counts, because a rollback does not undo it.
    let refuse = "CREATE SEQUENCE refusals;
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             PERFORM nextval('refusals');
             RAISE EXCEPTION 'the database system is starting up' USING ERRCODE = 'cannot_connect_now';
         END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON job_outputs FOR EACH ROW WHEN (NEW.accepted) EXECUTE FUNCTION refuse()";
    sqlx::raw_sql(refuse).execute(&mut *fixture.harness.conn().await).await.expect("executes");
    let _running = fixture.work();
    let id = fixture.start(image("a kite")).await;
    wait_for("a refusal", DEADLINE, async || {
        let mut conn = fixture.harness.conn().await;
        let refused = sqlx::query_scalar("SELECT is_called FROM refusals").fetch_one(&mut *conn);
        let refused: bool = refused.await.expect("reads");
        refused.then_some(())
    })
    .await;
    fixture.harness.execute("DROP TRIGGER refuse ON job_outputs").await;
    assert_eq!(fixture.ended(id).await.status, JobStatus::Succeeded);
    assert_eq!(fixture.simulator.submits().len(), 1);
}

#[tokio::test]
async fn a_job_that_is_given_up_after_its_result_was_swept_ends_all_the_same() {
    let fixture = GenerationFixture::new(Vendor::OpenAi).await;
    fixture.simulator.misbehave_once(FailureMode::Hang);
    let doomed = fixture.work();
    let id = fixture.start(Wish { targets: 2, ..image("a kite") }).await;
    wait_for("a stored output", DEADLINE, async || {
        fixture.outputs(id).await.into_iter().find(|output| output.state == OutputState::Stored)
    })
    .await;
    drop(doomed);
    fixture.harness.execute("DELETE FROM blobs WHERE state = 'staged'").await;
    fixture.harness.exhaust_claims().await;
    lose(&fixture).await;
    let _running = fixture.work();
    let record = fixture.ended(id).await;
    assert_eq!(failure(&record).0, FailureCode::OutputFinalizationFailed);
    assert_eq!((record.credit_cost, fixture.spent().await), (0, 0));
    for target in record.request.targets() {
        assert_eq!(fixture.harness.node(target).await.expect("is there").active_job, None);
    }
}
