//! The TLS configuration of outbound calls: the system's roots, plus the operator's CA
//! (`CANVAS_EGRESS_CA_FILE`).

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::error::ClientError;

/// A client configuration that verifies servers against the system's roots and the certificates in
/// `extra_ca_pem`.
///
/// It offers HTTP/1.1 only. With one exchange per connection, closing the connection stops an
/// endless body, and no destination can exploit the buffers and control frames of a multiplexed
/// protocol.
pub(crate) fn config(extra_ca_pem: Option<&[u8]>) -> Result<rustls::ClientConfig, ClientError> {
    let mut roots = RootCertStore::empty();
    // System stores often contain a few unreadable certificates. Skipping them only means that
    // fewer servers are trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(pem) = extra_ca_pem {
        let mut found = false;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(ClientError::ExtraCaPem)?).map_err(ClientError::ExtraCa)?;
            found = true;
        }
        if !found {
            return Err(ClientError::ExtraCaEmpty);
        }
    }
    if roots.is_empty() {
        return Err(ClientError::NoRoots);
    }
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(ClientError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
