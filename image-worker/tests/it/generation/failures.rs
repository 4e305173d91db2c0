use std::time::Duration;

use domain::job::{FailureCode, JobOperation, JobStatus, Record};
use futures_util::future::join_all;
use providers::{Catalogue, Deadlines};
use testkit::providers::{Trouble, Vendor};

use super::studio::{HURRIED, Studio, Wish, failure, for_every_vendor, picture};
use crate::world::png;

/// What a job comes to that meets `trouble`; nothing: it succeeds all the same.
fn expected(vendor: Vendor, trouble: Trouble) -> Option<FailureCode> {
    // What came of a submit can be looked up there, and all went well.
    let found = vendor == Vendor::Replicate;
    Some(match trouble {
        Trouble::RateLimited => FailureCode::ProviderRateLimited,
        Trouble::OutOfCredit | Trouble::Invalid => FailureCode::ProviderRejected,
        // A self-hosted Comfy has no rules about content.
        Trouble::Content if vendor == Vendor::Comfy => FailureCode::ProviderUnavailable,
        Trouble::Content => FailureCode::ProviderRejected,
        Trouble::CutOff | Trouble::HtmlAnswer | Trouble::LoseAnswer | Trouble::Hang if found => return None,
        Trouble::LoseAnswer | Trouble::Hang => FailureCode::ProviderTimeout,
        Trouble::Down
        | Trouble::ServerError
        | Trouble::CutOff
        | Trouble::HtmlAnswer
        | Trouble::HtmlPicture
        | Trouble::ExpiredUrl
        | Trouble::WorkFails => FailureCode::ProviderUnavailable,
    })
}

/// Meets a trouble that its prompt asks for.
async fn meet(studio: &Studio, vendor: Vendor, name: &str, trouble: Trouble) {
    let prompt = format!("a kite [[sim:{name}]]");
    let record = studio.make(picture(&prompt)).await;
    let case = format!("{vendor:?} {name}: {:?}", record.outcome.failure);
    match expected(vendor, trouble) {
        Some(code) => {
            assert_eq!(record.status, JobStatus::Failed, "{case}");
            assert_eq!(failure(&record), (code, code.is_retryable()), "{case}");
            assert!(record.outcome.images.is_empty(), "{case}");
            assert_eq!(record.credit_cost, 0, "{case}");
        }
        None => assert_eq!(record.status, JobStatus::Succeeded, "{case}"),
    }
    assert!(studio.accepted(record.id, 0) <= 1, "{case}: it is paid for once");
    let node = studio.world.node(&record.request.targets()[0]).await.expect("is there");
    assert_eq!(node.asset.is_some(), record.status == JobStatus::Succeeded, "{case}");
}

async fn meet_all(vendor: Vendor) {
    let studio = Studio::new(vendor).await;
    let _running = studio.work();
    let all = Trouble::ALL.into_iter().filter(|(_, trouble)| *trouble != Trouble::Hang);
    join_all(all.map(|(name, trouble)| meet(&studio, vendor, name, trouble))).await;
}

for_every_vendor!(every_trouble_is_told_as_what_it_is, meet_all);

#[tokio::test]
async fn a_provider_that_never_answers_costs_its_deadline_and_nothing_else() {
    let vendors = [Vendor::OpenAi, Vendor::Fal, Vendor::Replicate, Vendor::Comfy].map(async |vendor| {
        let mut studio = Studio::new(vendor).await;
        let short = Duration::from_millis(1500);
        studio.settings.deadlines = Deadlines { result: short, call: short, ..HURRIED.deadlines };
        let _running = studio.work();
        meet(&studio, vendor, "hang", Trouble::Hang).await;
    });
    join_all(vendors).await;
}

#[tokio::test]
async fn what_was_surely_not_accepted_is_submitted_again() {
    for (vendor, trouble) in [(Vendor::Fal, Trouble::Down), (Vendor::OpenAi, Trouble::Down)] {
        let studio = Studio::new(vendor).await;
        for _ in 0..2 {
            studio.simulator.misbehave_once(trouble);
        }
        let _running = studio.work();
        let record = studio.make(picture("a kite")).await;
        assert_eq!(record.status, JobStatus::Succeeded, "{:?}", record.outcome.failure);
        assert_eq!((studio.simulator.submits().len(), studio.accepted(record.id, 0)), (3, 1));
    }
}

#[tokio::test]
async fn a_wish_to_wait_is_followed() {
    let mut studio = Studio::new(Vendor::Replicate).await;
    studio.settings.wait_max = Duration::from_secs(30);
    studio.simulator.misbehave_once(Trouble::RateLimited);
    let _running = studio.work();
    let started = std::time::Instant::now();
    assert_eq!(studio.make(picture("a kite")).await.status, JobStatus::Succeeded);
    assert!(started.elapsed() >= Duration::from_secs(1), "it asked for a second");
}

