//! The one outbound HTTP client.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::error::{ClientError, SendError};
use crate::guard::Guard;
use crate::operator::OperatorHost;
use crate::resolve::{Lookup, SystemLookup, VettingResolver};
use crate::tls;

/// How long an idle connection is kept. Common servers close theirs after 5 s; writing into one that is just being closed
/// costs an attempt, so ours go first.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Idle connections kept per destination: as many as webhook deliveries run to one destination at once.
const MAX_IDLE_PER_HOST: usize = 4;

/// The longest that connecting (lookup, TCP, TLS) takes, shared evenly by the addresses of a name. The caller's deadline
/// rules a call; this also ends a connect that has lost its call to a connection that became idle first.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a [`Client`] is made of.
#[derive(Default)]
pub struct ClientConfig {
    /// Where calls may go.
    pub guard: Guard,
    /// PEM text of CA certificates trusted besides the machine's own (`CANVAS_EGRESS_CA_FILE`).
    pub extra_ca_pem: Option<Vec<u8>>,
}

/// A call to make.
pub struct Outbound {
    /// The method.
    pub method: Method,
    /// The destination; judged anew by the guard.
    pub url: Url,
    /// Headers. `Host`, `Content-Length` and, where absent, `Accept: */*` are added.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// The total time for lookup, connect, TLS, request, response headers and body.
    pub deadline: Duration,
    /// The most bytes of the response's body to keep.
    pub response_limit: usize,
}

/// An answer, redirects and errors by status included.
#[derive(Debug)]
pub struct Inbound {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The first `response_limit` bytes of the body, as sent: no content coding is undone.
    pub body: Bytes,
    /// Whether the body went on beyond `response_limit`.
    pub truncated: bool,
}

/// An answer whose body is still to come, redirects and errors by status included.
#[derive(Debug)]
pub struct Opened {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
}

/// A body on its way. Dropping it before its end drops its connection.
#[derive(Debug)]
pub struct Body {
    response: reqwest::Response,
    until: Instant,
}

impl Body {
    /// What came next, as sent; nothing at the body's end.
    ///
    /// # Errors
    ///
    /// When it breaks off before the end that its framing announced, and when time is up.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, SendError> {
        match timeout_at(self.until, self.response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| SendError::Body(error.without_url())),
            Err(_) => Err(SendError::Timeout),
        }
    }

    /// Reads on to the end and keeps nothing, so that the connection may serve the next call: a connection whose answer was not
    /// read to its end is dropped. Gives up, and drops it, beyond `limit` bytes, when the body breaks off and when time is up;
    /// none of which says anything about the call, whose status is known.
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

/// Makes outbound HTTPS calls, to public destinations and those the operator lists. Cheap to clone; clones share their idle
/// connections.
#[derive(Clone)]
pub struct Client {
    guard: Guard,
    /// For destinations whose addresses are judged.
    vetted: reqwest::Client,
    /// For destinations listed as `host:port`. A client of its own, because a resolver sees a name without its port, and
    /// because no connection of one may ever serve the other.
    listed: reqwest::Client,
    /// For an [`OperatorHost`]: neither its addresses nor its scheme are judged. A client of its own for the same reason.
    operator: reqwest::Client,
}

impl Client {
    /// Builds a client that resolves names as the operating system does.
    ///
    /// # Errors
    ///
    /// When there is no root certificate to verify servers with, or the extra CA cannot be read.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        Self::with_lookup(config, Arc::new(SystemLookup::new()))
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
        })
    }

    /// Begins a call and gives its answer's body little by little; `response_limit` is the reader's to keep. Status and headers are
    /// there when this returns, before the deadline, which the whole body has.
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

    /// Makes one call and reads its answer. Nothing is retried and no redirect is followed; a body beyond the limit is
    /// cut and its connection dropped, which is no error.
    ///
    /// Cancel safe in the sense that dropping the future ends the call; whether the destination saw it is then unknown.
    ///
    /// # Errors
    ///
    /// [`SendError`] tells the step that failed, and whether it was before anything was sent.
    pub async fn send(&self, call: Outbound) -> Result<Inbound, SendError> {
        self.send_for(None, call).await
    }

    /// The same, where a URL on `operator`'s host is called whatever it resolves to, over plain http too. Only for calls
    /// whose destination the operator chose (decisions 15.3): never with a URL of a caller's making.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
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

    /// Sends a call; its answer up to the body.
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

/// Reads at most `limit` bytes, and on to the next chunk only to learn whether there is one. Dropping the response before
/// its end drops its connection.
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

/// The HTTP stack with everything switched off that would act on its own. What is off by the features we build with is
/// switched off all the same: another crate's features may come to be built in.
#[expect(clippy::disallowed_methods, reason = "this is the door that outbound HTTP goes through")]
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
