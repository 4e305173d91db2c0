//! Requests over the network.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Request, Response};

use crate::transport::{BodyStream, Payload, Transport, Unreachable};

/// Bytes of a body that are given to the connection at once; progress is reported after each.
const PIECE_BYTES: usize = 64 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the longest silence of the service: a long poll of 30 s, and 15 s between the comments of a stream.
const READ_TIMEOUT: Duration = Duration::from_secs(75);

/// A service at an address.
#[derive(Clone)]
pub struct Network {
    http: reqwest::Client,
    origin: String,
}

impl Network {
    /// The service at `origin`, such as `https://canvas.example.com`. It is sent as `user_agent`.
    ///
    /// Proxies of the environment are used, redirects are not followed. Certificates are checked against those of the system.
    pub fn new(origin: &str, user_agent: &str) -> Result<Self, Unreachable> {
        // Fails if a provider is installed already, which then is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        #[expect(
            clippy::disallowed_methods,
            reason = "a client of the service, not a part of it: it calls the address that its user configured"
        )]
        let http = reqwest::Client::builder()
            .user_agent(user_agent)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .build()
            .map_err(|error| unreachable(origin, &error))?;
        Ok(Self { http, origin: origin.trim_end_matches('/').to_owned() })
    }
}

impl Transport for Network {
    fn send(&self, request: Request<Payload>) -> BoxFuture<'_, Result<Response<BodyStream>, Unreachable>> {
        Box::pin(async move {
            let (head, payload) = request.into_parts();
            let url = format!("{}{}", self.origin, head.uri);
            let mut sending = self.http.request(head.method, url).headers(head.headers);
            if !payload.bytes.is_empty() {
                sending = sending.body(body(payload));
            }
            let answer = sending.send().await.map_err(|error| unreachable(&self.origin, &error))?;
            let mut response = Response::builder().status(answer.status());
            if let Some(headers) = response.headers_mut() {
                headers.clone_from(answer.headers());
            }
            let stream: BodyStream = Box::pin(answer.bytes_stream().map_err(io::Error::other));
            response.body(stream).map_err(|error| Unreachable(error.to_string()))
        })
    }
}

fn body(Payload { bytes, sent }: Payload) -> reqwest::Body {
    let Some(sent) = sent else { return bytes.into() };
    let whole = bytes.len();
    let pieces = stream::unfold(bytes, |mut rest| async {
        let piece = rest.split_to(PIECE_BYTES.min(rest.len()));
        (!piece.is_empty()).then_some((piece, rest))
    });
    let mut at = 0;
    let reported = pieces.map(move |piece: Bytes| {
        at += piece.len();
        sent(at.min(whole));
        Ok::<_, io::Error>(piece)
    });
    reqwest::Body::wrap_stream(reported)
}

/// The address, and the first cause: those between say less, and say the address again.
fn unreachable(origin: &str, error: &reqwest::Error) -> Unreachable {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let reason = cause.to_string();
    // The number of an error of the system tells people nothing.
    let reason = reason.split(" (os error").next().unwrap_or_default();
    Unreachable(format!("{origin}: {reason}"))
}
