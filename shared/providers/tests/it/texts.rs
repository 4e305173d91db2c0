//! Texts: every text model of the catalogue, each way to fail, and what is never asked for twice.

use std::sync::Arc;
use std::time::Duration;

use domain::job::FailureCode;
use domain::model::ProviderKind;
use providers::catalogue::EntryType;
use providers::{Catalogue, Class, Deadlines, Entry, Fault, TextOrder};
use testkit::providers::{SIMULATOR_KEY, Trouble, Vendor, written};

use crate::world::{PATIENCE, World, kind, picture, provider, vendors, world};

/// The vendors whose protocols have texts.
const WRITERS: [Vendor; 3] = [Vendor::OpenAi, Vendor::Google, Vendor::Compatible];

/// The built-in text models that this vendor's protocol runs.
fn models(vendor: Vendor) -> Vec<Arc<Entry>> {
    let (kind, protocol) = kind(vendor);
    let catalogue = Catalogue::built_in().unwrap();
    let runs = |entry: &&Arc<Entry>| entry.kind == EntryType::Text && entry.runtime == protocol.runtime();
    catalogue.of(kind).filter(runs).cloned().collect()
}

fn order(model: &Arc<Entry>, prompt: &str) -> TextOrder {
    TextOrder {
        model: model.clone(),
        prompt: prompt.to_owned(),
        pictures: Vec::new(),
        idempotency_key: "run-0".to_owned(),
    }
}

/// An order that every writer takes.
fn any_order(vendor: Vendor) -> TextOrder {
    order(&models(vendor)[0], "three names for a kite")
}

async fn refused(world: &World, order: &TextOrder) -> Fault {
    let fault = world.provider.write(order).await.expect_err("there is no text");
    assert!(!fault.maybe_accepted, "{fault:?}");
    assert!(world.simulator.submits().is_empty(), "nothing was sent");
    fault
}

#[tokio::test]
async fn every_text_model_writes_with_one_submit() {
    for vendor in WRITERS {
        let world = world(vendor).await;
        let models = models(vendor);
        assert!(!models.is_empty(), "{vendor:?}");
        for (number, model) in models.iter().enumerate() {
            let order = order(model, "three names for a kite");
            assert_eq!(world.provider.write(&order).await, Ok(written(&order.prompt)), "{vendor:?} {}", model.id);
            let submits = world.simulator.submits();
            assert_eq!(submits.len(), number + 1, "{vendor:?} {}: one submit each", model.id);
            let submit = submits.last().unwrap();
            assert_eq!((&submit.prompt, submit.pictures), (&order.prompt, 0));
            assert_eq!(submit.idempotency_key.as_deref(), Some("run-0"));
        }
        assert_eq!(world.simulator.leaks(), 0, "{vendor:?}");
    }
}

#[tokio::test]
async fn pictures_go_along_to_the_models_that_take_them_and_to_no_others() {
    for vendor in WRITERS {
        for model in models(vendor) {
            let world = world(vendor).await;
            let most = model.references_max();
            let mut order = TextOrder { pictures: vec![picture(); most], ..order(&model, "what is this?") };
            assert_eq!(world.provider.write(&order).await, Ok(written(&order.prompt)), "{vendor:?} {}", model.id);
            let submits = world.simulator.submits();
            assert_eq!((submits.len(), submits[0].pictures), (1, most), "{vendor:?} {}", model.id);
            order.pictures.push(picture());
            assert_eq!(world.provider.write(&order).await.expect_err("one too many").class, Class::Invalid);
            assert_eq!(world.simulator.submits().len(), 1, "nothing was sent");
        }
    }
}

#[tokio::test]
async fn every_other_protocol_refuses_texts() {
    let model = &models(Vendor::OpenAi)[0];
    for vendor in vendors().filter(|vendor| !WRITERS.contains(vendor)) {
        assert!(models(vendor).is_empty(), "{vendor:?}");
        let fault = refused(&world(vendor).await, &order(model, "p")).await;
        assert_eq!(fault.class, Class::Invalid, "{vendor:?}");
    }
}

/// What a trouble must be told as, and whether the text may have been written.
fn expected(trouble: Trouble) -> Option<(Class, bool)> {
    Some(match trouble {
        Trouble::RateLimited => (Class::RateLimited, false),
        Trouble::OutOfCredit => (Class::OutOfCredit, false),
        Trouble::Content => (Class::Content, false),
        Trouble::Invalid => (Class::Invalid, false),
        Trouble::Down => (Class::Unavailable, false),
        Trouble::LoseAnswer | Trouble::Hang => (Class::Timeout, true),
        // The simulator leaves the text out.
        Trouble::ExpiredUrl => (Class::Unavailable, true),
        Trouble::ServerError | Trouble::CutOff | Trouble::HtmlAnswer | Trouble::WorkFails => (Class::Unavailable, true),
        // There is no picture.
        Trouble::HtmlPicture => return None,
    })
}

