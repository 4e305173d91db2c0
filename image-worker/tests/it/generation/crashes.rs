//! Workers that die at the worst moment, and others that come after them.

use std::time::Duration;

use db::jobs::outputs::OutputState;
use domain::id::JobId;
use domain::job::{FailureCode, JobStatus};
use domain::limits::TASK_CLAIMS_MAX;
use domain::message::Queue;
use futures_util::future::join_all;
use testkit::providers::{Trouble, Vendor};
use testkit::wait_for;

use super::studio::{Studio, Wish, failure, picture};
use crate::world::DEADLINE;

/// Lets a worker die in the midst of a submit that the provider has taken.
async fn die_submitting(studio: &Studio) -> JobId {
    studio.simulator.misbehave_once(Trouble::Hang);
    let doomed = studio.work();
    let id = studio.start(picture("a kite")).await;
    studio.until_submits(1).await;
    studio.until_output_is(id, OutputState::Submitting).await;
    drop(doomed);
    lose(studio).await;
    id
}

/// Lets the lease run out, once the worker is gone and has not handed the task back.
async fn lose(studio: &Studio) {
    studio.world.execute("UPDATE tasks SET lease_until = now() - interval '1 s' WHERE state = 'leased'").await;
}

#[tokio::test]
async fn a_submit_of_unknown_outcome_is_never_blindly_repeated() {
    let vendors = [Vendor::OpenAi, Vendor::Google, Vendor::Stability, Vendor::Fal, Vendor::BlackForestLabs];
    let crashes = vendors.map(async |vendor| {
        let studio = Studio::new(vendor).await;
        let id = die_submitting(&studio).await;
        let _running = studio.work();
        let record = studio.ended(id).await;
        assert_eq!(failure(&record), (FailureCode::ProviderTimeout, true), "{vendor:?}");
        assert_eq!((studio.simulator.submits().len(), studio.accepted(id, 0)), (1, 1), "{vendor:?}");
    });
    join_all(crashes).await;
}

#[tokio::test]
async fn the_credit_of_an_unknown_submit_is_returned_and_a_possible_orphan_noted() {
    let studio = Studio::new(Vendor::Compatible).await;
    let id = die_submitting(&studio).await;
    let _running = studio.work();
    let record = studio.ended(id).await;
    assert_eq!(failure(&record), (FailureCode::ProviderTimeout, true));
    assert_eq!((record.credit_cost, studio.spent().await, studio.accepted(id, 0)), (0, 0, 1));
    let orphans = sqlx::query_scalar::<_, i64>("SELECT sum(possible_orphans)::bigint FROM ledger");
    assert_eq!(orphans.fetch_one(studio.world.database.pool()).await.expect("reads"), 1);
}

#[tokio::test]
async fn a_run_whose_id_was_lost_is_found_where_it_can_be() {
    let studio = Studio::new(Vendor::Replicate).await;
    let id = die_submitting(&studio).await;
    let _running = studio.work();
    assert_eq!(studio.ended(id).await.status, JobStatus::Succeeded);
    assert_eq!((studio.simulator.submits().len(), studio.accepted(id, 0)), (1, 1));
}

#[tokio::test]
async fn a_submit_is_repeated_where_the_provider_refuses_a_second_effect() {
    let studio = Studio::new(Vendor::Comfy).await;
    let id = die_submitting(&studio).await;
    let _running = studio.work();
    assert_eq!(failure(&studio.ended(id).await), (FailureCode::ProviderTimeout, true));
    assert_eq!(studio.accepted(id, 0), 1);

    // One that died before the provider saw anything goes on.
    let studio = Studio::new(Vendor::Comfy).await;
    let id = studio.start(picture("a kite")).await;
    let mut conn = studio.world.conn().await;
    sqlx::query("INSERT INTO job_outputs (job_id, position, state, attempts) VALUES ($1, 0, 'submitting', 1)")
        .bind(id.0)
        .execute(&mut *conn)
        .await
        .expect("inserts");
    drop(conn);
    let _running = studio.work();
    assert_eq!(studio.ended(id).await.status, JobStatus::Succeeded);
    assert_eq!(studio.accepted(id, 0), 1);
}

#[tokio::test]
async fn a_run_that_was_recorded_is_followed_by_whoever_comes_next() {
    for vendor in [Vendor::BlackForestLabs, Vendor::Fal, Vendor::Runway] {
        let studio = Studio::new(vendor).await;
        studio.simulator.take(Duration::from_millis(300));
        let doomed = studio.work();
        let id = studio.start(picture("a kite")).await;
        studio.until_output_is(id, OutputState::Submitted).await;
        drop(doomed);
        lose(&studio).await;
        let _running = studio.work();
        assert_eq!(studio.ended(id).await.status, JobStatus::Succeeded, "{vendor:?}");
        assert_eq!((studio.simulator.submits().len(), studio.accepted(id, 0)), (1, 1), "{vendor:?}");
    }
}

#[tokio::test]
async fn a_job_that_kills_its_workers_is_given_up_and_returned() {
    let studio = Studio::embedded().await;
    let id = studio.start(picture("a kite")).await;
    let mut conn = studio.world.conn().await;
    sqlx::query("UPDATE tasks SET claims = $1").bind(TASK_CLAIMS_MAX).execute(&mut *conn).await.expect("ages");
    drop(conn);
    let _running = studio.work();
    let record = studio.ended(id).await;
    assert_eq!(failure(&record), (FailureCode::RuntimeFailed, false));
    assert_eq!((record.credit_cost, studio.spent().await), (0, 0));
}

#[tokio::test]
async fn a_result_is_kept_when_the_store_comes_back_in_time() {
    let studio = Studio::new(Vendor::OpenAi).await;
    studio.simulator.take(Duration::from_millis(200));
    let broken = studio.world.break_store();
    let _running = studio.work();
    let id = studio.start(picture("a kite")).await;
    studio.until_submits(1).await;
    wait_for("the answer", DEADLINE, async || {
        studio.outputs(id).await.first().filter(|output| output.state == OutputState::Submitting).map(|_| ())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(broken);
    assert_eq!(studio.ended(id).await.status, JobStatus::Succeeded);
    assert_eq!(studio.simulator.submits().len(), 1);
    let stats = db::tasks::stats(&mut *studio.world.conn().await, Queue::Generation).await.expect("counts");
    assert_eq!(stats, db::tasks::QueueStats::default());
}

#[tokio::test]
async fn a_job_that_is_given_up_after_its_result_was_swept_ends_all_the_same() {
    let studio = Studio::new(Vendor::OpenAi).await;
    studio.simulator.misbehave_once(Trouble::Hang);
    let doomed = studio.work();
    let id = studio.start(Wish { targets: 2, ..picture("a kite") }).await;
    wait_for("a stored output", DEADLINE, async || {
        studio.outputs(id).await.into_iter().find(|output| output.state == OutputState::Stored)
    })
    .await;
    drop(doomed);
    studio.world.execute("DELETE FROM blobs WHERE state = 'staged'").await;
    let mut conn = studio.world.conn().await;
    sqlx::query("UPDATE tasks SET claims = $1").bind(TASK_CLAIMS_MAX).execute(&mut *conn).await.expect("ages");
    drop(conn);
    lose(&studio).await;
    let _running = studio.work();
    let record = studio.ended(id).await;
    assert_eq!(failure(&record).0, FailureCode::OutputFinalizationFailed);
    assert_eq!((record.credit_cost, studio.spent().await), (0, 0));
    for target in record.request.targets() {
        assert_eq!(studio.world.node(target).await.expect("is there").active_job, None);
    }
}
