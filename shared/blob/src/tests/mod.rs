//! Tests of the store: common behavior of directories and buckets, and what is specific to each.

mod behaviours;
mod bucket;
mod directory;

use std::sync::Arc;

use testkit::S3;

use super::*;

/// An empty store.
struct TestStore {
    store: Store,
    kind: Kind,
}

enum Kind {
    /// A directory, which is deleted at the end.
    Directory(PathBuf),
    Bucket {
        server: Arc<S3>,
        name: String,
    },
}

impl TestStore {
    fn directory() -> Self {
        let directory = std::env::temp_dir().join(format!("blob-test-{}", Uuid::new_v4().simple()));
        let url = Url::from_directory_path(&directory).expect("an absolute path");
        Self { store: Store::open(url.as_str()).expect("opens"), kind: Kind::Directory(directory) }
    }

    async fn bucket(server: &Arc<S3>) -> Self {
        let name = server.make_bucket().await;
        Self { store: bucket_at(&name, &server.endpoint()), kind: Kind::Bucket { server: server.clone(), name } }
    }

    /// All contents: complete objects and the remains of unfinished writes.
    async fn contents(&self) -> Vec<String> {
        match &self.kind {
            Kind::Directory(directory) => files(directory),
            Kind::Bucket { server, name } => {
                [server.objects(name).await, server.unfinished_uploads(name).await].concat()
            }
        }
    }

    /// Removes the empty store, as if a directory were unmounted or a bucket deleted.
    async fn take_away(&self) {
        match &self.kind {
            Kind::Directory(directory) => std::fs::remove_dir_all(directory).expect("removes"),
            Kind::Bucket { server, name } => server.delete_bucket(name).await,
        }
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        if let Kind::Directory(directory) = &self.kind {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// A store below a prefix of a bucket, as configured by an operator who shares the bucket with
/// others.
fn bucket_at(name: &str, endpoint: &str) -> Store {
    let variables = S3::environment(endpoint).map(|(name, value)| (name.to_owned(), value));
    Store::open_in(&format!("s3://{name}/some/prefix"), variables.into_iter()).expect("opens")
}

/// All files in the directory and its subdirectories, including temporary ones.
fn files(directory: &std::path::Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("reads") {
        let path = entry.expect("reads").path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path.display().to_string()) }
    }
    files
}

fn key() -> BlobKey {
    BlobKey(Uuid::new_v4())
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
