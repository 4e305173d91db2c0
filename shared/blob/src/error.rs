//! Errors of the object store.

use uuid::Uuid;

/// A failed operation of the object store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL cannot be parsed.
    #[error("invalid object store URL")]
    Url(#[source] url::ParseError),
    /// The URL is neither that of a directory nor that of a bucket.
    #[error(
        "object store URL is none of file:///directory, s3://bucket/prefix, gs://bucket/prefix and az://container/prefix"
    )]
    Unsupported,
    /// The URL is that of a bucket, and this build has only directories.
    #[cfg(not(feature = "clouds"))]
    #[error("this build cannot open buckets: build it with the feature `clouds`")]
    WithoutBuckets,
    /// The directory cannot be created or read.
    #[error("object store directory is not accessible")]
    Directory(#[source] std::io::Error),
    /// The configuration is incomplete.
    #[error("cannot open the object store")]
    Open(#[source] object_store::Error),
    /// The store does not answer.
    #[error("object store does not answer")]
    Check(#[source] object_store::Error),
    /// No object has this key.
    #[error("object {0} does not exist")]
    Missing(Uuid),
    /// An object is larger than the caller permits.
    #[error("object {key} has {bytes} bytes, more than {limit}")]
    TooLarge {
        key: Uuid,
        /// The size of the object in bytes.
        bytes: u64,
        /// The caller's limit in bytes.
        limit: u64,
    },
    /// An object cannot be read.
    #[error("cannot read object {key}")]
    Read {
        key: Uuid,
        #[source]
        source: object_store::Error,
    },
    /// The stream of an object ended early.
    #[error("reading object {key} ended early")]
    Stream {
        key: Uuid,
        #[source]
        source: std::io::Error,
    },
    /// An object cannot be written. It may or may not exist.
    #[error("cannot write object {key}")]
    Write {
        key: Uuid,
        #[source]
        source: object_store::Error,
    },
    /// An object cannot be deleted. It may or may not exist.
    #[error("cannot delete object {key}")]
    Delete {
        key: Uuid,
        #[source]
        source: object_store::Error,
    },
}

/// Result of an operation of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;
