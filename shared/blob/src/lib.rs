//! The object store: a directory (`file:///dir`) or a bucket (`s3://bucket/prefix`, `gs://bucket/prefix`,
//! `az://container/prefix`) behind one interface (docs/reliability.md#object-store).
//!
//! **Guarantee.** An object is either complete or absent. After a write has returned, the object
//! survives a power loss, so a row may refer to it.
//!
//! **Mechanism.** In a directory: write to a temporary file, fsync, rename, fsync the directory. In
//! a bucket: the guarantees of S3, Google Cloud Storage or Azure Blob Storage. Keys are random and never reused, so an object never
//! changes and may be cached forever.

#[cfg(feature = "clouds")]
mod bucket;
mod error;
mod read;
mod write;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use url::Url;
use uuid::Uuid;

pub use error::{Error, Result};
pub use read::Object;
pub use write::{Writer, Written};

/// The bytes written to check for free space: more than file systems store outside of a file's
/// blocks.
static PROBE: [u8; 64 * 1024] = [0; 64 * 1024];

/// Key of an object, which is also the key of its row in `blobs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlobKey(pub Uuid);

impl BlobKey {
    /// The path `blobs/<last two hex digits>/<all 32>`, which keeps directories small. The first
    /// digits of a UUIDv7 are the time and would stay the same for years.
    fn path(self) -> Path {
        let name = self.0.simple().to_string();
        Path::from_iter(["blobs", &name[30..], &name])
    }
}

/// The object store. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    /// The directory of a file store.
    directory: Option<PathBuf>,
}

impl Store {
    /// Opens `file:///dir`, which is created if needed, or a bucket, whose credentials and endpoint come from the environment:
    /// `s3://bucket/prefix` with `AWS_*`, `gs://bucket/prefix` with `GOOGLE_*`, `az://container/prefix` with `AZURE_*`. A bucket
    /// is not contacted.
    pub fn open(url: &str) -> Result<Self> {
        let text = |text: OsString| text.into_string().ok();
        Self::open_in(url, std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))))
    }

    /// Checks the form of a URL and, for a bucket, the variables of the environment. Makes no directory and contacts no bucket.
    pub fn check_url(url: &str) -> Result<()> {
        let parsed: Url = url.parse().map_err(Error::Url)?;
        match parsed.scheme() {
            "file" => parsed.to_file_path().map(drop).map_err(|()| Error::Unsupported),
            _ => Self::open(url).map(drop),
        }
    }

    /// Implements [`open`](Self::open) with these environment variables.
    fn open_in(url: &str, variables: impl Iterator<Item = (String, String)>) -> Result<Self> {
        let url: Url = url.parse().map_err(Error::Url)?;
        match url.scheme() {
            "file" => Self::open_directory(url.to_file_path().map_err(|()| Error::Unsupported)?),
            #[cfg(feature = "clouds")]
            "s3" | "gs" | "az" => Ok(Self { objects: bucket::open(&url, variables)?, directory: None }),
            #[cfg(not(feature = "clouds"))]
            "s3" | "gs" | "az" => {
                drop(variables);
                Err(Error::WithoutBuckets)
            }
            _ => Err(Error::Unsupported),
        }
    }

    fn open_directory(directory: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&directory).map_err(Error::Directory)?;
        let objects = LocalFileSystem::new_with_prefix(&directory).map_err(Error::Open)?.with_fsync(true);
        Ok(Self { objects: Arc::new(objects), directory: Some(directory) })
    }

    /// Deletes an object and, in a directory, temporary files of interrupted writes. Succeeds when the object does not exist.
    pub async fn delete(&self, key: BlobKey) -> Result<()> {
        match self.objects.delete(&key.path()).await {
            Ok(()) => {}
            // A missing object may mean that the store itself is gone. Then nothing was deleted.
            Err(object_store::Error::NotFound { .. }) => self.check().await?,
            Err(source) => return Err(Error::Delete { key: key.0, source }),
        }
        match &self.directory {
            Some(directory) => delete_temporary(directory, &key.path()).await.map_err(Error::Directory),
            None => Ok(()),
        }
    }

    /// Returns `true` if an object with this key exists.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn exists(&self, key: BlobKey) -> Result<bool> {
        match self.objects.head(&key.path()).await {
            Ok(_) => Ok(true),
            Err(source) => match self.unreadable(key, source).await {
                Error::Missing(_) => Ok(false),
                error => Err(error),
            },
        }
    }

    /// Checks that the store answers, for readiness.
    pub async fn check(&self) -> Result<()> {
        if let Some(directory) = &self.directory {
            return tokio::fs::read_dir(directory).await.map(drop).map_err(Error::Directory);
        }
        // Lists a prefix that never exists. A request for an object would not distinguish a missing object from a missing
        // bucket.
        let nothing = BlobKey(Uuid::nil()).path();
        self.objects.list_with_delimiter(Some(&nothing)).await.map(drop).map_err(Error::Check)
    }

    /// Checks for readiness that there is free space, as far as a small file can tell. A bucket is
    /// not checked: it has no capacity limit, and each check would be a write that is charged.
    pub async fn check_writable(&self) -> Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        // At most one file per process, whatever interrupts the check.
        let probe = directory.join(format!(".probe-{}", std::process::id()));
        let written = tokio::fs::write(&probe, &PROBE[..]).await;
        match tokio::fs::remove_file(&probe).await {
            // Processes in two containers may have the same process id.
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::Directory(error)),
            _ => written.map_err(Error::Directory),
        }
    }

    /// The error for an object that cannot be read. In an unmounted directory or a deleted bucket
    /// every object is missing, which says nothing about this object. Only a store that answers can
    /// report an object as missing.
    async fn unreadable(&self, key: BlobKey, source: object_store::Error) -> Error {
        match source {
            object_store::Error::NotFound { .. } => self.check().await.err().unwrap_or(Error::Missing(key.0)),
            source => Error::Read { key: key.0, source },
        }
    }
}

/// Deletes the temporary files of an object. `object_store` names them after the object, with `#` and a number.
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
