//! Origins of outputs and renditions, and their marks (docs/reference/assets.md#origin).

use blob::BlobKey;
use bytes::Bytes;
use db::renditions::RenditionState;
use domain::asset::AssetRecord;
use domain::id::AssetHandle;
use domain::job::JobStatus;
use domain::origin::{DigitalSourceType, Origin, OriginFrom};
use raster::xmp::{Properties, insert_xmp, packet};
use serde_json::json;
use worker::Worker;
use worker::marks::OriginMarks;

use crate::harness::{Harness, png};

/// An image whose metadata claim this origin.
fn claiming(term: DigitalSourceType) -> Bytes {
    insert_xmp(png(40, 20).into(), packet(&term.uri(), Some("urn:c2pa:of-the-input")).as_bytes()).into()
}

impl Harness {
    pub async fn stored(&self, handle: &AssetHandle) -> (AssetRecord, Bytes) {
        let asset = self.asset(handle).await.expect("is stored");
        let file = self.store.get(BlobKey(asset.blob_key), 1 << 28).await.expect("is in the store");
        (asset, file)
    }

    /// The rendition of 512 pixels of an asset.
    async fn preview(&self, asset: &AssetRecord) -> Bytes {
        let made = self.made(asset.blob_key, 512).await;
        let RenditionState::Ready { blob_key, .. } = made.state else { panic!("{made:?}") };
        self.store.get(BlobKey(blob_key), 1 << 20).await.expect("is in the store")
    }

    /// The result of a resize of `input`.
    async fn resized(&self, input: &AssetHandle) -> (AssetRecord, Bytes) {
        let (id, _) = self.resize(input, json!({"width": 10})).await;
        let job = self.ended(id).await;
        assert_eq!(job.status, JobStatus::Succeeded, "{:?}", job.outcome.failure);
        self.stored(&job.outcome.images[0].asset).await
    }
}

/// The term that a file carries.
pub fn mark(file: &[u8]) -> Vec<String> {
    Properties::of_file(file).digital_source_types
}

#[tokio::test]
async fn the_origin_of_an_output_is_in_its_record_its_file_and_its_preview() {
    let harness = Harness::new().await;
    let _worker = harness.work();
    let ai = DigitalSourceType::TrainedAlgorithmicMedia;
    let input = harness.upload("ai", "ai.png", claiming(ai)).await;
    let (asset, file) = harness.resized(&input).await;
    assert_eq!(asset.origin, Some(Origin { term: ai, from: OriginFrom::Service }));
    let properties = Properties::of_file(&file);
    assert_eq!(properties.digital_source_types, [ai.uri()]);
    assert_eq!(properties.provenance.as_deref(), Some("urn:c2pa:of-the-input"));
    assert_eq!(mark(&harness.preview(&asset).await), [ai.uri()]);
    // A claim that only metadata make is not passed on.
    for (id, file) in [("photo", claiming(DigitalSourceType::DigitalCapture)), ("plain", png(40, 20))] {
        let input = harness.upload(id, "photo.png", file).await;
        let (asset, file) = harness.resized(&input).await;
        assert_eq!((asset.origin, mark(&file).len()), (None, 0), "{id}");
        assert!(mark(&harness.preview(&asset).await).is_empty(), "{id}");
    }
}

#[tokio::test]
async fn equal_work_gives_equal_files_with_their_marks() {
    let harness = Harness::new().await;
    let _worker = harness.work();
    let ai = DigitalSourceType::TrainedAlgorithmicMedia;
    let input = harness.upload("ai", "ai.png", claiming(ai)).await;
    let (first, _) = harness.resized(&input).await;
    let (second, _) = harness.resized(&input).await;
    assert_eq!(first.blob_key, second.blob_key, "one blob for equal bytes");
    // Equal pixels of another origin are another file.
    let plain = harness.upload("plain", "plain.png", png(40, 20)).await;
    let (other, _) = harness.resized(&plain).await;
    assert_ne!(first.blob_key, other.blob_key);
}

#[tokio::test]
async fn without_marks_files_are_as_before_and_records_are_not() {
    let harness = Harness::new().await;
    let unmarked = Worker { marks: OriginMarks(false), ..harness.worker() };
    let _worker =
        harness.run(Harness::tasks(unmarked), taskqueue::RunnerOptions::new(domain::message::Queue::Image, 4));
    let ai = DigitalSourceType::TrainedAlgorithmicMedia;
    let input = harness.upload("ai", "ai.png", claiming(ai)).await;
    let plain = harness.upload("plain", "plain.png", png(40, 20)).await;
    let (asset, file) = harness.resized(&input).await;
    let (_, expected) = harness.resized(&plain).await;
    assert_eq!(file, expected);
    assert_eq!(asset.origin, Some(Origin::service(ai)));
    assert!(mark(&harness.preview(&asset).await).is_empty());
}

#[tokio::test]
async fn a_rendition_carries_the_origin_of_its_image() {
    let harness = Harness::new().await;
    let _worker = harness.work();
    let ai = DigitalSourceType::CompositeWithTrainedAlgorithmicMedia;
    for (id, file, expected) in
        [("ai", claiming(ai), vec![ai.uri()]), ("photo", claiming(DigitalSourceType::DigitalCapture), Vec::new())]
    {
        let handle = harness.upload(id, "a.png", file).await;
        let (asset, _) = harness.stored(&handle).await;
        harness.ask(asset.blob_key, 512).await;
        assert_eq!(mark(&harness.preview(&asset).await), expected, "{id}");
    }
    // A file from before there were marks, of an asset whose origin is known.
    let handle = harness.upload("old", "a.png", png(64, 64)).await;
    harness
        .execute("UPDATE assets SET origin = 'trainedAlgorithmicMedia', origin_from = 'service' WHERE id = 'old'")
        .await;
    let (asset, _) = harness.stored(&handle).await;
    harness.ask(asset.blob_key, 512).await;
    assert_eq!(mark(&harness.preview(&asset).await), [DigitalSourceType::TrainedAlgorithmicMedia.uri()]);
}

#[tokio::test]
async fn the_png_of_a_render_has_the_metadata_of_its_document() {
    let harness = Harness::new().await;
    let _worker = harness.work();
    let ai = DigitalSourceType::CompositeWithTrainedAlgorithmicMedia.uri();
    for (id, metadata, expected) in [
        ("ai", format!("<metadata>{}</metadata>", packet(&ai, None)), vec![ai.clone()]),
        ("none", String::new(), Vec::new()),
    ] {
        let document = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"15\">{metadata}</svg>");
        let handle = harness.upload(id, "a.svg", document.into()).await;
        let (asset, _) = harness.stored(&handle).await;
        harness.ask(asset.blob_key, 512).await;
        assert_eq!(mark(&harness.preview(&asset).await), expected, "{id}");
    }
}
