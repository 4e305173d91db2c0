//! Test fixture: a simulator and the adapter that calls it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use domain::model::{Capability, ProviderKind};
use egress::{Client, ClientConfig};
use providers::catalogue::{EntryType, Runtime};
use providers::{
    ApiKey, Artifact, CallError, Catalogue, Deadlines, Endpoint, Entry, ManagedProtocol, Media, Order, OrderImage,
    Polled, Provider, Run, Shape, Submission,
};
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};

const MINUTE: Duration = Duration::from_secs(60);

/// Long enough for a busy machine. No test waits until it passes.
pub const PATIENCE: Deadlines = Deadlines { result: MINUTE, text: MINUTE, call: MINUTE, download: MINUTE };

/// A PNG of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A gray PNG of one white pixel.
const WHITE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";

pub struct Harness {
    pub simulator: Simulator,
    pub provider: Provider,
    pub models: Vec<Arc<Entry>>,
}

pub fn kind(vendor: Vendor) -> (ProviderKind, ManagedProtocol) {
    match vendor {
        Vendor::Compatible => (ProviderKind::Managed, ManagedProtocol::OpenAi),
        Vendor::Comfy => (ProviderKind::Managed, ManagedProtocol::Comfy),
        third_party => (third_party.name().parse().expect("a kind of provider"), ManagedProtocol::OpenAi),
    }
}

pub fn vendors() -> impl Iterator<Item = Vendor> {
    Vendor::ALL.iter().copied()
}

pub fn provider(vendor: Vendor, base: &str, key: &str, deadlines: Deadlines) -> Provider {
    let (kind, managed) = kind(vendor);
    let endpoint = Endpoint { kind, managed, base: Some(base.parse().unwrap()), key: ApiKey::new(key) };
    Provider::new(endpoint, Client::new(ClientConfig::default()).unwrap(), deadlines).unwrap()
}

/// Self-hosted servers get a key too, because it must not leak either.
pub async fn harness(vendor: Vendor) -> Harness {
    let simulator = Simulator::start(vendor).await;
    let provider = provider(vendor, simulator.url(), SIMULATOR_KEY, PATIENCE);
    Harness { provider, models: models(vendor), simulator }
}

/// The built-in models that this vendor's protocol runs.
pub fn models(vendor: Vendor) -> Vec<Arc<Entry>> {
    let (kind, managed) = kind(vendor);
    let runtime = match managed {
        ManagedProtocol::OpenAi => Runtime::OpenAi,
        ManagedProtocol::Comfy => Runtime::Comfy,
    };
    let catalogue = Catalogue::built_in().unwrap();
    let runs = |entry: &&Arc<Entry>| entry.kind != EntryType::Text && entry.runtime == runtime;
    catalogue.for_provider(kind).filter(runs).cloned().collect()
}

pub fn image() -> OrderImage {
    let bytes = Bytes::from(STANDARD.decode(PIXEL).unwrap());
    OrderImage { bytes, media_type: "image/png", role: None }
}

/// A mask of an [`image`] in the form of most vendors.
pub fn mask() -> OrderImage {
    OrderImage { bytes: Bytes::from(STANDARD.decode(WHITE).unwrap()), media_type: "image/png", role: None }
}

/// An order with as many images as the capability requires, and a mask if it does.
pub fn order(model: &Arc<Entry>, capability: Capability, key: &str) -> Order {
    let guided =
        matches!(capability, Capability::ImageEdit | Capability::ImageVariations | Capability::VideoFromReferences);
    let references = usize::from(guided).max(model.references_min());
    let frame = |of: &[Capability]| of.contains(&capability).then(image);
    let shape = match capability.is_video() {
        false => Shape::Image { size: None, quality: None },
        true => Shape::Video {
            first_frame: frame(&[Capability::VideoFromImage, Capability::VideoFromFrames]),
            last_frame: frame(&[Capability::VideoFromFrames]),
            duration_seconds: None,
            aspect_ratio: None,
            resolution: None,
            generate_audio: None,
        },
    };
    Order {
        model: model.clone(),
        capability,
        prompt: if capability == Capability::ImageVariations { String::new() } else { "a red kite".to_owned() },
        references: vec![image(); references],
        mask: model.mask_required.then(mask),
        shape,
        idempotency_key: key.to_owned(),
    }
}

/// The images of an order, frames included.
pub fn images(order: &Order) -> usize {
    let frames = match &order.shape {
        Shape::Image { .. } => 0,
        Shape::Video { first_frame, last_frame, .. } => first_frame.iter().chain(last_frame).count(),
    };
    order.references.len() + frames + usize::from(order.mask.is_some())
}

impl Harness {
    /// The first model with `capability`, if any.
    pub fn model(&self, capability: Capability) -> Option<&Arc<Entry>> {
        self.models.iter().find(|model| model.capabilities.contains(&capability))
    }

    /// An order of the first capability of the first model.
    pub fn any_order(&self, key: &str) -> Order {
        order(&self.models[0], self.models[0].capabilities[0], key)
    }

    /// One order for an image, and one for a video if the vendor makes videos.
    pub fn one_of_each(&self) -> Vec<Order> {
        let first = |video: bool| {
            let model = self.models.iter().find(|model| (model.kind == EntryType::Video) == video)?;
            Some(order(model, model.capabilities[0], if video { "video-1" } else { "image-1" }))
        };
        first(false).into_iter().chain(first(true)).collect()
    }

    /// Prepares and submits, as a worker does.
    pub async fn submit(&self, order: &Order) -> Submission {
        match self.provider.prepare(order).await {
            Ok(prepared) => self.provider.submit(order, prepared).await,
            Err(call_error) => Submission::Refused(call_error),
        }
    }

    /// Submits, polls and fetches, as a worker does, without delays.
    pub async fn make(&self, order: &Order) -> Result<Artifact, CallError> {
        match self.submit(order).await {
            Submission::Done(output) | Submission::Finished(_, output) => {
                self.provider.fetch(order.media(), &output).await
            }
            Submission::Accepted(run) => self.finish(order.media(), &run).await,
            Submission::Refused(call_error) | Submission::Unknown(call_error) => Err(call_error),
        }
    }

    pub async fn finish(&self, media: Media, run: &Run) -> Result<Artifact, CallError> {
        for _ in 0..10 {
            match self.provider.poll(run).await {
                Polled::Running(_) => {}
                Polled::Done(output) => return self.provider.fetch(media, &output).await,
                Polled::Failed(call_error) | Polled::Unavailable(call_error) => return Err(call_error),
                Polled::Canceled => panic!("nobody canceled"),
            }
        }
        panic!("a simulator finishes at the third poll");
    }
}
