//! The certificates of receivers.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};

/// The certificate of a server for 127.0.0.1 and `localhost`, from a certificate authority of its own. It is text in PEM, so that
/// receivers in several processes can have the same.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Identity {
    authority: String,
    certificate: String,
    key: String,
}

impl Identity {
    /// Makes an authority and a certificate, which is also valid for `names`.
    pub fn new(names: &[&str]) -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        authority.distinguished_name.push(DnType::CommonName, "throw-away test authority");
        let key = KeyPair::generate().expect("generates a key");
        let authority = CertifiedIssuer::self_signed(authority, key).expect("signs itself");

        let names: Vec<String> =
            ["127.0.0.1", "localhost"].iter().chain(names).map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().expect("generates a key");
        let certificate = CertificateParams::new(names)
            .and_then(|params| params.signed_by(&key, &authority))
            .expect("the names are IP addresses or DNS names");
        Self { authority: authority.pem(), certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// The certificate of the authority in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The TLS configuration of a server.
    pub(crate) fn server(&self) -> ServerConfig {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key");
        // The crypto provider is explicit, because a test process may not have installed a default one.
        let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has the default versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("the key is that of the certificate");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }
}
