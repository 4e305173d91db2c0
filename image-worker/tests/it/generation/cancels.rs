use std::time::Duration;

use db::jobs::Cancellation;
use db::jobs::outputs::OutputState;
use domain::job::{CancelReason, JobStatus};
use testkit::providers::{Trouble, Vendor};

use super::studio::{Studio, picture};
use crate::actions::cancel;

/// Longer than any test.
const AGES: Duration = Duration::from_secs(600);

#[tokio::test]
async fn untaken_work_is_canceled_at_once_and_returned() {
    let studio = Studio::embedded().await;
    let id = studio.start(picture("a kite")).await;
    assert_eq!(studio.spent().await, 1);
    assert!(matches!(cancel(&studio.world, id).await, Cancellation::Canceled(_)));
    let record = studio.ended(id).await;
    assert_eq!((record.status, record.cancel_reason), (JobStatus::Canceled, Some(CancelReason::UserRequested)));
    assert_eq!((record.credit_cost, studio.spent().await), (0, 0));
}

#[tokio::test]
async fn work_that_a_provider_has_is_stopped_there_and_charged() {
    for vendor in [Vendor::Comfy, Vendor::Replicate, Vendor::Fal, Vendor::Runway] {
        let studio = Studio::new(vendor).await;
        studio.simulator.take(AGES);
        let _running = studio.work();
        let id = studio.start(picture("a kite")).await;
        studio.until_output_is(id, OutputState::Submitted).await;
        assert!(matches!(cancel(&studio.world, id).await, Cancellation::Requested(_)), "{vendor:?}");
        let record = studio.ended(id).await;
        assert_eq!(record.status, JobStatus::Canceled, "{vendor:?}");
        assert_eq!(studio.simulator.cancels(), 1, "{vendor:?}");
        let charge = i64::from(vendor == Vendor::Comfy);
        assert_eq!((record.credit_cost, studio.spent().await), (charge, charge), "{vendor:?}: what it accepted");
    }
}

#[tokio::test]
async fn an_answer_that_is_the_picture_is_not_waited_for() {
    let studio = Studio::new(Vendor::Compatible).await;
    studio.simulator.take(AGES);
    let _running = studio.work();
    let id = studio.start(picture("a kite")).await;
    studio.until_submits(1).await;
    assert!(matches!(cancel(&studio.world, id).await, Cancellation::Requested(_)));
    let record = studio.ended(id).await;
    assert_eq!((record.status, record.credit_cost), (JobStatus::Canceled, 1), "it was dispatched");
    assert_eq!(studio.accepted(id, 0), 1);
}

#[tokio::test]
async fn work_that_waits_to_be_submitted_again_is_canceled_at_once_and_returned() {
    let mut studio = Studio::new(Vendor::Compatible).await;
    (studio.settings.pauses, studio.settings.wait_max) = ([AGES; 2], AGES);
    studio.simulator.misbehave(Trouble::Down);
    let _running = studio.work();
    let id = studio.start(picture("a kite")).await;
    studio.until_submits(1).await;
    testkit::wait_for("a parked task", crate::world::DEADLINE, async || {
        let stats = db::tasks::stats(&mut *studio.world.conn().await, domain::message::Queue::Generation).await;
        (stats.expect("counts").parked == 1).then_some(())
    })
    .await;
    assert!(matches!(cancel(&studio.world, id).await, Cancellation::Canceled(_)));
    assert_eq!((studio.ended(id).await.credit_cost, studio.spent().await), (0, 0));
}

#[tokio::test]
async fn a_cancel_that_is_heard_before_anything_was_submitted_submits_nothing() {
    let studio = Studio::new(Vendor::Compatible).await;
    let id = studio.start(picture("a kite")).await;
    studio.world.execute("UPDATE tasks SET cancel_requested = true").await;
    let _running = studio.work();
    let record = studio.ended(id).await;
    assert_eq!((record.status, record.credit_cost), (JobStatus::Canceled, 0));
    assert!(studio.simulator.submits().is_empty());
}
