use std::time::Duration;

use blob::BlobKey;
use db::jobs::{Removed, Windows};
use domain::job::JobStatus;
use image_worker::sweep::Sweeper;
use serde_json::json;
use testkit::wait_for;

use crate::harness::{DEADLINE, Harness, WINDOWS, png};

/// Waits until something has expired. Stored times are rounded to milliseconds, up or down.
async fn until_expired(sweeper: &Sweeper) {
    let sweep = async || (sweeper.expire().await.expect("sweeps") == 1).then_some(());
    wait_for("something to expire", DEADLINE, sweep).await;
}

#[tokio::test]
async fn a_success_expires_and_goes_while_its_asset_stays() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, node) = harness.resize(&input, json!({"width": 10})).await;
    let worker = harness.work();
    let asset = harness.ended(id).await.outcome.images[0].asset.clone();
    drop(worker);

    let sweeper = harness.sweeper(WINDOWS);
    assert_eq!(sweeper.expire().await.expect("sweeps"), 0, "its time has not come");
    db::jobs::mark_finalized(&mut *harness.conn().await, id, Duration::ZERO).await.expect("shows");
    until_expired(&sweeper).await;
    assert_eq!(harness.job(id).await.status, JobStatus::Expired);
    assert_eq!(sweeper.jobs().await.expect("sweeps"), Removed::default(), "a tombstone is kept");
    assert!(harness.asset(&asset).await.is_some());
    assert_eq!(harness.node(&node).await.expect("is there").asset, Some(asset));
}

#[tokio::test]
async fn a_tombstone_goes_after_its_window() {
    let harness = Harness::new().await;
    let input = harness.upload("in", "green.png", png(40, 20)).await;
    let (id, _) = harness.resize(&input, json!({"width": 10})).await;
    let worker = harness.work();
    harness.ended(id).await;
    drop(worker);
    db::jobs::mark_finalized(&mut *harness.conn().await, id, Duration::ZERO).await.expect("shows");
    let sweeper = harness.sweeper(Windows { tombstone: Duration::ZERO, ..WINDOWS });
    until_expired(&sweeper).await;
    let removed = Removed { removed: 1, unreadable: 0 };
    let sweep = async || (sweeper.jobs().await.expect("sweeps") == removed).then_some(());
    wait_for("the tombstone to go", DEADLINE, sweep).await;
    let mut conn = harness.conn().await;
    assert_eq!(db::jobs::get(&mut conn, id, &harness.me, Duration::ZERO).await.expect("reads"), None);
}

#[tokio::test]
async fn a_blob_goes_when_nothing_refers_to_it_and_its_grace_is_over() {
    let harness = Harness::new().await;
    let referred = harness.upload("in", "green.png", png(40, 20)).await;
    let kept = harness.asset(&referred).await.expect("is there").blob_key;
    let orphan = db::blobs::stage_unknown(&mut *harness.conn().await).await.expect("stages");
    harness.store.put(BlobKey(orphan), png(2, 2)).await.expect("puts");
    let sweeper = harness.sweeper(WINDOWS);
    assert_eq!(sweeper.blobs(Duration::from_secs(3600)).await.expect("sweeps"), 0, "somebody may still mean to use it");
    assert_eq!(sweeper.blobs(Duration::ZERO).await.expect("sweeps"), 1);
    assert!(matches!(harness.store.get(BlobKey(orphan), 1 << 20).await, Err(blob::Error::Missing(_))));
    assert!(harness.store.get(BlobKey(kept), 1 << 20).await.is_ok());
    assert_eq!(sweeper.blobs(Duration::ZERO).await.expect("sweeps"), 0);
}

#[tokio::test]
async fn a_stored_blob_goes_once_its_last_reference_is_gone() {
    let harness = Harness::new().await;
    let asset = harness.upload("in", "green.png", png(40, 20)).await;
    let key = harness.asset(&asset).await.expect("is there").blob_key;
    let sweeper = harness.sweeper(WINDOWS);
    assert_eq!(sweeper.blobs(Duration::ZERO).await.expect("sweeps"), 0, "it is referred to");
    harness.execute("DELETE FROM assets").await;
    assert_eq!(sweeper.blobs(Duration::from_secs(3600)).await.expect("sweeps"), 0, "somebody may still mean to use it");
    let sweep = async || (sweeper.blobs(Duration::ZERO).await.expect("sweeps") == 1).then_some(());
    wait_for("the blob to go", DEADLINE, sweep).await;
    assert!(matches!(harness.store.get(BlobKey(key), 1 << 20).await, Err(blob::Error::Missing(_))));
}

#[tokio::test]
async fn a_blob_that_cannot_be_deleted_holds_up_no_other() {
    let harness = Harness::new().await;
    let mut conn = harness.conn().await;
    let mut stage = async || db::blobs::stage_unknown(&mut conn).await.expect("stages");
    let (stuck, other) = (stage().await, stage().await);
    // A non-empty directory replaces the object, so that it cannot be deleted.
    let place = harness.object_path(stuck);
    std::fs::create_dir_all(place.join("x")).expect("makes directories");
    harness.store.put(BlobKey(other), png(2, 2)).await.expect("puts");
    let sweeper = harness.sweeper(WINDOWS);
    assert!(stuck < other, "it comes first");
    assert_eq!(sweeper.blobs(Duration::ZERO).await.expect("goes on"), 1);
    std::fs::remove_dir_all(place).expect("removes");
    assert_eq!(sweeper.blobs(Duration::ZERO).await.expect("sweeps"), 1, "the next round takes it");
}
