//! Tests of requests that are rejected before anything is sent.

use bytes::Bytes;
use domain::job::FailureCode;
use domain::model::{Capability, ProviderKind};
use egress::{Client, ClientConfig};
use providers::{
    ApiKey, Deadlines, Endpoint, ManagedProtocol, Media, Order, Output, Provider, ProviderError, Shape, Submission,
};
use testkit::providers::{SIMULATOR_KEY, Vendor};

use crate::harness::{Harness, harness, image, order, vendors};

async fn refused(harness: &Harness, change: impl FnOnce(&mut Order)) -> String {
    let mut order = order(&harness.models[0], Capability::ImageEdit, "job-1");
    change(&mut order);
    let submission = harness.submit(&order).await;
    let Submission::Refused(call_error) = submission else { panic!("{submission:?}") };
    assert!(matches!(call_error.failure().code, FailureCode::ProviderRejected | FailureCode::RuntimeFailed));
    assert!(harness.simulator.submits().is_empty());
    call_error.detail
}

#[tokio::test]
async fn an_order_that_the_model_does_not_declare_is_not_sent() {
    let harness = harness(Vendor::OpenAi).await;
    let size = |size: &str| Shape::Image { size: Some(size.into()), quality: None };
    let quality = |quality: &str| Shape::Image { size: None, quality: Some(quality.into()) };
    let most = harness.models[0].references_max();
    assert!(refused(&harness, |order| order.capability = Capability::VideoGenerate).await.contains("no videos"));
    assert!(refused(&harness, |order| order.references.clear()).await.contains("references"));
    assert!(refused(&harness, |order| order.references = vec![image(); most + 1]).await.contains("references"));
    assert!(refused(&harness, |order| order.shape = size("1x1")).await.contains("size"));
    assert!(refused(&harness, |order| order.shape = quality("best")).await.contains("quality"));
    assert!(refused(&harness, |order| order.prompt = "x".repeat(32_001)).await.contains("32000"));
    assert!(refused(&harness, |order| order.idempotency_key = "a\nb".into()).await.contains("idempotency key"));
    let limit = harness.provider.capabilities(Media::Image).image_bytes_max;
    let large = Bytes::from(vec![0; limit + 1]);
    assert!(refused(&harness, |order| order.references[0].bytes = large).await.contains("bytes"));
}

#[tokio::test]
async fn a_prompt_of_the_greatest_length_is_sent() {
    let harness = harness(Vendor::Runway).await;
    let mut order = harness.any_order("job-1");
    order.prompt = "x".repeat(harness.models[0].prompt_max);
    assert!(matches!(harness.submit(&order).await, Submission::Accepted(_)));
    order.prompt.push('x');
    assert!(matches!(harness.submit(&order).await, Submission::Refused(_)));
}

#[tokio::test]
async fn an_endpoint_without_what_its_kind_needs_is_refused() {
    let client = Client::new(ClientConfig::default()).unwrap();
    let build = |kind, base: Option<&str>, key: Option<&str>| {
        let base = base.map(|base| base.parse().unwrap());
        let endpoint = Endpoint { kind, managed: ManagedProtocol::OpenAi, base, key: key.and_then(ApiKey::new) };
        Provider::new(endpoint, client.clone(), Deadlines::default()).err()
    };
    assert_eq!(build(ProviderKind::OpenAi, None, None), Some(ProviderError::NoKey));
    assert_eq!(build(ProviderKind::OpenAi, None, Some("key")), None);
    assert_eq!(build(ProviderKind::Managed, None, None), Some(ProviderError::NoBase));
    assert_eq!(build(ProviderKind::Managed, Some("http://inference:8080"), None), None);
    for base in ["ftp://inference/", "http://user:pass@inference/", "http://inference/#x"] {
        assert_eq!(build(ProviderKind::Managed, Some(base), None), Some(ProviderError::Base), "{base}");
    }
}

#[tokio::test]
async fn a_result_at_an_address_that_is_not_public_is_not_fetched() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        for url in
            ["http://127.0.0.2:9/x", "https://10.0.0.1/x", "https://169.254.169.254/latest", "http://example.com/x"]
        {
            let call_error =
                harness.provider.fetch(Media::Image, &Output::Remote(url.parse().unwrap())).await.unwrap_err();
            assert_eq!(call_error.failure().code, FailureCode::RuntimeFailed, "{vendor:?} {url}: {call_error:?}");
        }
    }
}

#[tokio::test]
async fn a_provider_shows_no_key() {
    let key = ApiKey::new(SIMULATOR_KEY).unwrap();
    let endpoint =
        Endpoint { kind: ProviderKind::OpenAi, managed: ManagedProtocol::OpenAi, base: None, key: Some(key) };
    assert!(!format!("{endpoint:?}").contains(SIMULATOR_KEY));
}

#[tokio::test]
async fn a_video_with_other_frames_than_its_capability_is_not_sent() {
    let harness = harness(Vendor::Runway).await;
    let model = harness.model(Capability::VideoFromFrames).unwrap();
    let shape = |of| order(model, of, "job-1").shape;
    let (none, first, both) =
        (shape(Capability::VideoGenerate), shape(Capability::VideoFromImage), shape(Capability::VideoFromFrames));
    for (capability, wrong) in [
        (Capability::VideoGenerate, [&first, &both]),
        (Capability::VideoFromImage, [&none, &both]),
        (Capability::VideoFromFrames, [&none, &first]),
    ] {
        for shape in wrong {
            let order = Order { shape: shape.clone(), ..order(model, capability, "job-1") };
            assert!(matches!(harness.submit(&order).await, Submission::Refused(_)), "{capability} {shape:?}");
        }
    }
    assert!(harness.simulator.submits().is_empty());
}
