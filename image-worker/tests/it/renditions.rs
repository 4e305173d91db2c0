use blob::BlobKey;
use bytes::Bytes;
use db::renditions::{Rendition, State};
use serde_json::json;
use testkit::wait_for;
use uuid::Uuid;

use crate::world::{DEADLINE, World, png};

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
async fn an_actions_output_gets_its_rendition_unasked() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(900, 90)).await;
    let (id, _) = world.resize(&input, json!({"width": 800})).await;
    let _worker = world.work();
    let asset = &world.ended(id).await.outcome.images[0].asset;
    let source = world.asset(asset).await.expect("is stored").blob_key;
    assert!(matches!(world.made(source, 512).await.state, State::Ready { .. }));
}
