//! A certificate authority that lives as long as one receiver.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The TLS configuration of a server for 127.0.0.1, `localhost` and `names`, and the authority's
/// certificate in PEM.
pub(crate) fn server(names: &[&str]) -> (ServerConfig, String) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    authority.distinguished_name.push(DnType::CommonName, "throw-away test authority");
    let key = KeyPair::generate().expect("generates a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("signs itself");

    let names: Vec<String> = ["127.0.0.1", "localhost"].iter().chain(names).map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().expect("generates a key");
    let certificate = CertificateParams::new(names)
        .and_then(|params| params.signed_by(&key, &authority))
        .expect("the names are IP addresses or DNS names");

    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // The crypto provider is explicit, because a test process may not have installed a default one.
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("the key is that of the certificate");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (config, authority.pem())
}
