//! The HTTP servers of a simulator, and the ways in which they can fail to answer.

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
use crate::receiver::Identity;

/// The delay before an answer breaks off, which lets its first half be sent.
const FLUSH: Duration = Duration::from_millis(50);

/// One chunk of the padding of an answer.
static ZEROS: [u8; 256 * 1024] = [0; 256 * 1024];

/// A complete request.
pub(super) struct Call {
    pub(super) method: Method,
    /// The path without the query.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Call {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns `true` if the header `name` contains the simulator key after `prefix`.
    pub(super) fn has_key(&self, name: &str, prefix: &str) -> bool {
        self.header(name).and_then(|value| value.strip_prefix(prefix)) == Some(SIMULATOR_KEY)
    }

    /// The segments of the path.
    pub(super) fn pieces(&self) -> Vec<&str> {
        self.path.trim_start_matches('/').split('/').collect()
    }
}

/// How an answer is delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Transmission {
    /// The complete answer is sent.
    Whole,
    /// Half of the answer is sent, then the connection is reset.
    Cut,
    /// The connection is closed without an answer.
    Close,
    /// Nothing is sent, and the connection stays open.
    Hang,
}

/// An answer and how it is delivered.
pub(super) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    /// The number of zeros appended to the body of a complete answer.
    padding: usize,
    delay: Duration,
    transmission: Transmission,
}

impl Reply {
    pub(super) fn bytes(status: u16, media_type: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type", media_type.to_owned())];
        Self {
            status,
            headers,
            body: body.into(),
            padding: 0,
            delay: Duration::ZERO,
            transmission: Transmission::Whole,
        }
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

    pub(super) fn fated(self, transmission: Transmission) -> Self {
        Self { transmission, ..self }
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
        let body = match self.transmission {
            Transmission::Whole if self.padding > 0 => {
                response = response.header("content-length", self.body.len() + self.padding);
                let starts = (0..self.padding).step_by(ZEROS.len());
                let zeros =
                    starts.map(move |start| Bytes::from_static(&ZEROS[..ZEROS.len().min(self.padding - start)]));
                let pieces = std::iter::once(self.body).chain(zeros);
                StreamBody::new(stream::iter(pieces.map(|piece| Ok::<_, io::Error>(Frame::data(piece))))).boxed_unsync()
            }
            Transmission::Whole => Full::new(self.body).map_err(|never: Infallible| match never {}).boxed_unsync(),
            Transmission::Cut => {
                response = response.header("content-length", self.body.len());
                let half = self.body.slice(..self.body.len() / 2);
                let broken = async {
                    tokio::time::sleep(FLUSH).await;
                    Err(io::Error::from(io::ErrorKind::ConnectionReset))
                };
                let halves = stream::iter([Ok(Frame::data(half))]).chain(stream::once(broken));
                StreamBody::new(halves.boxed()).boxed_unsync()
            }
            Transmission::Close => return Err(io::ErrorKind::ConnectionAborted.into()),
            Transmission::Hang => std::future::pending().await,
        };
        Ok(response.body(body).expect("status and headers as a simulator wrote them"))
    }
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The result of starting a simulator's listeners.
pub(super) struct Listening {
    pub(super) state: Arc<State>,
    pub(super) ca_pem: Option<String>,
}

/// Listens on these ports of 127.0.0.1, for the API and for the results; 0 selects a free port.
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
            let identity = Identity::new(&[]);
            (Some(TlsAcceptor::from(Arc::new(identity.server()))), Some(identity.authority().to_owned()))
        }
        false => (None, None),
    };
    let scheme = if https { "https" } else { "http" };
    let url = |listener: &TcpListener| format!("{scheme}://{}", listener.local_addr().expect("has an address"));
    let state = Arc::new(State::new(url(&api), url(&files)));
    let (at_api, at_files) = (state.clone(), state.clone());
    let answer = move |call: &Call| {
        at_api.keep(call);
        vendor.answer(&at_api, call)
    };
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
                    // A client that distrusts the certificate or disconnects is part of some tests.
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
    // The result is an error if `Transmission` broke the connection.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

/// Answers one request. If it returns an error, hyper closes the connection without an answer.
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

/// Answers a request to the results host. The host needs no key and counts every request that
/// carries one.
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
                "video/mp4" => *state.video_padding.lock().expect("no holder panics"),
                _ => 0,
            };
            let whole = Reply::bytes(200, file.media_type, file.bytes.clone()).padded(padding);
            let mut cuts = state.cuts.lock().expect("no holder panics");
            match cuts.checked_sub(1) {
                Some(left) => {
                    *cuts = left;
                    whole.fated(Transmission::Cut)
                }
                None => whole,
            }
        }
        None => Reply::bytes(404, "application/xml", "<Error><Code>NoSuchKey</Code></Error>"),
    }
}
