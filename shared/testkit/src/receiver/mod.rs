//! An HTTPS endpoint on loopback that records requests and fails on demand.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

mod answer;
mod certificate;
mod signature;

pub use answer::Answer;
pub use certificate::Identity;

/// A request as it was received.
#[derive(Clone, Debug)]
pub struct Received {
    /// The method; a webhook uses `POST`.
    pub method: Method,
    /// The path and the query.
    pub path: String,
    pub headers: HeaderMap,
    /// The raw body.
    pub body: Bytes,
    /// When the body was complete.
    pub at: Instant,
}

type Program = Arc<dyn Fn(&Received) -> Answer + Send + Sync>;

struct Shared {
    program: Mutex<Program>,
    received: watch::Sender<Vec<Received>>,
}

/// A port of 127.0.0.1 that is kept for a receiver of any process of this user. Connections to it are refused until one listens.
pub struct Reserved(TcpSocket);

impl Reserved {
    /// Reserves a free port. Other sockets cannot be bound to it, except those that share it as [`Receiver::start_on`] does.
    pub fn new() -> Self {
        Self(shared_socket(0))
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.0.local_addr().expect("has an address").port()
    }
}

impl Default for Reserved {
    fn default() -> Self {
        Self::new()
    }
}

/// A socket at this port of 127.0.0.1, which processes of this user can share.
fn shared_socket(port: u16) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("makes a socket");
    socket.set_reuseport(true).expect("shares a port");
    socket.bind((Ipv4Addr::LOCALHOST, port).into()).expect("binds a port of loopback");
    socket
}

/// The endpoint. It answers 200 until a test requests something else, and stops when it is dropped.
pub struct Receiver {
    port: u16,
    ca_pem: String,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

impl Receiver {
    /// Listens on a free port of 127.0.0.1, with a certificate for `127.0.0.1` and `localhost` from
    /// a temporary certificate authority.
    pub async fn start() -> Self {
        Self::start_as(&[]).await
    }

    /// Like [`start`](Self::start), with a certificate that is also valid for `names`, for clients
    /// that resolve names themselves.
    pub async fn start_as(names: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds a free port of loopback");
        Self::serve(listener, &Identity::new(names))
    }

    /// Listens on a [`Reserved`] port with this certificate.
    pub fn start_on(port: u16, identity: &Identity) -> Self {
        Self::serve(shared_socket(port).listen(1024).expect("listens"), identity)
    }

    fn serve(listener: TcpListener, identity: &Identity) -> Self {
        let port = listener.local_addr().expect("has an address").port();
        let shared = Arc::new(Shared {
            program: Mutex::new(Arc::new(|_| Answer::status(200))),
            received: watch::Sender::new(Vec::new()),
        });
        let stop = CancellationToken::new();
        let tls = TlsAcceptor::from(Arc::new(identity.server()));
        let serving = serve(listener, tls, shared.clone(), stop.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
        Self { port, ca_pem: identity.authority().to_owned(), shared, _stop: stop.drop_guard() }
    }

    /// The URL `https://127.0.0.1:<port><path>`; `path` begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.authority())
    }

    /// The authority part of the URL: `127.0.0.1:<port>`.
    pub fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of the endpoint's certificate authority in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Answers every request from now on with `answer`.
    pub fn answer(&self, answer: Answer) {
        self.answer_with(move |_| answer.clone());
    }

    /// Answers the next requests with one of these each, in order, and all later ones with the
    /// last.
    pub fn answer_in_turn(&self, answers: Vec<Answer>) {
        assert!(!answers.is_empty(), "at least one answer");
        let turn = Mutex::new(0);
        self.answer_with(move |_| {
            let mut turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let answer = &answers[*turn];
            *turn = (*turn + 1).min(answers.len() - 1);
            answer.clone()
        });
    }

    /// Answers every request from now on with what `program` returns for it.
    pub fn answer_with(&self, program: impl Fn(&Received) -> Answer + Send + Sync + 'static) {
        *self.shared.program.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(program);
    }

    /// Every request so far, in the order in which their bodies were complete.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.received.borrow().clone()
    }

    /// Waits for at least `count` requests and returns them all. Panics after `deadline`.
    #[track_caller]
    pub fn wait_for(&self, count: usize, deadline: Duration) -> impl Future<Output = Vec<Received>> {
        let caller = std::panic::Location::caller();
        let mut received = self.shared.received.subscribe();
        async move {
            let enough = received.wait_for(|all| all.len() >= count);
            if let Ok(all) = tokio::time::timeout(deadline, enough).await {
                return all.expect("its sender lives with the receiver").clone();
            }
            let seen = received.borrow().len();
            panic!("waited {deadline:?} for {count} requests and saw {seen}, at {caller}");
        }
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let (stream, _) = listener.accept().await.expect("accepts");
        let (tls, shared) = (tls.clone(), shared.clone());
        let connection = async move {
            // A client that distrusts the certificate or disconnects is part of some tests.
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |request| respond(request, shared.clone()));
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(connection));
    }
}

/// Answers one request. If it returns an error, hyper closes the connection without an answer.
async fn respond(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<answer::Body>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let received = Received { method: head.method, path, headers: head.headers, body, at: Instant::now() };
    let program = shared.program.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let answer = program(&received);
    shared.received.send_modify(|all| all.push(received));
    answer.give().await
}

#[cfg(test)]
mod tests;
