//! Transports of requests.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use http::{Request, Response};

/// The body of an answer, as it arrives.
pub type BodyStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The body of a request.
#[derive(Clone, Default)]
pub struct Payload {
    /// All of it.
    pub bytes: Bytes,
    /// Called with the number of bytes that have been sent, where the transport knows it.
    pub sent: Option<Arc<dyn Fn(usize) + Send + Sync>>,
}

/// No answer: the service cannot be reached, or the connection ended before the answer was whole.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);

/// Sends a request and returns its answer, whatever its status. The URI of a request is a path with a query.
pub trait Transport: Send + Sync + 'static {
    /// Sends `request`.
    fn send(&self, request: Request<Payload>) -> BoxFuture<'_, Result<Response<BodyStream>, Unreachable>>;
}
