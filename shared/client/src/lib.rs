//! A client of Canvas Service: one method for each operation of the contract ([`operations`]), over the service's own types.
//!
//! A method returns a [`Call`], which can be completed with a query, preferences or a body, and is awaited for its [`Answer`]. An
//! answer is read as its type ([`Answer::value`]), or as JSON where it is only passed on or shown:
//!
//! ```no_run
//! # async fn example(client: client::Client) -> client::Result<()> {
//! let canvas = client.get_canvas("canvas:me:board").await?;
//! println!("{}", canvas.value()?.canvas.revision);
//! # Ok(())
//! # }
//! ```
//!
//! Requests have the bodies that the contract describes, as any serializable value: the service alone validates them, so a caller
//! can pass on what a person wrote and gets the service's own words about it.
//!
//! A [`Transport`] decides where a request goes: the network ([`network`], with the feature of that name), or the
//! service's own router inside a gateway.

mod answer;
pub mod answers;
mod call;
pub mod events;
#[cfg(feature = "network")]
pub mod network;
pub mod operations;
mod page;
mod problem;
mod retry;
mod transport;
mod upload;
mod wait;
mod waiting;
mod work;

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

pub use answer::Answer;
pub use call::Call;
pub use page::{Item, List, Pages};
pub use problem::{Error, Problem, Result};
pub use transport::{BodyStream, Payload, Transport, Unreachable};
pub use upload::media_type;
pub use waiting::{Waiting, queue_in_words};
pub use work::{WorkFailure, WorkOutput, WorkRecord, WorkReview, is_over};

/// A client with a credential. Clones share the transport.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    headers: HeaderMap,
    retries: bool,
}

impl Client {
    /// A client without a credential, which repeats what may be repeated ([`Call`]).
    pub fn new(transport: impl Transport) -> Self {
        Self { transport: Arc::new(transport), headers: HeaderMap::new(), retries: true }
    }

    /// The same client with a bearer token. `None`: the token has characters that a header cannot carry.
    pub fn with_token(self, token: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(self.with_header(AUTHORIZATION, value))
    }

    /// The same client with a header on each request.
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same client, which sends each request once. For callers that repeat requests themselves.
    pub fn without_retries(mut self) -> Self {
        self.retries = false;
        self
    }
}

#[cfg(test)]
mod tests;
