//! Behavior that directory and bucket have in common.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};

use super::*;

/// Tests each behavior in a directory, and all of them in buckets of one server, which takes a second to start.
macro_rules! behaviours {
    ($($name:ident),+ $(,)?) => {
        mod in_a_directory {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::TestStore::directory()).await;
            })+
        }

        #[tokio::test]
        async fn a_bucket_behaves_as_a_directory_does() {
            let server = Arc::new(S3::start().await);
            $(println!(stringify!($name));
            $name(TestStore::bucket(&server).await).await;)+
        }

        #[tokio::test]
        async fn a_bucket_of_google_behaves_as_a_directory_does() {
            let server = Arc::new(S3::start().await);
            $(println!(stringify!($name));
            $name(TestStore::google(&server).await).await;)+
        }

        #[tokio::test]
        async fn a_container_of_azure_behaves_as_a_directory_does() {
            let server = Arc::new(Azurite::start().await);
            $(println!(stringify!($name));
            $name(TestStore::azure(&server).await).await;)+
        }
    };
}

behaviours! {
    what_was_put_is_read_whole_and_in_parts,
    an_object_over_the_limit_is_not_loaded,
    what_is_not_there_is_missing_and_may_be_deleted,
    what_is_put_twice_is_there_once,
    a_writer_counts_and_hashes_below_at_and_above_a_part,
    a_writer_that_is_dropped_leaves_nothing,
    an_object_exists_or_does_not,
    a_store_that_is_gone_is_not_ready_and_lacks_no_object,
}

async fn read(store: &Store, key: BlobKey, range: Option<Range<u64>>) -> (u64, Range<u64>, Vec<u8>) {
    let object = store.stream(key, range).await.expect("opens");
    let pieces: Vec<Bytes> = object.stream.try_collect().await.expect("reads");
    (object.size, object.range, pieces.concat())
}

async fn what_was_put_is_read_whole_and_in_parts(place: TestStore) {
    let key = key();
    place.store.put(key, Bytes::from_static(b"0123456789")).await.expect("writes");
    assert_eq!(place.store.get(key, 10).await.expect("reads"), "0123456789");
    assert_eq!(read(&place.store, key, None).await, (10, 0..10, b"0123456789".to_vec()));
    assert_eq!(read(&place.store, key, Some(2..5)).await, (10, 2..5, b"234".to_vec()));
    assert_eq!(read(&place.store, key, Some(9..99)).await, (10, 9..10, b"9".to_vec()));
    assert!(place.store.stream(key, Some(10..11)).await.is_err());
}

async fn an_object_over_the_limit_is_not_loaded(place: TestStore) {
    let key = key();
    place.store.put(key, Bytes::from_static(b"0123456789")).await.expect("writes");
    assert!(matches!(place.store.get(key, 9).await, Err(Error::TooLarge { bytes: 10, limit: 9, .. })));
}

async fn what_is_not_there_is_missing_and_may_be_deleted(place: TestStore) {
    let key = key();
    assert!(matches!(place.store.get(key, 1).await, Err(Error::Missing(_))));
    assert!(matches!(place.store.stream(key, None).await, Err(Error::Missing(_))));
    place.store.delete(key).await.expect("is absent");
    place.store.put(key, Bytes::from_static(b"x")).await.expect("writes");
    place.store.delete(key).await.expect("deletes");
    assert_eq!(place.contents().await, [""; 0]);
}

async fn what_is_put_twice_is_there_once(place: TestStore) {
    let key = key();
    for _ in 0..2 {
        place.store.put(key, Bytes::from_static(b"picture")).await.expect("writes");
    }
    assert_eq!(place.store.get(key, 7).await.expect("reads"), "picture");
    assert_eq!(place.contents().await.len(), 1);
}

async fn a_writer_counts_and_hashes_below_at_and_above_a_part(place: TestStore) {
    const PART: usize = 8 * 1024 * 1024;
    for size in [0, 1, PART - 1, PART, PART + 1, 2 * PART + 100] {
        let bytes: Vec<u8> = (0..size).map(|index| (index / 7) as u8).collect();
        let key = key();
        let mut writer = place.store.writer(key);
        for chunk in bytes.chunks(1_000_003) {
            writer.write(chunk).await.expect("writes");
        }
        assert_eq!(writer.bytes(), size as u64);
        let written = writer.finish().await.expect("finishes");
        assert_eq!(written, Written { sha256: Sha256::digest(&bytes).into(), bytes: size as u64 });
        assert!(place.store.get(key, size as u64).await.expect("reads") == bytes, "{size} bytes differ");
    }
    assert_eq!(place.contents().await.len(), 6, "nothing but the objects stays");
}

async fn a_writer_that_is_dropped_leaves_nothing(place: TestStore) {
    for size in [1, 9 * 1024 * 1024] {
        let key = key();
        let mut writer = place.store.writer(key);
        writer.write(&vec![1; size]).await.expect("writes");
        assert!(matches!(place.store.get(key, u64::MAX).await, Err(Error::Missing(_))), "invisible until finished");
        drop(writer);
    }
    testkit::wait_for("what was written to go", Duration::from_secs(10), async || {
        place.contents().await.is_empty().then_some(())
    })
    .await;
}

async fn an_object_exists_or_does_not(place: TestStore) {
    let key = key();
    assert!(!place.store.exists(key).await.expect("answers"));
    place.store.put(key, Bytes::from_static(b"picture")).await.expect("writes");
    assert!(place.store.exists(key).await.expect("answers"));
}

async fn a_store_that_is_gone_is_not_ready_and_lacks_no_object(place: TestStore) {
    let gone = |error: Error| matches!(error, Error::Directory(_) | Error::Check(_));
    place.store.check().await.expect("ready");
    place.store.check_writable().await.expect("has room");
    assert_eq!(place.contents().await, [""; 0], "asking leaves nothing");
    place.take_away().await;
    assert!(gone(place.store.check().await.expect_err("is gone")));
    assert!(gone(place.store.exists(key()).await.expect_err("cannot be asked")));
    assert!(gone(place.store.get(key(), 1).await.expect_err("cannot be asked")));
    assert!(gone(place.store.stream(key(), None).await.map(drop).expect_err("cannot be asked")));
    assert!(place.store.delete(key()).await.is_err(), "who could say that it is not there?");
}
