//! What is never paid twice, and what can be stopped or found again.

use providers::{Cancellation, Idempotency, Media, Polled, Submission};
use testkit::providers::{Trouble, Vendor};

use crate::world::{vendors, world};

#[tokio::test]
async fn a_lost_answer_leaves_one_accepted_submit_and_an_unknown_outcome() {
    for vendor in vendors() {
        let world = world(vendor).await;
        world.simulator.misbehave_once(Trouble::LoseAnswer);
        let submission = world.provider.submit(&world.any_order("job-1")).await;
        assert!(matches!(submission, Submission::Unknown(_)), "{vendor:?}: {submission:?}");
        assert_eq!(world.simulator.accepted("job-1"), 1, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_second_submit_is_safe_where_that_is_promised() {
    for vendor in vendors() {
        let world = world(vendor).await;
        let promised = world.provider.promises(Media::Picture).idempotency;
        assert_eq!(promised == Idempotency::Rejected, vendor == Vendor::Comfy, "{vendor:?}");
        if promised != Idempotency::Rejected {
            continue;
        }
        let order = world.any_order("job-1");
        world.simulator.misbehave_once(Trouble::LoseAnswer);
        for _ in 0..2 {
            let submission = world.provider.submit(&order).await;
            assert!(matches!(submission, Submission::Unknown(_)), "{vendor:?}: {submission:?}");
        }
        assert_eq!(world.simulator.accepted("job-1"), 1, "{vendor:?}");
        // A refusal frees the key.
        world.simulator.misbehave_once(Trouble::RateLimited);
        let order = world.any_order("job-2");
        assert!(matches!(world.provider.submit(&order).await, Submission::Refused(_)));
        assert!(world.make(&order).await.is_ok());
    }
}

#[tokio::test]
async fn a_run_whose_answer_was_lost_is_found_by_its_order_alone() {
    for vendor in vendors() {
        let world = world(vendor).await;
        let finds = world.provider.promises(Media::Picture).finds;
        assert_eq!(finds, vendor == Vendor::Replicate, "{vendor:?}");
        let (order, other) = (world.any_order("job-1"), world.any_order("job-2"));
        world.simulator.misbehave_once(Trouble::LoseAnswer);
        world.provider.submit(&order).await;
        assert_eq!(world.provider.find(&other).await.unwrap(), None, "{vendor:?}");
        match world.provider.find(&order).await.unwrap() {
            Some(run) if finds => assert!(world.finish(Media::Picture, &run).await.is_ok()),
            found => assert_eq!((found, finds), (None, false), "{vendor:?}"),
        }
        assert_eq!(world.simulator.submits().len(), 1, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_run_is_stopped_where_that_is_promised() {
    for vendor in vendors() {
        let world = world(vendor).await;
        let mut stopped = 0;
        for order in world.one_of_each() {
            let promises = world.provider.promises(order.media());
            let Submission::Accepted(run) = world.provider.submit(&order).await else {
                assert!(!promises.cancels, "{vendor:?}: what is answered at once cannot be stopped");
                continue;
            };
            let canceled = world.provider.cancel(&run).await;
            if !promises.cancels {
                assert_eq!(canceled, Cancellation::Unsupported, "{vendor:?}");
                continue;
            }
            stopped += 1;
            assert_eq!(canceled, Cancellation::Requested, "{vendor:?}");
            assert_eq!(world.simulator.cancels(), stopped, "{vendor:?}");
            let polled = world.provider.poll(&run).await;
            assert!(matches!(polled, Polled::Canceled | Polled::Failed(_)), "{vendor:?}: {polled:?}");
            // Asked again, it is no error.
            assert!(!matches!(world.provider.cancel(&run).await, Cancellation::Failed(_)), "{vendor:?}");
        }
    }
}

#[tokio::test]
async fn what_has_finished_is_too_late_to_stop_and_its_result_is_there() {
    for vendor in vendors() {
        let world = world(vendor).await;
        for order in world.one_of_each() {
            if !world.provider.promises(order.media()).cancels {
                continue;
            }
            let Submission::Accepted(run) = world.provider.submit(&order).await else {
                panic!("{vendor:?}: it queues")
            };
            world.simulator.finish();
            // fal says so; the others take every cancel.
            let told = if vendor == Vendor::Fal { Cancellation::TooLate } else { Cancellation::Requested };
            assert_eq!(world.provider.cancel(&run).await, told, "{vendor:?}");
            assert_eq!(world.simulator.cancels(), 0, "{vendor:?}");
            assert!(world.finish(order.media(), &run).await.is_ok(), "{vendor:?}");
        }
    }
}

#[tokio::test]
async fn a_result_can_be_fetched_twice_and_costs_nothing() {
    let world = world(Vendor::Runway).await;
    let Submission::Accepted(run) = world.provider.submit(&world.any_order("job-1")).await else {
        panic!("it queues");
    };
    let output = loop {
        match world.provider.poll(&run).await {
            Polled::Running(_) => {}
            Polled::Done(output) => break output,
            other => panic!("{other:?}"),
        }
    };
    let first = world.provider.fetch(Media::Picture, &output).await.unwrap();
    assert_eq!(world.provider.fetch(Media::Picture, &output).await.unwrap(), first);
    assert_eq!(world.simulator.submits().len(), 1);
}

#[tokio::test]
async fn a_refusal_before_acceptance_is_followed_by_success_and_one_charge() {
    for vendor in vendors() {
        let world = world(vendor).await;
        let order = world.any_order("job-1");
        world.simulator.misbehave(Trouble::Down);
        for _ in 0..2 {
            let submission = world.provider.submit(&order).await;
            let Submission::Refused(fault) = submission else { panic!("{vendor:?}: {submission:?}") };
            assert!(fault.is_retryable(), "{vendor:?}");
        }
        world.simulator.behave();
        assert!(world.make(&order).await.is_ok(), "{vendor:?}");
        assert_eq!(world.simulator.accepted("job-1"), 1, "{vendor:?}");
    }
}
