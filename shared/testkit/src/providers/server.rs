//! The HTTP side: two listeners, calls in, replies out, with every way of not answering.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::state::State;
use super::{SIMULATOR_KEY, Vendor};
use crate::receiver::certificate;

/// The pause before an answer breaks off, so that its first half has left.
const FLUSH: Duration = Duration::from_millis(50);

/// What an answer is padded with, piece by piece.
static ZEROS: [u8; 256 * 1024] = [0; 256 * 1024];

/// A request, whole.
pub(super) struct Call {
    pub(super) method: Method,
    /// Without the query.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Call {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the key is there behind `prefix` in the header `name`.
    pub(super) fn has_key(&self, name: &str, prefix: &str) -> bool {
        self.header(name).and_then(|value| value.strip_prefix(prefix)) == Some(SIMULATOR_KEY)
    }

    /// The path in pieces.
    pub(super) fn pieces(&self) -> Vec<&str> {
        self.path.trim_start_matches('/').split('/').collect()
    }
}

/// What becomes of an answer on its way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It arrives.
    Whole,
    /// Half of it arrives, then the connection breaks.
    Cut,
    /// The connection is closed instead.
    Close,
    /// Nothing happens, for ever.
    Hang,
}

/// An answer.
pub(super) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    /// Zeros behind the body of an answer that arrives.
    padding: usize,
    delay: Duration,
    fate: Fate,
}

impl Reply {
    pub(super) fn bytes(status: u16, media_type: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type", media_type.to_owned())];
        Self { status, headers, body: body.into(), padding: 0, delay: Duration::ZERO, fate: Fate::Whole }
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::bytes(status, "application/json", body.to_string())
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    pub(super) fn fated(self, fate: Fate) -> Self {
        Self { fate, ..self }
    }

    pub(super) fn padded(self, padding: usize) -> Self {
        Self { padding, ..self }
    }

    async fn give(self) -> Result<Response<Body>, io::Error> {
        tokio::time::sleep(self.delay).await;
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(*name, value);
        }
        let body = match self.fate {
            Fate::Whole if self.padding > 0 => {
                response = response.header("content-length", self.body.len() + self.padding);
                let starts = (0..self.padding).step_by(ZEROS.len());
                let zeros =
                    starts.map(move |start| Bytes::from_static(&ZEROS[..ZEROS.len().min(self.padding - start)]));
                let pieces = std::iter::once(self.body).chain(zeros);
                StreamBody::new(stream::iter(pieces.map(|piece| Ok::<_, io::Error>(Frame::data(piece))))).boxed_unsync()
            }
            Fate::Whole => Full::new(self.body).map_err(|never: Infallible| match never {}).boxed_unsync(),
            Fate::Cut => {
                response = response.header("content-length", self.body.len());
                let half = self.body.slice(..self.body.len() / 2);
                let broken = async {
                    tokio::time::sleep(FLUSH).await;
                    Err(io::Error::from(io::ErrorKind::ConnectionReset))
                };
                let halves = stream::iter([Ok(Frame::data(half))]).chain(stream::once(broken));
                StreamBody::new(halves.boxed()).boxed_unsync()
            }
            Fate::Close => return Err(io::ErrorKind::ConnectionAborted.into()),
            Fate::Hang => std::future::pending().await,
        };
        Ok(response.body(body).expect("status and headers as a simulator wrote them"))
    }
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A simulator's listeners.
pub(super) struct Listening {
    pub(super) state: Arc<State>,
    pub(super) ca_pem: Option<String>,
}

/// On these ports of 127.0.0.1, the API's and that of the results; 0 is a free one.
pub(super) async fn listen(
    vendor: Vendor,
    https: bool,
    [api, files]: [u16; 2],
    stop: &CancellationToken,
) -> io::Result<Listening> {
    let api = TcpListener::bind((Ipv4Addr::LOCALHOST, api)).await?;
    let files = TcpListener::bind((Ipv4Addr::LOCALHOST, files)).await?;
    let (tls, ca_pem) = match https {
        true => {
            let (config, ca_pem) = certificate::server(&[]);
            (Some(TlsAcceptor::from(Arc::new(config))), Some(ca_pem))
        }
        false => (None, None),
    };
    let scheme = if https { "https" } else { "http" };
    let url = |listener: &TcpListener| format!("{scheme}://{}", listener.local_addr().expect("has an address"));
    let state = Arc::new(State::new(url(&api), url(&files)));
    let (at_api, at_files) = (state.clone(), state.clone());
    let answer = move |call: &Call| vendor.answer(&at_api, call);
    tokio::spawn(stop.clone().run_until_cancelled_owned(serve(api, tls.clone(), Arc::new(answer), stop.clone())));
    let answer = move |call: &Call| file(&at_files, call);
    tokio::spawn(stop.clone().run_until_cancelled_owned(serve(files, tls, Arc::new(answer), stop.clone())));
    Ok(Listening { state, ca_pem })
}

type Answer = Arc<dyn Fn(&Call) -> Reply + Send + Sync>;

async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, answer: Answer, stop: CancellationToken) {
    loop {
        let (stream, _) = listener.accept().await.expect("accepts");
        let (tls, answer) = (tls.clone(), answer.clone());
        let connection = async move {
            match tls {
                Some(tls) => {
                    // A client that distrusts the certificate is part of a test, as is one that goes away.
                    let Ok(stream) = tls.accept(stream).await else { return };
                    converse(stream, answer).await;
                }
                None => converse(stream, answer).await,
            }
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(connection));
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, answer: Answer) {
    let service = service_fn(move |request| respond(request, answer.clone()));
    // It ends in an error when a fate was to break it.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

/// An error makes hyper close the connection without an answer.
async fn respond(request: Request<Incoming>, answer: Answer) -> Result<Response<Body>, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let call = Call {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body,
    };
    answer(&call).give().await
}

/// The host of the results: it wants no key, and says so.
fn file(state: &State, call: &Call) -> Reply {
    if ["authorization", "x-key", "x-goog-api-key"].iter().any(|name| call.headers.contains_key(*name)) {
        *state.leaks.lock().expect("no holder panics") += 1;
        return Reply::bytes(400, "text/plain", "only one auth mechanism allowed");
    }
    let files = state.files.lock().expect("no holder panics");
    match files.get(&call.path) {
        Some(file) if file.expired => {
            Reply::bytes(403, "application/xml", "<Error><Code>AccessDenied</Code><Message>expired</Message></Error>")
        }
        Some(file) => {
            let padding = match file.media_type {
                "video/mp4" => *state.film_padding.lock().expect("no holder panics"),
                _ => 0,
            };
            let whole = Reply::bytes(200, file.media_type, file.bytes.clone()).padded(padding);
            let mut cuts = state.cuts.lock().expect("no holder panics");
            match cuts.checked_sub(1) {
                Some(left) => {
                    *cuts = left;
                    whole.fated(Fate::Cut)
                }
                None => whole,
            }
        }
        None => Reply::bytes(404, "application/xml", "<Error><Code>NoSuchKey</Code></Error>"),
    }
}
