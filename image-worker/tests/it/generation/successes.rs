use std::time::{Duration, Instant};

use domain::asset::MetadataClass;
use domain::job::{JobDocument, JobOperation, JobStatus, Record};
use domain::message::Queue;
use domain::origin::{AiGenerated, DigitalSourceType, Origin};
use futures_util::future::join_all;
use serde_json::json;
use testkit::providers::Vendor;

use super::fixture::{GenerationFixture, Wish, image};
use crate::harness::{DEADLINE, PUBLIC_URL};
use crate::origins::mark;

const OPERATIONS: [JobOperation; 3] = [JobOperation::Generate, JobOperation::Edit, JobOperation::Variations];

/// The origin of a job's first image, as its record states it.
fn shown(record: &Record) -> AiGenerated {
    let JobDocument::Image(job) = record.document(PUBLIC_URL, |_| None) else { panic!("an image job") };
    job.images.expect("has images")[0].ai_generated
}

/// The record as it was stored before outputs had an origin.
fn of_an_earlier_release(record: &Record) -> Record {
    let mut record = record.clone();
    record.outcome.images.iter_mut().for_each(|image| image.ai_generated = None);
    record
}

async fn make_all(vendor: Vendor) {
    let fixture = GenerationFixture::new(vendor).await;
    let _running = fixture.work();
    let wishes = OPERATIONS.into_iter().filter(|operation| fixture.can(*operation));
    let makes = wishes.map(|operation| {
        let prompt = if operation == JobOperation::Variations { "" } else { "a red kite" };
        fixture.make(Wish { operation, prompt, targets: 2 })
    });
    for record in join_all(makes).await {
        let case = format!("{vendor:?} {}: {:?}", record.operation, record.outcome.failure);
        assert_eq!((record.status, record.outcome.images.len()), (JobStatus::Succeeded, 2), "{case}");
        for (position, image) in record.outcome.images.iter().enumerate() {
            assert_eq!(image.node, record.request.targets()[position], "{case}");
            let asset = fixture.harness.asset(&image.asset).await.expect("is stored");
            let name = if record.operation == JobOperation::Variations { "variations" } else { "a-red-kite" };
            assert_eq!(asset.name, format!("{name}-{}.png", position + 1), "{case}");
            assert_eq!(asset.mime_type, image.media_type, "{case}");
            let expected = match record.operation {
                JobOperation::Edit => DigitalSourceType::CompositeWithTrainedAlgorithmicMedia,
                _ => DigitalSourceType::TrainedAlgorithmicMedia,
            };
            let (_, file) = fixture.harness.stored(&image.asset).await;
            assert_eq!((asset.origin, mark(&file)), (Some(Origin::service(expected)), vec![expected.uri()]), "{case}");
            let node = fixture.harness.node(&image.node).await.expect("is there");
            assert_eq!(node.asset.as_ref(), Some(&image.asset), "{case}");
            assert_eq!(fixture.accepted(record.id, position), 1, "{case}");
        }
        let expected = if record.operation == JobOperation::Edit { AiGenerated::Partly } else { AiGenerated::Yes };
        assert_eq!((shown(&record), shown(&of_an_earlier_release(&record))), (expected, expected), "{case}");
        let provenance = fixture.provenance(&record.request.targets()[0]).await;
        assert_eq!(provenance["kind"], "generated", "{case}");
        assert_eq!(provenance["run"], json!(record.id.run_handle()), "{case}");
        let submits = fixture.simulator.submits();
        assert!(submits.iter().any(|submit| provenance["prompt"] == json!(submit.prompt)), "{case}: {provenance}");
        let images = usize::from(record.operation != JobOperation::Generate);
        assert_eq!(provenance["references"].as_array().map(Vec::len), Some(images), "{case}");
    }
    assert_eq!(fixture.simulator.leaks(), 0, "{vendor:?}");
}

testkit::for_every_vendor!(every_provider_makes_what_its_models_can, make_all);

