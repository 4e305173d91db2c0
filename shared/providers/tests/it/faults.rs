//! Each adapter, each capability, each way to fail: the failure code, whether it is retryable, and whether the work may
//! have been begun.

use std::time::Duration;

use domain::job::FailureCode;
use domain::model::Capability;
use providers::{Class, Deadlines, Fault, Media, Polled, Submission};
use testkit::providers::{SIMULATOR_KEY, Trouble, Vendor};

use crate::world::{PATIENCE, World, order, provider, vendors, world};

/// When a fault shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// At the submit, which was surely not accepted.
    Refused,
    /// At the submit, which may have been accepted.
    Unknown,
    /// In the run.
    Run,
    /// In fetching the result.
    Fetch,
}

/// What a trouble must be told as.
fn expected(vendor: Vendor, queues: bool, trouble: Trouble) -> (Stage, Class) {
    use Stage::{Fetch, Refused, Run, Unknown};
    let work = if queues { Run } else { Unknown };
    match trouble {
        Trouble::RateLimited => (Refused, Class::RateLimited),
        Trouble::OutOfCredit => (Refused, Class::OutOfCredit),
        Trouble::Invalid => (Refused, Class::Invalid),
        Trouble::Down => (Refused, Class::Unavailable),
        // A self-hosted Comfy has no rules about content.
        Trouble::Content if vendor == Vendor::Comfy => (Run, Class::Unavailable),
        Trouble::Content => (if queues { Run } else { Refused }, Class::Content),
        Trouble::ServerError | Trouble::CutOff | Trouble::HtmlAnswer => (Unknown, Class::Unavailable),
        Trouble::LoseAnswer | Trouble::Hang => (Unknown, Class::Timeout),
        Trouble::HtmlPicture => (Fetch, Class::Unavailable),
        // Where the picture is in the answer, the simulator leaves it out.
        Trouble::ExpiredUrl => (if queues { Fetch } else { Unknown }, Class::Unavailable),
        Trouble::WorkFails => (work, Class::Unavailable),
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

/// Goes the whole way and says where it ended.
async fn fail(world: &World, order: &providers::Order) -> (Stage, Fault) {
    let output = match world.provider.submit(order).await {
        Submission::Refused(fault) => return (Stage::Refused, fault),
        Submission::Unknown(fault) => return (Stage::Unknown, fault),
        Submission::Done(output) => output,
        Submission::Accepted(run) => loop {
            match world.provider.poll(&run).await {
                Polled::Running(_) => {}
                Polled::Done(output) => break output,
                Polled::Failed(fault) => return (Stage::Run, fault),
                other => panic!("{other:?}"),
            }
        },
    };
    (Stage::Fetch, world.provider.fetch(order.media(), &output).await.expect_err("trouble was asked for"))
}

async fn check(world: &World, vendor: Vendor, trouble: Trouble) {
    for &capability in Capability::ALL {
        let Some(model) = world.model(capability) else { continue };
        let media = if capability.is_video() { Media::Video } else { Media::Picture };
        let queues = world.provider.promises(media).queues;
        let key = format!("{capability}-{trouble:?}");
        let before = world.simulator.submits().len();
        world.simulator.misbehave_once(trouble);
        let (stage, fault) = fail(world, &order(model, capability, &key)).await;
        let case = format!("{vendor:?} {capability} {trouble:?}: {fault:?}");

        assert_eq!((stage, fault.class), expected(vendor, queues, trouble), "{case}");
        let failure = fault.failure();
        assert_eq!((failure.code, failure.retryable), code(fault.class), "{case}");
        assert_eq!(fault.maybe_accepted, stage == Stage::Unknown, "{case}");
        assert!(failure.provider_status.is_none_or(|status| (400..=599).contains(&status)), "{case}");
        for secret in [SIMULATOR_KEY, world.simulator.url(), "127.0.0.1"] {
            assert!(!format!("{failure:?}{fault:?}").contains(secret), "{case}");
        }
        assert_eq!(world.simulator.submits().len(), before + 1, "{case}: nothing is repeated");
        // Where there is no run, work that fails is an error of the server.
        let begun = queues || trouble != Trouble::WorkFails;
        let accepted = stage != Stage::Refused && begun;
        // Some refuse content before they begin, some after; either way it is told as a refusal.
        if trouble != Trouble::Content {
            assert_eq!(world.simulator.accepted(&key), usize::from(accepted), "{case}");
        }
    }
}

#[tokio::test]
async fn every_trouble_is_told_as_its_failure_code() {
    for vendor in vendors() {
        let world = world(vendor).await;
        for (_, trouble) in Trouble::ALL.into_iter().filter(|(_, trouble)| *trouble != Trouble::Hang) {
            check(&world, vendor, trouble).await;
        }
        assert_eq!(world.simulator.leaks(), 0, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_submit_that_is_never_answered_ends_at_its_deadline() {
    for vendor in vendors() {
        let mut world = world(vendor).await;
        let short = Duration::from_millis(700);
        let deadlines = Deadlines { result: short, call: short, ..PATIENCE };
        world.provider = provider(vendor, world.simulator.url(), SIMULATOR_KEY, deadlines);
        check(&world, vendor, Trouble::Hang).await;
    }
}

#[tokio::test]
async fn a_providers_wish_to_wait_is_passed_on() {
    for vendor in vendors() {
        let world = world(vendor).await;
        world.simulator.misbehave_once(Trouble::RateLimited);
        let Submission::Refused(fault) = world.provider.submit(&world.any_order("job-1")).await else {
            panic!("{vendor:?} refuses");
        };
        let wait = match vendor {
            Vendor::Runway => None,
            Vendor::Stability => Some(Duration::from_secs(60)),
            _ => Some(Duration::from_secs(1)),
        };
        assert_eq!(fault.retry_after, wait, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_wrong_key_is_an_authentication_failure_and_is_quoted_nowhere() {
    let wrong = "wrong-key-0123456789";
    for vendor in vendors().filter(|vendor| !matches!(vendor, Vendor::Compatible | Vendor::Comfy)) {
        let mut world = world(vendor).await;
        world.provider = provider(vendor, world.simulator.url(), wrong, PATIENCE);
        for &capability in Capability::ALL {
            let Some(model) = world.model(capability) else { continue };
            let Submission::Refused(fault) = world.provider.submit(&order(model, capability, "job-1")).await else {
                panic!("{vendor:?} refuses");
            };
            assert_eq!(fault.failure().code, FailureCode::ProviderAuthenticationFailed, "{vendor:?}: {fault:?}");
            assert!(!fault.failure().retryable && !format!("{fault:?}").contains(wrong), "{vendor:?}: {fault:?}");
        }
        assert!(world.simulator.submits().is_empty(), "{vendor:?}");
    }
}

#[tokio::test]
async fn a_provider_that_is_not_there_was_surely_not_asked() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    for vendor in vendors() {
        let mut world = world(vendor).await;
        world.provider = provider(vendor, &format!("http://127.0.0.1:{port}"), SIMULATOR_KEY, PATIENCE);
        let submission = world.provider.submit(&world.any_order("job-1")).await;
        let Submission::Refused(fault) = submission else { panic!("{vendor:?}: {submission:?}") };
        assert_eq!(fault.failure().code, FailureCode::ProviderUnavailable, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_asked_after_is_not_lost() {
    let world = world(Vendor::Replicate).await;
    let Submission::Accepted(mut run) = world.provider.submit(&world.any_order("job-1")).await else {
        panic!("it queues");
    };
    let there = run.poll.clone();
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    run.poll.set_port(Some(port)).unwrap();
    assert!(matches!(world.provider.poll(&run).await, Polled::Trouble(_)));
    run.poll = there;
    assert!(world.finish(Media::Picture, &run).await.is_ok());
}

#[tokio::test]
async fn a_run_that_is_gone_has_failed() {
    for vendor in [Vendor::Replicate, Vendor::Fal, Vendor::BlackForestLabs, Vendor::Runway, Vendor::Comfy] {
        let world = world(vendor).await;
        let Submission::Accepted(mut run) = world.provider.submit(&world.any_order("job-1")).await else {
            panic!("{vendor:?} queues");
        };
        run.poll = run.poll.as_str().replace(&run.id, "00000000-0000-4000-8000-000000000000").parse().unwrap();
        let polled = world.provider.poll(&run).await;
        let Polled::Failed(fault) = polled else { panic!("{vendor:?}: {polled:?}") };
        assert_eq!(fault.class, Class::Unavailable, "{vendor:?}");
    }
}
