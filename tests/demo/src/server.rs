//! The HTTPS server of the demo: the webhook receiver, and the shop whose page is imported.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::error::{Error, Result};

/// The time limit of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Serves `router` on `address` with the certificate and key of the two PEM files, until the process ends.
pub async fn serve(address: &str, certificate: &Path, key: &Path, router: Router) -> Result<()> {
    let unusable = |path: &Path, source| Error::Certificate { path: path.to_owned(), source };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|source| unusable(certificate, source.into()))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|source| unusable(key, source.into()))?;
    let tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|source| unusable(certificate, source.into()))?;
    let tcp = TcpListener::bind(address).await.map_err(|source| Error::Bind { address: address.to_owned(), source })?;
    let listener = TlsListener { tcp, acceptor: TlsAcceptor::from(Arc::new(tls)) };
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(())
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
