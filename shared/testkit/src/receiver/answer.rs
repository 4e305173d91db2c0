//! The answers of the receiver.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Response;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;

pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Size of a chunk of an endless body: large enough to be fast, small enough that a body has many.
const ENDLESS_CHUNK: usize = 16 * 1024;

/// The delay before a body breaks off. hyper discards buffered data when a body fails, so the first
/// part needs time to be sent.
const BEFORE_THE_BREAK: Duration = Duration::from_millis(50);

/// An answer, or a way of not answering.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    delay: Duration,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Whole(Bytes),
    Endless,
    Drip(Duration),
    BreakOff,
    Close,
    Never,
}

impl Answer {
    /// An answer with this status and an empty body.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), delay: Duration::ZERO, kind: Kind::Whole(Bytes::new()) }
    }

    /// A 302 redirect to `location`.
    pub fn redirect(location: &str) -> Self {
        Self::status(302).header("location", location)
    }

    /// A 200 answer whose body never ends and is sent as fast as it is read.
    pub fn endless() -> Self {
        Self { kind: Kind::Endless, ..Self::status(200) }
    }

    /// A 200 answer with an endless body of one byte per `interval`.
    pub fn drip(interval: Duration) -> Self {
        Self::status(200).dripping(interval)
    }

    /// Closes the connection without an answer.
    pub fn close() -> Self {
        Self { kind: Kind::Close, ..Self::status(200) }
    }

    /// Never answers, and keeps the connection open.
    pub fn never() -> Self {
        Self { kind: Kind::Never, ..Self::status(200) }
    }

    /// Adds a header to the answer.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces the body of the answer.
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        Self { kind: Kind::Whole(body.into()), ..self }
    }

    /// Replaces the body by an endless one of one byte per `interval`.
    pub fn dripping(self, interval: Duration) -> Self {
        Self { kind: Kind::Drip(interval), ..self }
    }

    /// Makes the body break off after its first byte.
    pub fn breaking_off(self) -> Self {
        Self { kind: Kind::BreakOff, ..self }
    }

    /// Delays the answer.
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    pub(super) async fn give(self) -> Result<Response<Body>, io::Error> {
        tokio::time::sleep(self.delay).await;
        let body = match self.kind {
            Kind::Whole(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
            Kind::Endless => {
                let chunk = Bytes::from(vec![b'x'; ENDLESS_CHUNK]);
                StreamBody::new(stream::repeat(chunk).map(|chunk| Ok(Frame::data(chunk)))).boxed_unsync()
            }
            Kind::Drip(interval) => {
                let bytes = stream::unfold((), move |()| async move {
                    tokio::time::sleep(interval).await;
                    Some((Ok(Frame::data(Bytes::from_static(b"x"))), ()))
                });
                StreamBody::new(bytes).boxed_unsync()
            }
            Kind::BreakOff => {
                let begun = stream::iter([Ok(Frame::data(Bytes::from_static(b"x")))]);
                let broken = stream::once(async {
                    tokio::time::sleep(BEFORE_THE_BREAK).await;
                    Err(io::ErrorKind::ConnectionAborted.into())
                });
                StreamBody::new(begun.chain(broken)).boxed_unsync()
            }
            Kind::Close => return Err(io::ErrorKind::ConnectionAborted.into()),
            Kind::Never => std::future::pending().await,
        };
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        Ok(response.body(body).expect("status and headers as a test wrote them"))
    }
}
