//! Tests of every model of the catalog with everything that it declares.

use std::time::{Duration, Instant};

use domain::graph::Role;
use domain::model::{Capability, ProviderKind};
use providers::{Artifact, CallError, Catalogue, Entry, Media, Order, Output, Polled, Shape, Submission};
use testkit::providers::Vendor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::harness::{PATIENCE, harness, image, images, order, provider, vendors};

/// The width and height in a PNG's header.
fn size(artifact: &Artifact) -> (u32, u32) {
    let side = |at: usize| u32::from_be_bytes(artifact.bytes[at..at + 4].try_into().unwrap());
    (side(16), side(20))
}

#[tokio::test]
async fn every_model_makes_what_it_declares_with_every_capability() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        assert!(!harness.models.is_empty(), "{vendor:?}");
        let mut orders = 0;
        for model in &harness.models {
            for capability in &model.capabilities {
                orders += 1;
                let order = order(model, *capability, &format!("job-{orders}"));
                let artifact = harness.make(&order).await;
                let artifact = artifact
                    .unwrap_or_else(|call_error| panic!("{vendor:?} {} {capability}: {call_error:?}", model.id));
                let media_type = if capability.is_video() { "video/mp4" } else { "image/png" };
                assert_eq!(artifact.media_type, media_type);
                let submits = harness.simulator.submits();
                let submit = submits.last().unwrap();
                assert_eq!(submits.len(), orders, "{vendor:?} {}: one submit each", model.id);
                assert_eq!(submit.images, images(&order), "{vendor:?} {} {capability}", model.id);
                assert_eq!(submit.prompt, order.instruction());
                assert_eq!(submit.idempotency_key.as_deref(), Some(order.idempotency_key.as_str()));
            }
        }
        assert_eq!(harness.simulator.leaks(), 0, "{vendor:?}: no key goes to the host of the results");
    }
}

/// The head of the request for a result that the provider's own API serves.
async fn download_at_home(vendor: Vendor, key: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 8192];
        let length = stream.read(&mut head).await.unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await.unwrap();
        String::from_utf8(head[..length].to_vec()).unwrap()
    });
    let result = Output::Remote(format!("{base}/result.png").parse().unwrap());
    let provider = provider(vendor, &base, key, PATIENCE);
    provider.fetch(Media::Image, &result).await.expect_err("is not there");
    asked.await.unwrap()
}

#[tokio::test]
async fn signed_urls_of_results_are_fetched_without_the_key() {
    const KEY: &str = "a-key-that-is-kept";
    for vendor in [Vendor::BlackForestLabs, Vendor::Fal, Vendor::Runway] {
        let head = download_at_home(vendor, KEY).await;
        assert!(head.starts_with("GET /result.png") && !head.contains(KEY), "{vendor:?}: {head}");
    }
    assert!(download_at_home(Vendor::Google, KEY).await.contains(KEY), "its files are behind the key");
}

#[tokio::test]
async fn every_choice_that_a_model_offers_is_taken() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        for model in &harness.models {
            let first = order(model, model.capabilities[0], "job");
            for (number, shape) in shapes(model, &first.shape).into_iter().enumerate() {
                let idempotency_key = format!("{}-{number}", model.id.replace('/', "-"));
                let order = Order { shape, idempotency_key, ..first.clone() };
                let made = harness.make(&order).await;
                assert!(made.is_ok(), "{vendor:?} {} {:?}: {made:?}", model.id, order.shape);
            }
        }
    }
}

/// `shape` with each value that the model offers, one at a time.
fn shapes(model: &Entry, shape: &Shape) -> Vec<Shape> {
    match shape {
        Shape::Image { .. } => {
            let sizes = model.sizes.iter().take(12).map(|it| Shape::Image { size: Some(it.clone()), quality: None });
            let qualities = model.qualities.iter().map(|it| Shape::Image { size: None, quality: Some(it.clone()) });
            sizes.chain(qualities).collect()
        }
        Shape::Video { first_frame, last_frame, .. } => {
            let video =
                |duration_seconds, aspect_ratio: Option<&String>, resolution: Option<&String>, generate_audio| {
                    Shape::Video {
                        first_frame: first_frame.clone(),
                        last_frame: last_frame.clone(),
                        duration_seconds,
                        aspect_ratio: aspect_ratio.cloned(),
                        resolution: resolution.cloned(),
                        generate_audio,
                    }
                };
            let mut shapes: Vec<Shape> = model.durations.iter().map(|it| video(Some(*it), None, None, None)).collect();
            shapes.extend(model.aspect_ratios.iter().map(|it| video(None, Some(it), None, None)));
            shapes.extend(model.resolutions.iter().map(|it| video(None, None, Some(it), None)));
            let audio = [true, false].into_iter().filter(|_| model.audio_optional);
            shapes.extend(audio.map(|it| video(None, None, None, Some(it))));
            shapes
        }
    }
}

