//! Tests of what is never paid twice, and what can be canceled or found again.

use providers::{Cancellation, Idempotency, Media, Polled, Submission};
use testkit::providers::{FailureMode, Vendor};

use crate::harness::{harness, vendors};

#[tokio::test]
async fn a_lost_answer_leaves_one_accepted_submit_and_an_unknown_outcome() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        harness.simulator.misbehave_once(FailureMode::LoseAnswer);
        let submission = harness.submit(&harness.any_order("job-1")).await;
        assert!(matches!(submission, Submission::Unknown(_)), "{vendor:?}: {submission:?}");
        assert_eq!(harness.simulator.accepted("job-1"), 1, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_second_submit_is_safe_where_that_is_promised() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        let promised = harness.provider.capabilities(Media::Image).idempotency;
        assert_eq!(promised == Idempotency::Rejected, vendor == Vendor::Comfy, "{vendor:?}");
        if promised != Idempotency::Rejected {
            continue;
        }
        let order = harness.any_order("job-1");
        harness.simulator.misbehave_once(FailureMode::LoseAnswer);
        for _ in 0..2 {
            let submission = harness.submit(&order).await;
            assert!(matches!(submission, Submission::Unknown(_)), "{vendor:?}: {submission:?}");
        }
        assert_eq!(harness.simulator.accepted("job-1"), 1, "{vendor:?}");
        // A refusal releases the key.
        harness.simulator.misbehave_once(FailureMode::RateLimited);
        let order = harness.any_order("job-2");
        assert!(matches!(harness.submit(&order).await, Submission::Refused(_)));
        assert!(harness.make(&order).await.is_ok());
    }
}

#[tokio::test]
async fn a_run_whose_answer_was_lost_is_found_by_its_order_alone() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        let finds = harness.provider.capabilities(Media::Image).finds;
        assert_eq!(finds, vendor == Vendor::Replicate, "{vendor:?}");
        let (order, other) = (harness.any_order("job-1"), harness.any_order("job-2"));
        harness.simulator.misbehave_once(FailureMode::LoseAnswer);
        harness.submit(&order).await;
        assert_eq!(harness.provider.find(&other).await.unwrap(), None, "{vendor:?}");
        match harness.provider.find(&order).await.unwrap() {
            Some(run) if finds => assert!(harness.finish(Media::Image, &run).await.is_ok()),
            found => assert_eq!((found, finds), (None, false), "{vendor:?}"),
        }
        assert_eq!(harness.simulator.submits().len(), 1, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_run_is_stopped_where_that_is_promised() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        let mut stopped = 0;
        for order in harness.one_of_each() {
            let capabilities = harness.provider.capabilities(order.media());
            let Submission::Accepted(run) = harness.submit(&order).await else {
                assert!(!capabilities.cancels, "{vendor:?}: what is answered at once cannot be stopped");
                continue;
            };
            let canceled = harness.provider.cancel(&run).await;
            if !capabilities.cancels {
                assert_eq!(canceled, Cancellation::Unsupported, "{vendor:?}");
                continue;
            }
            stopped += 1;
            assert_eq!(canceled, Cancellation::Requested, "{vendor:?}");
            assert_eq!(harness.simulator.cancels(), stopped, "{vendor:?}");
            let polled = harness.provider.poll(&run).await;
            assert!(matches!(polled, Polled::Canceled | Polled::Failed(_)), "{vendor:?}: {polled:?}");
            // A repeated cancellation is not an error.
            assert!(!matches!(harness.provider.cancel(&run).await, Cancellation::Failed(_)), "{vendor:?}");
        }
    }
}

#[tokio::test]
async fn what_has_finished_is_too_late_to_stop_and_its_result_is_there() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        for order in harness.one_of_each() {
            if !harness.provider.capabilities(order.media()).cancels {
                continue;
            }
            let Submission::Accepted(run) = harness.submit(&order).await else { panic!("{vendor:?}: it queues") };
            harness.simulator.finish();
            // fal reports it; the others accept every cancellation.
            let reported = if vendor == Vendor::Fal { Cancellation::TooLate } else { Cancellation::Requested };
            assert_eq!(harness.provider.cancel(&run).await, reported, "{vendor:?}");
            assert_eq!(harness.simulator.cancels(), 0, "{vendor:?}");
            assert!(harness.finish(order.media(), &run).await.is_ok(), "{vendor:?}");
        }
    }
}

#[tokio::test]
async fn a_result_can_be_fetched_twice_and_costs_nothing() {
    let harness = harness(Vendor::Runway).await;
    let Submission::Accepted(run) = harness.submit(&harness.any_order("job-1")).await else {
        panic!("it queues");
    };
    let output = loop {
        match harness.provider.poll(&run).await {
            Polled::Running(_) => {}
            Polled::Done(output) => break output,
            other => panic!("{other:?}"),
        }
    };
    let first = harness.provider.fetch(Media::Image, &output).await.unwrap();
    assert_eq!(harness.provider.fetch(Media::Image, &output).await.unwrap(), first);
    assert_eq!(harness.simulator.submits().len(), 1);
}

#[tokio::test]
async fn a_refusal_before_acceptance_is_followed_by_success_and_one_charge() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        let order = harness.any_order("job-1");
        harness.simulator.misbehave(FailureMode::Down);
        for _ in 0..2 {
            let submission = harness.submit(&order).await;
            let Submission::Refused(call_error) = submission else { panic!("{vendor:?}: {submission:?}") };
            assert!(call_error.is_retryable(), "{vendor:?}");
        }
        harness.simulator.behave();
        assert!(harness.make(&order).await.is_ok(), "{vendor:?}");
        assert_eq!(harness.simulator.accepted("job-1"), 1, "{vendor:?}");
    }
}
