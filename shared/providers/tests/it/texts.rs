//! Tests of texts: every text model of the catalog, each kind of failure, and what is never
//! requested twice.

use std::sync::Arc;
use std::time::Duration;

use domain::job::FailureCode;
use domain::model::ProviderKind;
use providers::catalogue::EntryType;
use providers::{CallError, Catalogue, Class, Deadlines, Entry, TextOrder};
use testkit::providers::{FailureMode, SIMULATOR_KEY, Vendor, written};

use crate::harness::{Harness, PATIENCE, harness, image, kind, provider, vendors};

/// The vendors whose protocols support texts.
const WRITERS: [Vendor; 3] = [Vendor::OpenAi, Vendor::Google, Vendor::Compatible];

/// The built-in text models that this vendor's protocol runs.
fn models(vendor: Vendor) -> Vec<Arc<Entry>> {
    let (kind, protocol) = kind(vendor);
    let catalogue = Catalogue::built_in().unwrap();
    let runs = |entry: &&Arc<Entry>| entry.kind == EntryType::Text && entry.runtime == protocol.runtime();
    catalogue.for_provider(kind).filter(runs).cloned().collect()
}

fn order(model: &Arc<Entry>, prompt: &str) -> TextOrder {
    TextOrder {
        model: model.clone(),
        prompt: prompt.to_owned(),
        images: Vec::new(),
        idempotency_key: "run-0".to_owned(),
    }
}

/// An order that every vendor with texts accepts.
fn any_order(vendor: Vendor) -> TextOrder {
    order(&models(vendor)[0], "three names for a kite")
}

async fn refused(harness: &Harness, order: &TextOrder) -> CallError {
    let call_error = harness.provider.write(order).await.expect_err("there is no text");
    assert!(!call_error.maybe_accepted, "{call_error:?}");
    assert!(harness.simulator.submits().is_empty(), "nothing was sent");
    call_error
}

#[tokio::test]
async fn every_text_model_writes_with_one_submit() {
    for vendor in WRITERS {
        let harness = harness(vendor).await;
        let models = models(vendor);
        assert!(!models.is_empty(), "{vendor:?}");
        for (number, model) in models.iter().enumerate() {
            let order = order(model, "three names for a kite");
            assert_eq!(harness.provider.write(&order).await, Ok(written(&order.prompt)), "{vendor:?} {}", model.id);
            let submits = harness.simulator.submits();
            assert_eq!(submits.len(), number + 1, "{vendor:?} {}: one submit each", model.id);
            let submit = submits.last().unwrap();
            assert_eq!((&submit.prompt, submit.images), (&order.prompt, 0));
            assert_eq!(submit.idempotency_key.as_deref(), Some("run-0"));
        }
        assert_eq!(harness.simulator.leaks(), 0, "{vendor:?}");
    }
}

#[tokio::test]
async fn images_go_along_to_the_models_that_take_them_and_to_no_others() {
    for vendor in WRITERS {
        for model in models(vendor) {
            let harness = harness(vendor).await;
            let most = model.references_max();
            let mut order = TextOrder { images: vec![image(); most], ..order(&model, "what is this?") };
            assert_eq!(harness.provider.write(&order).await, Ok(written(&order.prompt)), "{vendor:?} {}", model.id);
            let submits = harness.simulator.submits();
            assert_eq!((submits.len(), submits[0].images), (1, most), "{vendor:?} {}", model.id);
            order.images.push(image());
            assert_eq!(harness.provider.write(&order).await.expect_err("one too many").class, Class::Invalid);
            assert_eq!(harness.simulator.submits().len(), 1, "nothing was sent");
        }
    }
}

#[tokio::test]
async fn every_other_protocol_refuses_texts() {
    let model = &models(Vendor::OpenAi)[0];
    for vendor in vendors().filter(|vendor| !WRITERS.contains(vendor)) {
        assert!(models(vendor).is_empty(), "{vendor:?}");
        let call_error = refused(&harness(vendor).await, &order(model, "p")).await;
        assert_eq!(call_error.class, Class::Invalid, "{vendor:?}");
    }
}

/// The error that a simulated failure must produce, and whether the text may have been written.
fn expected(failure_mode: FailureMode) -> Option<(Class, bool)> {
    Some(match failure_mode {
        FailureMode::RateLimited => (Class::RateLimited, false),
        FailureMode::OutOfCredit => (Class::OutOfCredit, false),
        FailureMode::Content => (Class::Content, false),
        FailureMode::Invalid => (Class::Invalid, false),
        FailureMode::Down => (Class::Unavailable, false),
        FailureMode::LoseAnswer | FailureMode::Hang => (Class::Timeout, true),
        // The simulator omits the text.
        FailureMode::ExpiredUrl => (Class::Unavailable, true),
        FailureMode::ServerError | FailureMode::CutOff | FailureMode::HtmlAnswer | FailureMode::WorkFails => {
            (Class::Unavailable, true)
        }
        // A text has no image.
        FailureMode::HtmlImage => return None,
    })
}

