//! Hosts that the operator configured for provider calls: `CANVAS_MANAGED_URL` and a connection's
//! `--base-url` (docs/reference/webhooks.md#operator-hosts).

use url::{Host, Url};

use crate::guard::well_formed;

/// Schemes permitted for an operator's own server.
const SCHEMES: [&str; 2] = ["https", "http"];

/// The host of a base URL that an operator configured. A call for it
/// ([`Client::send_for`](crate::Client::send_for)) may use any port of that host, HTTPS or plain
/// HTTP, and any address that its name resolves to: an inference server is often in the operator's
/// own network and serves its results from another port. Every other host is checked as usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorHost(Host);

impl OperatorHost {
    /// The host of `base`; `None` if `base` is not a well-formed http or https URL without
    /// credentials and fragment.
    #[must_use]
    pub fn from_url(base: &Url) -> Option<Self> {
        well_formed(base.as_str(), &SCHEMES).ok()?.host().map(|host| Self(host.to_owned()))
    }

    /// Returns the URL in normal form if it is on this host.
    pub(crate) fn admit(&self, url: &str) -> Option<Url> {
        well_formed(url, &SCHEMES).ok().filter(|url| url.host().is_some_and(|host| host.to_owned() == self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(base: &str) -> Option<OperatorHost> {
        OperatorHost::from_url(&Url::parse(base).unwrap())
    }

    #[test]
    fn every_port_and_both_schemes_of_the_host_are_admitted() {
        let host = host("http://Inference.:8188/v1").unwrap();
        for url in ["http://inference:8188/x", "https://inference/x?y=z", "http://INFERENCE.:9/"] {
            assert!(host.admit(url).is_some(), "{url}");
        }
    }

    #[test]
    fn no_other_host_and_no_disguise_is_admitted() {
        let host = host("http://127.0.0.1:8188").unwrap();
        for url in [
            "http://127.0.0.2:8188/",
            "http://localhost:8188/",
            "http://127.0.0.1.example:8188/",
            "http://a@127.0.0.1:8188/",
            "http://127.0.0.1:8188/#x",
            "http:/127.0.0.1:8188/",
            "ftp://127.0.0.1/",
        ] {
            assert_eq!(host.admit(url), None, "{url}");
        }
    }

    #[test]
    fn a_base_with_credentials_names_no_host() {
        assert_eq!(host("http://user:pass@inference/"), None);
    }
}
