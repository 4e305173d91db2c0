use std::time::Duration;

use app::job::Cancellation;
use db::jobs::outputs::OutputState;
use domain::job::{CancelReason, JobOperation, JobStatus};
use testkit::providers::{FailureMode, Vendor};

use super::fixture::{GenerationFixture, Wish, image};
use crate::actions::cancel;

/// A latency longer than any test.
const AGES: Duration = Duration::from_secs(600);

#[tokio::test]
async fn untaken_work_is_canceled_at_once_and_returned() {
    let fixture = GenerationFixture::embedded().await;
    let id = fixture.start(image("a kite")).await;
    assert_eq!(fixture.spent().await, 1);
    assert!(matches!(cancel(&fixture.harness, id).await, Cancellation::Canceled(_)));
    let record = fixture.ended(id).await;
    assert_eq!((record.status, record.cancel_reason), (JobStatus::Canceled, Some(CancelReason::UserRequested)));
    assert_eq!((record.credit_cost, fixture.spent().await), (0, 0));
}

#[tokio::test]
async fn work_that_a_provider_has_is_stopped_there_and_charged() {
    for vendor in [Vendor::Comfy, Vendor::Replicate, Vendor::Fal, Vendor::Runway] {
        let fixture = GenerationFixture::new(vendor).await;
        fixture.simulator.take(AGES);
        let _running = fixture.work();
        let id = fixture.start(image("a kite")).await;
        fixture.until_output_is(id, OutputState::Submitted).await;
        assert!(matches!(cancel(&fixture.harness, id).await, Cancellation::Requested(_)), "{vendor:?}");
        let record = fixture.ended(id).await;
        assert_eq!(record.status, JobStatus::Canceled, "{vendor:?}");
        assert_eq!(fixture.simulator.cancels(), 1, "{vendor:?}");
        let charge = i64::from(vendor == Vendor::Comfy);
        assert_eq!((record.credit_cost, fixture.spent().await), (charge, charge), "{vendor:?}: what it accepted");
    }
}

#[tokio::test]
async fn an_answer_that_is_the_image_is_not_waited_for() {
    let fixture = GenerationFixture::new(Vendor::Compatible).await;
    fixture.simulator.take(AGES);
    let _running = fixture.work();
    let id = fixture.start(image("a kite")).await;
    fixture.until_submits(1).await;
    assert!(matches!(cancel(&fixture.harness, id).await, Cancellation::Requested(_)));
    let record = fixture.ended(id).await;
    assert_eq!((record.status, record.credit_cost), (JobStatus::Canceled, 1), "it was dispatched");
    assert_eq!(fixture.accepted(id, 0), 1);
}

#[tokio::test]
async fn work_that_waits_to_be_submitted_again_is_canceled_at_once_and_returned() {
    let mut fixture = GenerationFixture::new(Vendor::Compatible).await;
    (fixture.settings.pauses, fixture.settings.wait_max) = ([AGES; 2], AGES);
    fixture.simulator.misbehave(FailureMode::Down);
    let _running = fixture.work();
    let id = fixture.start(image("a kite")).await;
    fixture.until_submits(1).await;
    testkit::wait_for("a scheduled task", crate::harness::DEADLINE, async || {
        let stats = db::tasks::stats(&mut *fixture.harness.conn().await, domain::message::Queue::Generation).await;
        (stats.expect("counts").scheduled == 1).then_some(())
    })
    .await;
    assert!(matches!(cancel(&fixture.harness, id).await, Cancellation::Canceled(_)));
    assert_eq!((fixture.ended(id).await.credit_cost, fixture.spent().await), (0, 0));
}

#[tokio::test]
async fn a_cancel_that_is_heard_before_anything_was_submitted_submits_nothing() {
    let fixture = GenerationFixture::new(Vendor::Compatible).await;
    let id = fixture.start(image("a kite")).await;
    fixture.harness.execute("UPDATE task_queue SET cancel_requested = true").await;
    let _running = fixture.work();
    let record = fixture.ended(id).await;
    assert_eq!((record.status, record.credit_cost), (JobStatus::Canceled, 0));
    assert!(fixture.simulator.submits().is_empty());
}

#[tokio::test]
async fn a_cancel_while_references_are_uploaded_submits_nothing_and_is_free() {
    let fixture = GenerationFixture::new(Vendor::Comfy).await;
    fixture.simulator.hang_uploads();
    let _running = fixture.work();
    let id = fixture.start(Wish { operation: JobOperation::Edit, prompt: "a kite", targets: 1 }).await;
    let uploaded = async || (fixture.simulator.uploads() > 0).then_some(());
    testkit::wait_for("an upload", crate::harness::DEADLINE, uploaded).await;
    assert!(matches!(cancel(&fixture.harness, id).await, Cancellation::Requested(_)));
    let record = fixture.ended(id).await;
    assert_eq!((record.status, record.credit_cost), (JobStatus::Canceled, 0));
    assert_eq!((fixture.spent().await, fixture.orphans().await), (0, 0));
    assert!(fixture.simulator.submits().is_empty());
}
