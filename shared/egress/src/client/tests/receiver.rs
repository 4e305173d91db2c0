//! An HTTPS receiver that answers every request in the same way, correct or not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;

/// How a receiver answers.
#[derive(Clone)]
pub(super) enum Reply {
    /// Sends this text and ends the connection.
    Once(String),
    /// Sends an endless body as fast as it is read.
    Endless,
    /// Sends an endless body one byte at a time.
    Drip,
    /// Never sends anything.
    Silent,
    /// Answers the TLS handshake with plain HTTP.
    NotTls,
    /// Ends the connection instead of answering the TLS handshake.
    HangUpBeforeTls,
}

struct Seen {
    reply: Reply,
    accepted: AtomicUsize,
    requests: Mutex<Vec<String>>,
    hung_up: Semaphore,
}

/// A receiver on 127.0.0.1, verified as `hooks.example.com`, `localhost` or 127.0.0.1 by `ca_pem`.
pub(super) struct Receiver {
    pub(super) port: u16,
    pub(super) ca_pem: String,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

impl Receiver {
    pub(super) async fn start(reply: Reply) -> Self {
        let names = ["hooks.example.com", "localhost", "127.0.0.1"].map(str::to_owned);
        let identity = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der()));
        let provider = tokio_rustls::rustls::crypto::ring::default_provider();
        let tls = ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen {
            reply,
            accepted: AtomicUsize::new(0),
            requests: Mutex::default(),
            hung_up: Semaphore::new(0),
        });
        let accepting = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                while let Ok((tcp, _)) = listener.accept().await {
                    seen.accepted.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(serve(tcp, acceptor.clone(), Arc::clone(&seen)));
                }
            }
        });
        Self { port, ca_pem: identity.cert.pem(), seen, accepting }
    }

    /// Connections accepted so far.
    pub(super) fn accepted(&self) -> usize {
        self.seen.accepted.load(Ordering::SeqCst)
    }

    /// Requests received completely so far, head and body.
    pub(super) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// Waits until a client has dropped a connection that was still being answered.
    pub(super) async fn hung_up(&self) {
        self.seen.hung_up.acquire().await.unwrap().forget();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut tcp: TcpStream, acceptor: TlsAcceptor, seen: Arc<Seen>) {
    match seen.reply {
        Reply::HangUpBeforeTls => return,
        Reply::NotTls => {
            // Errors are ignored: a client that disconnected counts as answered.
            let _ = tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            let _ = tcp.read_to_end(&mut Vec::new()).await;
            return;
        }
        _ => {}
    }
    let Ok(mut tls) = acceptor.accept(tcp).await else {
        return;
    };
    let Some(request) = read_request(&mut tls).await else {
        return;
    };
    seen.requests.lock().unwrap().push(request);
    let ended = match &seen.reply {
        Reply::Once(text) => {
            let _ = tls.write_all(text.as_bytes()).await;
            let _ = tls.shutdown().await;
            return;
        }
        Reply::Endless => write_for_ever(&mut tls, &[b'x'; 8192], Duration::ZERO).await,
        Reply::Drip => write_for_ever(&mut tls, b"x", Duration::from_millis(10)).await,
        _ => tls.read_to_end(&mut Vec::new()).await.map(drop),
    };
    drop(ended);
    seen.hung_up.add_permits(1);
}

/// A head without a length, then `piece` repeatedly until the client is gone.
async fn write_for_ever(tls: &mut TlsStream<TcpStream>, piece: &[u8], pause: Duration) -> std::io::Result<()> {
    tls.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    loop {
        tls.write_all(piece).await?;
        tls.flush().await?;
        tokio::time::sleep(pause).await;
    }
}

/// One request, its body by `Content-Length`.
async fn read_request(tls: &mut TlsStream<TcpStream>) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if tls.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
    }
}