async fn check(harness: &Harness, vendor: Vendor, failure_mode: FailureMode) {
    let before = harness.simulator.submits().len();
    harness.simulator.misbehave_once(failure_mode);
    let written = harness.provider.write(&any_order(vendor)).await;
    let case = format!("{vendor:?} {failure_mode:?}: {written:?}");
    assert_eq!(harness.simulator.submits().len(), before + 1, "{case}: nothing is repeated");
    match (written, expected(failure_mode)) {
        (Ok(_), None) => {}
        (Err(call_error), Some(expected)) => {
            assert_eq!((call_error.class, call_error.maybe_accepted), expected, "{case}");
            for secret in [SIMULATOR_KEY, harness.simulator.url(), "127.0.0.1"] {
                assert!(!case.contains(secret), "{case}");
            }
        }
        _ => panic!("{case}"),
    }
}

#[tokio::test]
async fn every_failure_is_reported_as_its_class() {
    for vendor in WRITERS {
        let harness = harness(vendor).await;
        for (_, failure_mode) in
            FailureMode::ALL.into_iter().filter(|(_, failure_mode)| *failure_mode != FailureMode::Hang)
        {
            check(&harness, vendor, failure_mode).await;
        }
    }
}

#[tokio::test]
async fn a_text_that_never_comes_ends_at_its_deadline() {
    for vendor in WRITERS {
        let mut harness = harness(vendor).await;
        let deadlines = Deadlines { text: Duration::from_millis(700), ..PATIENCE };
        harness.provider = provider(vendor, harness.simulator.url(), SIMULATOR_KEY, deadlines);
        check(&harness, vendor, FailureMode::Hang).await;
    }
}

#[tokio::test]
async fn a_wrong_key_is_an_authentication_failure_and_is_quoted_nowhere() {
    let wrong = "wrong-key-0123456789";
    for vendor in [Vendor::OpenAi, Vendor::Google] {
        let mut harness = harness(vendor).await;
        harness.provider = provider(vendor, harness.simulator.url(), wrong, PATIENCE);
        let call_error = refused(&harness, &any_order(vendor)).await;
        assert_eq!(call_error.failure().code, FailureCode::ProviderAuthenticationFailed, "{vendor:?}: {call_error:?}");
        assert!(!format!("{call_error:?}").contains(wrong), "{vendor:?}: {call_error:?}");
    }
}

#[tokio::test]
async fn a_writer_that_is_not_there_was_surely_not_asked() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    for vendor in WRITERS {
        let mut harness = harness(vendor).await;
        harness.provider = provider(vendor, &format!("http://127.0.0.1:{port}"), SIMULATOR_KEY, PATIENCE);
        let call_error = refused(&harness, &any_order(vendor)).await;
        assert_eq!((call_error.class, call_error.is_retryable()), (Class::Unavailable, true), "{vendor:?}");
    }
}

#[tokio::test]
async fn what_the_model_does_not_declare_is_not_sent() {
    let harness = harness(Vendor::OpenAi).await;
    let text = any_order(Vendor::OpenAi);
    let image = TextOrder { model: harness.models[0].clone(), ..text.clone() };
    assert!(refused(&harness, &image).await.detail.contains("no texts"));
    // A character outside of the basic multilingual plane counts as two.
    let most = text.model.prompt_max;
    let long = TextOrder { prompt: format!("{}🪁", "x".repeat(most - 1)), ..text.clone() };
    assert!(refused(&harness, &long).await.detail.contains(&most.to_string()));
    let strange = TextOrder { idempotency_key: "a\nb".into(), ..text.clone() };
    assert!(refused(&harness, &strange).await.detail.contains("idempotency key"));
    let whole = TextOrder { prompt: format!("{}🪁", "x".repeat(most - 2)), ..text };
    assert_eq!(harness.provider.write(&whole).await, Ok(written(&whole.prompt)));
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_given_up_and_not_asked_for_again() {
    let own = r#"{"models": [{
        "id": "own", "name": "Own", "provider": "managed", "type": "text", "estimatedSeconds": 5, "promptMax": 4000000
    }]}"#;
    let catalogue = Catalogue::built_in().unwrap().extended("own.json", own).unwrap();
    let harness = harness(Vendor::Compatible).await;
    // The simulator repeats the prompt.
    let order = order(catalogue.find(ProviderKind::Managed, "own").unwrap(), &"x".repeat(1 << 20));
    let call_error = harness.provider.write(&order).await.expect_err("it is too large");
    assert_eq!((call_error.class, call_error.maybe_accepted), (Class::Unavailable, true), "{call_error:?}");
}
