use std::time::Duration;

use domain::job::{FailureCode, JobOperation, JobStatus, Record};
use futures_util::future::join_all;
use providers::{Catalogue, Deadlines};
use testkit::providers::{FailureMode, Vendor};

use super::fixture::{GenerationFixture, HURRIED, Wish, failure, image};
use crate::harness::png;

/// The expected failure of a job with `failure_mode`; `None` if it succeeds nevertheless.
fn expected(vendor: Vendor, failure_mode: FailureMode) -> Option<FailureCode> {
    // The provider supports lookups of a submit's outcome, and the submit succeeded.
    let found = vendor == Vendor::Replicate;
    Some(match failure_mode {
        FailureMode::RateLimited => FailureCode::ProviderRateLimited,
        FailureMode::OutOfCredit | FailureMode::Invalid => FailureCode::ProviderRejected,
        // A self-hosted Comfy server has no content policy.
        FailureMode::Content if vendor == Vendor::Comfy => FailureCode::ProviderUnavailable,
        FailureMode::Content => FailureCode::ProviderRejected,
        FailureMode::CutOff | FailureMode::HtmlAnswer | FailureMode::LoseAnswer | FailureMode::Hang if found => {
            return None;
        }
        FailureMode::LoseAnswer | FailureMode::Hang => FailureCode::ProviderTimeout,
        FailureMode::Down
        | FailureMode::ServerError
        | FailureMode::CutOff
        | FailureMode::HtmlAnswer
        | FailureMode::HtmlImage
        | FailureMode::ExpiredUrl
        | FailureMode::WorkFails => FailureCode::ProviderUnavailable,
    })
}

/// Runs a job whose prompt triggers a failure in the simulator.
async fn meet(fixture: &GenerationFixture, vendor: Vendor, name: &str, failure_mode: FailureMode) {
    let prompt = format!("a kite [[sim:{name}]]");
    let record = fixture.make(image(&prompt)).await;
    let case = format!("{vendor:?} {name}: {:?}", record.outcome.failure);
    match expected(vendor, failure_mode) {
        Some(code) => {
            assert_eq!(record.status, JobStatus::Failed, "{case}");
            assert_eq!(failure(&record), (code, code.is_retryable()), "{case}");
            assert!(record.outcome.images.is_empty(), "{case}");
            assert_eq!(record.credit_cost, 0, "{case}");
        }
        None => assert_eq!(record.status, JobStatus::Succeeded, "{case}"),
    }
    assert!(fixture.accepted(record.id, 0) <= 1, "{case}: it is paid for once");
    let node = fixture.harness.node(&record.request.targets()[0]).await.expect("is there");
    assert_eq!(node.asset.is_some(), record.status == JobStatus::Succeeded, "{case}");
}

async fn meet_all(vendor: Vendor) {
    let fixture = GenerationFixture::new(vendor).await;
    let _running = fixture.work();
    let all = FailureMode::ALL.into_iter().filter(|(_, failure_mode)| *failure_mode != FailureMode::Hang);
    join_all(all.map(|(name, failure_mode)| meet(&fixture, vendor, name, failure_mode))).await;
}

testkit::for_every_vendor!(every_failure_is_reported_as_what_it_is, meet_all);

#[tokio::test]
async fn a_provider_that_never_answers_costs_its_deadline_and_nothing_else() {
    let vendors = [Vendor::OpenAi, Vendor::Fal, Vendor::Replicate, Vendor::Comfy].map(async |vendor| {
        let mut fixture = GenerationFixture::new(vendor).await;
        let short = Duration::from_millis(1500);
        fixture.settings.deadlines = Deadlines { result: short, call: short, ..HURRIED.deadlines };
        let _running = fixture.work();
        meet(&fixture, vendor, "hang", FailureMode::Hang).await;
    });
    join_all(vendors).await;
}

#[tokio::test]
async fn what_was_surely_not_accepted_is_submitted_again() {
    for (vendor, failure_mode) in [(Vendor::Fal, FailureMode::Down), (Vendor::OpenAi, FailureMode::Down)] {
        let fixture = GenerationFixture::new(vendor).await;
        for _ in 0..2 {
            fixture.simulator.misbehave_once(failure_mode);
        }
        let _running = fixture.work();
        let record = fixture.make(image("a kite")).await;
        assert_eq!(record.status, JobStatus::Succeeded, "{:?}", record.outcome.failure);
        assert_eq!((fixture.simulator.submits().len(), fixture.accepted(record.id, 0)), (3, 1));
    }
}

#[tokio::test]
async fn a_wish_to_wait_is_followed() {
    let mut fixture = GenerationFixture::new(Vendor::Replicate).await;
    fixture.settings.wait_max = Duration::from_secs(30);
    fixture.simulator.misbehave_once(FailureMode::RateLimited);
    let _running = fixture.work();
    let started = std::time::Instant::now();
    assert_eq!(fixture.make(image("a kite")).await.status, JobStatus::Succeeded);
    assert!(started.elapsed() >= Duration::from_secs(1), "it asked for a second");
}

/// A job with two outputs, the first of which the provider rejects.
async fn half(fixture: &GenerationFixture) -> Record {
    fixture.simulator.misbehave_once(FailureMode::Invalid);
    let _running = fixture.work();
    fixture.make(Wish { operation: JobOperation::Generate, prompt: "a kite", targets: 2 }).await
}