#[tokio::test]
async fn the_embedded_runtime_draws_and_is_charged() {
    let fixture = GenerationFixture::embedded().await;
    let _running = fixture.work();
    let makes = OPERATIONS.map(|operation| fixture.make(Wish { operation, prompt: "a red kite", targets: 2 }));
    for record in join_all(makes).await {
        assert_eq!(record.status, JobStatus::Succeeded, "{:?}", record.outcome.failure);
        let image = &record.outcome.images[0];
        assert_eq!((image.media_type.as_str(), image.width, image.height), ("image/png", 1024, 1024));
        assert_eq!(record.credit_cost, 2);
        // The result of an edit or a variation contains its references.
        let expected = match record.operation {
            JobOperation::Generate => DigitalSourceType::AlgorithmicMedia,
            _ => DigitalSourceType::CompositeSynthetic,
        };
        let (asset, file) = fixture.harness.stored(&image.asset).await;
        assert_eq!((asset.origin, mark(&file)), (Some(Origin::service(expected)), vec![expected.uri()]));
        let shown = (shown(&record), shown(&of_an_earlier_release(&record)));
        assert_eq!(shown, (AiGenerated::No, AiGenerated::Unknown));
        let provenance = fixture.provenance(&image.node).await;
        assert_eq!((&provenance["model"], &provenance["prompt"]), (&json!("sketch"), &json!("a red kite")));
    }
    assert_eq!(fixture.spent().await, 6);
    assert!(fixture.simulator.submits().is_empty());
}

#[tokio::test]
async fn the_parameters_in_a_result_are_not_stored() {
    let fixture = GenerationFixture::new(Vendor::OpenAi).await;
    let _running = fixture.work();
    for (prompt, removed) in [("a kite", &[][..]), ("a kite [[parameters]]", &[MetadataClass::Text])] {
        let record = fixture.make(image(prompt)).await;
        let asset = fixture.harness.asset(&record.outcome.images[0].asset).await.expect("is stored");
        assert_eq!((&asset.metadata_removed[..], asset.original.is_none()), (removed, true), "{prompt}");
        let file = fixture.harness.worker().get(asset.blob_key).await.expect("reads").expect("is there");
        assert_eq!(file.len() as i64, asset.bytes);
        assert!(!file.windows(12).any(|window| window == b"PRIVATE-7731"));
        assert_eq!(file.windows(7).any(|window| window == b"Request"), removed.is_empty(), "unchanged without");
    }
}

#[tokio::test]
async fn a_node_that_showed_something_remembers_it() {
    let fixture = GenerationFixture::embedded().await;
    let _running = fixture.work();
    let first = fixture.make(image("one")).await;
    let earlier = &first.outcome.images[0];
    let id = fixture.start_in(image("two"), vec![earlier.node.clone()]).await;
    let later = fixture.ended(id).await;
    let node = fixture.harness.node(&earlier.node).await.expect("is there");
    assert_eq!(node.asset.as_ref(), Some(&later.outcome.images[0].asset));
    let replaced = &node.server.history[0];
    assert_eq!((&replaced.asset, &replaced.run), (&earlier.asset, &Some(id.into())));
    assert!(fixture.harness.asset(&earlier.asset).await.is_some(), "nothing is deleted");
}

#[tokio::test]
async fn a_run_is_looked_at_no_more_often_than_its_provider_advises() {
    let mut fixture = GenerationFixture::new(Vendor::BlackForestLabs).await;
    fixture.settings.poll_every = None;
    let _running = fixture.work();
    let started = Instant::now();
    let record = fixture.make(image("a kite")).await;
    let (taken, polls) = (started.elapsed(), fixture.simulator.polls());
    assert_eq!(record.status, JobStatus::Succeeded);
    // The provider suggests one second, counted from the submit.
    assert!(taken >= Duration::from_secs(polls as u64), "{polls} polls in {taken:?}");
}

#[tokio::test]
async fn jobs_that_wait_for_their_provider_hold_no_slot() {
    let fixture = GenerationFixture::new(Vendor::Fal).await;
    fixture.simulator.take(Duration::from_secs(3600));
    join_all((0..12).map(|_| fixture.start(image("a kite")))).await;
    let options = taskqueue::RunnerOptions::new(domain::message::Queue::Generation, 2);
    let _running = fixture.harness.run(fixture.images(), options);
    testkit::wait_for("the submits of all jobs", DEADLINE, async || {
        (fixture.simulator.submits().len() == 12).then_some(())
    })
    .await;
}

#[tokio::test]
async fn references_are_brought_into_form_once_there_is_a_place_for_the_call_and_not_before() {
    let mut fixture = GenerationFixture::new(Vendor::OpenAi).await;
    fixture.refer_to_a_gif().await;
    let busy = fixture.keep_busy().await;
    // The loaded file waits for pixel memory.
    let pixels = fixture.harness.pixels.reserve(u64::MAX).await;
    let _running = fixture.work();
    let id = fixture.start(Wish { operation: JobOperation::Edit, prompt: "a kite", targets: 2 }).await;
    fixture.until_parked(Queue::Generation).await;
    drop((busy, pixels));
    assert_eq!(fixture.ended(id).await.status, JobStatus::Succeeded);
    assert_eq!([0, 1].map(|at| fixture.accepted(id, at)), [1, 1]);
}
