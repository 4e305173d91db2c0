//! Tests of the store: common behavior of directories and buckets, and what is specific to each.

mod behaviours;
mod bucket;
mod directory;

use std::sync::Arc;

use testkit::{Azurite, S3};

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
    Container {
        server: Arc<Azurite>,
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

    /// A bucket of Google Cloud Storage. Its XML API is that of S3, so the same server takes its place. It accepts any
    /// token.
    async fn google(server: &Arc<S3>) -> Self {
        let name = server.make_bucket().await;
        let variables = [
            ("GOOGLE_BASE_URL", server.endpoint()),
            ("GOOGLE_BEARER_TOKEN", "test".to_owned()),
            ("GOOGLE_ALLOW_HTTP", "true".to_owned()),
        ];
        let store = opened(&format!("gs://{name}/some/prefix"), variables);
        Self { store, kind: Kind::Bucket { server: server.clone(), name } }
    }

    async fn azure(server: &Arc<Azurite>) -> Self {
        let name = server.make_container().await;
        let store = opened(&format!("az://{name}/some/prefix"), server.environment());
        Self { store, kind: Kind::Container { server: server.clone(), name } }
    }

    /// All contents: complete objects and the remains of unfinished writes.
    async fn contents(&self) -> Vec<String> {
        match &self.kind {
            Kind::Directory(directory) => files(directory),
            Kind::Bucket { server, name } => {
                [server.objects(name).await, server.unfinished_uploads(name).await].concat()
            }
            Kind::Container { server, name } => server.blobs(name).await,
        }
    }

    /// Removes the empty store, as if a directory were unmounted or a bucket deleted.
    async fn take_away(&self) {
        match &self.kind {
            Kind::Directory(directory) => std::fs::remove_dir_all(directory).expect("removes"),
            Kind::Bucket { server, name } => server.delete_bucket(name).await,
            Kind::Container { server, name } => server.delete_container(name).await,
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
    opened(&format!("s3://{name}/some/prefix"), S3::environment(endpoint))
}

/// A store with these environment variables.
fn opened<const N: usize>(url: &str, variables: [(&'static str, String); N]) -> Store {
    Store::open_in(url, variables.map(|(name, value)| (name.to_owned(), value)).into_iter()).expect("opens")
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
    for url in ["s3://bucket/some/prefix", "gs://bucket/some/prefix"] {
        assert!(Store::open(url).is_ok(), "a bucket is not contacted: {url}");
    }
    // Azure has no default account.
    assert!(matches!(Store::open_in("az://container", std::iter::empty()), Err(Error::Open(_))));
    opened("az://container/some/prefix", [("AZURE_STORAGE_ACCOUNT_NAME", "account".to_owned())]);
}

#[test]
fn a_key_lies_in_a_directory_of_its_last_two_digits() {
    let key = BlobKey("0192f0c4-7a3b-7def-8123-456789abcdef".parse().expect("a UUID"));
    assert_eq!(key.path().as_ref(), "blobs/ef/0192f0c47a3b7def8123456789abcdef");
}
