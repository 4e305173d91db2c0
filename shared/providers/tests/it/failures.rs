//! Tests of each adapter, capability and kind of failure: the failure code, whether it is
//! retryable, and whether work may have been started.

use std::time::Duration;

use domain::job::FailureCode;
use domain::model::Capability;
use providers::{CallError, Cancellation, Class, Deadlines, Media, Output, Polled, Submission};
use testkit::providers::{FailureMode, SIMULATOR_KEY, Simulator, Vendor};

use crate::harness::{Harness, PATIENCE, harness, order, provider, vendors};

/// The stage at which an error occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The submit, which was certainly not accepted.
    Refused,
    /// The submit, which may have been accepted.
    Unknown,
    /// The run, after the submit was accepted.
    Run,
    /// The download of the result.
    Fetch,
}

/// The error that a simulated failure must produce.
fn expected(vendor: Vendor, queues: bool, failure_mode: FailureMode) -> (Stage, Class) {
    use Stage::{Fetch, Refused, Run, Unknown};
    let work = if queues { Run } else { Unknown };
    match failure_mode {
        FailureMode::RateLimited => (Refused, Class::RateLimited),
        FailureMode::OutOfCredit => (Refused, Class::OutOfCredit),
        FailureMode::Invalid => (Refused, Class::Invalid),
        FailureMode::Down => (Refused, Class::Unavailable),
        // A self-hosted Comfy server has no content policy.
        FailureMode::Content if vendor == Vendor::Comfy => (Run, Class::Unavailable),
        FailureMode::Content => (if queues { Run } else { Refused }, Class::Content),
        FailureMode::ServerError | FailureMode::CutOff | FailureMode::HtmlAnswer => (Unknown, Class::Unavailable),
        FailureMode::LoseAnswer | FailureMode::Hang => (Unknown, Class::Timeout),
        FailureMode::HtmlImage => (Fetch, Class::Unavailable),
        // If the answer contains the image, the simulator omits it.
        FailureMode::ExpiredUrl => (if queues { Fetch } else { Unknown }, Class::Unavailable),
        FailureMode::WorkFails => (work, Class::Unavailable),
    }
}

fn code(class: Class) -> (FailureCode, bool) {
    match class {
        Class::Authentication => (FailureCode::ProviderAuthenticationFailed, false),
        Class::OutOfCredit | Class::Content | Class::Invalid => (FailureCode::ProviderRejected, false),
        Class::RateLimited => (FailureCode::ProviderRateLimited, true),
        Class::Timeout => (FailureCode::ProviderTimeout, true),
        Class::Unavailable => (FailureCode::ProviderUnavailable, true),
        Class::Runtime => (FailureCode::RuntimeFailed, false),
    }
}

/// Runs all stages and returns where it failed.
async fn fail(harness: &Harness, order: &providers::Order) -> (Stage, CallError) {
    let output = match harness.submit(order).await {
        Submission::Refused(call_error) => return (Stage::Refused, call_error),
        Submission::Unknown(call_error) => return (Stage::Unknown, call_error),
        Submission::Done(output) | Submission::Finished(_, output) => output,
        Submission::Accepted(run) => loop {
            match harness.provider.poll(&run).await {
                Polled::Running(_) => {}
                Polled::Done(output) => break output,
                Polled::Failed(call_error) => return (Stage::Run, call_error),
                other => panic!("{other:?}"),
            }
        },
    };
    (Stage::Fetch, harness.provider.fetch(order.media(), &output).await.expect_err("a failure was asked for"))
}

