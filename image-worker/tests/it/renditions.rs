use blob::BlobKey;
use bytes::Bytes;
use db::renditions::{Rendition, RenditionState};
use domain::message::ReadyTasks;
use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size};
use serde_json::json;
use testkit::wait_for;
use uuid::Uuid;

use crate::harness::{DEADLINE, Harness, PIXEL_MEMORY_BYTES, png};

impl Harness {
    pub async fn ask(&self, source: Uuid, width: u32) {
        let mut transaction = db::pool::begin(self.database.pool()).await.expect("begins");
        db::renditions::request(&mut transaction, source, width, &self.me, None, &ReadyTasks::new())
            .await
            .expect("asks");
        db::pool::commit(transaction).await.expect("commits");
    }

    /// The rendition once it is no longer pending.
    pub async fn made(&self, source: Uuid, width: u32) -> Rendition {
        let look = async || {
            let found = db::renditions::find(&mut *self.conn().await, source, width).await.expect("reads");
            let found = found.map(|(rendition, _)| rendition);
            found.filter(|rendition| rendition.state != RenditionState::Pending)
        };
        wait_for("the rendition", DEADLINE, look).await
    }

    async fn source(&self, file: Bytes) -> Uuid {
        let handle = self.upload("source", "source.png", file).await;
        self.asset(&handle).await.expect("is there").blob_key
    }
}

#[tokio::test]
async fn a_rendition_is_made_and_stored() {
    let harness = Harness::new().await;
    let source = harness.source(png(400, 200)).await;
    harness.ask(source, 64).await;
    let _worker = harness.work();
    let RenditionState::Ready { blob_key, mime_type } = harness.made(source, 64).await.state else {
        panic!("not ready")
    };
    assert_eq!(mime_type, "image/jpeg");
    let file = harness.store.get(BlobKey(blob_key), 1 << 20).await.expect("is in the store");
    let header = raster::probe(&file).expect("is an image");
    assert_eq!((header.width, header.height), (64, 32));
}

#[tokio::test]
async fn a_render_is_rasterised() {
    let harness = Harness::new().await;
    let document = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"300\" height=\"150\" viewBox=\"0 0 300 150\"/>";
    let source = harness.source(Bytes::from_static(document.as_bytes())).await;
    harness.ask(source, 2048).await;
    let _worker = harness.work();
    let RenditionState::Ready { blob_key, mime_type } = harness.made(source, 2048).await.state else {
        panic!("not ready")
    };
    assert_eq!(mime_type, "image/png");
    let file = harness.store.get(BlobKey(blob_key), 1 << 20).await.expect("is in the store");
    let header = raster::probe(&file).expect("is an image");
    assert_eq!((header.width, header.height), (600, 300));
}

#[tokio::test]
async fn an_image_that_cannot_be_read_is_noted_as_such() {
    let harness = Harness::new().await;
    let source = harness.source(png(400, 200).slice(..60)).await;
    harness.ask(source, 64).await;
    let _worker = harness.work();
    assert_eq!(harness.made(source, 64).await.state, RenditionState::Undecodable);
}

#[tokio::test]
async fn an_image_is_loaded_when_there_is_memory_for_it() {
    let harness = Harness::new().await;
    let file = png(1200, 900);
    let source = harness.source(file.clone()).await;
    harness.ask(source, 64).await;
    // Occupies all but one mebibyte, which is less than the pixels alone take.
    let memory = harness.pixels.reserve(PIXEL_MEMORY_BYTES - (1 << 20)).await;
    let _worker = harness.work();
    let queued = async || (harness.pixels.waiting_for_memory() == 1).then_some(());
    wait_for("the rendition to wait for memory", DEADLINE, queued).await;
    // The worker loads the file that is in the store when memory becomes free.
    std::fs::write(harness.object_path(source), &file[..file.len() / 2]).expect("writes");
    drop(memory);
    assert_eq!(harness.made(source, 64).await.state, RenditionState::Undecodable);
}

#[tokio::test]
async fn a_header_behind_long_metadata_is_found() {
    let harness = Harness::new().await;
    let pixels = [10, 200, 30].repeat(400 * 200);
    let image = Bitmap::new(Size::new(400, 200), Channels::Rgb, pixels).expect("as many as fit");
    let encoding = Encoding { format: OutputFormat::Jpeg, quality: 85, flatten: Color::WHITE };
    let mut file = raster::encode(&image, &encoding).expect("encodes");
    // Application segments, right after the start marker.
    let segment = [&[0xff, 0xe2, 0xff, 0xff][..], &[0; 0xffff - 2]].concat();
    file.splice(2..2, segment.repeat(3));
    let source = harness.source(file.into()).await;
    harness.ask(source, 64).await;
    let _worker = harness.work();
    assert!(matches!(harness.made(source, 64).await.state, RenditionState::Ready { .. }));
}

#[tokio::test]
async fn an_actions_output_gets_its_rendition_unasked() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(900, 90)).await;
    let (id, _) = harness.resize(&input, json!({"width": 800})).await;
    let _worker = harness.work();
    let asset = &harness.ended(id).await.outcome.images[0].asset;
    let source = harness.asset(asset).await.expect("is stored").blob_key;
    assert!(matches!(harness.made(source, 512).await.state, RenditionState::Ready { .. }));
}