#[tokio::test]
async fn a_partial_failure_keeps_what_was_made_and_returns_the_rest() {
    for vendor in [Vendor::Compatible, Vendor::Comfy] {
        let fixture = GenerationFixture::new(vendor).await;
        let record = half(&fixture).await;
        assert_eq!(failure(&record), (FailureCode::ProviderRejected, false));
        let message = &record.outcome.failure.as_ref().expect("failed").message;
        assert!(message.starts_with("1 of 2 outputs failed. "), "{message}");
        let [image] = record.outcome.images.as_slice() else { panic!("one was made") };
        for target in record.request.targets() {
            let node = fixture.harness.node(target).await.expect("is there");
            assert_eq!(node.asset.is_some(), *target == image.node);
        }
        let price = record.credit_cost;
        assert!(price >= 1);
        assert_eq!(fixture.spent().await, price, "one output");
    }
}

#[tokio::test]
async fn a_connection_that_is_removed_fails_its_jobs() {
    let fixture = GenerationFixture::new(Vendor::Fal).await;
    fixture.simulator.take(Duration::from_secs(600));
    let _running = fixture.work();
    let id = fixture.start(image("a kite")).await;
    fixture.until_output_is(id, db::jobs::outputs::OutputState::Submitted).await;
    let connection = fixture.connection.expect("has one");
    assert!(
        db::connections::delete(&mut *fixture.harness.conn().await, connection, None).await.expect("deletes").is_some()
    );
    assert_eq!(failure(&fixture.ended(id).await), (FailureCode::ProviderAuthenticationFailed, false));
}

#[tokio::test]
async fn a_model_that_is_gone_is_refused() {
    let mut fixture = GenerationFixture::new(Vendor::OpenAi).await;
    let id = fixture.start(image("a kite")).await;
    let retired: Vec<String> =
        fixture.setup.catalogue.entries().map(|it| format!("{}/{}", it.provider, it.id)).collect();
    let file = serde_json::json!({"retired": retired}).to_string();
    fixture.setup.catalogue = Catalogue::built_in().and_then(|it| it.extended("none", &file)).expect("retires all");
    let _running = fixture.work();
    assert_eq!(failure(&fixture.ended(id).await), (FailureCode::ProviderRejected, false));
    assert!(fixture.simulator.submits().is_empty());
}

#[tokio::test]
async fn an_output_that_takes_too_long_is_given_up_and_stopped() {
    let mut fixture = GenerationFixture::new(Vendor::Comfy).await;
    fixture.settings.patience = Some(Duration::from_millis(300));
    fixture.simulator.take(Duration::from_secs(600));
    let _running = fixture.work();
    let record = fixture.make(image("a kite")).await;
    assert_eq!(failure(&record), (FailureCode::ProviderTimeout, true));
    assert_eq!((record.credit_cost, fixture.spent().await), (0, 0));
    assert_eq!(fixture.simulator.cancels(), 1);
    let orphans = sqlx::query_scalar::<_, i64>("SELECT sum(possible_orphans)::bigint FROM ledger");
    assert_eq!(orphans.fetch_one(fixture.harness.database.pool()).await.expect("reads"), 1);
}

#[tokio::test]
async fn a_refused_poll_says_nothing_of_the_run() {
    let fixture = GenerationFixture::new(Vendor::Fal).await;
    fixture.simulator.take(Duration::from_secs(600));
    let _running = fixture.work();
    let id = fixture.start(image("a kite")).await;
    fixture.until_output_is(id, db::jobs::outputs::OutputState::Submitted).await;
    // The run is at the former base URL, which does not get the key any more and refuses the poll.
    fixture.harness.execute("UPDATE provider_connections SET base_url = 'http://127.0.0.1:9'").await;
    assert_eq!(failure(&fixture.ended(id).await), (FailureCode::ProviderAuthenticationFailed, false));
    assert_eq!((fixture.orphans().await, fixture.accepted(id, 0)), (1, 1));

    // A provider that answers about the run leaves nothing open.
    let fixture = GenerationFixture::new(Vendor::Fal).await;
    fixture.simulator.misbehave_once(FailureMode::WorkFails);
    let _running = fixture.work();
    assert_eq!(failure(&fixture.make(image("a kite")).await), (FailureCode::ProviderUnavailable, true));
    assert_eq!(fixture.orphans().await, 0);
}

#[tokio::test]
async fn a_reference_that_cannot_be_read_is_the_images_fault() {
    let fixture = GenerationFixture::embedded().await;
    let mut broken = png(64, 64).to_vec();
    broken.truncate(broken.len() / 2);
    fixture.harness.execute("DELETE FROM assets WHERE id = 'reference'").await;
    fixture.harness.upload("reference", "broken.png", broken.into()).await;
    let _running = fixture.work();
    let record = fixture.make(Wish { operation: JobOperation::Edit, prompt: "a kite", targets: 1 }).await;
    assert_eq!(failure(&record), (FailureCode::ActionInputInvalid, false));
    assert_eq!(fixture.spent().await, 0);
}

#[tokio::test]
async fn a_reference_that_is_gone_fails_the_job_before_anything_is_submitted() {
    let fixture = GenerationFixture::new(Vendor::OpenAi).await;
    fixture.harness.execute("DELETE FROM assets WHERE id = 'reference'").await;
    let _running = fixture.work();
    let record = fixture.make(Wish { operation: JobOperation::Edit, prompt: "a kite", targets: 1 }).await;
    assert_eq!(failure(&record), (FailureCode::ActionInputInvalid, false));
    assert!(fixture.simulator.submits().is_empty());
}
