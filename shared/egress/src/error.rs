//! Errors, and whether they occurred before anything was sent.

use std::error::Error;
use std::io;

use crate::guard::UrlRefusal;
use crate::resolve::AddressNotPublic;

/// The reason why a client cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The extra CA file is not in PEM format.
    #[error("the extra CA file is not in PEM format")]
    ExtraCaPem(#[source] rustls::pki_types::pem::Error),
    /// A certificate in the extra CA file cannot be a root.
    #[error("the extra CA file contains an unusable certificate")]
    ExtraCa(#[source] rustls::Error),
    /// The extra CA file contains no certificate.
    #[error("the extra CA file contains no certificate")]
    ExtraCaEmpty,
    /// Neither the system nor the extra CA file provides a root, so no server could be verified.
    #[error("no root certificate found, neither in the system's store nor in the extra CA file")]
    NoRoots,
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// The HTTP client cannot be set up.
    #[error("cannot build the HTTP client")]
    Http(#[source] reqwest::Error),
}

/// The reason why a call has no response. The texts contain neither the URL nor an address.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The URL is rejected by its form.
    #[error("the destination is refused")]
    Refused(#[source] UrlRefusal),
    /// The name resolves to at least one address that is neither public nor permitted.
    #[error("the destination resolves to an address that is not public")]
    AddressRefused,
    /// The name does not resolve.
    #[error("the destination's name does not resolve")]
    Dns(#[source] reqwest::Error),
    /// No address of the destination accepted a connection in time.
    #[error("the destination accepts no connection")]
    Connect(#[source] reqwest::Error),
    /// The TLS handshake failed.
    #[error("the TLS handshake with the destination failed")]
    Tls(#[source] reqwest::Error),
    /// The deadline passed, in any step.
    #[error("the destination did not answer in full before the deadline")]
    Timeout,
    /// The exchange broke off, or was not HTTP, before the response's headers were complete.
    #[error("the exchange with the destination broke off")]
    Protocol(#[source] reqwest::Error),
    /// The response's body broke off.
    #[error("the destination's response broke off")]
    Body(#[source] reqwest::Error),
}

impl SendError {
    /// Returns `true` if it is certain that not a single byte of the request was sent, so that a retry cannot repeat an effect. A timeout
    /// proves nothing.
    #[cfg(test)]
    pub(crate) fn is_before_send(&self) -> bool {
        match self {
            Self::Refused(_) | Self::AddressRefused | Self::Dns(_) | Self::Connect(_) | Self::Tls(_) => true,
            Self::Timeout | Self::Protocol(_) | Self::Body(_) => false,
        }
    }

    /// Classifies an error of a step before the response's headers.
    pub(crate) fn before_headers(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_builder() {
            Self::Refused(UrlRefusal::Malformed)
        } else if causes(&error).any(|cause| cause.is::<AddressNotPublic>()) {
            Self::AddressRefused
        } else if error.is_dns() {
            Self::Dns(error)
        } else if error.is_connect() && causes(&error).any(is_tls) {
            Self::Tls(error)
        } else if error.is_connect() {
            Self::Connect(error)
        } else {
            Self::Protocol(error)
        }
    }
}

/// `error` and its causes, outermost first.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Returns `true` if a cause of a failed connect is in the TLS handshake. The TLS layer reports an `io::Error` that contains another one,
/// either the library's own or the socket's during the handshake; a failed TCP connect never does. `source()` would skip the
/// contained error, hence `get_ref()`.
fn is_tls(cause: &(dyn Error + 'static)) -> bool {
    let carried = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    carried.is_some_and(|carried| carried.is::<io::Error>() || carried.is::<rustls::Error>())
}
