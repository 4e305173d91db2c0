//! What can go wrong with the object store.

use uuid::Uuid;

/// A failed step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL does not parse.
    #[error("object store URL is malformed")]
    Url(#[source] url::ParseError),
    /// The URL is of neither kind.
    #[error("object store URL is neither file:///directory nor s3://bucket/prefix")]
    Unsupported,
    /// The directory cannot be made or read.
    #[error("object store directory is not accessible")]
    Directory(#[source] std::io::Error),
    /// The configuration is incomplete.
    #[error("object store cannot be opened")]
    Open(#[source] object_store::Error),
    /// The store does not answer.
    #[error("object store does not answer")]
    Check(#[source] object_store::Error),
    /// There is no such object.
    #[error("object {0} does not exist")]
    Missing(Uuid),
    /// An object is larger than the caller can take.
    #[error("object {key} has {bytes} bytes, more than {limit}")]
    TooLarge {
        /// Of the object.
        key: Uuid,
        /// Its size.
        bytes: u64,
        /// The caller's limit.
        limit: u64,
    },
    /// An object cannot be read.
    #[error("object {key} cannot be read")]
    Read {
        /// Of the object.
        key: Uuid,
        /// Why.
        #[source]
        source: object_store::Error,
    },
    /// An object's bytes stopped coming.
    #[error("object {key} broke off")]
    Stream {
        /// Of the object.
        key: Uuid,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An object cannot be written; it may or may not exist.
    #[error("object {key} cannot be written")]
    Write {
        /// Of the object.
        key: Uuid,
        /// Why.
        #[source]
        source: object_store::Error,
    },
    /// An object cannot be deleted; it may or may not exist.
    #[error("object {key} cannot be deleted")]
    Delete {
        /// Of the object.
        key: Uuid,
        /// Why.
        #[source]
        source: object_store::Error,
    },
}

/// The result of a call of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;
