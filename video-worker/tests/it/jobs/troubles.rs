use std::time::Duration;

use db::jobs::outputs::OutputState;
use domain::id::JobId;
use domain::job::{FailureCode, JobStatus};
use domain::model::Capability;
use testkit::providers::{Trouble, Vendor};
use testkit::wait_for;

use super::studio::{DEADLINE, Studio, failure};

/// The end of a job whose provider does this once.
async fn under(vendor: Vendor, trouble: Trouble) -> (Studio, JobId, domain::job::Record) {
    let studio = Studio::new(vendor).await;
    studio.simulator.misbehave_once(trouble);
    let _running = studio.work();
    let id = studio.start(studio.wish(Capability::VideoGenerate)).await;
    let record = studio.ended(id).await;
    (studio, id, record)
}

#[tokio::test]
async fn a_refusal_fails_the_job_with_its_class_and_returns_the_credit() {
    for vendor in [Vendor::Runway, Vendor::Fal] {
        for (trouble, sentence) in [
            (Trouble::Content, "The provider refused the content"),
            (Trouble::OutOfCredit, "The provider account is out of credit"),
        ] {
            let (_studio, _, record) = under(vendor, trouble).await;
            let (code, message) = failure(&record);
            assert_eq!(code, FailureCode::ProviderRejected, "{vendor:?} {trouble:?}");
            assert!(message.starts_with(sentence), "{vendor:?} {trouble:?}: {message}");
            assert_eq!(record.credit_cost, 0);
        }
    }
}

#[tokio::test]
async fn what_was_surely_not_accepted_is_submitted_again() {
    for vendor in [Vendor::Runway, Vendor::Fal] {
        let (studio, id, record) = under(vendor, Trouble::Down).await;
        assert_eq!(record.status, JobStatus::Succeeded, "{vendor:?}: {:?}", record.outcome);
        assert_eq!((studio.simulator.submits().len(), studio.accepted(id)), (2, 1), "{vendor:?}");
    }
}

#[tokio::test]
async fn a_lost_answer_is_never_submitted_again() {
    for vendor in [Vendor::Runway, Vendor::Fal] {
        let (studio, id, record) = under(vendor, Trouble::LoseAnswer).await;
        assert_eq!(failure(&record).0, FailureCode::ProviderTimeout, "{vendor:?}");
        assert_eq!((studio.simulator.submits().len(), studio.accepted(id)), (1, 1), "{vendor:?}");
        assert_eq!(record.credit_cost, 0);
        let orphans = sqlx::query_scalar::<_, i64>("SELECT sum(possible_orphans)::bigint FROM ledger");
        assert_eq!(orphans.fetch_one(studio.database.pool()).await.expect("reads"), 1, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_server_that_takes_a_key_once_is_asked_again_and_begins_once() {
    let (studio, id, record) = under(Vendor::Comfy, Trouble::LoseAnswer).await;
    assert_eq!(failure(&record).0, FailureCode::ProviderTimeout, "whether it began was told, but not as what");
    // The second was refused for its key, before it counts as a submit.
    assert_eq!((studio.simulator.submits().len(), studio.accepted(id), record.credit_cost), (1, 1, 0));
}

#[tokio::test]
async fn a_run_whose_answer_was_lost_is_found_where_it_can_be() {
    let (studio, id, record) = under(Vendor::Replicate, Trouble::LoseAnswer).await;
    assert_eq!(record.status, JobStatus::Succeeded, "{:?}", record.outcome);
    assert_eq!((studio.simulator.submits().len(), studio.accepted(id)), (1, 1));
}

#[tokio::test]
async fn a_worker_that_dies_is_followed_by_one_that_does_not_submit_again() {
    for vendor in [Vendor::Runway, Vendor::Fal] {
        let studio = Studio::new(vendor).await;
        studio.simulator.take(Duration::from_millis(300));
        let doomed = studio.work();
        let id = studio.start(studio.wish(Capability::VideoGenerate)).await;
        studio.until_output_is(id, OutputState::Submitted).await;
        drop(doomed);
        studio.execute("UPDATE tasks SET lease_until = now() - interval '1 s' WHERE state = 'leased'").await;
        let _running = studio.work();
        assert_eq!(studio.ended(id).await.status, JobStatus::Succeeded, "{vendor:?}");
        assert_eq!((studio.simulator.submits().len(), studio.accepted(id)), (1, 1), "{vendor:?}");
    }
    let studio = Studio::new(Vendor::Fal).await;
    studio.simulator.misbehave_once(Trouble::Hang);
    let doomed = studio.work();
    let id = studio.start(studio.wish(Capability::VideoGenerate)).await;
    wait_for("a submit", DEADLINE, async || (studio.simulator.submits().len() == 1).then_some(())).await;
    drop(doomed);
    studio.execute("UPDATE tasks SET lease_until = now() - interval '1 s' WHERE state = 'leased'").await;
    let _running = studio.work();
    assert_eq!(failure(&studio.ended(id).await).0, FailureCode::ProviderTimeout);
    assert_eq!((studio.simulator.submits().len(), studio.accepted(id)), (1, 1));
}

#[tokio::test]
async fn progress_is_what_the_provider_says() {
    let studio = Studio::new(Vendor::Runway).await;
    studio.simulator.take(Duration::from_secs(600));
    let _running = studio.work();
    let id = studio.start(studio.wish(Capability::VideoGenerate)).await;
    let record = studio.job_when(id, "progress", |job| job.progress > 0.0).await;
    assert!((record.progress - 42.0).abs() < 0.001, "{}", record.progress);
}
