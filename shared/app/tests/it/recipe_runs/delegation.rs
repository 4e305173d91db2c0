//! A run whose token, session, account or role is revoked.

use app::job::{Completion, CompletionResult};
use domain::job::FailureCode;

use crate::fixture::begin;

use super::*;

/// Every way to revoke a delegation.
const REVOCATIONS: [&str; 5] = [
    "UPDATE tokens SET revoked_at = now()",
    "UPDATE account_sessions SET revoked_at = now()",
    "UPDATE accounts SET enabled = false",
    "UPDATE canvas_shares SET role = 'viewer'",
    "DELETE FROM canvas_shares",
];

impl World {
    /// A run on a canvas of another account, its text made and its image in progress. Returns its job and the worker's lease.
    async fn drawing() -> (Self, JobId, Uuid) {
        let world = World::new(Fixture::shared().await).await;
        world.begun().await;
        assert_eq!(world.text(0, Ok("copy")).await, StepResult::Done);
        let (_, job) = world.image().await;
        let lease = world.claim(Queue::Generation).await;
        begin(&mut *world.fixture.conn().await, job, lease).await.expect("is ours");
        (world, job, lease)
    }

    async fn execute(&self, sql: &'static str) {
        sqlx::query(sql).execute(&mut *self.fixture.conn().await).await.expect("executes");
    }

    async fn delegated(&self) -> bool {
        recipe_runs::is_delegated(&mut *self.fixture.conn().await, self.run).await.expect("looks")
    }

    /// Finishes the image of the step. Returns its job.
    async fn drawn(&self, job: JobId, lease: Uuid) -> domain::job::Record {
        let Completion::Succeeded(mut placements) = self.fixture.success().await else { unreachable!("a success") };
        placements[0].node = self.record().await.plan.steps[1].node.clone();
        match self.fixture.complete(job, lease, Completion::Succeeded(placements)).await {
            CompletionResult::Done(record) => *record,
            other => panic!("not completed: {other:?}"),
        }
    }

    /// The job after its window has passed.
    async fn expired(&self, job: JobId) -> domain::job::Record {
        self.execute("UPDATE jobs SET retain_until = now() - interval '1 s'").await;
        let expired = self.fixture.get(job).await;
        assert_eq!(expired.status, JobStatus::Expired);
        expired
    }

    async fn assets(&self) -> i64 {
        self.fixture.count("SELECT count(*) FROM assets").await
    }
}

#[tokio::test]
async fn a_run_whose_delegation_is_gone_takes_no_step_and_fails() {
    for revoke in REVOCATIONS {
        let world = World::new(Fixture::shared().await).await;
        world.begun().await;
        world.text(0, Ok("copy")).await;
        assert!(world.delegated().await, "{revoke}");
        world.execute(revoke).await;
        assert!(!world.delegated().await, "{revoke}");
        assert_eq!(world.image().await.0, StepResult::Revoked, "{revoke}");
        assert_eq!(world.text(0, Ok("late")).await, StepResult::Revoked, "{revoke}");
        // Also where the worker has not noticed.
        let run = world.completed(RunCompletion::Finished).await.expect("is ours");
        assert_eq!(run.failure.map(|failure| failure.code), Some(RunFailureCode::DelegationRevoked), "{revoke}");
        assert_eq!((run.status, world.event().await.as_str()), (RunStatus::Failed, "recipe_run.failed"), "{revoke}");
        assert_eq!(run.outputs[0].status, Succeeded, "existing results are kept");
        assert_eq!(world.balance().await, BALANCE - PRICE, "{revoke}");
    }
}

#[tokio::test]
async fn a_run_that_was_found_revoked_fails_even_if_its_role_is_back() {
    let (world, ..) = World::drawing().await;
    let run = world.completed(RunCompletion::Revoked).await.expect("is ours");
    assert_eq!(run.failure.map(|failure| failure.code), Some(RunFailureCode::DelegationRevoked));
    assert_eq!((run.status, world.statuses().await), (RunStatus::Failed, vec![Succeeded, Canceled, Canceled]));
}

#[tokio::test]
async fn nobody_acts_for_a_run_that_is_not_there() {
    let world = world().await;
    let absent = recipe_runs::is_delegated(&mut *world.fixture.conn().await, RunId::generate()).await.expect("looks");
    assert!(!absent && world.delegated().await);
}

#[tokio::test]
async fn an_image_that_is_made_under_its_delegation_is_shown_and_charged() {
    let (world, job, lease) = World::drawing().await;
    let made = world.drawn(job, lease).await;
    assert_eq!((made.status, made.credit_cost), (JobStatus::Succeeded, PRICE));
    let node = world.output_node(1).await;
    assert_eq!((node.asset, node.active_job), (Some(made.outcome.images[0].asset.clone()), None));
    assert_eq!((world.assets().await, world.balance().await), (1, BALANCE - 3 * PRICE));
}

