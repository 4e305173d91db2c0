//! What can go wrong, and whether it went wrong before anything was sent.

use std::error::Error;
use std::io;

use crate::guard::UrlRefusal;
use crate::resolve::AddressNotPublic;

/// Why a client cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The extra CA file is no PEM.
    #[error("the extra CA is not readable as PEM")]
    ExtraCaPem(#[source] rustls::pki_types::pem::Error),
    /// A certificate in the extra CA file is none that can be a root.
    #[error("the extra CA holds a certificate that cannot be a root")]
    ExtraCa(#[source] rustls::Error),
    /// The extra CA file holds no certificate.
    #[error("the extra CA holds no certificate")]
    ExtraCaEmpty,
    /// Neither the machine nor the extra CA brought a root: no server could ever be verified.
    #[error("no root certificate found, neither the machine's nor an extra CA")]
    NoRoots,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Http(#[source] reqwest::Error),
}

/// Why a call has no answer. Texts carry neither the URL nor an address.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The URL is refused by its form.
    #[error("the destination is refused")]
    Refused(#[source] UrlRefusal),
    /// The name resolves to at least one address that is neither public nor admitted.
    #[error("the destination resolves to an address that is not public")]
    AddressRefused,
    /// The name does not resolve.
    #[error("the destination's name does not resolve")]
    Dns(#[source] reqwest::Error),
    /// No address of the destination accepts a connection in time.
    #[error("the destination accepts no connection")]
    Connect(#[source] reqwest::Error),
    /// The TLS handshake failed.
    #[error("the TLS handshake with the destination failed")]
    Tls(#[source] reqwest::Error),
    /// The deadline passed, in whichever step.
    #[error("the destination did not answer in full before the deadline")]
    Timeout,
    /// The exchange broke off, or was no HTTP, before the response's headers were complete.
    #[error("the exchange with the destination broke off")]
    Protocol(#[source] reqwest::Error),
    /// The response's body broke off.
    #[error("the destination's response broke off")]
    Body(#[source] reqwest::Error),
}

impl SendError {
    /// Whether it is proven that not one byte of the request was sent, so that trying again cannot do a thing twice. A
    /// timeout proves nothing.
    #[cfg(test)]
    pub(crate) fn is_before_send(&self) -> bool {
        match self {
            Self::Refused(_) | Self::AddressRefused | Self::Dns(_) | Self::Connect(_) | Self::Tls(_) => true,
            Self::Timeout | Self::Protocol(_) | Self::Body(_) => false,
        }
    }

    /// Tells the steps before the response's headers apart.
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

/// `error` and what caused it, outermost first.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Whether a cause of a failed connect lies in the handshake. The TLS layer reports an `io::Error` that carries another
/// one, be it the library's own or the socket's during the handshake; a failed TCP connect never does. `source()` would
/// skip the carried error, hence `get_ref()`.
fn is_tls(cause: &(dyn Error + 'static)) -> bool {
    let carried = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    carried.is_some_and(|carried| carried.is::<io::Error>() || carried.is::<rustls::Error>())
}