async fn check(harness: &Harness, vendor: Vendor, failure_mode: FailureMode) {
    for &capability in Capability::ALL {
        let Some(model) = harness.model(capability) else { continue };
        let media = if capability.is_video() { Media::Video } else { Media::Image };
        let queues = harness.provider.capabilities(media).queues;
        let key = format!("{capability}-{failure_mode:?}");
        let before = harness.simulator.submits().len();
        harness.simulator.misbehave_once(failure_mode);
        let (stage, call_error) = fail(harness, &order(model, capability, &key)).await;
        let case = format!("{vendor:?} {capability} {failure_mode:?}: {call_error:?}");

        assert_eq!((stage, call_error.class), expected(vendor, queues, failure_mode), "{case}");
        let failure = call_error.failure();
        assert_eq!((failure.code, failure.retryable), code(call_error.class), "{case}");
        assert_eq!(call_error.maybe_accepted, stage == Stage::Unknown, "{case}");
        assert!(failure.provider_status.is_none_or(|status| (400..=599).contains(&status)), "{case}");
        for secret in [SIMULATOR_KEY, harness.simulator.url(), "127.0.0.1"] {
            assert!(!format!("{failure:?}{call_error:?}").contains(secret), "{case}");
        }
        assert_eq!(harness.simulator.submits().len(), before + 1, "{case}: nothing is repeated");
        // Without a run, failing work is a server error.
        let begun = queues || failure_mode != FailureMode::WorkFails;
        let accepted = stage != Stage::Refused && begun;
        // Some providers refuse content before they start, some afterwards. Both are reported as a
        // refusal.
        if failure_mode != FailureMode::Content {
            assert_eq!(harness.simulator.accepted(&key), usize::from(accepted), "{case}");
        }
    }
}