#[tokio::test]
async fn a_size_in_pixels_is_the_size_of_the_image() {
    for vendor in [Vendor::OpenAi, Vendor::BlackForestLabs, Vendor::Compatible, Vendor::Comfy] {
        let harness = harness(vendor).await;
        let pixels = |size: &&String| size.contains('x');
        let model = harness.models.iter().find(|model| model.sizes.iter().filter(pixels).count() > 1).unwrap();
        let asked = model.sizes.iter().rfind(pixels).unwrap();
        let mut order = order(model, Capability::ImageGenerate, "job-1");
        order.shape = Shape::Image { size: Some(asked.clone()), quality: None };
        let (width, height) = size(&harness.make(&order).await.unwrap());
        assert_eq!(&format!("{width}x{height}"), asked, "{vendor:?}");
    }
}

#[tokio::test]
async fn as_many_references_as_a_model_declares_go_along() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        for (number, model) in harness.models.iter().filter(|model| model.references_max() > 0).enumerate() {
            let guided = |it: &&Capability| !matches!(it, Capability::VideoFromImage | Capability::VideoFromFrames);
            let capability = *model.capabilities.iter().rfind(guided).unwrap();
            let mut order = order(model, capability, &format!("job-{number}"));
            order.references = vec![image(); model.references_max()];
            let made = harness.make(&order).await;
            assert!(made.is_ok(), "{vendor:?} {}: {made:?}", model.id);
            assert_eq!(harness.simulator.submits().last().unwrap().images, images(&order), "{}", model.id);
        }
    }
}

#[tokio::test]
async fn roles_are_described_in_words() {
    let harness = harness(Vendor::OpenAi).await;
    let mut order = order(&harness.models[0], Capability::ImageEdit, "job-1");
    order.references = vec![image(), image()];
    order.references[1].role = Some(Role::Style);
    harness.make(&order).await.unwrap();
    let sent = &harness.simulator.submits()[0].prompt;
    assert_eq!(sent, "a red kite\nImage 2: take its style, not its content.");
}

#[tokio::test]
async fn a_variation_without_a_prompt_says_what_it_is() {
    let harness = harness(Vendor::OpenAi).await;
    harness.make(&order(&harness.models[0], Capability::ImageVariations, "job-1")).await.unwrap();
    assert!(harness.simulator.submits()[0].prompt.starts_with("Make a new variation of this image"));
}

#[tokio::test]
async fn a_run_is_polled_until_it_is_done_and_survives_being_stored() {
    for vendor in vendors() {
        let harness = harness(vendor).await;
        for order in harness.one_of_each() {
            let media = order.media();
            if !harness.provider.capabilities(media).queues {
                continue;
            }
            let Submission::Accepted(run) = harness.submit(&order).await else { panic!("{vendor:?} queues") };
            let run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
            let before = harness.simulator.polls();
            assert!(matches!(harness.provider.poll(&run).await, Polled::Running(_)), "{vendor:?}");
            assert!(matches!(harness.provider.poll(&run).await, Polled::Running(_)), "{vendor:?}");
            assert_eq!(harness.simulator.polls(), before + 2, "{vendor:?}: one poll asks once");
            let Polled::Done(output) = harness.provider.poll(&run).await else { panic!("{vendor:?} is done") };
            assert!(harness.provider.fetch(media, &output).await.is_ok(), "{vendor:?}");
            let other = if media == Media::Video { Media::Image } else { Media::Video };
            assert!(harness.provider.fetch(other, &output).await.is_err(), "{vendor:?}: it is what it is");
        }
    }
}

#[tokio::test]
async fn a_result_that_breaks_off_is_fetched_again_and_comes_whole() {
    // Google serves files on its API, not on a separate host for results.
    for vendor in vendors().filter(|vendor| *vendor != Vendor::Google) {
        let harness = harness(vendor).await;
        for order in harness.one_of_each() {
            let media = order.media();
            if !harness.provider.capabilities(media).queues {
                continue;
            }
            let Submission::Accepted(run) = harness.submit(&order).await else { panic!("{vendor:?} queues") };
            let output = loop {
                if let Polled::Done(output) = harness.provider.poll(&run).await {
                    break output;
                }
            };
            if !matches!(output, Output::Remote(_)) {
                continue;
            }
            harness.simulator.cut(1);
            let call_error = harness.provider.fetch(media, &output).await.expect_err("it broke off");
            assert!(call_error.is_retryable() && !call_error.maybe_accepted, "{vendor:?}: {call_error:?}");
            assert!(harness.provider.fetch(media, &output).await.is_ok(), "{vendor:?}");
        }
    }
}

#[tokio::test]
async fn a_video_may_be_larger_than_any_image() {
    let harness = harness(Vendor::Runway).await;
    let bytes = domain::limits::UPLOAD_MAX as usize + 1;
    harness.simulator.weigh(bytes);
    let order = order(harness.model(Capability::VideoGenerate).unwrap(), Capability::VideoGenerate, "job-1");
    assert!(harness.make(&order).await.unwrap().bytes.len() > bytes);
}

