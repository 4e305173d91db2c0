//! The only outbound HTTP client.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode};
use service::shares::Shares;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::error::{ClientError, SendError};
use crate::guard::Guard;
use crate::operator::OperatorHost;
use crate::resolve::{LimitedLookup, Lookup, SystemLookup, VettingResolver};
use crate::tls;

/// The time for which an idle connection is kept. Common servers close theirs after 5 s, and writing to a connection that is being closed
/// costs an attempt, so this side closes first.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Idle connections kept for each destination: the number of concurrent webhook deliveries to one destination.
const MAX_IDLE_PER_HOST: usize = 4;

/// Time limit for connecting (name resolution, TCP, TLS), divided evenly among the addresses of a
/// name. The caller's deadline limits a call. This limit also ends a connect whose call was
/// meanwhile served by another connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of downloads at once, in total and from one host. Browsers open six connections to a host.
const MAX_DOWNLOADS: u64 = 256;
const MAX_DOWNLOADS_OF_HOST: u64 = 4;

/// Configuration of a [`Client`].
#[derive(Default)]
pub struct ClientConfig {
    /// Decides which destinations are permitted.
    pub guard: Guard,
    /// PEM text of CA certificates trusted in addition to the system's (`CANVAS_EGRESS_CA_FILE`).
    pub extra_ca_pem: Option<Vec<u8>>,
}

/// A request to send.
pub struct Outbound {
    pub method: Method,
    /// The destination, which the guard checks again.
    pub url: Url,
    /// Headers. `Host`, `Content-Length` and, if absent, `Accept: */*` are added.
    pub headers: HeaderMap,
    /// The complete body.
    pub body: Bytes,
    /// Total time for name resolution, connect, TLS, request, response headers and body.
    pub deadline: Duration,
    /// Maximum number of bytes of the response's body to keep.
    pub response_limit: usize,
}

/// A response, including redirects and error statuses.
#[derive(Debug)]
pub struct Inbound {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The first `response_limit` bytes of the body, as sent: no content coding is decoded.
    pub body: Bytes,
    /// `true` if the body continued after `response_limit`.
    pub truncated: bool,
}

/// A response whose body has not been read, including redirects and error statuses.
#[derive(Debug)]
pub struct Opened {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

/// A body that is being received. Dropping it before its end closes its connection.
#[derive(Debug)]
pub struct Body {
    response: reqwest::Response,
    until: Instant,
}

impl Body {
    /// The next chunk, as sent; `None` at the body's end.
    ///
    /// # Errors
    ///
    /// When the body ends before the length that its framing announced, and when the deadline passes.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, SendError> {
        match timeout_at(self.until, self.response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| SendError::Body(error.without_url())),
            Err(_) => Err(SendError::Timeout),
        }
    }

    /// Reads to the end and discards the data, so that the connection can be reused: a connection
    /// whose response was not read to its end is closed. Stops and closes the connection after
    /// `limit` bytes, if the body breaks off, or if the deadline passes. None of these affects the
    /// call, whose status is known.
    pub async fn drain(mut self, limit: usize) {
        let mut read = 0;
        while let Ok(Some(chunk)) = self.chunk().await {
            read += chunk.len();
            if read > limit {
                return;
            }
        }
    }
}

/// Makes outbound HTTPS calls, to public destinations and those that the operator permits. Cheap to clone; clones share their
/// idle connections.
#[derive(Clone)]
pub struct Client {
    guard: Guard,
    /// The HTTP client for destinations whose addresses are checked.
    vetted: reqwest::Client,
    /// The HTTP client for destinations listed as `host:port`. It is separate because a resolver
    /// sees a name without its port, and because the two must not share connections.
    listed: reqwest::Client,
    /// The HTTP client for an [`OperatorHost`], of which neither addresses nor scheme are checked.
    /// It is separate for the same reasons.
    operator: reqwest::Client,
    /// The [downloads](Self::download) in progress, by host.
    pub(crate) downloads: Shares,
}