#[tokio::test]
async fn every_failure_is_reported_as_its_failure_code() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        for (_, failure_mode) in
            FailureMode::ALL.into_iter().filter(|(_, failure_mode)| *failure_mode != FailureMode::Hang)
        {
            check(&harness, vendor, failure_mode).await;
        }
        assert_eq!(harness.simulator.leaks(), 0, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_submit_that_is_never_answered_ends_at_its_deadline() {
    for vendor in vendors() {
        let mut harness = harness(vendor).await;
        let short = Duration::from_millis(700);
        let deadlines = Deadlines { result: short, call: short, ..PATIENCE };
        harness.provider = provider(vendor, harness.simulator.url(), SIMULATOR_KEY, deadlines);
        check(&harness, vendor, FailureMode::Hang).await;
    }
}

#[tokio::test]
async fn a_providers_wish_to_wait_is_passed_on() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        harness.simulator.misbehave_once(FailureMode::RateLimited);
        let Submission::Refused(call_error) = harness.submit(&harness.any_order("job-1")).await else {
            panic!("{vendor:?} refuses");
        };
        let wait = match vendor {
            Vendor::Runway => None,
            Vendor::Stability => Some(Duration::from_secs(60)),
            _ => Some(Duration::from_secs(1)),
        };
        assert_eq!(call_error.retry_after, wait, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_wrong_key_is_an_authentication_failure_and_is_quoted_nowhere() {
    let wrong = "wrong-key-0123456789";
    for vendor in vendors().filter(|vendor| !matches!(vendor, Vendor::Compatible | Vendor::Comfy)) {
        let mut harness = harness(vendor).await;
        harness.provider = provider(vendor, harness.simulator.url(), wrong, PATIENCE);
        for &capability in Capability::ALL {
            let Some(model) = harness.model(capability) else { continue };
            let Submission::Refused(call_error) = harness.submit(&order(model, capability, "job-1")).await else {
                panic!("{vendor:?} refuses");
            };
            assert_eq!(
                call_error.failure().code,
                FailureCode::ProviderAuthenticationFailed,
                "{vendor:?}: {call_error:?}"
            );
            assert!(
                !call_error.failure().retryable && !format!("{call_error:?}").contains(wrong),
                "{vendor:?}: {call_error:?}"
            );
        }
        assert!(harness.simulator.submits().is_empty(), "{vendor:?}");
    }
}

#[tokio::test]
async fn a_provider_that_is_not_there_was_surely_not_asked() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    for vendor in vendors() {
        let mut harness = harness(vendor).await;
        harness.provider = provider(vendor, &format!("http://127.0.0.1:{port}"), SIMULATOR_KEY, PATIENCE);
        let submission = harness.submit(&harness.any_order("job-1")).await;
        let Submission::Refused(call_error) = submission else { panic!("{vendor:?}: {submission:?}") };
        assert_eq!(call_error.failure().code, FailureCode::ProviderUnavailable, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_asked_after_is_not_lost() {
    let harness = harness(Vendor::Replicate).await;
    let Submission::Accepted(mut run) = harness.submit(&harness.any_order("job-1")).await else {
        panic!("it queues");
    };
    let there = run.poll.clone();
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    run.poll.set_port(Some(port)).unwrap();
    assert!(matches!(harness.provider.poll(&run).await, Polled::Unavailable(_)));
    run.poll = there;
    assert!(harness.finish(Media::Image, &run).await.is_ok());
}

#[tokio::test]
async fn a_run_that_is_gone_has_failed() {
    for vendor in [Vendor::Replicate, Vendor::Fal, Vendor::BlackForestLabs, Vendor::Runway, Vendor::Comfy] {
        let harness = harness(vendor).await;
        let Submission::Accepted(mut run) = harness.submit(&harness.any_order("job-1")).await else {
            panic!("{vendor:?} queues");
        };
        run.poll = run.poll.as_str().replace(&run.id, "00000000-0000-4000-8000-000000000000").parse().unwrap();
        let polled = harness.provider.poll(&run).await;
        let Polled::Failed(call_error) = polled else { panic!("{vendor:?}: {polled:?}") };
        assert_eq!(call_error.class, Class::Unavailable, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_run_that_finished_with_nothing_has_failed() {
    let harness = harness(Vendor::Fal).await;
    let Submission::Accepted(mut run) = harness.submit(&harness.any_order("job-1")).await else {
        panic!("it queues");
    };
    harness.simulator.finish();
    let polled = harness.provider.poll(&run).await;
    let Polled::Done(Output::Remote(image)) = polled else { panic!("{polled:?}") };

    // An answer of the protocol that names no result: the state.
    run.result = Some(run.poll.clone());
    let polled = harness.provider.poll(&run).await;
    let Polled::Failed(call_error) = polled else { panic!("{polled:?}") };
    assert_eq!((call_error.class, call_error.maybe_accepted), (Class::Unavailable, false));

    // An answer with status 200 that is not of the protocol, as an error page is.
    run.result = Some(image);
    let polled = harness.provider.poll(&run).await;
    assert!(matches!(polled, Polled::Unavailable(_)), "{polled:?}");
}

#[tokio::test]
async fn a_former_base_does_not_get_the_present_key() {
    for vendor in [Vendor::Replicate, Vendor::Fal, Vendor::BlackForestLabs, Vendor::Runway] {
        let harness = harness(vendor).await;
        let Submission::Accepted(run) = harness.submit(&harness.any_order("job-1")).await else {
            panic!("{vendor:?} queues");
        };
        // The former host accepts the present key, so a call with it would succeed there.
        let present = Simulator::start(vendor).await;
        let moved = provider(vendor, present.url(), SIMULATOR_KEY, PATIENCE);

        let polled = moved.poll(&run).await;
        let Polled::Failed(call_error) = polled else { panic!("{vendor:?}: {polled:?}") };
        assert_eq!(call_error.class, Class::Authentication, "{vendor:?}: {call_error:?}");
        let canceled = moved.cancel(&run).await;
        let cancels = moved.capabilities(Media::Image).cancels;
        assert_eq!(matches!(canceled, Cancellation::Failed(_)), cancels, "{vendor:?}: {canceled:?}");
        assert_eq!((harness.simulator.polls(), harness.simulator.cancel_requests()), (0, 0), "{vendor:?}");

        assert!(matches!(harness.provider.poll(&run).await, Polled::Running(_)), "{vendor:?}");
    }
}
