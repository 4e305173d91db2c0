//! The webhook receiver: HTTPS, one path, and the signature check that every receiver should make.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::serve::Listener;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use sha2::Sha256;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::error::{Error, text};

/// The time limit of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// A webhook with a verified signature.
pub struct Delivery {
    /// The event's id, the same in every attempt.
    pub event: String,
    /// The event's type.
    pub kind: String,
    /// The handle of the event's run.
    pub run: String,
}

/// Receives webhooks until it is dropped.
pub struct Receiver {
    deliveries: mpsc::Receiver<Result<Delivery, Error>>,
    server: tokio::task::JoinHandle<io::Result<()>>,
}

struct Inbox {
    secret: String,
    deliveries: mpsc::Sender<Result<Delivery, Error>>,
}

impl Receiver {
    /// Listens on `address` with the certificate and key of the two PEM files, for webhooks to `path` that are signed with
    /// `secret`. Any other path belongs to an earlier demo and is ignored.
    pub async fn start(
        address: &str,
        path: &str,
        certificate: &Path,
        key: &Path,
        secret: String,
    ) -> Result<Self, Error> {
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|source| Error::Certificate { path: certificate.to_owned(), source: source.into() })?;
        let private = PrivateKeyDer::from_pem_file(key)
            .map_err(|source| Error::Certificate { path: key.to_owned(), source: source.into() })?;
        let tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(|source| Error::Certificate { path: certificate.to_owned(), source: source.into() })?;
        let tcp =
            TcpListener::bind(address).await.map_err(|source| Error::Bind { address: address.to_owned(), source })?;
        let listener = TlsListener { tcp, acceptor: TlsAcceptor::from(Arc::new(tls)) };
        let (sender, deliveries) = mpsc::channel(16);
        let router = Router::new()
            .route(path, post(accept))
            .fallback(|| async { StatusCode::GONE })
            .with_state(Arc::new(Inbox { secret, deliveries: sender }));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { deliveries, server })
    }

    /// The next webhook.
    pub async fn next(&mut self) -> Result<Delivery, Error> {
        self.deliveries.recv().await.unwrap_or(Err(Error::ReceiverGone))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Accepts a webhook if its signature verifies. Any other webhook gets an error status, so that the service retries it.
async fn accept(State(inbox): State<Arc<Inbox>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let verified =
        if is_signed(&headers, &body, inbox.secret.as_bytes()) { parse(&body) } else { Err(Error::Signature) };
    let status = if verified.is_ok() { StatusCode::NO_CONTENT } else { StatusCode::INTERNAL_SERVER_ERROR };
    // A full or closed inbox means that the demo already has its webhook.
    let _ = inbox.deliveries.try_send(verified);
    status
}

/// Whether the `v1` part of the signature header is HMAC-SHA256, under `secret`, of `<timestamp>.<body>`
/// (docs/reference/webhooks.md#signature).
fn is_signed(headers: &HeaderMap, body: &[u8], secret: &[u8]) -> bool {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(timestamp), Some(signature)) = (header("service-webhook-timestamp"), header("service-webhook-signature"))
    else {
        return false;
    };
    let Some(claimed) = signature.split(',').find_map(|part| part.trim().strip_prefix("v1=")).and_then(unhex) else {
        return false;
    };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else {
        return false;
    };
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    mac.verify_slice(&claimed).is_ok()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn parse(body: &[u8]) -> Result<Delivery, Error> {
    let event: Value = serde_json::from_slice(body).map_err(|_| Error::Unexpected { what: "a webhook of JSON" })?;
    Ok(Delivery {
        event: text(&event, "/id")?.to_owned(),
        kind: text(&event, "/type")?.to_owned(),
        run: text(&event, "/data/run/run")?.to_owned(),
    })
}

/// A TLS listener for axum's accept loop.
struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.tcp).await;
            if let Ok(Ok(tls)) = tokio::time::timeout(HANDSHAKE, self.acceptor.accept(stream)).await {
                return (tls, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf '1700000000.{}' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef`
    const SIGNATURE: &str = "417adf36b901772f658597a76d329694e335e65fc0849d7715c3ca33406309b5";
    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

    fn headers(timestamp: &str, signature: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("Service-Webhook-Timestamp", timestamp.parse().expect("a header value"));
        headers.insert("Service-Webhook-Signature", signature.parse().expect("a header value"));
        headers
    }

    #[test]
    fn a_signature_over_timestamp_and_body_is_believed() {
        assert!(is_signed(&headers("1700000000", &format!("v1={SIGNATURE}")), b"{}", SECRET));
        assert!(is_signed(&headers("1700000000", &format!("v0=00, v1={SIGNATURE}")), b"{}", SECRET));
    }

    #[test]
    fn another_body_timestamp_or_secret_is_not_believed() {
        let signature = format!("v1={SIGNATURE}");
        assert!(!is_signed(&headers("1700000000", &signature), b"{ }", SECRET));
        assert!(!is_signed(&headers("1700000001", &signature), b"{}", SECRET));
        assert!(!is_signed(&headers("1700000000", &signature), b"{}", b"another secret of the same length"));
    }

    #[test]
    fn a_missing_or_malformed_signature_is_not_believed() {
        assert!(!is_signed(&HeaderMap::new(), b"{}", SECRET));
        assert!(!is_signed(&headers("1700000000", SIGNATURE), b"{}", SECRET));
        assert!(!is_signed(&headers("1700000000", "v1=xyz"), b"{}", SECRET));
        assert!(!is_signed(&headers("1700000000", &format!("v1={}", &SIGNATURE[..62])), b"{}", SECRET));
    }
}