impl Client {
    /// Builds a client that resolves names with the operating system.
    ///
    /// # Errors
    ///
    /// If there is no root certificate to verify servers with, or if the extra CA cannot be read.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        Self::with_lookup(config, Arc::new(LimitedLookup::new(SystemLookup)))
    }

    fn with_lookup(config: ClientConfig, lookup: Arc<dyn Lookup>) -> Result<Self, ClientError> {
        let ClientConfig { guard, extra_ca_pem } = config;
        let tls = tls::config(extra_ca_pem.as_deref())?;
        let unjudged = || VettingResolver::new(Arc::clone(&lookup), None);
        let vetted = VettingResolver::new(Arc::clone(&lookup), Some(guard.clone()));
        Ok(Self {
            guard,
            vetted: http_client(tls.clone(), vetted, true)?,
            listed: http_client(tls.clone(), unjudged(), true)?,
            operator: http_client(tls, unjudged(), false)?,
            downloads: Shares::new("downloads", MAX_DOWNLOADS, MAX_DOWNLOADS_OF_HOST),
        })
    }

    /// Sends a request and returns the response with a body to read in chunks; the reader must observe `response_limit`.
    /// Returns when status and headers have arrived. The deadline includes the whole body.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn open_for(&self, operator: Option<&OperatorHost>, call: Outbound) -> Result<Opened, SendError> {
        let until = Instant::now() + call.deadline;
        let mut response = timeout_at(until, self.begin(operator, call)).await.unwrap_or(Err(SendError::Timeout))?;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        Ok(Opened { status, headers, body: Body { response, until } })
    }

    /// Sends one request and reads the response. Nothing is retried and no redirect is followed. A
    /// body above the limit is truncated and its connection closed, which is not an error.
    ///
    /// The call can be canceled by dropping the future. Then it is unknown whether the destination
    /// received it.
    ///
    /// # Errors
    ///
    /// [`SendError`] says which step failed, and whether that was before anything was sent.
    pub async fn send(&self, call: Outbound) -> Result<Inbound, SendError> {
        self.send_for(None, call).await
    }

    /// Like [`send`](Self::send), except that a URL on `operator`'s host is called whatever it
    /// resolves to, and also over plain HTTP. Only for calls whose destination the operator chose,
    /// never for a URL from a request (docs/reference/webhooks.md#operator-hosts).
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send).
    pub async fn send_for(&self, operator: Option<&OperatorHost>, call: Outbound) -> Result<Inbound, SendError> {
        let deadline = call.deadline;
        tokio::time::timeout(deadline, self.exchange(operator, call)).await.unwrap_or(Err(SendError::Timeout))
    }

    async fn exchange(&self, operator: Option<&OperatorHost>, call: Outbound) -> Result<Inbound, SendError> {
        let limit = call.response_limit;
        let mut response = self.begin(operator, call).await?;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let (body, truncated) = read_body(response, limit).await?;
        Ok(Inbound { status, headers, body, truncated })
    }

    /// Sends a request and returns the response without its body.
    async fn begin(&self, operator: Option<&OperatorHost>, call: Outbound) -> Result<reqwest::Response, SendError> {
        let admitted = operator.and_then(|operator| operator.admit(call.url.as_str()));
        let (client, url) = match admitted {
            Some(url) => (&self.operator, url),
            None => {
                let url = self.guard.check_url(call.url.as_str()).map_err(SendError::Refused)?;
                (if self.guard.lists(&url) { &self.listed } else { &self.vetted }, url)
            }
        };
        let mut request = reqwest::Request::new(call.method, url);
        *request.headers_mut() = call.headers;
        *request.body_mut() = Some(call.body.into());
        client.execute(request).await.map_err(SendError::before_headers)
    }
}

/// Reads at most `limit` bytes, and then the next chunk only to determine whether there is one.
/// Dropping the response before its end closes its connection.
async fn read_body(mut response: reqwest::Response, limit: usize) -> Result<(Bytes, bool), SendError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| SendError::Body(error.without_url()))? {
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok((body.freeze(), true));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body.freeze(), false))
}

/// Builds an HTTP client with all automatic behavior disabled. This includes behavior that our
/// selection of features excludes, because another crate may enable those features.
#[expect(clippy::disallowed_methods, reason = "the only place that builds an HTTP client for outbound calls")]
fn http_client(
    tls: rustls::ClientConfig,
    resolver: VettingResolver,
    https_only: bool,
) -> Result<reqwest::Client, ClientError> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .https_only(https_only)
        .http1_only()
        .dns_resolver(resolver)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
        .build()
        .map_err(ClientError::Http)
}

#[cfg(test)]
mod tests;
