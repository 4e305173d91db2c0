use std::time::Duration;

use blob::BlobKey;
use db::jobs::{Swept, Windows};
use domain::job::JobStatus;
use image_worker::sweep::Sweeper;
use serde_json::json;
use testkit::wait_for;

use crate::world::{DEADLINE, WINDOWS, World, png};

/// What the first sweep does that does anything: stored times are rounded to milliseconds, upwards too.
async fn first_swept(sweeper: &Sweeper) -> Swept {
    let sweep = async || Some(sweeper.jobs().await.expect("sweeps")).filter(|swept| *swept != Swept::default());
    wait_for("something to sweep", DEADLINE, sweep).await
}

#[tokio::test]
async fn a_success_expires_and_goes_while_its_asset_stays() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = world.resize(&input, json!({"width": 10})).await;
    let worker = world.work();
    let asset = world.ended(id).await.outcome.images[0].asset.clone();
    drop(worker);

    let sweeper = world.sweeper(WINDOWS);
    assert_eq!(sweeper.jobs().await.expect("sweeps"), Swept::default(), "its time has not come");
    db::jobs::mark_finalized(&mut *world.conn().await, id, Duration::ZERO).await.expect("shows");
    assert_eq!(first_swept(&sweeper).await, Swept { expired: 1, removed: 0 });
    assert_eq!(world.job(id).await.status, JobStatus::Expired);
    assert_eq!(sweeper.jobs().await.expect("sweeps"), Swept::default(), "a tombstone is kept");
    assert!(world.asset(&asset).await.is_some());
    assert_eq!(world.node(&node).await.expect("is there").asset, Some(asset));
}

#[tokio::test]
async fn a_tombstone_goes_after_its_window() {
    let world = World::new().await;
    let input = world.upload("in", "green.png", png(40, 20)).await;
    let (id, _) = world.resize(&input, json!({"width": 10})).await;
    let worker = world.work();
    world.ended(id).await;
    drop(worker);
    db::jobs::mark_finalized(&mut *world.conn().await, id, Duration::ZERO).await.expect("shows");
    let sweeper = world.sweeper(Windows { tombstone: Duration::ZERO, ..WINDOWS });
    let mut swept = first_swept(&sweeper).await;
    // Its window of no length may end a rounded millisecond later.
    if swept.removed == 0 {
        swept.removed += first_swept(&sweeper).await.removed;
    }
    assert_eq!(swept, Swept { expired: 1, removed: 1 });
    assert_eq!(db::jobs::get(&mut *world.conn().await, id, &world.me).await.expect("reads"), None);
}

#[tokio::test]
async fn a_blob_goes_when_nothing_refers_to_it_and_its_grace_is_over() {
    let world = World::new().await;
    let referred = world.upload("in", "green.png", png(40, 20)).await;
    let kept = world.asset(&referred).await.expect("is there").blob_key;
    let orphan = db::blobs::stage_unknown(&mut *world.conn().await).await.expect("stages");
    world.store.put(BlobKey(orphan), png(2, 2)).await.expect("puts");
    let sweeper = world.sweeper(WINDOWS);
    assert_eq!(sweeper.blobs(Duration::from_secs(3600)).await.expect("sweeps"), 0, "somebody may still mean to use it");
    assert_eq!(sweeper.blobs(Duration::ZERO).await.expect("sweeps"), 1);
    assert!(matches!(world.store.get(BlobKey(orphan), 1 << 20).await, Err(blob::Error::Missing(_))));
    assert!(world.store.get(BlobKey(kept), 1 << 20).await.is_ok());
    assert_eq!(sweeper.blobs(Duration::ZERO).await.expect("sweeps"), 0);
}
