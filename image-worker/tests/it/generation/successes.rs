use std::time::{Duration, Instant};

use domain::job::{JobOperation, JobStatus};
use futures_util::future::join_all;
use serde_json::json;
use testkit::providers::Vendor;

use super::studio::{Studio, Wish, for_every_vendor, picture};

const OPERATIONS: [JobOperation; 3] = [JobOperation::Generate, JobOperation::Edit, JobOperation::Variations];

async fn make_all(vendor: Vendor) {
    let studio = Studio::new(vendor).await;
    let _running = studio.work();
    let wishes = OPERATIONS.into_iter().filter(|operation| studio.can(*operation));
    let makes = wishes.map(|operation| {
        let prompt = if operation == JobOperation::Variations { "" } else { "a red kite" };
        studio.make(Wish { operation, prompt, targets: 2 })
    });
    for record in join_all(makes).await {
        let case = format!("{vendor:?} {}: {:?}", record.operation, record.outcome.failure);
        assert_eq!((record.status, record.outcome.images.len()), (JobStatus::Succeeded, 2), "{case}");
        for (position, image) in record.outcome.images.iter().enumerate() {
            assert_eq!(image.node, record.request.targets()[position], "{case}");
            let asset = studio.world.asset(&image.asset).await.expect("is stored");
            assert_eq!(asset.name, format!("{}-{}.png", record.operation, position + 1), "{case}");
            assert_eq!(asset.mime_type, image.media_type, "{case}");
            let node = studio.world.node(&image.node).await.expect("is there");
            assert_eq!(node.asset.as_ref(), Some(&image.asset), "{case}");
            assert_eq!(studio.accepted(record.id, position), 1, "{case}");
        }
        let provenance = studio.provenance(&record.request.targets()[0]).await;
        assert_eq!(provenance["kind"], "generated", "{case}");
        assert_eq!(provenance["run"], json!(record.id.run_handle()), "{case}");
        let submits = studio.simulator.submits();
        assert!(submits.iter().any(|submit| provenance["prompt"] == json!(submit.prompt)), "{case}: {provenance}");
        let pictures = usize::from(record.operation != JobOperation::Generate);
        assert_eq!(provenance["references"].as_array().map(Vec::len), Some(pictures), "{case}");
    }
    assert_eq!(studio.simulator.leaks(), 0, "{vendor:?}");
}

for_every_vendor!(every_provider_makes_what_its_models_can, make_all);

#[tokio::test]
async fn the_embedded_runtime_draws_and_is_charged() {
    let studio = Studio::embedded().await;
    let _running = studio.work();
    let makes = OPERATIONS.map(|operation| studio.make(Wish { operation, prompt: "a red kite", targets: 2 }));
    for record in join_all(makes).await {
        assert_eq!(record.status, JobStatus::Succeeded, "{:?}", record.outcome.failure);
        let image = &record.outcome.images[0];
        assert_eq!((image.media_type.as_str(), image.width, image.height), ("image/png", 1024, 1024));
        assert_eq!(record.credit_cost, 2);
        let provenance = studio.provenance(&image.node).await;
        assert_eq!((&provenance["model"], &provenance["prompt"]), (&json!("sketch"), &json!("a red kite")));
    }
    assert_eq!(studio.spent().await, 6);
    assert!(studio.simulator.submits().is_empty());
}

#[tokio::test]
async fn a_node_that_showed_something_remembers_it() {
    let studio = Studio::embedded().await;
    let _running = studio.work();
    let first = studio.make(picture("one")).await;
    let earlier = &first.outcome.images[0];
    let id = studio.start_in(picture("two"), vec![earlier.node.clone()]).await;
    let later = studio.ended(id).await;
    let node = studio.world.node(&earlier.node).await.expect("is there");
    assert_eq!(node.asset.as_ref(), Some(&later.outcome.images[0].asset));
    let history = &node.server["history"];
    assert_eq!((&history[0]["asset"], &history[0]["run"]), (&json!(earlier.asset), &json!(id.run_handle())));
    assert!(studio.world.asset(&earlier.asset).await.is_some(), "nothing is deleted");
}

#[tokio::test]
async fn a_run_is_looked_at_no_more_often_than_its_provider_advises() {
    let mut studio = Studio::new(Vendor::BlackForestLabs).await;
    studio.settings.poll_every = None;
    let _running = studio.work();
    let started = Instant::now();
    let record = studio.make(picture("a kite")).await;
    let (taken, polls) = (started.elapsed(), studio.simulator.polls());
    assert_eq!(record.status, JobStatus::Succeeded);
    // It advises a second, from the submit on.
    assert!(taken >= Duration::from_secs(polls as u64), "{polls} polls in {taken:?}");
}

/// The goal of issue 6; run by hand: `--run-ignored only`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn two_hundred_jobs_of_five_seconds() {
    for vendor in [Vendor::Fal, Vendor::OpenAi] {
        let mut studio = Studio::new(vendor).await;
        studio.settings = image_worker::jobs::generation::Settings::default();
        studio.simulator.take(Duration::from_secs(5));
        let ids = join_all((0..200).map(|_| studio.start(picture("a kite")))).await;
        let mut generator = studio.generator();
        generator.calls = image_worker::jobs::generation::Calls::new(200);
        generator.memory = image_worker::jobs::generation::Memory::new(512 << 20);
        let started = Instant::now();
        let options = spine::RunnerOptions::new(domain::message::Queue::Generation, 200);
        let _running = studio.world.run(generator, options);
        for id in ids {
            let record = testkit::wait_for("the end", Duration::from_secs(120), async || {
                Some(studio.world.job(id).await).filter(|job| job.status.is_terminal())
            });
            assert_eq!(record.await.status, JobStatus::Succeeded);
        }
        let status = std::fs::read_to_string("/proc/self/status").expect("reads");
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).expect("is told").to_owned();
        println!("{vendor:?}: {:?}, {peak} (simulator and test included)", started.elapsed());
    }
}
