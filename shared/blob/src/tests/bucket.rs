//! Tests of buckets: a server that rejects requests, is unavailable, or fails midway.

use std::time::Duration;

use bytes::Bytes;
use testkit::Proxy;

use super::*;

/// More than one part, so that a multipart upload has begun.
const MORE_THAN_A_PART: usize = 9 * 1024 * 1024;
/// Limit for work that continues after the caller has returned.
const PATIENCE: Duration = Duration::from_secs(10);
/// An outage that is shorter than the store's own retries.
const MOMENT: Duration = Duration::from_millis(300);

/// Every call fails with an error of the store, and none reports the object as missing.
async fn assert_unusable(store: &Store) {
    assert!(matches!(store.check().await, Err(Error::Check(_))));
    assert!(matches!(store.put(key(), Bytes::from_static(b"x")).await, Err(Error::Write { .. })));
    assert!(matches!(store.get(key(), 1).await, Err(Error::Read { .. } | Error::Check(_))));
    assert!(matches!(store.stream(key(), Some(0..1)).await.map(drop), Err(Error::Read { .. } | Error::Check(_))));
    assert!(matches!(store.exists(key()).await, Err(Error::Read { .. } | Error::Check(_))));
    let mut writer = store.writer(key());
    assert!(matches!(writer.write(&vec![1; MORE_THAN_A_PART]).await, Err(Error::Write { .. })));
}

#[tokio::test]
async fn a_bucket_that_is_missing_or_refuses_the_credentials_is_no_store() {
    let server = Arc::new(S3::start().await);
    assert_unusable(&bucket_at("nobody-made-this", &server.endpoint())).await;
    let place = TestStore::bucket(&server).await;
    place.store.check().await.expect("ready");
    server.refuse_everybody().await;
    assert_unusable(&place.store).await;
}

#[tokio::test]
async fn a_server_that_is_away_is_an_error_and_serves_again_when_it_is_back() {
    let server = Arc::new(S3::start().await);
    let (network, place) = (Proxy::in_front_of(&server.endpoint()).await, TestStore::bucket(&server).await);
    let Kind::Bucket { name, .. } = &place.kind else { unreachable!("it is one") };
    let (store, key) = (bucket_at(name, network.url().trim_end_matches('/')), key());
    store.put(key, Bytes::from_static(b"picture")).await.expect("writes");
    network.cut();
    let (checked, read, deleted) = tokio::join!(store.check(), store.get(key, 7), store.delete(key));
    assert!(matches!(checked, Err(Error::Check(_))));
    assert!(matches!(read, Err(Error::Read { .. })));
    assert!(matches!(deleted, Err(Error::Delete { .. })));
    network.resume();
    store.check().await.expect("ready");
    assert_eq!(store.get(key, 7).await.expect("reads"), "picture");
}

#[tokio::test]
async fn an_upload_that_breaks_off_half_way_leaves_nothing_visible() {
    let server = Arc::new(S3::start().await);
    let (network, place) = (Proxy::in_front_of(&server.endpoint()).await, TestStore::bucket(&server).await);
    let Kind::Bucket { name, .. } = &place.kind else { unreachable!("it is one") };
    let store = bucket_at(name, network.url().trim_end_matches('/'));
    let (in_a_part, at_the_end) = (key(), key());
    let (mut first, mut second) = (store.writer(in_a_part), store.writer(at_the_end));
    first.write(&vec![1; MORE_THAN_A_PART]).await.expect("writes");
    second.write(&vec![2; MORE_THAN_A_PART]).await.expect("writes");
    assert_eq!(server.unfinished_uploads(name).await.len(), 2, "in parts");
    network.cut();
    let more = vec![1; MORE_THAN_A_PART];
    let (written, finished) = tokio::join!(first.write(&more), second.finish());
    assert!(matches!(written, Err(Error::Write { .. })));
    assert!(matches!(finished, Err(Error::Write { .. })));
    drop(first);
    network.resume();
    for key in [in_a_part, at_the_end] {
        assert!(!store.exists(key).await.expect("answers"));
        assert!(matches!(store.get(key, u64::MAX).await, Err(Error::Missing(_))));
    }
    assert_eq!(server.objects(name).await, [""; 0]);
    // The key can be used again.
    store.put(in_a_part, Bytes::from_static(b"again")).await.expect("writes");
    assert_eq!(store.get(in_a_part, 5).await.expect("reads"), "again");
}

#[tokio::test]
async fn a_part_that_fails_is_tried_again_and_ends_the_object_when_it_fails_for_good() {
    let server = Arc::new(S3::start().await);
    let (network, place) = (Proxy::in_front_of(&server.endpoint()).await, TestStore::bucket(&server).await);
    let Kind::Bucket { name, .. } = &place.kind else { unreachable!("it is one") };
    let store = bucket_at(name, network.url().trim_end_matches('/'));
    let (bytes, key) = (vec![1; 2 * MORE_THAN_A_PART], key());
    network.refuse("partNumber=2");
    let mut writer = store.writer(key);
    assert!(matches!(writer.write(&bytes).await, Err(Error::Write { .. })));
    drop(writer);
    testkit::wait_for("the parts that were put to go", PATIENCE, async || {
        server.unfinished_uploads(name).await.is_empty().then_some(())
    })
    .await;
    assert!(!store.exists(key).await.expect("answers"));
    // The outage is so short that the writer does not notice it.
    let mut writer = store.writer(key);
    let mend = async {
        tokio::time::sleep(MOMENT).await;
        network.resume();
    };
    let (written, ()) = tokio::join!(writer.write(&bytes), mend);
    written.expect("is tried again");
    let written = writer.finish().await.expect("finishes");
    assert_eq!(written.bytes, bytes.len() as u64);
    assert!(store.get(key, written.bytes).await.expect("reads") == bytes);
    assert_eq!(server.objects(name).await.len(), 1);
}
