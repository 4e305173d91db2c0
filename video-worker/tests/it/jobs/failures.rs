use std::time::Duration;

use db::jobs::outputs::OutputState;
use domain::id::JobId;
use domain::job::{FailureCode, JobStatus};
use domain::model::Capability;
use testkit::providers::{FailureMode, Vendor};
use testkit::wait_for;

use super::fixture::{DEADLINE, VideoFixture, failure};

/// Runs a job whose provider fails in this way once, and returns the fixture and the record.
async fn under(vendor: Vendor, failure_mode: FailureMode) -> (VideoFixture, JobId, domain::job::Record) {
    let fixture = VideoFixture::new(vendor).await;
    fixture.simulator.misbehave_once(failure_mode);
    let _running = fixture.work();
    let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
    let record = fixture.ended(id).await;
    (fixture, id, record)
}

#[tokio::test]
async fn a_refusal_fails_the_job_with_its_class_and_returns_the_credit() {
    for vendor in [Vendor::Runway, Vendor::Fal] {
        for (failure_mode, sentence) in [
            (FailureMode::Content, "The provider refused the content"),
            (FailureMode::OutOfCredit, "The provider account is out of credit"),
        ] {
            let (_studio, _, record) = under(vendor, failure_mode).await;
            let (code, message) = failure(&record);
            assert_eq!(code, FailureCode::ProviderRejected, "{vendor:?} {failure_mode:?}");
            assert!(message.starts_with(sentence), "{vendor:?} {failure_mode:?}: {message}");
            assert_eq!(record.credit_cost, 0);
        }
    }
}

#[tokio::test]
async fn what_was_surely_not_accepted_is_submitted_again() {
    for vendor in [Vendor::Runway, Vendor::Fal] {
        let (fixture, id, record) = under(vendor, FailureMode::Down).await;
        assert_eq!(record.status, JobStatus::Succeeded, "{vendor:?}: {:?}", record.outcome);
        assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id)), (2, 1), "{vendor:?}");
    }
}

#[tokio::test]
async fn a_lost_answer_is_never_submitted_again() {
    for vendor in [Vendor::Runway, Vendor::Fal] {
        let (fixture, id, record) = under(vendor, FailureMode::LoseAnswer).await;
        assert_eq!(failure(&record).0, FailureCode::ProviderTimeout, "{vendor:?}");
        assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id)), (1, 1), "{vendor:?}");
        assert_eq!(record.credit_cost, 0);
        let orphans = sqlx::query_scalar::<_, i64>("SELECT sum(possible_orphans)::bigint FROM ledger");
        assert_eq!(orphans.fetch_one(fixture.database.pool()).await.expect("reads"), 1, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_server_that_takes_a_key_once_is_asked_again_and_begins_once() {
    let (fixture, id, record) = under(Vendor::Comfy, FailureMode::LoseAnswer).await;
    assert_eq!(failure(&record).0, FailureCode::ProviderTimeout, "whether it began was reported, but not as what");
    // The second submit was rejected because of its key, before the simulator counts it.
    assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id), record.credit_cost), (1, 1, 0));
}

#[tokio::test]
async fn a_run_whose_answer_was_lost_is_found_where_it_can_be() {
    let (fixture, id, record) = under(Vendor::Replicate, FailureMode::LoseAnswer).await;
    assert_eq!(record.status, JobStatus::Succeeded, "{:?}", record.outcome);
    assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id)), (1, 1));
}

#[tokio::test]
async fn a_worker_that_dies_is_followed_by_one_that_does_not_submit_again() {
    for vendor in [Vendor::Runway, Vendor::Fal] {
        let fixture = VideoFixture::new(vendor).await;
        fixture.simulator.take(Duration::from_millis(300));
        let doomed = fixture.work();
        let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
        fixture.until_output_is(id, OutputState::Submitted).await;
        drop(doomed);
        fixture.execute("UPDATE task_queue SET lease_until = now() - interval '1 s' WHERE state = 'leased'").await;
        let _running = fixture.work();
        assert_eq!(fixture.ended(id).await.status, JobStatus::Succeeded, "{vendor:?}");
        assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id)), (1, 1), "{vendor:?}");
    }
    let fixture = VideoFixture::new(Vendor::Fal).await;
    fixture.simulator.misbehave_once(FailureMode::Hang);
    let doomed = fixture.work();
    let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
    wait_for("a submit", DEADLINE, async || (fixture.simulator.submits().len() == 1).then_some(())).await;
    drop(doomed);
    fixture.execute("UPDATE task_queue SET lease_until = now() - interval '1 s' WHERE state = 'leased'").await;
    let _running = fixture.work();
    assert_eq!(failure(&fixture.ended(id).await).0, FailureCode::ProviderTimeout);
    assert_eq!((fixture.simulator.submits().len(), fixture.accepted(id)), (1, 1));
}

#[tokio::test]
async fn progress_is_what_the_provider_says() {
    let fixture = VideoFixture::new(Vendor::Runway).await;
    fixture.simulator.take(Duration::from_secs(600));
    let _running = fixture.work();
    let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
    let record = fixture.job_when(id, "progress", |job| job.progress > 0.0).await;
    assert!((record.progress - 42.0).abs() < 0.001, "{}", record.progress);
}