/// Two outputs, the first of which the provider refuses.
async fn half(studio: &Studio) -> Record {
    studio.simulator.misbehave_once(Trouble::Invalid);
    let _running = studio.work();
    studio.make(Wish { operation: JobOperation::Generate, prompt: "a kite", targets: 2 }).await
}

#[tokio::test]
async fn a_partial_failure_keeps_what_was_made_and_returns_the_rest() {
    for vendor in [Vendor::Compatible, Vendor::Comfy] {
        let studio = Studio::new(vendor).await;
        let record = half(&studio).await;
        assert_eq!(failure(&record), (FailureCode::ProviderRejected, false));
        let message = &record.outcome.failure.as_ref().expect("failed").message;
        assert!(message.starts_with("1 of 2 outputs failed. "), "{message}");
        let [image] = record.outcome.images.as_slice() else { panic!("one was made") };
        for target in record.request.targets() {
            let node = studio.world.node(target).await.expect("is there");
            assert_eq!(node.asset.is_some(), *target == image.node);
        }
        let price = record.credit_cost;
        assert!(price >= 1);
        assert_eq!(studio.spent().await, price, "one output");
    }
}

#[tokio::test]
async fn a_connection_that_is_removed_fails_its_jobs() {
    let studio = Studio::new(Vendor::Fal).await;
    studio.simulator.take(Duration::from_secs(600));
    let _running = studio.work();
    let id = studio.start(picture("a kite")).await;
    studio.until_output_is(id, db::jobs::outputs::OutputState::Submitted).await;
    let connection = studio.connection.expect("has one");
    assert!(db::connections::delete(&mut *studio.world.conn().await, connection).await.expect("deletes"));
    assert_eq!(failure(&studio.ended(id).await), (FailureCode::ProviderAuthenticationFailed, false));
}

#[tokio::test]
async fn a_model_that_is_gone_is_refused() {
    let mut studio = Studio::new(Vendor::OpenAi).await;
    let id = studio.start(picture("a kite")).await;
    let retired: Vec<String> =
        studio.setup.catalogue.entries().map(|it| format!("{}/{}", it.provider, it.id)).collect();
    let file = serde_json::json!({"retired": retired}).to_string();
    studio.setup.catalogue = Catalogue::built_in().and_then(|it| it.extended("none", &file)).expect("retires all");
    let _running = studio.work();
    assert_eq!(failure(&studio.ended(id).await), (FailureCode::ProviderRejected, false));
    assert!(studio.simulator.submits().is_empty());
}

#[tokio::test]
async fn an_output_that_takes_too_long_is_given_up_and_stopped() {
    let mut studio = Studio::new(Vendor::Comfy).await;
    studio.settings.patience = Some(Duration::from_millis(300));
    studio.simulator.take(Duration::from_secs(600));
    let _running = studio.work();
    let record = studio.make(picture("a kite")).await;
    assert_eq!(failure(&record), (FailureCode::ProviderTimeout, true));
    assert_eq!((record.credit_cost, studio.spent().await), (0, 0));
    assert_eq!(studio.simulator.cancels(), 1);
    let orphans = sqlx::query_scalar::<_, i64>("SELECT sum(possible_orphans)::bigint FROM ledger");
    assert_eq!(orphans.fetch_one(studio.world.database.pool()).await.expect("reads"), 1);
}

#[tokio::test]
async fn a_reference_that_cannot_be_read_is_the_pictures_fault() {
    let studio = Studio::embedded().await;
    let mut broken = png(64, 64).to_vec();
    broken.truncate(broken.len() / 2);
    studio.world.execute("DELETE FROM assets WHERE id = 'reference'").await;
    studio.world.upload("reference", "broken.png", broken.into()).await;
    let _running = studio.work();
    let record = studio.make(Wish { operation: JobOperation::Edit, prompt: "a kite", targets: 1 }).await;
    assert_eq!(failure(&record), (FailureCode::ActionInputInvalid, false));
    assert_eq!(studio.spent().await, 0);
}

#[tokio::test]
async fn a_reference_that_is_gone_fails_the_job_before_anything_is_submitted() {
    let studio = Studio::new(Vendor::OpenAi).await;
    studio.world.execute("DELETE FROM assets WHERE id = 'reference'").await;
    let _running = studio.work();
    let record = studio.make(Wish { operation: JobOperation::Edit, prompt: "a kite", targets: 1 }).await;
    assert_eq!(failure(&record), (FailureCode::ActionInputInvalid, false));
    assert!(studio.simulator.submits().is_empty());
}
