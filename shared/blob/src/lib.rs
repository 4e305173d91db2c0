//! The object store: a directory (`file:///dir`) or a bucket (`s3://bucket/prefix`) behind one interface (decisions 6.6).
//!
//! **Guarantee.** An object appears whole or not at all, and what a write returned for survives a power loss: it may be named
//! by a row. **Mechanism.** In a directory, write to a temporary file, fsync, rename, fsync the directory; in a bucket, what
//! S3 promises. Keys are random and never reused, so an object never changes and may be cached for ever.

mod error;
mod read;
mod write;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt, RetryConfig};
use url::Url;
use uuid::Uuid;

pub use error::{Error, Result};
pub use read::Object;
pub use write::{Writer, Written};

/// Attempts after the first, and the time in which they begin: an answer is due to somebody, and work is retried as a whole.
const RETRIES: usize = 4;
const RETRY_LIMIT: Duration = Duration::from_secs(20);

/// How long connecting may take, and how long nothing may come.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const READ_LIMIT: Duration = Duration::from_secs(10);

/// Bytes that are written to see whether there is room: more than what file systems keep beside a file's blocks.
static PROBE: [u8; 64 * 1024] = [0; 64 * 1024];

/// The name of an object: the key of its row in `blobs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlobKey(pub Uuid);

impl BlobKey {
    /// `blobs/<last two hex digits>/<all 32>`: no directory becomes large. The first digits of a UUIDv7 are the time and would
    /// be the same for years.
    fn path(self) -> Path {
        let name = self.0.simple().to_string();
        Path::from_iter(["blobs", &name[30..], &name])
    }
}

/// The store; clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    /// Of a file store.
    directory: Option<PathBuf>,
}

impl Store {
    /// Opens `file:///dir`, which is made if it is not there, or `s3://bucket/prefix`, whose credentials, region and endpoint
    /// come from the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`,
    /// `AWS_ALLOW_HTTP`, …). A bucket is not contacted.
    pub fn open(url: &str) -> Result<Self> {
        let text = |text: OsString| text.into_string().ok();
        Self::open_in(url, std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))))
    }

    /// The same in an environment of these variables.
    fn open_in(url: &str, variables: impl Iterator<Item = (String, String)>) -> Result<Self> {
        let url: Url = url.parse().map_err(Error::Url)?;
        match url.scheme() {
            "file" => Self::open_directory(url.to_file_path().map_err(|()| Error::Unsupported)?),
            "s3" => Self::open_bucket(&url, variables),
            _ => Err(Error::Unsupported),
        }
    }

    fn open_directory(directory: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&directory).map_err(Error::Directory)?;
        let objects = LocalFileSystem::new_with_prefix(&directory).map_err(Error::Open)?.with_fsync(true);
        Ok(Self { objects: Arc::new(objects), directory: Some(directory) })
    }

    fn open_bucket(url: &Url, variables: impl Iterator<Item = (String, String)>) -> Result<Self> {
        let bucket = url.host_str().ok_or(Error::Unsupported)?;
        // The client takes the process's provider; that somebody installed the same one before is no error.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let prefix = Path::from_url_path(url.path()).map_err(|error| Error::Open(error.into()))?;
        let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_LIMIT, ..RetryConfig::default() };
        // A large object takes its time; a connection on which nothing moves does not get it.
        let client = ClientOptions::new()
            .with_timeout_disabled()
            .with_connect_timeout(CONNECT_LIMIT)
            .with_read_timeout(READ_LIMIT);
        let builder = configured(AmazonS3Builder::new().with_client_options(client), variables);
        let bucket = builder.with_bucket_name(bucket).with_retry(retry).build().map_err(Error::Open)?;
        Ok(Self { objects: Arc::new(PrefixStore::new(bucket, prefix)), directory: None })
    }

    /// Deletes an object, and in a directory what writes of it that were killed left behind; one that is not there is deleted
    /// already.
    pub async fn delete(&self, key: BlobKey) -> Result<()> {
        match self.objects.delete(&key.path()).await {
            Ok(()) => {}
            // Where nothing is found because the store is gone, nothing was deleted.
            Err(object_store::Error::NotFound { .. }) => self.check().await?,
            Err(source) => return Err(Error::Delete { key: key.0, source }),
        }
        match &self.directory {
            Some(directory) => delete_temporary(directory, &key.path()).await.map_err(Error::Directory),
            None => Ok(()),
        }
    }

    /// Whether there is an object of this key; an error when the store cannot be asked.
    pub async fn exists(&self, key: BlobKey) -> Result<bool> {
        match self.objects.head(&key.path()).await {
            Ok(_) => Ok(true),
            Err(source) => match self.unreadable(key, source).await {
                Error::Missing(_) => Ok(false),
                error => Err(error),
            },
        }
    }

    /// Whether the store answers: for readiness.
    pub async fn check(&self) -> Result<()> {
        if let Some(directory) = &self.directory {
            return tokio::fs::read_dir(directory).await.map(drop).map_err(Error::Directory);
        }
        // A listing, of what there is never: whoever asks for an object learns no difference between one that is missing and
        // a bucket that is.
        let nothing = BlobKey(Uuid::nil()).path();
        self.objects.list_with_delimiter(Some(&nothing)).await.map(drop).map_err(Error::Check)
    }

    /// Whether there is room to write, as far as a small file can tell: for readiness. A bucket is not asked: there is no end to
    /// it, and each question would be a write to be paid for.
    pub async fn check_writable(&self) -> Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        // One a process at most, whatever kills it half-way.
        let probe = directory.join(format!(".probe-{}", std::process::id()));
        let written = tokio::fs::write(&probe, &PROBE[..]).await;
        match tokio::fs::remove_file(&probe).await {
            // Processes of two containers may share a number.
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::Directory(error)),
            _ => written.map_err(Error::Directory),
        }
    }

    /// Why an object cannot be read. In a directory that is unmounted or a bucket that is gone nothing is found, which tells
    /// nothing of any object: only a store that answers lacks one.
    async fn unreadable(&self, key: BlobKey, source: object_store::Error) -> Error {
        match source {
            object_store::Error::NotFound { .. } => self.check().await.err().unwrap_or(Error::Missing(key.0)),
            source => Error::Read { key: key.0, source },
        }
    }
}

/// Adds what the environment says, as [`AmazonS3Builder::from_env`] does, which cannot begin with options of one's own.
fn configured(builder: AmazonS3Builder, variables: impl Iterator<Item = (String, String)>) -> AmazonS3Builder {
    variables.fold(builder, |builder, (name, value)| match name.to_ascii_lowercase().parse() {
        Ok(key) if name.starts_with("AWS_") => builder.with_config(key, value),
        _ => builder,
    })
}

/// Deletes the temporary files of an object: `object_store` names them after it, with `#` and a number.
async fn delete_temporary(directory: &std::path::Path, object: &Path) -> std::io::Result<()> {
    let object = directory.join(object.as_ref());
    let (Some(parent), Some(name)) = (object.parent(), object.file_name()) else { return Ok(()) };
    let prefix = format!("{}#", name.to_string_lossy());
    let mut entries = match tokio::fs::read_dir(parent).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    while let Some(entry) = entries.next_entry().await? {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            match tokio::fs::remove_file(entry.path()).await {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