/// Peak memory of this process so far, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")).unwrap();
    peak.trim().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_video_may_have_512_mib_and_no_more_and_is_never_held_whole() {
    const MOST: usize = 512 << 20;
    let harness = harness(Vendor::Runway).await;
    let order = order(harness.model(Capability::VideoGenerate).unwrap(), Capability::VideoGenerate, "job-1");
    let Submission::Accepted(run) = harness.submit(&order).await else { panic!("it queues") };
    let output = loop {
        if let Polled::Done(output) = harness.provider.poll(&run).await {
            break output;
        }
    };
    // Its bytes, received and released chunk by chunk.
    let received = async || {
        let mut incoming = harness.provider.open(Media::Video, &output).await?;
        let mut bytes = 0;
        while let Some(piece) = incoming.next().await? {
            bytes += piece.len();
        }
        Ok::<_, CallError>(bytes)
    };
    let video = received().await.unwrap();
    let before = peak_memory();
    harness.simulator.pad(MOST - video);
    assert_eq!(received().await.unwrap(), MOST);
    harness.simulator.pad(MOST - video + 1);
    let call_error = received().await.expect_err("one byte too many");
    assert!(call_error.is_retryable() && !call_error.maybe_accepted, "{call_error:?}");
    let grown = peak_memory() - before;
    assert!(grown < 64 << 20, "{grown} bytes were held at once");
}

#[tokio::test]
async fn work_that_takes_its_time_is_waited_for() {
    let latency = Duration::from_millis(300);
    for vendor in vendors() {
        let harness = harness(vendor).await;
        harness.simulator.take(latency);
        for order in harness.one_of_each() {
            let start = Instant::now();
            match harness.submit(&order).await {
                Submission::Done(_) => {}
                Submission::Accepted(run) => while matches!(harness.provider.poll(&run).await, Polled::Running(_)) {},
                other => panic!("{vendor:?}: {other:?}"),
            }
            assert!(start.elapsed() >= latency, "{vendor:?}");
        }
    }
}

#[tokio::test]
async fn an_operators_own_model_is_made_by_a_server_that_answers_with_a_url() {
    let own = r#"{"models": [{
        "id": "url-own", "name": "Own", "provider": "managed", "type": "image", "capabilities": ["image.generate"],
        "estimatedSeconds": 5, "creditCost": 2, "promptMax": 8000, "sizes": ["512x384"]
    }]}"#;
    let catalogue = Catalogue::built_in().unwrap().extended("own.json", own).unwrap();
    let harness = harness(Vendor::Compatible).await;
    let model = catalogue.find(ProviderKind::Managed, "url-own").unwrap();
    let mut order = order(model, Capability::ImageGenerate, "job-1");
    order.shape = Shape::Image { size: Some("512x384".to_owned()), quality: None };
    let Submission::Done(output) = harness.submit(&order).await else { panic!("it answers at once") };
    assert!(matches!(output, Output::Remote(_)));
    assert_eq!(size(&harness.provider.fetch(Media::Image, &output).await.unwrap()), (512, 384));
    assert_eq!(harness.simulator.leaks(), 0);
}

#[tokio::test]
async fn a_workflow_of_a_video_gets_its_size_its_frames_and_its_images_in_their_places() {
    let harness = harness(Vendor::Comfy).await;
    let model = harness.model(Capability::VideoFromFrames).unwrap();
    let mut order = order(model, Capability::VideoFromFrames, "job-1");
    let Shape::Video { duration_seconds, aspect_ratio, resolution, .. } = &mut order.shape else { panic!("a video") };
    *duration_seconds = Some(3);
    *aspect_ratio = Some("9:16".to_owned());
    *resolution = Some("480p".to_owned());
    assert_eq!(harness.make(&order).await.unwrap().media_type, "video/mp4");
    let submit = &harness.simulator.submits()[0];
    let workflow = submit.body["workflow"].as_object().unwrap();
    let node = |class: &str| &workflow.values().find(|node| node["class_type"] == class).unwrap()["inputs"];
    let latent = node("WanFirstLastFrameToVideo");
    assert_eq!([&latent["width"], &latent["height"], &latent["length"]], [480, 832, 3 * 16 + 1]);
    // The last frame was uploaded last.
    let image = |link: &str| &workflow[latent[link][0].as_str().unwrap()]["inputs"]["image"]["info"]["id"];
    assert_ne!(image("start_image"), image("end_image"));
    assert_eq!(submit.images, 2);
}

#[tokio::test]
async fn a_workflow_whose_size_is_its_own_needs_none() {
    let own = r#"{"models": [{
        "id": "own", "name": "Own", "provider": "managed", "type": "video", "capabilities": ["video.generate"],
        "estimatedSeconds": 5, "creditCost": 2, "promptMax": 8000, "runtime": "comfy",
        "wire": {"workflow": {
            "1": {"class_type": "CLIPTextEncode", "inputs": {"text": "{{prompt}}"}},
            "2": {"class_type": "SaveVideo", "inputs": {"video": ["1", 0]}}
        }}
    }]}"#;
    let catalogue = Catalogue::built_in().unwrap().extended("own.json", own).unwrap();
    let harness = harness(Vendor::Comfy).await;
    let model = catalogue.find(ProviderKind::Managed, "own").unwrap();
    let made = harness.make(&order(model, Capability::VideoGenerate, "job-1")).await;
    assert_eq!(made.unwrap().media_type, "video/mp4");
}