async fn check(world: &World, vendor: Vendor, trouble: Trouble) {
    let before = world.simulator.submits().len();
    world.simulator.misbehave_once(trouble);
    let written = world.provider.write(&any_order(vendor)).await;
    let case = format!("{vendor:?} {trouble:?}: {written:?}");
    assert_eq!(world.simulator.submits().len(), before + 1, "{case}: nothing is repeated");
    match (written, expected(trouble)) {
        (Ok(_), None) => {}
        (Err(fault), Some(expected)) => {
            assert_eq!((fault.class, fault.maybe_accepted), expected, "{case}");
            for secret in [SIMULATOR_KEY, world.simulator.url(), "127.0.0.1"] {
                assert!(!case.contains(secret), "{case}");
            }
        }
        _ => panic!("{case}"),
    }
}

#[tokio::test]
async fn every_trouble_is_told_as_its_class() {
    for vendor in WRITERS {
        let world = world(vendor).await;
        for (_, trouble) in Trouble::ALL.into_iter().filter(|(_, trouble)| *trouble != Trouble::Hang) {
            check(&world, vendor, trouble).await;
        }
    }
}

#[tokio::test]
async fn a_text_that_never_comes_ends_at_its_deadline() {
    for vendor in WRITERS {
        let mut world = world(vendor).await;
        let deadlines = Deadlines { text: Duration::from_millis(700), ..PATIENCE };
        world.provider = provider(vendor, world.simulator.url(), SIMULATOR_KEY, deadlines);
        check(&world, vendor, Trouble::Hang).await;
    }
}

#[tokio::test]
async fn a_wrong_key_is_an_authentication_failure_and_is_quoted_nowhere() {
    let wrong = "wrong-key-0123456789";
    for vendor in [Vendor::OpenAi, Vendor::Google] {
        let mut world = world(vendor).await;
        world.provider = provider(vendor, world.simulator.url(), wrong, PATIENCE);
        let fault = refused(&world, &any_order(vendor)).await;
        assert_eq!(fault.failure().code, FailureCode::ProviderAuthenticationFailed, "{vendor:?}: {fault:?}");
        assert!(!format!("{fault:?}").contains(wrong), "{vendor:?}: {fault:?}");
    }
}

#[tokio::test]
async fn a_writer_that_is_not_there_was_surely_not_asked() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    for vendor in WRITERS {
        let mut world = world(vendor).await;
        world.provider = provider(vendor, &format!("http://127.0.0.1:{port}"), SIMULATOR_KEY, PATIENCE);
        let fault = refused(&world, &any_order(vendor)).await;
        assert_eq!((fault.class, fault.is_retryable()), (Class::Unavailable, true), "{vendor:?}");
    }
}

#[tokio::test]
async fn what_the_model_does_not_declare_is_not_sent() {
    let world = world(Vendor::OpenAi).await;
    let text = any_order(Vendor::OpenAi);
    let picture = TextOrder { model: world.models[0].clone(), ..text.clone() };
    assert!(refused(&world, &picture).await.detail.contains("no texts"));
    // A letter beyond the basic plane counts two.
    let most = text.model.prompt_max;
    let long = TextOrder { prompt: format!("{}🪁", "x".repeat(most - 1)), ..text.clone() };
    assert!(refused(&world, &long).await.detail.contains(&most.to_string()));
    let strange = TextOrder { idempotency_key: "a\nb".into(), ..text.clone() };
    assert!(refused(&world, &strange).await.detail.contains("idempotency key"));
    let whole = TextOrder { prompt: format!("{}🪁", "x".repeat(most - 2)), ..text };
    assert_eq!(world.provider.write(&whole).await, Ok(written(&whole.prompt)));
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_given_up_and_not_asked_for_again() {
    let own = r#"{"models": [{
        "id": "own", "name": "Own", "provider": "managed", "type": "text", "estimatedSeconds": 5, "promptMax": 4000000
    }]}"#;
    let catalogue = Catalogue::built_in().unwrap().extended("own.json", own).unwrap();
    let world = world(Vendor::Compatible).await;
    // The simulator repeats the prompt.
    let order = order(catalogue.find(ProviderKind::Managed, "own").unwrap(), &"x".repeat(1 << 20));
    let fault = world.provider.write(&order).await.expect_err("it is too large");
    assert_eq!((fault.class, fault.maybe_accepted), (Class::Unavailable, true), "{fault:?}");
}
