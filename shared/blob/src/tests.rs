use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};

use super::*;

/// A file store in a directory of its own, removed with it.
struct Scratch {
    store: Store,
    directory: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let directory = std::env::temp_dir().join(format!("blob-test-{}", Uuid::new_v4().simple()));
        let url = Url::from_directory_path(&directory).expect("an absolute path");
        Self { store: Store::open(url.as_str()).expect("opens"), directory }
    }

    /// Every file, temporary ones too.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut directories = vec![self.directory.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).expect("reads") {
                let path = entry.expect("reads").path();
                if path.is_dir() { directories.push(path) } else { files.push(path) }
            }
        }
        files
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn key() -> BlobKey {
    BlobKey(Uuid::new_v4())
}

async fn read(store: &Store, key: BlobKey, range: Option<Range<u64>>) -> (u64, Range<u64>, Vec<u8>) {
    let object = store.stream(key, range).await.expect("opens");
    let pieces: Vec<Bytes> = object.stream.try_collect().await.expect("reads");
    (object.size, object.range, pieces.concat())
}

#[test]
fn only_directories_and_buckets_are_opened() {
    for url in ["", "no url", "http://example.com/", "memory:///", "file://host/x", "s3:///prefix"] {
        assert!(Store::open(url).is_err(), "{url:?}");
    }
    assert!(Store::open("s3://bucket/some/prefix").is_ok(), "a bucket is not contacted");
}

#[test]
fn a_key_lies_in_a_directory_of_its_last_two_digits() {
    let key = BlobKey("0192f0c4-7a3b-7def-8123-456789abcdef".parse().expect("a UUID"));
    assert_eq!(key.path().as_ref(), "blobs/ef/0192f0c47a3b7def8123456789abcdef");
}

#[tokio::test]
async fn what_was_put_is_read_whole_and_in_parts() {
    let scratch = Scratch::new();
    let key = key();
    scratch.store.put(key, Bytes::from_static(b"0123456789")).await.expect("writes");
    assert_eq!(scratch.store.get(key, 10).await.expect("reads"), "0123456789");
    assert_eq!(read(&scratch.store, key, None).await, (10, 0..10, b"0123456789".to_vec()));
    assert_eq!(read(&scratch.store, key, Some(2..5)).await, (10, 2..5, b"234".to_vec()));
    assert_eq!(read(&scratch.store, key, Some(9..99)).await, (10, 9..10, b"9".to_vec()));
    assert!(scratch.store.stream(key, Some(10..11)).await.is_err());
}

#[tokio::test]
async fn an_object_over_the_limit_is_not_loaded() {
    let scratch = Scratch::new();
    let key = key();
    scratch.store.put(key, Bytes::from_static(b"0123456789")).await.expect("writes");
    assert!(matches!(scratch.store.get(key, 9).await, Err(Error::TooLarge { bytes: 10, limit: 9, .. })));
}

#[tokio::test]
async fn what_is_not_there_is_missing_and_may_be_deleted() {
    let scratch = Scratch::new();
    let key = key();
    assert!(matches!(scratch.store.get(key, 1).await, Err(Error::Missing(_))));
    assert!(matches!(scratch.store.stream(key, None).await, Err(Error::Missing(_))));
    scratch.store.delete(key).await.expect("is absent");
    scratch.store.put(key, Bytes::from_static(b"x")).await.expect("writes");
    scratch.store.delete(key).await.expect("deletes");
    assert!(scratch.files().is_empty());
}

#[tokio::test]
async fn what_a_killed_write_left_goes_with_its_object() {
    let scratch = Scratch::new();
    let (mine, other) = (key(), key());
    scratch.store.put(mine, Bytes::from_static(b"x")).await.expect("writes");
    for key in [mine, other] {
        let object = scratch.directory.join(key.path().as_ref());
        std::fs::create_dir_all(object.parent().expect("is in a directory")).expect("makes it");
        for number in 1..=2 {
            std::fs::write(format!("{}#{number}", object.display()), "half").expect("writes");
        }
    }
    scratch.store.delete(mine).await.expect("deletes");
    assert_eq!(scratch.files().len(), 2, "those of the other");
    scratch.store.delete(other).await.expect("deletes what was never whole");
    assert!(scratch.files().is_empty());
}

#[tokio::test]
async fn a_writer_counts_and_hashes_below_at_and_above_a_part() {
    let scratch = Scratch::new();
    const PART: usize = 8 * 1024 * 1024;
    for size in [0, 1, PART - 1, PART, PART + 1, 2 * PART + 100] {
        let bytes: Vec<u8> = (0..size).map(|index| (index / 7) as u8).collect();
        let key = key();
        let mut writer = scratch.store.writer(key);
        for chunk in bytes.chunks(1_000_003) {
            writer.write(chunk).await.expect("writes");
        }
        assert_eq!(writer.bytes(), size as u64);
        let written = writer.finish().await.expect("finishes");
        assert_eq!(written, Written { sha256: Sha256::digest(&bytes).into(), bytes: size as u64 });
        assert!(scratch.store.get(key, size as u64).await.expect("reads") == bytes, "{size} bytes differ");
    }
    assert_eq!(scratch.files().len(), 6, "no temporary file stays");
}

#[tokio::test]
async fn a_writer_that_is_dropped_leaves_nothing() {
    let scratch = Scratch::new();
    for size in [1, 9 * 1024 * 1024] {
        let key = key();
        let mut writer = scratch.store.writer(key);
        writer.write(&vec![1; size]).await.expect("writes");
        assert!(matches!(scratch.store.get(key, u64::MAX).await, Err(Error::Missing(_))), "invisible until finished");
        drop(writer);
    }
    testkit::wait_for("the temporary file to go", Duration::from_secs(5), async || {
        scratch.files().is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_store_whose_directory_is_gone_is_not_ready() {
    let scratch = Scratch::new();
    scratch.store.check().await.expect("ready");
    std::fs::remove_dir_all(&scratch.directory).expect("removes");
    assert!(matches!(scratch.store.check().await, Err(Error::Directory(_))));
}

#[tokio::test]
async fn an_object_exists_or_does_not_or_cannot_be_asked_for() {
    let scratch = Scratch::new();
    let key = key();
    assert!(!scratch.store.exists(key).await.expect("answers"));
    let mut writer = scratch.store.writer(key);
    writer.write(&Bytes::from_static(b"picture")).await.expect("writes");
    writer.finish().await.expect("finishes");
    assert!(scratch.store.exists(key).await.expect("answers"));
    std::fs::remove_dir_all(&scratch.directory).expect("removes the store");
    assert!(matches!(scratch.store.exists(key).await, Err(Error::Directory(_))));
}