#[tokio::test]
async fn an_image_that_is_made_after_a_revocation_is_neither_shown_nor_charged() {
    for revoke in REVOCATIONS {
        let (world, job, lease) = World::drawing().await;
        world.execute(revoke).await;
        let made = world.drawn(job, lease).await;
        let failure = made.outcome.failure.as_ref().map(|failure| failure.code);
        assert_eq!(
            (made.status, failure),
            (JobStatus::Failed, Some(FailureCode::OutputFinalizationFailed)),
            "{revoke}"
        );
        assert_eq!((made.outcome.images.len(), made.credit_cost), (0, 0), "{revoke}");
        let node = world.output_node(1).await;
        assert_eq!((node.asset, node.active_job, world.assets().await), (None, None, 0), "{revoke}");
        assert_eq!(world.balance().await, BALANCE - 2 * PRICE, "{revoke}: the reservations of the other steps remain");
        // The run records it.
        let ended = world
            .in_transaction(async |conn| {
                end_image(conn, world.run, world.lease, 1, &made, None).await.expect("answers")
            })
            .await;
        assert_eq!(ended, StepResult::Revoked, "{revoke}");
    }
}

#[tokio::test]
async fn a_run_that_ends_for_a_revocation_stops_the_job_of_its_image() {
    for revoke in REVOCATIONS {
        let (world, job, lease) = World::drawing().await;
        world.execute(revoke).await;
        let run = world.completed(RunCompletion::Finished).await.expect("is ours");
        assert_eq!(run.failure.map(|failure| failure.code), Some(RunFailureCode::DelegationRevoked), "{revoke}");
        assert_eq!(world.statuses().await, [Succeeded, Canceled, Canceled], "{revoke}");
        assert_eq!(world.fixture.get(job).await.status, JobStatus::Canceling, "{revoke}: a worker is running it");
        // The image is made before the worker learns of the revocation.
        let made = world.drawn(job, lease).await;
        assert_eq!((made.status, made.credit_cost), (JobStatus::Failed, 0), "{revoke}");
        let node = world.output_node(1).await;
        assert_eq!((node.asset, node.active_job, world.assets().await), (None, None, 0), "{revoke}");
        assert_eq!(world.balance().await, BALANCE - PRICE, "{revoke}: only the text is charged");
    }
}

#[tokio::test]
async fn an_image_that_was_made_before_a_revocation_is_the_runs_although_it_had_not_heard_of_it() {
    for revoke in REVOCATIONS {
        let (world, job, lease) = World::drawing().await;
        let made = world.drawn(job, lease).await;
        world.execute(revoke).await;
        let run = world.completed(RunCompletion::Finished).await.expect("is ours");
        assert_eq!(run.failure.map(|failure| failure.code), Some(RunFailureCode::DelegationRevoked), "{revoke}");
        assert_eq!(world.statuses().await, [Succeeded, Succeeded, Canceled], "{revoke}");
        assert_eq!(run.outputs[1].asset.as_ref(), Some(&made.outcome.images[0].asset), "{revoke}");
        assert_eq!((world.assets().await, world.balance().await), (1, BALANCE - 2 * PRICE), "{revoke}");
    }
}

#[tokio::test]
async fn an_image_whose_job_has_expired_is_there_all_the_same() {
    let (world, job, lease) = World::drawing().await;
    let made = world.drawn(job, lease).await;
    let expired = world.expired(job).await;
    let ended = world
        .in_transaction(async |conn| end_image(conn, world.run, world.lease, 1, &expired, None).await.expect("answers"))
        .await;
    assert_eq!((ended, world.statuses().await), (StepResult::Done, vec![Succeeded, Succeeded, Pending]));
    assert_eq!(world.record().await.outputs[1].asset.as_ref(), Some(&made.outcome.images[0].asset));
}

#[tokio::test]
async fn an_image_whose_job_has_expired_is_the_runs_although_it_had_not_heard_of_it() {
    let (world, job, lease) = World::drawing().await;
    let made = world.drawn(job, lease).await;
    world.expired(job).await;
    let (run, _) = world.canceled().await;
    assert_eq!(world.statuses().await, [Succeeded, Succeeded, Canceled]);
    assert_eq!(run.outputs[1].asset.as_ref(), Some(&made.outcome.images[0].asset));
    assert_eq!(world.balance().await, BALANCE - 2 * PRICE);
}

#[tokio::test]
async fn a_job_by_itself_outlives_the_token_that_started_it() {
    let world = world().await;
    world.execute(REVOCATIONS[0]).await;
    let made = world.fixture.ended(world.fixture.success().await).await;
    assert_eq!((made.status, world.assets().await), (JobStatus::Succeeded, 1));
}
