use blob::BlobKey;
use bytes::Bytes;
use db::renditions::{Rendition, State};
use raster::{Channels, Color, Encoding, OutputFormat, Picture, Size};
use serde_json::json;
use testkit::wait_for;
use uuid::Uuid;

use crate::world::{DEADLINE, PIXEL_MEMORY_BYTES, World, png};

impl World {
    async fn ask(&self, source: Uuid, width: u32) {
        let mut transaction = db::pool::begin(self.database.pool()).await.expect("begins");
        db::renditions::request(&mut transaction, source, width, &self.me, None).await.expect("asks");
        db::pool::commit(transaction).await.expect("commits");
    }

    /// The rendition once it is no longer pending.
    async fn made(&self, source: Uuid, width: u32) -> Rendition {
        let look = async || {
            let found = db::renditions::find(&mut *self.conn().await, source, width).await.expect("reads");
            found.filter(|rendition| rendition.state != State::Pending)
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
    let world = World::new().await;
    let source = world.source(png(400, 200)).await;
    world.ask(source, 64).await;
    let _worker = world.work();
    let State::Ready { blob_key, mime_type } = world.made(source, 64).await.state else { panic!("not ready") };
    assert_eq!(mime_type, "image/jpeg");
    let file = world.store.get(BlobKey(blob_key), 1 << 20).await.expect("is in the store");
    let header = raster::probe(&file).expect("is a picture");
    assert_eq!((header.width, header.height), (64, 32));
}

#[tokio::test]
async fn a_render_is_rasterised() {
    let world = World::new().await;
    let document = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"300\" height=\"150\" viewBox=\"0 0 300 150\"/>";
    let source = world.source(Bytes::from_static(document.as_bytes())).await;
    world.ask(source, 2048).await;
    let _worker = world.work();
    let State::Ready { blob_key, mime_type } = world.made(source, 2048).await.state else { panic!("not ready") };
    assert_eq!(mime_type, "image/png");
    let file = world.store.get(BlobKey(blob_key), 1 << 20).await.expect("is in the store");
    let header = raster::probe(&file).expect("is a picture");
    assert_eq!((header.width, header.height), (600, 300));
}

#[tokio::test]
async fn a_picture_that_cannot_be_read_is_noted_as_such() {
    let world = World::new().await;
    let source = world.source(png(400, 200).slice(..60)).await;
    world.ask(source, 64).await;
    let _worker = world.work();
    assert_eq!(world.made(source, 64).await.state, State::Undecodable);
}

#[tokio::test]
async fn a_picture_is_loaded_when_there_is_memory_for_it() {
    let world = World::new().await;
    let file = png(1200, 900);
    let source = world.source(file.clone()).await;
    world.ask(source, 64).await;
    // All but a mebibyte, which the pixels alone are more than.
    let memory = world.pixels.reserve(PIXEL_MEMORY_BYTES - (1 << 20)).await;
    let _worker = world.work();
    let queued = async || (world.pixels.reserved_bytes() == PIXEL_MEMORY_BYTES).then_some(());
    wait_for("the rendition to wait for memory", DEADLINE, queued).await;
    // What lies there once memory is free is what is loaded.
    std::fs::write(world.object_path(source), &file[..file.len() / 2]).expect("writes");
    drop(memory);
    assert_eq!(world.made(source, 64).await.state, State::Undecodable);
}

#[tokio::test]
async fn a_header_behind_long_metadata_is_found() {
    let world = World::new().await;
    let pixels = [10, 200, 30].repeat(400 * 200);
    let picture = Picture::new(Size::new(400, 200), Channels::Rgb, pixels).expect("as many as fit");
    let encoding = Encoding { format: OutputFormat::Jpeg, quality: 85, flatten: Color::WHITE };
    let mut file = raster::encode(&picture, &encoding).expect("encodes");
    // Segments of an application, right behind the start marker.
    let segment = [&[0xff, 0xe2, 0xff, 0xff][..], &[0; 0xffff - 2]].concat();
    file.splice(2..2, segment.repeat(3));
    let source = world.source(file.into()).await;
    world.ask(source, 64).await;
    let _worker = world.work();
    assert!(matches!(world.made(source, 64).await.state, State::Ready { .. }));
}

#[tokio::test]
async fn an_actions_output_gets_its_rendition_unasked() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(900, 90)).await;
    let (id, _) = world.resize(&input, json!({"width": 800})).await;
    let _worker = world.work();
    let asset = &world.ended(id).await.outcome.images[0].asset;
    let source = world.asset(asset).await.expect("is stored").blob_key;
    assert!(matches!(world.made(source, 512).await.state, State::Ready { .. }));
}
