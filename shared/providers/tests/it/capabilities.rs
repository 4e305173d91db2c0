//! Every model of the catalogue, at everything that it declares.

use domain::graph::Role;
use domain::model::Capability;
use providers::{Artifact, Polled, Submission};
use testkit::providers::Vendor;

use crate::world::{order, picture, vendors, world};

/// Width and height out of a PNG's header.
fn size(artifact: &Artifact) -> (u32, u32) {
    let side = |at: usize| u32::from_be_bytes(artifact.bytes[at..at + 4].try_into().unwrap());
    (side(16), side(20))
}

#[tokio::test]
async fn every_model_makes_a_picture_with_every_capability() {
    for vendor in vendors() {
        let world = world(vendor).await;
        assert!(!world.models.is_empty(), "{vendor:?}");
        let mut orders = 0;
        for model in &world.models {
            for capability in &model.capabilities {
                orders += 1;
                let order = order(model, *capability, &format!("job-{orders}"));
                let artifact = world.make(&order).await;
                let artifact =
                    artifact.unwrap_or_else(|fault| panic!("{vendor:?} {} {capability}: {fault:?}", model.id));
                assert_eq!(artifact.media_type, "image/png");
                let submits = world.simulator.submits();
                let submit = submits.last().unwrap();
                assert_eq!(submits.len(), orders, "{vendor:?} {}: one submit each", model.id);
                assert_eq!(submit.pictures, order.image.references.len(), "{vendor:?} {} {capability}", model.id);
                assert_eq!(submit.prompt, order.instruction());
                assert_eq!(submit.idempotency_key.as_deref(), Some(order.idempotency_key.as_str()));
            }
        }
        assert_eq!(world.simulator.leaks(), 0, "{vendor:?}: no key goes to the host of the results");
    }
}

#[tokio::test]
async fn every_choice_that_a_model_offers_is_taken() {
    for vendor in vendors() {
        let world = world(vendor).await;
        for model in &world.models {
            let sizes = model.sizes.iter().map(|size| (Some(size.clone()), None));
            let qualities = model.qualities.iter().map(|quality| (None, Some(quality.clone())));
            for (number, (size, quality)) in sizes.take(12).chain(qualities).enumerate() {
                let mut order =
                    order(model, model.capabilities[0], &format!("{}-{number}", model.id.replace('/', "-")));
                order.image.size = size;
                order.image.quality = quality;
                let made = world.make(&order).await;
                assert!(made.is_ok(), "{vendor:?} {} {:?}: {made:?}", model.id, order.image);
            }
        }
    }
}

#[tokio::test]
async fn a_size_in_pixels_is_the_size_of_the_picture() {
    for vendor in [Vendor::OpenAi, Vendor::BlackForestLabs, Vendor::Compatible, Vendor::Comfy] {
        let world = world(vendor).await;
        let pixels = |size: &&String| size.contains('x');
        let model = world.models.iter().find(|model| model.sizes.iter().filter(pixels).count() > 1).unwrap();
        let asked = model.sizes.iter().rfind(pixels).unwrap();
        let mut order = order(model, Capability::ImageGenerate, "job-1");
        order.image.size = Some(asked.clone());
        let (width, height) = size(&world.make(&order).await.unwrap());
        assert_eq!(&format!("{width}x{height}"), asked, "{vendor:?}");
    }
}

#[tokio::test]
async fn as_many_references_as_a_model_declares_go_along() {
    for vendor in vendors() {
        let world = world(vendor).await;
        for (number, model) in world.models.iter().filter(|model| model.references_max() > 0).enumerate() {
            let capability = *model.capabilities.last().unwrap();
            let mut order = order(model, capability, &format!("job-{number}"));
            order.image.references = vec![picture(); model.references_max()];
            let made = world.make(&order).await;
            assert!(made.is_ok(), "{vendor:?} {}: {made:?}", model.id);
            assert_eq!(world.simulator.submits().last().unwrap().pictures, model.references_max(), "{}", model.id);
        }
    }
}

#[tokio::test]
async fn roles_are_told_in_words() {
    let world = world(Vendor::OpenAi).await;
    let mut order = order(&world.models[0], Capability::ImageEdit, "job-1");
    order.image.references = vec![picture(), picture()];
    order.image.references[1].role = Some(Role::Style);
    world.make(&order).await.unwrap();
    let sent = &world.simulator.submits()[0].prompt;
    assert_eq!(sent, "a red kite\nImage 2: take its style, not its content.");
}

#[tokio::test]
async fn a_variation_without_a_prompt_says_what_it_is() {
    let world = world(Vendor::OpenAi).await;
    world.make(&order(&world.models[0], Capability::ImageVariations, "job-1")).await.unwrap();
    assert!(world.simulator.submits()[0].prompt.starts_with("Make a new variation of this image"));
}

#[tokio::test]
async fn a_run_is_polled_until_it_is_done_and_survives_being_stored() {
    for vendor in vendors() {
        let world = world(vendor).await;
        if !world.provider.promises().queues {
            continue;
        }
        let Submission::Accepted(run) = world.provider.submit(&world.any_order("job-1")).await else {
            panic!("{vendor:?} queues");
        };
        let run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
        assert!(matches!(world.provider.poll(&run).await, Polled::Running(_)), "{vendor:?}");
        assert!(matches!(world.provider.poll(&run).await, Polled::Running(_)), "{vendor:?}");
        let Polled::Done(output) = world.provider.poll(&run).await else { panic!("{vendor:?} is done") };
        assert!(world.provider.fetch(&output).await.is_ok(), "{vendor:?}");
    }
}
